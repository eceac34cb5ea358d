//! How far a difference of two sides may be from what was measured: resampled by launch first, and within a launch by blocks
//! of steps, since neighbouring steps are alike.
//!
//! Intervals are those of bias correction and acceleration (B. Efron, J. Am. Stat. Assoc. 82, 1987), the acceleration from
//! leaving out one launch at a time on both sides.

use super::{
    center,
    quantile::{normal, normal_below},
    random::Random,
};

/// Resamples of an interval (method §6.6).
const RESAMPLES: usize = 10_000;
/// Steps that are drawn for the resamples of a launch's median, and between how many resamples that may be.
const DRAWN: usize = 1 << 21;
const MEDIANS: (usize, usize) = (16, 256);
/// Longest distance at which steps are asked whether they are alike.
const LAGS: usize = 64;
/// Share outside an interval, on each end.
const END: f64 = 0.025;

/// A value and the 95 % interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether all of it lies on one side of zero.
    pub fn has_sign(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The interval that holds both.
    pub(super) fn with(self, other: Self) -> Self {
        Self { value: self.value, low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    fn negated(self) -> Self {
        Self { value: -self.value, low: -self.high, high: -self.low }
    }
}

/// Lower median.
pub(super) fn median(values: &mut [f64]) -> f64 {
    let middle = values.len().saturating_sub(1) / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// Two sides resampled, in an order that does not depend on which is the first: exchanging them gives the same intervals with
/// the other sign, to the last bit.
pub struct Resampled {
    centers: [f64; 2],
    /// Centres of resampled launches.
    drawn: [Vec<f64>; 2],
    /// Centres without one launch each.
    without: [Vec<f64>; 2],
    order: Order,
}

/// How the sides stand to the order in which they were drawn.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Same,
    Exchanged,
    /// The two are equal.
    Either,
}

impl Resampled {
    /// Of two sides: the steps of each launch, of which each side has at least two.
    pub fn of(sides: [&[Vec<f64>]; 2]) -> Self {
        let [a, b] = sides;
        let order = match () {
            () if a == b => Order::Either,
            () if b < a => Order::Exchanged,
            () => Order::Same,
        };
        let ordered = if order == Order::Exchanged { [b, a] } else { [a, b] };
        let medians = ordered.map(|repeats| {
            let median = |steps: &Vec<f64>| median(&mut steps.clone());
            repeats.iter().map(median).collect::<Vec<f64>>()
        });
        let [first, second] = [(ordered[0], 1), (ordered[1], 2)];
        Self {
            centers: [center(&medians[0]), center(&medians[1])],
            drawn: [first, second].map(|(side, seed)| centers(side, &mut Random::new(seed))),
            without: [without_one(&medians[0]), without_one(&medians[1])],
            order,
        }
    }

    /// The interval of `between(A, B)` of the centres, which changes its sign with them.
    pub fn interval(&self, between: fn(f64, f64) -> f64) -> Interval {
        let own = self.ordered(between);
        match self.order {
            Order::Same => own,
            Order::Exchanged => own.negated(),
            // Neither end is preferred.
            Order::Either => {
                let far = own.low.abs().max(own.high.abs());
                Interval { value: 0.0, low: -far, high: far }
            }
        }
    }

    fn ordered(&self, between: fn(f64, f64) -> f64) -> Interval {
        let ([a, b], [drawn_a, drawn_b], [left_a, left_b]) = (self.centers, &self.drawn, &self.without);
        let value = between(a, b);
        let mut drawn: Vec<f64> = drawn_a.iter().zip(drawn_b).map(|(a, b)| between(*a, *b)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let below = drawn.iter().filter(|v| **v < value).count() as f64;
        let equal = drawn.iter().filter(|v| **v == value).count() as f64;
        let bias = normal((below + equal / 2.0) / drawn.len() as f64);
        let left_a = left_a.iter().map(|a| between(*a, b)).collect::<Vec<_>>();
        let left_b = left_b.iter().map(|b| between(a, *b)).collect::<Vec<_>>();
        let acceleration = acceleration(&[left_a, left_b]);
        let end = |share: f64| {
            let z = bias + normal(share);
            let stretched = bias + z / (1.0 - acceleration * z).max(0.1);
            let at = normal_below(stretched) * drawn.len() as f64;
            drawn.get((at as usize).min(drawn.len() - 1)).copied().unwrap_or(value)
        };
        Interval { value, low: end(END).min(value), high: end(1.0 - END).max(value) }
    }
}

/// Centres of resampled launches of a side.
fn centers(repeats: &[Vec<f64>], random: &mut Random) -> Vec<f64> {
    let medians: Vec<Vec<f64>> = repeats.iter().map(|steps| medians(steps, random)).collect();
    let mut one = Vec::with_capacity(medians.len());
    let draw = |_| {
        one.clear();
        for _ in 0..medians.len() {
            let repeat = medians.get(random.below(medians.len())).map_or(&[][..], Vec::as_slice);
            one.extend(repeat.get(random.below(repeat.len())));
        }
        center(&one)
    };
    (0..RESAMPLES).map(draw).collect()
}

/// Medians of a launch whose steps were drawn again in blocks.
fn medians(steps: &[f64], random: &mut Random) -> Vec<f64> {
    let count = (DRAWN / steps.len().max(1)).clamp(MEDIANS.0, MEDIANS.1);
    let block = block(steps);
    let starts = steps.len().saturating_sub(block) + 1;
    let mut drawn = Vec::with_capacity(steps.len() + block);
    let draw = |_| {
        drawn.clear();
        while drawn.len() < steps.len() {
            let start = random.below(starts);
            drawn.extend(steps.iter().skip(start).take(block.max(1)));
        }
        drawn.truncate(steps.len());
        median(&mut drawn)
    };
    (0..count).map(draw).collect()
}

/// Length of a block: twice the number of steps within which they are alike.
fn block(steps: &[f64]) -> usize {
    let n = steps.len() as f64;
    let mean = steps.iter().sum::<f64>() / n.max(1.0);
    let product = |lag: usize| {
        let pairs = steps.iter().zip(steps.iter().skip(lag));
        pairs.map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>()
    };
    let own = product(0);
    if own <= 0.0 {
        return 1;
    }
    let alike = (1..LAGS.min(steps.len() / 4)).map(|lag| product(lag) / own).take_while(|r| *r > 0.0);
    let time = 1.0 + 2.0 * alike.sum::<f64>();
    ((2.0 * time).ceil() as usize).clamp(1, (steps.len() / 2).max(1))
}

/// Centres of a side without one launch each.
fn without_one(values: &[f64]) -> Vec<f64> {
    let rest = |left: usize| {
        let others = values.iter().enumerate().filter(|(i, _)| *i != left).map(|(_, v)| *v);
        center(&others.collect::<Vec<_>>())
    };
    (0..values.len()).map(rest).collect()
}

/// Acceleration of a statistic of several samples, from what it is without one value each (B. Efron and R. Tibshirani, An
/// Introduction to the Bootstrap, 1993, §14.3, sample by sample).
fn acceleration(left: &[Vec<f64>]) -> f64 {
    let (mut cubes, mut squares) = (0.0, 0.0);
    for values in left {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let pull = values.iter().map(|v| (n - 1.0) * (mean - v) / n);
        cubes += pull.clone().map(|u| u * u * u).sum::<f64>();
        squares += pull.map(|u| u * u).sum::<f64>();
    }
    if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(around: f64) -> Vec<Vec<f64>> {
        let repeat =
            |n: usize| (0..40).map(|i| around * (1.0 + (n * 3 % 5) as f64 / 100.0) + (i * 7 % 11) as f64).collect();
        (0..5).map(repeat).collect()
    }

    #[test]
    fn an_interval_holds_its_value_and_changes_its_sign_with_the_sides() {
        let (a, b) = (side(1000.0), side(1100.0));
        let interval = |a: &[Vec<f64>], b: &[Vec<f64>]| Resampled::of([a, b]).interval(|a, b| b - a);
        let there = interval(&a, &b);
        assert!(there.low < 100.0 && there.high > 100.0 && there.low > 50.0 && there.high < 150.0, "{there:?}");
        assert_eq!(interval(&b, &a), there.negated());
        let same = interval(&a, &a);
        assert_eq!(same, same.negated());
        assert!(same.high > 0.0);
    }

    #[test]
    fn steps_that_are_alike_are_drawn_together() {
        let mut random = Random::new(7);
        let apart: Vec<f64> = (0..400).map(|_| random.below(1000) as f64).collect();
        let slow: Vec<f64> = (0..400).map(|i| (f64::from(i) / 20.0).sin()).collect();
        assert!(block(&apart) <= 4, "{}", block(&apart));
        assert!(block(&slow) >= 40, "{}", block(&slow));
        assert_eq!((block(&[3.0; 9]), block(&[])), (1, 1));
    }
}
