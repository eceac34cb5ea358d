//! What rules read off a step: its idle gaps, its calls, what it exposes.

use std::collections::BTreeMap;

use model::{Category, CounterTrack, Ns, SliceId, Span, StringId, Trace, TrackId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    analysis::{
        Analysis, AnchorKind, Bucket, Call, Class, DeviceOp, Edit, Rank, Step, Workload, attribution::Exclusive,
        idle::Gap,
    },
    diagnose::rule::Context,
    platform::HostCall,
};

/// Steps in which a trigger must hold; below so many the class as a whole decides, with low confidence.
pub const LEAST_STEPS: usize = 3;

/// Every rank with its main class, where something marks the steps: without a mark nobody can tell what lies inside a
/// step from what lies between two.
pub fn marked<'a>(cx: &'a Context<'_>) -> impl Iterator<Item = (&'a Rank, &'a Class)> {
    cx.main_classes().filter(|(rank, _)| rank.anchor.kind != AnchorKind::WholeCapture)
}

/// Pauses from which idle time is no matter of launching one operation after the other, ns; own value, a hundred times what an
/// eager framework takes per operation.
pub const LONG: Ns = 1_000_000;

/// Rows that one fact names at most.
pub const MOST_ROWS: usize = 16;

/// The idle gaps of a step.
pub fn gaps<'a>(rank: &'a Rank, step: &Step) -> &'a [Gap] {
    let from = rank.gaps.partition_point(|g| g.step < step.index);
    let to = rank.gaps.partition_point(|g| g.step <= step.index);
    rank.gaps.get(from..to).unwrap_or(&[])
}

/// Idle time of a step in the parts of gaps that `pick` takes, ns.
pub fn idle(rank: &Rank, step: &Step, pick: impl Fn(&Gap, Bucket) -> bool) -> Ns {
    let parts = |g: &Gap| g.parts.iter().filter(|(b, _)| pick(g, *b)).map(|(_, s)| s.len()).sum::<Ns>();
    gaps(rank, step).iter().map(parts).sum()
}

/// What comes again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recurs {
    /// Another step that has it: what one step has may be one event in several parts.
    Step,
    /// Another call, where the steps are too few to show it.
    Call,
}

/// Idle time of each pause of a workload, ns: what `of` makes of the gaps of a step, where it is more than nothing. Where nothing
/// marks the steps, each gap is a pause.
pub fn pauses(workload: &Workload<'_>, again: Recurs, of: impl Fn(&Gap) -> Ns) -> Vec<Ns> {
    let rank = workload.rank;
    let few = again == Recurs::Call && workload.steady() < LEAST_STEPS;
    let each = few || rank.anchor.kind == AnchorKind::WholeCapture;
    let mut out = Vec::new();
    for step in workload.steps() {
        let times = gaps(rank, step).iter().map(&of).filter(|ns| *ns > 0);
        if each {
            out.extend(times);
        } else {
            out.extend(Some(times.sum::<Ns>()).filter(|ns| *ns > 0));
        }
    }
    out
}

/// Idle time of a gap in the buckets that `pick` takes, ns.
pub fn time_in(gap: &Gap, pick: impl Fn(Bucket) -> bool) -> Ns {
    gap.parts.iter().filter(|(bucket, _)| pick(*bucket)).map(|(_, span)| span.len()).sum()
}

/// The operation that ends a gap.
pub fn owner<'a>(rank: &'a Rank, gap: &Gap) -> Option<&'a DeviceOp> {
    rank.timeline.ops.get(gap.owner? as usize)
}

/// Whether the parts of a gap in `bucket` are own time of the range that marks the next step, or of a forward pass in it: the host is
/// inside that step already, and no record says what it does there.
pub fn is_in_next_mark(cx: &Context<'_>, rank: &Rank, gap: &Gap, bucket: Bucket) -> bool {
    let next = rank.steps.get(rank.steps.partition_point(|step| step.index <= gap.step));
    let Some(mark) = next.and_then(|step| step.host) else { return false };
    let mut parts = gap.parts.iter().filter(|(of, _)| *of == bucket);
    let own = ["range", "forward"].iter().any(|label| is_host(cx.analysis, bucket, label));
    gap.between_steps && own && parts.all(|(_, part)| part.start >= mark.start)
}

