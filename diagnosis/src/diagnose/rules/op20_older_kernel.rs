//! OP-20: a kernel of an older architecture, or one made for operands that are not aligned.

use model::{EvidenceClass::Device, StringId};
use rustc_hash::FxHashSet;

use super::{
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, DeviceOp, Layer, OpKind, Rank, op_shapes},
    diagnose::{
        relations::{Advice, Relations, Vendors},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
};

/// Words by which a device's name tells its architecture, newest first.
const ARCHITECTURES: [(u32, &[&str]); 3] = [
    (100, &["B100", "B200", "B300", "GB200", "GB300"]),
    (90, &["H100", "H200", "H800", "H20", "GH200"]),
    (80, &["A100", "A800", "A30"]),
];
/// Parts of names of kernels that run on one architecture only, newest first; cuBLAS has nvjet for no older one than Hopper.
const ONLY_ON: [(u32, &[&str]); 2] = [(100, &["sm100"]), (90, &["sm90_", "nvjet_"])];
/// Architecture for which FlashAttention-3 is written.
const HOPPER: u32 = 90;

/// Beginnings of names of matrix kernels, and the architecture that they are made for.
const MADE_FOR: [(&str, u32); 5] =
    [("volta_", 70), ("turing_", 75), ("ampere_", 80), ("cutlass_75_", 75), ("cutlass_80_", 80)];
/// Types of which newer architectures have tensor kernels of their own, as names spell them.
const TENSOR: [&str; 8] = ["bf16", "fp16", "f16", "h16816", "h1688", "tf32", "s1688", "i16832"];

/// Part of the rate of Hopper's own tensor instructions that those of Ampere reach on it: 62.9 % on average (Luo et al.,
/// Dissecting the NVIDIA Hopper Architecture through Microbenchmarking, 2024). What memory bounds gains nothing.
const OLD_RATE: f64 = 0.629;
/// Time of FlashAttention-3 over that of FlashAttention-2, at best and at worst: 1.5 to 2.0 times faster forward and 1.5 to 1.75
/// backward on H100 (Shah et al., FlashAttention-3, 2024). The assured end is more modest: short sequences gain less.
const FORWARD: (f64, f64) = (1.0 / 2.0, 1.0 / 1.25);
const BACKWARD: (f64, f64) = (1.0 / 1.75, 1.0 / 1.2);
/// The same for decode by the split kernel, which memory bounds: nothing is certain.
const DECODE: (f64, f64) = (1.0 / 1.5, 1.0);
/// Time of an aligned kernel over that of one that is not, at best and at worst; own values after NVIDIA's guide to matrix
/// multiplication (aligned sizes up to several times faster) and nanoGPT's vocabulary padded from 50257 to 50304 (25 %).
const ALIGNED: (f64, f64) = (0.4, 0.85);

/// Elements that a kernel for aligned operands loads at a time.
const ALIGNMENT: i64 = 8;

/// The rule.
pub struct OlderKernel;

