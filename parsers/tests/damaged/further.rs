//! Whole files of what rocmProfileData, rocprof v1, XLA, TensorFlow, OpenTelemetry, mcProfiler and `nsys stats` write.

use super::{Input, ROWS, database, text, values};

/// A field of protocol buffers that holds bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 127 {
        bytes.push((length & 127) as u8 | 128);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}

/// Every one of them.
pub fn all() -> Vec<Input> {
    let calls = values(|i| format!("({},70,77,1{i:02}000,1{i:02}010,2,1)", i + 1));
    let shapes = values(|i| format!("({},'0xa0',10,2,1,256,1,1)", i + 1));
    let links = values(|i| format!("({0},{0},{0})", i + 1));
    let work = values(|i| format!("({},2,0,0,1{i:02}100,1{i:02}150,4,3)", i + 1));
    let rpd = database(
        "rpd",
        "trace.rpd",
        &format!(
            "create table rocpd_metadata(id integer primary key, tag text, value text);
            create table rocpd_string(id integer primary key, string text);
            create table rocpd_api(id integer primary key, pid int, tid int, start int, end int, apiName_id int, args_id int);
            create table rocpd_kernelapi(api_ptr_id integer primary key, stream text, gridX int, gridY int, gridZ int, workgroupX int, workgroupY int, workgroupZ int);
            create table rocpd_api_ops(id integer primary key, api_id int, op_id int);
            create table rocpd_op(id integer primary key, gpuId int, queueId int, sequenceId int, start int, end int, description_id int, opType_id int);
            insert into rocpd_metadata(tag,value) values ('schema_version','2');
            insert into rocpd_string values (1,''),(2,'hipLaunchKernel'),(3,'KernelExecution'),(4,'scale(float*)');
            insert into rocpd_api values {calls}; insert into rocpd_kernelapi values {shapes};
            insert into rocpd_api_ops values {links}; insert into rocpd_op values {work};"
        ),
    );
    let calls = values(|i| format!("(1{i:02}000,1{i:02}010,70,71,'hipLaunchKernel',{i},2)"));
    let work = values(|i| format!("(1{i:02}050,1{i:02}090,2,1,'gemm.kd',70,{i},6)"));
    let first = database(
        "rocprof-db",
        "results.db",
        &format!(
            r#"create table HIP("BeginNs" integer, "EndNs" integer, "pid" integer, "tid" integer, "Name" text, "Index" integer, "__section" integer);
            create table OPS("BeginNs" integer, "EndNs" integer, "dev-id" integer, "queue-id" integer, "Name" text, "pid" integer, "Index" integer, "__section" integer);
            insert into HIP values {calls}; insert into OPS values {work};"#
        ),
    );
    let calls = values(|i| format!("(1{i:02}000,1{i:02}010,70,71,1,{i},2)"));
    let work = values(|i| format!("(1{i:02}050,1{i:02}090,2,1,2,70,{i},6)"));
    let hygon = database(
        "hipprof-db",
        "hip-prof.db",
        &format!(
            r#"create table HIP("BeginNs" integer, "EndNs" integer, "pid" integer, "tid" integer, "Name" integer, "Index" integer, "__section" integer);
            create table OPS("BeginNs" integer, "EndNs" integer, "dev_id" integer, "queue_id" integer, "Name" integer, "pid" integer, "Index" integer, "__section" integer);
            create table STRINGS(id integer primary key, string text);
            insert into STRINGS values (1,'hipLaunchKernel'),(2,'gemm.kd');
            insert into HIP values {calls}; insert into OPS values {work};"#
        ),
    );
    let table = text(
        "torch-table",
        "table.txt",
        "-----------------------  ------------  ------------  ------------  ------------  ------------\n                   Name    Self CPU %      Self CPU     CPU total     Self CUDA    # of Calls\n-----------------------  ------------  ------------  ------------  ------------  ------------\n",
        |i| {
            format!(
                "             aten::mm{i:02}         1.91%     1{i:02}.655ms     960.840ms       15.234s         236{i:02}\n"
            )
        },
        "",
    );
    let layers = text(
        "trtexec",
        "layers.json",
        "[\n  { \"count\" : 100 }\n",
        |i| {
            format!(
                ", {{ \"name\" : \"conv{i:02}\", \"timeMs\" : 1{i:02}.5, \"averageMs\" : 1.1, \"percentage\" : 2.5 }}\n"
            )
        },
        "]\n",
    );
    let name = |table: u8, text: &[u8]| {
        field(table, &[&[8, 1][..], &field(2, &[&[8, 1][..], &field(2, text)].concat())].concat())
    };
    let events: Vec<u8> = (0..ROWS as u8).flat_map(|i| field(4, &[8, 1, 16, 0x80 | i, 0x40, 24, 0x90, 0x4e])).collect();
    let line = field(3, &[&[8, 25][..], &field(2, b"Stream #25(Kernel)"), &[24, 0x84, 7], &events].concat());
    let plane = [field(2, b"/device:GPU:0"), name(4, b"gemm.kd"), name(5, b"correlation_id"), line].concat();
    let xplane = Input { format: "xplane", name: "h.xplane.pb", bytes: field(1, &plane), lines: false };
    let span = |i: usize| {
        format!(
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"vllm\"}}}}]}},\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{i}\",\"name\":\"llm_request\",\"startTimeUnixNano\":\"17000000000000{i:02}000\",\"endTimeUnixNano\":\"17000000000000{i:02}900\"}}]}}]}}]}}\n"
        )
    };
    let kernel = |i: usize| {
        format!(
            "Value: {{\"processed_data\": {{\"all_memacs\": 283817376.0, \"during\": 6417{i:02}.0}}, \"data\": {{\"all_memacs\": 283817376.0, \"during\": 6417{i:02}.0, \"core_clk\": 1.125}}}}\n"
        )
    };
    let printed = text(
        "nsys-stats",
        "printed.txt",
        " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n Time (%)  Total Time (ns)  Instances  Min (ns)  Max (ns)          Name         \n --------  ---------------  ---------  --------  --------  ---------------------\n",
        |i| format!("      3.0           60{i:02}            3       100       300  void gemm<int, {i}>(T1)\n"),
        "",
    );
    let summary = text(
        "nvprof",
        "nvprof.txt",
        "==7== Profiling result:\n            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n",
        |i| {
            format!(
                " GPU activities:    3.33%  1.60{i:02}ms         3  533.00us  100.00us  900.00us  void gemm<int, {i}>(T1)\n"
            )
        },
        "",
    );
    let drawn_sums = text(
        "rocprof-compute",
        "output.txt",
        "0.1 Top Kernels\n│   index │ Kernel_Name │   Count │ Sum(ns) │\n╞═════════╪═════════════╪═════════╪═════════╡\n",
        |i| format!("│       {i} │ void gemm<{i} │    3.00 │  160{i:02}.5 │\n"),
        "",
    );
    let launch = |i: usize| {
        format!(
            ",{{\"pid\":\"70\",\"tid\":\"71\",\"name\":\"hipLaunchKernel\",\"ts\":\"1{i:02}00\",\"dur\":\"4\",\"ph\":\"X\",\"args\":{{\"desc\":\"\"}}}}
,{{\"pid\":\"2\",\"tid\":\"0\",\"name\":\"gemm\",\"ts\":\"1{i:02}10\",\"dur\":\"5\",\"ph\":\"X\",\"args\":{{\"desc\":\"KernelExecution\"}}}}
,{{\"pid\":\"70\",\"tid\":\"71\",\"cat\":\"api_op\",\"name\":\"api_op\",\"ts\":\"1{i:02}02\",\"id\":\"{i}\",\"ph\":\"s\"}}
,{{\"pid\":\"2\",\"tid\":\"0\",\"cat\":\"api_op\",\"name\":\"api_op\",\"ts\":\"1{i:02}10\",\"id\":\"{i}\",\"ph\":\"f\", \"bp\":\"e\"}}
"
        )
    };
    let drawn = text(
        "rpd-json",
        "trace.json",
        "[ {}\n,{\"name\": \"process_name\", \"ph\": \"M\", \"pid\":\"2\",\"args\":{\"name\":\"GPU2\"}}\n,{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":\"70\",\"tid\":\"71\",\"args\":{\"name\":\"Hip 71\"}}\n",
        launch,
        "]",
    );
    let process = |pid: u8, device: &str| {
        format!(
            "{{\"ph\":\"M\",\"args\":{{\"name\":\"{device} Compute\"}},\"pid\":{pid},\"name\":\"process_name\"}},\n"
        )
    };
    let processes = [process(1, "/job:localhost/replica:0/task:0/device:GPU:0"), process(3, "/device:GPU:0/stream:14")];
    let timeline = text(
        "tf-timeline",
        "timeline.json",
        &format!("{{\"traceEvents\": [{}", processes.concat()),
        |i| {
            let row = |pid: u8, at: usize| {
                format!(
                    "{{\"name\":\"MatMul\",\"args\":{{\"op\":\"MatMul\"}},\"pid\":{pid},\"ts\":14640834190{at:05},\"cat\":\"Op\",\"tid\":0,\"ph\":\"X\",\"dur\":5}},\n"
                )
            };
            row(1, i * 20) + &row(3, i * 20 + 10)
        },
        "{\"ph\":\"C\",\"name\":\"bfc\",\"pid\":0,\"ts\":1464083419000000,\"args\":{\"bfc\":1}}]}",
    );
    vec![
        rpd,
        drawn,
        timeline,
        first,
        hygon,
        table,
        layers,
        xplane,
        text("otlp", "traces.jsonl", "", span, ""),
        text("mcprofiler", "report.txt", "Sub-module: Summary\n", kernel, ""),
        printed,
        summary,
        drawn_sums,
    ]
}
