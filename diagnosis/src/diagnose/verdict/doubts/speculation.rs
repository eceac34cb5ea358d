//! The steps draft tokens of which nothing recorded says how many are accepted.

use super::{Case, Unjudged};
use crate::{
    diagnose::{relations::Role, signals::speculation},
    i18n::{Message, Text},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "the steps draft tokens beside the model, and nothing recorded says how many are accepted: record the engine's counters of drafted and accepted tokens",
    "各步在模型之外还生成草稿 token，但没有任何记录能说明接受了多少：请记录引擎的草稿与接受 token 计数",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    case.longest.filter(|(rank, class)| speculation::is_unjudged(case.cx, rank, class))?;
    // How much of the step the drafts are is what nobody can tell: all of it stands in doubt.
    let found = case.weighty().next().is_some();
    Some(Unjudged {
        share: 1.0,
        sentence: Message::plain(SENTENCE),
        because: case.rules.with(Role::Speculation).collect(),
        decides: !found,
    })
}
