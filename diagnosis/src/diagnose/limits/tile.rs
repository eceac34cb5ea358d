//! How a kernel of a matrix product cuts its result, by its name and its launch, and what of the device that leaves unused.

use std::sync::OnceLock;

use regex::Regex;

use crate::{
    analysis::op_shapes::Gemm,
    i18n::{Message, Text, Value},
};

/// Share of the cores below which a launch leaves the device idle, and of its last wave below which that is a tail.
const FULL: f64 = 0.85;
/// Share of the tiles' area beyond the result from which it is said; own value.
const PADDED: f64 = 0.1;
/// Bytes that the widest load takes at once.
const WIDE: i64 = 16;

/// The tile of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Its two sides; which of them lies along the rows, names do not say alike.
    pub sides: [u64; 2],
    /// Parts that the inner dimension is split into.
    pub splits: u64,
}

impl Tile {
    /// The tile that a kernel's name tells.
    pub fn of(name: &str) -> Option<Self> {
        static SIDES: OnceLock<Option<Regex>> = OnceLock::new();
        static SPLITS: OnceLock<Option<Regex>> = OnceLock::new();
        let sides = SIDES.get_or_init(|| {
            Regex::new(r"(?:_MT|tilesize|gemm(?:_[a-z0-9]*[a-z][a-z0-9]*)*?_|nvjet_[a-z0-9]+_)(\d{1,4})x(\d{1,4})").ok()
        });
        let found = sides.as_ref()?.captures(name)?;
        let side = |group| found.get(group)?.as_str().parse::<u64>().ok().filter(|n| *n >= 4);
        let splits =
            SPLITS.get_or_init(|| Regex::new(r"(?i)(?:_GSU|splitK_?|split_k_?|sliced1x)(\d{1,3})(?:_|$|\D)").ok());
        let splits = splits.as_ref()?.captures(name).and_then(|found| found.get(1)?.as_str().parse::<u64>().ok());
        Some(Self { sides: [side(1)?, side(2)?], splits: splits.filter(|n| *n > 0).unwrap_or(1) })
    }

    /// Tiles that cover a result, and their area over that of the result, laid so that fewer are needed.
    pub fn cover(self, gemm: Gemm) -> (u64, f64) {
        let [rows, outputs] = [gemm.rows, gemm.outputs].map(|n| u64::try_from(n).unwrap_or(0).max(1));
        let [a, b] = self.sides;
        let laid = |x: u64, y: u64| rows.div_ceil(x).saturating_mul(outputs.div_ceil(y));
        let tiles = laid(a, b).min(laid(b, a));
        (tiles, tiles as f64 * (a * b) as f64 / (rows as f64 * outputs as f64))
    }
}

