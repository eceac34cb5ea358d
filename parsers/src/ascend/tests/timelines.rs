//! The text form.

use super::*;

const NAMES: &str = r#"{"name":"process_name","pid":3072,"tid":0,"args":{"name":"CANN"},"ph":"M"},
{"name":"process_name","pid":3105,"tid":0,"args":{"name":"Ascend Hardware"},"ph":"M"},
{"name":"process_labels","pid":3105,"tid":0,"args":{"labels":"NPU"},"ph":"M"},
{"name":"process_name","pid":3137,"tid":0,"args":{"name":"HCCL"},"ph":"M"},
{"name":"process_name","pid":3169,"tid":0,"args":{"name":"Overlap Analysis"},"ph":"M"},
{"name":"process_name","pid":3,"tid":0,"args":{"name":"Python"},"ph":"M"},
{"name":"thread_name","pid":3105,"tid":2,"args":{"name":"Stream 2"},"ph":"M"},
{"name":"thread_name","pid":3137,"tid":0,"args":{"name":"Group 0 Communication"},"ph":"M"},
{"name":"thread_name","pid":3137,"tid":1,"args":{"name":"Plane 0"},"ph":"M"}"#;

const EVENTS: &str = r#"{"name":"ProfilerStep#7","pid":3,"tid":3,"ts":"1736408883000000.000","dur":100.0,"cat":"cpu_op","ph":"X"},
{"name":"aten::add","pid":3,"tid":3,"ts":"1736408883000001.000","dur":5.5,"cat":"cpu_op","args":{"Input Dims":"32,3;\r\n;\r\n8","Input type":"float;\r\nScalar;\r\nfloat"},"ph":"X"},
{"name":"Enqueue","pid":3,"tid":3,"ts":"1736408883000002.000","dur":1,"cat":"enqueue","args":{"correlation_id":9},"ph":"X"},
{"name":"Node@launch","pid":3072,"tid":4,"ts":"1736408883000010.000","dur":2.25,"args":{"level":"node","connection_id":77},"ph":"X"},
{"name":"aclnnAdd_AddAiCore_Add","pid":3105,"tid":2,"ts":"1736408883000020.120","dur":10.0004,"args":{"Model Id":4294967295,"Task Type":"AI_VECTOR_CORE","connection_id":77},"ph":"X"},
{"name":"MEMCPY_ASYNC","pid":3105,"tid":2,"ts":"1736408883000031.000","dur":3,"args":{"Task Type":"PCIE_DMA_SQE","connection_id":78,"data size(Byte)":64,"memcpy direction":"host to device"},"ph":"X"},
{"name":"EVENT_WAIT","pid":3105,"tid":2,"ts":"1736408883000035.000","dur":30,"args":{"Task Type":"EVENT_WAIT_SQE","connection_id":79},"ph":"X"},
{"name":"PROFILING_ENABLE","pid":3105,"tid":2,"ts":"1736408883000066.000","dur":0.02,"args":{"Task Type":"PLACE_HOLDER_SQE"},"ph":"X"},
{"name":"hcom_allReduce__586_3_1","pid":3137,"tid":0,"ts":"1736408883000040.000","dur":25,"args":{"connection_id":80,"data_type":"FP16","count":1000},"ph":"X"},
{"name":"Notify_Wait","pid":3137,"tid":1,"ts":"1736408883000040.500","dur":20,"args":{"notify_id":"18446744073709551615","src rank":0,"dst rank":5,"task type":"Notify_Wait"},"ph":"X"},
{"name":"Notify Wait","pid":3105,"tid":2,"ts":"1736408883000040.500","dur":20,"args":{"Task Type":"Notify Wait","connection_id":80},"ph":"X"},
{"name":"Memcpy","pid":3137,"tid":1,"ts":"1736408883000061.000","dur":4,"args":{"notify_id":"0","src rank":0,"dst rank":4294967295},"ph":"X"},
{"name":"MEMCPY_ASYNC","pid":3105,"tid":2,"ts":"1736408883000061.000","dur":4,"args":{"Task Type":"SDMA_SQE","connection_id":80},"ph":"X"},
{"name":"Computing","pid":3169,"tid":0,"ts":"1736408883000020.120","dur":10,"ph":"X"},
{"name":"torch_to_npu","id":1736408883000020120,"pid":3,"tid":3,"ts":"1736408883000001.000","cat":"async_npu","ph":"s"}"#;

