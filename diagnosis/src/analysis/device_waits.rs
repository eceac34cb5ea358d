//! What stands on a device queue and is no work of its own: waits for other queues, and copies that only carry data into or
//! out of the memory that a collective works on.

use model::{Detail, Ns, Span, SyncKind, Trace, TrackId, TrackKey, TrackKind};
use rustc_hash::FxHashMap;

use super::{
    bucket::{Bucket, CopyDir},
    timeline::{DeviceOp, OpKind, Timeline},
};
use crate::platform::CanonicalOp;

/// All-reduces over symmetric memory: their operands are copied into a buffer that every rank sees, and back.
const SYMMETRIC: [&str; 4] = ["multimem_", "one_shot_all_reduce", "two_shot_all_reduce", "symm_mem"];

/// Longest gap between such a collective and a copy that stages for it. Own value: twice what a copy kernel of a few
/// megabytes takes to be launched and run.
const BESIDE: Ns = 50_000;

/// Shortest wait for an event by which a queue stood still, ns: own value, above what an event that has come already takes.
const STOOD: Ns = 5_000;

/// Marks the copies on one device that stand directly before or after a collective over symmetric memory on their queue.
pub(super) fn mark_staging(trace: &Trace, timeline: &mut Timeline) {
    let (ops, queues) = (&mut timeline.ops, timeline.queues.len());
    let symmetric = |op: &DeviceOp| {
        op.kind == OpKind::Comm && SYMMETRIC.iter().any(|part| trace.strings.get(op.name).contains(part))
    };
    let mut last: Vec<Option<usize>> = vec![None; queues];
    let mut staged = Vec::new();
    for i in 0..ops.len() {
        let Some(op) = ops.get(i) else { break };
        let Some(slot) = last.get_mut(op.queue as usize) else { continue };
        if let Some((j, before)) = slot.and_then(|j| Some((j, ops.get(j)?))) {
            let beside = op.start - before.end <= BESIDE;
            let copies = |op: &DeviceOp| op.kind == OpKind::Copy(CopyDir::DtoD);
            staged.extend((beside && copies(before) && symmetric(op)).then_some(j));
            staged.extend((beside && symmetric(before) && copies(op)).then_some(i));
        }
        *slot = Some(i);
    }
    for i in staged {
        if let Some(op) = ops.get_mut(i) {
            (op.op, op.kind) = (CanonicalOp::CommStaging, OpKind::Copy(CopyDir::Staging));
        }
    }
}

/// The waits for events that the device itself recorded on each of `queues`, by start: how long the queue stood still for another
/// one.
pub(super) fn recorded(trace: &Trace, queues: &[TrackId]) -> Vec<Vec<Span>> {
    let waits = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == TrackKind::DeviceSync);
    let lanes: FxHashMap<TrackKey, _> = waits.map(|(track, lane)| (track.key, lane)).collect();
    let of = |queue: &TrackId| {
        let Some(own) = trace.tracks.get(queue.0 as usize).map(|track| track.key) else { return Vec::new() };
        let lane = lanes.get(&TrackKey { kind: TrackKind::DeviceSync, ..own });
        let waits = lane.into_iter().flat_map(|lane| {
            let is_wait = |i: &usize| trace.detail(lane, *i) == Some(&Detail::Sync(SyncKind::StreamWaitEvent));
            (0..lane.len()).filter(is_wait).map(|i| Span::new(lane.start[i], lane.end(i)))
        });
        waits.filter(|wait| wait.len() >= STOOD).collect()
    };
    queues.iter().map(of).collect()
}

/// Gives what lies inside a recorded wait of the device to that wait. `parts` tile a gap in order of time, `waits` are
/// disjoint and in order.
pub(super) fn overlay(parts: Vec<(Bucket, Span)>, waits: &[Span]) -> Vec<(Bucket, Span)> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return parts };
    let from = waits.partition_point(|wait| wait.end <= first.1.start);
    let to = waits.partition_point(|wait| wait.start < last.1.end);
    let waits = waits.get(from..to.max(from)).unwrap_or(&[]);
    if waits.is_empty() {
        return parts;
    }
    let mut out: Vec<(Bucket, Span)> = Vec::with_capacity(parts.len() + 2 * waits.len());
    let mut add = |bucket: Bucket, start: Ns, end: Ns| {
        if start < end {
            match out.last_mut() {
                Some((before, span)) if *before == bucket => span.end = end,
                _ => out.push((bucket, Span::new(start, end))),
            }
        }
    };
    for (bucket, part) in parts {
        let mut at = part.start;
        let within = waits.get(waits.partition_point(|wait| wait.end <= part.start)..).unwrap_or(&[]);
        for wait in within.iter().take_while(|wait| wait.start < part.end) {
            let (begin, end) = (wait.start.max(at), wait.end.min(part.end));
            add(bucket, at, begin);
            add(Bucket::DeviceDep, begin, end);
            at = end.max(at);
        }
        add(bucket, at, part.end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::script::{Script, named};

    const GEMM: &str = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT";

    fn buckets(script: Script) -> Vec<(String, Ns)> {
        let (_, analysis) = script.analyze();
        let mut found = analysis
            .ranks
            .first()
            .and_then(|rank| rank.steps.first())
            .map(|step| named(&analysis, &step.buckets))
            .unwrap_or_default();
        found.sort();
        found
    }

    #[test]
    fn a_wait_on_a_queue_is_no_work_of_an_operator() {
        let mut s = Script::default();
        s.launch((0, 10), GEMM, (10, 100));
        s.launch((12, 14), "event_wait", (100, 160));
        s.launch((16, 18), GEMM, (160, 200));
        let found = buckets(s);
        assert_eq!(found, [("compute.gemm".into(), 130), ("rt.device_dep".into(), 60)]);
    }

    #[test]
    fn copies_beside_a_collective_over_symmetric_memory_are_communication() {
        const REDUCE: &str = "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)";
        let script = |name: &str| {
            let mut s = Script::default();
            s.launch((0, 10), GEMM, (10, 100));
            s.copy("cudaMemcpyAsync", (12, 14), "DtoD", "device", 1_024, (100, 120));
            s.launch((16, 18), name, (120, 150));
            s.copy("cudaMemcpyAsync", (20, 22), "DtoD", "device", 1_024, (150, 160));
            s
        };
        let of = |name: &str| -> Vec<String> {
            let copies = buckets(script(name)).into_iter().filter(|(bucket, _)| bucket.starts_with("copy."));
            copies.map(|(bucket, ns)| format!("{bucket} {ns}")).collect()
        };
        assert_eq!(of(REDUCE), ["copy.staging 30"]);
        assert_eq!(of(GEMM), ["copy.d2d 30"]);
    }

    #[test]
    fn what_lies_inside_a_wait_is_the_waits() {
        let span = Span::new;
        let parts = vec![(Bucket::LaunchApi, span(0, 10)), (Bucket::Dispatch, span(10, 30))];
        let found = overlay(parts.clone(), &[span(5, 12), span(20, 40)]);
        let expected = vec![
            (Bucket::LaunchApi, span(0, 5)),
            (Bucket::DeviceDep, span(5, 12)),
            (Bucket::Dispatch, span(12, 20)),
            (Bucket::DeviceDep, span(20, 30)),
        ];
        assert_eq!(found, expected);
        assert_eq!(overlay(parts.clone(), &[span(30, 50)]), parts);
        assert_eq!(overlay(parts.clone(), &[]), parts);
        assert_eq!(overlay(parts, &[span(-5, 100)]), vec![(Bucket::DeviceDep, span(0, 30))]);
    }
}
