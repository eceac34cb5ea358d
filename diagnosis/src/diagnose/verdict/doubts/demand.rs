//! What comes first is a host that is late between steps, or that had nothing to do; nothing recorded tells which.

use super::{Case, Unjudged};
use crate::i18n::{Message, Text, Value};

/// What it says.
const SENTENCE: Text = Text::new(
    "{rule} may be worth up to {share} of the step, but nothing recorded says whether the host was late or had no request to work on: record the engine's counters of running and waiting requests, or ranges around its scheduling",
    "{rule} 最多可能值步时的 {share}，但没有任何记录能说明主机是迟缓还是没有请求可处理：请记录引擎的运行与等待请求计数，或标注其调度区间",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let unsure = case.leading().unsure?;
    let share = unsure.estimate.max_gain_share();
    let args = [("rule", Value::Raw(unsure.rule.to_owned())), ("share", Value::Share(share))];
    let decides = case.leading().sure.is_none();
    Some(Unjudged { share, sentence: Message::new(SENTENCE, args), because: vec![unsure.rule], decides })
}