/// The calls that made the tasks were left out, and the arrows that began in them were kept: a task belongs to the call that
/// encloses the start of its arrow, and to none where there is no such call.
#[test]
fn tasks_without_their_own_call_follow_their_arrow() {
    let call = |name: &str, ts: u32, dur: u32, id: u32| {
        format!(
            r#"{{"name":"{name}","pid":3072,"tid":4,"ts":"1736408883000{ts}.000","dur":{dur},"args":{{"level":"acl","connection_id":{id}}},"ph":"X"}}"#
        )
    };
    let task = |ts: u32, id: u32| {
        format!(
            r#"{{"name":"aclnnMm_MatMul","pid":3105,"tid":2,"ts":"1736408883000{ts}.000","dur":5,"args":{{"Task Type":"Other","connection_id":{id}}},"ph":"X"}}"#
        )
    };
    let arrow = |id: &str, from: u32, to: u32| {
        format!(
            r#"{{"ph":"s","cat":"HostToDevice","id":"{id}","pid":3072,"tid":4,"ts":"1736408883000{from}.000"}},{{"ph":"f","cat":"HostToDevice","id":"{id}","pid":3105,"tid":2,"ts":"1736408883000{to}.000"}}"#
        )
    };
    let calls = [call("AscendCL@aclnnMm", 100, 50, 0), call("AscendCL@aclrtMalloc", 110, 10, 1)].join(",");
    let tasks = [task(200, 8), task(210, 9), task(220, 10)].join(",");
    let arrows = [arrow("38654705663", 130, 200), arrow("42949672959", 115, 210), arrow("47244640255", 160, 220)];
    let trace = timeline(&[NAMES, &calls, &tasks, &arrows.join(",")]);
    let (at, queue) =
        (0..).zip(&trace.lanes).find(|(at, _)| trace.tracks[*at].key.kind == TrackKind::DeviceQueue).unwrap();
    let name = |i: usize| {
        let (track, row) = trace.locate(trace.lanes[at].link(i)?)?;
        Some(trace.strings.get(trace.lanes[track.0 as usize].name[row]))
    };
    let found: Vec<_> = (0..queue.len()).map(name).collect();
    assert_eq!(found, [Some("aclnnMm"), Some("aclrtMalloc"), None]);
    assert_eq!(ledger(&trace, "flow HostToDevice"), (6, 6, 0));
}

fn timeline(parts: &[&str]) -> Trace {
    let output = Output::new().file("trace_view.json", &format!("[{}]", parts.join(",\n")));
    read(&output.path("trace_view.json"))
}

#[test]
fn layers_become_host_device_and_collective_rows_wherever_their_names_stand() {
    let trace = timeline(&[NAMES, EVENTS]);
    let queue = rows(&trace, TrackKind::DeviceQueue);
    let at = |us: i64| us * 1000;
    assert_eq!(
        queue,
        [
            (Category::Kernel, "aclnnAdd_AddAiCore_Add".to_owned(), at(20) + 120, 10_000),
            (Category::Memcpy, "MEMCPY_ASYNC".to_owned(), at(31), at(3)),
            (Category::Kernel, "hcom_allReduce".to_owned(), at(40), at(25)),
            (Category::DeviceSync, "Notify_Wait".to_owned(), at(40) + 500, at(20)),
            (Category::DeviceOther, "Memcpy".to_owned(), at(61), at(4)),
        ]
    );
    let beside = rows(&trace, TrackKind::DeviceAnnotation);
    assert_eq!(beside.iter().map(|row| row.1.as_str()).collect::<Vec<_>>(), ["MEMCPY_ASYNC", "PROFILING_ENABLE"]);
    let waits = rows(&trace, TrackKind::DeviceSync);
    assert_eq!(waits.iter().map(|row| row.1.as_str()).collect::<Vec<_>>(), ["EVENT_WAIT", "Notify Wait"]);
    let host: Vec<_> = rows(&trace, TrackKind::HostThread).into_iter().map(|row| (row.0, row.1)).collect();
    let expected = [
        (Category::UserRange, "ProfilerStep#7"),
        (Category::FrameworkOp, "aten::add"),
        (Category::HostOther, "Enqueue"),
        (Category::HostApi, "launch"),
    ];
    assert_eq!(host, expected.map(|(category, name)| (category, name.to_owned())));
    let backwards = timeline(&[EVENTS, NAMES]);
    assert_eq!(rows(&backwards, TrackKind::DeviceQueue), queue);
    assert_eq!(trace.start_unix_ns, Some(1_736_408_883_000_000_000));
}