/// Why a product may stay below its limit: what the launch and the shape leave unused.
pub fn reasons(name: &str, gemm: Gemm, blocks: Option<u64>, cores: Option<u32>) -> Vec<Message> {
    let mut out = Vec::new();
    let tile = Tile::of(name);
    let covered = tile.map(|tile| (tile, tile.cover(gemm)));
    let units = covered.map(|(tile, (tiles, _))| tiles.saturating_mul(tile.splits)).or(blocks);
    if let Some((units, cores)) = units.zip(cores.filter(|cores| *cores > 0)) {
        let waves = units as f64 / f64::from(cores);
        let args = [
            ("blocks", Value::Count(units)),
            ("cores", Value::Count(u64::from(cores))),
            ("waves", Value::Count(waves.ceil() as u64)),
        ];
        if waves < FULL {
            let text = Text::new(
                "too few tiles: {blocks} blocks for {cores} cores, so that at most {share} of them have work",
                "分块过少：{blocks} 个线程块对 {cores} 个核心，最多 {share} 的核心有活",
            );
            out.push(Message::new(text, args.into_iter().chain([("share", Value::Share(waves))])));
        } else if waves / waves.ceil() < FULL {
            let last = waves - waves.floor();
            let text = Text::new(
                "tail: {blocks} blocks on {cores} cores are {waves} waves, the last of which fills {share}",
                "尾波：{blocks} 个线程块在 {cores} 个核心上为 {waves} 波，最后一波只占 {share}",
            );
            out.push(Message::new(text, args.into_iter().chain([("share", Value::Share(last))])));
        }
    }
    if let Some((tile, (_, area))) = covered.filter(|(_, (_, area))| area - 1.0 > PADDED) {
        let text = Text::new(
            "tile padding: {share} of what tiles of {tile} compute lies outside of a result of {rows}×{columns}",
            "分块填充：{tile} 的分块所算内容有 {share} 落在 {rows}×{columns} 的结果之外",
        );
        let [a, b] = tile.sides;
        out.push(Message::new(
            text,
            [
                ("share", Value::Share(1.0 - 1.0 / area)),
                ("tile", Value::Raw(format!("{a}×{b}"))),
                ("rows", Value::Count(gemm.rows.unsigned_abs())),
                ("columns", Value::Count(gemm.outputs.unsigned_abs())),
            ],
        ));
    }
    if let Some(element) = gemm.element {
        let odd = [gemm.inputs, gemm.outputs].into_iter().find(|n| n.saturating_mul(element) % WIDE != 0);
        if let Some(odd) = odd {
            let text = Text::new(
                "alignment: rows of {n} elements are no multiple of 16 bytes, so that the widest loads do not apply",
                "对齐：每行 {n} 个元素不是 16 字节的倍数，无法使用最宽的加载",
            );
            out.push(Message::new(text, [("n", Value::Count(odd.unsigned_abs()))]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn gemm(rows: i64, outputs: i64, inputs: i64) -> Gemm {
        Gemm { rows, outputs, inputs, bytes: None, element: Some(2), types: None, batched: false }
    }

    #[test]
    fn names_of_libraries_tell_their_tiles() {
        for (name, sides, splits) in [
            ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_GSU2_GSUAMB_ISA942", [256, 128], 2),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x64_warpgroupsize1x1x1", [128, 64], 1),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>(P)",
                [128, 64],
                1,
            ),
            ("ampere_fp16_s16816gemm_fp16_64x64_ldg8_stages_64x5_tn", [64, 64], 1),
            ("ampere_sgemm_32x32_sliced1x4_tn", [32, 32], 4),
            ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", [64, 8], 1),
        ] {
            assert_eq!(Tile::of(name), Some(Tile { sides, splits }), "{name}");
        }
        for name in ["MatMulV2", "gemv2T_kernel_val<int, int>", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", ""] {
            assert_eq!(Tile::of(name), None, "{name}");
        }
    }

    fn said(name: &str, shape: (i64, i64, i64), cores: Option<u32>) -> Vec<&'static str> {
        let said = reasons(name, gemm(shape.0, shape.1, shape.2), None, cores);
        said.iter().map(|m| m.text.en.split(':').next().unwrap()).collect()
    }

    #[test]
    fn what_a_shape_leaves_unused_is_said_and_a_fitting_one_says_nothing() {
        assert_eq!(said("Cijk_MT256x128x64_GSU2_", (256, 512, 131_072), Some(304)), ["too few tiles"]);
        assert_eq!(
            said("Cijk_MT128x64x64_GSU1_", (1025, 1025, 8192), Some(304)),
            ["too few tiles", "tile padding", "alignment"]
        );
        assert_eq!(said("Cijk_MT128x128x64_GSU1_", (4096, 4096, 4096), Some(128)), [""; 0]);
        assert_eq!(said("Cijk_MT128x128x64_GSU1_", (4096, 4224, 4096), Some(512)), ["tail"]);
        assert_eq!(said("MatMulV2", (4096, 4096, 4097), None), ["alignment"]);
    }
}
