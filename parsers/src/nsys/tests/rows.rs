//! What each table becomes.

use model::{CollectiveCall, CopyDetail, KernelDetail, OpDetail, Provenance, SyncKind};

use super::*;

#[test]
fn a_launch_and_its_kernel_are_linked_within_their_process() {
    let other = PID + (1 << 24);
    let trace = Export::new(&format!(
        "{} {RUNTIME} {KERNEL}
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 110, 0, {TID}, 7, 1, 0, NULL), (105, 115, 0, {other}, 7, 1, 0, NULL);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
            (120, 150, 0, 1, 7, 7, {PID}, 2, 3, 4, 5, 6, 32, 1, 1, NULL), (130, 170, 1, 2, 7, 7, {other}, 2, 3, 1, 1, 1, 1, 1, 1, 9);",
        strings(&["cudaLaunchKernel_v7000", "gemm<float>", "gemm"])
    ))
    .read();
    assert_eq!(
        rows(&trace, TrackKind::HostThread),
        expected(&[("cudaLaunchKernel", 100, 10, Category::HostApi), ("cudaLaunchKernel", 105, 10, Category::HostApi)])
    );
    assert_eq!(
        rows(&trace, TrackKind::DeviceQueue),
        expected(&[("gemm<float>", 120, 30, Category::Kernel), ("gemm<float>", 130, 40, Category::Kernel)])
    );
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes).filter(|(t, _)| t.key.kind == TrackKind::DeviceQueue) {
        let (host, _) = lane.link(0).and_then(|id| trace.locate(id)).unwrap();
        assert_eq!(trace.tracks[host.0 as usize].key.process, track.key.process);
    }
    let first = KernelDetail { grid: Some([4, 5, 6]), block: Some([32, 1, 1]), ..KernelDetail::default() };
    assert_eq!(detail(&trace, "gemm<float>"), Some(&Detail::Kernel(first)));
    assert!(trace.details.iter().any(|d| matches!(d, Detail::Kernel(k) if k.graph_node == Some(9))));
    assert_eq!(trace.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [Some(111), Some(112)]);
    assert_eq!(trace.devices.iter().map(|d| d.ordinal).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(ledger(&trace, "CUPTI_ACTIVITY_KIND_KERNEL"), (2, 2));
}

#[test]
fn calls_that_failed_say_so_and_unfinished_queries_did_not_fail() {
    let trace = Export::new(&format!(
        "{} {RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
            (1, 2, 0, {TID}, 1, 1, 2, NULL), (3, 4, 0, {TID}, 2, 2, 600, NULL);",
        strings(&["cudaMalloc_v3020", "cudaEventQuery_v3020"])
    ))
    .read();
    assert_eq!(detail(&trace, "cudaMalloc"), Some(&Detail::Failed(2)));
    assert_eq!(detail(&trace, "cudaEventQuery"), None);
}

#[test]
fn a_full_queue_and_lazy_loading_are_no_work_of_the_profiler() {
    let overhead = "CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (start, end, eventClass, globalTid, correlationId, nameId, overheadType);";
    let trace = Export::new(&format!(
        "{} {overhead} INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (10, 12, 103, {TID}, 1, 1, 8),
            (20, 23, 103, {TID}, 1, 1, 7), (30, 34, 103, {TID}, 1, 1, 4), (40, 45, 103, {TID}, 1, 1, 99);",
        strings(&["cudaLaunchKernel"])
    ))
    .read();
    assert_eq!(
        rows(&trace, TrackKind::HostThread),
        expected(&[
            ("Command buffer full (CUDA)", 10, 2, Category::HostOther),
            ("Lazy function loading (CUDA)", 20, 3, Category::HostOther),
            ("Instrumentation (Profiler)", 30, 4, Category::Overhead),
            ("cudaLaunchKernel", 40, 5, Category::HostOther),
        ])
    );
}

#[test]
fn copies_and_fills_have_a_direction_and_kinds_of_memory() {
    let trace = Export::new(&format!(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes,
            copyKind, srcKind, dstKind, graphNodeId);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 4, 0, 1, 7, 1, {PID}, 64, 1, 1, 2, NULL);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, contextId, streamId, correlationId, globalPid, value,
            bytes, graphNodeId, memKind);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (5, 6, 0, 1, 7, 2, {PID}, 0, 16, 3, 2);
         CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
         INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host to Device, as labelled here');"
    ))
    .read();
    let id = |text: &str| trace.strings.find(text);
    let copy =
        CopyDetail { direction: id("HtoD"), src: id("pinned"), dst: id("device"), bytes: Some(64), graph_node: None };
    assert!(copy.direction.is_some() && copy.src.is_some() && copy.dst.is_some());
    assert_eq!(detail(&trace, "[CUDA memcpy Host to Device, as labelled here]"), Some(&Detail::Copy(copy)));
    let fill = CopyDetail { dst: id("device"), bytes: Some(16), graph_node: Some(3), ..CopyDetail::default() };
    assert_eq!(detail(&trace, "[CUDA memset]"), Some(&Detail::Copy(fill)));
}

