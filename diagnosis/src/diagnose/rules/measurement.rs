//! Findings about the measurement: they gate, they gain nothing.

use model::Trace;

use crate::{
    analysis::{Class, Layer, Rank},
    diagnose::{
        Finding, Severity, Trigger,
        estimate::{Estimate, Intervention},
        rule::{Context, Doc},
    },
    i18n::Message,
};

/// What the profiler was told to record besides times, which slows the host; empty where the capture says nothing, or holds
/// no framework operator that these options could have slowed.
pub fn extras(trace: &Trace) -> String {
    const SWITCHES: [(&str, &str); 6] = [
        ("kineto.with_stack", "with_stack"),
        ("kineto.with_modules", "with_modules"),
        ("kineto.record_shapes", "record_shapes"),
        ("kineto.profile_memory", "profile_memory"),
        ("kineto.with_flops", "with_flops"),
        ("nsys.emit_nvtx", "emit_nvtx"),
    ];
    let recorded = |lane: &model::Columns| lane.category.contains(&model::Category::FrameworkOp);
    if !trace.lanes.iter().any(recorded) {
        return String::new();
    }
    let on = |(key, _): &&(&str, &str)| matches!(trace.manifest.value(key), Some("1" | "true" | "True"));
    SWITCHES.iter().filter(on).map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

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
