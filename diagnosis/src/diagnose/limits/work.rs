//! What an operator has to do, by the shapes of what went into it: arithmetic and bytes.

use std::borrow::Cow;

use crate::{
    analysis::{
        dtype,
        op_shapes::{self, Gemm, Tensor},
    },
    platform::{CanonicalOp, OpClass},
};

/// What an execution of an operator has to do at least.
#[derive(Clone, Debug)]
pub struct Work {
    /// Operations; a multiply-add is two.
    pub flops: f64,
    /// Bytes read and written where nothing is read twice.
    pub bytes: f64,
    /// Bytes of the weights of a product, or of its second operand; 0 of what is none.
    pub operands: f64,
    /// Number format of the arithmetic, where it is that of matrix units.
    pub dtype: Option<&'static str>,
    /// Its sizes, in a few characters.
    pub shape: String,
    /// The matrix product, where it is one.
    pub gemm: Option<Gemm>,
    /// Kinds of device operations that carry it out; what else the operator launches only prepares it.
    pub done_by: fn(CanonicalOp) -> bool,
}

/// Most experts per token in any model; a longer last dimension is no list of them.
const MOST_PER_TOKEN: i64 = 64;

/// The work of an operator of this name; `None` where its inputs do not say it.
pub fn of(name: &str, inputs: &[Tensor], by: CanonicalOp) -> Option<Work> {
    let base = name.rsplit("::").next().unwrap_or(name);
    // The strides of a convolution are no tensors, and its tensors no operands of a product.
    if op_shapes::is_convolution(base) {
        return None;
    }
    match by.class() {
        OpClass::Matrix if by == CanonicalOp::GroupedGemm => experts(inputs),
        OpClass::Matrix if by == CanonicalOp::Gemm => experts(inputs).or_else(|| product(base, inputs)),
        OpClass::Attention => attention(base, inputs),
        OpClass::Norm | OpClass::Act | OpClass::Elementwise | OpClass::Format | OpClass::Rope | OpClass::Quant => {
            moved(name, base, inputs, by.class())
        }
        _ => None,
    }
}

/// The tensors of an operator. Where only sizes were recorded, as PyTorch's `emit_nvtx` does, those of a product have the type that
/// its kernel's name tells.
pub fn typed<'a>(inputs: &'a [Tensor], class: OpClass, kernel: &str) -> Cow<'a, [Tensor]> {
    let untyped = class == OpClass::Matrix && inputs.iter().all(|tensor| tensor.element.is_none());
    match dtype::format_of_name(kernel).filter(|_| untyped) {
        Some(format) => {
            let element = dtype::bytes_of(format);
            inputs.iter().map(|tensor| Tensor { element, dtype: Some(format), ..tensor.clone() }).collect()
        }
        None => Cow::Borrowed(inputs),
    }
}

fn dims(tensor: &Tensor) -> String {
    tensor.dims.iter().map(i64::to_string).collect::<Vec<_>>().join("×")
}

/// Both operands of a product. Operators that add begin with what is added, and custom ones with their output.
fn operands<'a>(base: &str, inputs: &'a [Tensor]) -> Option<(Gemm, &'a [Tensor])> {
    let adds = base.starts_with("addmm") || base.starts_with("baddbmm") || base == "addbmm";
    let (added, inputs) = if adds { inputs.split_at(inputs.len().min(1)) } else { inputs.split_at(0) };
    let wide: Vec<&Tensor> = inputs.iter().filter(|t| t.dims.len() >= 2).collect();
    if let [out, a, b, ..] = wide.as_slice() {
        let inner = op_shapes::gemm(&[(*a).clone(), (*b).clone()]);
        let is_out = |gemm: &Gemm| {
            out.dims.last() == Some(&gemm.outputs) && out.elements() == gemm.rows.saturating_mul(gemm.outputs)
        };
        if let Some(gemm) = inner.filter(is_out) {
            return Some((gemm, added));
        }
    }
    Some((op_shapes::gemm(inputs)?, added))
}

