//! The sentences of a verdict: what the class is, what comes first in it, and what is said where nothing does.

use model::EvidenceClass;

use super::{FEW_OPS, OPAQUE, RIVAL, UNEXPLAINED, VerdictLayer};
use crate::{
    analysis::{AnchorKind, Bucket, Class, Layer, Rank},
    diagnose::{finding::Finding, rule::Context, rules},
    i18n::{Message, Text, Value},
    platform::Stage,
};

fn layer_name(layer: Layer) -> Text {
    match layer {
        Layer::Operator => Text::new("operator", "算子"),
        Layer::Runtime => Text::new("runtime", "运行时"),
        Layer::Communication => Text::new("communication", "通信"),
        Layer::Measurement => Text::new("measurement", "测量"),
    }
}

/// What the class is, in plain words: a capture without decode steps must not pass for one.
pub(super) fn subject(rank: &Rank, class: &Class) -> Value {
    Value::Text(match class.stage {
        Stage::Train if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "Training, not decode; no steps found, one window from the first device operation to the end of the last",
            "训练，并非解码；未找到步，取首个设备操作开始到最后一个设备操作结束的一个窗口",
        ),
        _ if rank.anchor.kind == AnchorKind::WholeCapture => Text::new(
            "No steps found, one window from the first device operation to the end of the last",
            "未找到步，取首个设备操作开始到最后一个设备操作结束的一个窗口",
        ),
        Stage::Decode => Text::new("Decode", "解码"),
        Stage::Prefill => Text::new("Prefill only, no decode step in the capture", "仅预填充，采集中无解码步"),
        Stage::Mixed => Text::new("Mixed prefill and decode", "预填充与解码混合"),
        Stage::Train => Text::new("Training, not decode", "训练，并非解码"),
        Stage::Unknown => Text::new("Steps of unknown stage", "阶段未知的步"),
    })
}

pub(super) fn step_args(rank: &Rank, class: &Class) -> [(&'static str, Value); 4] {
    let lasts = if rank.anchor.kind == AnchorKind::WholeCapture {
        Text::new("it lasts", "时长")
    } else {
        Text::new("a step takes", "步时")
    };
    [
        ("subject", subject(rank, class)),
        ("class", Value::Raw(class.key.clone())),
        ("step", Value::Ns(class.p50)),
        ("lasts", Value::Text(lasts)),
    ]
}

/// The bucket with the most time and its share: what a person asks for next. Equals are all named.
fn largest(cx: &Context<'_>, class: &Class) -> [(&'static str, Value); 2] {
    let order = |bucket: Bucket| (bucket.layer(), bucket.name(&cx.analysis.host_labels));
    let most = class.buckets.iter().max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(order(*bucket))));
    let equal = class.buckets.iter().filter(|(_, ns)| most.is_some_and(|(_, longest)| ns == longest));
    let mut equal: Vec<Bucket> = equal.map(|(bucket, _)| *bucket).collect();
    equal.sort_by_key(|bucket| order(*bucket));
    let names: Vec<String> = equal.iter().map(|bucket| bucket.name(&cx.analysis.host_labels)).collect();
    let name = names.join(" = ");
    let share = most.map_or(0.0, |(bucket, _)| class.share(|b| b == *bucket));
    [("bucket", Value::Raw(name)), ("part", Value::Share(share))]
}