#[test]
fn a_whole_graph_is_one_slice_and_may_lack_its_end_and_its_device() {
    let trace = Export::new(&format!(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, contextId, greenContextId, streamId,
            correlationId, globalPid, graphId, graphExecId);
         INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 30, 0, 1, NULL, 7, 5, {PID}, 3, 4),
            (40, 0, 2147483647, 2147483647, NULL, 7, 6, {PID}, 3, 4);"
    ))
    .read();
    assert_eq!(
        rows(&trace, TrackKind::DeviceQueue),
        expected(&[("CUDA graph 3", 10, 20, Category::GraphExec), ("CUDA graph 3", 40, 0, Category::GraphExec)])
    );
    assert_eq!(trace.stat("nsys.graph_without_end"), 1);
    assert_eq!(trace.tracks.iter().map(|t| t.key.device).collect::<Vec<_>>(), [Some(0), None]);
    let graph = Detail::Kernel(KernelDetail { graph: Some(3), ..KernelDetail::default() });
    assert_eq!(detail(&trace, "CUDA graph 3"), Some(&graph));
}

#[test]
fn waits_lie_on_the_device_of_their_context_and_events_need_a_time() {
    let trace = Export::new(&format!(
        "{} {KERNEL} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 1, 2, 7, 7, {PID}, 1, 1, 1, 1, 1, 1, 1, 1, NULL);
         CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, contextId, streamId, correlationId, globalPid,
            deprecatedSyncType, syncType, eventId);
         INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (3, 9, 0, 2, 7, 8, {PID}, NULL, 3, 0),
            (4, 5, 0, 2, 4294967295, 9, {PID}, NULL, 4, 0);
         CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (timestamp, deviceId, contextId, streamId, correlationId, globalPid, eventId);
         INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (6, 1, 2, 7, 1, {PID}, 1), (0, 1, 2, 7, 1, {PID}, 1);",
        strings(&["k"])
    ))
    .read();
    let devices = trace.tracks.iter().filter(|t| t.key.kind == TrackKind::DeviceSync).map(|t| t.key.device);
    assert_eq!(devices.collect::<Vec<_>>(), [Some(1), Some(1)]);
    assert_eq!(detail(&trace, "stream synchronize"), Some(&Detail::Sync(SyncKind::Stream)));
    assert_eq!(detail(&trace, "context synchronize"), Some(&Detail::Sync(SyncKind::Context)));
    assert!(rows(&trace, TrackKind::DeviceSync).contains(&("event record".to_owned(), 6, 0, Category::DeviceEvent)));
    assert_eq!(ledger(&trace, "CUPTI_ACTIVITY_KIND_CUDA_EVENT"), (1, 2));
    assert_eq!(trace.stat("nsys.event_record_without_time"), 1);
}