fn product(base: &str, inputs: &[Tensor]) -> Option<Work> {
    let (gemm, added) = operands(base, inputs)?;
    let [rows, outputs, inner] = [gemm.rows, gemm.outputs, gemm.inputs].map(|n| n as f64);
    // What is narrower than 16 bits gives 16 bits.
    let element = gemm.element.unwrap_or(2).max(2) as f64;
    let added: f64 = added.iter().filter_map(Tensor::bytes).map(|bytes| bytes as f64).sum();
    Some(Work {
        flops: 2.0 * rows * outputs * inner,
        bytes: gemm.bytes? as f64 + rows * outputs * element + added,
        operands: (gemm.bytes? as f64 - rows * inner * gemm.element.unwrap_or(2) as f64).max(0.0),
        dtype: gemm.types.map(|[_, weights]| weights),
        shape: format!("{}×{}×{}", gemm.rows, gemm.outputs, gemm.inputs),
        gemm: Some(gemm),
        done_by: |_| true,
    })
}

/// Products of the experts of a layer: activations, both weights of the experts, and the experts of each token.
fn experts(inputs: &[Tensor]) -> Option<Work> {
    let at =
        inputs.windows(2).position(|pair| match pair.iter().map(|t| t.dims.as_slice()).collect::<Vec<_>>()[..] {
            [[e1, _, hidden1], [e2, hidden2, _]] => e1 == e2 && hidden1 == hidden2 && *e1 > 1,
            _ => false,
        })?;
    let (up, down) = (inputs.get(at)?, inputs.get(at + 1)?);
    let &[experts, wide, hidden] = up.dims.as_slice() else { return None };
    let inner = *down.dims.last()?;
    let of_tokens = |t: &&Tensor| t.dims.len() == 2 && t.dims.last() == Some(&hidden);
    let tokens = *inputs.get(..at)?.iter().find(of_tokens)?.dims.first()?;
    let chosen = |t: &&Tensor| matches!(t.dims[..], [rows, n] if rows == tokens && (1..=MOST_PER_TOKEN).contains(&n));
    let per_token = *inputs.get(at + 2..)?.iter().find(chosen)?.dims.last()?;
    let [experts, wide, hidden, inner, tokens, each] =
        [experts, wide, hidden, inner, tokens, per_token].map(|n| n as f64);
    let of_expert = wide * hidden + hidden * inner;
    // Tokens that are spread evenly miss an expert with this probability.
    let missed = (1.0 - each / experts).clamp(0.0, 1.0).powf(tokens);
    let weights = experts * (1.0 - missed) * of_expert * up.element? as f64;
    Some(Work {
        flops: 2.0 * tokens * each * of_expert,
        bytes: weights + 4.0 * tokens * hidden,
        operands: weights,
        dtype: up.dtype,
        shape: format!("{tokens}×{each} of {experts}, {wide}×{hidden}"),
        gemm: None,
        done_by: |op| matches!(op, CanonicalOp::GroupedGemm | CanonicalOp::Gemm),
    })
}

/// Products of the backward pass of attention over those of the forward one: the scores again, and four gradients of the size of
/// either (FlashAttention-2, arXiv 2307.08691, §4.1).
const BACKWARD: f64 = 2.5;

