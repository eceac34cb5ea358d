//! Where the work of a capture without steps begins: what loads a model or warms it up before is no part of it.

use model::{Category, Ns, ProcessId, Span, Trace, TrackKind};

use super::{
    bucket::CopyDir,
    spans::union,
    timeline::{DeviceOp, OpKind, Timeline},
};

/// Copies to the device before the first kernel from which they are the weights of a model rather than inputs; own value: a
/// network of a few layers has more tensors, a call has fewer inputs.
const WEIGHTS: usize = 16;
/// Share of the device's work that may lie between ranges that prepare, such as the making of inputs; own value.
const BESIDE: f64 = 0.02;
/// Later copies to the device count so many times against being weights; own value.
const AGAIN: usize = 4;
/// What is loaded or warmed up, where a range says it.
const OBJECTS: [&str; 5] = ["model", "weights", "engine", "gpu", "cuda"];
/// Words of the ranges that programs draw around what precedes the work.
const BEFORE: [&str; 7] = ["init", "load", "loading", "warmup", "warming", "setup", "startup"];

/// The first operation of the work: 0 where nothing says that what comes first is not.
pub(super) fn end(trace: &Trace, timeline: &Timeline, process: ProcessId) -> usize {
    let ranges = preparing(trace, process);
    let of_range = |at: Ns| {
        let before = ranges.partition_point(|range| range.start <= at).checked_sub(1);
        before.and_then(|i| ranges.get(i)).is_some_and(|range| at < range.end)
    };
    // Up to the last operation that preparation launched, where hardly anything else was launched before it.
    let launched = |op: &DeviceOp| timeline.call(op).map(|call| call.start);
    let all = timeline.ops.iter().map(DeviceOp::dur).fold(0, Ns::saturating_add);
    let (mut prepared, mut other): (usize, Ns) = (0, 0);
    for (at, op) in timeline.ops.iter().enumerate() {
        match launched(op).is_some_and(of_range) {
            true => prepared = at + 1,
            false => other = other.saturating_add(op.dur()),
        }
        if other as f64 > BESIDE * all as f64 {
            break;
        }
    }
    let uploads = timeline
        .ops
        .get(prepared..)
        .unwrap_or(&[])
        .iter()
        .take_while(|op| matches!(op.kind, OpKind::Copy(CopyDir::HtoD | CopyDir::Memset)))
        .count();
    // Inputs come again before the next work, weights do not.
    let to_device = |op: &&DeviceOp| op.kind == OpKind::Copy(CopyDir::HtoD);
    let later = timeline.ops.get(prepared + uploads..).unwrap_or(&[]).iter().filter(to_device).count();
    let first = prepared + if uploads >= WEIGHTS && AGAIN * later < uploads { uploads } else { 0 };
    let computing = |ops: &[DeviceOp]| {
        let compute = ops.iter().filter(|op| op.kind == OpKind::Compute);
        compute.map(DeviceOp::dur).fold(0, Ns::saturating_add)
    };
    let (before, after) = timeline.ops.split_at_checked(first).unwrap_or_default();
    // What most of the computing lies in is the work, whatever it is called.
    if computing(after) > computing(before) { first } else { 0 }
}

/// The ranges of a process that say that they prepare, merged.
fn preparing(trace: &Trace, process: ProcessId) -> Vec<Span> {
    let host = |kind: &TrackKind| matches!(kind, TrackKind::HostThread | TrackKind::Global);
    let lanes = trace.tracks.iter().zip(&trace.lanes);
    let mut out = Vec::new();
    for (_, lane) in lanes.filter(|(track, _)| track.key.process == process && host(&track.key.kind)) {
        for ((category, name), row) in lane.category.iter().zip(&lane.name).zip(0..) {
            if *category == Category::UserRange && prepares(trace.strings.get(*name)) {
                out.extend(lane.start.get(row).map(|start| Span::new(*start, lane.end(row))));
            }
        }
    }
    union(out)
}

/// Whether a range's name says so by itself or of a model: `init_model`, `warmup`, `Warm-up 3`, `model load`.
pub(super) fn prepares(name: &str) -> bool {
    let words = name.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.take(4).map(str::to_ascii_lowercase).collect();
    let says = |word: &str| BEFORE.contains(&word) || word.starts_with("initial");
    let of = |word: &str| OBJECTS.contains(&word);
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [one] => says(one),
        ["warm", "up"] | ["warm", "up", _] => true,
        [a, b] => (says(a) && of(b)) || (of(a) && says(b)) || (says(a) && *b == "step"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::analysis::script::Script;

    fn first_of(write: impl FnOnce(&mut Script)) -> (usize, usize) {
        let mut s = Script::default();
        write(&mut s);
        let (_, analysis) = s.analyze();
        let rank = &analysis.ranks[0];
        (rank.steps[0].ops.start, rank.timeline.ops.len())
    }

    fn uploads(s: &mut Script, count: i64) {
        for i in 0..count {
            s.copy("cudaMemcpyAsync", (10 * i, 10 * i + 2), "HtoD", "pageable", 4_096, (10 * i + 3, 10 * i + 9));
        }
    }

    #[test]
    fn weights_that_are_copied_before_the_first_kernel_are_no_work() {
        let run = |count: i64, again: i64| {
            first_of(|s| {
                uploads(s, count);
                s.launch((1_000, 1_002), "gemm", (1_010, 1_090));
                s.launch((1_100, 1_102), "gemm", (1_110, 1_190));
                for i in 0..again {
                    let at = 2_000 + 10 * i;
                    s.copy("cudaMemcpyAsync", (at, at + 2), "HtoD", "pageable", 4_096, (at + 3, at + 9));
                }
            })
        };
        assert_eq!(run(20, 0), (20, 22));
        assert_eq!(run(3, 0), (0, 5), "inputs");
        assert_eq!(run(20, 20), (0, 42), "inputs of the next work");
        assert_eq!(first_of(|s| uploads(s, 20)), (0, 20), "nothing else was recorded");
    }

    #[test]
    fn what_a_range_calls_loading_or_warm_up_is_no_work() {
        let run = |name: &'static str| {
            first_of(|s| {
                s.host(Category::UserRange, name, (0, 500));
                s.launch((10, 12), "gemm", (20, 90));
                s.launch((100, 102), "gemm", (110, 190));
                s.launch((600, 602), "gemm", (610, 9_690));
            })
        };
        for name in ["init_model", "warmup", "Warm-up 2", "model load", "loading"] {
            assert_eq!(run(name), (2, 3), "{name}");
        }
        for name in [
            "benchmark",
            "payload",
            "load_test",
            "build batch",
            "setup inputs",
            "reinit of the loaded state vector",
            "forward",
        ] {
            assert_eq!(run(name), (0, 3), "{name}");
        }
    }
}
