//! The gate that every rule passes: the trigger recurs over the steps of a class, and the gain is worth a line.

use model::Ns;

pub use super::reading::LEAST_STEPS;
use crate::{
    analysis::{Class, Confidence, Rank, Step},
    diagnose::{estimate::LEAST_GAIN, finding::Finding},
};

/// A pause of so many median steps counts even when it occurs once.
pub const STALL_STEPS: Ns = 5;

/// What something costs the steps of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Mean over the steps that count, ns per step.
    pub per_step: Ns,
    /// The same as a share of the median step.
    pub share: f64,
    /// The most that the number of steps allows one to be sure of.
    pub most: Confidence,
}

/// The cost `of` each step of `class`, if it reaches `threshold` of the median step on average and in enough steps.
pub fn recurring(rank: &Rank, class: &Class, threshold: f64, of: impl Fn(&Step) -> Ns) -> Option<Cost> {
    let costs: Vec<Ns> = rank.steady_steps(class).map(of).collect();
    let least = threshold * class.p50 as f64;
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
/// steps of `class` that count, as [`reading::pauses`](super::reading::pauses) tells them apart.
pub fn stalling(class: &Class, pauses: &[Ns], threshold: f64) -> Option<Cost> {
    let long = pauses.iter().any(|p| *p > class.p50.saturating_mul(STALL_STEPS));
    if pauses.len() < 2 && !long {
        return None;
    }
    let total: Ns = pauses.iter().sum();
    let most = if class.steady.max(pauses.len()) < LEAST_STEPS { Confidence::Low } else { Confidence::High };
    let per_step = total / (class.steady.max(1) as Ns);
    let share = if class.p50 > 0 { per_step as f64 / class.p50 as f64 } else { return None };
    (per_step > 0 && share >= threshold).then_some(Cost { per_step, share, most })
}

fn mean(costs: &[Ns], class: &Class, most: Confidence) -> Option<Cost> {
    if costs.is_empty() || class.p50 <= 0 {
        return None;
    }
    let per_step = costs.iter().sum::<Ns>() / costs.len() as Ns;
    Some(Cost { per_step, share: per_step as f64 / class.p50 as f64, most })
}

impl Finding {
    /// The finding with its confidence lowered to `most`, unless its gain is not worth a line.
    pub fn gated(mut self, most: Confidence) -> Option<Self> {
        self.confidence = self.confidence.min(most);
        (self.estimate.max_gain_share() >= LEAST_GAIN).then_some(self)
    }
}
