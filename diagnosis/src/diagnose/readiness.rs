//! How ready a platform is for work on decode, as far as one capture shows it (method §7.3): a board of six areas and a matrix
//! of four. Each cell has a light, the facts that it rests on, and the next step. A light is green where the capture shows
//! that the area works, never because it shows nothing.
//!
//! An area is red where a finding of high severity (a tenth of the step) stands in its way, amber where a lesser one does.

mod board;
mod matrix;

use model::{Area, EvidenceClass, Light, Maturity, Severity as Loss};

use super::{
    catalogue::Catalogue,
    finding::{Finding, Severity},
    relations::{Feeds, Role},
    roofline::Roofline,
    rule::Context,
};
use crate::analysis::{Class, Rank};

/// Classes of evidence that count towards the score: all that a recorder can give.
pub const SCORED: [EvidenceClass; 9] = [
    EvidenceClass::Device,
    EvidenceClass::HostApi,
    EvidenceClass::Correlation,
    EvidenceClass::Graph,
    EvidenceClass::Shapes,
    EvidenceClass::MultiRank,
    EvidenceClass::Logs,
    EvidenceClass::Counters,
    EvidenceClass::PairDetail,
];
/// What is known of a platform.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Readiness {
    /// The areas, in the order of [`Area::ALL`].
    pub board: Vec<Cell<Area>>,
    /// The matrix, in the order of [`Maturity::ALL`].
    pub matrix: Vec<Cell<Maturity>>,
    /// Vendor of the devices, whose tools the next steps name; empty where nothing says it.
    pub vendor: String,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Cell<K> {
    /// What it is about.
    pub of: K,
    /// What is said of it.
    pub light: Light,
    /// What that rests on.
    pub facts: Vec<Fact>,
    /// What to do next; nothing where it is green.
    pub next: Option<Next>,
}

