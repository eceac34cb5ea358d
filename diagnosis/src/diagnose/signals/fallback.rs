//! Operators that run on a CPU in the middle of a forward pass, whoever computes them: the host, or a CPU of the device.

use model::{Category, SliceId, Span, StringId, Trace, TrackId};
use rustc_hash::FxHashMap;

use super::{
    change,
    host_op::{self, HostOp, SHORTEST},
    owned, reading,
};
use crate::{
    analysis::{AnchorKind, Call, Class, CopyDir, DeviceOp, Edit, OpKind, Rank, Step, owners},
    diagnose::rule::Context,
    platform::OpClass,
};

/// How many times faster a device kernel is at least; the catalogue says tens of times.
const FASTER: i64 = 10;

/// Operators of the framework that only move or read a tensor.
const MOVES: [&str; 12] = [
    "aten::to",
    "aten::_to_copy",
    "aten::copy_",
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::empty",
    "aten::empty_strided",
    "aten::empty_like",
    "aten::detach",
    "aten::is_pinned",
    "aten::pin_memory",
    "aten::resolve_conj",
];

/// The fallbacks of a class's steps.
pub struct Fallbacks<'a> {
    cx: &'a Context<'a>,
    rank: &'a Rank,
    on_host: FxHashMap<u32, Vec<HostOp>>,
    /// When the model's forward pass runs on each thread that records it.
    forward: FxHashMap<TrackId, Vec<Span>>,
}

impl<'a> Fallbacks<'a> {
    /// Looks for them.
    pub fn of(cx: &'a Context<'a>, rank: &'a Rank, class: &Class) -> Self {
        let any = rank.steady_steps(class).any(|step| trips(rank, step).next().is_some());
        let forward = if any { forward(cx, rank) } else { FxHashMap::default() };
        Self { cx, rank, on_host: host_op::by_step(cx, rank, class), forward }
    }

    /// Those of a step: the row where each begins, and what it takes, ns.
    pub fn of_step(&self, step: &Step) -> Vec<(SliceId, i64)> {
        let Self { cx, rank, on_host, .. } = self;
        let accounted = reading::accounted(rank, step).filter(|(_, op, _)| is_slow(cx.trace, op));
        let mut out: Vec<(SliceId, i64)> = accounted.map(|(_, op, x)| (op.slice, x.busy)).collect();
        out.extend(self.trips(step).filter_map(|i| {
            let (down, up) = (rank.timeline.ops.get(i)?, rank.timeline.ops.get(i + 1)?);
            Some((down.slice, up.end - down.start))
        }));
        out.extend(on_host.get(&step.index).into_iter().flatten().map(|op| (op.slice, op.idle)));
        out
    }

    /// Round trips of a step on which an operator is computed.
    fn trips<'s>(&'s self, step: &'s Step) -> impl Iterator<Item = usize> + 's {
        trips(self.rank, step).filter(|down| self.computes(*down))
    }

    /// Whether the host computes an operator between the copy to it and the copy back, as far as its operators are recorded: a
    /// framework's operator that is no copy, and nothing of the input pipeline; in one forward pass of the model, where those are.
    fn computes(&self, down: usize) -> bool {
        let Self { cx, rank, .. } = self;
        let call = |i: usize| rank.timeline.ops.get(i).and_then(|op| rank.timeline.call(op));
        let (Some(from), Some(to)) = (call(down), call(down + 1)) else { return false };
        let Some(lane) = cx.trace.lanes.get(from.track.0 as usize) else { return false };
        let gap = rank.timeline.ops.get(down + 1).map_or(0, |op| op.start);
        let gap = rank.gaps.get(rank.gaps.partition_point(|g| g.span.end < gap));
        let input = gap.is_some_and(|gap| gap.parts.iter().any(|(b, _)| owned::is_input(cx, rank.owner_of(gap), *b)));
        let pass = |call: &Call| {
            let spans = self.forward.get(&call.track)?;
            spans.get(spans.partition_point(|s| s.end <= call.start)).filter(|s| s.contains(call.start))
        };
        let outside = self.forward.contains_key(&from.track) && (pass(from).is_none() || pass(from) != pass(to));
        if input || outside || from.track != to.track {
            return false;
        }
        if !lane.category.contains(&Category::FrameworkOp) {
            return true;
        }
        let rows = lane.start.partition_point(|t| *t < from.end)..lane.start.partition_point(|t| *t < to.start);
        let is_op = |row: &usize| lane.category.get(*row) == Some(&Category::FrameworkOp) && lane.end(*row) <= to.start;
        let moves = |row: usize| lane.name.get(row).is_none_or(|name| MOVES.contains(&cx.trace.strings.get(*name)));
        rows.filter(is_op).any(|row| !moves(row))
    }

