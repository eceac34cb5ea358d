//! OP-01: matrix products far below what the device reaches.

use model::EvidenceClass::{Device, Shapes};

use super::{
    ceilings::{Ceilings, NEAR, Origin},
    op02_library_choice::probed,
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Class, Confidence, DeviceOp, Layer, OpKind, Rank, op_shapes},
    diagnose::{
        Finding,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
    platform::CanonicalOp,
};

/// Share of the ceiling below which a product counts (latency mark of Nsight Compute's speed-of-light texts).
const FAR: f64 = 0.6;
/// Share of the ceiling above which the model of the operation is wrong: its operands lie in a cache (limit of TraceLens).
const MODEL_WRONG: f64 = 1.1;
/// So many times the floor an operation must take, or starting and ending is what it does.
const FLOORS: i64 = 3;
/// The same where the floor was not probed, ns (short kernels of TraceLens and KernelPro).
const SHORT: i64 = 10_000;

/// The rule.
pub struct BelowCeiling;

static DOC: Doc = Doc {
    id: "OP-01",
    title: Text::new("Operator far below its ceiling", "算子远低于上限"),
    layer: Layer::Operator,
    needs: &[Device, Shapes],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Matrix products take much longer than reading their operands, or their arithmetic, takes on this device.",
        "矩阵乘的耗时远多于在该设备上读取其操作数或完成其运算所需的时间。",
    ),
    matters: Text::new(
        "What lies between a kernel and its ceiling is the only part of its time that a better kernel can give back.",
        "内核与其上限之间的差距，是更好的内核唯一能够收回的时间。",
    ),
    trigger: Text::new(
        "The ceiling of a product is the longer of its bytes over the read bandwidth and its operations over the arithmetic of its type. Products below 0.6 of it count, and what they take beyond their ceiling over 0.8 is at least 2 % of the mean step. Bandwidth and arithmetic are measured by probes; without them the published bandwidth at 92 % serves, for products of at most 16 rows.",
        "矩阵乘的上限时间取“字节数除以读取带宽”与“运算量除以该类型算力”的较大者。低于上限 0.6 的矩阵乘计入；它们超出“上限时间除以 0.8”的部分至少占平均步时的 2%。带宽与算力由探针实测；没有探针时以公布带宽的 92% 代替，且只判断不超过 16 行的矩阵乘。",
    ),
    source: Text::new(
        "0.6 and 0.8: latency and near-limit marks of Nsight Compute's speed-of-light texts, pipe limits of the Ascend advisor. 2 %: own value. 92 %: what BabelStream reaches of the data sheets of A100, H100 and H200.",
        "0.6 与 0.8：Nsight Compute speed-of-light 文本的延迟与接近上限标记，以及昇腾 advisor 的流水线限值。2%：自定值。92%：BabelStream 在 A100、H100、H200 上达到的公布值比例。",
    ),
    guards: Text::new(
        "A product above 1.1 of its ceiling has its operands in a cache: its model is wrong and it does not count. One below three times the device's floor (10 µs where no probe measured it) is bound by starting (OP-08). The median of the probe is what headroom is judged by, its best repeat bounds the gain. Where probes of the very shapes exist, OP-02 tells a poor choice of kernel from a limit of the library; where a probe ran the very kernel of the run, that kernel is judged by the probe, and what it took longer is the device's (OP-13). A wrong tile (OP-10) or a tail (OP-09) shows here too.",
        "高于上限 1.1 倍的矩阵乘其操作数位于缓存中：模型不适用，不计入。短于设备下限三倍者（没有探针时为 10 µs）受启停限制（OP-08）。以探针中位数判断余量，以其最好一次限定收益。若有相同形状的探针，OP-02 可区分内核选择不当与库本身的限制；若探针所用内核与运行相同，则按探针判断该内核，超出部分归于设备（OP-13）。分块不当（OP-10）或尾部（OP-09）也会在此显现。",
    ),
    verify: Text::new(
        "Measure the product's shape with cold operands over the kernels and libraries at hand, use the best one, and run again: its time falls towards its ceiling over 0.8.",
        "以冷操作数在可用的内核与库上测量该形状，选用最快者后重跑：其耗时应降向上限时间除以 0.8。",
    ),
};