#[test]
fn ranges_of_every_kind() {
    let trace = Export::new(&format!(
        "{} {NVTX} INSERT INTO NVTX_EVENTS VALUES
            (-5, NULL, 75, {TID}, NULL, 'NCCL', NULL, 1, NULL),
            (10, 50, 59, {TID}, NULL, 'step', NULL, 0, NULL),
            (12, 20, 59, {TID}, NULL, 'aten::mm, op_id = 3, sizes = [[2, 4], [4, 8]]', NULL, 0, NULL),
            (22, 30, 59, {TID}, NULL, NULL, 1, 1, '{{\"Message size [bytes]\": 4096, \"NCCL communicator ID\": 77, \"No. of ranks\": 8}}'),
            (32, 33, 59, {TID}, NULL, NULL, 1, 0, NULL),
            (34, 36, 59, {TID}, NULL, 'ncclGroupEnd', NULL, 1, NULL),
            (15, 80, 60, {TID}, {TID} + 1, 'request', NULL, 0, NULL),
            (40, NULL, 59, {TID}, NULL, 'never popped', NULL, 0, NULL),
            (41, NULL, 34, {TID}, NULL, 'mark', NULL, 0, NULL);
         CREATE TABLE ANALYSIS_DETAILS (globalVid, duration INTEGER, startTime, stopTime);
         INSERT INTO ANALYSIS_DETAILS VALUES (0, 100, 900, 1000);",
        strings(&["ncclAllReduce"])
    ))
    .read();
    assert_eq!(
        rows(&trace, TrackKind::HostThread),
        expected(&[
            ("step", 10, 40, Category::UserRange),
            ("aten::mm", 12, 8, Category::FrameworkOp),
            ("ncclAllReduce", 22, 8, Category::CollectiveCall),
            ("ncclAllReduce", 32, 1, Category::UserRange),
            ("ncclGroupEnd", 34, 2, Category::UserRange),
            ("never popped", 40, 60, Category::UserRange),
        ])
    );
    assert_eq!(rows(&trace, TrackKind::Global), expected(&[("request", 15, 65, Category::UserRange)]));
    let text = |text: &str| Some(trace.strings.find(text).unwrap());
    let call = CollectiveCall {
        op: text("allreduce"),
        group: text("77"),
        group_size: Some(8),
        bytes: Some(4096),
        ..CollectiveCall::default()
    };
    assert_eq!(detail(&trace, "ncclAllReduce"), Some(&Detail::Collective(Box::new(call))));
    let shapes = Detail::Op(OpDetail { shapes: text("[[2, 4], [4, 8]]"), dtypes: None });
    assert_eq!(detail(&trace, "aten::mm"), Some(&shapes));
    assert_eq!(trace.manifest.value("nsys.emit_nvtx"), Some("1"));
    assert_eq!((trace.stat("nsys.nvtx_marks"), trace.stat("nsys.open_ranges")), (1, 1));
    assert_eq!(ledger(&trace, "NVTX_EVENTS"), (8, 9));
    assert_eq!(trace.window, Some(model::Span::new(0, 100)));
}

#[test]
fn host_tables_become_their_categories() {
    let calls = ["OSRT_API", "CUDNN_EVENTS", "CUBLAS_EVENTS", "PROFILER_OVERHEAD"].map(|table| {
        format!(
            "CREATE TABLE {table} (start, end, eventClass, globalTid, nameId, returnValue);
                 INSERT INTO {table} VALUES (1, 3, 0, {TID}, 1, 0);"
        )
    });
    let trace = Export::new(&format!(
        "{} {} CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (start, end, eventClass, globalTid, correlationId, nameId, overheadType);
         INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (10, 12, 103, {TID}, 1, 1, 3);
         CREATE TABLE ENUM_CUPTI_OVERHEAD_TYPE (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
         INSERT INTO ENUM_CUPTI_OVERHEAD_TYPE VALUES (3, 'OVERHEAD_CUPTI_BUFFER_FLUSH', 'Buffer flush (Profiler)');
         CREATE TABLE SCHED_EVENTS (start, cpu, isSchedIn, globalTid);
         INSERT INTO SCHED_EVENTS VALUES (20, 0, 1, {TID}), (29, 1, 1, {TID}), (22, 0, 0, {TID}), (35, 1, 0, {TID});
         CREATE TABLE COMPOSITE_EVENTS (id INTEGER PRIMARY KEY, start, cpu);
         INSERT INTO COMPOSITE_EVENTS VALUES (1, 5, 0), (2, 6, 0);
         CREATE TABLE ThreadNames (nameId, priority, globalTid);
         INSERT INTO ThreadNames VALUES (2, 10, {TID}), (3, 20, {TID}), (1, 15, {TID}), (1, 99, 5);",
        strings(&["call", "low", "worker"]),
        calls.join("")
    ))
    .read();
    let categories: Vec<Category> = rows(&trace, TrackKind::HostThread).into_iter().map(|row| row.3).collect();
    for category in [Category::OsApi, Category::LibraryApi, Category::Overhead] {
        assert!(categories.contains(&category), "{category:?}");
    }
    let slices = rows(&trace, TrackKind::HostThread);
    assert_eq!(slices.len(), 6);
    assert!(slices.contains(&("off-cpu".to_owned(), 22, 7, Category::OsApi)));
    assert!(slices.contains(&("Buffer flush (Profiler)".to_owned(), 10, 2, Category::Overhead)));
    assert_eq!(trace.stat("nsys.off_cpu_without_return"), 1);
    assert_eq!(ledger(&trace, "COMPOSITE_EVENTS"), (0, 2));
    assert_eq!(trace.tracks.len(), 1);
    assert_eq!(trace.tracks[0].name.map(|name| trace.strings.get(name)), Some("worker"));
}

#[test]
fn samples_become_counters() {
    let trace = Export::new(&format!(
        "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId, sourceId, typeName TEXT, metricId, metricName TEXT);
         INSERT INTO TARGET_INFO_GPU_METRICS VALUES (259, 0, 'GPU 3', 5, 'SMs Active [Throughput %]');
         CREATE TABLE GPU_METRICS (timestamp, typeId, metricId, value);
         INSERT INTO GPU_METRICS VALUES (10, 259, 5, 40), (20, 259, 5, 41.5), (30, 259, 6, 1);
         CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, address, bytes, memKind, memoryOperationType);
         INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, {PID}, 0, 1, 0, 100, 2, 0), (2, {PID}, 0, 1, 0, 50, 2, 0), (3, {PID}, 0, 1, 0, 100, 2, 1);"
    ))
    .read();
    let named = |name: &str| trace.counters.iter().find(|c| trace.strings.get(c.name) == name).unwrap();
    let active = named("SMs Active [Throughput %]");
    assert_eq!((active.device, active.unit.as_str(), &active.value), (Some(3), "%", &vec![40.0, 41.5]));
    let memory = named("allocated device memory");
    assert_eq!((memory.unit.as_str(), &memory.value), ("B", &vec![100.0, 150.0, 50.0]));
    assert_eq!(trace.stat("nsys.metric_without_name"), 1);
}

