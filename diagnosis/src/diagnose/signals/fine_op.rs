//! Which elementary operation an eager kernel carries out. Frameworks hide it inside the template arguments of a general
//! elementwise kernel; compilers and NPUs put it in the kernel's own name.

use crate::platform::{CanonicalOp, OpClass};

/// An elementary operation as composites are made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the operations
pub enum FineOp {
    Matmul,
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Mean,
    Rsqrt,
    Neg,
    Cat,
    Copy,
    Silu,
    Sigmoid,
    Softmax,
    /// Its gradient.
    SoftmaxGrad,
    Dropout,
    Mask,
    /// Rows picked by an index: of a paged cache, those of each sequence, one behind the other.
    Gather,
    /// Anything else, fused kernels included: it ends a composite.
    Other,
}

/// Fragments of kernel names in order of precedence: a cast inside a functor's name must not hide the functor.
const FRAGMENTS: &[(&str, FineOp)] = &[
    ("pow_tensor", FineOp::Pow),
    ("meanops", FineOp::Mean),
    ("rsqrt_kernel", FineOp::Rsqrt),
    ("silu_kernel", FineOp::Silu),
    ("sigmoid_kernel", FineOp::Sigmoid),
    ("neg_kernel", FineOp::Neg),
    ("catarraybatchedcopy", FineOp::Cat),
    ("softmax_warp_backward", FineOp::SoftmaxGrad),
    ("softmaxbackward", FineOp::SoftmaxGrad),
    ("softmax", FineOp::Softmax),
    ("dropout", FineOp::Dropout),
    // The gradient of a dropout.
    ("masked_scale", FineOp::Mul),
    ("masked_fill", FineOp::Mask),
    ("where_kernel", FineOp::Mask),
    ("mulfunctor", FineOp::Mul),
    ("divfunctor", FineOp::Div),
    ("div_true", FineOp::Div),
    ("subfunctor", FineOp::Sub),
    ("functor_add", FineOp::Add),
    ("functoronself_add", FineOp::Add),
    ("functoronother_add", FineOp::Add),
    ("addfunctor", FineOp::Add),
    ("copy_kernel", FineOp::Copy),
];

/// Fragments of names of kernels that pick rows: torch's gathers and index_select, CANN's GatherV2.
const GATHERS: [&str; 4] = ["index_kernel_impl", "gather", "indexselect", "index_select"];

/// Words that are an operation when a whole part of the name equals them (`aclnnMul_MulAiCore_Mul`, `triton_poi_fused_mul_3`).
const WORDS: &[(&str, FineOp)] = &[
    ("add", FineOp::Add),
    ("sub", FineOp::Sub),
    ("mul", FineOp::Mul),
    ("muls", FineOp::Mul),
    ("div", FineOp::Div),
    ("realdiv", FineOp::Div),
    ("pow", FineOp::Pow),
    ("pows", FineOp::Pow),
    ("square", FineOp::Pow),
    ("mean", FineOp::Mean),
    ("reducemean", FineOp::Mean),
    ("rsqrt", FineOp::Rsqrt),
    ("neg", FineOp::Neg),
    ("cat", FineOp::Cat),
    ("concat", FineOp::Cat),
    ("concatd", FineOp::Cat),
    ("cast", FineOp::Copy),
    ("silu", FineOp::Silu),
    ("swish", FineOp::Silu),
    ("sigmoid", FineOp::Sigmoid),
    ("softmax", FineOp::Softmax),
    ("softmaxv2", FineOp::Softmax),
    ("softmaxgrad", FineOp::SoftmaxGrad),
    ("dropoutdomask", FineOp::Dropout),
    ("maskedfill", FineOp::Mask),
    ("where", FineOp::Mask),
];

/// Whether a kernel that indexes picks rows, by its name.
pub fn is_gather(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // torch scatters and gathers by one template, of which the first argument says which.
    let scatters = name.contains("scatter") && !name.contains("internal_kernel<false");
    !scatters && GATHERS.iter().any(|fragment| name.contains(fragment))
}

/// The elementary operation of a device kernel by its name and canonical operator.
pub fn fine_op(name: &str, op: CanonicalOp) -> FineOp {
    if op.class() == OpClass::Matrix && op != CanonicalOp::Conv {
        return FineOp::Matmul;
    }
    let name = name.to_ascii_lowercase();
    if op == CanonicalOp::Index && is_gather(&name) {
        return FineOp::Gather;
    }
    if let Some(fused) = name.strip_prefix("triton_") {
        return inductor(fused);
    }
    if let Some((_, fine)) = FRAGMENTS.iter().find(|(fragment, _)| name.contains(fragment)) {
        return *fine;
    }
    // A C++ signature has no word of its own; NPU names end with the operator's.
    if name.contains(['<', '(']) {
        return FineOp::Other;
    }
    name.rsplit('_').find_map(word).unwrap_or(FineOp::Other)
}

/// `poi_fused_mul_3` is one multiplication; `red_fused__to_copy_add_mean_mul_pow_rsqrt_0` is fused already.
fn inductor(name: &str) -> FineOp {
    let Some((_, ops)) = name.split_once("fused_") else { return FineOp::Other };
    let ops = ops.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    word(ops.trim_start_matches('_')).unwrap_or(FineOp::Other)
}

fn word(text: &str) -> Option<FineOp> {
    WORDS.iter().find(|(w, _)| *w == text).map(|(_, fine)| *fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eager_kernels_show_their_operation() {
        let elementwise = |functor: &str| {
            format!(
                "void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, std::array<char*, 3ul> >(int)"
            )
        };
        for (functor, fine) in [
            ("BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >", FineOp::Mul),
            (
                "AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >",
                FineOp::Mul,
            ),
            ("CUDAFunctor_add<c10::BFloat16>", FineOp::Add),
            ("CUDAFunctorOnSelf_add<float>", FineOp::Add),
            ("(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>", FineOp::Pow),
            ("rsqrt_kernel_cuda(at::TensorIteratorBase&)", FineOp::Rsqrt),
            ("(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)", FineOp::Silu),
            ("neg_kernel_cuda(at::TensorIteratorBase&)", FineOp::Neg),
            ("bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)", FineOp::Copy),
            ("(anonymous namespace)::masked_scale_kernel<bool, float, float>", FineOp::Mul),
            ("bitwise_not_kernel_cuda(at::TensorIteratorBase&)", FineOp::Other),
        ] {
            assert_eq!(fine_op(&elementwise(functor), CanonicalOp::Elementwise), fine, "{functor}");
        }
        let cat =
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int>";
        assert_eq!(fine_op(cat, CanonicalOp::Format), FineOp::Cat);
        let mean =
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >";
        assert_eq!(fine_op(mean, CanonicalOp::Reduce), FineOp::Mean);
    }

    #[test]
    fn fused_kernels_are_no_elementary_operation() {
        assert_eq!(fine_op("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", CanonicalOp::Norm), FineOp::Other);
        assert_eq!(fine_op("triton_poi_fused_mul_3", CanonicalOp::Elementwise), FineOp::Mul);
        assert_eq!(fine_op("triton_poi_fused_silu_0", CanonicalOp::Act), FineOp::Silu);
        assert_eq!(fine_op("aclnnMul_MulAiCore_Mul", CanonicalOp::Elementwise), FineOp::Mul);
        assert_eq!(fine_op("rms_norm_kernel", CanonicalOp::Norm), FineOp::Other);
        assert_eq!(fine_op("nvjet_tst_64x8", CanonicalOp::Gemm), FineOp::Matmul);
        assert_eq!(fine_op("", CanonicalOp::Other), FineOp::Other);
    }
}
