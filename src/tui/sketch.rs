//! Captures that were read and not yet analysed: their lanes can be looked at while the diagnosis is made.

use model::Trace;
use rayon::prelude::*;

use super::{lane::LaneSet, opened::Look};
use diagnosis::platform::Packs;

/// Captures of which no more is known than what their sources say.
pub struct Sketch {
    captures: Vec<(Trace, LaneSet)>,
}

impl Sketch {
    /// Indexes the lanes of captures. It shares their slices.
    pub fn of(traces: &[Trace], packs: &Packs) -> Self {
        Self { captures: traces.par_iter().map(|trace| (trace.clone(), LaneSet::of_tracks(trace, packs))).collect() }
    }

    /// Number of captures.
    pub fn len(&self) -> usize {
        self.captures.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }

    /// The lanes of a capture.
    pub fn lanes(&self, at: usize) -> Option<&LaneSet> {
        self.captures.get(at).map(|(_, lanes)| lanes)
    }

    /// A capture by its position.
    pub fn look(&self, at: usize) -> Option<Look<'_>> {
        let (trace, lanes) = self.captures.get(at)?;
        Some(Look { trace, lanes, found: None })
    }
}
