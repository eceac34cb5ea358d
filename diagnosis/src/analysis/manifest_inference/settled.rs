//! Whether the step time had settled before the steps that count: by a search for the place at which it changed.

use model::Ns;

use super::{By, Inferred, View, Why};
use crate::analysis::{Selection, classes::SETTLED, median};

/// Fewest steps in which a change point is sought, as for the warm-up itself.
const STEPS: usize = 8;
/// Chance of a change as large where there is none below which there is one.
const CHANCE: f64 = 0.01;

pub(super) fn infer(view: &View<'_>, inferred: &mut Inferred) {
    inferred.put("warmup.change_point", By::Steps, settled(view));
}

/// What is found begins as [`model::manifest::SETTLED`] does where the time had settled.
fn settled(view: &View<'_>) -> Result<String, Why> {
    let own = || view.rank.steps.iter().filter(|step| step.class == view.class.index);
    let left_out = own().take_while(|step| step.selection != Selection::Steady).count();
    let times: Vec<Ns> = view.rank.steady_steps(view.class).map(|step| step.window.len()).collect();
    if times.len() < STEPS {
        return Err(Why::FewSteps(times.len()));
    }
    if left_out >= times.len() {
        return Ok(format!("not settled within {left_out} steps"));
    }
    let change = Change::of(&times);
    let settled = model::manifest::SETTLED;
    Ok(match change.excess(&times) {
        // A run that becomes faster later on has a reason other than warming up.
        Some(excess) if 2 * change.after <= times.len() => {
            format!("not settled: {:.0} % slower up to step {}", 100.0 * excess, left_out + change.after)
        }
        _ => format!("{settled} after {left_out} steps: no change point in {} (p = {:.2})", times.len(), change.p),
    })
}

/// The place at which a series most likely changed its level.
struct Change {
    /// Values before it.
    after: usize,
    /// Chance of a change as large in a series that has none.
    p: f64,
}

impl Change {
    /// The rank test of A. N. Pettitt (Applied Statistics 28, 1979), with his approximation of the chance.
    fn of(times: &[Ns]) -> Self {
        let n = times.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|i| times.get(*i));
        // Twice the mean rank of equal values: a whole number.
        let mut ranks = vec![0i64; n];
        let mut first = 1i64;
        for run in order.chunk_by(|x, y| times.get(*x) == times.get(*y)) {
            let size = run.len() as i64;
            run.iter().for_each(|i| {
                if let Some(rank) = ranks.get_mut(*i) {
                    *rank = 2 * first + size - 1;
                }
            });
            first += size;
        }
        let (mut sum, mut best, mut after) = (0i64, 0i64, 0);
        for (i, rank) in ranks.iter().enumerate() {
            sum += rank - (n as i64 + 1);
            if sum.abs() > best {
                (best, after) = (sum.abs(), i + 1);
            }
        }
        let (k, n) = (best as f64, n as f64);
        Self { after, p: (2.0 * (-6.0 * k * k / (n * n * n + n * n)).exp()).min(1.0) }
    }

    /// By how much what lies before is slower, as a share of what follows; `None` where that is no more than what steps
    /// differ by anyway.
    fn excess(&self, times: &[Ns]) -> Option<f64> {
        let (before, rest) = times.split_at_checked(self.after).filter(|(x, y)| !x.is_empty() && !y.is_empty())?;
        let level = median(rest.to_vec())?.max(1);
        let spread = median(rest.iter().map(|t| (t - level).abs()).collect())?;
        let moved = (median(before.to_vec())? - level) as f64;
        (self.p < CHANCE && moved > (SETTLED * level as f64).max(3.0 * spread as f64)).then(|| moved / level as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_level_is_found_where_it_is_and_noise_is_none() {
        let noise = |i: usize| (i * 7919 % 13) as Ns;
        let level: Vec<Ns> = (0..40).map(|i| 1_000 + noise(i)).collect();
        assert_eq!(Change::of(&level).excess(&level), None);
        let slow: Vec<Ns> = (0..40).map(|i| if i < 12 { 1_200 } else { 1_000 } + noise(i)).collect();
        let change = Change::of(&slow);
        assert!((12..=13).contains(&change.after), "{}", change.after);
        assert!(change.excess(&slow).is_some_and(|share| (share - 0.2).abs() < 0.02), "{}", change.p);
        // Slower and slower is no warming up.
        let later: Vec<Ns> = slow.iter().rev().copied().collect();
        assert_eq!(Change::of(&later).excess(&later), None);
        assert_eq!((Change::of(&[]).after, Change::of(&[5; 9]).after), (0, 0));
    }
}
