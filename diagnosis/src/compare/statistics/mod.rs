//! Whether a difference is more than the noise of repeating either side (method §6.6). The unit is the process launch: where a
//! process lies in memory alone moves its kernels by a percent or more, and no number of steps of one launch tells that.
//!
//! Each launch is its median step. Sides are their geometric means over launches, since noise is a share of the time. The
//! interval of their difference holds the floor of what launches of one side differ by among themselves, or did in an earlier
//! A/A run of more of them, and what launches and blocks of steps give that are drawn again; a difference counts as shown where
//! all of it lies on one side of zero. Everything is the same in every run, and exchanging the sides changes signs and nothing
//! else.
//!
//! | module | owns |
//! | --- | --- |
//! | `bootstrap` | the interval around a difference |
//! | `rank_test` | ranks of launches, effect size, and the correction for many questions |
//! | `noise` | the floor, and what could have been found |
//! | `quantile`, `random` | distributions and reproducible numbers |

mod bootstrap;
mod noise;
mod quantile;
pub(crate) mod random;
mod rank_test;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use bootstrap::Interval;
pub use noise::{Floor, Noise, repeats_for};
pub(crate) use quantile::student;
pub use rank_test::RankTest;

use super::{chosen::Captured, difference::Difference, waterfall::Basis};

/// Share of false ones among the buckets that are said to differ (method §6.6).
pub const FALSE_SHARE: f64 = 0.1;

/// Share of the step below which a bucket is not asked about.
const LEAST: f64 = 0.01;

/// What repeats say of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: a side has one launch, and that does not tell what others would be.
    Unknown,
    /// It is not more than what launches of one side differ by.
    NotSignificant,
    /// It is more than that.
    Significant,
}

impl Outcome {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::NotSignificant => "not_significant",
            Self::Significant => "significant",
        }
    }
}

/// A process launch: its steps of the class that is compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeat {
    /// Times of the steps in the order of the run, ns per step or token as in the waterfall.
    pub steps: Vec<f64>,
    /// Mean of each bucket over them, ns.
    pub buckets: BTreeMap<String, f64>,
}

impl Repeat {
    /// The steps of a capture that are of the same rank and class as those of side `n`; `None` where there are none.
    fn of((_, analysis): Captured<'_>, difference: &Difference, n: usize) -> Option<Self> {
        let compared = difference.sides.get(n)?;
        let rank = analysis.ranks.iter().find(|rank| rank.rank == compared.rank)?;
        let class = rank.classes.iter().find(|class| class.key == compared.class)?;
        let work = match difference.waterfall.basis {
            Basis::Step => 1.0,
            Basis::Token => f64::from(class.batch.filter(|n| *n > 0)?),
        };
        let steps: Vec<f64> = rank.steady_steps(class).map(|step| step.window.len() as f64 / work).collect();
        // A launch of no time has no logarithm, and no difference either.
        if steps.iter().sum::<f64>() <= 0.0 || bootstrap::median(&mut steps.clone()) <= 0.0 {
            return None;
        }
        let mut buckets = BTreeMap::new();
        for (bucket, ns) in &class.buckets {
            let mean = *ns as f64 / work / steps.len() as f64;
            *buckets.entry(bucket.name(&analysis.host_labels)).or_default() += mean;
        }
        Some(Self { steps, buckets })
    }

    /// Its median step, ns.
    pub fn median(&self) -> f64 {
        bootstrap::median(&mut self.steps.clone())
    }
}

/// A bucket over the launches of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// Its name, such as `compute.gemm`.
    pub name: String,
    /// Median over the launches of each side of its mean per step, ns.
    pub ns: [f64; 2],
    /// How the launches of the sides lie to each other.
    pub test: RankTest,
    /// Share of false ones among the buckets that are as unlikely.
    pub false_share: f64,
}

impl Bucket {
    /// Whether it is said to differ.
    pub fn differs(&self) -> bool {
        self.false_share <= FALSE_SHARE
    }
}

/// What can be said where both sides were launched more than once.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// Geometric mean of the launches of each side, ns.
    pub centers: [f64; 2],
    /// From the first to the second, ns.
    pub difference: Interval,
    /// Natural logarithm of the second over the first.
    pub logarithm: Interval,
    /// How the launches lie to each other.
    pub test: RankTest,
    /// What launches differ by among themselves.
    pub noise: Noise,
    /// Buckets of at least a hundredth of the step, the least likely to be equal first.
    pub buckets: Vec<Bucket>,
}

impl Repeated {
    /// A logarithm of a ratio as a time, ns: of the step in the middle between both sides.
    pub fn time(&self, logarithm: f64) -> f64 {
        center(&self.centers) * logarithm
    }
}

/// What repeated launches say of a difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Median step of each launch of each side, ns, in ascending order.
    pub repeats: [Vec<f64>; 2],
    /// Steps behind them.
    pub steps: [usize; 2],
    /// Captures of each side that have no step of the class that is compared.
    pub absent: [usize; 2],
    /// What these come to; `None` where a side has fewer than two launches and no A/A run tells of its noise.
    pub repeated: Option<Repeated>,
}