#[test]
fn launches_shapes_and_collectives_are_described() {
    let trace = timeline(&[NAMES, EVENTS]);
    let lane = trace.lanes.iter().find(|lane| lane.category.contains(&Category::Memcpy)).unwrap();
    let (track, row) = trace.locate(lane.link(0).unwrap()).unwrap();
    assert_eq!(trace.strings.get(trace.lanes[track.0 as usize].name[row]), "launch");
    let text = |id: Option<model::StringId>| trace.strings.get(id.unwrap());
    let call = kernel(&trace, "hcom_allReduce").collective.unwrap();
    assert_eq!((text(call.group), call.seq, call.bytes), ("586", Some(3), Some(2000)));
    let op = trace.details.iter().find_map(|d| if let Detail::Op(op) = d { Some(op) } else { None }).unwrap();
    assert_eq!((text(op.shapes), text(op.dtypes)), ("[[32,3],[],[8]]", r#"["float","Scalar","float"]"#));
    let copy = trace.details.iter().find_map(|d| if let Detail::Copy(copy) = d { Some(copy) } else { None }).unwrap();
    assert_eq!((text(copy.direction), copy.bytes), ("HtoD", Some(64)));
    assert_eq!(trace.manifest.value(model::Manifest::RANKS_AT_LEAST), Some("6"), "the largest rank at either end is 5");
    assert_eq!(trace.devices[0].ordinal, 1, "3105 = 3 << 10 | 1 << 5 | 1");
    assert_eq!(trace.processes[0].pid, Some(3));
}

#[test]
fn a_timeline_of_the_simulator_says_that_it_is_simulated_as_do_the_facts_beside_it() {
    let label = r#"{"name":"strato_simulated","pid":3,"tid":0,"args":{"name":"true"},"ph":"M"}"#;
    assert!(timeline(&[NAMES, EVENTS, label]).simulated);
    let output = |facts: &str| {
        let output = Output::new()
            .file("x_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", &format!("[{NAMES},{EVENTS}]"))
            .file("x_ascend_pt/profiler_info_3.json", facts);
        read(&output.path("x_ascend_pt")).simulated
    };
    assert!(output(r#"{"rank_id": 3, "strato_simulated": true}"#));
    assert!(!output(r#"{"rank_id": 3}"#));
}

#[test]
fn every_event_is_in_the_ledger() {
    let trace = timeline(&[NAMES, EVENTS]);
    assert_eq!(ledger(&trace, "Ascend Hardware"), (6, 6, 10_000 + 3_000 + 30_000 + 20 + 20_000 + 4_000));
    assert_eq!(ledger(&trace, "HCCL"), (3, 3, 49_000));
    assert_eq!(ledger(&trace, "Overlap Analysis"), (1, 0, 0));
    assert_eq!(ledger(&trace, ""), (24, 13, trace.ledger.iter().map(|row| row.time_ns).sum()));
}

#[test]
fn a_directory_is_one_rank_with_the_cores_of_its_kernels() {
    let kernels =
        "Step Id,Name,Start Time(us),Duration(us),Block Dim\n7,aclnnAdd_AddAiCore_Add,1736408883000020.120\t,10.0,40\n";
    let info =
        r#"{"rank_id": 3, "config": {"experimental_config": {"_profiler_level": "Level1"}}, "cann_version": "8.3"}"#;
    let output = Output::new()
        .file("x_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", &format!("[{NAMES},{EVENTS}]"))
        .file("x_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv", kernels)
        .file("x_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv", "Step,Computing,Free\n7,10.0005,2.5\n")
        .file("x_ascend_pt/profiler_info_3.json", info)
        .file("x_ascend_pt/profiler_metadata.json", r#"{"distributed_args": {"world_size": 16, "tensor_model_parallel_size": 8}, "ENV_VARIABLES": {"HCCL_RDMA_TC": "1", "MY_TOKEN": "secret"}}"#);
    let trace = read(&output.path("x_ascend_pt"));
    assert_eq!(kernel(&trace, "aclnnAdd_AddAiCore_Add").grid, Some([40, 1, 1]));
    assert_eq!(trace.processes[0].rank, Some(3));
    let said = |key| trace.manifest.value(key);
    assert_eq!((said("parallel.world_size"), said("parallel.tp")), (Some("16"), Some("8")));
    assert_eq!((said("software.toolkit"), said("ascend.profiler_level")), (Some("CANN 8.3"), Some("Level1")));
    assert_eq!(said("software.env"), Some("HCCL_RDMA_TC=1"));
    assert_eq!(
        ledger(&trace, "step_trace_time/Computing"),
        (1, 0, 10_001),
        "told for comparison, half a ns rounded up"
    );
    let sums: Vec<_> = trace.stated.iter().map(|sum| (sum.what, sum.time)).collect();
    assert_eq!(sums, [(model::Stated::Computing, 10_001), (model::Stated::Free, 2_500)]);
}

#[test]
fn the_layout_of_2023_has_its_own_clock_and_one_file_for_each_iteration() {
    let iteration = |n: u32, start: &str| {
        format!(
            r#"[{{"name":"process_name","pid":3,"tid":0,"args":{{"name":"Ascend Hardware"}},"ph":"M"}},
{{"name":"thread_name","pid":3,"tid":9,"args":{{"name":"Step Trace(Model ID:2)"}},"ph":"M"}},
{{"name":"Iteration {n}","pid":3,"tid":9,"ts":{start},"dur":50.0,"args":{{}},"cat":"Iteration Time","ph":"X"}},
{{"name":"Default/Cast-op{n}","pid":3,"tid":2,"ts":{start},"dur":23.1,"args":{{"Task Type":"AI_CORE","Stream Id":2}},"ph":"X"}}]"#
        )
    };
    let output = Output::new()
        .file("p/device_0/timeline/msprof_0_2_10.json", &iteration(10, "56635865000.8"))
        .file("p/device_0/timeline/msprof_0_2_9.json", &iteration(9, "56635864000.8"))
        .file("p/device_0/timeline/hccl_0_2_9.json", "[]")
        .file(
            "p/device_0/start_info.0",
            r#"{"collectionTimeBegin":"1692340024324979","clockMonotonicRaw":"56579931060630"}"#,
        )
        .file("p/device_0/info.json.0", r#"{"hostname":"host","pid":"77","rank_id":0}"#);
    let trace = read(&output.path("p"));
    let kernels: Vec<_> = rows(&trace, TrackKind::DeviceQueue).into_iter().map(|r| (r.1, r.2, r.3)).collect();
    assert_eq!(
        kernels,
        [("Default/Cast-op9".to_owned(), 0, 23_100), ("Default/Cast-op10".to_owned(), 1_000_000, 23_100)]
    );
    // D17: only a graph that the device runs as a whole has a trace of its iterations.
    assert_eq!(kernel(&trace, "Default/Cast-op9").graph, Some(2));
    assert_eq!(trace.start_unix_ns, Some(56_635_864_000_800 + 1_692_340_024_324_979_000 - 56_579_931_060_630));
    let beside = rows(&trace, TrackKind::DeviceAnnotation);
    assert_eq!(beside.iter().map(|row| row.0).collect::<Vec<_>>(), [Category::DeviceRange; 2]);
    assert_eq!((trace.processes[0].pid, trace.processes[0].rank), (Some(77), Some(0)));
}

#[test]
fn operators_of_a_type_that_the_scheduler_does_not_know_are_kernels() {
    let task = |name: &str, task_type: &str, ts: u32| {
        format!(
            r#"{{"name":"{name}","pid":32,"tid":2,"ts":"17364088830000{ts}.000","dur":1,"args":{{"Task Type":"{task_type}"}},"ph":"X"}}"#
        )
    };
    let timeline = format!(
        r#"[{{"name":"process_name","pid":32,"tid":0,"args":{{"name":"Ascend Hardware"}},"ph":"M"}},
{},{},{}]"#,
        task("aclnnAdd_AddAiCore_Add", "Other", 10),
        task("MEMCPY_ASYNC", "Other", 20),
        task("PLACE_HOLDER_SQE", "Other", 30)
    );
    let output = Output::new().file("p_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", &timeline);
    let trace = read(&output.path("p_ascend_pt"));
    let work: Vec<_> = rows(&trace, TrackKind::DeviceQueue).into_iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(
        work,
        [(Category::Kernel, "aclnnAdd_AddAiCore_Add".to_owned()), (Category::Memcpy, "MEMCPY_ASYNC".to_owned())]
    );
    assert_eq!(rows(&trace, TrackKind::DeviceAnnotation)[0].1, "PLACE_HOLDER_SQE");
}

/// Level 0: no layer of CANN, no planes of collectives. Arrows say when each task was launched, numbers beyond 64 bits among
/// them; what waits and moves on the library's stream while a collective runs lies inside it.
#[test]
fn level_0_keeps_its_links_and_what_lies_inside_collectives() {
    let task = |name: &str, kind: &str, ts: &str, dur: u32, id: u32| {
        format!(
            r#"{{"name":"{name}","pid":3105,"tid":4,"ts":"1736408883000{ts}.000","dur":{dur},"args":{{"Task Type":"{kind}","connection_id":{id}}},"ph":"X"}}"#
        )
    };
    let arrow = |id: &str, from: u32, (pid, tid): (u32, u32), to: u32| {
        format!(
            r#"{{"ph":"s","cat":"HostToDevice","id":"{id}","pid":3073,"tid":4,"ts":"1736408883000{from}.000"}},{{"ph":"f","cat":"HostToDevice","id":"{id}","pid":{pid},"tid":{tid},"ts":"1736408883000{to}.000"}}"#
        )
    };
    let events = [
        task("aclnnMm_MatMul", "AI_CORE", "200", 50, 7),
        task("Notify Wait", "Notify Wait", "310", 60, 8),
        task("SDMA", "SDMA", "372", 20, 8),
        task("Notify Wait", "Notify Wait", "500", 5, 9),
        r#"{"name":"hcom_allReduce__868_0_1","pid":3137,"tid":0,"ts":"1736408883000300.000","dur":100,"args":{"connection_id":8},"ph":"X"}"#.to_owned(),
        arrow("40004912544273661951", 110, (3105, 4), 200),
        arrow("5819680686079", 120, (3137, 0), 300),
    ];
    let names = r#"{"name":"process_name","pid":3105,"tid":0,"args":{"name":"Ascend Hardware"},"ph":"M"},
{"name":"process_name","pid":3137,"tid":0,"args":{"name":"HCCL"},"ph":"M"},
{"name":"process_name","pid":3,"tid":0,"args":{"name":"Python"},"ph":"M"},
{"name":"thread_name","pid":3105,"tid":4,"args":{"name":"Stream 4"},"ph":"M"},
{"name":"thread_name","pid":3137,"tid":0,"args":{"name":"Group 0 Communication"},"ph":"M"}"#;
    let trace = timeline(&[names, &events.join(",")]);
    let queues = rows(&trace, TrackKind::DeviceQueue);
    let inside: Vec<_> =
        queues.iter().filter(|row| row.0 != Category::Kernel).map(|row| (row.0, row.1.as_str(), row.3)).collect();
    let expected = [(Category::DeviceSync, "Notify Wait", 60_000), (Category::DeviceOther, "SDMA", 20_000)];
    assert_eq!(inside, expected, "and none of what waits outside of it");
    let linked = trace.lanes.iter().flat_map(|lane| (0..lane.len()).filter_map(|i| lane.link(i))).count();
    assert_eq!((linked, trace.stat("trace.device_work_without_launch")), (2, 0));
}

/// Level 0: gaps within a replayed graph were called waits of the queue, because nothing said that a graph was launched.
#[test]
fn level_0_says_which_moments_launched_a_graph() {
    let task = |ts: u32, graph: i64| {
        format!(
            r#"{{"name":"aclnnMm_MatMul","pid":3105,"tid":2,"ts":"1736408883000{ts}.000","dur":5,"args":{{"Model Id":{graph},"Task Type":"AI_CORE","connection_id":{ts}}},"ph":"X"}}"#
        )
    };
    let arrow = |id: u32, from: u32, to: u32| {
        format!(
            r#"{{"ph":"s","cat":"HostToDevice","id":"{id}","pid":3073,"tid":4,"ts":"1736408883000{from}.000"}},{{"ph":"f","cat":"HostToDevice","id":"{id}","pid":3105,"tid":2,"ts":"1736408883000{to}.000"}}"#
        )
    };
    let tasks = [task(200, 4_294_967_295), task(210, 7), task(220, 7)].join(",");
    let arrows = [arrow(1, 110, 200), arrow(2, 120, 210), arrow(2, 120, 220)].join(",");
    let names = NAMES.lines().skip(1).collect::<Vec<_>>().join("\n");
    let trace = timeline(&[&names, &tasks, &arrows]);
    let launches: Vec<_> = rows(&trace, TrackKind::HostThread).into_iter().map(|row| row.1).collect();
    assert_eq!(launches, ["launch", "aclmdlRIExecuteAsync"]);
    let linked = trace.lanes.iter().flat_map(|lane| (0..lane.len()).filter_map(|i| lane.link(i))).count();
    assert_eq!(linked, 3);
}