/// Attention over whole sequences; the lengths in a paged cache are in no shape. Counted without a causal mask.
fn attention(base: &str, inputs: &[Tensor]) -> Option<Work> {
    let backward = base.contains("backward");
    let tensors = inputs.iter().filter_map(|t| Some((<[i64; 4]>::try_from(t.dims.as_slice()).ok()?, t)));
    // A backward pass begins with the gradient of the result.
    let mut tensors = tensors.skip(usize::from(backward));
    let ((q, query), (k, key), (v, value)) = (tensors.next()?, tensors.next()?, tensors.next()?);
    // (sequences, heads, length, size) in `scaled_dot_product_attention`; its kernels' own operators have heads third.
    let order = |[batch, x, y, size]: [i64; 4]| {
        if base.contains("scaled_dot_product") { [batch, x, y, size] } else { [batch, y, x, size] }
    };
    let ([batch, heads, queries, size], [_, _, keys, _], [_, _, _, out]) = (order(q), order(k), order(v));
    if batch <= 0 || size <= 0 || order(k)[3] != size || !(base.contains("attention") || base.contains("flash")) {
        return None;
    }
    // It also reads the result and its gradient, and writes the gradients of all three.
    let bytes = read(&[query, key, value])? * if backward { 2.0 } else { 1.0 };
    let results = if backward { 2.0 } else { 1.0 };
    let passes = if backward { BACKWARD } else { 1.0 };
    let shape = format!("{batch}×{heads} heads, {queries} on {keys}×{size}");
    let element = query.element? as f64;
    let [batch, heads, queries, keys, size, out] = [batch, heads, queries, keys, size, out].map(|n| n as f64);
    Some(Work {
        flops: passes * 2.0 * batch * heads * queries * keys * (size + out),
        bytes: bytes + results * batch * heads * queries * out * element,
        operands: 0.0,
        dtype: query.dtype,
        shape,
        gemm: None,
        done_by: |op| op.class() == OpClass::Attention,
    })
}

/// Bytes of tensors, if all their types are known.
fn read(tensors: &[&Tensor]) -> Option<f64> {
    tensors.iter().map(|t| Some(t.bytes()? as f64)).sum()
}

/// Reductions of PyTorch, whose results are small.
const REDUCTIONS: [&str; 14] = [
    "sum",
    "mean",
    "max",
    "min",
    "amax",
    "amin",
    "any",
    "all",
    "argmax",
    "argmin",
    "norm",
    "var",
    "prod",
    "linalg_vector_norm",
];

/// Beginnings of operators of which the sizes of what comes out, or of what is touched, are numbers and no tensors.
const UNSIZED: [&str; 10] =
    ["upsample", "_upsample", "index", "gather", "scatter", "embedding", "repeat", "tile", "take", "unfold"];

/// Tensors that go into operators of PyTorch; one more is that of `out=`.
fn operands_of(base: &str) -> Option<usize> {
    Some(match base {
        "abs" | "clamp_max" | "clamp_min" | "clone" | "cos" | "erf" | "exp" | "gelu" | "log" | "neg" | "reciprocal"
        | "relu" | "rsqrt" | "sigmoid" | "silu" | "sin" | "sqrt" | "tanh" => 1,
        "add" | "div" | "fmod" | "maximum" | "minimum" | "mul" | "remainder" | "rsub" | "sub" => 2,
        "addcdiv" | "addcmul" | "where" => 3,
        _ => return None,
    })
}

