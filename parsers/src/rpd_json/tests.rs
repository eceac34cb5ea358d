#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Trace, TraceBuilder};

use super::*;

/// As `rpd2tracing.py` writes it: a launch of 1 µs, before which its arrow begins, and a copy that its call waits for.
const FILE: &str = r#"[ {}
,{"name": "process_name", "ph": "M", "pid":"2","args":{"name":"GPU2"}}
,{"name":"thread_name","ph":"M","pid":"70","tid":"71","args":{"name":"Hip 71"}}
,{"pid":"2","tid":"0","name":"gemm(float*)","ts":"1020","dur":"5","ph":"X","args":{"desc":"KernelExecution"}}
,{"pid":"2","tid":"0","name":"CopyDeviceToHost","ts":"1035","dur":"2","ph":"X","args":{"desc":"CopyDeviceToHost"}}
,{"pid":"2","tid":"1","name":"FillBuffer","ts":"1040","dur":"1","ph":"X","args":{"desc":"FillBuffer"}}
,{"pid":"2","tid":"0","name":"Graph 0x1","ts":"1019","dur":"20","ph":"X","args":{"kernels":"2"}}
,{"pid":"2","tid":"0","name":"layer","ts":"1019","dur":"6","ph":"X","args":{"desc":"UserMarker frame: 1 ops"}}
,{"pid":"70","tid":"71","name":"layer","ts":"1000","dur":"60","ph":"X","args":{"desc":"layer"}}
,{"pid":"70","tid":"71","name":"hipGetDevice","ts":"1007","dur":"1","ph":"X","args":{"desc":""}}
,{"pid":"70","tid":"71","name":"hipLaunchKernel","ts":"1009","dur":"1","ph":"X","args":{"desc":""}}
,{"pid":"70","tid":"71","name":"hipGetLastError","ts":"1010","dur":"0","ph":"X","args":{"desc":""}}
,{"pid":"70","tid":"71","name":"hipMemcpyWithStream","ts":"1030","dur":"12","ph":"X","args":{"desc":""}}
,{"pid":"70","tid":"72","name":"OpTable::writeRows","ts":"1050","dur":"3","ph":"X","args":{"desc":"count=2"}}
,{"pid":"70","tid":"71","cat":"api_op","name":"api_op","ts":"1008","id":"1","ph":"s"}
,{"pid":"2","tid":"0","cat":"api_op","name":"api_op","ts":"1020","id":"1","ph":"f", "bp":"e"}
,{"pid":"70","tid":"71","cat":"api_op","name":"api_op","ts":"1035","id":"2","ph":"s"}
,{"pid":"2","tid":"0","cat":"api_op","name":"api_op","ts":"1035","id":"2","ph":"f", "bp":"e"}
,{"pid":"2","name":"QueueDepth","ph":"C","ts":1009,"args":{"depth":1}}
,{"pid":"0","name":"","ph":"C","ts":1009,"args":{"sclk":1700}}
]
"#;

fn import(text: &str) -> Trace {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.json");
    std::fs::write(&path, text).unwrap();
    let mut builder = TraceBuilder::new("t", "rpd-json");
    let format = crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap();
    assert_eq!(format.id, "rpd-json");
    builder.finish()
}

type Row<'a> = (i64, i64, Category, &'a str, Option<&'a str>);

/// Category, name, start, duration and the name of the launching call of every slice.
fn rows(trace: &Trace) -> Vec<Row<'_>> {
    let mut all = Vec::new();
    for lane in &trace.lanes {
        for row in 0..lane.len() {
            let call = lane.link(row).map(|id| {
                let (track, row) = trace.locate(id).unwrap();
                trace.strings.get(trace.lanes[track.0 as usize].name[row])
            });
            all.push((lane.start[row], lane.dur[row], lane.category[row], trace.strings.get(lane.name[row]), call));
        }
    }
    all.sort_unstable();
    all
}

/// Its times are texts, for which it was read as a timeline of Ascend, and nothing of it was kept.
#[test]
fn the_chrome_trace_of_rpd_is_read_and_arrows_link_calls_to_their_work() {
    use Category::{DeviceRange, HostApi, Kernel, Memcpy, Memset, Overhead, UserRange};
    let trace = import(FILE);
    let us = |start: i64, dur: i64| (start * 1000, dur * 1000);
    let row = |(start, dur): (i64, i64), category, name, call| (start, dur, category, name, call);
    let mut expected = vec![
        row(us(0, 60), UserRange, "layer", None),
        row(us(7, 1), HostApi, "hipGetDevice", None),
        row(us(9, 1), HostApi, "hipLaunchKernel", None),
        row(us(10, 0), HostApi, "hipGetLastError", None),
        row(us(19, 6), DeviceRange, "layer", None),
        row(us(19, 20), DeviceRange, "Graph 0x1", None),
        row(us(20, 5), Kernel, "gemm(float*)", Some("hipLaunchKernel")),
        row(us(30, 12), HostApi, "hipMemcpyWithStream", None),
        row(us(35, 2), Memcpy, "CopyDeviceToHost", Some("hipMemcpyWithStream")),
        row(us(40, 1), Memset, "FillBuffer", None),
        row(us(50, 3), Overhead, "OpTable::writeRows", None),
    ];
    expected.sort_unstable();
    assert_eq!(rows(&trace), expected);
    assert_eq!(trace.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [Some(70)]);
    assert_eq!(trace.stat("rpd-json.operations_without_call"), 1);
    let kept = trace.ledger.iter().find(|row| row.category == "monitors").unwrap();
    assert_eq!((kept.read, kept.kept), (1, 1));
}

#[test]
fn the_object_form_is_the_same() {
    assert_eq!(rows(&import(&format!("{{\"traceEvents\": {FILE}}}"))), rows(&import(FILE)));
}

#[test]
fn a_bare_list_with_times_as_texts_is_still_a_timeline_of_ascend() {
    let list =
        r#"[{"name":"aclnnAdd","pid":32,"tid":2,"ts":"1736408883000000.120","dur":5.5,"ph":"X","args":{"desc":""}}]"#;
    assert_eq!(matches(&Head::new(Path::new("trace_view.json"), list.as_bytes())), Match::No);
}

#[test]
fn a_file_without_its_end_gives_what_stands_before() {
    let cut = FILE.get(..FILE.find(",{\"pid\":\"70\",\"tid\":\"72\"").unwrap()).unwrap();
    let trace = import(cut);
    assert_eq!((trace.slice_count(), trace.stat("rpd-json.damaged_file")), (10, 1));
}
