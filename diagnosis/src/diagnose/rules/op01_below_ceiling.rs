//! OP-01: matrix products far below what the device reaches.

use model::{EvidenceClass::Device, StringId};

use super::{
    ceilings::{Ceilings, NEAR, Origin},
    matrix_units::is_without_units,
    op02_library_choice::probed,
    op22_no_matrix_units::has_units,
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{
        Class, Confidence, DeviceOp, Layer, OpKind, Rank,
        op_shapes::{self, Gemm},
    },
    diagnose::{
        Evidence, Finding,
        limits::{
            experts::{Experts, is_of_experts},
            rates,
        },
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
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

/// Kinds of products that are held against each other.
const KINDS: usize = 1_000;
/// Products whose reasons are named.
const NAMED: usize = 2;
/// Reasons that are named.
const MOST_REASONS: usize = 4;

/// The rule.
pub struct BelowCeiling;

static DOC: Doc = Doc {
    id: "OP-01",
    title: Text::new("Operator far below its ceiling", "算子远低于上限"),
    layer: Layer::Operator,
    // Shapes, or a model that says them.
    needs: &[Device],
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
        "The ceiling of a product is the longer of its bytes over the read bandwidth and its operations over the arithmetic of its type. Products below 0.6 of it count, and what they take beyond their ceiling over 0.8 is at least 2 % of the mean step. Bandwidth and arithmetic are measured by probes; without them 92 % of the published bandwidth and 75 % of the published arithmetic serve. Then the gain is only bounded by what is published, and assured as far as another product of the capture of like shape reaches more.",
        "矩阵乘的上限时间取“字节数除以读取带宽”与“运算量除以该类型算力”的较大者。低于上限 0.6 的矩阵乘计入；它们超出“上限时间除以 0.8”的部分至少占平均步时的 2%。带宽与算力由探针实测；没有探针时以公布带宽的 92% 与公布算力的 75% 代替，此时收益仅以公布值为上界，只有当采集中另一个形状相近的矩阵乘更快时才有保证的部分。",
    ),
    source: Text::new(
        "0.6 and 0.8: latency and near-limit marks of Nsight Compute's speed-of-light texts, pipe limits of the Ascend advisor. 2 %: own value. 92 %: what BabelStream reaches of the data sheets of A100, H100 and H200. 75 %: what cuBLAS and hipBLASLt reach of those of H100 and MI300X with large products.",
        "0.6 与 0.8：Nsight Compute speed-of-light 文本的延迟与接近上限标记，以及昇腾 advisor 的流水线限值。2%：自定值。92%：BabelStream 在 A100、H100、H200 上达到的公布值比例。75%：cuBLAS 与 hipBLASLt 的大矩阵乘在 H100、MI300X 上达到的公布值比例。",
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
        "{count} matrix products per step of {class} stay below 60 % of what good kernels reach of this device's published peaks (nothing was measured); they take {busy}, and at best {time} of {step} ({share}) could go.",
        "{class} 每步有 {count} 个矩阵乘低于优秀内核在该设备公布峰值（未实测）上可达水平的 60%；耗时 {busy}，最多可省 {time}，步时 {step}（{share}）。",
    ),
    formula: Text::new(
        "time of products beyond what published peaks allow, of those below 0.6 of it / median step",
        "低于公布峰值可达水平 0.6 的矩阵乘超出该水平的时间 / 中位步时",
    ),
    most: Confidence::Low,
    ..KIND
};

/// A like product must come so many times closer to its ceiling before anything is assured: below it is noise; own value.
const CLOSER: f64 = 1.15;
/// Sizes of like products differ by so much at most; own value.
const LIKE: i64 = 2;

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
            found.extend(match bandwidth.origin {
                Origin::Measured => finding(cx, rank, class, &ceilings),
                Origin::Published => bounded(cx, rank, class, &ceilings),
            });
            judged |= rank
                .steady_steps(class)
                .take(1)
                .any(|step| reading::accounted(rank, step).any(|(_, op, _)| time(cx, rank, op, &ceilings).is_some()));
            judged |=
                Experts::of(cx, rank, class).is_some_and(|experts| experts.shares(rank, class, &ceilings).is_some());
        }
        if !found.is_empty() || judged {
            return found.into_iter().collect();
        }
        Outcome::Abstain(Message::plain(if limited {
            Text::new(
                "no matrix product could be held against its ceiling: record the sizes and types of both operands; of more than 16 rows the arithmetic of the type must be known too, published or by a probe",
                "没有矩阵乘可与其上限比较：请记录两个操作数的尺寸与类型；超过 16 行者还须知道该类型的算力（公布或实测）",
            )
        } else {
            Text::new(
                "nothing is known of what this device reaches: no probe measured it and no bandwidth of it is published here; give measured ceilings with --probe",
                "不知道该设备能达到什么：没有探针实测，也没有收录其公布带宽；请用 --probe 提供实测上限",
            )
        }))
    }
}

