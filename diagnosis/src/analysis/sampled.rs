//! What looks like the choice of a token and is none: whoever looks for steps passes it over.

/// Whether a kernel chooses the largest of integers: logits are none.
pub(super) fn is_of_integers(name: &str) -> bool {
    ["ArgMaxOps<int>", "ArgMaxOps<long>", "ArgMinOps<"].iter().any(|of| name.contains(of))
}

/// Whether a kernel leaves out values that it has seen: what is read after it is how many are left, and what was sorted before
/// it was sorted for that (`unique`, and a sparse tensor's `coalesce`).
pub(super) fn counts_uniques(name: &str) -> bool {
    ["unique_by_key", "UniqueByKey", "__unique::", "DeviceUnique"].iter().any(|of| name.contains(of))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use crate::analysis::{AnchorKind, script::Script};

    /// Ten times a product, a kernel of sampling and another one, and a copy that the host reads.
    fn steps_by(chooses: &str, then: &str) -> AnchorKind {
        let mut s = Script::default();
        for at in (0..10).map(|i| 1_000 * i) {
            s.launch((at + 2, at + 4), "gemm", (at + 10, at + 90));
            s.launch((at + 5, at + 7), chooses, (at + 100, at + 190));
            s.launch((at + 8, at + 9), then, (at + 192, at + 200));
            s.copy("cudaMemcpyAsync", (at + 200, at + 300), "DtoH", "pageable", 8, (at + 210, at + 220));
        }
        s.analyze().1.ranks[0].anchor.kind
    }

    /// A vision model reads an index that it chose by integers within its forward pass, a solver how many indices are unique: either
    /// was said to be a token, and its stretches to be steps.
    #[test]
    fn integers_and_uniques_are_no_tokens() {
        let argmax = |of: &str| {
            format!(
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<{of}, at::native::ArgMaxOps<{of}>, unsigned int, long, 4> >()"
            )
        };
        let copy = "void at::native::vectorized_elementwise_kernel<4, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>()";
        assert_eq!(steps_by(&argmax("float"), copy), AnchorKind::TokenReadback);
        assert_ne!(steps_by(&argmax("int"), copy), AnchorKind::TokenReadback);
        let sort = "void cub::DeviceMergeSortBlockSortKernel<false, int>()";
        assert_eq!(steps_by(sort, copy), AnchorKind::TokenReadback);
        let unique =
            "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__unique_by_key::UniqueByKeyAgent<int> >()";
        assert!(!matches!(steps_by(sort, unique), AnchorKind::TokenReadback | AnchorKind::PeriodicOp));
    }
}
