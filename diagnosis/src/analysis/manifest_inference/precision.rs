//! Data types, by what operators were given and by the names of kernels.

use super::{By, Inferred, View, Why, one};
use crate::{
    analysis::{DeviceOp, OpKind, dtype, op_shapes},
    platform::{CanonicalOp, OpClass},
};

pub(super) fn infer(view: &View<'_>, inferred: &mut Inferred) {
    let read: Vec<Option<(By, [&str; 2])>> = matrix(view).filter_map(|op| operands(view, op)).collect();
    let known = || read.iter().flatten();
    let by = if known().any(|(by, _)| *by == By::Shapes) { By::Shapes } else { By::Names };
    let activations = one(known().map(|(_, [activations, _])| *activations), Why::Silent);
    // One product that nobody can read may be the one whose weights are quantised.
    let unread = read.iter().any(Option::is_none);
    let weights = one(known().map(|(_, [_, weights])| *weights), Why::Silent);
    inferred.put("precision.activations", by, activations);
    inferred.put("precision.weights", by, if unread { Err(Why::Silent) } else { weights });
    let writes = || view.ops().filter(|op| op.op == CanonicalOp::KvWrite);
    let caches: Vec<&str> = writes().filter_map(|op| cache(view, op)).collect();
    if caches.is_empty() {
        let named = writes().filter_map(|op| dtype::format_of_cache(view.trace.strings.get(op.name)));
        inferred.put("precision.kv", By::Names, one(named, Why::Silent));
    } else {
        inferred.put("precision.kv", By::Shapes, one(caches, Why::Silent));
    }
}

fn matrix<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a DeviceOp> {
    view.ops().filter(|op| op.kind == OpKind::Compute && op.op.class() == OpClass::Matrix)
}

/// Types of both operands of a product by its shapes, else by its name: `None` for what is no product with weights, an inner
/// `None` where neither says them.
fn operands(view: &View<'_>, op: &DeviceOp) -> Option<Option<(By, [&'static str; 2])>> {
    let gemm = op_shapes::gemm(&op_shapes::inputs(view.trace, view.rank, op));
    // An outer product, such as that of positions and frequencies.
    if gemm.is_some_and(|gemm| gemm.inputs == 1) {
        return None;
    }
    let recorded = gemm.and_then(|gemm| gemm.types).map(|types| (By::Shapes, types));
    let named = || dtype::format_of_name(view.trace.strings.get(op.name)).map(|both| (By::Names, [both; 2]));
    Some(recorded.or_else(named))
}

/// Type of the cache that an operation writes: of all that it was given the largest.
fn cache(view: &View<'_>, op: &DeviceOp) -> Option<&'static str> {
    let inputs = op_shapes::inputs(view.trace, view.rank, op);
    inputs.iter().max_by_key(|tensor| tensor.elements())?.dtype
}
