//! OP-14: choosing the next token takes a visible part of the step.

use model::EvidenceClass::Device;

use super::{
    reading,
    share_of_step::{self, Kind, Part},
};
use crate::{
    analysis::{AnchorKind, Confidence, DeviceOp, Layer, OpKind, Rank, Step},
    diagnose::rule::{Context, Doc, Outcome, Rule},
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
    sees: Text::new(
        "Kernels after the logits (penalties, sort, top-k, softmax, choice) take a visible part of the step.",
        "logits 之后的内核（惩罚、排序、top-k、softmax、选取）占步时的可观部分。",
    ),
    matters: Text::new(
        "A full sort of the vocabulary costs more than several layers of a small model, for a choice among a few tokens.",
        "对整个词表排序比小模型的几层还贵，而实际只在少数 token 中选择。",
    ),
    trigger: Text::new(
        "Exclusive time of sampling kernels, and of softmax, reduction, index and elementwise kernels after the last matrix product of the step, at least 5 % of the median step.",
        "采样内核，以及步内最后一次矩阵乘之后的 softmax、规约、索引与逐元素内核的独占时间，至少占中位步时的 5%。",
    ),
    source: Text::new("5 %: own value.", "5%：自定值。"),
    guards: Text::new(
        "The lm_head product itself is ideal work and does not count. Where a sampling kernel marks the step, what follows the last product is the next step's beginning and only named sampling kernels count.",
        "lm_head 矩阵乘本身是必要工作，不计入。若以采样内核标记步，则最后一次矩阵乘之后属于下一步开头，只计具名采样内核。",
    ),
    verify: Text::new(
        "Use a fused top-k/top-p sampler, and skip top-k when it keeps the whole vocabulary: the sampling time falls below 5 %.",
        "使用融合的 top-k/top-p 采样，并在保留整个词表时跳过 top-k：采样时间降到 5% 以下。",
    ),
};

static KIND: Kind = Kind {
    doc: &DOC,
    share: 0.05,
    per_layer: None,
    formula: Text::new("time of sampling kernels / median step", "采样内核时间 / 中位步时"),
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

impl Rule for Sampling {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        share_of_step::check(cx, &KIND, |rank, class, step| match class.stage {
            Stage::Train | Stage::Prefill => Vec::new(),
            _ => sampling(rank, step),
        })
        .into_iter()
        .collect()
    }
}

/// Sampling kernels of a step.
fn sampling(rank: &Rank, step: &Step) -> Vec<Part> {
    let after = match rank.anchor.kind {
        AnchorKind::PeriodicOp | AnchorKind::WholeCapture => usize::MAX,
        _ => {
            let matrix = |op: &DeviceOp| op.op.class() == OpClass::Matrix;
            rank.ops_of(step).iter().rposition(matrix).map_or(usize::MAX, |i| step.ops.start + i)
        }
    };
    let tail = |op: CanonicalOp| {
        matches!(op, CanonicalOp::Softmax | CanonicalOp::Reduce | CanonicalOp::Index | CanonicalOp::Elementwise)
    };
    reading::accounted(rank, step)
        .filter(|(i, op, _)| {
            op.kind == OpKind::Compute && (op.op == CanonicalOp::Sample || (*i > after && tail(op.op)))
        })
        .map(Part::gone)
        .collect()
}