static DOC: Doc = Doc {
    id: "OP-20",
    title: Text::new("Older or unaligned kernel", "旧架构或未对齐的内核"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations {
        yields_to: &[],
        shares_time_with: &["OP-03", "OP-01", "OP-10", "OP-19"],
        vendors: Vendors::Only(&["nvidia", "amd"]),
        ..Relations::NONE
    },
    sees: Text::new(
        "Kernels made for an older architecture run where newer ones exist (FlashAttention-2 on Hopper, Turing or Ampere tiles on Hopper), or kernels for operands that are not aligned (align1, align2).",
        "在有新内核可用的设备上运行面向旧架构的内核（Hopper 上的 FlashAttention-2、Turing 或 Ampere 分块），或面向未对齐操作数的内核（align1、align2）。",
    ),
    matters: Text::new(
        "An older kernel does not use the newer units and copies; one for unaligned operands loads one or two elements at a time instead of eight.",
        "旧内核用不上新的计算与搬运单元；未对齐内核每次只加载一两个元素而不是八个。",
    ),
    trigger: Text::new(
        "By kernel names: flash_fwd, flash_fwd_splitkv or flash_bwd on Hopper; cutlass_75, cutlass_80, ampere, turing or volta tensor kernels on a newer architecture; align1 and align2, or Tensile's AF0EM1 with AF1EM1, of a product with a dimension that is no multiple of 8 (where shapes are recorded; Tensile's only there). What the ratios below give at best is at least 2 % of the mean step.",
        "依据内核名：Hopper 上的 flash_fwd、flash_fwd_splitkv、flash_bwd；更新架构上的 cutlass_75、cutlass_80、ampere、turing、volta 张量内核；align1、align2，或 Tensile 的 AF0EM1 与 AF1EM1，且矩阵乘有一维不是 8 的倍数（采集了形状时；Tensile 仅在此时判断）。按下列比值最多可省的时间至少占平均步时的 2%。",
    ),
    source: Text::new(
        "FlashAttention-3 paper: 1.5 to 2.0 times FlashAttention-2 forward and 1.5 to 1.75 backward on H100. Luo et al. 2024: instructions of Ampere reach 62.9 % of Hopper's own rate. Alignment: NVIDIA's matrix multiplication guide; nanoGPT's padded vocabulary.",
        "FlashAttention-3 论文：H100 上前向为 FlashAttention-2 的 1.5–2.0 倍，反向 1.5–1.75 倍。Luo 等 2024：Ampere 指令只达到 Hopper 自身速率的 62.9%。对齐：NVIDIA 矩阵乘指南；nanoGPT 词表补齐。",
    ),
    guards: Text::new(
        "A published ratio is another shape's: the assured end is taken more modest than the paper's, and nothing is certain where memory bounds the kernel (decode attention, old tensor tiles). Kernels of 32-bit arithmetic without tensor units do not count. Unaligned kernels inside an attention that runs unfused disappear with the fusion (OP-03).",
        "公布的比值来自其他形状：确定的一端取得比论文保守；受显存限制的内核（解码注意力、旧张量分块）收益没有保证。不用张量单元的 32 位内核不计入。未融合注意力中的未对齐内核会随融合（OP-03）一起消失。",
    ),
    verify: Text::new(
        "Switch to the newer kernel, or pad the odd dimension to a multiple of 8, and run again: the name changes and the time falls.",
        "换用新内核，或把奇数维补齐到 8 的倍数后重跑：内核名改变，耗时下降。",
    ),
};

const KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new("time that newer kernels save at best / mean step", "换用新内核最多可省的时间 / 平均步时"),
    claim: Text::new(
        "{count} attention kernels per step of {class} are FlashAttention-2 (flash_fwd, flash_bwd) on a Hopper device; they take {busy}. FlashAttention-3 would take up to {time} of {step} less ({share}).",
        "{class} 每步有 {count} 个注意力内核是 Hopper 设备上的 FlashAttention-2（flash_fwd、flash_bwd）；耗时 {busy}。FlashAttention-3 最多可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of the older kernels per step", "每步旧内核耗时"),
    rivals: &[(
        Text::new("the newer kernel does not serve this shape, type or mask", "新内核不支持该形状、类型或掩码"),
        Text::new(
            "the library's table of supported cases, or a run with it, decides",
            "查看库的支持列表或换用后重跑可以判定",
        ),
    )],
    most: Confidence::Medium,
};
static ATTENTION: Kind = KIND;
static TILES: Kind = Kind {
    claim: Text::new(
        "{count} matrix products per step of {class} run kernels of an older architecture (cutlass_75/80, ampere, turing, volta); they take {busy}. Kernels of this one would take up to {time} of {step} less ({share}).",
        "{class} 每步有 {count} 个矩阵乘使用旧架构内核（cutlass_75/80、ampere、turing、volta）；耗时 {busy}。换用本架构内核最多可省 {time}，步时 {step}（{share}）。",
    ),
    ..KIND
};
static UNALIGNED: Kind = Kind {
    claim: Text::new(
        "{count} matrix products per step of {class} run kernels for operands that are not aligned (align1, align2): a dimension is no multiple of 8. They take {busy}; with aligned operands up to {time} of {step} less ({share}).",
        "{class} 每步有 {count} 个矩阵乘使用面向未对齐操作数的内核（align1、align2）：某一维不是 8 的倍数。耗时 {busy}；对齐后最多可省 {time}，步时 {step}（{share}）。",
    ),
    rivals: &[(
        Text::new(
            "the odd dimension is the data's own and padding costs a copy",
            "奇数维来自数据本身，补齐需要额外拷贝",
        ),
        Text::new("a run with the padded dimension decides", "补齐该维后重跑可以判定"),
    )],
    ..KIND
};

impl Rule for OlderKernel {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let unaligned = reading::named(cx, is_unaligned);
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let device = architecture(cx, rank);
            let mut judge = |kind: &'static Kind, names: &FxHashSet<StringId>, ratio: fn(&str) -> (f64, f64)| {
                if names.is_empty() {
                    return;
                }
                let wants = std::ptr::eq(kind, &UNALIGNED);
                found.extend(share_of_step::of_class(cx, kind, rank, class, |step| {
                    let ops = reading::accounted(rank, step);
                    ops.filter(|(_, op, _)| op.kind == OpKind::Compute && names.contains(&op.name))
                        .filter(|(_, op, _)| !wants || is_odd(cx, rank, op))
                        .map(|part| {
                            let (best, worst) = ratio(cx.trace.strings.get(part.1.name));
                            let takes = |share: f64| (part.1.dur() as f64 * share) as i64;
                            Part::gone(part).to(takes(best)).within(takes(best), takes(worst))
                        })
                        .collect()
                }));
            };
            if device == Some(HOPPER) {
                judge(&ATTENTION, &reading::named(cx, is_flash_2), attention);
            }
            let older = reading::named(cx, |name| {
                device.zip(made_for(name)).is_some_and(|(device, made)| made < device) && !is_unaligned(name)
            });
            judge(&TILES, &older, |_| (OLD_RATE, 1.0));
            judge(&UNALIGNED, &unaligned, |_| ALIGNED);
        }
        found.into_iter().collect()
    }
}

