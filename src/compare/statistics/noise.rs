//! What launches of one side differ by among themselves: below that floor no difference of two sides is shown.

use super::quantile::student;

/// Share of pairs without a difference that may be shown one, on each end. Own value, chosen by simulation so that with five
/// launches a side, 2 % apart, at most one pair in twenty is shown a difference that is not there and nine in ten show one of
/// 5 %: 0.025 would leave the first no margin, and much less costs the second. Noise of steps on top of that costs power.
const END: f64 = 0.023;
/// Share of pairs that have a difference of the detectable size and are shown it.
const POWER: f64 = 0.9;

/// Launches of each side that a plan asks for at least (method §6.6), and at most: an effect that needs more is sought in
/// another way.
const PLANNED: std::ops::RangeInclusive<usize> = 5..=100;

/// The noise of a comparison, as natural logarithms of ratios: launches of both sides are taken to vary by the same ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// By how much groups of launches of one side, as many as on each side here, differ from each other (standard deviation).
    pub spread: f64,
    /// Smallest difference that is shown: never below twice the spread, more where few launches tell what that is.
    pub floor: f64,
    /// Smallest true difference of which nine in ten comparisons of so many launches show it.
    pub detectable: f64,
}

impl Noise {
    /// Of the times of the launches of two sides; `None` where one side has fewer than two.
    pub fn of(sides: [&[f64]; 2]) -> Option<Self> {
        if sides.iter().any(|values| values.len() < 2) {
            return None;
        }
        let squares = |values: &[f64]| {
            let logs = || values.iter().map(|v| v.ln());
            let mean = logs().sum::<f64>() / values.len() as f64;
            logs().map(|v| (v - mean) * (v - mean)).sum::<f64>()
        };
        let [n, m] = sides.map(<[f64]>::len);
        let freedom = n + m - 2;
        let variance = (squares(sides[0]) + squares(sides[1])) / freedom as f64;
        let spread = (variance * (1.0 / n as f64 + 1.0 / m as f64)).sqrt();
        let times = student(1.0 - END, freedom).max(2.0);
        Some(Self { spread, floor: times * spread, detectable: (times + student(POWER, freedom)) * spread })
    }

    /// Whether a difference stands out.
    pub fn shows(&self, logarithm: f64) -> bool {
        logarithm != 0.0 && logarithm.abs() >= self.floor
    }
}

/// Launches of each side of which nine in ten comparisons show a difference, given as shares of the step: the difference, and
/// by how much launches of one side differ (standard deviation). `None` where more would be needed than a plan asks for.
pub fn launches_for(effect: f64, noise: f64) -> Option<usize> {
    let detectable = |n: usize| {
        let freedom = 2 * n - 2;
        let times = student(1.0 - END, freedom).max(2.0) + student(POWER, freedom);
        times * noise * (2.0 / n as f64).sqrt()
    };
    PLANNED.into_iter().find(|n| detectable(*n) <= effect.ln_1p())
}