/// What is blamed; `unsure` may be worth more, or nothing.
pub(super) fn blame(
    cx: &Context<'_>,
    (first, unsure): (&Finding, Option<&Finding>),
    rank: &Rank,
    class: &Class,
) -> Message {
    let of = |r: &&Rank| first.ranks.contains(&r.rank);
    let own =
        cx.analysis.ranks.iter().filter(of).find_map(|r| Some((r, r.classes.iter().find(|c| c.key == first.class)?)));
    let (rank, class) = own.unwrap_or((rank, class));
    let title = rules::find(first.rule).map_or(Text::new("", ""), |r| r.doc().title);
    let text = Text::new(
        "{subject} ({class}): {lasts} {step}, {share} of it in the {layer} layer; {rule} ({title}) comes first, worth up to {gain} of that time. The largest bucket is {bucket} with {part}.",
        "{subject}（{class}）：{lasts} {step}，其中 {share} 在{layer}层；首要问题是 {rule}（{title}），最多可省其中的 {gain}。最大的一项是 {bucket}，占 {part}。",
    );
    let doubtful = Text::new(
        "{subject} ({class}): {lasts} {step}, {share} of it in the {layer} layer; {rule} ({title}) is the first cause that is sure, worth up to {gain} of that time. {unsure} may be worth up to {most}, but nothing recorded says whether the host was late or had no request to work on. The largest bucket is {bucket} with {part}.",
        "{subject}（{class}）：{lasts} {step}，其中 {share} 在{layer}层；首个可以确定的原因是 {rule}（{title}），最多可省其中的 {gain}。{unsure} 最多可能值 {most}，但没有任何记录能说明主机是迟缓还是没有请求可处理。最大的一项是 {bucket}，占 {part}。",
    );
    let text = if unsure.is_some() { doubtful } else { text };
    let unsure = unsure
        .into_iter()
        .flat_map(|f| [("unsure", Value::Raw(f.rule.to_owned())), ("most", Value::Share(f.estimate.max_gain_share()))]);
    let args = [
        ("share", Value::Share(class.share(|b| b.layer() == first.layer))),
        ("layer", Value::Text(layer_name(first.layer))),
        ("rule", Value::Raw(first.rule.to_owned())),
        ("title", Value::Text(title)),
        ("gain", Value::Share(first.estimate.max_gain_share())),
    ];
    Message::new(text, step_args(rank, class).into_iter().chain(args).chain(unsure).chain(largest(cx, class)))
}

pub(super) fn without_findings(cx: &Context<'_>, rank: &Rank, class: &Class) -> (VerdictLayer, Message) {
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
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}, and the device computes for {operator} of it, so it is operator-bound; no rule that could decide fired. The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}，其中设备计算占 {operator}，受算子限制；能够判定的规则都没有触发。最大的一项是 {bucket}，占 {part}。",
        );
        // Without ceilings nobody knows whether the operators are fast, so their share is no verdict on them.
        let unjudged = Text::new(
            "{subject} ({class}): {lasts} {step}, and the device computes for {operator} of it, so it is operator-bound; no rule that could decide fired, and how efficient the operators are was not judged (no probes of this platform). The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}，其中设备计算占 {operator}，受算子限制；能够判定的规则都没有触发，算子本身的效率未作判断（没有本平台探针）。最大的一项是 {bucket}，占 {part}。",
        );
        (VerdictLayer::Operator, if cx.analysis.evidence.has(EvidenceClass::Probes) { text } else { unjudged })
    } else {
        let text = Text::new(
            "{subject} ({class}): {lasts} {step}; no rule names a cause: operator {operator}, runtime {runtime}, communication {communication}, measurement {measurement}. The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}；没有规则指出原因：算子 {operator}，运行时 {runtime}，通信 {communication}，测量 {measurement}。最大的一项是 {bucket}，占 {part}。",
        );
        let copying = Text::new(
            "{subject} ({class}): {lasts} {step}, and for {copies} of it copies run that nothing hides: what they move, and whether it must move each time, comes before any operator. Operator {operator}, communication {communication}, measurement {measurement}. The largest bucket is {bucket} with {part}.",
            "{subject}（{class}）：{lasts} {step}，其中 {copies} 是没有任何工作掩盖的拷贝：先弄清搬运了什么、是否每次都必须搬运，再看算子。算子 {operator}，通信 {communication}，测量 {measurement}。最大的一项是 {bucket}，占 {part}。",
        );
        let text = if copies > OPAQUE { copying } else { text };
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
