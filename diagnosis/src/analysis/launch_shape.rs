//! How work is cut for the device: blocks of a launch, and the rows that they show a step to work on.

use model::{Detail, Trace};

use super::{
    step_facts::Launched,
    timeline::{DeviceOp, OpKind},
};
use crate::platform::{CanonicalOp, OpClass, Packs};

/// Blocks that a kernel was launched with, if the source says so.
pub fn blocks(trace: &Trace, op: &DeviceOp) -> Option<u64> {
    let (track, row) = trace.locate(op.slice)?;
    let Some(Detail::Kernel(kernel)) = trace.detail(trace.lanes.get(track.0 as usize)?, row) else { return None };
    let blocks = kernel.grid?.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
    (blocks > 0).then_some(blocks)
}

/// Whether a launch on the capture's devices says how many cores it takes, not into how many blocks its work is cut.
pub fn names_cores(trace: &Trace, packs: &Packs) -> bool {
    let vendors = trace.devices.iter().filter_map(|device| device.vendor);
    let mut known = vendors.filter_map(|vendor| packs.vendor(trace.strings.get(vendor)));
    known.any(|vendor| vendor.launches_name_cores)
}

/// What the launches of a step show of its work.
pub(super) fn launched(trace: &Trace, ops: &[DeviceOp]) -> Launched {
    Launched { rows: rows(trace, ops), work: work(trace, ops) }
}

/// Tokens and sequences of a step, as far as its launches tell them: the cache is written with a block per token, and of each
/// sequence one row is sampled. One token is one sequence.
fn work(trace: &Trace, ops: &[DeviceOp]) -> Option<(u64, u64)> {
    let tokens = common_blocks(trace, ops, |op| op.op == CanonicalOp::KvWrite)?;
    if tokens == 1 {
        return Some((1, 1));
    }
    let samples = ops.iter().filter(|op| op.kind == OpKind::Compute && op.op == CanonicalOp::Sample);
    let sequences = samples.filter_map(|op| blocks(trace, op)).filter(|blocks| *blocks <= tokens).max()?;
    Some((tokens, sequences))
}

/// Rows that the kernels of a step work on, padding included, as their launches show it: cache writes and norms give each
/// row a block. `None` unless all of them were launched with the same number of blocks, and where no cache is written. Of
/// devices whose launches name cores instead ([`names_cores`]) it says nothing.
pub fn rows(trace: &Trace, ops: &[DeviceOp]) -> Option<u64> {
    let written = common_blocks(trace, ops, |op| op.op == CanonicalOp::KvWrite)?;
    (norm_rows(trace, ops)? == written).then_some(written)
}

/// Blocks that all norms of a step were launched with: its rows, where norms take one block per row.
pub fn norm_rows(trace: &Trace, ops: &[DeviceOp]) -> Option<u64> {
    common_blocks(trace, ops, |op| op.op.class() == OpClass::Norm)
}

/// Blocks that all the compute operations that `pick` takes were launched with.
fn common_blocks(trace: &Trace, ops: &[DeviceOp], pick: fn(&DeviceOp) -> bool) -> Option<u64> {
    let mut found = ops.iter().filter(|op| op.kind == OpKind::Compute && pick(op));
    let first = blocks(trace, found.next()?)?;
    found.all(|op| blocks(trace, op) == Some(first)).then_some(first)
}