#[test]
fn the_export_says_what_it_ran_on() {
    let trace = Export::new(&format!(
        "{} {KERNEL} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 1, 7, 7, {PID}, 1, 1, 1, 1, 1, 1, 1, 1, NULL);
         CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
         INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.2.3.38'), ('EXPORT_SCHEMA_VERSION', '3.11.1');
         CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
         INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node');
         CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid, devStateName TEXT, name TEXT, nameEnum, value TEXT);
         INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'NvDriverVersion', 0, '550.54'), (0, '', 'CudaDriverVersion', 0, '12040'),
            (0, '', 'CpuDescription', 0, 'a CPU'), (0, '', 'Hostname', 0, 'node7'),
            (0, '', 'DeviceEnvironment', 0, 'NCCL_ALGO=Ring;AWS_SECRET_ACCESS_KEY=hidden-thing;CUDA_TOKEN=hidden-thing');
         CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);
         INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '');
         CREATE TABLE TARGET_INFO_GPU (id, name TEXT, totalMemory, smCount, cuDevice);
         INSERT INTO TARGET_INFO_GPU VALUES (0, 'GPU A', 10, 20, 0), (3, 'GPU B', 11, 21, 3);
         CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid);
         INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 111);
         CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId, hwId, vmId, processId, contextId, priority, flag);
         INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 0, 1, 111, 1, -5, 1);
         CREATE TABLE PROCESSES (globalPid, pid, name TEXT);
         INSERT INTO PROCESSES VALUES ({PID}, 111, 'python3'), (5, 0, 'ptxas');
         CREATE TABLE DIAGNOSTIC_EVENT (timestamp, severity, text TEXT);
         INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 1, 'fine'), (0, 2, 'events dropped'), (0, 3, 'failed');",
        strings(&["k"])
    ))
    .read();
    for (key, value) in [
        ("software.profiler", "Nsight Systems 2024.2.3.38"),
        ("software.driver", "550.54"),
        ("software.toolkit", "CUDA 12.4 (driver)"),
        ("software.env", "NCCL_ALGO=Ring"),
        ("hardware.cpu", "a CPU"),
        ("hardware.host", "node7"),
        ("hardware.device", "GPU B"),
        ("hardware.count", "1"),
        ("hardware.vendor", "nvidia"),
        ("hardware.memory_bytes", "11"),
        ("measurement.traced", "nsys"),
        ("nsys.graph_trace", "node"),
        ("nsys.schema", "3.11.1"),
    ] {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
        assert_eq!(trace.manifest.get(key).map(|e| e.provenance), Some(Provenance::Observed), "{key}");
    }
    assert_eq!(trace.start_unix_ns, Some(1_700_000_000_000_000_000));
    assert_eq!((trace.devices[0].cores, trace.devices[0].memory_bytes), (Some(21), Some(11)));
    assert_eq!(trace.tracks[0].name.map(|name| trace.strings.get(name)), Some("stream 7 (default, priority -5)"));
    assert_eq!(trace.processes.len(), 1);
    assert_eq!(trace.processes[0].name.map(|name| trace.strings.get(name)), Some("python3"));
    assert_eq!((trace.stat("nsys.profiler_warning"), trace.stat("nsys.profiler_error")), (1, 1));
    assert_eq!(trace.stat("nsys.redacted_environment"), 2);
    assert!(!trace.simulated);
}

