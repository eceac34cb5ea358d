//! Steps of a class that are slow by one factor: the same kernels take longer, nearly all of them, and by as much.

use model::{Ns, StringId};
use rustc_hash::FxHashMap;

use crate::{
    analysis::{Class, DeviceOp, OpKind, Rank, Selection, Step},
    platform::OpClass,
};

/// Speed relative to the reference from which a device counts as reduced (frequency rule of the Ascend advisor).
pub const SPEED: f64 = 0.95;
/// Spread between the quartiles of the slots' factors, relative to their median (noise of repeated runs).
const SPREAD: f64 = 0.03;
/// Speed of kernels in a run relative to their probes from which the device counts as slower; own value, twice what the steps
/// of one run differ by on a shared machine (their 95th percentile lay 8 % above the median in a first run).
const ALONE: f64 = 0.85;
/// Share of the slots that must be slower.
const SLOTS: f64 = 0.80;
/// Least number of slots that a common factor can be told from.
const LEAST_SLOTS: usize = 10;
/// Shortest kernel whose duration scales visibly, ns: below it the floor and the clock's ticks do not.
const SHORTEST: Ns = 5_000;
/// Quantile of a kernel's durations over the steps that stands for the full clock: the lowest holds flaws of the clock's
/// ticks, a higher one would need more of the run at full speed.
const FASTEST: f64 = 0.10;
/// Part of the products' slowdown from which another kernel is slower for the same reason; own value.
const ALIKE: f64 = 0.5;
/// How far a kernel's own factor may lie from that of all and still be it; own value, three times what they may spread.
const FOLLOWS: f64 = 0.10;
/// Slow steps in a row that are no accident.
const IN_A_ROW: usize = 3;
/// How often the full speed is taken anew from the steps that are not slow: which these are depends on it.
const PASSES: usize = 2;

/// The steps of a class that run the same kernels, with their durations.
pub struct Run<'a> {
    /// The rank.
    pub rank: &'a Rank,
    /// The class.
    pub class: &'a Class,
    /// The steps.
    pub steps: Vec<&'a Step>,
    /// Sequences that a step decodes, the median one, where the capture says it.
    pub batch: Option<f64>,
    /// Names of the compute kernels of each of the steps, and the rows that their launches show: where there are more rows,
    /// that a kernel takes longer says nothing of the clock.
    pub kernels: (Option<u64>, Vec<StringId>),
    /// Whether each is a matrix product.
    matrix: Vec<bool>,
    /// Durations by step, then by kernel, ns.
    durations: Vec<Vec<Ns>>,
}

/// Steps that are slow by a common factor.
pub struct Slow {
    /// Index into the run's steps, and the factor.
    pub steps: Vec<(usize, f64)>,
    /// Kernels compared.
    pub slots: usize,
    /// Whether only the matrix products agree.
    pub matrix_only: bool,
    /// Kernels other than products, by name, with the factor by which each itself is slower in the same steps.
    pub own: FxHashMap<StringId, f64>,
}

impl Slow {
    /// Whether an operation is among those that one factor makes slower.
    pub fn covers(&self, op: &DeviceOp) -> bool {
        op.kind == OpKind::Compute && (!self.matrix_only || op.op.class() == OpClass::Matrix)
    }

    /// By how much an operation of a step with this factor is slower; `None` where it is not.
    pub fn factor(&self, op: &DeviceOp, of_step: f64) -> Option<f64> {
        if self.covers(op) {
            return Some(of_step);
        }
        let common = self.middle()?;
        let own = self.own.get(&op.name).filter(|_| op.kind == OpKind::Compute)?.min(common);
        (own - 1.0 >= ALIKE * (common - 1.0)).then(|| own.min(of_step))
    }

    /// Whether a kernel is slower by the very factor that all have in common.
    pub fn follows(&self, op: &DeviceOp) -> bool {
        let own = self.own.get(&op.name).zip(self.middle());
        own.is_some_and(|(own, common)| (own / common - 1.0).abs() <= FOLLOWS)
    }

    /// The middle one of the steps' factors.
    pub fn middle(&self) -> Option<f64> {
        let mut factors: Vec<f64> = self.steps.iter().map(|(_, f)| *f).collect();
        factors.sort_by(f64::total_cmp);
        quantile(&factors, 0.5)
    }
}

