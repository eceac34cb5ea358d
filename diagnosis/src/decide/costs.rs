//! How long a platform takes for prefill and decode, from what was measured of it.

use std::collections::BTreeMap;

use crate::serving::{Level, Load, Metric};

/// Time of a prefill of some tokens and of a decode step of some sequences, ms.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// What every prefill takes, however short the prompt.
    pub fixed: f64,
    /// What each token of a prompt takes.
    pub per_token: f64,
    /// Prompt lengths that these were fitted to; one cannot tell the two apart.
    pub prompts: Vec<f64>,
    /// Decode steps that were measured: sequences and ms, the fewest first.
    pub steps: Vec<(f64, f64)>,
}

impl Costs {
    /// Of measured prefills (tokens, ms) and decode steps (sequences, ms); `None` where one of the two is missing.
    pub fn of(prefills: &[(f64, f64)], steps: &[(f64, f64)]) -> Option<Self> {
        let (prefills, steps) = (means(prefills), means(steps));
        let (fixed, per_token) = line(&prefills)?;
        if steps.is_empty() {
            return None;
        }
        Some(Self { fixed, per_token, prompts: prefills.iter().map(|(tokens, _)| *tokens).collect(), steps })
    }

    /// Whether steps of more than one sequence were measured. Without them nothing says what a batch costs, and a worker that
    /// serves one request at a time is no fleet that anybody would run.
    pub fn knows_batches(&self) -> bool {
        self.steps.iter().any(|(sequences, _)| *sequences > 1.0)
    }

    /// Of serving results: prefills are the first tokens under the least load, where nobody waits for others; decode steps are the
    /// times between tokens at each concurrency.
    pub fn of_loads(loads: &[Load]) -> Option<Self> {
        let concurrency = |load: &Load| match load.level() {
            Some(Level::Concurrency(n)) => Some(n.max(1.0)),
            // By Little's law.
            _ => Some((load.request_throughput()? * load.mean(Metric::E2e)? / 1e3).max(1.0)),
        };
        let least = loads.iter().filter_map(concurrency).fold(f64::INFINITY, f64::min);
        let quiet = loads.iter().filter(|load| concurrency(load).is_some_and(|n| n <= least * 1.001));
        let middle = |load: &Load, metric| load.percentile(metric, 50.0).or_else(|| load.mean(metric));
        let prefills: Vec<_> =
            quiet.filter_map(|load| Some((load.input_len()?, middle(load, Metric::Ttft)?))).collect();
        let steps: Vec<_> = loads
            .iter()
            .filter_map(|load| Some((concurrency(load)?, load.mean(Metric::Tpot).or_else(|| load.mean(Metric::Itl))?)))
            .collect();
        Self::of(&prefills, &steps)
    }

    /// A prefill of so many tokens, ms.
    pub fn prefill(&self, tokens: f64) -> f64 {
        self.fixed + self.per_token * tokens
    }

    /// A decode step of so many sequences, ms: between measured ones on a line, beyond them on the line of the last two. One alone
    /// is taken for all smaller batches; of larger ones it says nothing.
    pub fn step(&self, sequences: f64) -> f64 {
        let after = self.steps.iter().position(|(n, _)| *n >= sequences);
        let on = |(n, ms): (f64, f64), (m, other): (f64, f64)| ms + (other - ms) * (sequences - n) / (m - n);
        let at = |i: usize| self.steps.get(i).copied();
        let found = match (after, self.steps.len()) {
            (Some(0), _) | (None, 1) => at(0).map(|(_, ms)| ms),
            (Some(i), _) => at(i - 1).zip(at(i)).map(|(a, b)| on(a, b)),
            (None, n) => n.checked_sub(2).and_then(at).zip(at(n.saturating_sub(1))).map(|(a, b)| on(a, b)),
        };
        found.unwrap_or(f64::INFINITY).max(0.0)
    }

    /// The largest batch that was measured: of larger ones nothing is known.
    pub fn largest(&self) -> f64 {
        self.steps.last().map_or(1.0, |(n, _)| *n)
    }
}

/// Means of equal places, in order.
fn means(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut found: BTreeMap<u64, (f64, f64, u32)> = BTreeMap::new();
    for (x, y) in points.iter().filter(|(x, y)| x.is_finite() && *x > 0.0 && y.is_finite() && *y > 0.0) {
        let (sum_x, sum_y, n) = found.entry(x.round() as u64).or_default();
        (*sum_x, *sum_y, *n) = (*sum_x + x, *sum_y + y, *n + 1);
    }
    found.into_values().map(|(x, y, n)| (x / f64::from(n), y / f64::from(n))).collect()
}

/// The line through points by least squares, neither of whose parts is negative; through one point alone a fixed part cannot be
/// told, and everything is taken for time of the tokens.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (first_x, first_y) = *points.first()?;
    if points.len() == 1 {
        return Some((0.0, first_y / first_x));
    }
    let (mean_x, mean_y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let above: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
    let slope = (above / below).max(0.0);
    let fixed = mean_y - slope * mean_x;
    // A negative time of no tokens cannot be: then the line goes through nothing.
    if fixed < 0.0 { Some((0.0, mean_y / mean_x)) } else { Some((fixed, slope)) }
}
