//! One finding as JSON.

use serde::Serialize;

use super::plain;
use crate::{model::Capture, phrase, units};
use diagnosis::{
    analysis::Layer,
    diagnose::{Competing, Evidence, Finding, Method},
    i18n::{Lang, Value},
};

#[derive(Serialize)]
pub(super) struct Found {
    capture: usize,
    rule: &'static str,
    layer: Layer,
    severity: &'static str,
    confidence: &'static str,
    claim: String,
    scope: serde_json::Value,
    evidence: Vec<serde_json::Value>,
    trigger: serde_json::Value,
    estimate: Gain,
    competing: Vec<serde_json::Value>,
    remedy: Vec<String>,
    verify: String,
    supersedes: Vec<&'static str>,
}

#[derive(Serialize)]
struct Gain {
    from_ns: i64,
    to_ns_low: i64,
    to_ns_high: i64,
    method: Method,
    amdahl_ns: Option<i64>,
    overlap_ns: Option<i64>,
    why_bound: Option<&'static str>,
}

/// A finding of a capture.
pub(super) fn finding(capture: &Capture, finding: &Finding, lang: Lang) -> Found {
    let fact = |e: &Evidence| {
        let (value, unit) = quantity(&e.value, lang);
        let rows: Vec<u32> = e.rows.iter().map(|id| id.0).collect();
        serde_json::json!({
            "what": phrase::plain_fact(e, lang), "value": value, "unit": unit, "table": "slice", "rows": rows,
        })
    };
    let other = |c: &Competing| {
        serde_json::json!({
            "claim": phrase::plain(&c.claim, lang),
            "status": if c.refuted { "refuted" } else { "open" },
            "why": phrase::plain(&c.why, lang),
        })
    };
    let estimate = &finding.estimate;
    Found {
        capture: capture.id,
        rule: finding.rule,
        layer: finding.layer,
        severity: finding.severity.key(),
        confidence: units::confidence_key(finding.confidence),
        claim: phrase::plain(&finding.claim, lang),
        scope: serde_json::json!({ "class": plain(&finding.class), "ranks": finding.ranks }),
        evidence: finding.evidence.iter().map(fact).collect(),
        trigger: serde_json::json!({
            "formula": finding.trigger.formula.get(lang), "value": finding.trigger.value, "threshold": finding.trigger.threshold,
        }),
        estimate: Gain {
            from_ns: estimate.from,
            to_ns_low: estimate.to_low,
            to_ns_high: estimate.to_high,
            method: estimate.method,
            amdahl_ns: finding.limits.map(|l| l.amdahl),
            overlap_ns: finding.limits.map(|l| l.overlap),
            why_bound: finding.unreplayed.map(|why| why.get(lang)),
        },
        competing: finding.competing.iter().map(other).collect(),
        remedy: finding
            .remedy
            .iter()
            .map(|r| if lang == Lang::Zh { r.text_zh.clone() } else { r.text_en.clone() })
            .collect(),
        verify: phrase::plain(&finding.verify, lang),
        supersedes: finding.supersedes.clone(),
    }
}

/// A value as JSON with the name of its unit; text has none.
pub(super) fn quantity(value: &Value, lang: Lang) -> (serde_json::Value, &'static str) {
    match value {
        Value::Ns(ns) => ((*ns).into(), "ns"),
        Value::Share(share) => ((*share).into(), "share"),
        Value::Ratio(ratio) => ((*ratio).into(), "ratio"),
        Value::Number(n) => ((*n).into(), "number"),
        Value::Count(n) => ((*n).into(), "count"),
        Value::Bytes(n) => ((*n).into(), "bytes"),
        Value::BytesPerSecond(rate) => ((*rate).into(), "B/s"),
        Value::Raw(raw) => (plain(raw).into(), "text"),
        Value::Text(text) => (text.get(lang).into(), "text"),
    }
}
