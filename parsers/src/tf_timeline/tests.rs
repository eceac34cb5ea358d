#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Trace, TraceBuilder};

use super::*;

fn process(pid: u32, name: &str) -> String {
    format!(r#"{{"ph":"M","args":{{"name":"{name}"}},"pid":{pid},"name":"process_name"}}"#)
}

fn op(pid: u32, tid: u32, name: &str, ts: u64, dur: u64) -> String {
    format!(
        r#"{{"name":"{name}","args":{{"name":"node","op":"{name}"}},"pid":{pid},"ts":{ts},"cat":"Op","tid":{tid},"ph":"X","dur":{dur}}}"#
    )
}

fn import(events: &[String]) -> Trace {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("timeline.json");
    std::fs::write(&path, format!("{{\n    \"traceEvents\": [{}]}}", events.join(","))).unwrap();
    let mut builder = TraceBuilder::new("t", "tf-timeline");
    let format = crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap();
    assert_eq!(format.id, "tf-timeline");
    builder.finish()
}

type Work<'a> = (Option<i32>, i64, Category, &'a str, i64, i64);

/// Device and number of its queue, category, name, start and duration of every slice of a device.
fn work(trace: &Trace) -> Vec<Work<'_>> {
    let mut all = Vec::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.device.is_some()) {
        for row in 0..lane.len() {
            let name = trace.strings.get(lane.name[row]);
            all.push((track.key.device, track.key.id, lane.category[row], name, lane.start[row], lane.dur[row]));
        }
    }
    all
}

const EPOCH: u64 = 1_464_083_419_000_000;

/// It was read as a trace of PyTorch, in which nothing was work of a device.
#[test]
fn streams_are_queues_and_what_is_told_of_them_together_is_told_once() {
    let trace = import(&[
        process(0, "Allocators"),
        process(1, "/job:localhost/replica:0/task:0/device:GPU:0 Compute"),
        process(3, "/device:GPU:0/stream:all Compute"),
        process(5, "/device:GPU:0/stream:14 Compute"),
        process(7, "/device:GPU:0/memcpy Compute"),
        process(8, "/device:GPU:0/memcpy Tensors"),
        op(1, 0, "MatMul", EPOCH, 10),
        op(3, 0, "MatMul", EPOCH + 20, 5),
        op(5, 0, "MatMul", EPOCH + 20, 5),
        op(7, 0, "MEMCPYHtoD", EPOCH + 30, 2),
        op(5, 0, "MEMCPYHtoD", EPOCH + 30, 2),
        format!(r#"{{"name":"gpu_bfc","args":{{"gpu_bfc":12}},"pid":0,"ts":{EPOCH},"cat":"Memory","tid":0,"ph":"C"}}"#),
        format!(r#"{{"name":"t","pid":8,"ts":{EPOCH},"cat":"Tensor","tid":0,"ph":"N","id":0}}"#),
        format!(r#"{{"name":"node","pid":5,"ts":{EPOCH},"cat":"DataFlow","tid":0,"ph":"s","id":0}}"#),
    ]);
    let expected = [
        (Some(0), 14, Category::Kernel, "MatMul", 20_000, 5_000),
        (Some(0), 14, Category::Memcpy, "MEMCPYHtoD", 30_000, 2_000),
    ];
    assert_eq!(work(&trace), expected);
    assert_eq!(trace.slice_count(), 3, "and the operator on the host");
    let copied = trace.details.iter().any(
        |detail| matches!(detail, Detail::Copy(copy) if copy.direction.map(|id| trace.strings.get(id)) == Some("HtoD")),
    );
    assert!(copied);
    let rows: Vec<_> = trace.ledger.iter().map(|row| (row.category.as_str(), row.read, row.kept)).collect();
    for row in [("device operations", 4, 2), ("tensors and allocators", 1, 0), ("allocators", 1, 1), ("arrows", 1, 0)] {
        assert!(rows.contains(&row), "{row:?} in {rows:?}");
    }
}

#[test]
fn streams_that_are_told_together_only_are_queues_too() {
    let trace = import(&[
        process(3, "/gpu:1/stream:all Compute"),
        process(7, "/gpu:1/memcpy Compute"),
        op(3, 2, "MatMul", EPOCH, 5),
        op(7, 0, "MEMCPYDtoH", EPOCH + 30, 2),
    ]);
    let expected = [
        (Some(1), 2, Category::Kernel, "MatMul", 0, 5_000),
        (Some(1), 0, Category::Memcpy, "MEMCPYDtoH", 30_000, 2_000),
    ];
    assert_eq!(work(&trace), expected);
}

/// When the executor ran an operation for a device is no time of that device.
#[test]
fn operations_placed_on_a_device_are_the_hosts_and_that_is_said() {
    let trace = import(&[
        process(1, "/job:localhost/replica:0/task:0/cpu:0 Compute"),
        process(3, "/job:localhost/replica:0/task:0/gpu:7 Compute"),
        op(1, 0, "NoOp", EPOCH, 10),
        op(3, 0, "Shape", EPOCH, 10),
        op(3, 1, "MatMul", EPOCH + 5, 10),
    ]);
    assert_eq!((work(&trace).len(), trace.slice_count()), (0, 3));
    assert_eq!(trace.stat("tf-timeline.operations_without_device_times"), 2);
}
