//! Kernel names of a serving stack, where they are not those of the slot: products by tile, attention by architecture,
//! what a compiler fused by its parts.

use super::{Serving, geometry};
use crate::{config::Config, kernel::Slot};

/// A product whose tile is far too large for its rows.
pub(crate) const WIDE_TILE: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas";
/// The same of the generation before.
const WIDE_TILE_AMPERE: &str = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn";
const FA3: &str = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1>>, cute::tuple<cute::C<64>, cute::C<128>, cute::C<128>>, 128, cutlass::bfloat16_t, float, cutlass::arch::Sm90, true, false, false, true, true, false, false, true, true, true, true, false>>>>(flash::Params)";
const FA3_COMBINE: &str = "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8>, cute::C<128>>, 4, 256, 1, true, true, false, cutlass::bfloat16_t, float, cutlass::arch::Sm90>>(flash::FlashAttnFwdCombine::Params)";

/// The name of a kernel of `slot` over `rows`; `None` for the slot's own.
pub(crate) fn of(config: &Config, serving: &Serving, slot: Slot, rows: i64) -> Option<&'static str> {
    // Another vendor's run has the names of its own stack.
    if config.vendor != serving.accelerator.vendor() {
        return None;
    }
    let hopper = serving.accelerator.is_hopper();
    match slot {
        Slot::InputNorm | Slot::PostNorm | Slot::FinalNorm if serving.inductor => {
            Some("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2")
        }
        Slot::Rope if serving.inductor => Some("triton_poi_fused_add_cat_mul_split_sub_view_3"),
        Slot::Act if serving.inductor => Some("triton_poi_fused_mul_silu_slice_1"),
        Slot::Attention | Slot::AttentionWhole if hopper => Some(FA3),
        Slot::AttentionCombine if hopper => Some(FA3_COMBINE),
        Slot::Qkv | Slot::OutProj | Slot::GateUp | Slot::Down | Slot::LmHead | Slot::SideProjection => {
            let (_, outer) = geometry::weight(config, serving, slot)?;
            product(serving, rows, geometry::split(serving, rows, outer) > 1)
        }
        _ => None,
    }
}

/// A product whose blocks are far fewer than the cores.
pub(crate) fn few_blocks(serving: &Serving) -> Option<&'static str> {
    match (serving.accelerator.is_hopper(), serving.accelerator) {
        (true, _) => Some(WIDE_TILE),
        (_, super::Accelerator::A100) => Some(WIDE_TILE_AMPERE),
        _ => None,
    }
}

fn product(serving: &Serving, rows: i64, split: bool) -> Option<&'static str> {
    let size = geometry::tile(rows);
    if serving.accelerator == super::Accelerator::A100 {
        return Some(match (size, split) {
            ((16 | 32, _), true) => "ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn",
            ((16 | 32, _), _) => "ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x6_tn",
            ((64, _), _) => "ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_tn",
            ((_, 64), _) => "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
            _ => "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
        });
    }
    if !serving.accelerator.is_hopper() {
        return None;
    }
    Some(match (serving.weight_bytes, size, split) {
        (1, (16, _), _) => "nvjet_qqtst_64x16_128x8_1x4_h_bz_TNT",
        (1, (32, _), _) => "nvjet_qqtst_64x32_128x8_2x1_v_bz_TNT",
        (1, (64, _), _) => "nvjet_qqtst_64x64_128x6_2x1_v_bz_TNT",
        (1, ..) => "nvjet_qqtst_128x128_128x6_2x1_v_bz_coopA_TNT",
        (_, (16, _), true) => "nvjet_tst_64x16_64x16_4x1_v_bz_splitK_TNT",
        (_, (16, _), _) => "nvjet_tst_64x16_64x16_1x4_h_bz_TNT",
        (_, (32, _), true) => "nvjet_tst_64x32_64x14_2x1_v_bz_splitK_TNT",
        (_, (32, _), _) => "nvjet_tst_64x32_64x14_2x1_v_bz_TNT",
        (_, (64, _), _) => "nvjet_tst_64x64_64x10_2x1_v_bz_TNT",
        (_, (128, 64), _) => "nvjet_tst_64x128_64x8_2x1_v_bz_TNT",
        _ => "nvjet_tst_128x128_64x6_2x1_v_bz_coopA_TNN",
    })
}
