//! Matrix products that are a convolution's: cuDNN and MIOpen carry some out by Winograd's transforms or by unfolding around a
//! plain product, whose kernel does not say what it is for; the operator that launched it does.

use std::collections::HashMap;

use model::{Category, Columns, StringId, Trace};

use super::{op_shapes::is_convolution, timeline::Timeline};
use crate::platform::CanonicalOp;

/// Slices that are looked at backwards from a launch call to the operator around it.
const NEAR: usize = 256;

/// Gives the products that convolutions launch their operator.
pub fn mark(trace: &Trace, timeline: &mut Timeline) {
    let mut names: HashMap<StringId, bool> = HashMap::new();
    let mut convolves = |name: StringId| *names.entry(name).or_insert_with(|| is_convolution(trace.strings.get(name)));
    let calls = &timeline.calls;
    let products = timeline.ops.iter_mut().filter(|op| op.op == CanonicalOp::Gemm && !op.in_graph);
    for op in products {
        let call = op.call.and_then(|call| calls.get(call as usize));
        let around = call.and_then(|call| {
            let lane = trace.lanes.get(call.track.0 as usize)?;
            operator(lane, call.start, call.end)
        });
        if around.is_some_and(&mut convolves) {
            op.op = CanonicalOp::Conv;
        }
    }
}

/// Name of the innermost framework operator around a call.
fn operator(lane: &Columns, start: i64, end: i64) -> Option<StringId> {
    let before = lane.start.partition_point(|at| *at <= start);
    let mut near = (before.saturating_sub(NEAR)..before).rev();
    let at = near.find(|i| lane.category[*i] == Category::FrameworkOp && lane.end(*i) >= end)?;
    lane.name.get(at).copied()
}

#[cfg(test)]
mod tests {
    use model::Category;

    use crate::{analysis::script::Script, platform::CanonicalOp};

    /// The product inside a Winograd convolution made a network of convolutions one of matrix products.
    #[test]
    fn a_product_that_a_convolution_launches_is_its_own() {
        let mut s = Script::default();
        for (n, operator) in [(0, "aten::cudnn_convolution"), (1, "aten::mm")] {
            let at = 100_000 * n;
            s.host(Category::FrameworkOp, operator, (at, at + 50_000));
            s.launch((at + 10_000, at + 20_000), "volta_sgemm_64x64_nt", (at + 25_000, at + 95_000));
        }
        let (_, analysis) = s.analyze();
        let ops: Vec<CanonicalOp> = analysis.ranks[0].timeline.ops.iter().map(|op| op.op).collect();
        assert_eq!(ops, [CanonicalOp::Conv, CanonicalOp::Gemm]);
    }
}
