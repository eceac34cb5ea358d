//! What the interface looks at: captures with what was found in them, as `strato diagnose` found it, and their lanes; of two
//! that are compared also what `strato diff` says of them.

use model::Trace;
use rayon::prelude::*;

use super::{
    lane::LaneSet,
    sketch::Sketch,
    works::{Row, Works},
};
use diagnosis::{analysis::Analysis, diagnose::Diagnosis};
use report::{Report, diff::DiffReport, model::Capture, work::Group};

/// Captures that were opened. The report is the one that `strato diagnose` prints: what it holds is read from it, and only
/// what no report has room for from the analysis.
pub struct Opened {
    inputs: Vec<(Trace, Analysis, Diagnosis)>,
    report: Report,
    lanes: Vec<LaneSet>,
    /// Per capture, one per rank.
    works: Vec<Vec<Works>>,
    pair: Option<Pair>,
    said: Vec<String>,
}

/// Two sides, one held against the other.
pub struct Pair {
    /// What `strato diff` prints of them.
    pub report: DiffReport,
    /// Positions of the captures that stand for A and B.
    pub sides: [usize; 2],
}

/// One of the captures.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Its slices.
    pub trace: &'a Trace,
    /// Its lanes.
    pub lanes: &'a LaneSet,
    /// What was found in it; `None` while it is looked for.
    pub found: Option<Found<'a>>,
}

/// What was found in a capture.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// Steps, buckets and gaps.
    pub analysis: &'a Analysis,
    /// What the report says of it.
    pub capture: &'a Capture,
    /// All device work of each of its ranks.
    pub works: &'a [Works],
}

impl<'a> Look<'a> {
    /// Steps, buckets and gaps, once they are known.
    pub fn analysis(&self) -> Option<&'a Analysis> {
        self.found.map(|found| found.analysis)
    }

    /// All device work of one of its ranks, once its steps are known.
    pub fn works(&self, rank: usize, group: Group) -> &'a [Row] {
        let found = self.found.and_then(|found| Some((found, found.works.get(rank)?)));
        found.map_or(&[], |(found, works)| works.rows(self.trace, found.analysis, rank, group))
    }

    /// What the report says of it, once it is made.
    pub fn capture(&self) -> Option<&'a Capture> {
        self.found.map(|found| found.capture)
    }
}

/// Two of the captures beside each other.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    /// What is said of them.
    pub report: &'a DiffReport,
    /// A and B.
    pub sides: [Look<'a>; 2],
    /// Where these lie among all captures.
    pub at: [usize; 2],
}

impl Opened {
    /// Opens captures that were analysed and diagnosed.
    pub fn new(inputs: Vec<(Trace, Analysis, Diagnosis)>) -> Self {
        Self::with_lanes(inputs, |_| None)
    }

    /// The same of captures that were looked at before, in the same order.
    pub fn after(sketch: &Sketch, inputs: Vec<(Trace, Analysis, Diagnosis)>) -> Self {
        Self::with_lanes(inputs, |at| sketch.lanes(at))
    }

    fn with_lanes<'a>(
        inputs: Vec<(Trace, Analysis, Diagnosis)>,
        known: impl Fn(usize) -> Option<&'a LaneSet> + Sync,
    ) -> Self {
        let report = Report::build(&inputs);
        let lanes = inputs.par_iter().enumerate();
        let lanes = lanes.map(|(at, (trace, analysis, _))| LaneSet::build(trace, analysis, known(at))).collect();
        let works = inputs.iter().map(|(_, analysis, _)| analysis.ranks.iter().map(|_| Works::default()).collect());
        let works = works.collect();
        Self { inputs, report, lanes, works, pair: None, said: Vec::new() }
    }

    /// The same with a comparison of two of them.
    pub fn compared(inputs: Vec<(Trace, Analysis, Diagnosis)>, pair: Pair) -> Self {
        Self { pair: Some(pair), ..Self::new(inputs) }
    }

    /// Keeps something that a person should know of how they were opened.
    pub fn say(&mut self, note: String) {
        self.said.push(note);
    }

    /// What was said.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// Number of captures.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The capture that comes first on a report's page: the one with the gravest finding.
    pub fn leading(&self) -> usize {
        self.report.leading().map_or(0, |capture| capture.id.saturating_sub(1))
    }

    /// What is said of them.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// A capture by its position.
    pub fn look(&self, at: usize) -> Option<Look<'_>> {
        let (trace, analysis, _) = self.inputs.get(at)?;
        let found = Found { analysis, capture: self.report.captures.get(at)?, works: self.works.get(at)? };
        Some(Look { trace, lanes: self.lanes.get(at)?, found: Some(found) })
    }

    /// The two that are compared, if any are.
    pub fn beside(&self) -> Option<Beside<'_>> {
        let pair = self.pair.as_ref()?;
        let [a, b] = pair.sides;
        Some(Beside { report: &pair.report, sides: [self.look(a)?, self.look(b)?], at: pair.sides })
    }
}
