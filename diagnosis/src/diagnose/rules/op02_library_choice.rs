//! OP-02: the library has a faster kernel for the very shape than the one that ran.

use model::EvidenceClass::{Device, Probes, Shapes};

use super::{
    ceilings::Ceilings,
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{
        Class, Confidence, DeviceOp, Layer, OpKind, Rank,
        op_shapes::{self, Gemm},
    },
    diagnose::{
        Finding,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text},
    platform::CanonicalOp,
};

/// So many times the best kernel's time an operation must take: above the noise of a best of many (own value; more than
/// 10 % of loss by default selection is common, rocm-libraries #9985).
const SLOWER: f64 = 1.3;
/// Spread of the factors of different shapes, relative to their median, below which one cause outside of the kernels makes
/// them all slower (noise of repeated runs; OP-13).
const UNIFORM: f64 = 0.03;
/// Shapes from which a common factor can be told.
const SHAPES: usize = 3;

/// The rule.
pub struct LibraryChoice;

static DOC: Doc = Doc {
    id: "OP-02",
    title: Text::new("A faster kernel is at hand", "已有更快的内核可用"),
    layer: Layer::Operator,
    needs: &[Device, Shapes, Probes],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Matrix products take much longer than the best kernel at hand took for the same shape and type when it was probed.",
        "矩阵乘的耗时远多于探针测得的、相同形状与类型下最快可用内核的耗时。",
    ),
    matters: Text::new(
        "The library is able and the choice is poor: a setting wins back what no new kernel has to be written for.",
        "库本身具备能力，只是选择不当：调整设置即可收回，无需编写新内核。",
    ),
    trigger: Text::new(
        "A probe measured products of the same rows, outputs, inputs and type with cold weights and as many threads. Products of 1.3 times its median time and more count, and what they take beyond it is at least 1 % of the mean step.",
        "探针以冷权重、相同线程数测量了行数、输出、输入与类型均相同的矩阵乘。耗时达到其中位数 1.3 倍及以上者计入；超出部分至少占平均步时的 1%。",
    ),
    source: Text::new(
        "1.3: own value, above the noise of a best of many; rocm-libraries #9985 reports losses of more than 10 % by default selection on most shapes. 1 %: the least gain that is reported.",
        "1.3：自定值，高于多次取优的噪声；rocm-libraries #9985 报告多数形状因默认选择损失超过 10%。1%：报告的最小收益。",
    ),
    guards: Text::new(
        "Only the very shape and type are compared. Where the probe says that it ran the very kernel of the run, none is faster (OP-13). Where three or more shapes are slower by one factor within 3 %, the device is slower and no kernel was badly chosen (OP-13). Probes that were disturbed lower the confidence: a machine that was busy then was likely busy during the run.",
        "只比较完全相同的形状与类型。若探针表明所用内核与运行相同，则没有更快的内核（见 OP-13）。若三个以上形状按同一倍数（3% 以内）变慢，则是设备变慢而非内核选择不当（OP-13）。探针受干扰时降低置信度：那时繁忙的机器在运行时很可能同样繁忙。",
    ),
    verify: Text::new(
        "Run again with the kernels, instruction set or tuning that the probe used: each product takes the probe's time within its spread.",
        "以探针所用的内核、指令集或调优设置重跑：各矩阵乘的耗时应在探针的离散度之内。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.01,
    per_layer: None,
    formula: Text::new(
        "time of products beyond the probed time of their shape, of those at 1.3 times it and more / mean step",
        "达到探针耗时 1.3 倍以上的矩阵乘超出该耗时的时间 / 平均步时",
    ),
    claim: Text::new(
        "{count} matrix products per step of {class} take 1.3 times and more what the best kernel at hand took for the same shape; they take {busy}, with that kernel they would save {time} of {step} ({share}).",
        "{class} 每步有 {count} 个矩阵乘的耗时达到相同形状最快可用内核的 1.3 倍及以上；耗时 {busy}，换用该内核可省 {time}，步时 {step}（{share}）。",
    ),
    what: Text::new("time of products slower than their probe per step", "每步慢于探针的矩阵乘耗时"),
    rivals: &[
        (
            Text::new("the machine was busier during the run than while it was probed", "运行时机器比探测时更忙"),
            Text::new(
                "probes right before and after the run decide, and the counts of other processes",
                "紧邻运行前后的探针与其他进程的计数可以判定",
            ),
        ),
        (
            Text::new(
                "the operator does more than the product: an epilogue, or another layout",
                "该算子不止是矩阵乘：含后处理或另一种布局",
            ),
            Text::new("a probe with the same epilogue and layout decides", "含相同后处理与布局的探针可以判定"),
        ),
    ],
    // How busy the machine was during the run is not recorded.
    most: Confidence::Medium,
};