impl Statistics {
    /// Of the captures of both sides, each another process launch.
    pub fn of(difference: &Difference, captures: [&[Captured<'_>]; 2]) -> Self {
        // The A/A run of most launches that a capture of the side tells of.
        let floors = captures.map(|side| {
            let told = side.iter().filter_map(|(trace, _)| Floor::read(trace.manifest.value(Floor::FACT)?));
            told.max_by_key(|floor| floor.repeats)
        });
        let repeats = [0, 1].map(|n| {
            let own = captures[n].iter().filter_map(|captured| Repeat::of(*captured, difference, n));
            own.collect::<Vec<Repeat>>()
        });
        let absent = [0, 1].map(|n| captures[n].len() - repeats[n].len());
        Self { absent, ..Self::of_repeats(repeats, floors) }
    }

    /// Of launches, and of earlier A/A runs of each side.
    pub fn of_repeats(mut repeats: [Vec<Repeat>; 2], floors: [Option<Floor>; 2]) -> Self {
        // In which order they were named means nothing.
        for side in &mut repeats {
            side.sort_by(|x, y| x.median().total_cmp(&y.median()).then_with(|| x.steps.len().cmp(&y.steps.len())));
        }
        let medians = [0, 1].map(|n| repeats[n].iter().map(Repeat::median).collect::<Vec<f64>>());
        let steps = [0, 1].map(|n| repeats[n].iter().map(|repeat| repeat.steps.len()).sum());
        let repeated = repeated(&repeats, [&medians[0], &medians[1]], floors);
        Self { repeats: medians, steps, absent: [0, 0], repeated }
    }

    /// Whether the difference is shown.
    pub fn outcome(&self) -> Outcome {
        match &self.repeated {
            None => Outcome::Unknown,
            Some(repeated) if repeated.logarithm.has_sign() => Outcome::Significant,
            Some(_) => Outcome::NotSignificant,
        }
    }
}

fn repeated(repeats: &[Vec<Repeat>; 2], medians: [&[f64]; 2], floors: [Option<Floor>; 2]) -> Option<Repeated> {
    let noise = Noise::of(medians, floors)?;
    let test = RankTest::of(medians[0], medians[1])?;
    let centers = medians.map(center);
    let mut logarithm = noise.interval(centers[1].ln() - centers[0].ln());
    let (value, scale) = (centers[1] - centers[0], center(&centers));
    let (low, high) = ((scale * logarithm.low).min(value), (scale * logarithm.high).max(value));
    let mut difference = Interval { value, low, high };
    // Launches cannot be drawn again where there is one. Where there are few, those drawn are closer to each other than
    // launches are, so that they widen an interval and never narrow it.
    if medians.iter().all(|side| side.len() > 1) && noise.earlier == [None; 2] {
        let steps = [0, 1].map(|n| repeats[n].iter().map(|repeat| repeat.steps.clone()).collect::<Vec<_>>());
        let resampled = bootstrap::Resampled::of([&steps[0], &steps[1]]);
        difference = difference.with(resampled.interval(|a, b| b - a));
        logarithm = logarithm.with(resampled.interval(|a, b| b.ln() - a.ln()));
    }
    Some(Repeated { centers, difference, logarithm, test, noise, buckets: buckets(repeats) })
}

/// Every bucket that is large enough to matter; where a launch has none of it, it took no time there. How large both sides
/// together are says nothing of which is larger, so leaving out small ones first biases no test and saves the rest from
/// paying for them (Bourgon, Gentleman, Huber, PNAS 107, 2010).
fn buckets(repeats: &[Vec<Repeat>; 2]) -> Vec<Bucket> {
    let names: BTreeSet<&String> = repeats.iter().flatten().flat_map(|repeat| repeat.buckets.keys()).collect();
    let mut found = Vec::with_capacity(names.len());
    let size = |name: &String| {
        let mean = |side: &Vec<Repeat>| {
            let own = side.iter().filter_map(|repeat| repeat.buckets.get(name));
            own.sum::<f64>() / side.len().max(1) as f64
        };
        repeats.iter().map(mean).sum::<f64>()
    };
    let whole: f64 = names.iter().map(|name| size(name)).sum();
    for name in names.into_iter().filter(|name| size(name) >= LEAST * whole) {
        let [mut a, mut b] = [0, 1].map(|n| {
            let own = repeats[n].iter().map(|repeat| repeat.buckets.get(name).copied().unwrap_or(0.0));
            own.collect::<Vec<f64>>()
        });
        let Some(test) = RankTest::of(&a, &b) else { continue };
        let ns = [bootstrap::median(&mut a), bootstrap::median(&mut b)];
        found.push(Bucket { name: name.clone(), ns, test, false_share: 1.0 });
    }
    let chances: Vec<f64> = found.iter().map(|bucket| bucket.test.p).collect();
    for (bucket, share) in found.iter_mut().zip(rank_test::false_shares(&chances)) {
        bucket.false_share = share;
    }
    let gap = |bucket: &Bucket| (bucket.ns[1] - bucket.ns[0]).abs();
    found.sort_by(|x, y| x.false_share.total_cmp(&y.false_share).then_with(|| gap(y).total_cmp(&gap(x))));
    found
}

/// Geometric mean.
fn center(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}
