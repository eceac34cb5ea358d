//! Most of the step is opaque to the capture.

use super::{Case, OPAQUE, Ruling, opaque, step_args};
use crate::{
    diagnose::relations::Role,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, and {share} of it is opaque to this capture, so it allows no verdict.",
    "{subject}（{class}）：{lasts} {step}，其中 {share} 对该采集不透明，不足以下结论。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest.filter(|(_, class)| opaque(class) > OPAQUE)?;
    let args = step_args(rank, class).into_iter().chain([("share", Value::Share(opaque(class)))]);
    Some(Ruling::undecided(Message::new(SENTENCE, args), case.rules.with(Role::Unexplained)))
}
