//! Which nanoseconds each finding speaks of: each has one primary claimant, the first finding that names it, and what others
//! say of the same time adds nothing.

use model::{Ns, Span, TrackId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    finding::Finding,
    signals::reading::{merged, overlap},
    verdict::Explained,
};
use crate::analysis::{Analysis, Bucket, Edit, Layer, OpKind, Rank};

/// Part of a finding's time that another one must name too for the two to speak of the same time; own value.
const SAME: f64 = 0.5;
/// Longest time of a host between two launches that belongs to the launching, ns (decided form of the verdict, what launch-bound
/// is).
const BETWEEN_LAUNCHES: Ns = 1_000_000;

/// Fills in what each finding explains beyond those before it, and says how much of each layer they explain together: of the
/// rank whose workload takes the longest.
pub fn settle(findings: &mut [Finding], analysis: &Analysis) -> Vec<Explained> {
    let workloads = analysis.ranks.iter().filter_map(|rank| Some(rank.workload(rank.main_class()?)));
    let counted = workloads.filter(|workload| workload.steady() > 0);
    let longest = counted.max_by_key(|workload| (workload.total(), std::cmp::Reverse(workload.rank.rank)));
    let Some(workload) = longest else {
        return Vec::new();
    };
    let rank = workload.rank;
    let steps = workload.steady() as Ns;
    let windows: Vec<Span> = workload.steps().map(|step| step.window).collect();
    let (mut taken, mut said): (Vec<Span>, Vec<(&'static str, Vec<Span>)>) = (Vec::new(), Vec::new());
    // Of a bound without a change only the amount is known, and the layer.
    let mut amounts: Vec<(Layer, Ns)> = Vec::new();
    for finding in findings.iter_mut().filter(|f| f.layer != Layer::Measurement) {
        let of_it = workload.classes.iter().any(|class| class.key == finding.class);
        if !of_it || !finding.ranks.contains(&rank.rank) {
            continue;
        }
        let changes = finding.changes.iter().filter(|(named, _)| *named == rank.rank);
        let mut spans = Vec::new();
        for edit in changes.clone().flat_map(|(_, change)| &change.edits) {
            claim(rank, edit, &mut spans);
        }
        let spans = within(merged(spans), &windows);
        let whole: Ns = spans.iter().map(|span| span.len()).sum();
        if whole == 0 {
            let most = (finding.estimate.from - finding.estimate.to_low).max(0);
            finding.explains = most;
            amounts.extend(changes.map(|(_, change)| (change.layer, most * steps)));
            continue;
        }
        let common = overlap(&spans, &taken);
        finding.explains = (whole - common) / steps;
        let as_much = |other: &Vec<Span>| overlap(&spans, other) as f64 >= SAME * whole as f64;
        finding.same_time_as = said.iter().find(|(_, other)| as_much(other)).map(|(rule, _)| *rule);
        taken = merged(taken.into_iter().chain(spans.iter().copied()).collect());
        said.push((finding.rule, spans));
    }
    let by_layer = layers(rank, &taken);
    let explained = [Layer::Operator, Layer::Runtime, Layer::Communication].into_iter().map(|layer| {
        let time = workload.per_step(|bucket| bucket.layer() == layer) * steps;
        let amount: Ns = amounts.iter().filter(|(of, _)| *of == layer).map(|(_, ns)| *ns).max().unwrap_or(0);
        let claimed = by_layer.iter().filter(|(of, _)| *of == layer).map(|(_, ns)| *ns).sum::<Ns>().max(amount);
        Explained { layer, share: if time > 0 { (claimed as f64 / time as f64).min(1.0) } else { 0.0 } }
    });
    explained.collect()
}

/// The stretches of a rank's time on the device that a finding's changes concern, disjoint and in order.
pub fn claimed(rank: &Rank, finding: &Finding) -> Vec<Span> {
    let mut spans = Vec::new();
    let changes = finding.changes.iter().filter(|(named, _)| *named == rank.rank);
    changes.flat_map(|(_, change)| &change.edits).for_each(|edit| claim(rank, edit, &mut spans));
    merged(spans)
}

/// The stretches of the device's time that a change concerns.
fn claim(rank: &Rank, edit: &Edit, out: &mut Vec<Span>) {
    let timeline = &rank.timeline;
    let mut busy = |ops: &mut dyn Iterator<Item = u32>| {
        out.extend(ops.filter_map(|op| timeline.ops.get(op as usize)).map(|op| Span::new(op.start, op.end)));
    };
    match edit {
        Edit::Remove(ops) | Edit::Aside(ops) => busy(&mut ops.iter().copied()),
        Edit::Resize(ops) | Edit::Transfer(ops) | Edit::Alone(ops) => busy(&mut ops.iter().map(|(op, _)| *op)),
        Edit::Fuse(groups) => busy(&mut groups.iter().flat_map(|(ops, _)| ops.iter().copied())),
        Edit::Graph(groups) => idle_before(rank, groups.iter().flatten().copied().collect(), out),
        Edit::Gap(ops) | Edit::Lag(ops) | Edit::Pace(ops) => {
            idle_before(rank, ops.iter().map(|(op, _)| *op).collect(), out)
        }
        Edit::Unblock(calls) => {
            let calls = calls.iter().filter_map(|call| timeline.calls.get(*call as usize));
            idle_during(rank, calls.map(|call| (call.track, Span::new(call.start, call.end))).collect(), out);
        }
        Edit::Host(track, spans) => idle_during(rank, spans.iter().map(|(span, _)| (*track, *span)).collect(), out),
        Edit::OverlapSteps(_) => out.extend(rank.gaps.iter().filter(|gap| gap.between_steps).map(|gap| gap.span)),
        Edit::Hoped(edit) => claim(rank, edit, out),
    }
}

/// The most that the changes of a finding could take away from one of `steps` steps, ns; `None` where only a bound is known. Where no
/// launch is linked, nothing goes along with an operation.
pub fn most(rank: &Rank, steps: Ns, finding: &Finding) -> Option<Ns> {
    let edits: Vec<&Edit> = finding.changes.iter().flat_map(|(_, change)| &change.edits).collect();
    if edits.is_empty() {
        return None;
    }
    let launching = launching(rank);
    let sum = edits.into_iter().map(|edit| taken(rank, &launching, edit)).fold(0, Ns::saturating_add);
    Some(sum / steps.max(1))
}

/// Time of the host that goes along with each call: from the end of its thread's call before, the call itself included.
fn launching(rank: &Rank) -> Vec<Ns> {
    let mut ends: FxHashMap<TrackId, Ns> = FxHashMap::default();
    let calls = rank.timeline.calls.iter().map(|call| {
        let before = ends.get(&call.track).copied().unwrap_or(call.start);
        ends.insert(call.track, before.max(call.end));
        (call.end - before).clamp(0, BETWEEN_LAUNCHES)
    });
    calls.collect()
}

/// The most that an edit could take away from the whole run, ns. What is not done takes its own time along, and either the idle
/// time before it or the host's time for its launch: of the two the device sees the longer one.
fn taken(rank: &Rank, launching: &[Ns], edit: &Edit) -> Ns {
    let op = |op: &u32| rank.timeline.ops.get(*op as usize).map_or(0, |op| op.dur());
    let idle = |op: &u32| rank.exclusive.get(*op as usize).map_or(0, |x| x.idle);
    let launch = |op: &u32| {
        let call = rank.timeline.ops.get(*op as usize).and_then(|op| op.call);
        call.and_then(|call| launching.get(call as usize)).copied().unwrap_or(0)
    };
    let linked = rank.timeline.unlinked < rank.timeline.ops.len() as u64;
    // A longer pause is not that of a launch.
    let own = |one: &u32| if linked { idle(one).min(BETWEEN_LAUNCHES).max(launch(one)) } else { 0 };
    let gone = |ops: &[u32]| ops.iter().map(|one| op(one) + own(one)).sum::<Ns>();
    match edit {
        Edit::Remove(ops) | Edit::Aside(ops) => gone(ops),
        Edit::Resize(ops) => ops.iter().map(|(one, to)| (op(one) - to).max(0)).sum(),
        Edit::Transfer(ops) | Edit::Alone(ops) => ops.iter().map(|(one, _)| op(one) + idle(one)).sum(),
        Edit::Fuse(groups) => groups.iter().map(|(ops, _)| gone(ops)).sum(),
        Edit::Gap(ops) | Edit::Lag(ops) | Edit::Pace(ops) => ops.iter().map(|(one, _)| idle(one)).sum(),
        // Work that is launched earlier moves every wait that follows.
        Edit::Graph(_) | Edit::Unblock(_) | Edit::OverlapSteps(_) => rank.gaps.iter().map(|gap| gap.span.len()).sum(),
        Edit::Host(_, spans) => spans.iter().map(|(span, takes)| (span.len() - takes).max(0)).sum(),
        Edit::Hoped(edit) => taken(rank, launching, edit),
    }
}

/// Idle time that ends with one of these operations.
fn idle_before(rank: &Rank, ops: FxHashSet<u32>, out: &mut Vec<Span>) {
    let ends = |gap: &&crate::analysis::idle::Gap| gap.owner.is_some_and(|op| ops.contains(&op));
    out.extend(rank.gaps.iter().filter(ends).map(|gap| gap.span));
}

/// Idle time during these stretches of the host's.
fn idle_during(rank: &Rank, spans: Vec<(TrackId, Span)>, out: &mut Vec<Span>) {
    let lag = rank.timeline.lag;
    let host = merged(spans.into_iter().map(|(_, span)| Span::new(span.start - lag, span.end - lag)).collect());
    // A change of many threads is as many edits: each looks at its own gaps alone.
    for span in host {
        let first = rank.gaps.partition_point(|gap| gap.span.end <= span.start);
        let here = rank.gaps.iter().skip(first).take_while(|gap| gap.span.start < span.end);
        out.extend(here.map(|gap| gap.span.clip(span)).filter(|span| !span.is_empty()));
    }
}

/// The parts of sorted spans that lie in sorted windows.
fn within(spans: Vec<Span>, windows: &[Span]) -> Vec<Span> {
    let (mut out, mut next) = (Vec::with_capacity(spans.len()), 0);
    for window in windows {
        while spans.get(next).is_some_and(|span| span.end <= window.start) {
            next += 1;
        }
        let here = spans.iter().skip(next).take_while(|span| span.start < window.end);
        out.extend(here.map(|span| span.clip(*window)).filter(|span| !span.is_empty()));
    }
    out
}

/// How much of sorted spans lies in each layer: idle time by what it is attributed to, busy time by what runs.
fn layers(rank: &Rank, spans: &[Span]) -> Vec<(Layer, Ns)> {
    let mut out: Vec<(Layer, Ns)> = Vec::new();
    let parts = rank.gaps.iter().flat_map(|gap| gap.parts.iter().map(|(bucket, span)| (bucket.layer(), *span)));
    for layer in Layer::ALL {
        let idle: Vec<Span> = parts.clone().filter(|(of, _)| *of == layer).map(|(_, span)| span).collect();
        out.push((layer, overlap(&merged(idle), spans)));
        let of = |kind: OpKind| match kind {
            OpKind::Compute => Layer::Operator,
            OpKind::Comm => Layer::Communication,
            OpKind::Copy(dir) => Bucket::Copy(dir).layer(),
            OpKind::Opaque => Layer::Measurement,
        };
        let busy = rank.timeline.ops.iter().filter(|op| of(op.kind) == layer);
        out.push((layer, overlap(&merged(busy.map(|op| Span::new(op.start, op.end)).collect()), spans)));
    }
    out
}
