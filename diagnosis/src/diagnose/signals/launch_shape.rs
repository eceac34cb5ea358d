//! What runs the blocks of a launch: cores of the device, and the tile that a kernel's name shows.

use model::{Metric, Trace};

use crate::analysis::Rank;

/// Compute cores (SM, CU, AI core) of the device of a rank, if the source says so.
pub fn cores(trace: &Trace, rank: &Rank) -> Option<u64> {
    let own = trace.devices.iter().find(|d| d.process == rank.process && d.ordinal == rank.device);
    let said = own.or(trace.devices.first()).and_then(|device| device.cores).map(u64::from);
    let measured = || trace.summaries.iter().find_map(|summary| summary.metric(Metric::Cores)).map(|n| n as u64);
    said.or_else(measured).filter(|n| *n > 0)
}

/// Sizes of a tile that are plausible: a name holds other pairs too (warps, stages, clusters).
const TILE: std::ops::RangeInclusive<u32> = 8..=512;

/// The two outer sizes of the tile that the name of a matrix kernel shows: the first pair `AxB` of plausible sizes
/// (`nvjet_tst_64x8_…`, `…_tilesize128x128x64_…`, `…_MT256x128x64_…`, `…gemm_bf16_128x64_…`).
pub fn tile(name: &str) -> Option<(u32, u32)> {
    let bytes = name.as_bytes();
    let number = |from: usize| {
        let digits = bytes.get(from..)?.iter().take_while(|b| b.is_ascii_digit()).count();
        let value = name.get(from..from + digits)?.parse::<u32>().ok()?;
        Some((value, from + digits))
    };
    bytes.iter().enumerate().filter(|(_, b)| **b == b'x').find_map(|(x, _)| {
        let digits = bytes.get(..x)?.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let (first, _) = number(x - digits)?;
        let (second, _) = number(x + 1)?;
        (TILE.contains(&first) && TILE.contains(&second)).then_some((first, second))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_every_library() {
        for (name, expected) in [
            ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", Some((64, 8))),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize1x1x1", Some((128, 256))),
            ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN", Some((256, 128))),
            ("ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_tn", Some((64, 64))),
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", Some((128, 32))),
            ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", Some((16, 128))),
            ("void gemv2T_kernel_val<int, int, float, float>", None),
            ("x", None),
            ("99999999999999999999x8", None),
        ] {
            assert_eq!(tile(name), expected, "{name}");
        }
    }
}
