//! The gate that every rule passes: the trigger recurs over the steps of a class, and the gain is worth a line.

use model::Ns;

pub use super::reading::LEAST_STEPS;
use crate::{
    analysis::{Class, Confidence, Rank, Step, Workload},
    diagnose::{estimate::LEAST_GAIN, finding::Finding},
};

/// A pause of so many mean steps counts even when it occurs once.
pub const STALL_STEPS: Ns = 5;

/// What something costs the steps of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Mean over the steps that count, ns per step.
    pub per_step: Ns,
    /// The same as a share of the mean step.
    pub share: f64,
    /// The most that the number of steps allows one to be sure of.
    pub most: Confidence,
}

/// The cost `of` each step of `class`, if it reaches `threshold` of the mean step on average and in enough steps.
pub fn recurring(rank: &Rank, class: &Class, threshold: f64, of: impl Fn(&Step) -> Ns) -> Option<Cost> {
    let costs: Vec<Ns> = rank.steady_steps(class).map(of).collect();
    // Half of the steps must have it: a step that is long for another reason does not say that this one is not.
    let least = threshold * class.p50.min(class.mean()) as f64;
    let hits = costs.iter().filter(|c| **c > 0 && **c as f64 >= least).count();
    let most = if costs.len() < LEAST_STEPS {
        Confidence::Low
    } else if hits >= LEAST_STEPS && 2 * hits >= costs.len() {
        Confidence::High
    } else {
        return None;
    };
    let cost = mean(&costs, class, most)?;
    (cost.per_step > 0 && cost.share >= threshold).then_some(cost)
}

/// The cost of pauses, if they are more than one or one of them is longer than five steps. `pauses` are those of the
/// steps of `class` that count.
pub fn stalling(class: &Class, pauses: &[Ns], threshold: f64) -> Option<Cost> {
    stalled(class.steady, class.mean(), class.p50, pauses, threshold)
}

/// The same of a workload.
pub fn interrupting(workload: &Workload<'_>, pauses: &[Ns], threshold: f64) -> Option<Cost> {
    stalled(workload.steady(), workload.mean(), workload.median(), pauses, threshold)
}

fn stalled(steady: usize, mean: Ns, median: Ns, pauses: &[Ns], threshold: f64) -> Option<Cost> {
    let long = pauses.iter().any(|p| *p > median.saturating_mul(STALL_STEPS));
    if (pauses.len() < 2 && !long) || mean <= 0 {
        return None;
    }
    let total: Ns = pauses.iter().sum();
    let most = if steady < LEAST_STEPS { Confidence::Low } else { Confidence::High };
    let per_step = total / (steady.max(1) as Ns);
    let share = per_step as f64 / mean as f64;
    (per_step > 0 && share >= threshold).then_some(Cost { per_step, share, most })
}

fn mean(costs: &[Ns], class: &Class, most: Confidence) -> Option<Cost> {
    if costs.is_empty() || class.mean() <= 0 {
        return None;
    }
    let per_step = costs.iter().sum::<Ns>() / costs.len() as Ns;
    Some(Cost { per_step, share: per_step as f64 / class.mean() as f64, most })
}

impl Finding {
    /// The finding with its confidence lowered to `most`, unless its gain is not worth a line.
    pub fn gated(mut self, most: Confidence) -> Option<Self> {
        self.confidence = self.confidence.min(most);
        (self.estimate.max_gain_share() >= LEAST_GAIN).then_some(self)
    }
}
