//! The database form.

use super::*;

const STRINGS: &str = "CREATE TABLE STRING_IDS (id INTEGER, value TEXT);
INSERT INTO STRING_IDS VALUES (1,'KERNEL_AIVEC'),(2,'aclnnAdd_AddAiCore_Add'),(3,'launch'),(4,'EVENT_WAIT'),(5,'AI_CORE'),
(6,'hcom_allReduce__586_3_1'),(7,'group a'),(8,'Notify Wait'),(9,'Notify_Wait'),(10,'MEMCPY_ASYNC'),(11,'aten::add'),
(12,'32,3;' || char(13,10) || ';' || char(13,10) || '8'),(13,'float;' || char(13,10) || 'Scalar;' || char(13,10) || 'float'),
(14,'ProfilerStep#7');";

/// Times are this many ns after 1736408883 s.
const NOW: &str = "CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, name INTEGER);
INSERT INTO CANN_API VALUES (1736408883000010000,1736408883000012250,10000,12884901892,77,3);
CREATE TABLE ENUM_API_TYPE (id INTEGER, name TEXT); INSERT INTO ENUM_API_TYPE VALUES (10000,'node'),(5500,'hccl');
CREATE TABLE ENUM_HCCL_DATA_TYPE (id INTEGER, name TEXT); INSERT INTO ENUM_HCCL_DATA_TYPE VALUES (3,'FP16');
CREATE TABLE NPU_INFO (id INTEGER, name TEXT); INSERT INTO NPU_INFO VALUES (1,'Ascend910B');
CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER); INSERT INTO RANK_DEVICE_MAP VALUES (3,1);
CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, inputDtypes INTEGER, inputShapes INTEGER, type INTEGER);
INSERT INTO PYTORCH_API VALUES ('1736408883000001000','1736408883000006500',12884901891,NULL,11,13,12,50001),
('1736408883000000000','1736408883000100000',12884901891,NULL,14,NULL,NULL,50001);
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, taskType INTEGER);
INSERT INTO COMPUTE_TASK_INFO VALUES (2,100,40,5);
CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, opId INTEGER, relay INTEGER, retry INTEGER, dataType INTEGER, count NUMERIC);
INSERT INTO COMMUNICATION_OP VALUES (6,1736408883000040000,1736408883000065000,80,7,1,0,1,3,1000);
CREATE TABLE COMMUNICATION_TASK_INFO (name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, srcRank INTEGER, dstRank INTEGER, opId INTEGER);
INSERT INTO COMMUNICATION_TASK_INFO VALUES (6,103,9,0,0,5,1);
CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);
INSERT INTO TASK VALUES (1736408883000020120,1736408883000030120,1,77,100,3,1,0,2,1,4294967295),
(1736408883000031000,1736408883000034000,1,78,101,3,10,0,2,2,4294967295),
(1736408883000035000,1736408883000065000,1,79,102,3,4,0,2,3,4294967295),
(1736408883000040500,1736408883000060500,1,80,103,3,8,0,2,4,4294967295),
(1736408883000020000,1736408883000030200,1,77,104,3,5,0,2,1,4294967295);";

