//! Products that the ordinary arithmetic units carry out, although the device has matrix units.

/// Whether a kernel of this name multiplies matrices in 32 bits without matrix units.
pub fn is_without_units(name: &str) -> bool {
    let ordinary = ["sgemm", "scudnn", "dgrad_engine<float", "wgrad_alg0_engine<float", "wgrad_alg1_engine<float"]
        .iter()
        .any(|mark| name.contains(mark))
        || (name.contains("ffma") && ["gemm", "fprop", "conv"].iter().any(|mark| name.contains(mark)));
    ordinary && !["tensorop", "tf32", "fp16", "bf16", "half", "bfloat16", "Cijk"].iter().any(|mark| name.contains(mark))
}

/// Whether a kernel of this name is made for a device with matrix units. Kernels of Volta also run on the few Turing devices that have
/// none, so what is said by them alone is a bound from nothing.
pub fn tells_units(name: &str) -> bool {
    ["ampere_", "hopper_", "cutlass_80_", "sm80_", "volta_"].iter().any(|mark| name.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_ordinary_cores_are_told_by_name() {
        for name in [
            "ampere_sgemm_128x64_tn",
            "volta_sgemm_32x128_nn",
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>",
            "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int, float const*)",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4",
        ] {
            assert!(is_without_units(name), "{name}");
        }
        for name in [
            "ampere_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64",
            "cutlass_80_tensorop_s1688gemm_128x128_16x4_tn_align4",
            "ampere_dgemm_64x64_nn",
            "Cijk_Ailk_Bljk_SB_MT64x64",
            "void cudnn::detail::dgrad_engine<__half, 512, 6, 5, 3, 3, 3, false>(int, int, int, __half const*)",
            "void implicit_convolve_sgemm<__half, __half, 1024, 6, 7, 3, 3, 5, 1, false, true, true>",
        ] {
            assert!(!is_without_units(name), "{name}");
        }
    }
}
