//! How the model is divided among ranks, by what they exchange in a step.

use model::{Detail, Trace};

use super::{By, Inferred, View, Why, one};
use crate::{
    analysis::{CopyDir, DeviceOp, OpKind},
    platform::{CanonicalOp, OpClass},
};

/// Share of the device time whose names must be known before it is sure that no collective is among the rest: own value.
const KNOWN: f64 = 0.95;

pub(super) fn infer(view: &View<'_>, inferred: &mut Inferred) {
    let exchanges = |op: &&DeviceOp| matches!(op.kind, OpKind::Comm | OpKind::Copy(CopyDir::PtoP));
    if view.ops().any(|op| exchanges(&op)) {
        inferred.put("parallel.tp", By::Collectives, tensor_parallel(view));
        return;
    }
    let hidden =
        view.ops().any(|op| op.kind == OpKind::Opaque) || view.analysis.op_coverage.is_none_or(|share| share < KNOWN);
    // Nothing divides a step among ranks that exchange nothing in it.
    for key in ["parallel.tp", "parallel.pp", "parallel.ep"] {
        inferred.put(key, By::Collectives, if hidden { Err(Why::Hidden) } else { Ok(1) });
    }
}

/// Ranks of the all-reduces, of which tensor parallelism has one in every layer and nothing else of a decode step has.
fn tensor_parallel(view: &View<'_>) -> Result<u32, Why> {
    let reduces = || view.ops().filter(|op| op.kind == OpKind::Comm && op.op == CanonicalOp::CommAllReduce);
    let attention = view.ops().filter(|op| op.op.class() == OpClass::Attention).count();
    if attention == 0 || reduces().count() < attention {
        return Err(Why::Unsized);
    }
    one(reduces().filter_map(|op| group_size(view.trace, op)), Why::Unsized)
}

fn group_size(trace: &Trace, op: &DeviceOp) -> Option<u32> {
    let (track, row) = trace.locate(op.slice)?;
    match trace.detail(trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Kernel(kernel) => kernel.collective.as_ref()?.group_size,
        _ => None,
    }
}
