//! The canonical sequence of a step (method §6.2): its device operations in the order of the critical queue, those of other
//! queues where the critical one joins them.

use model::{Category, Ns, StringId};
use rustc_hash::FxHashMap;

use super::symbol::{Slots, Symbol, number};
use crate::{
    analysis::{CopyDir, DeviceOp, OpKind, Step},
    compare::chosen::Chosen,
    platform::CanonicalOp,
};

/// Slices that are looked at backwards from a launch call to the operators around it; Python frames lie between them.
const NEAR: usize = 256;

/// The operations of one step in canonical order.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// What they are.
    pub symbols: Vec<Symbol>,
    /// Which they are, as indices into the timeline's operations.
    pub ops: Vec<usize>,
}

/// Reads the operations of a side's steps.
pub struct Reader<'a> {
    side: Chosen<'a>,
    slots: FxHashMap<StringId, Slots>,
    critical: Option<u32>,
}

impl<'a> Reader<'a> {
    /// For one side. Its critical queue is the one with the most exclusive time in the steps that count.
    pub fn new(side: Chosen<'a>) -> Self {
        let slots = side.analysis.ops.iter().map(|(name, op)| (*name, Slots::of(&op.slots))).collect();
        let mut busy: FxHashMap<u32, Ns> = FxHashMap::default();
        for step in side.steps() {
            let exclusive = side.rank.exclusive.get(step.ops.clone()).unwrap_or(&[]);
            for (op, exclusive) in side.rank.ops_of(step).iter().zip(exclusive) {
                *busy.entry(op.queue).or_default() += exclusive.busy;
            }
        }
        let critical = busy.into_iter().max_by_key(|(queue, ns)| (*ns, std::cmp::Reverse(*queue)));
        Self { side, slots, critical: critical.map(|(queue, _)| queue) }
    }

    /// What an operation is, without its caller; one that no pack knows is told by its name.
    fn symbol(&self, op: &DeviceOp) -> Symbol {
        let symbol = self.operator(op);
        let name = (symbol.op == CanonicalOp::Other).then(|| number(self.side.trace.strings.get(op.name)));
        Symbol { name, ..symbol }
    }

    fn operator(&self, op: &DeviceOp) -> Symbol {
        let known = |op: &DeviceOp| self.slots.get(&op.name).copied().filter(|slots| !slots.is_empty());
        match op.kind {
            OpKind::Compute => {
                Symbol { slots: known(op).unwrap_or(Slots::default().with(op.op)), ..Symbol::plain(op.op) }
            }
            OpKind::Comm if op.op == CanonicalOp::CommAllReduce => Symbol::plain(op.op),
            OpKind::Comm | OpKind::Copy(CopyDir::PtoP | CopyDir::Staging) => Symbol::plain(CanonicalOp::CommOther),
            OpKind::Copy(CopyDir::Memset) => Symbol::plain(CanonicalOp::Fill),
            // Inside the device's memory a copy engine does what a copy kernel does elsewhere.
            OpKind::Copy(CopyDir::DtoD) => Symbol::plain(CanonicalOp::Format),
            OpKind::Copy(_) => Symbol::plain(CanonicalOp::Copy),
            OpKind::Opaque => Symbol::plain(CanonicalOp::Other),
        }
    }

    /// The sequence of a step.
    pub fn read(&self, step: &Step) -> Sequence {
        let ops = self.side.rank.ops_of(step);
        // An operation of another queue stands before the first one of the critical queue that starts once it has ended.
        let place = |op: &DeviceOp| {
            let joins = Some(op.queue) != self.critical;
            (if joins { op.end } else { op.start }, !joins, op.queue, op.start)
        };
        let mut order: Vec<usize> = (0..ops.len()).collect();
        order.sort_by_key(|i| ops.get(*i).map(place));
        Sequence {
            symbols: order.iter().filter_map(|i| Some(self.symbol(ops.get(*i)?))).collect(),
            ops: order.into_iter().map(|i| step.ops.start + i).collect(),
        }
    }

    /// Adds to each symbol its name and the framework operator, the outermost one, that launched it.
    pub fn name(&self, sequence: &mut Sequence) {
        for (symbol, op) in sequence.symbols.iter_mut().zip(&sequence.ops) {
            let op = self.side.rank.timeline.ops.get(*op);
            symbol.call = op.and_then(|op| self.caller(op)).map(number);
            symbol.name = op.map(|op| number(self.side.trace.strings.get(op.name)));
        }
    }

    fn caller(&self, op: &DeviceOp) -> Option<&'a str> {
        // A graph is launched by one operator, which says nothing of its nodes.
        let call = self.side.rank.timeline.call(op).filter(|_| !op.in_graph)?;
        let trace = self.side.trace;
        let lane = trace.lanes.get(call.track.0 as usize)?;
        let before = lane.start.partition_point(|s| *s <= call.start);
        let around = |i: &usize| lane.category[*i] == Category::FrameworkOp && lane.end(*i) >= call.end;
        let outermost = (before.saturating_sub(NEAR)..before).find(around)?;
        Some(trace.strings.get(lane.name[outermost]))
    }
}
