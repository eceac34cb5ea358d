//! Changes to a run that several rules propose, in terms of the run's own operations, calls and stretches of time.

use std::collections::BTreeMap;

use model::{Ns, Span, TrackId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{launching, reading};
use crate::{
    analysis::{Analysis, Bucket, Call, Class, CopyDir, DeviceOp, Edit, OpKind, Rank, Step, idle::Gap},
    diagnose::{Context, Finding, Intervention, Outcome},
    platform::{OpClass, Stage},
};

/// Operations of the class's steps that `pick` takes, as indices into the timeline.
pub fn ops(rank: &Rank, class: &Class, pick: impl Fn(&DeviceOp) -> bool) -> Vec<u32> {
    let of = |s: &Step| s.ops.start..s.ops.start + rank.ops_of(s).len();
    let taken = |i: &usize| rank.timeline.ops.get(*i).is_some_and(&pick);
    rank.steady_steps(class).flat_map(of).filter(taken).map(|i| i as u32).collect()
}

/// Calls that begin while the class's steps run on the device and that `pick` takes, as indices into the timeline.
pub fn calls(rank: &Rank, class: &Class, pick: impl Fn(&Call) -> bool) -> Vec<u32> {
    let calls = &rank.timeline.calls;
    let mut out = Vec::new();
    for step in rank.steady_steps(class) {
        let from = calls.partition_point(|c| c.start < step.window.start);
        let to = calls.partition_point(|c| c.start < step.window.end);
        out.extend((from..to).filter(|i| calls.get(*i).is_some_and(&pick)).map(|i| i as u32));
    }
    out
}

/// The time of calls that `pick` takes is not spent.
pub fn without_calls(rank: &Rank, class: &Class, pick: impl Fn(&Call) -> bool) -> Vec<Edit> {
    let picked = calls(rank, class, pick);
    let calls = picked.iter().filter_map(|c| rank.timeline.calls.get(*c as usize));
    shortened(calls.map(|c| (c.track, Span::new(c.start, c.end))), 0)
}

/// The host's time in the parts of gaps that `pick` takes is only `percent` of what it was.
pub fn host_time<'a>(
    rank: &'a Rank,
    steps: impl Iterator<Item = &'a Step>,
    pick: impl Fn(&Gap, Bucket) -> bool,
    percent: Ns,
) -> Vec<Edit> {
    let mut spans = Vec::new();
    for gap in steps.flat_map(|s| reading::gaps(rank, s)) {
        let Some(call) = reading::owner(rank, gap).and_then(|op| rank.timeline.call(op)) else { continue };
        spans.extend(gap.parts.iter().filter(|(b, _)| pick(gap, *b)).map(|(_, span)| (call.track, *span)));
    }
    shortened(spans, percent)
}

/// The steps lose what their host does longer, bucket by bucket, than `usual` says. Cautiously a step comes down to the first
/// of the two times of a bucket, hopefully to the second, which is no longer.
pub fn steadied<'a>(
    rank: &'a Rank,
    steps: impl Iterator<Item = &'a Step>,
    usual: &BTreeMap<Bucket, (Ns, Ns)>,
) -> Vec<Edit> {
    let (mut certain, mut more) = (Vec::new(), Vec::new());
    for step in steps {
        for (bucket, (usual, least)) in usual {
            let now = reading::idle(rank, step, |_, b| b == *bucket);
            let (first, second) = ((now - usual).max(0), now.min(*usual) - now.min(*least));
            for gap in reading::gaps(rank, step).iter().filter(|_| first + second > 0) {
                let Some(call) = reading::owner(rank, gap).and_then(|op| rank.timeline.call(op)) else { continue };
                for (_, span) in gap.parts.iter().filter(|(b, _)| b == bucket) {
                    let without = |ns: Ns| span.len() - scale(span.len(), ns, now);
                    certain.push((call.track, *span, without(first)));
                    more.push((call.track, *span, without(second)));
                }
            }
        }
    }
    reading::host_takes(certain).into_iter().chain(hoped(reading::host_takes(more))).collect()
}

/// `value × part / whole`, towards zero.
pub fn scale(value: Ns, part: Ns, whole: Ns) -> Ns {
    Ns::try_from(i128::from(value) * i128::from(part) / i128::from(whole.max(1))).unwrap_or(value)
}

