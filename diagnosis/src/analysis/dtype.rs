//! Data types as kernel names and recorded operator inputs show them.

/// Width of a matrix product's operands, as far as it matters: a model of at most 16 bits should hold none of 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 16 bits or fewer.
    Narrow,
    /// 32 bits, TF32 included: it is read from memory as 32 bits.
    Single,
}

/// Fragments of names of matrix kernels with 32-bit operands (cuBLAS, cuDNN, CUTLASS, Tensile, ggml).
const SINGLE: &[&str] = &[
    "sgemm",
    "scudnn",
    "tf32",
    "gemm_f32f32",
    "f32f32_f32f32",
    "s1688gemm_",
    "_s_b_",
    "_s_mx_",
    "nvjet_s",
    "kernel<float, float, float",
    "val<int, int, float, float, float",
    "_engine<float, ",
];

/// The same of kernels with narrower operands.
const NARROW: &[&str] = &[
    "bf16", "fp16", "f16", "half", "bfloat16", "hgemm", "e4m3", "e5m2", "fp8", "int8", "i8i8", "mxfp4", "nvfp4",
    "_bbs_", "_bss_", "_b_bs_", "_hhs_", "_hss_", "_hb_", "_h_b_", "nvjet_t", "nvjet_h", "nvjet_q", "marlin", "awq",
];

/// Operand width of a matrix kernel by its name; `None` where the name does not say. A name that shows both is narrow:
/// the 32 bits are those of the accumulator.
pub fn width_of_name(name: &str) -> Option<Width> {
    let name = name.to_ascii_lowercase();
    let has = |list: &[&str]| list.iter().any(|f| name.contains(f));
    match () {
        () if has(NARROW) => Some(Width::Narrow),
        () if has(SINGLE) => Some(Width::Single),
        () => None,
    }
}

/// Bytes of an element of a recorded input type, as PyTorch and CANN (`DT_BF16`, `FLOAT16`) write them; `None` for anything else.
pub fn bytes_of(dtype: &str) -> Option<i64> {
    Some(match dtype.trim_start_matches("c10::").trim_start_matches("DT_").to_ascii_lowercase().as_str() {
        "double" | "long" | "long int" | "int64" | "uint64" => 8,
        "f32" | "float" | "int" | "unsigned int" | "int32" | "uint32" => 4,
        "bf16" | "f16" | "bfloat16" | "half" | "float16" | "short" | "int16" | "uint16" => 2,
        "q8" | "signed char" | "unsigned char" | "char" | "bool" | "int8" | "uint8" => 1,
        other if other.starts_with("float8") => 1,
        _ => return None,
    })
}

/// The number format of a recorded input type, in the words of the manifest; `None` for indices and anything else.
pub fn format_of(dtype: &str) -> Option<&'static str> {
    let name =
        dtype.trim_start_matches("c10::").trim_start_matches("__").trim_start_matches("hip_").trim_start_matches("DT_");
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "f32" | "float" => "f32",
        "bf16" | "bfloat16" | "nv_bfloat16" => "bf16",
        "f16" | "half" | "float16" | "_float16" => "f16",
        "q8" => "q8",
        "double" => "f64",
        "float8_e4m3fn" | "float8_e4m3fnuz" => "fp8 e4m3",
        "float8_e5m2" | "float8_e5m2fnuz" => "fp8 e5m2",
        "signed char" | "char" => "int8",
        _ => return None,
    })
}

/// Fragments of names of kernels whose weights have another format than what they are multiplied with, or need a scheme to
/// be read: their name tells neither.
const QUANTIZED: &[&str] = &[
    "marlin", "awq", "gptq", "fp4", "int4", "w4a", "w8a", "int8", "i8i8", "quant", "fp8", "e4m3", "e5m2", "4bit",
    "8bit", "nf4", "q_half",
];

/// Number format of both operands of a matrix kernel by its name; `None` where it does not say, or says several.
pub fn format_of_name(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if QUANTIZED.iter().any(|fragment| name.contains(fragment)) {
        return None;
    }
    // Tensile names the types of operands, result and arithmetic: B is bfloat16, H half, S single.
    let has = |fragments: &[&str]| fragments.iter().any(|fragment| name.contains(fragment));
    let brain = has(&["bf16", "bfloat16", "_bbs_", "_bss_", "_b_bs_"]);
    let rest = name.replace("bf16", "").replace("bfloat16", "");
    let half =
        ["f16", "fp16", "float16", "half", "hgemm", "_hhs_", "_hss_"].iter().any(|fragment| rest.contains(fragment));
    match (brain, half) {
        (true, false) => Some("bf16"),
        (false, true) => Some("f16"),
        (false, false) => (width_of_name(&name) == Some(Width::Single)).then_some("f32"),
        (true, true) => None,
    }
}

