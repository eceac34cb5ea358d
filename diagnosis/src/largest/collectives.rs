//! Collectives by kind and payload: how long, how fast, how far apart their ranks came, and what of them nothing hides.

use model::{CollectiveCall, Detail, Ns, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{
    device::Work,
    row::{Kind, Row, Sum, largest},
};
use crate::analysis::{Analysis, DeviceOp, OpKind, Rank};

/// By how much the first rank came before the last one, ns, by the operation of one rank.
pub(super) type Spread = FxHashMap<usize, Ns>;

/// The spread of every matched collective, rank by rank: its ranks leave together, so that they came as far apart as their
/// durations differ.
pub(super) fn spreads(analysis: &Analysis) -> Vec<Spread> {
    let mut out = vec![Spread::default(); analysis.ranks.len()];
    for instance in &analysis.job.instances {
        let dur = |member: &crate::analysis::job::Member| {
            Some(analysis.ranks.get(member.rank)?.timeline.ops.get(member.op as usize)?.dur())
        };
        let durations = instance.members.iter().filter_map(dur);
        let (least, most) = durations.fold((Ns::MAX, 0), |(least, most), ns| (ns.min(least), ns.max(most)));
        for member in &instance.members {
            if let Some(spread) = out.get_mut(member.rank) {
                spread.insert(member.op as usize, most.saturating_sub(least).max(0));
            }
        }
    }
    out
}

/// What moved, and how far apart the ranks came.
#[derive(Clone, Copy, Default)]
struct Moved {
    bytes: i64,
    time: Ns,
    matched: u64,
    apart: Ns,
    most: Ns,
}

/// What tells kinds of collectives apart: the operation as the source calls it, its payload in bytes, and where the source calls
/// it nothing its kernel.
type Key = (Option<StringId>, Option<i64>, Option<StringId>);

/// The collectives with the most time.
pub(super) fn of(trace: &Trace, rank: &Rank, work: &Work<'_>, spread: &Spread) -> Vec<Row> {
    let mut sums: FxHashMap<Key, Sum> = FxHashMap::default();
    let mut moved: FxHashMap<Key, Moved> = FxHashMap::default();
    for (index, op) in work.ops.iter().filter(|(_, op)| op.kind == OpKind::Comm) {
        let call = call(trace, op);
        let said = call.and_then(|call| call.op);
        let bytes = call.and_then(|call| call.bytes).filter(|bytes| *bytes > 0);
        let key = (said, bytes, Some(op.name).filter(|_| said.is_none()));
        sums.entry(key).or_default().add(op.dur(), (work.alone(op), work.stated(op)), op.slice);
        let moved = moved.entry(key).or_default();
        moved.bytes = moved.bytes.saturating_add(bytes.unwrap_or(0));
        moved.time = moved.time.saturating_add(transfer(rank, op));
        if let Some(apart) = spread.get(index) {
            moved.matched += 1;
            moved.apart = moved.apart.saturating_add(*apart);
            moved.most = moved.most.max(*apart);
        }
    }
    let text = |id: Option<StringId>| id.map_or("", |id| trace.strings.get(id));
    let operator = |kernel: Option<StringId>| {
        let known = rank.timeline.ops.iter().find(|op| Some(op.name) == kernel);
        known.map_or("", |op| op.op.name())
    };
    let name = |(said, _, kernel): Key| if said.is_some() { text(said) } else { text(kernel) };
    largest(
        sums,
        |key| (name(key), key.1),
        |key, sum| {
            let moved = moved.get(&key).copied().unwrap_or_default();
            let known = moved.bytes > 0 && moved.time > 0;
            Row {
                exposed: Some(sum.exposed),
                bytes: key.1,
                rate: known.then(|| moved.bytes as f64 * 1e9 / moved.time as f64),
                skew: (moved.matched > 0).then(|| (moved.apart / moved.matched as Ns, moved.most)),
                ..sum.row(Kind::Collective, name(key), operator(key.2))
            }
        },
    )
}

/// The time in which the bytes moved, ns: without the wait for the last rank where other ranks or the profiler show it, else all
/// of it.
fn transfer(rank: &Rank, op: &DeviceOp) -> Ns {
    let split = &rank.collectives;
    let known = split.matched.get(&op.slice).or_else(|| split.notified.transfer.get(&op.slice));
    known.map_or(op.dur(), |transfer| (*transfer).min(op.dur()))
}

fn call<'t>(trace: &'t Trace, op: &DeviceOp) -> Option<&'t CollectiveCall> {
    let (track, row) = trace.locate(op.slice)?;
    match trace.detail(trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Kernel(kernel) => kernel.collective.as_deref(),
        Detail::Collective(call) => Some(call),
        _ => None,
    }
}
