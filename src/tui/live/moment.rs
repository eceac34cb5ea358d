//! What was known at one moment: the newest state, or that of a step one has gone back to. Panels read nothing else.

use std::collections::BTreeMap;

use model::{Ns, Reading};

use super::{
    model::{Group, Op, Run, Step},
    state::{Series, State},
};
use diagnosis::analysis::Layer;

/// Steps over which times, shares and sums are taken.
pub const WINDOW: usize = 32;
/// Steps of which the median and the percentile are taken.
const SAMPLE: usize = 512;
/// A rank is late when the others wait for it this part of the step, in hundredths.
const LATE: Ns = 3;

/// The state at one moment.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// All that is kept.
    pub state: &'a State,
    /// What is run.
    pub run: &'a Run,
    /// The moment, on the clock of the updates.
    pub at: Ns,
    /// The step that was gone back to.
    pub step: Option<u32>,
}

impl<'a> Moment<'a> {
    /// The steps of a rank until now, the newest first.
    pub fn steps(&self, rank: usize) -> impl Iterator<Item = &'a (Ns, Step)> + use<'a> {
        let steps = self.state.ranks.get(rank);
        let (at, step) = (self.at, self.step);
        let known = move |entry: &&(Ns, Step)| match step {
            Some(step) => entry.1.number <= step,
            None => entry.0 <= at,
        };
        steps.into_iter().flat_map(|steps| steps.iter().rev()).skip_while(move |entry| !known(entry))
    }

    /// The decode steps of the first rank, the newest first.
    fn decodes(&self) -> impl Iterator<Item = &'a (Ns, Step)> + use<'a> {
        self.steps(0).filter(|(_, step)| step.number > 0)
    }

