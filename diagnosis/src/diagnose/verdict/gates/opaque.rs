//! Most of the step is opaque to the capture.

use super::{Case, OPAQUE, Ruling, opaque, step_args};
use crate::{
    diagnose::relations::Role,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and for {share} of it the capture does not show why the device waits or what it runs, so it allows no verdict.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 采集未显示设备为何等待或在运行什么，不足以下结论。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest.filter(|(_, class)| opaque(class) > OPAQUE)?;
    let args = step_args(rank, class).into_iter().chain([("share", Value::Share(opaque(class)))]);
    Some(Ruling::undecided(Message::new(SENTENCE, args), case.rules.with(Role::Unexplained)))
}
