//! Operators and transfers of known rate that stay far below what binds them, although no finding explains half of that time.

use super::{Case, Unjudged};
use crate::{
    analysis::Layer,
    diagnose::{
        finding::Finding,
        limits::{Bound, PeakSource, Rate},
    },
    i18n::{Message, Text, Value},
};

/// Share of what binds an operator below which its rate needs a word; own value: poor kernels of products and copies reach
/// more, and so do transfers over every link but the wrong one.
const FAR: f64 = 0.35;

/// Part of its time from which findings of its layer say enough of it; own value, that of all rules that claim the same time.
const SPOKEN: f64 = 0.5;

/// What it says of kernels.
const KERNELS: Text = Text::new(
    "why {operator} of {shape}, {share} of the step, reaches {reached} of the {source} limit that binds it: the findings explain less than half of that; measure that kernel alone with its vendor's kernel profiler",
    "为何 {operator}（{shape}，占步时 {share}）只达到其{source}上限的 {reached}：各结论只解释了其中不到一半；请用厂商的内核剖析器单独测量该内核",
);
/// What it says of transfers.
const LINKS: Text = Text::new(
    "why {operator} of {shape}, {share} of the step, reaches {reached} of the {source} link: late ranks and a slow link look the same here; capture every rank, or measure that size alone (nccl-tests, rccl-tests, hccl_test)",
    "为何 {operator}（{shape}，占步时 {share}）只达到{source}链路的 {reached}：迟到的 rank 与慢链路在此看起来相同；请采集所有 rank，或单独测量该大小（nccl-tests、rccl-tests、hccl_test）",
);

/// The same where every rank is in the capture, so that waits are told from transfers.
const LINKS_ALONE: Text = Text::new(
    "why {operator} of {shape}, {share} of the step, reaches {reached} of the {source} link with every rank of the group there: the findings explain less than half of that; measure that size alone (nccl-tests, rccl-tests, hccl_test)",
    "为何 {operator}（{shape}，占步时 {share}）在所有 rank 到齐后只达到{source}链路的 {reached}：各结论只解释了其中不到一半；请单独测量该大小（nccl-tests、rccl-tests、hccl_test）",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (_, class) = case.longest?;
    let step = class.total as f64 / class.steady.max(1) as f64;
    let far = |rate: &&Rate| {
        let bound = matches!(rate.bound_by, Some(Bound::Memory | Bound::Compute | Bound::Link));
        bound && rate.share().is_some_and(|share| share < FAR)
    };
    let rate = case.limits.rates.iter().filter(far).max_by_key(|rate| rate.per_step)?;
    let share = rate.per_step as f64 / step.max(1.0);
    let link = rate.bound_by == Some(Bound::Link);
    // What a finding of that layer could give back already is said, whatever it calls the cause.
    let layer = |f: &&Finding| (f.layer == Layer::Communication) == link;
    let claimed = case.weighty().filter(layer).map(|f| f.estimate.max_gain_share()).fold(0.0, f64::max);
    let source = match rate.peak_source {
        Some(PeakSource::Measured) => Text::new("measured", "实测"),
        _ => Text::new("published", "公布"),
    };
    let args = [
        ("operator", Value::Raw(rate.operator.to_owned())),
        ("shape", Value::Raw(rate.shape.clone())),
        ("share", Value::Share(share)),
        ("reached", Value::Share(rate.share().unwrap_or(0.0))),
        ("source", Value::Text(source)),
    ];
    let groups = &case.cx.analysis.job.groups;
    let complete = !groups.is_empty() && groups.iter().all(|group| group.is_complete());
    let sentence = Message::new(
        match link {
            true if complete => LINKS_ALONE,
            true => LINKS,
            false => KERNELS,
        },
        args,
    );
    (claimed < SPOKEN * share).then(|| Unjudged { share, sentence, because: Vec::new(), decides: false })
}
