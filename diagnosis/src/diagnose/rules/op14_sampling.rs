//! OP-14: choosing the next token takes a visible part of the step.

use model::{EvidenceClass::Device, Ns, StringId};
use rustc_hash::FxHashSet;

use super::{
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{AnchorKind, Confidence, DeviceOp, Layer, OpKind, Rank, Step},
    diagnose::{
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
    platform::{CanonicalOp, OpClass, Stage},
};

/// The rule.
pub struct Sampling;

static DOC: Doc = Doc {
    id: "OP-14",
    title: Text::new("Costly sampling", "采样开销大"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "Kernels after the logits (penalties, sort, top-k, softmax, choice) take a visible part of the step.",
        "logits 之后的内核（惩罚、排序、top-k、softmax、选取）占步时的可观部分。",
    ),
    matters: Text::new(
        "A full sort of the vocabulary costs more than several layers of a small model, for a choice among a few tokens.",
        "对整个词表排序比小模型的几层还贵，而实际只在少数 token 中选择。",
    ),
    trigger: Text::new(
        "Exclusive time of sampling kernels, and of softmax, reduction, index and elementwise kernels after the last matrix product of the step, at least 5 % of the mean step, or 10 % where none of them sorts. Of sort kernels after the last matrix product 1 % is enough: no choice of a few tokens needs a sorted vocabulary.",
        "采样内核，以及步内最后一次矩阵乘之后的 softmax、规约、索引与逐元素内核的独占时间，至少占平均步时的 5%；若其中没有排序则至少 10%。最后一次矩阵乘之后的排序内核只需 1%：选取少数 token 并不需要对词表排序。",
    ),
    source: Text::new(
        "5 % and 10 %: own values. 1 %: the least gain that is reported.",
        "5% 与 10%：自定值。1%：报告的最小收益。",
    ),
    guards: Text::new(
        "The lm_head product itself is ideal work and does not count. Where a sampling kernel marks the step, what follows the last product is the next step's beginning and only named sampling kernels count.",
        "lm_head 矩阵乘本身是必要工作，不计入。若以采样内核标记步，则最后一次矩阵乘之后属于下一步开头，只计具名采样内核。",
    ),
    verify: Text::new(
        "Use a fused top-k/top-p sampler, and skip top-k when it keeps the whole vocabulary: the sampling time falls below 5 %.",
        "使用融合的 top-k/top-p 采样，并在保留整个词表时跳过 top-k：采样时间降到 5% 以下。",
    ),
};

const KIND: Kind = Kind {
    doc: &DOC,
    share: 0.05,
    per_layer: None,
    formula: Text::new("time of sampling kernels / mean step", "采样内核时间 / 平均步时"),
    claim: Text::new(
        "Sampling takes {time} of {step} in {class} ({share}), {count} kernels beside the lm_head product.",
        "{class} 的采样耗时 {time}，步时 {step}（{share}），除 lm_head 外共 {count} 个内核。",
    ),
    what: Text::new("time of sampling kernels per step", "每步采样内核耗时"),
    rivals: &[(
        Text::new("the sampling parameters need all of it", "采样参数确需全部这些工作"),
        Text::new(
            "the request's sampling parameters (top-k, top-p, penalties) decide",
            "请求的采样参数（top-k、top-p、惩罚）可以判定",
        ),
    )],
    most: Confidence::High,
};

/// Without a sort: of a choice that only looks at the logits, a large batch takes more than a twentieth by right.
const UNSORTED: Kind = Kind { share: 0.10, ..KIND };

/// The sorts alone, which are work to avoid however little they take.
const SORTS: Kind = Kind {
    share: LEAST_GAIN,
    formula: Text::new("time of sort kernels / mean step", "排序内核时间 / 平均步时"),
    claim: Text::new(
        "Sampling sorts the vocabulary: the sorts take {time} of {step} in {class} ({share}), {count} kernels.",
        "采样对词表排序：{class} 的排序耗时 {time}，步时 {step}（{share}），共 {count} 个内核。",
    ),
    what: Text::new("time of sort kernels per step", "每步排序内核耗时"),
    ..KIND
};

impl Rule for Sampling {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let sorts = reading::named(cx, |name| name.to_ascii_lowercase().contains("sort"));
        let inference = cx.main_classes().filter(|(_, c)| !matches!(c.stage, Stage::Train | Stage::Prefill));
        let found = inference.filter_map(|(rank, class)| {
            let all = |step: &Step| sampling(rank, step, &sorts);
            let sorts = |step: &Step| all(step).into_iter().filter(|(_, sorts)| *sorts).map(|(part, _)| part).collect();
            let whole = |step: &Step| {
                // A choice without sorting still has to look at the logits: only the sorts are certain to go.
                let kept = |part: Part, sorts: bool| if sorts { part } else { part.within(0, Ns::MAX) };
                all(step).into_iter().map(|(part, sorts)| kept(part, sorts)).collect()
            };
            let sorted = rank.steady_steps(class).any(|step| all(step).iter().any(|(_, sorts)| *sorts));
            share_of_step::of_class(cx, if sorted { &KIND } else { &UNSORTED }, rank, class, whole)
                .or_else(|| share_of_step::of_class(cx, &SORTS, rank, class, sorts))
        });
        found.collect()
    }
}

/// Sampling kernels of a step, each with whether it sorts.
fn sampling(rank: &Rank, step: &Step, sorts: &FxHashSet<StringId>) -> Vec<(Part, bool)> {
    let matrix = |op: &DeviceOp| op.op.class() == OpClass::Matrix;
    let last = rank.ops_of(step).iter().rposition(matrix).map_or(usize::MAX, |i| step.ops.start + i);
    let after = match rank.anchor.kind {
        AnchorKind::PeriodicOp | AnchorKind::WholeCapture => usize::MAX,
        _ => last,
    };
    let tail = |op: CanonicalOp| {
        matches!(op, CanonicalOp::Softmax | CanonicalOp::Reduce | CanonicalOp::Index | CanonicalOp::Elementwise)
    };
    reading::accounted(rank, step)
        .filter(|(i, op, _)| {
            op.kind == OpKind::Compute && (op.op == CanonicalOp::Sample || (*i > after && tail(op.op)))
        })
        .map(|part| {
            let (i, op, _) = part;
            (Part::gone(part), op.op == CanonicalOp::Sample && i > last && sorts.contains(&op.name))
        })
        .collect()
}
