//! OP-21: kernels in which the scalar unit works and the units that compute and move data wait for it.

use model::{
    EvidenceClass::{Counters, Device},
    Metric, Ns,
};

use super::{
    measured, reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{Confidence, Layer, OpKind},
    diagnose::{
        relations::{Advice, Relations, Vendors},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
};

/// Share of a kernel's cycles in which its scalar unit works from which that unit bounds it; limit of a unit's bound in the
/// Ascend advisor.
const BOUND: f64 = 0.8;

/// What is left at the least of the time of scalar code written for the vector unit: that unit works on 256 bytes at once, 64 numbers
/// of 32 bits (Ascend C, vector programming model).
const LANES: f64 = 1.0 / 64.0;

/// The rule.
pub struct ScalarBound;

static DOC: Doc = Doc {
    id: "OP-21",
    title: Text::new("Kernel bound by its scalar unit", "内核受标量单元限制"),
    layer: Layer::Operator,
    needs: &[Device, Counters],
    advice: Advice::Device,
    relations: Relations { precedes: &["OP-11"], vendors: Vendors::Only(&["ascend"]), ..Relations::NONE },
    sees: Text::new(
        "The scalar unit of the cores works for most of a kernel's time, while matrix, vector and copy units are hardly used.",
        "内核的大部分时间里只有核心的标量单元在工作，矩阵、向量与搬运单元几乎没有使用。",
    ),
    matters: Text::new(
        "The scalar unit computes addresses and loops. A kernel that spends its time there moves and computes next to nothing: as a rule it was written element by element.",
        "标量单元负责地址与循环。时间花在这里的内核几乎不搬运也不计算：通常是逐元素编写的。",
    ),
    trigger: Text::new(
        "Kernels whose counters say that the scalar unit works for at least 80 % of their cycles, and more than any other unit; what is left at the use of the next busiest unit saves at least 3 % of the mean step.",
        "计数器显示标量单元占内核周期至少 80% 且高于其他单元；若降到次忙单元的占用，所省时间至少占平均步时的 3%。",
    ),
    source: Text::new("80 %: bound of a unit in the Ascend advisor.", "80%：Ascend advisor 的单元瓶颈阈值。"),
    guards: Text::new(
        "Only kernels with counters are judged. What the kernel would take with vector or matrix instructions is not known: the gain is a bound.",
        "只判断带计数器的内核。改用向量或矩阵指令后的耗时未知：收益为上界。",
    ),
    verify: Text::new(
        "Write the kernel with vector or matrix instructions on whole tiles and count again: the share of the scalar unit falls with the duration.",
        "以整块的向量或矩阵指令改写内核并重新计数：标量单元占比随时长一同下降。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.03,
    per_layer: None,
    formula: Text::new(
        "sum of duration x (1 - use of the next busiest unit / use of the scalar unit) / mean step",
        "时长 ×（1 − 次忙单元占用 / 标量单元占用）之和 / 平均步时",
    ),
    claim: Text::new(
        "{count} kernels per step of {class} keep the scalar unit busy and no other: they take {busy} of {step}, of which up to {time} ({share}) is scalar work.",
        "{class} 每步有 {count} 个内核只让标量单元忙碌：耗时 {busy}，步时 {step}，其中最多 {time}（{share}）为标量工作。",
    ),
    what: Text::new("time of kernels bound by the scalar unit per step", "每步受标量单元限制的内核耗时"),
    rivals: &[(
        Text::new("the kernel waits for another one and counts the loop as work", "内核在等待其他任务，循环被计为工作"),
        Text::new("its source decides: a loop over a flag is waiting", "查看其源码可以判定：循环读取标志即为等待"),
    )],
    most: Confidence::High,
};

impl Rule for ScalarBound {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        if !measured::any(cx, |summary| summary.metric(Metric::Scalar).is_some()) {
            return Outcome::Abstain(Message::plain(Text::new(
                "no counter says how busy the scalar unit was; record with the metrics of the pipes (aic_metrics PipeUtilization)",
                "没有计数器说明标量单元的繁忙程度；请以流水线指标（aic_metrics PipeUtilization）记录",
            )));
        }
        let found = share_of_step::check(cx, &KIND, |rank, _, step| {
            reading::accounted(rank, step)
                .filter(|(_, op, _)| op.kind == OpKind::Compute)
                .filter_map(|part| {
                    let summary = measured::of(cx, part.1)?;
                    let used = |metric| summary.metric(metric).map(|percent| percent / 100.0);
                    let scalar = used(Metric::Scalar).filter(|share| *share >= BOUND)?;
                    let next = used(Metric::Compute).into_iter().chain(used(Metric::Memory)).fold(0.0, f64::max);
                    let dur = part.1.dur();
                    let least = (next / scalar).max(LANES);
                    (next < scalar).then(|| Part::gone(part).within((dur as f64 * least) as Ns, dur))
                })
                .collect()
        });
        found.into_iter().collect()
    }
}