/// Operators that only move or change each element: what they read and write.
fn moved(name: &str, base: &str, inputs: &[Tensor], class: OpClass) -> Option<Work> {
    let read = read(&inputs.iter().collect::<Vec<_>>())?;
    let largest = inputs.iter().max_by_key(|t| t.elements())?;
    // The result has the widest type of the numbers that go into it; indices are none.
    let result = || {
        let numbers = inputs.iter().filter(|t| t.dtype.is_some()).filter_map(|t| t.element).max();
        Some(largest.elements() as f64 * numbers.or(largest.element)? as f64)
    };
    let of_largest = inputs.iter().filter(|t| t.elements() == largest.elements()).count();
    let bytes = match () {
        // A table of a device's profiler has inputs alone.
        () if !name.contains("::") && !name.starts_with("triton_") => return None,
        () if UNSIZED.iter().any(|begin| base.starts_with(begin)) => return None,
        () if class == OpClass::Rope && !name.starts_with("aten::") => rotated(inputs)?,
        // Both its large tensors are read and written.
        () if base.starts_with("fused_add_rms_norm") => {
            read + inputs.iter().take(2).filter_map(Tensor::bytes).map(|bytes| bytes as f64).sum::<f64>()
        }
        // A norm whose output is no argument returns it, or writes its input.
        () if class == OpClass::Norm && !name.starts_with("aten::") && of_largest == 1 => read + result()?,
        // Own operators take their output as an input.
        () if !name.starts_with("aten::") => read,
        () if base == "copy_" => read,
        () if base.ends_with('_') => read + inputs.first()?.bytes()? as f64,
        () if ["cat", "stack"].contains(&base) => 2.0 * read,
        () if REDUCTIONS.contains(&base) => read,
        () if operands_of(base).is_some_and(|n| inputs.len() == n + 1) => read,
        () => read + result()?,
    };
    (bytes > 0.0).then(|| Work {
        flops: 0.0,
        bytes,
        operands: 0.0,
        dtype: None,
        shape: dims(largest),
        gemm: None,
        done_by: |_| true,
    })
}

