//! One small whole file of every format but Kineto and Nsight Systems, whose damage is tested on its own.

use std::{fmt::Write, path::Path};

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, sqlite::SqliteConnectOptions};

// Wherever this file is a module, that one is its own.
#[path = "further.rs"]
mod further;

/// A whole file.
pub struct Input {
    /// Format it is of.
    pub format: &'static str,
    /// Name of the file, by which some formats know their parts.
    pub name: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether every line is complete in itself, so that a cut costs the line that it hits and nothing else.
    pub lines: bool,
}

/// Kernels, steps or rows of each.
pub const ROWS: usize = 30;

pub fn text(format: &'static str, name: &'static str, head: &str, row: impl Fn(usize) -> String, tail: &str) -> Input {
    let rows: String = (0..ROWS).map(row).collect();
    let lines = tail.is_empty();
    Input { format, name, bytes: format!("{head}{rows}{tail}").into_bytes(), lines }
}

pub fn database(format: &'static str, name: &'static str, sql: &str) -> Input {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut db = SqliteConnectOptions::new().filename(&path).create_if_missing(true).connect().await.unwrap();
        db.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.unwrap();
        db.close().await.unwrap();
    });
    Input { format, name, bytes: read(&path), lines: false }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Rows of an `insert` for each number.
pub fn values(row: impl Fn(usize) -> String) -> String {
    (0..ROWS).map(row).collect::<Vec<_>>().join(",")
}

/// Every input.
pub fn all() -> Vec<Input> {
    let mut all = ascend();
    all.extend(rocm());
    all.extend(sums());
    all.extend(texts());
    all.extend(further::all());
    all
}

fn ascend() -> Vec<Input> {
    let event = |i: usize| {
        format!(
            r#"{{"name":"aclnnAdd_AddAiCore_Add","pid":32,"tid":2,"ts":"1736408883{:06}.120","dur":5.5,"args":{{"Task Type":"AI_CORE","connection_id":{i}}},"ph":"X"}},
{{"name":"AscendCL@launch","pid":31,"tid":9,"ts":"1736408883{:06}.001","dur":2,"args":{{"connection_id":{i}}},"ph":"X"}},
"#,
            i * 20 + 4,
            i * 20
        )
    };
    let timeline = text(
        "ascend",
        "trace_view.json",
        "[{\"name\":\"process_name\",\"pid\":32,\"tid\":0,\"args\":{\"name\":\"Ascend Hardware\"},\"ph\":\"M\"},\n{\"name\":\"process_name\",\"pid\":31,\"tid\":0,\"args\":{\"name\":\"CANN\"},\"ph\":\"M\"},\n",
        event,
        "{\"name\":\"Free\",\"pid\":32,\"tid\":8,\"ts\":\"1736408883900000.120\",\"dur\":1,\"args\":{},\"ph\":\"X\"}]",
    );
    let row = |i: usize| {
        format!("7,3,aclnnAdd_Add,Add,AI_VECTOR_CORE,\"1736413971{:06}.912\t\",185.504,1.0,40,2,4294967295\n", i * 200)
    };
    let head = "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,Stream ID,Model ID\n";
    let tasks = text("op-summary", "kernel_details.csv", head, row, "");
    let head = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n";
    let sums = text("op-statistic", "op_statistic.csv", head, |i| format!("0,Op{i},AI_CORE,8,921.5,1,2,3,3.1\n"), "");
    let now = 1_736_408_883_000_000_000usize;
    let strings = "CREATE TABLE STRING_IDS (id INTEGER, value TEXT);
        INSERT INTO STRING_IDS VALUES (1,'KERNEL_AICORE'),(2,'aclnnAdd_AddAiCore_Add'),(3,'launch'),(5,'AI_CORE'),(6,'hcom_allReduce__586_3_1'),(7,'group a');";
    let tasks_of = values(|i| {
        let start = now + i * 20_000;
        format!("({start},{},1,{i},{i},3,1,0,2,{i},4294967295)", start + 9_000)
    });
    let calls = values(|i| format!("({},{},10000,12884901892,{i},3)", now + i * 20_000 - 900, now + i * 20_000 - 100));
    let infos = values(|i| format!("(2,{i},40,5)"));
    let later = database(
        "ascend",
        "ascend_pytorch_profiler_0.db",
        &format!(
            "{strings} CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, name INTEGER);
            INSERT INTO CANN_API VALUES {calls};
            CREATE TABLE NPU_INFO (id INTEGER, name TEXT); INSERT INTO NPU_INFO VALUES (1,'Ascend910B');
            CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, taskType INTEGER);
            INSERT INTO COMPUTE_TASK_INFO VALUES {infos};
            CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, opId INTEGER, relay INTEGER, retry INTEGER, dataType INTEGER, count NUMERIC);
            INSERT INTO COMMUNICATION_OP VALUES (6,{now},{},80,7,1,0,1,3,1000);
            CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);
            INSERT INTO TASK VALUES {tasks_of};",
            now + 5_000
        ),
    );
    let early_tasks =
        values(|i| format!("('1.23282223{:06}e+17','1.23282223{:06}e+17',2,{i},{i},0,1,16,1)", i * 20, i * 20 + 9));
    let early_infos = values(|i| format!("(2,{i},48)"));
    let early = database(
        "ascend",
        "report_0.db",
        &format!(
            "{strings} CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, correlationId INTEGER, block_dim INTEGER);
            INSERT INTO COMPUTE_TASK_INFO VALUES {early_infos};
            CREATE TABLE TASK (start TEXT, end TEXT, deviceId INTEGER, connectionId INTEGER, correlationId INTEGER, globalPid INTEGER, taskType INTEGER, streamId INTEGER, modelId INTEGER);
            INSERT INTO TASK VALUES {early_tasks};"
        ),
    );
    vec![timeline, tasks, sums, later, early]
}