const KIND: Kind = Kind {
    doc: &DOC,
    share: 0.02,
    per_layer: None,
    formula: Text::new(
        "time of products beyond their ceiling / 0.8, of those below 0.6 of it / mean step",
        "低于上限 0.6 的矩阵乘超出“上限时间 / 0.8”的时间 / 平均步时",
    ),
    claim: Text::new(
        "{count} matrix products per step of {class} run below 60 % of what this device was measured to reach; they take {busy}, and would save {time} of {step} ({share}) at 80 %.",
        "{class} 每步有 {count} 个矩阵乘低于该设备实测上限的 60%；耗时 {busy}，达到 80% 可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of products far below their ceiling per step", "每步远低于上限的矩阵乘耗时"),
    rivals: &[
        (
            Text::new("the library has nothing faster for this shape", "该库对此形状没有更快的内核"),
            Text::new("a probe of the very shape decides (OP-02)", "相同形状的探针可以判定（OP-02）"),
        ),
        (
            Text::new("the device ran at a lower clock or was shared", "设备当时降频或被共享"),
            Text::new(
                "samples of the clock decide, or probes right before and after the run",
                "频率采样，或紧邻运行前后的探针可以判定",
            ),
        ),
    ],
    // How busy the machine was during the run is not recorded.
    most: Confidence::Medium,
};

/// Where only the maker says what the device reaches.
const PUBLISHED: Kind = Kind {
    claim: Text::new(
        "{count} matrix products per step of {class} run below 60 % of the bandwidth that is published of this device, not measured; they take {busy}, and would save {time} of {step} ({share}) at 80 %.",
        "{class} 每步有 {count} 个矩阵乘低于该设备公布带宽（未实测）的 60%；耗时 {busy}，达到 80% 可省 {time}，步时 {step}（{share}）。",
    ),
    most: Confidence::Low,
    ..KIND
};

impl Rule for BelowCeiling {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let (mut found, mut limited, mut judged) = (Vec::new(), false, false);
        for (rank, class) in cx.main_classes() {
            let ceilings = Ceilings::of(cx, rank);
            let Some(bandwidth) = ceilings.bandwidth() else { continue };
            limited = true;
            let kind = if bandwidth.origin == Origin::Measured { &KIND } else { &PUBLISHED };
            found.extend(finding(cx, kind, rank, class, &ceilings));
            judged |= rank
                .steady_steps(class)
                .take(1)
                .any(|step| reading::accounted(rank, step).any(|(_, op, _)| time(cx, rank, op, &ceilings).is_some()));
        }
        if !found.is_empty() || judged {
            return found.into_iter().collect();
        }
        Outcome::Abstain(Message::plain(if limited {
            Text::new(
                "no matrix product could be held against its ceiling: record the sizes and types of both operands; of more than 16 rows a probe must have measured the arithmetic too",
                "没有矩阵乘可与其上限比较：请记录两个操作数的尺寸与类型；超过 16 行者还须有探针实测的算力",
            )
        } else {
            Text::new(
                "nothing is known of what this device reaches: no probe measured it and no bandwidth of it is published here; give measured ceilings with --probe",
                "不知道该设备能达到什么：没有探针实测，也没有收录其公布带宽；请用 --probe 提供实测上限",
            )
        }))
    }
}

/// The time that a product takes at best and as a rule, ns.
fn time(cx: &Context<'_>, rank: &Rank, op: &DeviceOp, ceilings: &Ceilings<'_>) -> Option<(f64, f64)> {
    if op.kind != OpKind::Compute || op.op != CanonicalOp::Gemm {
        return None;
    }
    let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op))?;
    let (best, usual, _) = ceilings.time(gemm)?;
    Some((best, usual))
}

fn finding(cx: &Context<'_>, kind: &Kind, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Option<Finding> {
    let shortest = ceilings.floor().map_or(SHORT, |floor| FLOORS.saturating_mul(floor));
    let finding = share_of_step::of_class(cx, kind, rank, class, |step| {
        let ops = reading::accounted(rank, step).filter(|(_, op, _)| op.dur() >= shortest);
        ops.filter_map(|part| {
            let (best, usual) = time(cx, rank, part.1, ceilings)?;
            // What the very kernel took alone is the kernel's; what it takes longer than that is the device's (OP-13).
            let alone = probed(cx, rank, part.1, ceilings).filter(|probed| probed.same).map(|probed| probed.ns as i64);
            let beyond = alone.map_or(0, |alone| (part.1.dur() - alone).max(0));
            let reached = usual / (part.1.dur() - beyond) as f64;
            // What a far longer ceiling says is that the model of the operation is wrong.
            (reached < FAR && best <= MODEL_WRONG * part.1.dur() as f64).then(|| {
                let most = (usual / NEAR) as i64 + beyond;
                Part::gone(part).to(most).within(best as i64 + beyond, most)
            })
        })
        .collect()
    })?;
    let finding = ceilings.evidence().into_iter().fold(finding, Finding::with);
    // A machine that was busy while it was probed was likely so during the run, and then every kernel looks slow.
    let most = if ceilings.noise().is_some() { Confidence::Low } else { kind.most };
    finding.gated(most)
}
