//! The run computes NaN or infinity: what its steps cost is no measure of a run that is right.

use super::{Case, Ruling, VerdictLayer, step_args};
use crate::{
    analysis::Confidence,
    diagnose::relations::Role,
    i18n::{Message, Text},
};

/// What it says.
const SENTENCE: Text = Text::new(
    "{subject} ({class}): {lasts} {step}, but the numbers of this run are NaN or infinite: its times are those of a run that is wrong, and come after the operator that NM-01 names.",
    "{subject}（{class}）：{lasts} {step}，但本次运行的数值为 NaN 或无穷：这些时间属于错误的运行，应先解决 NM-01 所指的算子。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let (rank, class) = case.longest?;
    let wrong = case.findings.iter().find(|finding| case.plays(finding, Role::Numbers))?;
    Some(Ruling {
        layer: VerdictLayer::Operator,
        headline: Message::new(SENTENCE, step_args(rank, class)),
        confidence: Confidence::High,
        because: vec![wrong.rule],
    })
}
