//! One finding as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use crate::{model::Capture, phrase, units};
use diagnosis::{
    analysis::Layer,
    diagnose::{Evidence, Finding, Method, Stretch},
    i18n::{Lang, Value},
};

/// A finding of a rule.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(super) struct Found {
    /// Id of its capture.
    capture: usize,
    /// Id of the rule, such as RT-14.
    rule: &'static str,
    #[schemars(schema_with = "words::layer")]
    layer: Layer,
    #[schemars(schema_with = "words::severity")]
    severity: &'static str,
    #[schemars(schema_with = "words::confidence")]
    confidence: &'static str,
    /// What it says, in the language of the report.
    claim: String,
    /// What it speaks of.
    scope: Scope,
    /// What it rests on.
    evidence: Vec<Fact>,
    /// What made it fire.
    trigger: Trigger,
    /// What a change would gain.
    estimate: Gain,
    /// What else could explain the same.
    competing: Vec<Rival>,
    /// What to do, for the platform of the capture.
    remedy: Vec<String>,
    /// How to show that it was so.
    verify: String,
    /// Rules whose findings claim the same time.
    supersedes: Vec<&'static str>,
    /// Time of which this finding is the first to speak, per step of the workload.
    explains_ns: i64,
    /// Size of the cost that it names, ns per step; 0 where it names none.
    cost_ns: i64,
    /// Where to look: the costliest stretches of the device's time that it is about, on one rank, the costliest first.
    intervals: Vec<Interval>,
    /// A finding before it that speaks of most of the same time.
    same_time_as: Option<&'static str>,
}

/// What a finding speaks of.
#[derive(Serialize, JsonSchema)]
struct Scope {
    /// Step class; empty for the whole capture.
    class: String,
    /// Ranks of the job.
    ranks: Vec<u32>,
}

/// A fact with the rows it was read from.
#[derive(Serialize, JsonSchema)]
struct Fact {
    /// Ids of the rows.
    rows: Vec<u32>,
    /// Table of a capture file that holds the rows.
    table: &'static str,
    /// Unit of the value.
    unit: &'static str,
    /// The value.
    value: Amount,
    /// The fact in a sentence.
    what: String,
}

/// What made a rule fire.
#[derive(Serialize, JsonSchema)]
struct Trigger {
    /// What is compared.
    formula: &'static str,
    /// From where on it fires.
    threshold: f64,
    /// What it was.
    value: f64,
}

/// What a change would gain.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Estimate")]
struct Gain {
    /// A step as it is.
    from_ns: i64,
    /// A step at best.
    to_ns_low: i64,
    /// A step at worst.
    to_ns_high: i64,
    #[schemars(schema_with = "words::method")]
    method: Method,
    /// Least step without all time that the change concerns.
    amdahl_ns: Option<i64>,
    /// Least step with everything overlapped.
    overlap_ns: Option<i64>,
    /// Why the estimate is a bound and no replay.
    why_bound: Option<&'static str>,
}

/// Another explanation.
#[derive(Serialize, JsonSchema)]
struct Rival {
    /// What it says.
    claim: String,
    /// Whether the capture refutes it.
    #[schemars(schema_with = "status")]
    status: &'static str,
    /// Why it is refuted, or what would decide.
    why: String,
}

fn status(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["refuted", "open"] })
}

/// A value of a fact.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Amount {
    /// Whole, such as nanoseconds.
    Whole(i64),
    /// A count.
    Count(u64),
    /// A share, a ratio, a rate.
    Real(f64),
    /// Words.
    Text(String),
}

/// A stretch of the device's time that a finding is about.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Interval {
    /// Rank.
    rank: u32,
    /// Start, ns from the capture's zero.
    start_ns: i64,
    /// End, ns.
    end_ns: i64,
    /// Time of it that the finding is about, ns: pieces of one pause are one stretch.
    cost_ns: i64,
}

/// Intervals that are told of a finding, at most.
const INTERVALS: usize = 16;

/// The costliest stretches of what a finding is about.
fn intervals(finding: &Finding) -> Vec<Interval> {
    let interval = |stretch: &Stretch| Interval {
        rank: finding.selected_on,
        start_ns: stretch.span.start,
        end_ns: stretch.span.end,
        cost_ns: stretch.cost,
    };
    finding.stretches.iter().take(INTERVALS).map(interval).collect()
}

/// A finding of a capture.
pub(super) fn finding(capture: &Capture, finding: &Finding, lang: Lang) -> Found {
    let fact = |e: &Evidence| {
        let (value, unit) = quantity(&e.value, lang);
        let rows = e.rows.iter().map(|id| id.0).collect();
        Fact { rows, table: "slice", unit, value, what: phrase::plain_fact(e, lang) }
    };
    let estimate = &finding.estimate;
    let trigger = &finding.trigger;
    let rivals = finding.competing.iter().map(|c| Rival {
        claim: phrase::plain(&c.claim, lang),
        status: if c.refuted { "refuted" } else { "open" },
        why: phrase::plain(&c.why, lang),
    });
    Found {
        capture: capture.id,
        rule: finding.rule,
        layer: finding.layer,
        severity: finding.severity.key(),
        confidence: units::confidence_key(finding.confidence),
        claim: phrase::plain(&finding.claim, lang),
        scope: Scope { class: plain(&finding.class), ranks: finding.ranks.clone() },
        evidence: finding.evidence.iter().map(fact).collect(),
        trigger: Trigger { formula: trigger.formula.get(lang), threshold: trigger.threshold, value: trigger.value },
        estimate: Gain {
            from_ns: estimate.from,
            to_ns_low: estimate.to_low,
            to_ns_high: estimate.to_high,
            method: estimate.method,
            amdahl_ns: finding.limits.map(|l| l.amdahl),
            overlap_ns: finding.limits.map(|l| l.overlap),
            why_bound: finding.unreplayed.map(|why| why.get(lang)),
        },
        competing: rivals.collect(),
        remedy: finding
            .remedy
            .iter()
            .map(|r| if lang == Lang::Zh { r.text_zh.clone() } else { r.text_en.clone() })
            .collect(),
        verify: phrase::plain(&finding.verify, lang),
        supersedes: finding.supersedes.clone(),
        explains_ns: finding.explains,
        cost_ns: finding.cost,
        intervals: intervals(finding),
        same_time_as: finding.same_time_as,
    }
}

/// A value with the name of its unit; text has none.
pub(super) fn quantity(value: &Value, lang: Lang) -> (Amount, &'static str) {
    match value {
        Value::Ns(ns) => (Amount::Whole(*ns), "ns"),
        Value::Share(share) => (Amount::Real(*share), "share"),
        Value::Ratio(ratio) => (Amount::Real(*ratio), "ratio"),
        Value::Number(n) => (Amount::Real(*n), "number"),
        Value::Count(n) => (Amount::Count(*n), "count"),
        Value::Bytes(n) => (Amount::Whole(*n), "bytes"),
        Value::BytesPerSecond(rate) => (Amount::Real(*rate), "B/s"),
        Value::Raw(raw) | Value::Kernel(raw) | Value::Phrase(raw) => (Amount::Text(plain(raw)), "text"),
        Value::Text(text) => (Amount::Text(text.get(lang).to_owned()), "text"),
        Value::Message(message) => (Amount::Text(plain(&phrase::plain(message, lang))), "text"),
    }
}