/// Compute capability of the device of a rank, times ten, as far as it matters here: from its name, else from kernels that run
/// on one architecture only.
fn architecture(cx: &Context<'_>, rank: &Rank) -> Option<u32> {
    let own = cx.trace.devices.iter().find(|d| d.process == rank.process && d.ordinal == rank.device);
    let name = own.or(cx.trace.devices.first()).and_then(|device| device.name);
    let Some(name) = name.map(|name| cx.trace.strings.get(name)) else {
        let runs = |marks: &[&str]| !reading::named(cx, |name| marks.iter().any(|mark| name.contains(mark))).is_empty();
        return ONLY_ON.iter().find(|(_, marks)| runs(marks)).map(|(number, _)| *number);
    };
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    ARCHITECTURES.iter().find(|(_, known)| known.iter().any(|one| words.contains(one))).map(|(number, _)| *number)
}

/// Architecture that a matrix kernel on tensor units is made for, times ten.
fn made_for(name: &str) -> Option<u32> {
    let (_, number) = MADE_FOR.iter().find(|(mark, _)| name.contains(mark))?;
    TENSOR.iter().any(|kind| name.contains(kind)).then_some(*number)
}

/// Kernels of FlashAttention-2; those of its successor are named by class templates.
fn is_flash_2(name: &str) -> bool {
    ["flash_fwd_kernel", "flash_fwd_splitkv_kernel", "flash_bwd_dq_dk_dv_loop"].iter().any(|mark| name.contains(mark))
        && !name.contains("enable_sm90")
}

fn attention(name: &str) -> (f64, f64) {
    if name.contains("splitkv") {
        DECODE
    } else if name.contains("bwd") {
        BACKWARD
    } else {
        FORWARD
    }
}

/// Whether a dimension of a product is no multiple of 8, as far as its shape is recorded. A library may pick a kernel that
/// aligned operands do not need; that Tensile asserts nothing of the sizes says nothing by itself.
fn is_odd(cx: &Context<'_>, rank: &Rank, op: &DeviceOp) -> bool {
    let inputs = op_shapes::inputs(cx.trace, rank, op);
    if inputs.is_empty() {
        return !cx.trace.strings.get(op.name).starts_with("Cijk");
    }
    let sides = inputs.iter().filter(|t| t.dims.len() >= 2).flat_map(|t| t.dims.iter().rev().take(2));
    sides.into_iter().any(|side| side % ALIGNMENT != 0)
}

/// Matrix kernels that load one or two elements at a time.
fn is_unaligned(name: &str) -> bool {
    let ends = |mark: &str| {
        name.match_indices(mark).any(|(at, _)| !name[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
    };
    // What computes without matrix units loads single elements of any operand.
    if name.contains("simt") {
        return false;
    }
    let tensile = name.starts_with("Cijk") && ends("AF0EM1") && ends("AF1EM1");
    tensile || ((name.contains("gemm") || name.contains("fprop")) && (ends("align1") || ends("align2")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_age_and_alignment() {
        let turing = "void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_128x128_nn_align1>";
        assert!(is_unaligned(turing) && made_for(turing) == Some(75));
        assert!(!is_unaligned("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x128_nn_align8>"));
        assert!(!is_unaligned("cutlass_80_tensorop_f16_s16816gemm_align16"));
        assert!(!is_unaligned("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>"), "no matrix unit");
        assert!(is_unaligned("Cijk_Ailk_Bljk_BBS_BH_MT256x112x64_AF0EM1_AF1EM1_AMAS3"));
        assert!(!is_unaligned("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_AF0EM8_AF1EM8_AMAS3"));
        assert_eq!(made_for("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"), Some(80));
        assert_eq!(made_for("ampere_sgemm_128x64_tn"), None, "32 bits without tensor units");
        assert_eq!(made_for("nvjet_tst_128x64_64x8_2x1_v_bz_TNT"), None);
        assert!(is_flash_2("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false>>"));
        assert!(!is_flash_2("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90>>"));
    }
}
