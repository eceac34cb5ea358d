//! Operators that the host computes itself in the middle of a forward pass, while the device waits for it.

use model::{Category, Ns, SliceId, Span, StringId, TrackId};
use rustc_hash::FxHashMap;

use super::{change, reading};
use crate::{
    analysis::{AnchorKind, Bucket, Call, Class, DeviceOp, Edit, OpKind, Rank, Step, idle::Gap},
    diagnose::rule::Context,
    platform::OpClass,
};

/// Shortest time that counts, ns: the Ascend advisor's limit for AI CPU operators. What is shorter is a matter of its wait.
pub const SHORTEST: Ns = 20_000;
/// Calls looked back upon for the wait before an operator.
const NEAR: usize = 16;

/// An operator on the host.
pub struct HostOp {
    /// Its row.
    pub slice: SliceId,
    /// Thread and time.
    pub track: TrackId,
    /// When the host computes.
    pub span: Span,
    /// The blocking call before it, as an index into the timeline's calls: what it reads has to be there.
    pub wait: u32,
    /// The operation that ends the gap, as an index into the timeline's operations.
    pub next: u32,
    /// What the device idles meanwhile, ns: it drains, the host computes, and it starts again.
    pub idle: Ns,
}

/// The host operators of the class's steps for which the device waits long, by the step's index.
pub fn by_step(cx: &Context<'_>, rank: &Rank, class: &Class) -> FxHashMap<u32, Vec<HostOp>> {
    let mut computes = Computes { cx, known: FxHashMap::default() };
    let mut out = FxHashMap::default();
    for step in rank.steady_steps(class) {
        let found = of_step(&mut computes, rank, step);
        if !found.is_empty() {
            out.insert(step.index, found);
        }
    }
    out
}

/// What would be without them: the device does the work in the time that the host took, and hopefully in `faster` times
/// less; nobody waits for it, and the host has other things to do.
pub fn on_device<'a>(rank: &Rank, found: impl Iterator<Item = &'a HostOp>, faster: Ns) -> Vec<Edit> {
    let (mut waits, mut spans, mut same, mut less) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for op in found {
        let Some(next) = rank.timeline.ops.get(op.next as usize) else { continue };
        waits.push(op.wait);
        spans.push((op.track, op.span));
        same.push((op.next, next.dur() + op.span.len()));
        less.push((op.next, next.dur() + op.span.len() / faster.max(1)));
    }
    let mut edits = vec![Edit::Unblock(waits), Edit::Resize(same), Edit::Hoped(Box::new(Edit::Resize(less)))];
    edits.extend(change::shortened(spans, 0));
    edits
}

/// Which names compute what a device has kernels for. Work on elements, indices and layouts of small tensors is the
/// host's own everywhere.
struct Computes<'a> {
    cx: &'a Context<'a>,
    known: FxHashMap<StringId, bool>,
}

impl Computes<'_> {
    fn name(&mut self, name: StringId) -> bool {
        let Self { cx, known } = self;
        *known.entry(name).or_insert_with(|| {
            let class = cx.packs.op(cx.trace.strings.get(name)).op.class();
            matches!(
                class,
                OpClass::Matrix | OpClass::Attention | OpClass::Norm | OpClass::Rope | OpClass::Act | OpClass::MoeRoute
            )
        })
    }
}

fn of_step(computes: &mut Computes<'_>, rank: &Rank, step: &Step) -> Vec<HostOp> {
    let ops = rank.ops_of(step);
    let is_matrix = |op: &&DeviceOp| op.op.class() == OpClass::Matrix;
    // Without a mark of its own a step has no middle.
    let first = ops.iter().find(is_matrix).filter(|_| rank.anchor.kind != AnchorKind::WholeCapture);
    let Some((first, last)) = first.zip(ops.iter().rfind(is_matrix)) else { return Vec::new() };
    let middle = Span::new(first.start, last.start);
    let gaps = reading::gaps(rank, step).iter();
    let inside = gaps.filter(|g| g.after_sync && middle.start <= g.span.start && g.span.end <= middle.end);
    inside.filter(|gap| gap.span.len() > SHORTEST).filter_map(|gap| of_gap(computes, rank, gap)).collect()
}

/// The longest operator that the host computes between the wait that drained the device and the launch that ends the gap.
fn of_gap(computes: &mut Computes<'_>, rank: &Rank, gap: &Gap) -> Option<HostOp> {
    if !gap.parts.iter().any(|(bucket, _)| matches!(bucket, Bucket::Host(_))) {
        return None;
    }
    let next = gap.owner?;
    // What a copy brings back belongs to a round trip.
    let op = rank.timeline.ops.get(next as usize).filter(|op| op.kind == OpKind::Compute)?;
    let call = rank.timeline.call(op)?;
    let calls = &rank.timeline.calls;
    let before = calls.partition_point(|c| c.start < call.start);
    let is_wait = |(_, c): &(usize, &Call)| c.track == call.track && c.blocking;
    let (wait, waited) = calls.get(..before)?.iter().enumerate().rev().take(NEAR).find(is_wait)?;
    let lane = computes.cx.trace.lanes.get(call.track.0 as usize)?;
    let (from, to) = (lane.start.partition_point(|t| *t < waited.end), lane.start.partition_point(|t| *t < call.start));
    let launches = |span: Span| {
        calls
            .get(wait..before)
            .is_some_and(|calls| calls.iter().any(|c| c.ops > 0 && span.start <= c.start && c.start < span.end))
    };
    let own = (from..to).filter(|i| lane.category.get(*i) == Some(&Category::FrameworkOp)).filter_map(|i| {
        let span = Span::new(*lane.start.get(i)?, lane.end(i));
        let alone = span.end <= call.start && !launches(span);
        (alone && computes.name(*lane.name.get(i)?)).then_some((lane.id(i), span))
    });
    let (slice, span) = own.max_by_key(|(_, span)| span.len())?;
    Some(HostOp { slice, track: call.track, span, wait: wait as u32, next, idle: gap.span.len() })
}
