//! OP-03: a composite runs kernel by kernel although fused kernels for it exist.

use std::collections::HashMap;

use model::{EvidenceClass::Device, Maturity};

use super::{
    gate::recurring,
    reading,
    unfused::{Composite, FUSION_EFFICIENCY, composites},
};
use crate::{
    analysis::{Confidence, Edit, Layer, Step},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// What is said where the longest kernel stands for the fused one.
const BY_LONGEST: Text = Text::new(
    "{count} composites per step of {class} run unfused ({kinds}); fused kernels would save about {saved} of {step} ({share}; modelled: longest kernel / 0.85).",
    "{class} 每步有 {count} 个复合算子未融合（{kinds}）；融合内核约可省 {saved}，步时 {step}（{share}；模型：最长内核 / 0.85）。",
);
/// What is said where attention gathers what it reads.
const BY_READING: Text = Text::new(
    "{count} composites per step of {class} run unfused ({kinds}); fused kernels would save about {saved} of {step} ({share}; modelled: a fused attention reads the gathered cache once, in place; others take their longest kernel / 0.85).",
    "{class} 每步有 {count} 个复合算子未融合（{kinds}）；融合内核约可省 {saved}，步时 {step}（{share}；模型：融合注意力就地读一遍被聚拢的缓存；其余按最长内核 / 0.85）。",
);
/// What is said where the arithmetic of the fused operation is known.
const BY_ARITHMETIC: Text = Text::new(
    "{count} composites per step of {class} run unfused ({kinds}); fused kernels would save about {saved} of {step} ({share}; modelled: the arithmetic of the products at {reached} of the best rate that products of this capture reach).",
    "{class} 每步有 {count} 个复合算子未融合（{kinds}）；融合内核约可省 {saved}，步时 {step}（{share}；模型：其中矩阵乘的运算量按本采集最佳矩阵乘速率的 {reached} 计）。",
);

/// The rule.
pub struct UnfusedComposite;

static DOC: Doc = Doc {
    id: "OP-03",
    title: Text::new("Unfused composite", "未融合的复合算子"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations {
        board: &[Feeds::Maturity(Maturity::OperatorCoverage)],
        role: Some(Role::Composite),
        ..Relations::NONE
    },
    sees: Text::new(
        "Norms, rotary embeddings, gated activations or attention run as sequences of elementary kernels.",
        "归一化、旋转位置编码、门控激活或注意力以一串基本内核的形式运行。",
    ),
    matters: Text::new(
        "Each elementary kernel reads and writes the whole tensor; the fused one reads and writes it once.",
        "每个基本内核都要读写整个张量；融合内核只读写一次。",
    ),
    trigger: Text::new(
        "At least one matched composite per layer (two per step where no layer structure is known); its kernels and the device's gaps between them, less what the fused kernel takes, add up to at least 1 % of the mean step. The fused kernel takes its longest kernel over 0.85, at best the longest product; where the shapes of its products are recorded, as in attention, the arithmetic of these (a quarter more in a backward pass, which computes the scores again) at a third of the best rate of the capture's products, at best at three quarters of it; at 0.6 and 0.9 where ordinary units compute the products.",
        "每层至少匹配一个复合算子（未知层结构时每步两个）；其各内核与内核间设备间隙之和，减去融合内核耗时，至少占平均步时的 1%。融合内核耗时按最长内核除以 0.85 计，最好为其中最长的矩阵乘；记录了其中矩阵乘形状时（如注意力），按其运算量（反向要重算得分，多四分之一）与本采集最佳矩阵乘速率的三分之一计，最好达到四分之三；矩阵乘由普通单元完成时按 0.6 与 0.9 计。",
    ),
    source: Text::new(
        "0.85 and at most 15 kernels: fusion estimator of TraceLens. A third and three quarters: FlashAttention papers, 35 to 75 % of peak on H100, and the backward pass that computes scores again. 0.9: exponentials of heads of 64 on ordinary units, by their throughput in the CUDA programming guide; 0.6: own value. 1 %: common gate.",
        "0.85 与至多 15 个内核：TraceLens 的融合估计。三分之一与四分之三：FlashAttention 论文（H100 上峰值的 35–75%；反向重算得分）。0.9：头维 64 时普通单元上指数运算的占比，依据 CUDA 编程指南的吞吐；0.6：自定值。1%：通用门槛。",
    ),
    guards: Text::new(
        "Matches never overlap. An intermediate result that something else reads must still be written. In a launch-bound step the gain is mostly launches, which RT-14 counts; idle time that the host causes is not counted here.",
        "匹配互不重叠。若中间结果另有使用者仍须写出。在受下发限制的步中收益主要是下发，由 RT-14 统计；主机造成的空闲不计入本规则。",
    ),
    verify: Text::new(
        "Use the fused kernels or compile the model: count kernels per layer before and after.",
        "使用融合内核或编译模型：比较前后每层内核数。",
    ),
};

impl Rule for UnfusedComposite {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut names = HashMap::new();
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let mut per_step: HashMap<u32, Vec<Composite>> = HashMap::new();
            for step in rank.steady_steps(class) {
                let mut gaining = composites(cx.trace, rank, step, &mut names);
                // A fusion that would not gain is not made.
                gaining.retain(|composite| composite.saved > 0);
                per_step.insert(step.index, gaining);
            }
            let layers = rank.period.as_ref().map(|p| p.repeats);
            let least = layers.unwrap_or(2).max(1);
            let of = |s: &Step| per_step.get(&s.index).map_or(&[][..], Vec::as_slice);
            let saved = |s: &Step| if of(s).len() < least { 0 } else { of(s).iter().map(|c| c.saved).sum() };
            let Some(cost) = recurring(rank, class, LEAST_GAIN, saved) else { continue };
            let Some(step) = rank.steady_steps(class).max_by_key(|s| of(s).len()) else { continue };
            let trigger = Trigger {
                formula: Text::new(
                    "(kernels + device gaps - longest kernel / 0.85) of the composites / mean step",
                    "组合算子的（内核 + 设备间隙 − 最长内核 / 0.85）/ 平均步时",
                ),
                value: cost.share,
                threshold: LEAST_GAIN,
            };
            let kinds = tally(of(step));
            let computed = of(step).iter().filter_map(|c| c.computed).reduce(f64::min);
            let claim = Message::new(
                match computed {
                    Some(_) => BY_ARITHMETIC,
                    None if of(step).iter().any(|c| c.reads) => BY_READING,
                    None => BY_LONGEST,
                },
                [
                    ("count", Value::Count(of(step).len() as u64)),
                    ("class", Value::Raw(class.key.clone())),
                    ("kinds", Value::Raw(kinds)),
                    ("reached", Value::Share(computed.unwrap_or_default())),
                    ("saved", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.mean())),
                    ("share", Value::Share(cost.share)),
                ],
            );
            let all = || rank.steady_steps(class).flat_map(&of);
            // The model is off by as much to either side: at best the fused kernel takes what its longest member does.
            let worst = |c: &Composite| {
                if c.computed.is_some() { c.fused } else { (c.fused as f64 / FUSION_EFFICIENCY) as i64 }
            };
            let fused = all().map(|c| (c.ops.clone(), worst(c))).collect();
            let hoped = all().filter_map(|c| Some((*c.ops.first()?, c.best.min(worst(c))))).collect();
            let edits = vec![Edit::Fuse(fused), Edit::Hoped(Box::new(Edit::Resize(hoped)))];
            let change = Intervention { removes: cost.per_step, layer: Layer::Operator, edits };
            let most = if layers.is_some() { cost.most } else { cost.most.min(Confidence::Medium) };
            let mut finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("kernels of the composites in a step", "每步复合算子包含的内核数"),
                    Value::Count(of(step).iter().map(|c| c.kernels as u64).sum()),
                    reading::sample(of(step).iter().map(|c| c.first)),
                ))
                .against(Competing::open(
                    Text::new("another kernel reads an intermediate result", "中间结果还被其他内核使用"),
                    Text::new(
                        "the model's code, or a run with the fused kernel, decides",
                        "模型代码或换用融合内核再跑可以判定",
                    ),
                ));
            let names: Vec<&str> = of(step).iter().map(|c| c.name).collect();
            finding.remedy.retain(|remedy| remedy.is_about(names.iter().copied()));
            found.extend(finding.gated(most));
        }
        found.into_iter().collect()
    }
}

/// `18 × norm, 9 × rope` in the order of the names.
fn tally(composites: &[Composite]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for c in composites {
        match counts.iter_mut().find(|(name, _)| *name == c.name) {
            Some((_, n)) => *n += 1,
            None => counts.push((c.name, 1)),
        }
    }
    counts.sort_unstable();
    counts.iter().map(|(name, n)| format!("{n} × {name}")).collect::<Vec<_>>().join(", ")
}
