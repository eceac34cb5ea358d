//! Nothing was found, and the steps draft tokens of which nothing recorded says how many are accepted.

use super::{Case, Ruling, step_args};
use crate::{
    diagnose::{relations::Role, signals::speculation},
    i18n::{Message, Text},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}; its steps draft tokens beside the model, and nothing recorded says how many are accepted: record the engine's counters of drafted and accepted tokens.",
    "{subject}（{class}）：{lasts} {step}；各步在模型之外还生成草稿 token，但没有任何记录能说明接受了多少：请记录引擎的草稿与接受 token 计数。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest.filter(|(rank, class)| speculation::is_unjudged(case.cx, rank, class))?;
    let headline = Message::new(SENTENCE, step_args(rank, class));
    Some(Ruling::undecided(headline, case.rules.with(Role::Speculation)))
}