/// Something that the capture shows.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each variant says what its fields are
pub enum Fact {
    /// Device operations, and steps that count.
    Ran { operations: u64, steps: u64 },
    /// No device operation was recorded.
    NothingRan,
    /// The numbers were held against a reference: field and value.
    Reference { field: &'static str, value: String },
    /// They were not.
    NoReference,
    /// A finding, by its rule.
    Finding { rule: &'static str, severity: Severity },
    /// Steps that count, by how much of them is replayed from graphs.
    Graphs { full: u64, piecewise: u64, eager: u64 },
    /// Steps that count, and those of them that hold compilation or graph capture.
    Compiled { steps: u64, compiling: u64 },
    /// Ranks captured, and ranks that the job says it has.
    Ranks { captured: u64, world: Option<u64> },
    /// Collectives seen, and those whose transfer is only estimated.
    Collectives { seen: u64, estimated: u64 },
    /// Classes of evidence that the capture holds of those that count.
    Evidence { held: u64, of: u64 },
    /// A class that it lacks.
    Lacks(EvidenceClass),
    /// Share of the device time whose operators are named, in 0..=1.
    Named(f64),
    /// Records that were lost or wrong.
    Lost(u64),
    /// More launches or operations are lost than a trace may lose.
    Broken,
    /// Hard fields of the contract that are known.
    Fields { known: u64, of: u64 },
    /// Independent repeats, if the capture says how many there were.
    Repeats(Option<u64>),
    /// Steps that the noise of a step is known from.
    Noise { steps: u64, least: u64 },
    /// Operators of a step: that stand for themselves, that several kernels make up, that fall back to a CPU.
    Realised { native: u64, composite: u64, fallback: u64 },
    /// Share of the measured read bandwidth that the matrix products reach (decode is bound by it), in 0..=1 or above.
    Bandwidth(f64),
    /// Least time of the matrix products over the time of the whole step, in 0..=1 or above.
    Step(f64),
    /// Nothing of the device was measured to hold the step against.
    NoCeiling,
    /// What a person said.
    Judged(String),
    /// Nobody said anything.
    NotJudged,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Record a class of evidence.
    Collect(EvidenceClass),
    /// Hold the numbers against a reference.
    Reference,
    /// Find the operator whose numbers diverge.
    Diverges,
    /// What the finding of a rule says.
    Remedy(&'static str),
    /// What a rule explains, of which nothing was found that gains anything.
    Explain(&'static str),
    /// Replay the step from graphs, and measure both.
    Graphs,
    /// Record more steps that count.
    Steps,
    /// Warm up until nothing is compiled any more.
    WarmUp,
    /// Run on several ranks.
    Distribute,
    /// Name the operators that no pattern knows.
    Patterns,
    /// See what the import lost.
    Losses,
    /// State the fields of the contract.
    Declare,
    /// Repeat the run.
    Repeat,
    /// Measure what the device can do.
    Probe,
    /// See which operators are far from it.
    Roofline,
    /// Say what documentation and community are like.
    Judge,
}

/// Assesses a capture from what `rules` found in it.
pub fn assess(cx: &Context<'_>, findings: &[Finding], roofline: Option<&Roofline>, rules: Catalogue) -> Readiness {
    let seen = Seen { cx, findings, roofline, rules };
    Readiness {
        board: vec![
            seen.run(),
            seen.graph(),
            seen.compile_stability(),
            seen.communication(),
            seen.observability(),
            seen.verify(),
        ],
        matrix: vec![seen.coverage(), seen.efficiency(), seen.ecosystem(), seen.community()],
        vendor: cx.trace.manifest.value("hardware.vendor").unwrap_or_default().to_owned(),
    }
}

/// What the cells are read from.
struct Seen<'a> {
    cx: &'a Context<'a>,
    findings: &'a [Finding],
    roofline: Option<&'a Roofline>,
    rules: Catalogue,
}

/// A cell that rests on `facts`: green unless something is wrong, and the first thing that is worst gives light and next step.
fn cell<K>(of: K, facts: Vec<Fact>, wrong: Vec<(Light, Next)>) -> Cell<K> {
    let worst = wrong.iter().map(|(light, _)| *light).fold(Light::Green, Light::and);
    let next = wrong.into_iter().find(|(light, _)| *light == worst).map(|(_, next)| next);
    Cell { of, light: worst, facts, next }
}

/// A cell of which nothing is known.
fn unknown<K>(of: K, fact: Fact, next: Next) -> Cell<K> {
    Cell { of, light: Light::Unknown, facts: vec![fact], next: Some(next) }
}

impl Seen<'_> {
    fn has(&self, class: EvidenceClass) -> bool {
        self.cx.analysis.evidence.has(class)
    }

    /// The gravest finding that feeds a cell and gains anything, as a fact and as what is wrong.
    fn worst(&self, cells: &[Feeds]) -> Option<(Fact, (Light, Next))> {
        let feeds = |finding: &&Finding| cells.iter().any(|cell| self.rules.feeds(finding.rule, *cell));
        let own = self.findings.iter().filter(feeds).filter(|finding| finding.severity >= Severity::Low);
        let worst = own.max_by_key(|finding| finding.severity)?;
        let light = if worst.severity >= Severity::High { Light::Red } else { Light::Amber };
        let fact = Fact::Finding { rule: worst.rule, severity: worst.severity };
        Some((fact, (light, Next::Remedy(worst.rule))))
    }

    /// Steps that count of the stages of the main classes, with their class.
    fn classes(&self) -> impl Iterator<Item = (&Rank, &Class)> {
        self.cx.main_classes().flat_map(|(rank, main)| {
            let same = rank.classes.iter().filter(|class| class.stage == main.stage && class.steady > 0);
            same.map(move |class| (rank, class))
        })
    }

    fn steps(&self) -> u64 {
        self.classes().map(|(_, class)| class.steady as u64).sum()
    }

    /// Adds the gravest finding that feeds a cell.
    fn blame(&self, cells: &[Feeds], facts: &mut Vec<Fact>, wrong: &mut Vec<(Light, Next)>) {
        if let Some((fact, what)) = self.worst(cells) {
            facts.push(fact);
            wrong.push(what);
        }
    }

    /// Where a person reads on about what the rules with a role see: in a finding, if there is one.
    fn about(&self, role: Role) -> Option<Next> {
        let found = self.findings.iter().find(|finding| self.rules.plays(finding.rule, role));
        let explained = || self.rules.with(role).next().map(Next::Explain);
        found.map(|finding| Next::Remedy(finding.rule)).or_else(explained)
    }

    /// Records that the import lost or could not read.
    fn lost(&self) -> u64 {
        let lost = self.cx.trace.stats.iter().filter(|stat| stat.severity >= Loss::DataLoss);
        lost.map(|stat| stat.count).fold(0, u64::saturating_add)
    }

    /// How many classes of evidence are there.
    fn score(&self) -> Fact {
        let held = SCORED.into_iter().filter(|class| self.has(*class)).count() as u64;
        Fact::Evidence { held, of: SCORED.len() as u64 }
    }
}

#[cfg(test)]
mod tests;