impl<'a> Run<'a> {
    /// The largest group of steps with equal kernels. Steps that count as warm-up are among them: where they are faster than
    /// the rest, they show what the device can do.
    pub fn of(rank: &'a Rank, class: &'a Class, batch: impl Fn(&Step) -> Option<f64>) -> Option<Self> {
        let mut groups: FxHashMap<(Option<u64>, Vec<StringId>), Vec<&'a Step>> = FxHashMap::default();
        let counts = |s: &&Step| matches!(s.selection, Selection::Steady | Selection::WarmUp);
        for step in rank.steps.iter().filter(|s| s.class == class.index).filter(counts) {
            let names = compute(rank, step).iter().map(|op| op.name).collect();
            groups.entry((step.rows, names)).or_default().push(step);
        }
        let most = |(_, steps): &(_, Vec<&Step>)| (steps.len(), std::cmp::Reverse(steps.first().map(|s| s.index)));
        let (kernels, steps) = groups.into_iter().max_by_key(most)?;
        let matrix = compute(rank, steps.first()?).iter().map(|op| op.op.class() == OpClass::Matrix).collect();
        let durations = steps.iter().map(|s| compute(rank, s).iter().map(|op| op.dur()).collect()).collect();
        let mut batches: Vec<f64> = rank.steady_steps(class).filter_map(batch).collect();
        batches.sort_by(f64::total_cmp);
        Some(Self { rank, class, steps, batch: quantile(&batches, 0.5), kernels, matrix, durations })
    }

    /// The steps of the class that count, are none of the run's, and lie between two slow ones of it, with the mean of the
    /// factors of these, or beyond the last one of the run, or before the first, if that is slow.
    pub fn between(&self, slow: &Slow) -> Vec<(&'a Step, f64)> {
        let at = |(i, factor): &(usize, f64)| Some((self.steps.get(*i)?.index, *factor));
        let slow: Vec<(u32, f64)> = slow.steps.iter().filter_map(at).collect();
        let own = |step: &Step| self.steps.iter().any(|s| s.index == step.index);
        let counted = self.rank.steady_steps(self.class).filter(|step| !own(step));
        counted
            .filter_map(|step| {
                let next = slow.partition_point(|(index, _)| *index < step.index);
                let (before, after) = (next.checked_sub(1).and_then(|i| slow.get(i)), slow.get(next));
                // Of the run itself no step between them may be at full speed.
                let (from, to) = (before.map_or(0, |b| b.0 + 1), after.map_or(u32::MAX, |a| a.0));
                let fast = |s: &&&Step| (from..to).contains(&s.index);
                let factor = (before.or(after)?.1 + after.or(before)?.1) / 2.0;
                self.steps.iter().find(fast).is_none().then_some((step, factor))
            })
            .collect()
    }

    /// A quantile of each kernel's durations over the steps.
    fn each(&self, q: f64) -> Vec<Ns> {
        let slot = |k: usize| {
            let mut values: Vec<Ns> = self.durations.iter().filter_map(|d| d.get(k).copied()).collect();
            values.sort_unstable();
            quantile(&values, q).unwrap_or(0)
        };
        (0..self.matrix.len()).map(slot).collect()
    }

    /// Slow steps against the fastest ones of the same run. The fastest tell which steps are slow; how slow these are the
    /// medians of the others tell, as the fastest of kernels that scatter are faster than the device is.
    pub fn within(&self) -> Option<Slow> {
        let row = |w: &[(usize, f64)]| w.first().zip(w.last()).is_some_and(|(a, b)| b.0 - a.0 + 1 == IN_A_ROW);
        let slow = [false, true].into_iter().find_map(|matrix_only| {
            let mut reference = self.each(FASTEST);
            let mut slow = self.slower(&reference, matrix_only);
            for _ in 0..PASSES {
                let Some(full) = self.median_beside(&slow) else { break };
                reference = full;
                slow = self.slower(&reference, matrix_only);
            }
            self.is_uniform(&slow, &reference).then(|| self.with_others(slow, &reference))
        })?;
        slow.steps.windows(IN_A_ROW).any(row).then_some(slow)
    }