/// Stretches of threads take only `percent` of their time. Each nanosecond counts once.
pub fn shortened(spans: impl IntoIterator<Item = (TrackId, Span)>, percent: Ns) -> Vec<Edit> {
    let mut tracks: FxHashMap<TrackId, Vec<Span>> = FxHashMap::default();
    for (track, span) in spans {
        tracks.entry(track).or_default().push(span);
    }
    let mut edits: Vec<(TrackId, Vec<Span>)> =
        tracks.into_iter().map(|(track, spans)| (track, reading::merged(spans))).collect();
    edits.sort_by_key(|(track, _)| *track);
    let less = |spans: Vec<Span>| spans.into_iter().map(|s| (s, s.len().saturating_mul(percent) / 100)).collect();
    edits.into_iter().map(|(track, spans)| Edit::Host(track, less(spans))).collect()
}

/// What may come on top of a change.
pub fn hoped(edits: Vec<Edit>) -> impl Iterator<Item = Edit> {
    edits.into_iter().map(|edit| Edit::Hoped(Box::new(edit)))
}

/// A setting of the engine changes on all ranks of a job: those of the same class on which the rule found nothing, because
/// they wait for the slowest one, are changed with it, without being named.
pub fn job_wide(cx: &Context<'_>, found: Vec<Finding>, edits: impl Fn(&Rank, &Class) -> Vec<Edit>) -> Outcome {
    let named: FxHashSet<(u32, String)> = found
        .iter()
        .map(|f| (f.ranks.first().copied(), f.class.clone()))
        .filter_map(|(rank, class)| Some((rank?, class)))
        .collect();
    let mut found = found;
    let mut settled: FxHashSet<String> = FxHashSet::default();
    for f in &mut found {
        if !settled.insert(f.class.clone()) {
            continue;
        }
        let others = cx.main_classes().filter(|(r, c)| c.key == f.class && !named.contains(&(r.rank, c.key.clone())));
        f.changes
            .extend(others.map(|(r, c)| (r.rank, Intervention { removes: 0, layer: f.layer, edits: edits(r, c) })));
    }
    found.into_iter().collect()
}

/// Each step's operations up to the last matrix product, which engines of inference leave outside as the head of the model, become
/// one graph. Copies from and to the host and to peers stay outside; those within the device and fills are nodes. A pause that is
/// no matter of launching parts two graphs: what the host does in it comes before the second.
pub fn forward_graph(analysis: &Analysis, rank: &Rank, class: &Class) -> Edit {
    let parts = |step: &Step| {
        let is_pause = |gap: &&Gap| gap.span.len() >= reading::LONG || launching::is_other_work(analysis, gap);
        let pauses = reading::gaps(rank, step).iter().filter(is_pause);
        let pauses: FxHashSet<u32> = pauses.filter_map(|gap| gap.owner).collect();
        let ops = rank.ops_of(step);
        let head = ops.iter().rposition(|op| op.op.class() == OpClass::Matrix);
        let head = head.filter(|i| *i > 1 && class.stage != Stage::Train);
        let crosses = |op: &DeviceOp| match op.kind {
            OpKind::Copy(dir) => !matches!(dir, CopyDir::DtoD | CopyDir::Memset),
            _ => false,
        };
        let inside = |op: &DeviceOp| !crosses(op) && op.call.is_some();
        let (mut groups, mut parted) = (Vec::<Vec<u32>>::new(), true);
        for (i, op) in ops.iter().enumerate().take(head.unwrap_or(ops.len())) {
            let index = (step.ops.start + i) as u32;
            // In training the host looks at a result in the middle of a step, and goes on by it.
            let asked = class.stage == Stage::Train && op.kind == OpKind::Copy(CopyDir::DtoH);
            parted |= pauses.contains(&index) || asked;
            match groups.last_mut().filter(|_| !parted) {
                Some(group) if inside(op) => group.push(index),
                None if inside(op) => {
                    groups.push(vec![index]);
                    parted = false;
                }
                _ => {}
            }
        }
        groups
    };
    Edit::Graph(rank.steady_steps(class).flat_map(parts).filter(|g| g.len() > 1).collect())
}
