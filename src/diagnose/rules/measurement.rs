//! Findings about the measurement: they gate, they gain nothing.

use crate::{
    analysis::{Class, Layer, Rank},
    diagnose::{
        Finding, Severity, Trigger,
        estimate::{Estimate, Intervention},
        rule::{Context, Doc},
    },
    i18n::Message,
};

/// A finding about how a class was measured.
pub fn about(
    cx: &Context<'_>,
    doc: &'static Doc,
    rank: &Rank,
    class: &Class,
    claim: Message,
    trigger: Trigger,
) -> Finding {
    let none = Intervention::none(Layer::Measurement);
    let mut finding = cx.finding(doc, rank, class, claim, trigger, none);
    finding.estimate = Estimate::none(finding.estimate.from);
    finding.severity = Severity::Info;
    finding
}