fn rocm() -> Vec<Input> {
    let kernels = text(
        "rocprofv3",
        "1_kernel_trace.csv",
        "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n",
        |i| {
            format!(
                "\"KERNEL_DISPATCH\",\"Agent 1\",\"2\",\"2\",\"77\",\"{i}\",\"33\",\"scale<float, 4>(float*)\",\"{i}\",\"10000000{i:02}030\",\"10000000{i:02}050\",\"256\",\"1\",\"1\",\"1000\",\"2\",\"1\"\n"
            )
        },
        "",
    );
    let calls = text(
        "rocprofv3",
        "2_hip_api_trace.csv",
        "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n",
        |i| {
            format!(
                "\"HIP_RUNTIME_API_EXT\",\"hipLaunchKernel\",\"70\",\"77\",\"{i}\",\"10000000{i:02}000\",\"10000000{i:02}010\"\n"
            )
        },
        "",
    );
    let json = text(
        "rocprofv3",
        "3_results.json",
        r#"{"rocprofiler-sdk-tool":[{"metadata":{"pid":70,"init_time":1,"fini_time":2},"buffer_records":{"kernel_dispatch":["#,
        |i| {
            format!(
                r#"{{"kind":3,"operation":1,"thread_id":77,"correlation_id":{{"internal":{i}}},"start_timestamp":10000000{i:02}030,"end_timestamp":10000000{i:02}050,"dispatch_info":{{"agent_id":{{"handle":7}},"queue_id":{{"handle":2}},"kernel_id":33,"workgroup_size":{{"x":256,"y":1,"z":1}},"grid_size":{{"x":1000,"y":2,"z":1}}}}}},"#
            )
        },
        r#"{"kind":3}]},"agents":[{"id":{"handle":7},"type":2,"node_id":2,"logical_node_id":1,"name":"gfx942","cu_count":304}],"strings":{"buffer_records":[]},"kernel_symbols":[{"kernel_id":33,"kernel_name":"_Z5scale.kd","formatted_kernel_name":"scale<float, 4>(float*)"}]}]}"#,
    );
    let id = "_00003fdc_92cb_7aa1";
    let dispatches =
        values(|i| format!("({0},1,9,2,33,2,0,10000000{i:02}030,10000000{i:02}050,256,1,1,1000,2,1,{0})", i + 1));
    let regions = values(|i| format!("({0},1,1,9,10000000{i:02}000,10000000{i:02}010,2,{0})", i + 1));
    let events = values(|i| format!("({0},1,{0},0,'{{}}')", i + 1));
    let rocpd = database(
        "rocpd",
        "70_results.db",
        &format!(
            "create table rocpd_string{id}(id integer primary key, guid text, string text);
            create table rocpd_info_process{id}(id integer primary key, nid int, pid int, environment text);
            create table rocpd_info_thread{id}(id integer primary key, pid int, tid int, name text);
            create table rocpd_info_agent{id}(id integer primary key, type text, absolute_index int, logical_index int, type_index int, name text, product_name text);
            create table rocpd_info_kernel_symbol{id}(id integer primary key, kernel_name text, display_name text);
            create table rocpd_event{id}(id integer primary key, category_id int, stack_id int, correlation_id int, extdata text);
            create table rocpd_region{id}(id integer primary key, nid int, pid int, tid int, start int, end int, name_id int, event_id int);
            create table rocpd_kernel_dispatch{id}(id integer primary key, pid int, tid int, agent_id int, kernel_id int, queue_id int, stream_id int, start int, end int, workgroup_size_x int, workgroup_size_y int, workgroup_size_z int, grid_size_x int, grid_size_y int, grid_size_z int, event_id int);
            create table rocpd_memory_copy{id}(id integer primary key, pid int, tid int, start int, end int, name_id int, dst_agent_id int, src_agent_id int, size int, stream_id int, event_id int);
            insert into rocpd_string{id} values (1,'','HIP_RUNTIME_API_EXT'),(2,'','hipLaunchKernel');
            insert into rocpd_info_process{id} values (1,1,70,'');
            insert into rocpd_info_thread{id} values (9,1,77,'main');
            insert into rocpd_info_agent{id} values (2,'GPU',4,1,0,'gfx942','AMD Instinct MI300X');
            insert into rocpd_info_kernel_symbol{id} values (33,'_Z5scale.kd','scale<float, 4>(float*)');
            insert into rocpd_event{id} values {events};
            insert into rocpd_region{id} values {regions};
            insert into rocpd_kernel_dispatch{id} values {dispatches};"
        ),
    );
    let table = text(
        "rocprof",
        "results.csv",
        "\"Index\",\"KernelName\",\"gpu-id\",\"queue-id\",\"queue-index\",\"pid\",\"tid\",\"grd\",\"wgr\",\"sig\",\"DispatchNs\",\"BeginNs\",\"EndNs\",\"CompleteNs\",\"DurationNs\"\n",
        |i| {
            format!(
                "{i},\"fill<2, false>(int) [clone .kd]\",2,0,0,70,71,1000,256,\"0x0\",1,7695373{i:02}688,7695373{i:02}788,1,100\n"
            )
        },
        "",
    );
    let pair = |i: usize, begin: &str, end: &str| {
        format!(
            ",{{\"ts\":\"7695373{i:02}\",\"dur\":\"1\",\"ph\":\"X\",\"pid\":\"2\",\"tid\":\"71\",\"name\":\"hipLaunchKernel\",\"args\":{{{begin}7695373{i:02}001{end},\"pid\":\"70\",\"tid\":\"71\",\"Index\":\"{i}\"}}}}\n,{{\"ts\":\"7695373{i:02}\",\"dur\":\"7\",\"ph\":\"X\",\"pid\":\"6\",\"tid\":\"0\",\"name\":\"gemm.kd\",\"args\":{{{begin}7695373{i:02}003{end},\"dev-id\":\"2\",\"queue-id\":\"1\",\"pid\":\"70\",\"Index\":\"{i}\"}}}}\n"
        )
    };
    let lanes = "{\"args\":{\"name\":\"0 CPU HIP API\"},\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\"}\n,{\"args\":{\"name\":\"1 GPU0\"},\"ph\":\"M\",\"pid\":6,\"name\":\"process_name\"}\n";
    let (begin, end) = ("\"BeginNs\":\"", "\",\"EndNs\":\"769537399999\"");
    let events =
        text("rocprof", "results.json", &format!("{{ \"traceEvents\":[{lanes}"), |i| pair(i, begin, end), "]}");
    let hipprof = text(
        "hipprof",
        "result.json",
        &format!("{{\"otherData\":{{\"tool\":\"hipprof\"}},\"traceEvents\":[{lanes}"),
        |i| pair(i, "\"t\":\"", "\""),
        "]}",
    );
    vec![kernels, calls, json, rocpd, table, events, hipprof]
}

