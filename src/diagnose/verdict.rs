//! The answer in one sentence, and the level the capture reached.

use super::{finding::Finding, rule::Context};
use crate::{analysis::Confidence, i18n::Message};

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
    /// The capture does not allow a verdict.
    Undecided,
    /// No layer stands out.
    None,
}

/// How far the capture supports work on performance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something ran on the device.
    Run,
    /// The hot path is observable and can be moved.
    Optimise,
    /// A fair, reproducible comparison explains the gain.
    Verify,
}

/// The verdict on a capture.
#[derive(Clone, Debug)]
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
}

/// Judges a capture from its ranked findings.
pub fn judge(cx: &Context<'_>, findings: &[Finding]) -> Verdict {
    let _ = (cx, findings);
    Verdict {
        layer: VerdictLayer::Undecided,
        headline: Message::plain(crate::i18n::Text::new("", "")),
        confidence: Confidence::Low,
        because: vec![],
        level: None,
        missing: vec![],
    }
}