impl Rule for LibraryChoice {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let (mut found, mut probed) = (Vec::new(), false);
        for (rank, class) in cx.main_classes() {
            let ceilings = Ceilings::of(cx, rank);
            let factors = factors(cx, rank, class, &ceilings);
            probed |= !factors.is_empty();
            if !is_uniform(factors) {
                found.extend(finding(cx, rank, class, &ceilings));
            }
        }
        if found.is_empty() && !probed {
            return Outcome::Abstain(Message::plain(Text::new(
                "no probe measured a product of this run's shapes, type and threads; give its capture to the probe: strato probe --only product --like CAPTURE",
                "没有探针测量过该运行的形状、类型与线程数；请把采集交给探针：strato probe --only product --like CAPTURE",
            )));
        }
        found.into_iter().collect()
    }
}

/// What probes say of an operation.
pub(super) struct Probed {
    /// The product behind it.
    pub gemm: Gemm,
    /// The best kernel's time for it, ns.
    pub ns: f64,
    /// Whether that is the very kernel that ran.
    pub same: bool,
}

/// What probes measured for the very shape of an operation.
pub(super) fn probed(cx: &Context<'_>, rank: &Rank, op: &DeviceOp, ceilings: &Ceilings<'_>) -> Option<Probed> {
    if op.kind != OpKind::Compute || op.op != CanonicalOp::Gemm {
        return None;
    }
    let gemm = op_shapes::gemm(&op_shapes::inputs(cx.trace, rank, op))?;
    let (statistic, kernel) = ceilings.probed(gemm)?;
    let same = kernel.is_some_and(|kernel| ceilings.is_same(cx.trace.strings.get(op.name), kernel));
    Some(Probed { gemm, ns: statistic.median, same })
}

/// How many times its probe each shape of a class takes, by the shape's median over the steps.
fn factors(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Vec<f64> {
    let mut shapes: Vec<(Gemm, Vec<f64>)> = Vec::new();
    for step in rank.steady_steps(class) {
        for (_, op, _) in reading::accounted(rank, step) {
            let Some(probed) = probed(cx, rank, op, ceilings).filter(|probed| probed.ns > 0.0) else { continue };
            let factor = op.dur() as f64 / probed.ns;
            match shapes.iter_mut().find(|(known, _)| *known == probed.gemm) {
                Some((_, factors)) => factors.push(factor),
                None => shapes.push((probed.gemm, vec![factor])),
            }
        }
    }
    let medians = shapes.into_iter().filter_map(|(_, factors)| model::Statistic::of(factors)).map(|s| s.median);
    let mut medians: Vec<f64> = medians.collect();
    medians.sort_by(f64::total_cmp);
    medians
}

/// Whether shapes enough are slower, and all by one factor.
fn is_uniform(factors: Vec<f64>) -> bool {
    let (Some(least), Some(most)) = (factors.first(), factors.last()) else { return false };
    factors.len() >= SHAPES && *least > 1.0 && most - least <= UNIFORM * least
}

fn finding(cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Option<Finding> {
    let finding = share_of_step::of_class(cx, &KIND, rank, class, |step| {
        let ops = reading::accounted(rank, step);
        ops.filter_map(|part| {
            // No other kernel is at hand where the probe ran the same one: what is slower is the device (OP-13).
            let Probed { ns, .. } = probed(cx, rank, part.1, ceilings).filter(|probed| !probed.same)?;
            (part.1.dur() as f64 >= SLOWER * ns).then(|| Part::gone(part).to(ns as i64))
        })
        .collect()
    })?;
    // A machine that was busy while it was probed was likely so during the run, and then every kernel looks slow.
    let most = if ceilings.noise().is_some() { Confidence::Low } else { KIND.most };
    ceilings.disturbed().into_iter().fold(finding, Finding::with).gated(most)
}
