//! What launches of one side differ by among themselves: below that floor no difference of two sides is shown.

use super::{
    Interval,
    quantile::{fisher_above, student},
};

/// Share of pairs without a difference that may be shown one, on each end.
///
/// Launches are few, so each way to know their noise fails where another holds; `docs/noise.md` has the error rates of the
/// rule for several kinds of noise, which the test `power_and_false_alarms` prints.
///
/// - Student's test on the logarithms finds most of all unbiased ones. Of five launches a side, 2 % apart, it shows 92.2 % of
///   differences of 5 % where it shows 5 % of those that are not there: nothing finds more without knowing more.
/// - Where one side's launches differ far more than the other's, it shows up to 8 % of what is not there (3 launches: 11 %).
///   There Welch's degrees of freedom hold.
/// - Five launches may by chance lie close to each other, and most false differences come from there. See [`ASSUMED`].
/// - Every division of the launches into two sides says no more (4.9 % and 91.0 %, and 11.5 % where the sides' noise differs), and
///   launches drawn again say less: an interval of these alone is too narrow.
const END: f64 = 0.025;
/// Below this share of equal variances that are as far apart, the sides are taken to differ in noise.
const UNEQUAL: f64 = 0.025;
/// What is taken as known of launches before any are seen, until an A/A run tells: where a process lies in memory alone moves its
/// times by 1 to 2.5 % (method §6.6). It counts as five launches that did differ by so much. It can only raise the floor.
const ASSUMED: Floor = Floor { repeats: 5, deviation: 0.02 };
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
    pub repeats: usize,
    /// Standard deviation of the natural logarithms of their times.
    pub deviation: f64,
}

impl Floor {
    /// Fact of the manifest that holds it.
    pub const FACT: &str = "measurement.noise";

    /// Of the times of launches; `None` of fewer than two.
    pub fn of(times: &[f64]) -> Option<Self> {
        let repeats = times.len();
        let deviation = (squares(times) / repeats.checked_sub(1).filter(|n| *n > 0)? as f64).sqrt();
        deviation.is_finite().then_some(Self { repeats, deviation })
    }

    /// As the manifest has it.
    pub fn text(&self) -> String {
        format!("{:.4} % between {} launches", 100.0 * self.deviation, self.repeats)
    }

    /// Of what a manifest says; `None` for anything else.
    pub fn read(text: &str) -> Option<Self> {
        let (percent, rest) = text.trim().split_once(" % between ")?;
        let repeats = rest.strip_suffix(" launches")?.parse().ok().filter(|n| (2..=MOST_LAUNCHES).contains(n))?;
        let deviation = percent.parse::<f64>().ok()? / 100.0;
        // A run without any noise is none that was measured.
        (deviation.is_finite() && deviation > 0.0).then_some(Self { repeats, deviation })
    }

    fn freedom(&self) -> usize {
        self.repeats.saturating_sub(1)
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

/// The noise of a comparison, as natural logarithms of ratios.
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
    /// Whether the launches are closer to each other than so few tell, and the floor is that of launches in general.
    pub assumed: bool,
}

/// What is known of how far launches of a side differ: squares of distances, and degrees of freedom.
#[derive(Clone, Copy)]
struct Known {
    squares: f64,
    freedom: f64,
}

impl Known {
    fn both([a, b]: [Self; 2]) -> Self {
        Self { squares: a.squares + b.squares, freedom: a.freedom + b.freedom }
    }

    /// With what an A/A run tells.
    fn and(self, floor: Floor) -> Self {
        Self { squares: self.squares + floor.squares(), freedom: self.freedom + floor.freedom() as f64 }
    }
}

/// How far the centres of two sides lie apart by chance (standard deviation), and the degrees of freedom of knowing it.
#[derive(Clone, Copy)]
struct Spread {
    spread: f64,
    freedom: f64,
}

impl Spread {
    /// Of sides whose launches differ by the same ratio.
    fn alike(known: Known, [n, m]: [f64; 2]) -> Self {
        let variance = known.squares / known.freedom;
        Self { spread: (variance * (1.0 / n + 1.0 / m)).sqrt(), freedom: known.freedom }
    }

    /// Of sides that differ in this (B. L. Welch, Biometrika 34, 1947).
    fn unlike([a, b]: [Known; 2], [n, m]: [f64; 2]) -> Self {
        let [own, other] = [(a, n), (b, m)].map(|(known, count)| known.squares / known.freedom / count);
        let both = own + other;
        Self { spread: both.sqrt(), freedom: both * both / (own * own / a.freedom + other * other / b.freedom) }
    }

    fn floor(self) -> f64 {
        self.spread * student(1.0 - END, self.freedom).max(2.0)
    }
}

/// Whether the noise of two sides differs by more than chance.
fn is_unequal([a, b]: [Known; 2]) -> bool {
    let variance = |known: Known| known.squares / known.freedom;
    let (large, small) = if variance(a) < variance(b) { (b, a) } else { (a, b) };
    variance(large) > 0.0 && fisher_above(variance(large) / variance(small), [large.freedom, small.freedom]) < UNEQUAL
}

impl Noise {
    /// Of the times of the launches of two sides and of earlier A/A runs of each; `None` where neither tells of a side how
    /// far its launches differ.
    pub fn of(sides: [&[f64]; 2], floors: [Option<Floor>; 2]) -> Option<Self> {
        let more = |side: usize| floors[side].filter(|floor| floor.repeats > sides[side].len());
        let earlier = [more(0), more(1)];
        // What an earlier run did not meet, the launches here may: a slow one in ten is rare among ten.
        let known = [0, 1].map(|side| {
            let own = Known { squares: squares(sides[side]), freedom: sides[side].len().saturating_sub(1) as f64 };
            earlier[side].map_or(own, |floor| own.and(floor))
        });
        let told = known.iter().all(|known| known.freedom > 0.0) && sides.iter().all(|side| !side.is_empty());
        told.then(|| Self::known(known, sides.map(|side| side.len() as f64), earlier))
    }

    fn known(known: [Known; 2], counts: [f64; 2], earlier: [Option<Floor>; 2]) -> Self {
        let seen =
            if is_unequal(known) { Spread::unlike(known, counts) } else { Spread::alike(Known::both(known), counts) };
        let expected = earlier.contains(&None).then(|| Spread::alike(Known::both(known).and(ASSUMED), counts));
        let expected = expected.filter(|expected| expected.floor() > seen.floor());
        let spread = expected.unwrap_or(seen);
        let floor = spread.floor();
        let detectable = floor + student(POWER, spread.freedom) * spread.spread;
        Self { spread: spread.spread, floor, detectable, earlier, assumed: expected.is_some() }
    }

    /// The interval of a difference, as wide as the floor on each side.
    pub fn interval(&self, logarithm: f64) -> Interval {
        Interval { value: logarithm, low: logarithm - self.floor, high: logarithm + self.floor }
    }
}

/// Launches of each side of which nine in ten comparisons show a difference, given as shares of the step: the difference, and
/// by how much launches of one side differ (standard deviation). `None` where more would be needed than a plan asks for.
pub fn repeats_for(effect: f64, noise: f64) -> Option<usize> {
    let detectable = |n: usize| {
        let freedom = n.saturating_sub(1) as f64;
        let side = Known { squares: noise * noise * freedom, freedom };
        Noise::known([side; 2], [n as f64; 2], [None; 2]).detectable
    };
    PLANNED.into_iter().find(|n| detectable(*n) <= effect.ln_1p())
}
