//! The comparison for scripts: `strato.diff/2`. Keys are a contract; new ones may be added, none goes away. Its schema is
//! `docs/schema/strato.diff.json`, made from the types here.
//!
//! Where the contract refuses the comparison, `alignment`, `waterfall`, `statistics` and `path` are null, and `reports` holds the report on
//! each side. The deltas of `waterfall.terms` add up to `to_ns − from_ns` exactly.

mod alignment;
mod answer;
mod contract;
mod path;
mod statistics;
mod waterfall;

use model::{Area, Light};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    DiffReport, Head,
    gate::{Ends, Gate},
    unknown,
};
use crate::{
    json::{self as single, readiness::Ready, words},
    phrase,
    sections::Shown,
    serving, text,
};
use diagnosis::{
    compare::{Difference, difference::Compared, readiness::together},
    diagnose::Readiness,
    i18n::Lang,
};

/// Name of the schema.
pub const SCHEMA: &str = "strato.diff/2";
/// Most characters of a text from a capture.
const TEXT: usize = 1000;

fn plain(value: &str) -> String {
    text::plain(value, TEXT)
}

/// Writes the comparison as one JSON object.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render(report: &DiffReport, lang: Lang) -> Result<String, serde_json::Error> {
    // As a value its keys stand in the order of the alphabet, those of the reports on both sides too.
    let mut out = serde_json::to_string_pretty(&serde_json::to_value(document(report, lang))?)?;
    out.push('\n');
    Ok(out)
}

/// What `strato diff --format json` says.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Diff {
    /// Name and version of this schema.
    #[schemars(schema_with = "name")]
    schema: &'static str,
    /// Whether a number of either side is simulated rather than measured.
    simulated: bool,
    /// What goes before every number: that the contract refuses these, or that the work of the two is unequal.
    banners: Vec<String>,
    /// Whether the contract refuses the comparison and the numbers were asked for all the same.
    forced: bool,
    /// What a pipeline asked with `--fail-on`; null where it did not.
    gate: Option<Gated>,
    a: Captured,
    b: Captured,
    /// What B takes longer than A and why, in short; null where the contract refuses the comparison.
    answer: Option<answer::Answer>,
    contract: contract::Comparability,
    /// The steps that are compared.
    steps: Option<Pair<ComparedSteps>>,
    alignment: Option<alignment::Aligned>,
    waterfall: Option<waterfall::Terms>,
    /// What repeated launches say of the difference.
    statistics: Option<statistics::Repeats>,
    /// Whether both went the same way.
    path: Option<path::Path>,
    /// Which settings differ.
    configuration: Option<path::Configuration>,
    /// What clients measured of both under load, where that was given too.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<serving::json::Serving>,
    /// What the captures do not tell about their difference.
    unknown: Option<Vec<String>>,
    readiness: Option<ReadyPair>,
    /// The report on each side, where there is no difference to show.
    reports: Option<Pair<single::Diagnosis>>,
}

/// The gate of a build pipeline.
#[derive(Serialize, JsonSchema)]
struct Gated {
    /// How it ends.
    ends: Ends,
    /// The least severity that fails.
    limit: &'static str,
    /// How much slower B is, as a share of A; null where nobody can say.
    slowdown: Option<f64>,
    /// How much of that was accepted before.
    accepted: f64,
    /// Slots and buckets that are slower than accepted by as much as fails.
    slower: Vec<SlowerTerm>,
}

/// A slot or bucket that is slower.
#[derive(Serialize, JsonSchema)]
struct SlowerTerm {
    name: String,
    by_ns: i64,
}

fn gated(gate: &Gate) -> Gated {
    let slower = gate.slower.iter().map(|(name, ns)| SlowerTerm { name: plain(name), by_ns: *ns });
    Gated {
        ends: gate.ends,
        limit: gate.limit.key(),
        slowdown: gate.slowdown,
        accepted: gate.accepted,
        slower: slower.collect(),
    }
}

