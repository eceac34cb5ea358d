//! What comes first is a host that is late between steps, or that had nothing to do; nothing recorded tells which, and no
//! sure cause is worth as much.

use super::{Case, Ruling, step_args};
use crate::i18n::{Message, Text, Value};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}; {rule} comes first with up to {gain} of it, but nothing recorded says whether the host was late or had no request to work on: record the engine's counters of running and waiting requests, or ranges around its scheduling.",
    "{subject}（{class}）：{lasts} {step}；首要问题是 {rule}，最多占其中的 {gain}，但没有任何记录能说明主机是迟缓还是没有请求可处理：请记录引擎的运行与等待请求计数，或标注其调度区间。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let leading = case.leading();
    let first = leading.unsure.filter(|_| leading.sure.is_none())?;
    let gain = first.estimate.max_gain_share();
    let args = [("rule", Value::Raw(first.rule.to_owned())), ("gain", Value::Share(gain))];
    Some(Ruling::undecided(Message::new(SENTENCE, step_args(rank, class).into_iter().chain(args)), [first.rule]))
}
