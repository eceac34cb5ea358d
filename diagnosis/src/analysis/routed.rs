//! Selections that route tokens to experts. Frameworks choose the experts of a token with the same kernels of top-k and sorting
//! that choose the next token; what comes next on the queue tells both apart.

use std::collections::HashMap;

use super::timeline::{OpKind, Timeline};
use crate::platform::{CanonicalOp, OpClass};

/// Gives the selections that experts follow their operator. A step that chose its token goes on with the next one's embedding and
/// the products of its first layer; a router's choice goes to the experts before any other product or attention.
pub fn mark(timeline: &mut Timeline) {
    let mut follows: HashMap<u32, CanonicalOp> = HashMap::new();
    for op in timeline.ops.iter_mut().rev().filter(|op| op.kind == OpKind::Compute) {
        let experts = [CanonicalOp::GroupedGemm, CanonicalOp::MoeRoute];
        if op.op == CanonicalOp::Sample && follows.get(&op.queue).is_some_and(|next| experts.contains(next)) {
            op.op = CanonicalOp::MoeRoute;
        }
        if matches!(op.op.class(), OpClass::Matrix | OpClass::Attention | OpClass::MoeRoute) {
            follows.insert(op.queue, op.op);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{analysis::script::Script, platform::CanonicalOp};

    /// The top-k of every layer's router was sampling, 48 times a step.
    #[test]
    fn the_choice_of_experts_is_routing_and_that_of_a_token_is_not() {
        const TOPK: &str = "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>";
        let mut s = Script::default();
        let step = ["gemm_nt", TOPK, "fused_moe_kernel", "gemm_nt", TOPK];
        for (at, kernel) in (0..).map(|n| 1_000 * n).zip(step.into_iter().chain(step)) {
            s.launch((at, at + 10), kernel, (at + 20, at + 900));
        }
        let (_, analysis) = s.analyze();
        let ops: Vec<CanonicalOp> = analysis.ranks[0].timeline.ops.iter().map(|op| op.op).collect();
        use CanonicalOp::{Gemm, GroupedGemm, MoeRoute, Sample};
        let expected = [Gemm, MoeRoute, GroupedGemm, Gemm, Sample];
        assert_eq!(ops, [expected, expected].concat());
    }
}
