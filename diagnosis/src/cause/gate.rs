//! Which costs the evidence of a capture allows. What it does not allow exists for nothing downstream.

use model::{ImportStat, Trace};

use super::{Cost, Kind, Population};
use crate::analysis::{Analysis, contradiction::Against, touched};

/// Fewest counted steps, and fewest device operations where the steps are fewer, from which a cost is told.
const STEPS: usize = 8;
/// Fewest device operations.
const OPERATIONS: usize = 30;
/// Smallest share of the counted steps that is a cost.
const LEAST: f64 = 0.02;

/// A cost that the evidence allows.
#[derive(Clone, Debug)]
pub struct Gated(Cost);

impl std::ops::Deref for Gated {
    type Target = Cost;

    fn deref(&self) -> &Cost {
        &self.0
    }
}

/// The population of a capture whose evidence is a timeline with enough in it; `None` of every other.
pub fn population<'a>(trace: &'a Trace, analysis: &'a Analysis) -> Option<Population<'a>> {
    // A profiler that runs kernels one by one, once per set of counters, records no run.
    let alone = trace.stat(ImportStat::RUN_ALONE);
    let alone = alone > 0 && alone.saturating_mul(2) >= analysis.integrity.device_ops;
    // The profiler's own sums speak against the rows: a sample accuses nobody.
    let contradicted = analysis.contradictions.iter().any(|of| of.against == Against::Rows);
    // Where device rows are lost, gaps and shares are those of what is left.
    let nothing = touched::hardly(trace, &analysis.ranks);
    if alone || contradicted || nothing || analysis.loss.forbids_shares() {
        return None;
    }
    let mut population = Population::of(trace, analysis);
    population.ranks.retain(|rank| !rank.work.is_empty());
    (!population.ranks.is_empty()).then_some(population)
}

/// Whether the evidence of a capture allows a cost.
pub fn allows(population: &Population<'_>, cost: &Cost) -> bool {
    let integrity = &population.analysis.integrity;
    let rests_on_gaps =
        matches!(cost.kind, Kind::Owner(_) | Kind::Turnaround { .. } | Kind::Chain(_) | Kind::Nodes | Kind::Unstarted);
    // Where device rows or their launches are lost, a gap may hold work. Where durations hold the dispatch time, only the short
    // pauses between queued operations are hidden: a long one is there all the same.
    !(rests_on_gaps && integrity.is_broken() || cost.kind == Kind::Nodes && integrity.is_folded())
}

/// A cost that may be told of this capture.
pub fn allow(population: &Population<'_>, mut cost: Cost) -> Option<Gated> {
    // Too few steps and operations tell nothing of what repeats. What the host did in a pause, what was copied at which rate and how
    // many blocks a kernel had are facts all the same.
    let enough = |rank: &super::population::Counted<'_>| rank.steps.len() >= STEPS || rank.work.len() >= OPERATIONS;
    let few = !population.ranks.iter().any(enough);
    if few {
        cost.inherent = true;
    }
    let is_fact = matches!(
        cost.kind,
        Kind::Copies { .. }
            | Kind::Owner(_)
            | Kind::Turnaround { .. }
            | Kind::Underfilled { .. }
            | Kind::SmallBlocks { .. }
    );
    let tells = !few || is_fact;
    (tells && cost.share() >= LEAST).then_some(Gated(cost))
}
