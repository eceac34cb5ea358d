//! What launches of one side differ by among themselves: below that floor no difference of two sides is shown.

use super::{Interval, quantile::student};

/// Share of pairs without a difference that may be shown one, on each end: a little less than the 0.025 of one pair in twenty.
///
/// The rule is Student's test on the logarithms, which of all unbiased ones finds most. Of 200 000 simulated pairs of five
/// launches a side, 2 % apart, it shows a difference that is not there to 4.6 % and one of 5 % to 91.3 % (88.5 % where 2 %
/// of noise among 15 steps come on top, 91.1 % among 200); Welch's test 4.4 % and 90.6 %, all 252 divisions of the means
/// 4.7 % and 90.9 %, the rank test 3.2 % and 84.1 %. What gives both a margin is to know the noise better: with an A/A run
/// of ten launches a side it is 4.8 % and 93.1 % among 15 steps, 94.8 % among 200. The test `power_and_false_alarms` prints
/// these figures.
const END: f64 = 0.023;
/// Share of pairs that have a difference of the detectable size and are shown it.
const POWER: f64 = 0.9;

/// Launches of an A/A run at most: as many as `--repeats` takes.
const MOST_LAUNCHES: usize = u16::MAX as usize;

/// Launches of each side that a plan asks for at least (method §6.6), and at most: an effect that needs more is sought in
/// another way.
const PLANNED: std::ops::RangeInclusive<usize> = 5..=100;

/// What launches of one side differed by when they were held against each other: the result of an A/A run, which is kept in
/// their captures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Launches that it rests on, at least two.
    pub launches: usize,
    /// Standard deviation of the natural logarithms of their times.
    pub deviation: f64,
}

impl Floor {
    /// Fact of the manifest that holds it.
    pub const FACT: &str = "measurement.noise";

    /// Of the times of launches; `None` of fewer than two.
    pub fn of(times: &[f64]) -> Option<Self> {
        let launches = times.len();
        let deviation = (squares(times) / launches.checked_sub(1).filter(|n| *n > 0)? as f64).sqrt();
        deviation.is_finite().then_some(Self { launches, deviation })
    }

    /// As the manifest has it.
    pub fn text(&self) -> String {
        format!("{:.4} % between {} launches", 100.0 * self.deviation, self.launches)
    }

    /// Of what a manifest says; `None` for anything else.
    pub fn read(text: &str) -> Option<Self> {
        let (percent, rest) = text.trim().split_once(" % between ")?;
        let launches = rest.strip_suffix(" launches")?.parse().ok().filter(|n| (2..=MOST_LAUNCHES).contains(n))?;
        let deviation = percent.parse::<f64>().ok()? / 100.0;
        // A run without any noise is none that was measured.
        (deviation.is_finite() && deviation > 0.0).then_some(Self { launches, deviation })
    }

    fn freedom(&self) -> usize {
        self.launches.saturating_sub(1)
    }

    fn squares(&self) -> f64 {
        self.deviation * self.deviation * self.freedom() as f64
    }
}

/// Squares of the distances of logarithms from their mean, added up.
fn squares(times: &[f64]) -> f64 {
    let logs = || times.iter().map(|v| v.ln());
    let mean = logs().sum::<f64>() / times.len().max(1) as f64;
    logs().map(|v| (v - mean) * (v - mean)).sum::<f64>()
}

/// The noise of a comparison, as natural logarithms of ratios: launches of both sides are taken to vary by the same ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// By how much groups of launches of one side, as many as on each side here, differ from each other (standard deviation).
    pub spread: f64,
    /// Smallest difference that is shown: never below twice the spread, more where few launches tell what that is.
    pub floor: f64,
    /// Smallest true difference of which nine in ten comparisons of so many launches show it.
    pub detectable: f64,
    /// The A/A run that tells more of a side's noise than its launches here do, where there is one.
    pub earlier: [Option<Floor>; 2],
}

impl Noise {
    /// Of the times of the launches of two sides and of earlier A/A runs of each; `None` where neither tells of a side how
    /// far its launches differ.
    pub fn of(sides: [&[f64]; 2], floors: [Option<Floor>; 2]) -> Option<Self> {
        let [n, m] = sides.map(<[f64]>::len);
        let more = |side: usize| floors[side].filter(|floor| floor.launches > sides[side].len());
        let earlier = [more(0), more(1)];
        let known = [0, 1].map(|side| match earlier[side] {
            Some(floor) => (floor.squares(), floor.freedom()),
            None => (squares(sides[side]), sides[side].len().saturating_sub(1)),
        });
        if n == 0 || m == 0 || known.iter().any(|(_, freedom)| *freedom == 0) {
            return None;
        }
        let freedom = known[0].1 + known[1].1;
        let variance = (known[0].0 + known[1].0) / freedom as f64;
        let spread = (variance * (1.0 / n as f64 + 1.0 / m as f64)).sqrt();
        let times = student(1.0 - END, freedom).max(2.0);
        let detectable = (times + student(POWER, freedom)) * spread;
        Some(Self { spread, floor: times * spread, detectable, earlier })
    }

    /// The interval of a difference, as wide as the floor on each side.
    pub fn interval(&self, logarithm: f64) -> Interval {
        Interval { value: logarithm, low: logarithm - self.floor, high: logarithm + self.floor }
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