    /// The newest step of the first rank.
    pub fn last(&self) -> Option<&'a Step> {
        self.steps(0).next().map(|(_, step)| step)
    }

    /// The time of reading the prompt, as long as it is kept.
    pub fn prefill(&self) -> Option<Ns> {
        self.state.ranks.first()?.front().filter(|(_, step)| step.number == 0).map(|(_, step)| step.ns)
    }

    /// Times of the newest decode steps in their order; `None` for a step that was not told.
    pub fn times(&self, count: usize) -> Vec<Option<f64>> {
        let mut out = Vec::new();
        let mut next: Option<u32> = None;
        for (_, step) in self.decodes() {
            let missing = next.map_or(0, |next| next.saturating_sub(step.number)) as usize;
            out.extend(std::iter::repeat_n(None, missing.min(count)));
            out.push(Some(step.ns as f64));
            next = step.number.checked_sub(1);
            if out.len() >= count {
                break;
            }
        }
        out.truncate(count);
        out.reverse();
        out
    }

    /// Median and 99th percentile of the newest decode steps, and of how many.
    pub fn percentiles(&self) -> Option<(Ns, Ns, usize)> {
        let mut times: Vec<Ns> = self.decodes().take(SAMPLE).map(|(_, step)| step.ns).collect();
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let at = |percent: usize| times.get(last * percent / 100).copied();
        Some((at(50)?, at(99)?, times.len()))
    }

    /// Tokens per second over the newest steps, with what passed between them, and over how many.
    pub fn rate(&self) -> Option<(f64, usize)> {
        let window: Vec<(Ns, u32)> = self.decodes().take(WINDOW).map(|(at, step)| (*at, step.number)).collect();
        let (newest, oldest) = (window.first()?, window.last()?);
        let ns = newest.0 - oldest.0;
        let steps = newest.1 - oldest.1;
        (ns > 0).then(|| (f64::from(steps) * self.run.batch as f64 * 1e9 / ns as f64, steps as usize))
    }

    /// Sum of the layers of the newest steps of a rank, and of how many; of the one step that was gone back to.
    pub fn layers(&self, rank: usize) -> Option<([Ns; 4], usize)> {
        let window = if self.step.is_some() { 1 } else { WINDOW };
        let steps = self.steps(rank).filter(|(_, step)| step.number > 0 || self.step == Some(0)).take(window);
        let (mut sum, mut count) = ([0; 4], 0);
        for layers in steps.filter_map(|(_, step)| step.layers.value()) {
            sum.iter_mut().zip(layers).for_each(|(sum, ns)| *sum += ns);
            count += 1;
        }
        (count > 0).then_some((sum, count))
    }

    /// Why the newest step's layers are not known.
    pub fn no_layers(&self) -> Option<&'a str> {
        match &self.last()?.layers {
            Reading::Unavailable(reason) => Some(reason),
            Reading::Value(_) => None,
        }
    }

    /// Operators of the newest decode steps, the longest first, and of how many steps.
    pub fn ops(&self) -> (Vec<Op>, usize, Ns) {
        let window = if self.step.is_some() { 1 } else { WINDOW };
        let mut sums: BTreeMap<u16, (u32, Ns)> = BTreeMap::new();
        let (mut steps, mut total) = (0, 0);
        for (_, step) in self.steps(0).filter(|(_, step)| step.number > 0 || self.step == Some(0)).take(window) {
            for op in &step.ops {
                let sum = sums.entry(op.name).or_default();
                *sum = (sum.0 + op.count, sum.1 + op.ns);
            }
            steps += 1;
            total += step.ns;
        }
        let mut ops: Vec<Op> = sums.into_iter().map(|(name, (count, ns))| Op { name, count, ns }).collect();
        ops.sort_by_key(|op| std::cmp::Reverse(op.ns));
        (ops, steps, total)
    }

    /// In how many of the newest steps each rank was the one that the others waited for, and of how many. Where all ranks
    /// wait for each other in the same collectives, it is the one that waits least.
    pub fn late(&self) -> (Vec<usize>, usize) {
        let ranks = self.state.ranks.len();
        let (mut late, mut steps) = (vec![0; ranks], 0);
        if ranks < 2 {
            return (late, steps);
        }
        let mut per_rank: Vec<_> = (0..ranks).map(|rank| self.steps(rank).peekable()).collect();
        for (_, first) in self.decodes().take(WINDOW) {
            let waits: Option<Vec<Ns>> = per_rank
                .iter_mut()
                .map(|steps| {
                    while steps.next_if(|(_, step)| step.number > first.number).is_some() {}
                    let (_, step) = steps.peek().filter(|(_, step)| step.number == first.number)?;
                    step.layer(Layer::Communication)
                })
                .collect();
            let Some(waits) = waits else { continue };
            steps += 1;
            let least = waits.iter().enumerate().min_by_key(|(_, ns)| **ns);
            let most = waits.iter().max().copied().unwrap_or(0);
            if let Some((rank, least)) = least.filter(|(_, least)| (most - **least) * 100 > first.ns * LATE) {
                debug_assert!(*least <= most);
                if let Some(count) = late.get_mut(rank) {
                    *count += 1;
                }
            }
        }
        (late, steps)
    }

    /// Counters of each group.
    pub fn gauges(&self) -> impl Iterator<Item = (&'a Group, &'a str, &'a Series)> {
        self.state.gauges.iter().map(|((group, name), series)| (group, name.as_str(), series))
    }

    /// Tokens in the cache of each sequence, and what it has room for.
    pub fn context(&self) -> Option<(usize, usize)> {
        let step = self.last()?;
        let room = self.run.prompt + self.run.steps as usize;
        Some((self.run.prompt + step.number as usize, room))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tui::live::model::{Update, What};

    fn state(steps: &[(usize, u32, Ns, Ns)]) -> State {
        let mut state = State::default();
        for (rank, number, ns, comm) in steps.iter().copied() {
            let layers = Reading::Value([ns - comm, 0, comm, 0]);
            let step = Step { rank, number, ns, layers, ops: vec![Op { name: 0, count: 2, ns: ns - comm }] };
            state.take(Update { at: Ns::from(number) * 1000, what: What::Step(step) });
        }
        state
    }

    fn run() -> Run {
        Run { batch: 2, prompt: 4, steps: 8, ..Run::default() }
    }

    #[test]
    fn steps_that_were_not_told_are_gaps_and_rates_do_not_mind() {
        let state = state(&[(0, 0, 50, 0), (0, 1, 10, 0), (0, 2, 12, 0), (0, 5, 11, 0)]);
        let run = run();
        let now = Moment { state: &state, run: &run, at: Ns::MAX, step: None };
        assert_eq!(now.times(9), [Some(10.0), Some(12.0), None, None, Some(11.0)]);
        assert_eq!(now.times(2), [None, Some(11.0)]);
        assert_eq!(now.percentiles(), Some((11, 11, 3)));
        // Four steps of two tokens in 4000 ns.
        assert_eq!(now.rate(), Some((2e6, 4)));
        assert_eq!((now.prefill(), now.context()), (Some(50), Some((9, 12))));
        let then = Moment { step: Some(3), ..now };
        assert_eq!((then.times(9), then.last().unwrap().number), (vec![Some(10.0), Some(12.0)], 2));
        assert_eq!(then.ops(), (vec![Op { name: 0, count: 2, ns: 12 }], 1, 12));
        assert_eq!(now.ops().0, [Op { name: 0, count: 6, ns: 33 }]);
        let before = Moment { at: -1, ..now };
        assert_eq!((before.last(), before.percentiles(), before.rate()), (None, None, None));
    }

    #[test]
    fn the_late_rank_is_the_one_that_waits_least_where_it_matters() {
        let late = [(0, 1, 100, 40), (1, 1, 100, 5), (0, 2, 100, 10), (1, 2, 100, 11), (0, 3, 100, 2), (1, 3, 100, 30)];
        let state = state(&late);
        let run = run();
        let now = Moment { state: &state, run: &run, at: Ns::MAX, step: None };
        assert_eq!(now.late(), (vec![1, 1], 3), "in step 2 nobody waits for anybody");
        let state = self::state(&late[..3]);
        assert_eq!(Moment { state: &state, ..now }.late(), (vec![0, 1], 1), "step 2 of rank 1 is not known");
    }
}
