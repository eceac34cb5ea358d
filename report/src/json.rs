//! The report for scripts: `strato.diagnosis/2`. Keys are a contract; new ones may be added, none goes away. Its schema is
//! `docs/schema/strato.diagnosis.json`, made from the types here.
//!
//! `steps` and `verdict` at the top are those of the leading capture (the one with the gravest finding, else the first);
//! every capture has its own under `captures`, and whatever belongs to one capture carries its `capture` id.

mod attribution;
mod capture;
mod finding;
mod job;
mod job_sums;
mod judgement;
mod largest;
mod level;
mod limits;
mod losses;
mod lost;
mod owners;
pub(super) mod readiness;
mod replay;
mod roofline;
mod shape;
mod steps;
pub(super) mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    grade::Grade,
    model::{Capture, Report},
    phrase, text, units,
};
use diagnosis::{
    diagnose::{Finding, Level, VerdictLayer},
    i18n::Lang,
};

/// Name of the schema.
pub const SCHEMA: &str = "strato.diagnosis/2";

/// Most characters of a text from the capture.
const TEXT: usize = 1000;

/// Writes the report as one JSON object.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render(report: &Report, lang: Lang) -> Result<String, serde_json::Error> {
    let mut out = serde_json::to_string_pretty(&document(report, lang))?;
    out.push('\n');
    Ok(out)
}

/// The report as JSON.
pub(super) fn document(report: &Report, lang: Lang) -> Diagnosis {
    let leading = report.leading();
    let captures = || report.captures.iter();
    Diagnosis {
        schema: SCHEMA,
        simulated: report.simulated(),
        captures: captures().map(|c| capture::capture(c, lang)).collect(),
        workload: leading.and_then(judgement::base),
        steps: leading.and_then(Capture::leading_rank).map(steps::steps),
        attribution: captures().flat_map(attribution::attribution).collect(),
        largest: captures().flat_map(largest::tables).collect(),
        samples: captures().flat_map(largest::samples).collect(),
        idle_owners: captures().flat_map(owners::owners).collect(),
        verdict: leading.map(|c| verdict(c, lang)),
        floor: leading.and_then(|c| limits::floor(c, lang)),
        rates: captures().flat_map(|c| limits::rates(c, lang)).collect(),
        findings: captures().flat_map(|c| c.findings.iter().map(move |f| finding::finding(c, f, lang))).collect(),
        abstained: captures().flat_map(|c| losses::abstained(c, lang)).collect(),
        import: captures().flat_map(losses::import).collect(),
        ledger: captures().flat_map(|c| losses::ledger(c, lang)).collect(),
    }
}

/// One finding of a capture as it stands in the report, on one line.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render_finding(capture: &Capture, found: &Finding, lang: Lang) -> Result<String, serde_json::Error> {
    serde_json::to_string(&finding::finding(capture, found, lang))
}

/// What `strato diagnose --format json` says.
#[derive(Serialize, JsonSchema)]
pub(super) struct Diagnosis {
    /// Name and version of this schema.
    #[schemars(schema_with = "name")]
    schema: &'static str,
    /// Whether any number is simulated rather than measured.
    simulated: bool,
    captures: Vec<capture::CaptureReport>,
    /// The steps that every share and gain of the leading capture refers to.
    workload: Option<judgement::Base>,
    /// Steps of the leading rank of the leading capture.
    steps: Option<steps::Steps>,
    /// Where the time of each step class went.
    attribution: Vec<attribution::Attribution>,
    /// What takes the most time, by name.
    largest: Vec<largest::Tables>,
    /// Clocks, power and other counters of devices that were sampled.
    samples: Vec<largest::Samples>,
    /// Who owns the idle time, longest first.
    idle_owners: Vec<owners::IdleOwner>,
    /// Verdict on the leading capture.
    verdict: Option<Judgement>,
    /// The least that a step of the leading capture takes on its device.
    floor: Option<limits::Floor>,
    /// Operators beside what the device can do, the longest first.
    rates: Vec<limits::RateRow>,
    findings: Vec<finding::Found>,
    /// Rules that could not decide.
    abstained: Vec<losses::Abstained>,
    /// What the import met.
    import: Vec<losses::ImportStat>,
    /// What became of each category of the source.
    ledger: Vec<losses::LedgerRow>,
}

fn name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": SCHEMA })
}

/// What is said of a capture as a whole.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Verdict")]
struct Judgement {
    #[schemars(schema_with = "words::verdict_layer")]
    layer: VerdictLayer,
    headline: String,
    #[schemars(schema_with = "words::confidence")]
    confidence: &'static str,
    /// Rules that it rests on.
    because: Vec<&'static str>,
    /// Where the time of a step is; absent where no device work has times.
    #[serde(rename = "where")]
    place: Option<judgement::Where>,
    /// What to change first.
    first: Option<judgement::First>,
    /// The largest time that no rule could judge, with what would decide it.
    unjudged: Option<judgement::Unjudged>,
    /// Which of the three statements stand.
    #[schemars(schema_with = "judgement::statements")]
    decided: Vec<&'static str>,
    /// Claimed part of each layer's time, in 0..=1.
    explained: BTreeMap<&'static str, f64>,
    /// What cannot be, and was withheld.
    withheld: Vec<String>,
    /// Idle time, waits in collectives and exposed copies of the counted steps, ns.
    not_useful_ns: i64,
    /// Of that, what a finding or a doubt states, ns.
    stated_ns: i64,
    /// The level that the capture reaches.
    #[schemars(schema_with = "words::level_reached")]
    level: Option<Level>,
    /// What is missing for the next level.
    missing: Vec<String>,
    levels: Vec<level::Assessed>,
    #[schemars(schema_with = "words::grade")]
    grade: Grade,
}

fn verdict(capture: &Capture, lang: Lang) -> Judgement {
    let verdict = &capture.verdict;
    Judgement {
        layer: verdict.layer,
        headline: phrase::plain(&verdict.headline, lang),
        confidence: units::confidence_key(verdict.confidence),
        because: verdict.because.clone(),
        place: verdict.place.as_ref().map(judgement::place),
        first: verdict.first.as_ref().map(|first| judgement::first(first, lang)),
        unjudged: verdict.unjudged.first().map(|doubt| judgement::unjudged(doubt, lang)),
        decided: judgement::decided(verdict),
        explained: verdict.explained.iter().map(|one| (one.layer.key(), one.share)).collect(),
        not_useful_ns: capture.coverage.not_useful,
        stated_ns: capture.coverage.stated,
        withheld: capture.breaches.iter().map(|breach| phrase::plain(&breach.sentence, lang)).collect(),
        level: verdict.level,
        missing: verdict.missing.iter().map(|m| phrase::plain(m, lang)).collect(),
        levels: verdict.levels.iter().map(|a| level::assessment(a, lang)).collect(),
        grade: capture.grade,
    }
}

fn plain(text: &str) -> String {
    text::plain(text, TEXT)
}