    /// The median of each kernel's durations over the steps that are not among these; `None` where these are too few.
    fn median_beside(&self, slow: &Slow) -> Option<Vec<Ns>> {
        let is_slow = |i: usize| slow.steps.iter().any(|(at, _)| *at == i);
        let others: Vec<&Vec<Ns>> =
            self.durations.iter().enumerate().filter(|(i, _)| !is_slow(*i)).map(|(_, d)| d).collect();
        let slot = |k: usize| {
            let mut values: Vec<Ns> = others.iter().filter_map(|d| d.get(k).copied()).collect();
            values.sort_unstable();
            quantile(&values, 0.5).unwrap_or(0)
        };
        (others.len() >= IN_A_ROW && !slow.steps.is_empty()).then(|| (0..self.matrix.len()).map(slot).collect())
    }

    /// Slow steps against other ranks that run the same kernels.
    pub fn against(&self, others: &[&Run<'_>]) -> Option<Slow> {
        let medians: Vec<Vec<Ns>> = others.iter().map(|o| o.each(0.5)).collect();
        let slot = |k: usize| {
            let mut values: Vec<Ns> = medians.iter().filter_map(|m| m.get(k).copied()).collect();
            values.sort_unstable();
            quantile(&values, 0.5)
        };
        let reference: Option<Vec<Ns>> = (0..self.matrix.len()).map(slot).collect();
        // A rank is reduced if most of its steps are.
        self.slow(&reference?).filter(|s| 2 * s.steps.len() >= self.class.steady && s.steps.len() >= IN_A_ROW)
    }

    /// Steps whose kernels all in all take longer than these times of the very same kernels. No other kernel can be to blame,
    /// so that they need not all be slower by one factor: a memory that is shared slows them down as much as they read.
    pub fn slowed(&self, reference: &[Ns]) -> Option<Slow> {
        let slots: Vec<usize> = (0..reference.len()).filter(|k| reference.get(*k).is_some_and(|ns| *ns > 0)).collect();
        let sum = |durations: &[Ns]| slots.iter().filter_map(|k| durations.get(*k)).sum::<Ns>() as f64;
        let alone = sum(reference).max(1.0);
        let steady = |i: usize| self.steps.get(i).is_some_and(|s| s.selection == Selection::Steady);
        let all = self.durations.iter().enumerate().filter(|(i, _)| steady(*i)).map(|(i, d)| (i, sum(d) / alone));
        let steps: Vec<(usize, f64)> = all.filter(|(_, factor)| factor * ALONE >= 1.0).collect();
        (steps.len() >= IN_A_ROW).then_some(Slow {
            steps,
            slots: slots.len(),
            matrix_only: true,
            own: FxHashMap::default(),
        })
    }

    /// Steps that are slower than a reference by one factor.
    pub fn slow(&self, reference: &[Ns]) -> Option<Slow> {
        let both = [false, true].into_iter().map(|matrix_only| self.slower(reference, matrix_only));
        both.into_iter().find(|slow| self.is_uniform(slow, reference)).map(|slow| self.with_others(slow, reference))
    }

    /// The kernels that are compared with a reference.
    fn compared(&self, reference: &[Ns], matrix_only: bool) -> Vec<usize> {
        let counts = |k: &usize| {
            reference.get(*k).is_some_and(|ns| *ns >= SHORTEST)
                && (!matrix_only || self.matrix.get(*k).is_some_and(|m| *m))
        };
        (0..reference.len()).filter(counts).collect()
    }

    /// Steps nearly all of whose kernels are slower than a reference.
    fn slower(&self, reference: &[Ns], matrix_only: bool) -> Slow {
        let slots = self.compared(reference, matrix_only);
        let steady = |i: usize| self.steps.get(i).is_some_and(|s| s.selection == Selection::Steady);
        let all = self.durations.iter().enumerate().filter(|(i, _)| steady(*i));
        let steps = all.filter_map(|(i, d)| Some((i, common_factor(d, reference, &slots)?))).collect();
        Slow { steps, slots: slots.len(), matrix_only, own: FxHashMap::default() }
    }

    /// Adds by how much the other kernels are slower in the same steps: where products agree and the rest does not, because it
    /// scatters or waits for memory in part, the device is what made that slower too, as far as it is slower in just these steps.
    fn with_others(&self, mut slow: Slow, reference: &[Ns]) -> Slow {
        let mut ratios: FxHashMap<StringId, Vec<f64>> = FxHashMap::default();
        let others = self.matrix.iter().zip(&self.kernels.1).enumerate().filter(|(_, (matrix, _))| !**matrix);
        for (k, (_, name)) in others {
            let Some(full) = reference.get(k).filter(|ns| **ns > 0) else { continue };
            let mut values: Vec<Ns> =
                slow.steps.iter().filter_map(|(i, _)| self.durations.get(*i)?.get(k).copied()).collect();
            values.sort_unstable();
            let middle = quantile(&values, 0.5);
            ratios.entry(*name).or_default().extend(middle.map(|ns| ns as f64 / *full as f64));
        }
        let middle = |(name, mut ratios): (StringId, Vec<f64>)| {
            ratios.sort_by(f64::total_cmp);
            Some((name, quantile(&ratios, 0.5)?))
        };
        slow.own = ratios.into_iter().filter_map(middle).collect();
        slow
    }

    /// Whether the kernels are slower by one factor in these steps: each by its median over them, as a single duration varies
    /// by more than the factors may. What the scatter of a kernel's durations leaves in its median counts with them: the
    /// standard error of a median is 1.25 times that of a mean.
    fn is_uniform(&self, slow: &Slow, reference: &[Ns]) -> bool {
        if slow.steps.len() < IN_A_ROW {
            return false;
        }
        let ratio = |k: usize| {
            let mut values: Vec<Ns> =
                slow.steps.iter().filter_map(|(i, _)| self.durations.get(*i)?.get(k).copied()).collect();
            values.sort_unstable();
            let middle = quantile(&values, 0.5)? as f64;
            let scatter = (quantile(&values, 0.75)? - quantile(&values, 0.25)?) as f64 / middle;
            Some((middle / *reference.get(k)? as f64, scatter))
        };
        let (mut ratios, mut scatters): (Vec<f64>, Vec<f64>) =
            self.compared(reference, slow.matrix_only).into_iter().filter_map(ratio).unzip();
        ratios.sort_by(f64::total_cmp);
        scatters.sort_by(f64::total_cmp);
        let noise =
            quantile(&scatters, 0.5).map(|s| 1.25 * std::f64::consts::SQRT_2 * s / (slow.steps.len() as f64).sqrt());
        let quartiles = quantile(&ratios, 0.25).zip(quantile(&ratios, 0.5)).zip(quantile(&ratios, 0.75));
        quartiles.zip(noise).is_some_and(|(((low, factor), high), noise)| high - low <= SPREAD.hypot(noise) * factor)
    }
}

/// The compute kernels of a step. Which of two queues is first changes with the timing, and with the clock; the order within
/// each does not.
pub fn compute<'r>(rank: &'r Rank, step: &Step) -> Vec<&'r DeviceOp> {
    let mut ops: Vec<&DeviceOp> = rank.ops_of(step).iter().filter(|op| op.kind == OpKind::Compute).collect();
    ops.sort_by_key(|op| op.queue);
    ops
}

/// The factor by which the kernels of a step are slower, if nearly all of them are.
fn common_factor(durations: &[Ns], reference: &[Ns], slots: &[usize]) -> Option<f64> {
    if slots.len() < LEAST_SLOTS {
        return None;
    }
    let ratio = |k: &usize| Some(*durations.get(*k)? as f64 / *reference.get(*k)? as f64);
    let mut ratios: Vec<f64> = slots.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let factor = quantile(&ratios, 0.5)?;
    let slower = ratios.iter().filter(|r| **r * SPEED >= 1.0).count();
    (factor * SPEED >= 1.0 && slower as f64 >= SLOTS * ratios.len() as f64).then_some(factor)
}

/// A quantile of ascending values (nearest rank).
fn quantile<T: Copy>(values: &[T], q: f64) -> Option<T> {
    let rank = (q * values.len() as f64).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).copied()
}
