//! OP-22: products of 32 bits by the ordinary units of a device that has matrix units.

use model::EvidenceClass::Device;

use super::{
    ceilings::Ceilings,
    matrix_units::{self, is_without_units},
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{
        Confidence, DeviceOp, Layer, OpKind, Rank,
        op_shapes::{self, Gemm},
    },
    diagnose::{
        relations::{Advice, Relations, Vendors},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::Chip,
};

/// Matrix units count where they do at least so many times the 32-bit arithmetic of the ordinary ones; own value, below the
/// ratio of any tensor core.
const FASTER: f64 = 1.9;
/// What is left of a product's time at best where the device is not known: operands of 16 bits are half the bytes.
const HALF: f64 = 0.5;
/// Share of its limit that an ordinary kernel of matrix units reaches (latency mark of Nsight Compute's speed-of-light texts).
const ORDINARY: f64 = 0.6;

/// The rule.
pub struct NoMatrixUnits;

static DOC: Doc = Doc {
    id: "OP-22",
    title: Text::new("32-bit products without matrix units", "32 位矩阵乘未使用矩阵单元"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations {
        shares_time_with: &["OP-03", "OP-04", "OP-10", "OP-19"],
        vendors: Vendors::Only(&["nvidia"]),
        ..Relations::NONE
    },
    sees: Text::new(
        "Matrix products or convolutions run 32-bit kernels of the ordinary cores on a device with tensor cores.",
        "在带有张量核心的设备上，矩阵乘或卷积使用普通核心的 32 位内核。",
    ),
    matters: Text::new(
        "Tensor cores do the same products several times as fast in 16 bits, with half the bytes besides, and on many devices in TF32.",
        "张量核心以 16 位完成同样的乘法要快数倍且读取字节减半，许多设备上以 TF32 也更快。",
    ),
    trigger: Text::new(
        "By kernel names: sgemm, ffma and scudnn kernels, cuDNN's gradient engines of floats, also CUTLASS's simt ones, on a device whose published 16-bit or TF32 arithmetic is at least 1.9 times its 32-bit one; where the capture does not name the device, kernels of Volta, Ampere or Hopper anywhere in it say so. What the ratio of both gives at best, or memory where shapes are recorded, is at least 5 % of the mean step.",
        "依据内核名：sgemm、ffma、scudnn、cuDNN 的 float 梯度引擎以及 CUTLASS 的 simt 内核，且设备公布的 16 位或 TF32 算力至少为 32 位的 1.9 倍；采集未写明设备时，以其中任何 Volta、Ampere 或 Hopper 的内核为准。按两者之比（采集了形状时再受访存限制）最多可省的时间至少占平均步时的 5%。",
    ),
    source: Text::new(
        "Peaks of the data sheets; PyTorch computes products in full 32 bits unless TF32 is allowed (torch.set_float32_matmul_precision). 5 %: own value.",
        "数据手册峰值；PyTorch 默认以完整 32 位计算矩阵乘，除非允许 TF32（torch.set_float32_matmul_precision）。5%：自定值。",
    ),
    guards: Text::new(
        "Whether memory or arithmetic bounds a product without shapes is not known: its gain is a bound. Kernels of 64 bits do not count.",
        "没有形状时无法知道矩阵乘受访存还是算力限制：收益为上界。64 位内核不计入。",
    ),
    verify: Text::new(
        "Run in 16 bits, or allow TF32 where the device does that faster, and record again: the kernels' names change (tensorop, s1688, s16816, xmma), and the outputs stay within tolerance.",
        "以 16 位运行，或在设备上更快时允许 TF32，并重新采集：内核名改变（tensorop、s1688、s16816、xmma），输出保持在容差之内。",
    ),
};

const KIND: Kind = Kind {
    doc: &DOC,
    share: 0.05,
    per_layer: None,
    formula: Text::new("time that matrix units save at best / mean step", "使用矩阵单元最多可省的时间 / 平均步时"),
    claim: Text::new(
        "{count} products per step of {class} run 32-bit kernels without tensor cores (sgemm); they take {busy} of {step}. Tensor cores, in 16 bits or in TF32 where the device does that faster, avoid up to {time} of that.",
        "{class} 每步有 {count} 个矩阵乘使用不经张量核心的 32 位内核（sgemm）；耗时 {busy}，步时 {step}。改用张量核心（16 位，或设备上更快时的 TF32）最多可省其中 {time}。",
    ),
    what: Text::new("time of products without matrix units per step", "每步未使用矩阵单元的矩阵乘耗时"),
    rivals: &[(
        Text::new("the results need all 32 bits", "结果确实需要完整 32 位"),
        Text::new(
            "a numeric comparison with a run in 16 bits or TF32 decides",
            "与 16 位或 TF32 运行做数值比较可以判定",
        ),
    )],
    most: Confidence::Medium,
};

/// The same where only the kernels say what the device is.
static UNNAMED: Kind = Kind {
    rivals: &[
        KIND.rivals[0],
        (
            Text::new("the device has no tensor cores", "设备没有张量核心"),
            Text::new(
                "its name decides: kernels of Volta also run on the few Turing devices without any",
                "设备名可以判定：Volta 的内核也会在少数没有张量核心的 Turing 设备上运行",
            ),
        ),
    ],
    most: Confidence::Low,
    ..KIND
};

impl Rule for NoMatrixUnits {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let names = reading::named(cx, is_without_units);
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes().filter(|_| !names.is_empty()) {
            let ceilings = Ceilings::of(cx, rank);
            // Where the capture does not name the device, its kernels say which one it is, whichever of them is slow.
            if !reading::names(cx).any(|name| has_units(ceilings.chip(), name)) {
                continue;
            }
            let kind = if ceilings.chip().is_some() { &KIND } else { &UNNAMED };
            found.extend(share_of_step::of_class(cx, kind, rank, class, |step| {
                reading::accounted(rank, step)
                    .filter(|(_, op, _)| op.kind == OpKind::Compute && names.contains(&op.name))
                    .map(|part| {
                        let (best, worst) = with_units(cx, rank, part.1, &ceilings);
                        Part::gone(part).to(best).within(best, worst)
                    })
                    .collect()
            }));
        }
        found.into_iter().collect()
    }
}

/// Whether the device of a rank has matrix units that are faster than what such a kernel uses.
pub(super) fn has_units(chip: Option<&Chip>, name: &str) -> bool {
    match chip {
        Some(chip) => ratio(chip).is_some(),
        None => matrix_units::tells_units(name),
    }
}

/// Share of the time of ordinary 32-bit arithmetic that matrix units take for as much.
fn ratio(chip: &Chip) -> Option<f64> {
    let peaks = &chip.peaks;
    let units = [peaks.tf32, peaks.fp16, peaks.bf16].into_iter().flatten().fold(0.0, f64::max);
    peaks.fp32.filter(|plain| *plain > 0.0 && units >= FASTER * plain).map(|plain| plain / units)
}

/// What a product would take with matrix units, ns: at best, and at worst.
fn with_units(cx: &Context<'_>, rank: &Rank, op: &DeviceOp, ceilings: &Ceilings<'_>) -> (i64, i64) {
    let chip = ceilings.chip();
    let dur = op.dur() as f64;
    let shaped = || op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op));
    let (best, worst) = match (chip.and_then(ratio), shaped()) {
        (Some(ratio), Some(gemm)) => bounded(gemm, dur, ratio, ceilings),
        // Without shapes a kernel may be bound by arithmetic: then the ratio of peaks is the best.
        (Some(ratio), None) => (ratio * dur, dur),
        (None, _) => (HALF * dur, dur),
    };
    (best.min(dur) as i64, worst.min(dur) as i64)
}

/// The same of a known shape: TF32 reads what 32 bits read, 16 bits half of it.
fn bounded(gemm: Gemm, dur: f64, ratio: f64, ceilings: &Ceilings<'_>) -> (f64, f64) {
    let Some((memory, bytes)) = ceilings.bandwidth().zip(gemm.bytes) else { return (ratio * dur, dur) };
    let reading = bytes as f64 / memory.usual;
    ((ratio * dur).max(HALF * bytes as f64 / memory.best), (ratio * dur).max(reading) / ORDINARY)
}
