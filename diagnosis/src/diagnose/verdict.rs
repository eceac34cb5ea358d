//! The answer in one sentence.

mod case;
mod gates;
mod headline;

use super::{Assessment, Level, catalogue::Catalogue, finding::Finding, level, rule::Context};
use crate::{analysis::Confidence, i18n::Message};

use case::Case;
pub(super) use gates::start_up::is_start_up;

/// What the verdict blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictLayer {
    /// Kernels and what they are made of.
    Operator,
    /// Host, launches, graphs, copies.
    Runtime,
    /// Transfers and late ranks.
    Communication,
    /// Too few requests: no bottleneck of the stack.
    Load,
    /// The capture does not allow a verdict.
    Undecided,
    /// No layer stands out.
    None,
}

/// The verdict on a capture.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Verdict {
    /// What it blames.
    pub layer: VerdictLayer,
    /// One sentence.
    pub headline: Message,
    /// How sure it is.
    pub confidence: Confidence,
    /// Rules it rests on.
    pub because: Vec<&'static str>,
    /// Level reached; `None` when not even a device operation was seen.
    pub level: Option<Level>,
    /// What is missing for the next level, one sentence each.
    pub missing: Vec<Message>,
    /// Every level with what it rests on.
    pub levels: Vec<Assessment>,
}

/// Judges a capture from the ranked findings of `rules`.
pub fn judge(cx: &Context<'_>, findings: &[Finding], rules: Catalogue) -> Verdict {
    let levels = level::assess(cx);
    let (level, missing) = level::reached(&levels);
    let case = Case::new(cx, findings, rules, level);
    let ruling = gates::REGISTRY.iter().find_map(|gate| gate(&case)).unwrap_or_else(gates::no_steps::ruling);
    let case::Ruling { layer, headline, confidence, because } = ruling;
    Verdict { layer, headline, confidence, because, level, missing, levels }
}
