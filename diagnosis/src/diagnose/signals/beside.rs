//! Work that runs beside a collective in one place of the model and before one in another. A capture does not say what an
//! operation reads; that the same kernel runs beside a collective elsewhere in the same steps shows that it needs none.

use model::{Ns, StringId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::reading;
use crate::{
    analysis::{Class, DeviceOp, OpKind, Rank, Step, median},
    platform::OpClass,
};

/// Operations before and after a collective among which those beside it are looked for; own value.
const NEAR: usize = 16;
/// Operations are alike if their durations differ by less than one part in so many; own value.
const ALIKE: Ns = 4;

/// An operation that runs before a collective and could run beside it.
pub struct Serial {
    /// Step it belongs to, by its index.
    pub step: u32,
    /// The operation, as an index into the timeline.
    pub work: u32,
    /// The collective, as an index into the timeline.
    pub collective: u32,
    /// Time that would be hidden, ns: the shorter of the two, less what the operation takes longer beside a collective.
    pub hidden: Ns,
}

/// What the steps of a class show.
#[derive(Default)]
pub struct Beside {
    /// Operations before collectives that run beside one elsewhere, in the order of the steps.
    pub serial: Vec<Serial>,
    /// Whether anything computes beside a collective at all.
    pub overlaps: bool,
}

/// Kernels that run beside collectives.
#[derive(Default)]
struct Shown {
    /// Their durations there, ns.
    durations: FxHashMap<StringId, Vec<Ns>>,
    /// What comes directly before such a collective on its queue: that is what the collective needs.
    needed: FxHashSet<StringId>,
    /// Kernels that run both before a collective and beside it: which of the two it needs cannot be told by name.
    ambiguous: FxHashSet<StringId>,
}

impl Beside {
    /// Of the steady steps of a class.
    pub fn of(rank: &Rank, class: &Class) -> Self {
        let shown = Shown::of(rank, class);
        let usual: FxHashMap<StringId, Ns> = shown
            .durations
            .iter()
            .filter(|(name, _)| !shown.ambiguous.contains(*name))
            .filter_map(|(name, ns)| Some((*name, median(ns.clone())?)))
            .collect();
        let serial = rank.steady_steps(class).flat_map(|step| {
            let (shown, usual) = (&shown, &usual);
            let exposed = collectives(rank, step).filter(|(.., busy)| *busy > 0);
            exposed.filter_map(move |(i, op, busy)| {
                let (work, before) = queued_before(rank, i)?;
                let usual = *usual.get(&before.name).filter(|_| beside(rank, i, op).next().is_none())?;
                let (_, needed) = queued_before(rank, work)?;
                let sums = needed.op.class() == OpClass::Matrix || shown.needed.contains(&needed.name);
                let alike = (usual - before.dur()).abs() < usual / ALIKE;
                let hidden = before.dur().min(busy) - (usual - before.dur()).max(0);
                let serial =
                    Serial { step: step.index, work: work as u32, collective: i as u32, hidden: hidden.max(0) };
                (sums && alike && hidden > 0).then_some(serial)
            })
        });
        Self { serial: serial.collect(), overlaps: !shown.durations.is_empty() }
    }

    /// Time of a step that would be hidden, ns.
    pub fn hidden(&self, step: &Step) -> Ns {
        let from = self.serial.partition_point(|s| s.step < step.index);
        let of = self.serial.get(from..).unwrap_or(&[]).iter().take_while(|s| s.step == step.index);
        of.map(|s| s.hidden).sum()
    }
}

impl Shown {
    fn of(rank: &Rank, class: &Class) -> Self {
        let mut shown = Self::default();
        for (i, op, _) in rank.steady_steps(class).flat_map(|step| collectives(rank, step)) {
            let names: FxHashMap<StringId, Ns> = beside(rank, i, op).map(|o| (o.name, o.dur())).collect();
            let before = queued_before(rank, i).map(|(_, before)| before.name);
            if let Some(before) = before.filter(|_| !names.is_empty()) {
                shown.needed.insert(before);
                shown.ambiguous.extend(names.contains_key(&before).then_some(before));
            }
            names.into_iter().for_each(|(name, ns)| shown.durations.entry(name).or_default().push(ns));
        }
        shown
    }
}

/// The collectives of a step with the time that each has to itself, ns.
fn collectives<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = (usize, &'a DeviceOp, Ns)> {
    reading::accounted(rank, step).filter(|(_, op, _)| op.kind == OpKind::Comm).map(|(i, op, own)| (i, op, own.busy))
}

/// Computation of other queues that lies for at least half of its time beside a collective.
fn beside<'a>(rank: &'a Rank, at: usize, collective: &'a DeviceOp) -> impl Iterator<Item = &'a DeviceOp> {
    let ops = &rank.timeline.ops;
    let near = ops.get(at.saturating_sub(NEAR)..ops.len().min(at + 1 + NEAR)).unwrap_or(&[]).iter();
    near.filter(|op| op.kind == OpKind::Compute && op.queue != collective.queue).filter(|op| {
        let common = op.end.min(collective.end) - op.start.max(collective.start);
        common > 0 && 2 * common >= op.dur()
    })
}

/// The computation directly before an operation on its queue.
fn queued_before(rank: &Rank, at: usize) -> Option<(usize, &DeviceOp)> {
    let ops = &rank.timeline.ops;
    let queue = ops.get(at)?.queue;
    let mut near = (at.saturating_sub(NEAR)..at).rev().filter_map(|i| Some((i, ops.get(i)?)));
    near.find(|(_, op)| op.queue == queue).filter(|(_, op)| op.kind == OpKind::Compute)
}