    /// The change that does their work on the device.
    pub fn on_device(&self, class: &Class) -> Vec<Edit> {
        let mut edits = self.moved(class);
        edits.extend(host_op::on_device(self.rank, self.on_host.values().flatten(), FASTER));
        edits
    }

    /// The work is done by a device kernel: an AI CPU operator takes a tenth of its time, and less hopefully; a round trip, the
    /// waits inside it and what the host does between its copies are gone.
    fn moved(&self, class: &Class) -> Vec<Edit> {
        let Self { cx, rank, .. } = self;
        let slow = change::ops(rank, class, |op| is_slow(cx.trace, op));
        let tenth =
            slow.iter().filter_map(|o| Some((*o, rank.timeline.ops.get(*o as usize)?.dur() / FASTER))).collect();
        let trips: Vec<usize> = rank.steady_steps(class).flat_map(|s| self.trips(s)).collect();
        let (mut waits, mut between) = (Vec::new(), Vec::new());
        for down in &trips {
            let launch = |i: usize| rank.timeline.ops.get(i).and_then(|op| op.call);
            if let (Some(from), Some(to)) = (launch(*down), launch(down + 1)) {
                let calls = rank.timeline.calls.get(from as usize..=to as usize).unwrap_or(&[]);
                waits.extend(calls.iter().enumerate().filter(|(_, c)| c.blocking).map(|(i, _)| from + i as u32));
                let ends =
                    calls.first().zip(calls.last()).filter(|(down, up)| down.track == up.track && down.end < up.start);
                between.extend(ends.map(|(down, up)| (down.track, Span::new(down.end, up.start))));
            }
        }
        let copies = trips.iter().flat_map(|i| [*i as u32, *i as u32 + 1]).collect();
        let gone = [Edit::Unblock(waits), Edit::Remove(copies)];
        let mut edits = vec![Edit::Resize(tenth), Edit::Hoped(Box::new(Edit::Remove(slow)))];
        edits.extend(change::shortened(between, 0).into_iter().chain(gone));
        edits
    }
}

/// When the forward pass of a model runs on the threads that launch.
fn forward(cx: &Context<'_>, rank: &Rank) -> FxHashMap<TrackId, Vec<Span>> {
    let mut known: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut out = FxHashMap::default();
    for track in &rank.timeline.threads {
        let Some(lane) = cx.trace.lanes.get(track.0 as usize) else { continue };
        let mut is = |row: &usize| {
            let is_host = !matches!(lane.category.get(*row), Some(Category::HostApi) | None);
            let name = lane.name.get(*row).copied().filter(|_| is_host);
            name.is_some_and(|n| *known.entry(n).or_insert_with(|| owners::is_forward(cx.trace.strings.get(n))))
        };
        let rows: Vec<usize> = (0..lane.len()).filter(|row| is(row)).collect();
        let spans = rows.into_iter().filter_map(|row| Some(Span::new(*lane.start.get(row)?, lane.end(row))));
        let spans: Vec<Span> = reading::merged(spans.collect());
        if !spans.is_empty() {
            out.insert(*track, spans);
        }
    }
    out
}

/// The copies to the host that a copy back follows directly, between the first and the last matrix product of a step.
fn trips<'a>(rank: &'a Rank, step: &'a Step) -> impl Iterator<Item = usize> + 'a {
    let ops = rank.ops_of(step);
    let matrix = |op: &DeviceOp| op.op.class() == OpClass::Matrix;
    // Without a mark of its own a step has no middle.
    let first = ops.iter().position(matrix).filter(|_| rank.anchor.kind != AnchorKind::WholeCapture);
    let (from, to) = (first.unwrap_or(0), first.and(ops.iter().rposition(matrix)).map_or(0, |last| last + 1));
    let begin = step.ops.start + from;
    let there_and_back = |pair: &[DeviceOp]| match pair {
        [down, up] => {
            let copies = down.kind == OpKind::Copy(CopyDir::DtoH) && up.kind == OpKind::Copy(CopyDir::HtoD);
            copies && !down.in_graph && up.end - down.start > SHORTEST
        }
        _ => false,
    };
    let pairs = ops.get(from..to).unwrap_or(&[]).windows(2).enumerate();
    pairs.filter(move |(_, pair)| there_and_back(pair)).map(move |(i, _)| begin + i)
}

fn is_slow(trace: &Trace, op: &DeviceOp) -> bool {
    op.dur() > SHORTEST && op.kind == OpKind::Compute && on_ai_cpu(trace.strings.get(op.name))
}

fn on_ai_cpu(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    (name.contains("aicpu") || name.contains("ai_cpu")) && !name.contains("hccl") && !name.contains("hcom")
}
