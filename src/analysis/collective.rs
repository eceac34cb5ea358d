//! Transfer and wait of collectives as far as one rank alone can tell (method §2.5, last case).

use model::{Detail, Ns, StringId, Trace};
use rustc_hash::FxHashMap;

use super::timeline::{DeviceOp, OpKind};

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
}

impl Split {
    /// Estimates the transfer of each kind as the 5th percentile of its durations.
    pub fn estimate(trace: &Trace, ops: &[DeviceOp]) -> Self {
        let mut durations: FxHashMap<Kind, Vec<Ns>> = FxHashMap::default();
        for op in ops.iter().filter(|op| op.kind == OpKind::Comm) {
            durations.entry(kind(trace, op)).or_default().push(op.dur());
        }
        let mut split = Self::default();
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

    /// Transfer part of an operation, which lies at its end: a rank waits first and transfers last.
    pub fn transfer_of(&self, trace: &Trace, op: &DeviceOp) -> Ns {
        self.transfer.get(&kind(trace, op)).map_or(op.dur(), |t| op.dur().min(*t))
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