/// Whether a part of a gap is the wait of launched work for the core on which the thread that launches goes on: the more it
/// launches, the longer that takes.
pub fn is_crowded_out(rank: &Rank, gap: &Gap, bucket: Bucket) -> bool {
    bucket == Bucket::LaunchLatency && owner(rank, gap).and_then(|op| rank.timeline.core_freed(op)).is_some()
}

/// The operations of a step, each with what it is accountable for.
pub fn accounted<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = (usize, &'a DeviceOp, Exclusive)> {
    let first = step.ops.start;
    rank.ops_of(step)
        .iter()
        .enumerate()
        .map(move |(i, op)| (first + i, op, rank.exclusive.get(first + i).copied().unwrap_or_default()))
}

/// The device names of a capture that `pick` takes.
pub fn named(cx: &Context<'_>, pick: impl Fn(&str) -> bool) -> FxHashSet<StringId> {
    cx.analysis.ops.keys().copied().filter(|name| pick(cx.trace.strings.get(*name))).collect()
}

/// The names of all device operations.
pub fn names<'a>(cx: &'a Context<'_>) -> impl Iterator<Item = &'a str> {
    cx.analysis.ops.keys().map(|name| cx.trace.strings.get(*name))
}

/// Mean of the samples of a counter that an engine keeps on a rank, whatever prefix it writes before the name.
pub fn mean_count(trace: &Trace, rank: &Rank, name: &str) -> Option<f64> {
    let mine = |c: &&CounterTrack| c.process == rank.process && trace.strings.get(c.name).ends_with(name);
    let values = trace.counters.iter().find(mine)?.value.iter().copied().filter(|v| v.is_finite());
    let (sum, n) = values.fold((0.0, 0usize), |(sum, n), v| (sum + v, n + 1));
    (n > 0).then(|| sum / n as f64)
}

/// Calls that begin while a step runs on the device.
pub fn calls<'a>(rank: &'a Rank, step: &Step) -> &'a [Call] {
    rank.timeline.calls_between(step.window.start, step.window.end)
}

/// Distinct graph launches whose work runs in a step.
pub fn graph_launches<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = &'a Call> {
    let launched = |op: &&DeviceOp| op.first_of_call;
    rank.ops_of(step)
        .iter()
        .filter(launched)
        .filter_map(|op| rank.timeline.call(op))
        .filter(|call| call.kind == HostCall::GraphLaunch)
}

/// Whether a bucket is host time under the label `name`.
pub fn is_host(analysis: &Analysis, bucket: Bucket, name: &str) -> bool {
    matches!(bucket, Bucket::Host(label) if analysis.host_labels.get(usize::from(label.0)).is_some_and(|l| l == name))
}

/// Whether a call constructs a graph or rebuilds a whole one. Setting the parameters of single nodes does not.
pub fn builds_graph(trace: &model::Trace, call: &Call) -> bool {
    match call.kind {
        HostCall::GraphCapture | HostCall::GraphInstantiate => true,
        HostCall::GraphUpdate => trace.strings.get(call.name).contains("GraphExecUpdate"),
        _ => false,
    }
}

/// When a rank's process constructed graphs: from the begin to the end of each capture, and each call; disjoint, in order
/// of time.
pub fn graph_builds(trace: &model::Trace, rank: &Rank) -> Vec<Span> {
    let calls = rank.timeline.calls.iter().filter(|c| builds_graph(trace, c)).map(|c| Span::new(c.start, c.end));
    merged(rank.timeline.capturing.iter().copied().chain(calls).collect())
}

/// The edits that let stretches of host threads take another time, ns.
pub fn host_takes(stretches: impl IntoIterator<Item = (TrackId, Span, Ns)>) -> Vec<Edit> {
    let mut threads: BTreeMap<TrackId, Vec<(Span, Ns)>> = BTreeMap::new();
    for (track, span, takes) in stretches {
        threads.entry(track).or_default().push((span, takes));
    }
    threads.into_iter().map(|(track, spans)| Edit::Host(track, spans)).collect()
}

/// The first rows of a series: what a fact names as its sample.
pub fn sample(rows: impl IntoIterator<Item = SliceId>) -> Vec<SliceId> {
    rows.into_iter().take(MOST_ROWS).collect()
}

