//! Cases that people published with their cause, written as small captures of exactly the numbers they gave, read and
//! diagnosed by the code that the command uses. Rows are those of the diagnosis method's table of labelled cases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "public_cases/communication.rs"]
mod communication;
#[path = "public_cases/kineto.rs"]
mod kineto;
#[path = "public_cases/operator.rs"]
mod operator;
#[path = "public_cases/runtime.rs"]
mod runtime;

use model::TraceBuilder;
use stratoscope::{
    analysis::{self, Layer, Options},
    diagnose::{Diagnosis, VerdictLayer, diagnose, rules},
    platform::Packs,
};

/// Share of the cases that must come out as their authors found.
const MET: f64 = 0.80;
/// Findings that a reader looks at first.
const TOP: usize = 3;

/// What a case's authors found.
enum Expect {
    /// The verdict names this layer, and one of these rules is among the first findings.
    Rules(&'static str, &'static [&'static str]),
    /// No finding of this layer.
    Quiet(&'static str),
    /// The capture cannot decide, and says so.
    Undecided,
    /// No capture of this kind can show it.
    Nothing,
}

/// One row of the table.
struct Case {
    row: u32,
    source: &'static str,
    expect: Expect,
    capture: Option<fn() -> kineto::Capture>,
    /// Ranks of the job.
    world: i64,
    /// Why it does not come out.
    why: &'static str,
}

impl Case {
    const fn new(row: u32, source: &'static str, expect: Expect, capture: fn() -> kineto::Capture) -> Self {
        Self { row, source, expect, capture: Some(capture), world: 1, why: "" }
    }

    /// A case that no capture of this kind can show.
    const fn unmet(row: u32, source: &'static str, why: &'static str) -> Self {
        Self { row, source, expect: Expect::Nothing, capture: None, world: 1, why }
    }

    /// Whether every rule that could answer is still to be written.
    fn awaits_a_rule(&self) -> bool {
        matches!(self.expect, Expect::Rules(_, ids) if ids.iter().all(|id| rules::find(id).is_none()))
    }

    fn met(&self, diagnosis: &Diagnosis) -> bool {
        let found = diagnosis.findings.iter().filter(|f| f.layer != Layer::Measurement);
        let verdict = layer(diagnosis.verdict.layer);
        match &self.expect {
            Expect::Rules(expected, ids) => verdict == *expected && found.take(TOP).any(|f| ids.contains(&f.rule)),
            Expect::Quiet(layer) => found.filter(|f| f.layer.key() == *layer).count() == 0 && verdict != *layer,
            Expect::Undecided => diagnosis.verdict.layer == VerdictLayer::Undecided,
            Expect::Nothing => false,
        }
    }
}

fn layer(layer: VerdictLayer) -> &'static str {
    match layer {
        VerdictLayer::Operator => "operator",
        VerdictLayer::Runtime => "runtime",
        VerdictLayer::Communication => "communication",
        VerdictLayer::Undecided => "undecided",
        VerdictLayer::None => "none",
    }
}

fn diagnosis(case: &Case, capture: fn() -> kineto::Capture) -> Diagnosis {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("case.json");
    capture().write(&path, case.world);
    let mut builder = TraceBuilder::new("case", "");
    let format = parsers::detect::read(&path, None, &mut builder, &|_, _| {}).unwrap();
    let mut trace = builder.finish();
    trace.format = format.id.to_owned();
    let packs = Packs::embedded().unwrap();
    let analysis = analysis::analyze(&trace, &packs, &Options::default());
    diagnose(&trace, &analysis, &packs)
}

#[test]
fn published_cases_come_out_as_their_authors_found() {
    let mut cases: Vec<&Case> = [runtime::CASES, operator::CASES, communication::CASES].into_iter().flatten().collect();
    cases.sort_by_key(|c| c.row);
    assert_eq!(cases.len(), 32);
    let (mut missed, mut unexplained) = (0, Vec::new());
    for case in &cases {
        let diagnosis = case.capture.map(|capture| diagnosis(case, capture));
        let verdict = diagnosis.as_ref().map_or_else(
            || "-".to_owned(),
            |d| {
                let rules: Vec<&str> = d.findings.iter().map(|f| f.rule).collect();
                format!("{} {}", layer(d.verdict.layer), rules.join(" "))
            },
        );
        let met = diagnosis.is_some_and(|d| case.met(&d));
        let result = match () {
            () if met => "ok".to_owned(),
            () if case.awaits_a_rule() => "awaits its rule".to_owned(),
            () => {
                missed += 1;
                if case.why.is_empty() {
                    unexplained.push(case.row);
                }
                format!("missed: {}", case.why)
            }
        };
        println!("{:>2}  {:<50} {verdict:<55} {result}", case.row, case.source);
    }
    println!("{missed} of {} missed", cases.len());
    assert!(unexplained.is_empty(), "missed without an explanation: {unexplained:?}");
    assert!(missed as f64 <= (1.0 - MET) * cases.len() as f64);
}