/// Number format of the weights that a matrix kernel reads by its name, `quantised` where these are narrower than 16 bits;
/// `None` where the name does not say. cuBLAS's `nvjet` names its operands first: `q` of 8 bits, `t` bfloat16, `h` half.
pub fn format_of_product(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if lower.contains("nvjet_q") || QUANTIZED.iter().any(|fragment| lower.contains(fragment)) {
        return Some("quantised");
    }
    match () {
        () if lower.contains("nvjet_t") => Some("bf16"),
        () if lower.contains("nvjet_h") => Some("f16"),
        () => format_of_name(name),
    }
}

/// Number format of the cache by the name of vLLM's kernels that write it: the second of their template's types, and half
/// stands there as `uint16_t` (csrc/quantization/fp8: `DISPATCH_BY_KV_CACHE_DTYPE`).
pub fn format_of_cache(name: &str) -> Option<&'static str> {
    let (kernel, arguments) = name.split_once('<')?;
    if !kernel.contains("reshape_and_cache") {
        return None;
    }
    match arguments.split(',').nth(1)?.trim() {
        "uint16_t" => Some("f16"),
        // The cache's own type is one of bytes; what they hold the next argument says.
        "uint8_t" | "unsigned char" => Some("fp8"),
        other => format_of(other),
    }
}

/// Whether a kernel does nothing but change the data type. PyTorch's copy kernels say so in their functor or by the loader
/// that casts; NPUs have an operator of that name.
pub fn is_cast(name: &str) -> bool {
    // Without a cast PyTorch's elementwise kernels are instantiated by `gpu_kernel_impl_nocast` (CUDALoops.cuh).
    let casting = ["LoadWithCast", "gpu_kernel_impl<"].iter().any(|loader| name.contains(loader));
    let copies = name.contains("direct_copy_kernel") && casting && !strided_copy(name);
    let typed = ["bfloat16_copy_kernel", "float16_copy_kernel", "tofloat32_copy", "float8_copy_kernel"];
    copies
        || inductor_cast(name)
        || name.contains("OpWithCastTensor") // MIOpen's tensor casts
        || typed.iter().any(|t| name.contains(t))
        || !name.contains(['<', '(']) && spelled_cast(name)
}

/// Whether the words of a plain name say that it casts: `Cast`, `cast_f16_f32`, `convert_fp32_bf16`. Whoever multiplies besides, or
/// casts on the way, does more.
fn spelled_cast(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words = || lower.split(['_', '/', '-', '.', ':']);
    let typed = words().filter(|word| bytes_of(word).is_some() || format_of(word).is_some()).count();
    let casts = words().any(|word| word == "cast" || word == "castaicore");
    casts || typed >= 2 && words().any(|word| word == "convert")
}

/// Whether a copy by `gpu_kernel_impl` only changes strides. Before PyTorch 2.0 that did so itself: two elements a thread, or four
/// of 16 bits by its first lambda, where a cast takes four by the second (`gpu_kernel_impl` in CUDALoops.cuh of 1.13). Copies of
/// that age are the second lambda of `direct_copy_kernel_cuda` (Copy.cu), later ones the third.
fn strided_copy(name: &str) -> bool {
    const OLD: &str = "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}";
    let two_each = ["elementwise_kernel<128, 2,", "elementwise_kernel<(int)128, (int)2,"];
    // The functor of a copy of integers is a lambda of an integer too: the last one is the kernel's.
    let first =
        || name.rfind("{lambda(int)#").is_some_and(|at| name.get(at..).unwrap_or("").starts_with("{lambda(int)#1}"));
    two_each.iter().any(|head| name.contains(head))
        || (name.contains(OLD) && name.contains("gpu_kernel_impl<") && first())
}

