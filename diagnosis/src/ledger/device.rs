//! Device work of one rank as costs select it: each counted operation with its launch, its neighbours on the queue, and the time that
//! is its own.

use model::{Detail, Ns, StringId, Trace};
use rustc_hash::FxHashMap;

use crate::{
    analysis::{CopyDir, OpKind, Rank, Step},
    platform::{CanonicalOp, OpClass},
};

/// One counted operation.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Position among the rank's operations.
    pub at: u32,
    /// Name.
    pub name: StringId,
    /// Canonical operator.
    pub op: CanonicalOp,
    /// Kind.
    pub kind: OpKind,
    /// Start, ns.
    pub start: Ns,
    /// Duration, ns.
    pub dur: Ns,
    /// Time in which nothing of higher precedence runs, and its share of what runs with it, ns.
    pub own: Ns,
    /// Whether a graph replay launched it.
    pub in_graph: bool,
    /// Blocks, if recorded.
    pub blocks: Option<u64>,
    /// Threads of a block, if recorded.
    pub threads: Option<u64>,
    /// Operation before it and after it on its queue.
    pub neighbours: (Option<StringId>, Option<StringId>),
    /// Bytes of a copy, if recorded.
    pub bytes: Option<i64>,
    /// Kind of the memory of a copy that is not the device's, if recorded.
    pub memory: Option<StringId>,
}

impl Work {
    /// Whether it computes.
    pub fn is_kernel(&self) -> bool {
        self.kind == OpKind::Compute
    }

    /// Direction of a copy or fill.
    pub fn direction(&self) -> Option<CopyDir> {
        match self.kind {
            OpKind::Copy(direction) => Some(direction),
            _ => None,
        }
    }

    /// Whether it is attention, whose time grows with the context.
    pub fn is_attention(&self) -> bool {
        self.op.class() == OpClass::Attention
    }
}

/// The operations of `steps`, in order of start.
pub fn of(trace: &Trace, rank: &Rank, steps: &[&Step]) -> Vec<Work> {
    let ops = &rank.timeline.ops;
    let mut last: FxHashMap<u32, usize> = FxHashMap::default();
    let mut out: Vec<Work> = Vec::new();
    for at in steps.iter().flat_map(|step| step.ops.clone()) {
        let Some(op) = ops.get(at) else { continue };
        let (mut blocks, mut threads, mut bytes, mut memory) = (None, None, None, None);
        let located = trace.locate(op.slice);
        let detail = located.and_then(|(track, row)| trace.detail(trace.lanes.get(track.0 as usize)?, row));
        match detail {
            Some(Detail::Kernel(kernel)) => {
                let product = |of: [u32; 3]| of.iter().fold(1, |n: u64, m| n.saturating_mul((*m).max(1).into()));
                blocks = kernel.grid.map(product);
                threads = kernel.block.map(product);
                bytes = kernel.collective.as_ref().and_then(|call| call.bytes);
            }
            Some(Detail::Copy(copy)) => {
                bytes = copy.bytes;
                let on_host = |name: &StringId| !trace.strings.get(*name).eq_ignore_ascii_case("device");
                memory = [copy.src, copy.dst].into_iter().flatten().find(on_host);
            }
            Some(Detail::Collective(call)) => bytes = call.bytes,
            _ => {}
        }
        let before = last.insert(op.queue, out.len());
        if let Some(earlier) = before.and_then(|i| out.get_mut(i)) {
            earlier.neighbours.1 = Some(op.name);
        }
        out.push(Work {
            at: at as u32,
            name: op.name,
            op: op.op,
            kind: op.kind,
            start: op.start,
            dur: op.dur(),
            own: rank.exclusive.get(at).map_or(0, |own| own.busy),
            in_graph: op.in_graph,
            blocks,
            threads,
            neighbours: (before.and_then(|i| out.get(i)).map(|earlier| earlier.name), None),
            bytes,
            memory,
        });
    }
    out
}
