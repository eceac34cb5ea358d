//! Forms of other writers that are read as Kineto's: rows without category, and slices written as two events.

use super::{detail, rows, text, trace};
use model::{Detail, ImportStat};

/// A tracer that writes rows of the device alone leaves the category out: nothing was work of a device.
#[test]
fn device_rows_without_category_are_told_by_their_names() {
    let row = |name: &str, ts: f64, id: u32| {
        format!(
            r#"{{"name":"{name}","ph":"X","ts":{ts},"dur":2.5,"pid":1,"tid":7,"args":{{"correlationId":{id},"externalId":{id}}}}}"#
        )
    };
    let events = [
        row("[MEMCPY] HtoD", 10.0, 1),
        row("void at::native::k<4>(int, float)", 20.0, 2),
        row("[MEMSET] Device", 30.0, 3),
        row("cudaLaunchKernel", 5.0, 2),
        row("forward", 1.0, 9),
        r#"{"name":"sum(1)","ph":"X","ts":40,"dur":1,"pid":1,"tid":7}"#.to_owned(),
    ];
    let t = trace(&events.join(","), "");
    let expected = [
        "device_queue/1/7 [MEMCPY] HtoD memcpy 9000+2500 1",
        "device_queue/1/7 void at::native::k<4>(int, float) kernel 19000+2500 2",
        "device_queue/1/7 [MEMSET] Device memset 29000+2500 3",
        "host_thread/-/7 forward host_other 0+2500 -",
        "host_thread/-/7 cudaLaunchKernel host_api 4000+2500 2",
        "host_thread/-/7 sum(1) host_other 39000+1000 -",
    ];
    assert_eq!(rows(&t), expected);
    let Some(Detail::Copy(copy)) = detail(&t, "[MEMCPY] HtoD") else { panic!("no copy") };
    assert_eq!(text(&t, copy.direction), "HtoD");
    assert_eq!(t.stat("kineto.events_of_unknown_kind"), 0, "work of a device is known");
}