/// Bytes of a rotary embedding: the positions say how many tokens there are; what has as many rows is rotated, in place unless the
/// results are arguments too, and of a table as many rows are read.
fn rotated(inputs: &[Tensor]) -> Option<f64> {
    let tokens = inputs.iter().find(|t| t.dims.len() == 1)?.elements();
    let (own, tables): (Vec<&Tensor>, Vec<&Tensor>) = inputs.iter().partition(|t| t.dims.first() == Some(&tokens));
    let (heads, positions): (Vec<&Tensor>, Vec<&Tensor>) = own.into_iter().partition(|t| t.dims.len() > 1);
    let times = if heads.len() > 3 { 1.0 } else { 2.0 };
    let row = |t: &&Tensor| Some(t.bytes()? as f64 / *t.dims.first()?.max(&1) as f64);
    let table = tables.iter().map(row).sum::<Option<f64>>()? * tokens as f64;
    (!heads.is_empty()).then_some(times * read(&heads)? + read(&positions)? + table)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn tensor(dims: &[i64]) -> Tensor {
        Tensor { dims: dims.to_vec(), element: Some(2), dtype: Some("bf16") }
    }

    fn work(name: &str, shapes: &[&[i64]], by: CanonicalOp) -> Option<Work> {
        let inputs: Vec<Tensor> = shapes.iter().map(|dims| tensor(dims)).collect();
        of(name, &inputs, by)
    }

    /// A norm that adds wrote nothing, and a rotary embedding read its whole table and wrote nothing.
    #[test]
    fn custom_norms_and_rotary_embeddings_count_what_they_write() {
        let bytes = |name: &str, shapes: &[&[i64]], by| work(name, shapes, by).map(|w| w.bytes);
        let norm = CanonicalOp::Norm;
        let fused = bytes("_C::fused_add_rms_norm", &[&[8, 100], &[8, 100], &[100]], norm);
        assert_eq!(fused, Some(2.0 * (4.0 * 800.0 + 100.0)));
        assert_eq!(bytes("_C::rms_norm", &[&[8, 100], &[8, 100], &[100]], norm), Some(2.0 * 1700.0));
        assert_eq!(bytes("aiter::groupnorm", &[&[8, 100], &[100]], norm), Some(2.0 * 1700.0));
        let rope = bytes("_C::rotary_embedding", &[&[8], &[8, 256], &[8, 64], &[131_072, 64]], CanonicalOp::Rope);
        assert_eq!(rope, Some(2.0 * (2.0 * 8.0 * 320.0 + 8.0 + 8.0 * 64.0)));
    }

    /// Tensors of convolutions were read as products of matrices.
    #[test]
    fn a_convolution_is_no_product() {
        let shapes: [&[i64]; 3] = [&[32, 64, 56, 56], &[32, 64, 56, 56], &[64, 64, 3, 3]];
        assert!(work("aten::convolution_backward", &shapes, CanonicalOp::Gemm).is_none());
        assert!(work("my::op", &[&[32, 64, 56, 56], &[64, 64, 56, 56]], CanonicalOp::Gemm).is_none());
        assert!(work("aten::matmul", &[&[2, 4, 8, 16], &[2, 4, 16, 8]], CanonicalOp::Gemm).is_some());
    }

    /// TraceLens has 3.43505859375 MiB for the first; of its operations it counts those that add the bias too, 788 × 768.
    #[test]
    fn products_count_operands_bias_and_result() {
        let gemm = CanonicalOp::Gemm;
        let added = work("aten::addmm", &[&[768], &[788, 768], &[768, 768]], gemm).unwrap();
        assert_eq!((added.flops, added.bytes / 1048576.0), (930_167_808.0 - 788.0 * 768.0, 3.43505859375));
        // A bias as large as the result is not the first operand, and an output that comes first neither.
        let full = work("aten::addmm", &[&[64, 512], &[64, 512], &[512, 512]], gemm).unwrap();
        assert_eq!(full.flops, 2.0 * 64.0 * 512.0 * 512.0);
        let custom = work("_C::cutlass_scaled_mm", &[&[8, 4096], &[8, 4096], &[4096, 4096]], gemm).unwrap();
        assert_eq!((custom.flops, custom.gemm.unwrap().rows), (2.0 * 8.0 * 4096.0 * 4096.0, 8));
        let batched = work("aten::bmm", &[&[16, 64, 128], &[16, 128, 32]], gemm).unwrap();
        assert_eq!(batched.flops, 2.0 * 16.0 * 64.0 * 128.0 * 32.0);
        assert!(work("aten::mm", &[&[64, 128], &[100, 32]], gemm).is_none());
    }

    #[test]
    fn attention_counts_both_products_and_paged_ones_are_left_out() {
        let of_sdpa =
            |name| work(name, &[&[16, 16, 559, 64], &[16, 16, 559, 64], &[16, 16, 559, 64]], CanonicalOp::Attn);
        let sdpa = of_sdpa("aten::_scaled_dot_product_flash_attention").unwrap();
        // TraceLens has 10.239 GFLOP, with half of it masked, and 69.875 MiB.
        assert_eq!((sdpa.flops / 2e9, sdpa.bytes / 1048576.0), (10.239377408, 69.875));
        let other = work(
            "aten::_efficient_attention_forward",
            &[&[2, 10, 4, 64], &[2, 20, 4, 64], &[2, 20, 4, 64]],
            CanonicalOp::Attn,
        );
        assert_eq!(other.unwrap().flops, 4.0 * 2.0 * 4.0 * 10.0 * 20.0 * 64.0);
        let paged = work("vllm::unified_attention", &[&[16, 32, 128], &[16, 8, 128], &[16, 8, 128]], CanonicalOp::Attn);
        assert!(paged.is_none());
    }

    /// A backward pass was rated by the forward's products: 860 Gflop/s of about 2.1 Tflop/s.
    #[test]
    fn attention_backward_has_the_scores_again_and_four_gradients() {
        let heads: &[i64] = &[16, 16, 559, 64];
        let forward = work("aten::_scaled_dot_product_flash_attention", &[heads; 3], CanonicalOp::Attn).unwrap();
        let name = "aten::_scaled_dot_product_flash_attention_backward";
        let backward = work(name, &[heads; 5], CanonicalOp::Attn).unwrap();
        assert_eq!((backward.flops, backward.bytes), (2.5 * forward.flops, 2.0 * forward.bytes));
    }

    /// An image that grows fourfold was taken for one of equal size, an index for reading a whole table.
    #[test]
    fn what_comes_out_larger_or_smaller_is_not_rated() {
        let by = CanonicalOp::Elementwise;
        assert!(work("aten::upsample_bilinear2d", &[&[64, 4, 256, 256]], by).is_none());
        assert!(work("aten::index_select", &[&[32_000, 4096], &[8]], by).is_none());
        assert!(work("aten::index_put_", &[&[4096, 8, 128], &[8], &[8, 8, 128]], by).is_none());
    }

    /// `emit_nvtx` records sizes alone: nothing was known of such products, although `sgemm` says their type.
    #[test]
    fn the_kernel_of_a_product_tells_the_types_that_were_not_recorded() {
        let tensor = |element| Tensor { dims: vec![4, 8], element, dtype: None };
        let elements = |inputs: &[Tensor], by, kernel: &str| -> Vec<Option<i64>> {
            typed(inputs, by, kernel).iter().map(|tensor| tensor.element).collect()
        };
        let (sizes, gemm) = ([tensor(None), tensor(None)], OpClass::Matrix);
        assert_eq!(elements(&sizes, gemm, "ampere_sgemm_128x64_tn"), [Some(4), Some(4)]);
        assert_eq!(elements(&sizes, gemm, "sm80_xmma_gemm_bf16bf16_bf16f32"), [Some(2), Some(2)]);
        assert_eq!(elements(&sizes, gemm, "marlin_gemm"), [None, None]);
        assert_eq!(elements(&sizes, OpClass::Elementwise, "vectorized_half"), [None, None]);
        assert_eq!(elements(&[tensor(Some(2)), tensor(None)], gemm, "ampere_sgemm_128x64_tn"), [Some(2), None]);
    }

    #[test]
    fn experts_read_only_what_their_tokens_need() {
        let shapes: [&[i64]; 5] = [&[4, 2048], &[128, 1536, 2048], &[128, 2048, 768], &[4, 8], &[4, 8]];
        let moe = work("vllm::inplace_fused_experts", &shapes, CanonicalOp::GroupedGemm).unwrap();
        let of_expert = 3.0 * 768.0 * 2048.0;
        assert_eq!(moe.flops, 2.0 * 4.0 * 8.0 * of_expert);
        let read = moe.bytes / (2.0 * of_expert);
        assert!((28.0..32.1).contains(&read), "{read} experts of 32 at most");
        assert!(work("x", &shapes[..3], CanonicalOp::GroupedGemm).is_none(), "nobody says which experts");
    }

    #[test]
    fn what_only_moves_bytes_counts_reads_and_writes() {
        let by = CanonicalOp::Elementwise;
        let bytes = |name: &str, shapes: &[&[i64]]| work(name, shapes, by).map(|w| w.bytes);
        assert_eq!(bytes("aten::add", &[&[4, 100], &[4, 100]]), Some(2400.0));
        assert_eq!(bytes("aten::copy_", &[&[4, 100], &[4, 100]]), Some(1600.0));
        assert_eq!(bytes("aten::mul_", &[&[4, 100], &[100]]), Some(1800.0));
        assert_eq!(bytes("aten::sum", &[&[4, 100]]), Some(800.0));
        assert_eq!(bytes("_C::silu_and_mul", &[&[4, 100], &[4, 200]]), Some(2400.0));
        // `out=` is the result and no further one.
        assert_eq!(bytes("aten::clamp_min", &[&[4, 100], &[4, 100]]), Some(1600.0));
        assert_eq!(bytes("aten::add", &[&[4, 100], &[4, 100], &[4, 100]]), Some(2400.0));
        assert_eq!(bytes("Cast", &[&[4, 100]]), None, "a device's table does not say what comes out");
        assert_eq!(bytes("aten::add", &[&[0, 100]]), None);
        let huge: &[i64] = &[i64::MAX, i64::MAX];
        assert!(bytes("aten::add", &[huge, huge]).is_none_or(f64::is_finite));
    }
}