/// Whether TorchInductor made the kernel of casts alone: `_to_copy` changes type or device, `clone` the layout.
fn inductor_cast(name: &str) -> bool {
    let fused = ["triton_poi_fused_", "triton_per_fused_", "triton_red_fused_"];
    fused.iter().find_map(|head| name.strip_prefix(head)).is_some_and(|ops| {
        let ops = ops.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_').trim_start_matches('_');
        ["to_copy", "convert_element_type"].contains(&ops)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_the_width_of_the_operands() {
        for (name, width) in [
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", Some(Width::Narrow)),
            ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", Some(Width::Narrow)),
            ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1", Some(Width::Narrow)),
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", Some(Width::Single)),
            ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", Some(Width::Single)),
            ("ampere_sgemm_32x32_sliced1x4_tn", Some(Width::Single)),
            ("Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT64x64x16", Some(Width::Single)),
            ("MatMulV2", None),
        ] {
            assert_eq!(width_of_name(name), width, "{name}");
        }
    }

    #[test]
    fn names_show_the_format_of_the_operands_or_nothing() {
        for (name, format) in [
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", Some("bf16")),
            ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1", Some("bf16")),
            ("ampere_fp16_s16816gemm_fp16_64x64_ldg8_stages_64x5_tn", Some("f16")),
            ("Cijk_Alik_Bljk_HHS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256", Some("f16")),
            ("ampere_sgemm_32x32_sliced1x4_tn", Some("f32")),
            ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", None),
            ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", None),
            ("MatMulV2", None),
        ] {
            assert_eq!(format_of_name(name), format, "{name}");
        }
        let cache = |types: &str| {
            format_of_cache(&format!(
                "void vllm::reshape_and_cache_flash_kernel<{types}, (vllm::Fp8KVCacheDataType)0>(x)"
            ))
        };
        assert_eq!(cache("__hip_bfloat16, __hip_bfloat16"), Some("bf16"));
        assert_eq!((cache("uint16_t, uint16_t"), cache("float, uint8_t")), (Some("f16"), Some("fp8")));
        let product = |name: &str| format_of_product(name);
        assert_eq!(product("nvjet_tst_64x32_64x12_4x1_v_bz_TNT"), Some("bf16"));
        assert_eq!(product("nvjet_qqtst_64x32_64x12_4x1_v_bz_TNT"), Some("quantised"));
        assert_eq!((product("nvjet_hsh_64x8"), product("MatMulV2")), (Some("f16"), None));
        assert_eq!(product("UniversalGemmPipelineProblem<_Float16, _Float16, float>"), Some("f16"));
        assert_eq!(product("Gemm<std::bfloat16_t const*, float>"), Some("bf16"));
        assert_eq!(format_of_cache("store_kvcache<2048l, 4>"), None);
        assert_eq!((format_of("c10::BFloat16"), format_of("long int")), (Some("bf16"), None));
    }

    #[test]
    fn casts_are_told_from_copies_of_one_type() {
        let vectorized = |f: &str| {
            format!("void at::native::vectorized_elementwise_kernel<4, at::native::{f}(at::TensorIteratorBase&)>")
        };
        assert!(is_cast(&vectorized("bfloat16_copy_kernel_cuda")));
        assert!(is_cast(
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&), at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1>>"
        ));
        assert!(is_cast("aclnnCast_CastAiCore_Cast") && is_cast("Cast"));
        let elementwise = |by: &str| {
            format!(
                "void at::native::elementwise_kernel<512, 1, void at::native::{by}<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>>"
            )
        };
        assert!(is_cast(&elementwise("gpu_kernel_impl")) && !is_cast(&elementwise("gpu_kernel_impl_nocast")));
        // Before PyTorch 2.0: 130 strided copies of a vision model on an RTX A4000 were called casts, the first thing to change.
        let old = |unroll: u32, first: u32, last: u32| {
            format!(
                "void at::native::elementwise_kernel<128, {unroll}, at::native::gpu_kernel_impl<at::native::(anonymous namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#{first}}}::operator()() const::{{lambda()#8}}::operator()() const::{{lambda(float)#1}}>(at::TensorIteratorBase&)::{{lambda(int)#{last}}}>(int)"
            )
        };
        assert!(is_cast(&old(4, 2, 2).replace("lambda(float)#1", "lambda(int)#1")), "to an integer");
        assert!(!is_cast(&old(2, 2, 1)) && !is_cast(&old(4, 2, 1)) && is_cast(&old(4, 2, 2)) && is_cast(&old(4, 3, 1)));
        assert!(is_cast("triton_poi_fused__to_copy_1") && !is_cast("triton_poi_fused__to_copy_add_1"));
        assert!(is_cast("SubTensorOpWithCastTensor1d") && !is_cast("triton_poi_fused_clone_3"));
        assert!(!is_cast(&vectorized("direct_copy_kernel_cuda")));
        assert!(!is_cast("TransData") && !is_cast("void Cast<int>(float)") && !is_cast("CastNothing"));
    }

    #[test]
    fn element_sizes_of_recorded_types() {
        for (dtype, bytes) in [
            ("c10::BFloat16", Some(2)),
            ("float", Some(4)),
            ("c10::Float8_e4m3fn", Some(1)),
            ("Scalar", None),
            ("", None),
        ] {
            assert_eq!(bytes_of(dtype), bytes, "{dtype}");
        }
    }
}