/// The export of the autograd profiler: operators were of no known kind, and there was no work of a device.
#[test]
fn rows_of_the_autograd_profiler_are_operators_and_kernels_by_device() {
    let row = |name: &str, ts: u32, pid: &str| {
        format!(r#"{{"name":"{name}","ph":"X","ts":{ts},"dur":2,"tid":1,"pid":"{pid}","args":{{}}}}"#)
    };
    let events = [
        row("aten::mm", 10, "CPU functions"),
        row("sgemm_32x32", 20, "CUDA functions"),
        row("Memcpy HtoD (Pageable -> Device)", 30, "CUDA functions"),
    ];
    let expected = [
        "host_thread/-/1 aten::mm framework_op 0+2000 -",
        "device_queue/1/1 sgemm_32x32 kernel 10000+2000 -",
        "device_queue/1/1 Memcpy HtoD (Pageable -> Device) memcpy 20000+2000 -",
    ];
    assert_eq!(rows(&trace(&events.join(","), "")), expected);
}

/// They were dropped as a phase that Kineto does not write.
#[test]
fn begin_and_end_events_of_a_thread_are_one_slice() {
    let half = |phase: &str, name: &str, tid: &str, ts: u32| {
        format!(r#"{{"ph":"{phase}","name":"{name}","pid":0,"tid":{tid},"ts":{ts}}}"#)
    };
    let (one, other) = ("15514734831341844875", "2009867741857745393");
    let events = [
        half("B", "outer", one, 10),
        half("B", "inner", one, 12),
        half("B", "elsewhere", other, 13),
        r#"{"ph":"E","pid":0,"tid":15514734831341844875,"ts":14}"#.to_owned(),
        half("E", "outer", one, 20),
        half("E", "elsewhere", other, 21),
        half("E", "never begun", one, 22),
        half("B", "never ended", one, 23),
    ];
    let t = trace(&events.join(","), "");
    let shown: Vec<_> = rows(&t).iter().map(|row| row.split_once(' ').unwrap().1.to_owned()).collect();
    let expected = ["outer host_other 0+10000 -", "inner host_other 2000+2000 -", "elsewhere host_other 3000+8000 -"];
    assert_eq!(shown, expected);
    assert_eq!(t.tracks.len(), 2, "threads of large numbers are told apart");
    assert_eq!((t.stat("kineto.begins_without_end"), t.stat("kineto.ends_without_begin")), (1, 1));
    assert_eq!(t.stat("kineto.unknown_phase"), 0);
    let row = t.ledger.iter().find(|row| row.category == "begin and end events").unwrap();
    assert_eq!((row.read, row.kept, row.time_ns), (8, 6, 20_000));
    assert_eq!(t.stat("kineto.events_of_unknown_kind"), 4, "beginnings without a category");
}

#[test]
fn begin_and_end_events_have_categories_too() {
    let events = r#"{"ph":"B","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"args":{"stream":7,"correlation":5}},
        {"ph":"E","pid":0,"tid":7,"ts":14}"#;
    assert_eq!(rows(&trace(events, "")), ["device_queue/0/7 gemm kernel 0+4000 5"]);
}

#[test]
fn nesting_has_an_end() {
    let begin = |i: u32| format!(r#"{{"ph":"B","name":"f{i}","pid":0,"tid":1,"ts":{i}}}"#);
    let t = trace(&(0..1100).map(begin).collect::<Vec<_>>().join(","), "");
    assert_eq!((t.stat("kineto.begins_without_end"), t.stat("kineto.begins_too_deep")), (512, 588));
}

#[test]
fn where_no_work_is_known_the_unknown_is_counted() {
    let t = trace(r#"{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"dur":1},{"ph":"b","name":"x","id":4,"ts":2}"#, "");
    assert_eq!(t.stat("kineto.events_of_unknown_kind"), 2);
}

/// What followed the first document was dropped without a word.
#[test]
fn documents_that_follow_each_other_are_all_read_and_anything_else_is_counted() {
    let kernel = |ts: u32| {
        format!(
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": {ts}, "dur": 1, "args": {{"correlation": 1}}}},
            {{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {}, "dur": 1, "args": {{"device": 0, "stream": 7, "correlation": 1}}}}"#,
            ts + 5
        )
    };
    let document = |rank: u32, ts: u32| {
        format!(r#"{{"distributedInfo": {{"rank": {rank}, "world_size": 2}}, "traceEvents": [{}]}}"#, kernel(ts))
    };
    let linked = |t: &model::Trace| {
        t.lanes.iter().flat_map(|lane| (0..lane.len()).filter_map(|i| lane.link(i))).collect::<Vec<_>>()
    };
    // Two runs of the profiler in one process, whose correlation ids begin anew.
    let t = super::read(&format!("{}\n{}\n", document(0, 10), document(0, 100)));
    assert_eq!((t.slice_count(), t.processes.len(), linked(&t).len()), (4, 1, 2));
    let calls: std::collections::BTreeSet<_> = linked(&t).into_iter().collect();
    assert_eq!(calls.len(), 2, "each kernel has the launch of its own document");
    assert!(t.stats.is_empty(), "{:?}", t.stats);
    // Two ranks.
    let t = super::read(&format!("{}{}", document(0, 10), document(1, 10)));
    assert_eq!(t.processes.iter().map(|p| p.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!((t.slice_count(), linked(&t).len()), (4, 2));
    // Arrays.
    let t = super::read(&format!("[{}]\n[{}]", kernel(10), kernel(100)));
    assert_eq!((t.slice_count(), t.stats.len()), (4, 0), "{:?}", t.stats);
    // The same document twice is one.
    for text in [format!("{0}\n{0}", document(0, 10)), format!("\n  {0}\n{0}", document(0, 10))] {
        let t = super::read(&text);
        assert_eq!((t.slice_count(), t.stat(ImportStat::DOUBLED_ROWS)), (2, 2), "{:?}", t.stats);
    }
    // A run of another process afterwards is no part of the first; one at the same time is a rank.
    let other = |ts: u32| format!("[{}]", kernel(ts)).replace(r#""pid": 7"#, r#""pid": 8"#);
    let runs = |ts: u32| super::read(&format!("[{}]\n{}", kernel(10), other(ts))).stat(ImportStat::OTHER_RUNS);
    assert_eq!((runs(1_000), runs(12)), (1, 0));
    // Somebody else's document, before or after.
    for text in [format!("{}{{\"a\": [1, 2]}}", document(0, 10)), format!("{{\"a\": [1, 2]}}\n{}", document(0, 10))] {
        let t = super::read(&text);
        let [stat] = t.stats.as_slice() else { panic!("{:?}", t.stats) };
        let told = (stat.name.as_str(), stat.example.as_deref().map(|e| e.contains(" bytes from byte ")));
        assert_eq!((t.slice_count(), told), (2, ("kineto.document_without_events", Some(true))));
    }
    let t = super::read(&format!("{}\nand more", document(0, 10)));
    let [stat] = t.stats.as_slice() else { panic!("{:?}", t.stats) };
    assert_eq!(
        (stat.name.as_str(), stat.example.as_deref().map(|e| e.starts_with("8 bytes"))),
        ("kineto.unreadable_rest", Some(true))
    );
}
