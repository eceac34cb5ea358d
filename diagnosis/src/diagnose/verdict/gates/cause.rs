//! The finding that comes first is blamed.

use super::{BECAUSE, Case, Ruling, VerdictLayer, largest, step_args};
use crate::{
    analysis::Layer,
    diagnose::finding::Finding,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, {share} of it in the {layer} layer; {rule} ({title}) comes first, worth up to {gain} of that time. The largest bucket is {bucket} with {part}.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 在{layer}层；首要问题是 {rule}（{title}），最多可省其中的 {gain}。最大的一项是 {bucket}，占 {part}。",
);
/// What it says where something that may be nothing could be worth more.
const DOUBTFUL: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, {share} of it in the {layer} layer; {rule} ({title}) is the first cause that is sure, worth up to {gain} of that time. {unsure} may be worth up to {most}, but nothing recorded says whether the host was late or had no request to work on. The largest bucket is {bucket} with {part}.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 在{layer}层；首个可以确定的原因是 {rule}（{title}），最多可省其中的 {gain}。{unsure} 最多可能值 {most}，但没有任何记录能说明主机是迟缓还是没有请求可处理。最大的一项是 {bucket}，占 {part}。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let leading = case.leading();
    let first = leading.sure.or(leading.first)?;
    let mut because: Vec<&'static str> = Vec::new();
    for f in case.weighty().filter(|f| f.layer == first.layer) {
        if !because.contains(&f.rule) && because.len() < BECAUSE {
            because.push(f.rule);
        }
    }
    let headline = headline(case, first, leading.unsure.filter(|_| leading.sure.is_some()))?;
    Some(Ruling { layer: blamed(first.layer), headline, confidence: first.confidence, because })
}

/// What is blamed; `unsure` may be worth more, or nothing.
fn headline(case: &Case<'_>, first: &Finding, unsure: Option<&Finding>) -> Option<Message> {
    let ranks = case.cx.analysis.ranks.iter().filter(|r| first.ranks.contains(&r.rank));
    let mut own = ranks.filter_map(|r| Some((r, r.classes.iter().find(|c| c.key == first.class)?)));
    let (rank, class) = own.next().or(case.longest)?;
    let title = case.rules.doc(first.rule).map_or(Text::new("", ""), |doc| doc.title);
    let text = if unsure.is_some() { DOUBTFUL } else { SENTENCE };
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
    Some(Message::new(
        text,
        step_args(rank, class).into_iter().chain(args).chain(unsure).chain(largest(case.cx, class)),
    ))
}

fn layer_name(layer: Layer) -> Text {
    match layer {
        Layer::Operator => Text::new("operator", "算子"),
        Layer::Runtime => Text::new("runtime", "运行时"),
        Layer::Communication => Text::new("communication", "通信"),
        Layer::Measurement => Text::new("measurement", "测量"),
    }
}

fn blamed(layer: Layer) -> VerdictLayer {
    match layer {
        Layer::Operator => VerdictLayer::Operator,
        Layer::Runtime => VerdictLayer::Runtime,
        Layer::Communication => VerdictLayer::Communication,
        Layer::Measurement => VerdictLayer::Undecided,
    }
}
