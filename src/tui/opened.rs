//! What the interface looks at: captures with what was found in them, as `strato diagnose` found it, and their lanes.

use model::Trace;
use rayon::prelude::*;

use super::lane::LaneSet;
use crate::{
    analysis::Analysis,
    diagnose::Diagnosis,
    report::{Report, model::Capture},
};

/// Captures that were opened. The report is the one that `strato diagnose` prints: what it holds is read from it, and only
/// what no report has room for from the analysis.
pub struct Opened {
    inputs: Vec<(Trace, Analysis, Diagnosis)>,
    report: Report,
    lanes: Vec<LaneSet>,
}

/// One of the captures.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Its slices.
    pub trace: &'a Trace,
    /// Steps, buckets and gaps.
    pub analysis: &'a Analysis,
    /// What the report says of it.
    pub capture: &'a Capture,
    /// Its lanes.
    pub lanes: &'a LaneSet,
}

impl Opened {
    /// Opens captures that were analysed and diagnosed.
    pub fn new(inputs: Vec<(Trace, Analysis, Diagnosis)>) -> Self {
        let report = Report::build(&inputs);
        let lanes = inputs.par_iter().map(|(trace, analysis, _)| LaneSet::build(trace, analysis)).collect();
        Self { inputs, report, lanes }
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
        Some(Look { trace, analysis, capture: self.report.captures.get(at)?, lanes: self.lanes.get(at)? })
    }
}