/// A product, and the time that it takes at best and as a rule, ns, by ceilings that were measured if the bandwidth was.
fn time(cx: &Context<'_>, rank: &Rank, op: &DeviceOp, ceilings: &Ceilings<'_>) -> Option<(Gemm, f64, f64)> {
    let name = cx.trace.strings.get(op.name);
    // What does not use the units that the ceiling is of has a cause of its own (OP-22).
    let other = cx.vendor() == Some("nvidia") && is_without_units(name) && has_units(ceilings.chip(), name);
    if op.kind != OpKind::Compute || op.op != CanonicalOp::Gemm || other {
        return None;
    }
    let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op))?;
    let (best, usual, origin) = ceilings.time(gemm)?;
    let alike = ceilings.bandwidth().is_some_and(|bandwidth| bandwidth.origin == Origin::Published);
    (alike || origin == Origin::Measured).then_some((gemm, best, usual))
}

fn shortest(ceilings: &Ceilings<'_>) -> i64 {
    ceilings.floor().map_or(SHORT, |floor| FLOORS.saturating_mul(floor))
}

/// Products far below measured ceilings.
fn finding(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Option<Finding> {
    let shortest = shortest(ceilings);
    let experts = of_experts(cx, rank, class, ceilings);
    let finding = share_of_step::of_class(cx, &KIND, rank, class, |step| {
        let ops = reading::accounted(rank, step).filter(|(_, op, _)| op.dur() >= shortest);
        ops.filter_map(|part| {
            if let Some((_, [best, usual])) = experts.as_ref().filter(|_| is_of_experts(part.1)) {
                let [best, most] = [*best, usual / NEAR].map(|share| (share * part.1.dur() as f64) as i64);
                return Some(Part::gone(part).to(most).within(best, most));
            }
            let (_, best, usual) = time(cx, rank, part.1, ceilings)?;
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
    let finding = experts.iter().map(|(experts, _)| experts.evidence()).fold(finding, Finding::with);
    // A machine that was busy while it was probed was likely so during the run, and then every kernel looks slow.
    let most = if ceilings.noise().is_some() { Confidence::Low } else { KIND.most };
    finding.gated(most)
}

/// The products of experts where they stay far below their ceiling, with the shares of their time at best and as a rule.
fn of_experts(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Option<(Experts, [f64; 2])> {
    let experts = Experts::of(cx, rank, class)?;
    let shares = experts.shares(rank, class, ceilings)?;
    let [best, usual] = shares;
    (usual < FAR && best <= MODEL_WRONG).then_some((experts, shares))
}

/// Products of one kernel and shape: how much of their ceiling they reach, in the mean.
struct Reached {
    gemm: Gemm,
    kernel: StringId,
    usual: f64,
    time: i64,
    count: i64,
}

impl Reached {
    fn share(&self) -> f64 {
        (self.usual * self.count as f64 / self.time.max(1) as f64).min(1.0)
    }

    /// Whether another product is like this one: of the same type, and each size within a factor.
    fn is_like(&self, gemm: Gemm) -> bool {
        let near = |a: i64, b: i64| a <= b.saturating_mul(LIKE) && b <= a.saturating_mul(LIKE);
        self.gemm.types == gemm.types
            && near(self.gemm.rows, gemm.rows)
            && near(self.gemm.outputs, gemm.outputs)
            && near(self.gemm.inputs, gemm.inputs)
    }
}

/// Products far below what good kernels reach of published peaks: how much could be gained is only bounded, unless a like one
/// shows it.
fn bounded(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Option<Finding> {
    let shortest = shortest(ceilings);
    let mut kinds: Vec<Reached> = Vec::new();
    for (_, op, _) in rank.steady_steps(class).flat_map(|step| reading::accounted(rank, step)) {
        let Some((gemm, best, usual)) = time(cx, rank, op, ceilings).filter(|_| op.dur() >= shortest) else { continue };
        if best > MODEL_WRONG * op.dur() as f64 {
            continue;
        }
        let known = kinds.iter().position(|kind| kind.gemm == gemm && kind.kernel == op.name);
        let at = known.unwrap_or(kinds.len());
        if at == kinds.len() && at < KINDS {
            kinds.push(Reached { gemm, kernel: op.name, usual, time: 0, count: 0 });
        }
        if let Some(kind) = kinds.get_mut(at) {
            (kind.time, kind.count) = (kind.time.saturating_add(op.dur()), kind.count + 1);
        }
    }
    let experts = of_experts(cx, rank, class, ceilings);
    let finding = share_of_step::of_class(cx, &PUBLISHED, rank, class, |step| {
        let ops = reading::accounted(rank, step).filter(|(_, op, _)| op.dur() >= shortest);
        ops.filter_map(|part| {
            if let Some((_, [_, usual])) = experts.as_ref().filter(|_| is_of_experts(part.1)) {
                let usual = (usual * part.1.dur() as f64) as i64;
                return Some(Part::gone(part).to(usual).within(usual, part.1.dur()));
            }
            let (gemm, best, usual) = time(cx, rank, part.1, ceilings)?;
            let dur = part.1.dur();
            let reached = usual / dur as f64;
            (reached < FAR && best <= MODEL_WRONG * dur as f64).then(|| {
                let own = kinds.iter().find(|kind| kind.gemm == gemm && kind.kernel == part.1.name);
                let own = own.map_or(reached, Reached::share);
                let like = kinds.iter().filter(|kind| kind.is_like(gemm)).map(Reached::share).fold(0.0, f64::max);
                let assured = if like >= CLOSER * own { (usual / like) as i64 } else { dur };
                Part::gone(part).to(usual as i64).within(usual as i64, assured)
            })
        })
        .collect()
    })?;
    let mut finding = ceilings.evidence().into_iter().fold(finding, Finding::with);
    finding = reasons(cx, rank, class, ceilings).into_iter().fold(finding, Finding::with);
    finding = experts.iter().map(|(experts, _)| experts.evidence()).fold(finding, Finding::with);
    finding.gated(PUBLISHED.most)
}

/// What keeps the slowest of these products below their ceilings, as far as shape and launch tell.
fn reasons(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Vec<Evidence> {
    let rates = rates::of(cx, rank, class, ceilings).into_iter();
    let slow = rates.filter(|rate| rate.operator == CanonicalOp::Gemm.name() && rate.share().is_some_and(|s| s < FAR));
    let said = slow.take(NAMED).flat_map(|rate| {
        let shape = rate.shape;
        rate.why.into_iter().map(move |what| Evidence { what, value: Value::Raw(shape.clone()), rows: Vec::new() })
    });
    said.take(MOST_REASONS).collect()
}
