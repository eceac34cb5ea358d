//! Nothing was found: either the device computes nearly all the time, or no rule names a cause.

use model::EvidenceClass;

use super::{Case, OPAQUE, RIVAL, Ruling, UNEXPLAINED, VerdictLayer, largest, step_args};
use crate::{
    analysis::{AnchorKind, Bucket, Class, Confidence, Layer, Rank},
    diagnose::rule::Context,
    i18n::{Message, Text, Value},
};

/// Operations per step below which a busy device proves nothing: the window of a lone kernel is busy by definition; own value.
const FEW_OPS: usize = 10;

/// What it says where the device computes nearly all the time.
const COMPUTES: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and the device computes for {operator} of it, so it is operator-bound; no rule that could decide fired. The largest bucket is {bucket} with {part}.",
    "{subject}（{class}）：{lasts} {step}，其中设备计算占 {operator}，受算子限制；能够判定的规则都没有触发。最大的一项是 {bucket}，占 {part}。",
);
/// The same without ceilings: nobody knows whether the operators are fast, so their share is no verdict on them.
const UNJUDGED: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and the device computes for {operator} of it, so it is operator-bound; no rule that could decide fired, and how efficient the operators are was not judged (no probes of this platform). The largest bucket is {bucket} with {part}.",
    "{subject}（{class}）：{lasts} {step}，其中设备计算占 {operator}，受算子限制；能够判定的规则都没有触发，算子本身的效率未作判断（没有本平台探针）。最大的一项是 {bucket}，占 {part}。",
);
/// What it says where no layer stands out.
const NO_CAUSE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}; no rule names a cause: operator {operator}, runtime {runtime}, communication {communication}, measurement {measurement}. The largest bucket is {bucket} with {part}.",
    "{subject}（{class}）：{lasts} {step}；没有规则指出原因：算子 {operator}，运行时 {runtime}，通信 {communication}，测量 {measurement}。最大的一项是 {bucket}，占 {part}。",
);
/// What it says where copies are most of the step.
const COPYING: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and for {copies} of it copies run that nothing hides: what they move, and whether it must move each time, comes before any operator. Operator {operator}, communication {communication}, measurement {measurement}. The largest bucket is {bucket} with {part}.",
    "{subject}（{class}）：{lasts} {step}，其中 {copies} 是没有任何工作掩盖的拷贝：先弄清搬运了什么、是否每次都必须搬运，再看算子。算子 {operator}，通信 {communication}，测量 {measurement}。最大的一项是 {bucket}，占 {part}。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let (layer, headline) = without_findings(case.cx, rank, class);
    // That no rule fired is weaker evidence than a rule that fired.
    let confidence = case.cx.confidence(rank).min(Confidence::Medium);
    Some(Ruling { layer, headline, confidence, because: Vec::new() })
}

fn without_findings(cx: &Context<'_>, rank: &Rank, class: &Class) -> (VerdictLayer, Message) {
    let share = |layer: Layer| class.share(|b| b.layer() == layer);
    let computes = share(Layer::Operator);
    let copies = class.share(|b| matches!(b, Bucket::Copy(_)));
    let rivals = Layer::ALL.into_iter().filter(|layer| *layer != Layer::Operator);
    let marked = rank.anchor.kind != AnchorKind::WholeCapture;
    let enough = rank.steady_steps(class).all(|s| s.ops.len() >= FEW_OPS);
    // Where most rules of the other layers could not speak, that they are silent says nothing.
    let heard = [EvidenceClass::HostApi, EvidenceClass::Correlation].iter().all(|e| cx.analysis.evidence.has(*e));
    let rival = if heard { RIVAL } else { UNEXPLAINED };
    let (layer, text) = if rivals.map(share).all(|share| share < rival) && marked && enough {
        (VerdictLayer::Operator, if cx.analysis.evidence.has(EvidenceClass::Probes) { COMPUTES } else { UNJUDGED })
    } else {
        let text = if copies > OPAQUE { COPYING } else { NO_CAUSE };
        (if marked && enough { VerdictLayer::None } else { VerdictLayer::Undecided }, text)
    };
    let args = [
        ("operator", Value::Share(computes)),
        ("runtime", Value::Share(share(Layer::Runtime))),
        ("communication", Value::Share(share(Layer::Communication))),
        ("measurement", Value::Share(share(Layer::Measurement))),
        ("copies", Value::Share(copies)),
    ];
    (layer, Message::new(text, step_args(rank, class).into_iter().chain(args).chain(largest(cx, class))))
}