fn sums() -> Vec<Input> {
    let details = text(
        "ncu",
        "p.details.csv",
        "==PROF== Connected to process 42\n\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",\"Rule Description\",\"Estimated Speedup Type\",\"Estimated Speedup\"\n",
        |i| {
            format!(
                "\"{i}\",\"42\",\"python\",\"h\",\"void gemm<int, 2>(T1)\",\"1\",\"7\",\"(256, 1, 1)\",\"(1056, 1, 1)\",\"0\",\"9.0\",\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"16.45\",\n"
            )
        },
        "",
    );
    let raw = text(
        "ncu",
        "p.raw.csv",
        "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"gpu__time_duration.sum\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\"\n\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"ns\",\"%\"\n",
        |i| {
            format!(
                "\"{i}\",\"42\",\"python\",\"h\",\"void gemm<int, 2>(T1)\",\"1\",\"7\",\"(256, 1, 1)\",\"(1056, 1, 1)\",\"0\",\"9.0\",\"16,448\",\"61.9\"\n"
            )
        },
        "",
    );
    let nsys = text(
        "nsys-stats",
        "x_cuda_gpu_kern_sum.csv",
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n",
        |i| format!("3.0,60{i:02},3,200.0,200.0,100,300,1.5,\"void gemm<int, {i}>(T1)\"\n"),
        "",
    );
    let rocprof = text(
        "rocprof-stats",
        "results.stats.csv",
        "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n",
        |i| format!("\"void gemm<{i}, true>(int) [clone .kd]\",3,60{i:02},200,3.3\n"),
        "",
    );
    let mut all = vec![details, raw, nsys, rocprof];
    all.extend(jobs());
    all
}