#[test]
fn tables_become_the_same_rows_as_the_timeline_of_the_same_run() {
    let output = Output::new().database("ascend_pytorch_profiler_3.db", &format!("{STRINGS}{NOW}"));
    let trace = read(&output.path("ascend_pytorch_profiler_3.db"));
    let at = |us: i64| us * 1000;
    assert_eq!(
        rows(&trace, TrackKind::DeviceQueue),
        [
            (Category::Kernel, "aclnnAdd_AddAiCore_Add".to_owned(), at(20) + 120, 10_000),
            (Category::Memcpy, "MEMCPY_ASYNC".to_owned(), at(31), at(3)),
            (Category::Kernel, "hcom_allReduce".to_owned(), at(40), at(25)),
            (Category::DeviceSync, "Notify_Wait".to_owned(), at(40) + 500, at(20)),
        ]
    );
    let host: Vec<_> = rows(&trace, TrackKind::HostThread).into_iter().map(|row| (row.0, row.1)).collect();
    let expected =
        [(Category::UserRange, "ProfilerStep#7"), (Category::FrameworkOp, "aten::add"), (Category::HostApi, "launch")];
    assert_eq!(host, expected.map(|(category, name)| (category, name.to_owned())));
    let frames = rows(&trace, TrackKind::DeviceAnnotation);
    assert_eq!(frames.iter().map(|row| row.1.as_str()).collect::<Vec<_>>(), ["frame of AI_CORE"], "no kernel twice");

    let text = |id: Option<model::StringId>| trace.strings.get(id.unwrap());
    let call = kernel(&trace, "hcom_allReduce").collective.unwrap();
    assert_eq!((text(call.group), call.seq, call.bytes), ("group a", Some(3), Some(2000)));
    assert_eq!(kernel(&trace, "aclnnAdd_AddAiCore_Add").grid, Some([40, 1, 1]));
    let op = trace.details.iter().find_map(|d| if let Detail::Op(op) = d { Some(op) } else { None }).unwrap();
    assert_eq!((text(op.shapes), text(op.dtypes)), ("[[32,3],[],[8]]", r#"["float","Scalar","float"]"#));
    assert_eq!((trace.processes[0].pid, trace.processes[0].rank), (Some(3), Some(3)));
    assert_eq!(trace.manifest.value(model::Manifest::RANKS_AT_LEAST), Some("6"));
    assert_eq!(text(trace.devices[0].name), "Ascend910B");
    assert_eq!(trace.stat("ascend.retried_collective"), 1);
    assert_eq!(ledger(&trace, "TASK/"), (5, 5, 10_000 + 3_000 + 30_000 + 20_000 + 10_200));
    let lane = trace.lanes.iter().find(|lane| lane.category.contains(&Category::Memcpy)).unwrap();
    assert!(lane.link(0).is_some(), "the launch of the kernel");
}

#[test]
fn early_databases_have_text_for_times_and_other_names_for_columns() {
    let early = "CREATE TABLE API (start TEXT, end TEXT, level INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER);
INSERT INTO API VALUES ('123282223000010000','123282223000012250',20000,1181473,77,3);
CREATE TABLE ENUM_API_LEVEL (id INTEGER, name TEXT); INSERT INTO ENUM_API_LEVEL VALUES (20000,'acl');
CREATE TABLE TARGET_INFO_SESSION_TIME (startTimeNs INTEGER, endTimeNs INTEGER, baseTimeNs INTEGER);
INSERT INTO TARGET_INFO_SESSION_TIME VALUES (1701090223551432000,1701090226142280000,1577808000000000000);
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, correlationId INTEGER, block_dim INTEGER);
INSERT INTO COMPUTE_TASK_INFO VALUES (2,100,48);
CREATE TABLE TASK (start TEXT, end TEXT, deviceId INTEGER, connectionId INTEGER, correlationId INTEGER, globalPid INTEGER, taskType INTEGER, streamId INTEGER, modelId INTEGER);
INSERT INTO TASK VALUES ('1.23282223000020e+17','1.23282223000030e+17',2,77,100,0,1,16,4294967295);";
    let output = Output::new().database("report_0.db", &format!("{STRINGS}{early}"));
    let trace = read(&output.path("report_0.db"));
    let kernel_row = (Category::Kernel, "aclnnAdd_AddAiCore_Add".to_owned(), 10_000, 10_000);
    assert_eq!(rows(&trace, TrackKind::DeviceQueue), [kernel_row]);
    assert_eq!(kernel(&trace, "aclnnAdd_AddAiCore_Add").grid, Some([48, 1, 1]));
    assert_eq!(trace.start_unix_ns, Some(1_577_808_000_000_000_000 + 123_282_223_000_010_000));
    assert_eq!(trace.stat("trace.device_work_without_launch"), 0);
}

#[test]
fn cores_are_not_taken_from_a_column_that_changed_its_meaning() {
    let renamed = NOW
        .replace(
            "globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, taskType",
            "globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, blockNum INTEGER, taskType",
        )
        .replace("VALUES (2,100,40,5)", "VALUES (2,100,9,40,5)");
    let output = Output::new().database("msprof_1.db", &format!("{STRINGS}{renamed}"));
    assert_eq!(kernel(&read(&output.path("msprof_1.db")), "aclnnAdd_AddAiCore_Add").grid, Some([40, 1, 1]));
}

#[test]
fn a_database_of_the_simulator_says_that_it_is_simulated() {
    let label =
        "CREATE TABLE META_DATA (name TEXT, value TEXT); INSERT INTO META_DATA VALUES ('strato_simulated', 'true');";
    let output = Output::new().database("msprof_1.db", &format!("{STRINGS}{NOW}{label}"));
    assert!(read(&output.path("msprof_1.db")).simulated);
    let output = Output::new().database("msprof_1.db", &format!("{STRINGS}{NOW}"));
    assert!(!read(&output.path("msprof_1.db")).simulated);
}

#[test]
fn a_directory_with_both_forms_is_read_once() {
    let output = Output::new()
        .database("PROF_1/msprof_1.db", &format!("{STRINGS}{NOW}"))
        .file("PROF_1/mindstudio_profiler_output/msprof_1.json", "[]");
    let trace = read(&output.path("PROF_1"));
    assert_eq!(trace.manifest.value("ascend.form"), Some("database"));
    let row = trace.ledger.iter().find(|row| row.category == "msprof_1.json").unwrap();
    assert!(row.note.contains("the database holds the same"));
}

const SUMS: &str = "CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp REAL, elapse_time REAL, transit_time REAL, wait_time REAL);
INSERT INTO CommAnalyzerTime VALUES ('hcom_allReduce__586_3_1','group a',1736408883000040.0,0.025,0.005,0.02);";

#[test]
fn mindspore_writes_the_same_databases_under_names_of_its_own() {
    for (rank, name) in [(Some(3), "ascend_mindspore_profiler_3.db"), (None, "ascend_mindspore_profiler.db")] {
        let tables = if rank.is_some() { NOW.to_owned() } else { NOW.replace("(3,1)", "(-1,1)") };
        let folder = "host_1_20260101_ascend_ms/ASCEND_PROFILER_OUTPUT";
        let output = Output::new()
            .database(&format!("{folder}/{name}"), &format!("{STRINGS}{tables}"))
            .database(&format!("{folder}/communication_analyzer.db"), SUMS)
            .file(&format!("{folder}/minddata_pipeline_raw_3.csv"), "op_id,op_type\n")
            .file(&format!("{folder}/later.csv"), "a,b\n");
        let trace = read(&output.path("host_1_20260101_ascend_ms"));
        assert_eq!((trace.manifest.value("ascend.form"), trace.processes[0].rank), (Some("database"), rank));
        assert_eq!(ledger(&trace, "TASK/").0, 5);
        assert_eq!(ledger(&trace, "communication_analyzer.db"), (1, 1, 25_000));
        for (file, why) in [("minddata_", "sums over the pipeline"), ("later.csv", "unknown to this version")] {
            let row = trace.ledger.iter().find(|row| row.category == file).unwrap();
            assert!(row.note.contains(why), "{row:?}");
        }
    }
}

#[test]
fn what_msprof_analysed_lies_beside_what_it_exported() {
    let output = Output::new()
        .database("PROF_1/msprof_1.db", &format!("{STRINGS}{NOW}"))
        .database("PROF_1/analyze/communication_analyzer.db", SUMS);
    assert_eq!(ledger(&read(&output.path("PROF_1")), "communication_analyzer.db"), (1, 1, 25_000));
}

/// At level 0 the table of parts does not type them: what waits was taken for a transfer.
#[test]
fn parts_without_a_type_have_that_of_their_task() {
    let level0 = NOW.replace("VALUES (6,103,9,0,0,5,1)", "VALUES (6,103,15,4294967295,4294967295,4294967295,1)");
    let strings = format!("{STRINGS} INSERT INTO STRING_IDS VALUES (15,'N/A');");
    let output = Output::new().database("ascend_pytorch_profiler_3.db", &format!("{strings}{level0}"));
    let trace = read(&output.path("ascend_pytorch_profiler_3.db"));
    let inside = rows(&trace, TrackKind::DeviceQueue).into_iter().find(|row| row.1 == "Notify Wait").unwrap();
    assert_eq!((inside.0, inside.3), (Category::DeviceSync, 20_000));
}

/// Databases of 2023 have no row for a collective, only those of its tasks: the collectives were lost, and the window ended before them.
#[test]
fn collectives_without_rows_of_their_own_last_as_long_as_their_tasks() {
    let early = NOW.split("CREATE TABLE COMMUNICATION_OP").next().unwrap().to_owned()
        + "CREATE TABLE COMMUNICATION_TASK_INFO"
        + NOW.split("CREATE TABLE COMMUNICATION_TASK_INFO").nth(1).unwrap();
    let tables = "INSERT INTO COMMUNICATION_TASK_INFO VALUES (6,105,9,0,0,5,1),(6,106,9,0,0,5,2);
        INSERT INTO TASK VALUES (1736408883000062000,1736408883000070000,1,80,105,3,8,0,2,4,4294967295),
        (1736408883000080000,1736408883000081000,1,80,106,3,8,0,2,4,4294967295);";
    let output = Output::new().database("ascend_pytorch_profiler_3.db", &format!("{STRINGS}{early}{tables}"));
    let trace = read(&output.path("ascend_pytorch_profiler_3.db"));
    let rows = rows(&trace, TrackKind::DeviceQueue);
    let collectives: Vec<_> = rows.iter().filter(|row| row.1 == "hcom_allReduce").map(|row| (row.2, row.3)).collect();
    assert_eq!(collectives, [(40_500, 29_500), (80_000, 1_000)]);
}

/// Words that records point at were counted among the records: a database of 24 tasks seemed to hold 1 500.
#[test]
fn words_of_a_database_are_no_records() {
    let output = Output::new().database("ascend_pytorch_profiler_3.db", &format!("{STRINGS}{NOW}"));
    let trace = read(&output.path("ascend_pytorch_profiler_3.db"));
    let words = |row: &&model::LedgerRow| row.category == "STRING_IDS" || row.category.starts_with("ENUM_");
    assert_eq!(trace.ledger.iter().filter(words).count(), 0);
    assert_eq!(ledger(&trace, "CANN_API").0, 1);
}

/// Counters of single tasks say of a database what columns beside the kernels say of a table.
#[test]
fn counters_of_tasks_are_measurements_of_their_kernels() {
    let pmu = "CREATE TABLE TASK_PMU_INFO (globalTaskId INTEGER, name INTEGER, value NUMERIC);
        INSERT INTO STRING_IDS VALUES (50,'aiv_total_time'),(51,'aiv_scalar_ratio'),(52,'aiv_vec_ratio'),(53,'aiv_mte2_ratio'),(54,'aiv_icache_miss_rate');
        INSERT INTO TASK_PMU_INFO VALUES (100,50,9000.5),(100,51,0.99),(100,52,0.01),(100,53,0.25),(100,54,0),(101,51,0.5),(100,51,NULL),(9,51,1);";
    let output = Output::new().database("ascend_pytorch_profiler_3.db", &format!("{STRINGS}{NOW}{pmu}"));
    let trace = read(&output.path("ascend_pytorch_profiler_3.db"));
    let [kernel] = trace.summaries.as_slice() else { panic!("{:?}", trace.summaries) };
    assert_eq!((trace.strings.get(kernel.kernel), kernel.total), ("aclnnAdd_AddAiCore_Add", Some(10_000)));
    assert_eq!((kernel.grid, kernel.conditions), (Some([40, 1, 1]), model::Conditions::Counted));
    let percent = |metric| kernel.metric(metric).map(f64::round);
    assert_eq!(percent(model::Metric::Scalar).zip(percent(model::Metric::Memory)), Some((99.0, 25.0)));
    let counters: Vec<_> = kernel.counters.iter().map(|(name, value)| (trace.strings.get(*name), *value)).collect();
    let expected = [("aiv_total_time", 9_000.5), ("aiv_scalar_ratio", 0.99), ("aiv_vec_ratio", 0.01)];
    assert_eq!(counters[..3], expected);
    assert_eq!(counters.len(), 5);
    assert_eq!(ledger(&trace, "TASK_PMU_INFO"), (8, 7, 0));
}

/// A collective names no process: without calls of the host it went to one of its own, and a rank was two.
#[test]
fn without_the_calls_of_the_host_everything_is_of_the_process_whose_tasks_ran() {
    const STEPS: &str = "CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
INSERT INTO STEP_TIME VALUES (7,1736408883000000000,1736408883000100000);";
    let of = |more: &str| {
        let output = Output::new().database("ascend_pytorch_profiler_3.db", &format!("{STRINGS}{NOW}{STEPS}{more}"));
        read(&output.path("ascend_pytorch_profiler_3.db"))
    };
    let steps = |trace: &Trace| {
        let rows = rows(trace, TrackKind::DeviceAnnotation).into_iter();
        rows.filter(|row| row.1 == "ProfilerStep#7").map(|row| row.3).collect::<Vec<_>>()
    };
    let trace = of("DROP TABLE CANN_API; DROP TABLE PYTORCH_API;");
    let queues = trace.tracks.iter().filter(|track| track.key.kind == TrackKind::DeviceQueue);
    let mut processes: Vec<_> = queues.map(|track| track.key.process).collect();
    processes.dedup();
    assert_eq!((processes.len(), trace.devices.len()), (1, 1));
    let described = trace.processes.iter().filter(|process| process.rank == Some(3)).count();
    assert_eq!((described, trace.processes.len()), (1, 1));
    assert_eq!(steps(&trace), [100_000]);
    assert_eq!(ledger(&trace, "STEP_TIME"), (1, 1, 100_000));
    // Where the program's own range marks the step there is one mark of it.
    let marked = of("");
    assert_eq!((steps(&marked), ledger(&marked, "STEP_TIME").1), (Vec::new(), 0));
}