fn name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": SCHEMA })
}

/// The same of both sides.
#[derive(Serialize, JsonSchema)]
struct Pair<T> {
    a: T,
    b: T,
}

impl<T> Pair<T> {
    fn of(of: impl Fn(usize) -> T) -> Self {
        Self { a: of(0), b: of(1) }
    }
}

/// The capture of a side.
#[derive(Serialize, JsonSchema)]
struct Captured {
    source: String,
    device: Option<String>,
    simulated: bool,
}

/// The steps of a side.
#[derive(Serialize, JsonSchema)]
struct ComparedSteps {
    rank: u32,
    class: String,
    count: usize,
    /// Whether calls of the host were recorded.
    host_calls: bool,
    /// Whether ceilings of the device were measured.
    probes: bool,
    /// Whether the steps are known to be decode.
    decode: bool,
}

/// Boards of both sides and the lights of the pair.
#[derive(Serialize, JsonSchema)]
struct ReadyPair {
    a: Ready,
    b: Ready,
    together: Vec<PairLight>,
}

/// The light of an area for both sides together.
#[derive(Serialize, JsonSchema)]
struct PairLight {
    #[schemars(schema_with = "words::area")]
    area: Area,
    #[schemars(schema_with = "words::light")]
    light: Light,
}

/// The comparison as JSON.
pub(crate) fn document(report: &DiffReport, lang: Lang) -> Diff {
    let difference = report.difference.as_ref();
    let sentences = |d: &Difference| unknown::sentences(d).iter().map(|m| phrase::plain(m, lang)).collect();
    Diff {
        schema: SCHEMA,
        simulated: report.is_simulated(),
        banners: report.banners().iter().map(|banner| phrase::plain(banner, lang)).collect(),
        forced: report.forced,
        gate: report.gate.as_ref().map(gated),
        a: head(&report.heads[0]),
        b: head(&report.heads[1]),
        answer: difference.map(|d| answer::answer(d, report)),
        contract: contract::comparability(report, lang),
        steps: difference.map(|d| Pair::of(|n| steps(&d.sides[n]))),
        alignment: difference.map(alignment::aligned),
        waterfall: difference.map(|d| waterfall::terms(d, report)),
        statistics: report.statistics.as_ref().map(statistics::repeats),
        path: difference.map(|d| path::path(&d.signatures)),
        configuration: difference.map(|d| path::configuration(&d.signatures)),
        serving: report.serving.as_ref().map(serving::json::document),
        unknown: difference.map(sentences),
        readiness: readiness(report, lang),
        reports: report.apart.as_ref().map(|apart| Pair::of(|n| single::document(&apart[n], lang))),
    }
}

fn head(head: &Head) -> Captured {
    Captured { source: plain(&head.name), device: head.device.as_deref().map(plain), simulated: head.simulated }
}

fn steps(side: &Compared) -> ComparedSteps {
    ComparedSteps {
        rank: side.rank,
        class: plain(&side.class),
        count: side.steps,
        host_calls: side.has_host,
        probes: side.has_probes,
        decode: side.is_decode,
    }
}

/// Boards of both sides and the lights of the pair; nothing where nobody assessed them. Where the pair is refused the evidence
/// of the lights stands in the reports on both sides.
fn readiness(report: &DiffReport, lang: Lang) -> Option<ReadyPair> {
    let [a, b] = report.readiness.as_ref()?;
    let lights = |of: &Readiness| of.board.iter().map(|cell| (cell.of, cell.light)).collect::<Vec<_>>();
    let (of_a, of_b) = (lights(a), lights(b));
    let pair = together([&of_a, &of_b], &report.contract, report.outcome());
    let side = |of: &Readiness| match report.difference {
        Some(_) => single::readiness::readiness(of, lang),
        None => single::readiness::lights(of, lang),
    };
    let together = pair.into_iter().map(|(area, _, light)| PairLight { area, light });
    Some(ReadyPair { a: side(a), b: side(b), together: together.collect() })
}