/// What an analysis of all ranks of a job sums, in each of its forms.
fn jobs() -> [Input; 3] {
    let steps = text(
        "ascend-cluster",
        "cluster_step_trace_time.csv",
        "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n",
        |i| format!("2,rank,{i},70.5,20.25,1,21.25,9.25,100.0,0.0\n"),
        "",
    );
    let links = text(
        "ascend-cluster",
        "cluster_communication_matrix.json",
        "{\"p2p\":{\"step2\":{\"hcom_send__1_0@7\":{\n",
        |i| {
            format!(
                "\"{i}-8\":{{\"Transport Type\":\"RDMA\",\"Transit Time(ms)\":0.86,\"Transit Size(MB)\":20.9,\"Bandwidth(GB/s)\":24.3}},\n"
            )
        },
        "\"0-0\":{\"Transport Type\":\"LOCAL\",\"Transit Time(ms)\":0.1,\"Transit Size(MB)\":20.9}}}}}",
    );
    let rows = values(|i| format!("('step2','Total Op Info','7',{i},8,'RDMA',20.9,0.86)"));
    let tables = database(
        "ascend-cluster",
        "cluster_analysis.db",
        &format!(
            "CREATE TABLE ClusterCommunicationMatrix (step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank INTEGER, dst_rank INTEGER, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC);
            INSERT INTO ClusterCommunicationMatrix VALUES {rows};"
        ),
    );
    [steps, links, tables]
}

fn texts() -> Vec<Input> {
    let json = |i: usize| {
        format!(
            "{{\"ts_ns\": 17545868{i:02}000000000, \"rank\": 0, \"step\": {i}, \"batch_size\": 4, \"stage\": \"decode\", \"latency_ms\": 2.5, \"graph_mode\": \"full\"}}\n"
        )
    };
    let table = |i: usize| format!("{i},h20,8,128,decode,3.25\n");
    let literal =
        |i: usize| format!("log(platform=h20, batch_size=8, prompt_len=128, stage=decode, latency_ms={}.5)\n", i + 1);
    let server = |i: usize| {
        format!(
            "INFO 08-07 17:14:{i:02} [metrics.py:417] Avg prompt throughput: 80.0 tokens/s, Avg generation throughput: 866.5 tokens/s, Running: 8 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.0%.\n"
        )
    };
    let probe = |i: usize| {
        format!(
            "     {}        262144     float     sum      -1    31.457   33.33   33.34      0    31.5   33.3   33.3      0\n",
            1 << (i % 20 + 3)
        )
    };
    let mut serving = String::from(
        r#"{"model_id": "m", "num_prompts": 30, "request_rate": Infinity, "request_throughput": 1.5, "mean_ttft_ms": 3, "ttfts": ["#,
    );
    (0..ROWS).for_each(|i| write!(serving, "0.25{i},").unwrap());
    serving.push_str("0.5], \"itls\": [");
    (0..ROWS).for_each(|i| write!(serving, "[0.01, 0.0{i}1],").unwrap());
    serving.push_str("[0.02]]}");
    vec![
        text("log", "steps.jsonl", "", json, ""),
        text("log", "steps.csv", "step,platform,batch_size,prompt_len,stage,latency_ms\n", table, ""),
        text("log", "steps.log", "", literal, ""),
        text("log", "server.log", "", server, ""),
        text(
            "msprof-op",
            "OpBasicInfo.csv",
            "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid,Current Freq,Rated Freq,\n",
            |i| format!("MatMul_{i},mix,{i}.5,2,4,0,4711,1850,1850,\n"),
            "",
        ),
        Input { format: "serving", name: "result.json", bytes: serving.into_bytes(), lines: false },
        text(
            "link-test",
            "nccl.txt",
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor)\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n",
            probe,
            "",
        ),
        text(
            "link-test",
            "hccl.txt",
            "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n",
            |i| format!("{}              | 12.50          | 0.65536              | success\n", 8192 << (i % 10)),
            "",
        ),
    ]
}
