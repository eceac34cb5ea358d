//! Operators that run on a CPU in the middle of a forward pass, whoever computes them: the host, or a CPU of the device.

use model::{SliceId, Span, Trace};
use rustc_hash::FxHashMap;

use super::{
    change,
    host_op::{self, HostOp, SHORTEST},
    reading,
};
use crate::{
    analysis::{AnchorKind, Class, CopyDir, DeviceOp, Edit, OpKind, Rank, Step},
    diagnose::rule::Context,
    platform::OpClass,
};

/// How many times faster a device kernel is at least; the catalogue says tens of times.
const FASTER: i64 = 10;

/// The fallbacks of a class's steps.
pub struct Fallbacks<'a> {
    trace: &'a Trace,
    rank: &'a Rank,
    on_host: FxHashMap<u32, Vec<HostOp>>,
}

impl<'a> Fallbacks<'a> {
    /// Looks for them.
    pub fn of(cx: &Context<'a>, rank: &'a Rank, class: &Class) -> Self {
        Self { trace: cx.trace, rank, on_host: host_op::by_step(cx, rank, class) }
    }

    /// Those of a step: the row where each begins, and what it takes, ns.
    pub fn of_step(&self, step: &Step) -> Vec<(SliceId, i64)> {
        let Self { trace, rank, on_host } = self;
        let accounted = reading::accounted(rank, step).filter(|(_, op, _)| is_slow(trace, op));
        let mut out: Vec<(SliceId, i64)> = accounted.map(|(_, op, x)| (op.slice, x.busy)).collect();
        out.extend(trips(rank, step).filter_map(|i| {
            let (down, up) = (rank.timeline.ops.get(i)?, rank.timeline.ops.get(i + 1)?);
            Some((down.slice, up.end - down.start))
        }));
        out.extend(on_host.get(&step.index).into_iter().flatten().map(|op| (op.slice, op.idle)));
        out
    }

    /// The change that does their work on the device.
    pub fn on_device(&self, class: &Class) -> Vec<Edit> {
        let mut edits = on_device(self.trace, self.rank, class);
        edits.extend(host_op::on_device(self.rank, self.on_host.values().flatten(), FASTER));
        edits
    }
}

/// The copies to the host that a copy back follows directly, between the first and the last matrix product of a step.
fn trips(rank: &Rank, step: &Step) -> impl Iterator<Item = usize> {
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

/// The work is done by a device kernel: an AI CPU operator takes a tenth of its time, and less hopefully; a round trip, the
/// waits inside it and what the host does between its copies are gone.
fn on_device(trace: &Trace, rank: &Rank, class: &Class) -> Vec<Edit> {
    let slow = change::ops(rank, class, |op| is_slow(trace, op));
    let tenth = slow.iter().filter_map(|o| Some((*o, rank.timeline.ops.get(*o as usize)?.dur() / FASTER))).collect();
    let trips: Vec<usize> = rank.steady_steps(class).flat_map(|s| trips(rank, s)).collect();
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

fn is_slow(trace: &Trace, op: &DeviceOp) -> bool {
    op.dur() > SHORTEST && op.kind == OpKind::Compute && on_ai_cpu(trace.strings.get(op.name))
}

fn on_ai_cpu(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    (name.contains("aicpu") || name.contains("ai_cpu")) && !name.contains("hccl") && !name.contains("hcom")
}