/// Device rows that end the gaps of the class's steps in which `pick` finds something.
pub fn gap_rows<'a>(
    rank: &'a Rank,
    steps: impl Iterator<Item = &'a Step>,
    pick: impl Fn(&Gap, Bucket) -> bool,
) -> Vec<SliceId> {
    let hit = |g: &&Gap| g.parts.iter().any(|(b, _)| pick(g, *b));
    sample(steps.flat_map(|s| gaps(rank, s)).filter(hit).filter_map(|g| owner(rank, g)).map(|op| op.slice))
}

/// Spans sorted and merged where they meet.
pub fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => out.push(span),
        }
    }
    out
}

/// Where two series of disjoint spans in time order first can have anything in common: a short one is held against a long
/// one without reading what lies before it.
pub fn meet(a: &[Span], b: &[Span]) -> (usize, usize) {
    let (Some(first), Some(other)) = (a.first(), b.first()) else { return (a.len(), b.len()) };
    (a.partition_point(|s| s.end <= other.start), b.partition_point(|s| s.end <= first.start))
}

/// Time common to two series of disjoint spans in time order, ns.
pub fn overlap(a: &[Span], b: &[Span]) -> Ns {
    let (mut i, mut j) = meet(a, b);
    let mut common = 0;
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        common += x.clip(*y).len();
        if x.end <= y.end { i += 1 } else { j += 1 }
    }
    common
}

/// The host thread that launched most of a step's operations.
pub fn issuing_thread(rank: &Rank, step: &Step) -> Option<TrackId> {
    let mut counts: FxHashMap<TrackId, usize> = FxHashMap::default();
    for call in rank.ops_of(step).iter().filter_map(|op| rank.timeline.call(op)) {
        *counts.entry(call.track).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(t, n)| (*n, std::cmp::Reverse(*t))).map(|(t, _)| t)
}

/// Slices of one category that begin in a span, over all host threads of a rank.
pub fn host_slices<'a>(
    trace: &'a Trace,
    rank: &'a Rank,
    span: Span,
    category: Category,
) -> impl Iterator<Item = (SliceId, Span)> + 'a {
    rank.timeline.threads.iter().filter_map(|t| trace.lanes.get(t.0 as usize)).flat_map(move |lane| {
        let from = lane.start.partition_point(|s| *s < span.start);
        let to = lane.start.partition_point(|s| *s < span.end);
        (from..to)
            .filter(move |i| lane.category[*i] == category)
            .map(move |i| (lane.id(i), Span::new(lane.start[i], lane.end(i))))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spans(list: &[(Ns, Ns)]) -> Vec<Span> {
        list.iter().map(|(a, b)| Span::new(*a, *b)).collect()
    }

    /// A server that starts a thread for each request took the square of their number.
    #[test]
    fn the_issuing_thread_of_many_is_found_in_linear_time() {
        let mut script = crate::analysis::script::Script::default();
        for at in 0..100_000 {
            script.launch_from(100 + at, (10 * at, 10 * at + 2), "k", (10 * at + 3, 10 * at + 8));
        }
        script.launch_from(99_999, (2_000_000, 2_000_002), "k", (2_000_003, 2_000_008));
        let (_, analysis) = script.analyze();
        let rank = analysis.ranks.first().unwrap();
        let step = rank.steps.first().unwrap();
        let began = std::time::Instant::now();
        assert_eq!(issuing_thread(rank, step), rank.timeline.calls.last().map(|call| call.track));
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn overlap_counts_common_time_once() {
        let a = merged(spans(&[(30, 40), (0, 10), (5, 20)]));
        assert_eq!(a, spans(&[(0, 20), (30, 40)]));
        assert_eq!(overlap(&a, &spans(&[(10, 35), (38, 50)])), 10 + 5 + 2);
        assert_eq!(overlap(&a, &[]), 0);
    }

    proptest::proptest! {
        #[test]
        fn overlap_agrees_with_counting_each_nanosecond(
            a in proptest::collection::vec((0i64..60, 0i64..20), 0..8),
            b in proptest::collection::vec((0i64..60, 0i64..20), 0..8),
        ) {
            let make = |l: Vec<(i64, i64)>| merged(l.into_iter().map(|(s, d)| Span::new(s, s + d)).collect());
            let (a, b) = (make(a), make(b));
            let inside = |l: &[Span], t: Ns| l.iter().any(|s| s.contains(t));
            let counted = (0..100).filter(|t| inside(&a, *t) && inside(&b, *t)).count() as Ns;
            proptest::prop_assert_eq!(overlap(&a, &b), counted);
        }
    }
}
