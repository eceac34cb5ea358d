//! The recording made the step so long that the capture says nothing of the run.

use super::{Case, Ruling, subject};
use crate::{
    analysis::inflation,
    diagnose::relations::Role,
    i18n::{Message, Text, Value},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject}: tracing makes the step {ratio} as long, so the capture allows no verdict.",
    "{subject}：剖析使步时变为 {ratio}，该采集不足以下结论。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let ratio = inflation::ratio(&case.cx.trace.manifest).filter(|r| *r > inflation::REFUSED)?;
    let args = [("subject", subject(rank, class)), ("ratio", Value::Ratio(ratio))];
    Some(Ruling::undecided(Message::new(SENTENCE, args), case.rules.with(Role::TracingInflation)))
}
