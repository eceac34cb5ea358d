//! Transfer and wait of collectives: from the instances matched across ranks, and where there is none as far as one rank
//! alone can tell (method §2.5).

use model::{Detail, Ns, SliceId, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{
    notify::Notified,
    timeline::{DeviceOp, OpKind, Timeline},
};

/// What makes two collectives comparable: the kernel's name and the payload.
pub type Kind = (StringId, Option<i64>);

/// Instances of one kind from which a transfer time may be estimated; with fewer the fast tail is not known.
pub const MIN_INSTANCES: usize = 50;

/// How collectives of one rank were split.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// Collectives seen.
    pub instances: u64,
    /// Of those, instances whose transfer was estimated from the fast ones of the same kind (low confidence); the rest
    /// count as transfer altogether.
    pub estimated: u64,
    /// Estimated transfer by kind, ns.
    pub transfer: FxHashMap<Kind, Ns>,
    /// What the source itself says of the inside of collectives.
    pub notified: Notified,
    /// Transfer of collectives of which other ranks recorded their part, ns.
    pub matched: FxHashMap<SliceId, Ns>,
}

impl Split {
    /// Takes the transfers that the source reports, and estimates those of each kind as the 5th percentile of its
    /// durations.
    pub fn estimate(trace: &Trace, timeline: &Timeline) -> Self {
        let ops = &timeline.ops;
        let mut durations: FxHashMap<Kind, Vec<Ns>> = FxHashMap::default();
        for op in ops.iter().filter(|op| op.kind == OpKind::Comm) {
            durations.entry(kind(trace, op)).or_default().push(op.dur());
        }
        let mut split = Self { notified: Notified::of(trace, timeline), ..Self::default() };
        for (kind, mut durations) in durations {
            split.instances += durations.len() as u64;
            if durations.len() >= MIN_INSTANCES {
                split.estimated += durations.len() as u64;
                let rank = durations.len() / 20;
                split.transfer.insert(kind, *durations.select_nth_unstable(rank).1);
            }
        }
        split
    }

    /// Notes the transfer of an operation that was matched across ranks; `measured` if all ranks of its group were seen.
    pub(super) fn settle(&mut self, trace: &Trace, op: &DeviceOp, transfer: Ns, measured: bool) {
        if measured && self.estimate_of(trace, op).is_some() {
            self.estimated = self.estimated.saturating_sub(1);
        }
        self.matched.insert(op.slice, transfer);
    }

    /// Whether the border between transfer and wait of any collective is modelled: neither the ranks that took part nor the
    /// profiler show it.
    pub fn is_modelled(&self) -> bool {
        let known = self.matched.len().max(self.notified.transfer.len());
        u64::try_from(known).is_ok_and(|known| known < self.instances)
    }

    /// Transfer that this rank alone would assume, ns; `None` where the source does not report it and there are too few of
    /// the kind.
    pub(super) fn estimate_of(&self, trace: &Trace, op: &DeviceOp) -> Option<Ns> {
        self.reported(op).or_else(|| self.transfer.get(&kind(trace, op)).copied())
    }

    /// Transfer that the source reports, ns.
    pub(super) fn reported(&self, op: &DeviceOp) -> Option<Ns> {
        self.notified.transfer.get(&op.slice).copied()
    }

    /// Transfer part of an operation, which lies at its end: a rank waits first and transfers last.
    pub fn transfer_of(&self, trace: &Trace, op: &DeviceOp) -> Ns {
        let known = self.matched.get(&op.slice).copied();
        known.or_else(|| self.estimate_of(trace, op)).map_or(op.dur(), |t| op.dur().min(t))
    }
}

fn kind(trace: &Trace, op: &DeviceOp) -> Kind {
    let bytes =
        trace.locate(op.slice).and_then(|(track, row)| match trace.detail(&trace.lanes[track.0 as usize], row) {
            Some(Detail::Kernel(k)) => k.collective.as_ref().and_then(|c| c.bytes),
            Some(Detail::Collective(c)) => c.bytes,
            _ => None,
        });
    (op.name, bytes)
}
