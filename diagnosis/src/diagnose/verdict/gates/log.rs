//! The steps are those of a log: it times them and shows nothing of what ran in them.

use super::{BECAUSE, Case, Ruling, step_args};
use crate::{
    analysis::{AnchorKind, Layer},
    i18n::{Message, Text},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): a step takes {step}, as a log says; a log answers for jitter, graph coverage and compile stalls, and for no layer.",
    "{subject}（{class}）：日志给出的步时为 {step}；日志可回答抖动、图覆盖与编译停顿，不能判定任何一层。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest.filter(|(rank, _)| rank.anchor.kind == AnchorKind::Log)?;
    let found = case.findings.iter().filter(|f| f.layer != Layer::Measurement).map(|f| f.rule);
    Some(Ruling::undecided(Message::new(SENTENCE, step_args(rank, class)), found.take(BECAUSE)))
}