/// An error about OpenGL made the capture of a CUDA program damaged, and the newlines of its text were shown as escapes.
#[test]
fn an_error_about_graphics_takes_nothing_from_a_capture_of_cuda() {
    let trace = Export::new(&format!(
        "{RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, {TID}, 1, 1, 0, NULL);
         CREATE TABLE DIAGNOSTIC_EVENT (timestamp, severity, text TEXT);
         INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 3, 'OpenGL driver vendor is not supported.' || char(10) || char(10) || 'Events are missing.');",
    ))
    .read();
    assert_eq!((trace.stat("nsys.profiler_warning"), trace.stat("nsys.profiler_error")), (1, 0));
    let example =
        trace.stats.iter().find(|stat| stat.name == "nsys.profiler_warning").and_then(|stat| stat.example.clone());
    assert_eq!(example.as_deref(), Some("OpenGL driver vendor is not supported. Events are missing."));
}

#[test]
fn secrets_of_the_environment_and_the_output_appear_nowhere() {
    let secret = "hunter2-hidden-thing";
    let trace = Export::new(&format!(
        "{} {RUNTIME} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, {TID}, 1, 1, 0, NULL);
         CREATE TABLE ProcessStreams (globalPid, filenameId, contentId); INSERT INTO ProcessStreams VALUES ({PID}, 1, 2);
         CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
         INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'NCCL_DEBUG=\"INFO\"'),
            ('PROCESS_0:ENVIRONMENT_VARIABLE', 'VLLM_API_KEY=\"{secret}\"'), ('PROCESS_0:ENVIRONMENT_VARIABLE', 'MINE=\"{secret}\"'),
            ('PROCESS_0:ARGUMENT_1', '--api-key={secret}');
         CREATE TABLE TARGET_INFO_SYSTEM_ENV (devStateName TEXT, name TEXT, value TEXT);
         INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('', 'DeviceEnvironment', 'MINE={secret};VLLM_API_KEY={secret}');",
        strings(&["cudaFree", secret])
    ))
    .read();
    assert_eq!(trace.manifest.value("software.env"), Some("NCCL_DEBUG=INFO"));
    assert_eq!(trace.stat("nsys.redacted_environment"), 2);
    assert!(trace.strings.iter().all(|(_, text)| !text.contains(secret)));
    assert!(!format!("{:?} {:?} {:?}", trace.manifest, trace.stats, trace.ledger).contains(secret));
}

/// What the driver moves of managed memory was a copy of the program's, in a stream of the program's.
#[test]
fn migrations_of_managed_memory_are_no_copies_and_page_faults_are_counted() {
    let trace = Export::new(&format!(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes,
            copyKind, srcKind, dstKind, graphNodeId);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 4, 0, 1, 7, 1, {PID}, 64, 1, 0, 2, NULL),
            (5, 9, 0, 1, 7, 0, {PID}, 4096, 11, 4, 4, NULL);
         CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start, globalPid, deviceId, address, numberOfPageFaults);
         INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (5, {PID}, 0, 1, 12);
         CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start, globalPid, address, CpuInstruction);
         INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS VALUES (5, {PID}, 1, 1);"
    ))
    .read();
    let work = rows(&trace, TrackKind::DeviceQueue);
    assert_eq!(work, expected(&[("[CUDA memcpy Host-to-Device]", 1, 3, Category::Memcpy)]));
    let moved = "[CUDA memcpy Unified Host-to-Device]";
    assert_eq!(rows(&trace, TrackKind::DeviceSync), expected(&[(moved, 5, 4, Category::DeviceOther)]));
    let Some(Detail::Copy(copy)) = detail(&trace, moved) else { panic!() };
    assert_eq!((copy.bytes, trace.stat(model::ImportStat::PAGE_FAULTS)), (Some(4096), 13));
}

/// Some tools that trim databases write all names in lower case; every table was missing then.
#[test]
fn names_of_tables_and_columns_are_compared_without_case() {
    let sql = format!(
        "{}{KERNEL} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 0, 1, 7, 1, {PID}, 1, 1, 1,1,1,1,1,1, NULL);",
        strings(&["gemm"])
    );
    for sql in [
        sql.replace("CUPTI_ACTIVITY_KIND_KERNEL", "cupti_activity_kind_kernel").replace("StringIds", "stringids"),
        sql.to_uppercase(),
    ] {
        let trace = Export::new(&sql).read();
        let kernels = rows(&trace, TrackKind::DeviceQueue);
        assert_eq!(kernels.len(), 1, "{sql}");
        assert!(trace.ledger.iter().all(|row| !row.note.starts_with("not read")), "{:?}", trace.ledger);
    }
}
