//! How fast collectives move what they say they move: bus bandwidth as nccl-tests counts it, beside the published link.

use model::{Detail, Ns, StringId};
use rustc_hash::FxHashMap;

use super::rates::{Bound, PeakSource, Rate, RateUnit};
use crate::{
    analysis::{Class, DeviceOp, OpKind, Rank},
    diagnose::{rule::Context, signals::ceilings::Ceilings},
    platform::{CanonicalOp, bus_factor, is_all_reduce},
};

/// Bytes from which a collective is more than its start; own value.
const LEAST: i64 = 1 << 20;

/// Collectives of one kernel, name, payload and group.
type Key = (StringId, StringId, i64, u32);

/// The rates of a class's collectives whose size is known.
pub(super) fn of(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Vec<Rate> {
    let mut groups: FxHashMap<Key, (f64, Ns, u64)> = FxHashMap::default();
    for step in rank.steady_steps(class) {
        for op in rank.ops_of(step).iter().filter(|op| op.kind == OpKind::Comm && op.dur() > 0) {
            let Some((key, factor)) = called(cx, op) else { continue };
            let sums = groups.entry(key).or_insert((factor, 0, 0));
            // Waiting for the others is no transfer.
            sums.1 = sums.1.saturating_add(rank.collectives.transfer_of(cx.trace, op).max(1));
            sums.2 += 1;
        }
    }
    let link = ceilings.chip().and_then(|chip| chip.link_gb_per_s).map(|link| f64::from(link) * 1e9);
    let steps = class.steady.max(1) as Ns;
    let rate = |((name, called, bytes, ranks), (factor, time, count)): (Key, (f64, Ns, u64))| {
        let ns = time as f64 / count as f64;
        let kernel = cx.trace.strings.get(name).to_owned();
        let called = cx.trace.strings.get(called);
        let operator = if is_all_reduce(called) { CanonicalOp::CommAllReduce } else { CanonicalOp::CommOther };
        Rate {
            operator: operator.name(),
            slot: None,
            // One kernel may serve all collectives: then the call says which it was.
            shape: if called == kernel {
                format!("{bytes} B, {ranks} ranks")
            } else {
                format!("{called}, {bytes} B, {ranks} ranks")
            },
            kernel,
            dtype: None,
            count,
            ns,
            per_step: time / steps,
            flops: 0.0,
            bytes: bytes as f64,
            operands: 0.0,
            bound_by: link.map(|_| Bound::Link),
            achieved: factor * bytes as f64 / ns * 1e9,
            unit: RateUnit::Bytes,
            peak: link,
            peak_source: link.map(|_| PeakSource::Published),
            why: Vec::new(),
        }
    };
    groups.into_iter().map(rate).collect()
}

fn called(cx: &Context<'_>, op: &DeviceOp) -> Option<(Key, f64)> {
    let (track, row) = cx.trace.locate(op.slice)?;
    let Some(Detail::Kernel(kernel)) = cx.trace.detail(cx.trace.lanes.get(track.0 as usize)?, row) else { return None };
    let call = kernel.collective.as_ref()?;
    let (bytes, ranks) = (call.bytes.filter(|bytes| *bytes >= LEAST)?, call.group_size?);
    let name = call.op.unwrap_or(op.name);
    Some(((op.name, name, bytes, ranks), bus_factor(cx.trace.strings.get(name), ranks)?))
}
