//! What the accepted pages show between them: every rule and every section of a report, so that a change of any of them is
//! seen by whoever has no captures of real devices.

use std::collections::BTreeSet;

use diagnosis::diagnose::{
    rules::REGISTRY,
    state::{self, State},
};

use simulator::FaultKind;

use super::{
    faults::{RUNS, UNNAMED},
    folder,
    inputs::PAGES,
};

/// Sections of a report on one capture.
const SECTIONS: [&str; 18] = [
    "Verdict",
    "What takes the most time",
    "The capture",
    "How the steps were found",
    "Steps",
    "Where the time went",
    "Who owns the idle time",
    "What the device worked on",
    "How far from the limit",
    "Kernels without a timeline",
    "Ranks and links without a timeline",
    "Findings",
    "Replay",
    "What the capture supports",
    "How ready the platform is",
    "Skipped rules",
    "What was read",
    "Operator names",
];
/// Sections of what the simulator does not write: ceilings of a machine, the trace of a graph capture beside its replay, and
/// sums of links beside a timeline.
const NOT_SIMULATED: [&str; 3] =
    ["Against what this device was measured to do", "What the replayed kernels are", "Links between ranks"];
/// Faults that their pages do not name since rules ask for more evidence, beside what they say instead: a tail of products of
/// few rows may be a memory-bound product (OP-10 is named).
const TOLD_APART_NO_MORE: [FaultKind; 1] = [FaultKind::WaveTail];
/// Rules that neither find nor abstain but on captures of this machine's processors, or of the engine, which says whether its
/// numbers are finite.
const OF_PROCESSORS: [&str; 2] = ["CP-13", "NM-01"];

/// The pages that every machine can make.
fn pages() -> Vec<(&'static str, String)> {
    let names = RUNS.iter().map(|run| run.name).chain(PAGES.iter().map(|(name, _)| *name));
    names.map(|name| (name, std::fs::read_to_string(folder().join(format!("{name}.md"))).unwrap())).collect()
}

/// Ids of rules in a text.
fn rules(text: &str) -> BTreeSet<&'static str> {
    let known = REGISTRY.iter().map(|rule| rule.doc().id);
    known.filter(|id| text.contains(id)).collect()
}

/// The part of a page under a heading of the second level.
fn section<'t>(page: &'t str, heading: &str) -> &'t str {
    let (_, after) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_default();
    after.split("\n## ").next().unwrap_or_default()
}

#[test]
fn every_rule_is_found_or_abstains_in_a_page_that_needs_no_corpus() {
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for (_, page) in pages() {
        let findings = section(&page, "Findings");
        let titles = findings.lines().filter(|line| line.starts_with("### "));
        found.extend(titles.flat_map(rules));
        seen.extend(rules(section(&page, "Skipped rules")));
    }
    seen.extend(&found);
    // Previews are not listed where they could not decide, and what no rule names (CO) is found only where no rule does.
    let counted = |id: &&str| state::of(id) == State::Stable && !id.starts_with("CO-");
    let all: BTreeSet<&str> = REGISTRY.iter().map(|rule| rule.doc().id).filter(counted).collect();
    println!("{} of {} rules are found; seen as an abstention only: {:?}", found.len(), all.len(), &seen - &found);
    let missing: Vec<&str> = all.difference(&seen).copied().collect();
    assert!(missing.iter().all(|id| OF_PROCESSORS.contains(id)), "{missing:?}");
}

#[test]
fn every_fault_is_named_by_a_finding_of_its_page() {
    let mut missed = Vec::new();
    for run in RUNS {
        let page = std::fs::read_to_string(folder().join(format!("{}.md", run.name))).unwrap();
        let found = rules(section(&page, "Findings"));
        let named = |kind: &&FaultKind| kind.rules().iter().any(|rule| found.contains(rule));
        let told = |kind: &&FaultKind| !named(kind) && !TOLD_APART_NO_MORE.contains(kind);
        missed.extend(run.faults.iter().filter(told).map(|kind| (run.name, kind, found.clone())));
    }
    assert!(missed.is_empty(), "{missed:?}");
    let all: BTreeSet<FaultKind> = FaultKind::ALL.iter().copied().collect();
    let of_runs: BTreeSet<FaultKind> = RUNS.iter().flat_map(|run| run.faults).chain(UNNAMED).copied().collect();
    assert_eq!(all, of_runs);
}

#[test]
fn every_section_of_a_report_is_in_a_page_that_needs_no_corpus() {
    let mut seen = BTreeSet::new();
    for (_, page) in pages() {
        seen.extend(page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned));
    }
    let wanted: BTreeSet<String> = SECTIONS.iter().map(|heading| (*heading).to_owned()).collect();
    assert_eq!(seen, wanted, "beside {NOT_SIMULATED:?}");
}
