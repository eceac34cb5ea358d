//! Two serving results load by load, where their work is the same.

use model::Trace;

pub use super::contract::{Reason, is_same_work};
use super::{
    Level, Load, Metric, Slo,
    contract::{PROMPT, arrivals, contract, is_same, near},
    curve, load,
    slo::Goodput,
};

/// What runs of one command differ by and no difference is shown below: that of the gate of two captures.
pub const LEAST: f64 = 0.02;
/// Half the width of a 95 % interval in standard deviations of the mean.
const NORMAL: f64 = 1.959_964;
/// Requests from which a mean has an interval by the central limit theorem: the usual 30.
const ENOUGH: f64 = 30.0;

/// What two loads are compared by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Mean of a time.
    Mean(Metric),
    /// Percentile of a time.
    Percentile(Metric, f64),
    /// Requests per second.
    Requests,
    /// Tokens of answers per second.
    Tokens,
    /// Requests per second that hold the targets.
    Goodput,
}

/// What is said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// B has more.
    More,
    /// B has less.
    Less,
    /// They are as close as two runs of one command.
    Equal,
    /// What was measured leaves it open.
    Open,
}

/// One quantity of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub what: Quantity,
    /// Values of A and B: ms, or per second.
    pub values: [f64; 2],
    /// 95 % interval of B over A, where the spread of the requests is known.
    pub interval: Option<(f64, f64)>,
    /// What is said of it.
    pub reading: Reading,
}

impl Row {
    fn of(what: Quantity, values: [f64; 2], interval: Option<(f64, f64)>) -> Option<Self> {
        let [a, b] = values;
        let ratio = b / a;
        if !ratio.is_finite() || a <= 0.0 {
            return None;
        }
        let shown = interval.is_none_or(|(low, high)| low > 1.0 || high < 1.0);
        let reading = match () {
            () if (ratio - 1.0).abs() < LEAST => Reading::Equal,
            () if !shown => Reading::Open,
            () if ratio > 1.0 => Reading::More,
            () => Reading::Less,
        };
        Some(Self { what, values, interval, reading })
    }

    /// B over A.
    pub fn ratio(&self) -> f64 {
        self.values[1] / self.values[0]
    }
}

/// Two equal loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// How hard both servers were pressed.
    pub level: Option<Level>,
    /// The loads.
    pub loads: [Load; 2],
    /// Quantities that both have.
    pub rows: Vec<Row>,
    /// Requests per second of each side that hold the targets.
    pub goodput: Option<[Goodput; 2]>,
}

impl Pair {
    fn of(a: Load, b: Load, slo: Option<&Slo>) -> Self {
        let mut rows = Vec::new();
        for metric in Metric::ALL {
            let mean = a.mean(metric).zip(b.mean(metric));
            rows.extend(
                mean.and_then(|(of_a, of_b)| Row::of(Quantity::Mean(metric), [of_a, of_b], interval(&a, &b, metric))),
            );
            for percent in [50.0, 90.0, 95.0, 99.0] {
                let both = a.percentile(metric, percent).zip(b.percentile(metric, percent));
                rows.extend(both.and_then(|(a, b)| Row::of(Quantity::Percentile(metric, percent), [a, b], None)));
            }
        }
        let both = |of: fn(&Load) -> Option<f64>| of(&a).zip(of(&b)).map(|(a, b)| [a, b]);
        rows.extend(both(Load::request_throughput).and_then(|both| Row::of(Quantity::Requests, both, None)));
        rows.extend(both(Load::output_throughput).and_then(|both| Row::of(Quantity::Tokens, both, None)));
        let goodput = slo.and_then(|slo| slo.goodput(&a).zip(slo.goodput(&b))).map(|(a, b)| [a, b]);
        // Bounds that overlap say nothing of which is larger.
        if let Some([of_a, of_b]) = goodput.filter(|[a, b]| a.low == a.high && b.low == b.high) {
            rows.extend(Row::of(Quantity::Goodput, [of_a.low, of_b.low], None));
        }
        Self { level: a.level(), loads: [a, b], rows, goodput }
    }

    /// One of its quantities.
    pub fn row(&self, what: Quantity) -> Option<&Row> {
        self.rows.iter().find(|row| row.what == what)
    }

    /// How much longer a request takes on B, and how much of that is its first token, ms.
    pub fn split(&self) -> Option<(f64, f64)> {
        let of = |metric| Some(self.loads[1].mean(metric)? - self.loads[0].mean(metric)?);
        of(Metric::E2e).zip(of(Metric::Ttft))
    }
}

/// The interval of B over A of a mean, from the spread over requests: requests are taken as independent, and the logarithm of a
/// mean as normal (delta method).
fn interval(a: &Load, b: &Load, metric: Metric) -> Option<(f64, f64)> {
    let relative = |load: &Load| {
        let times = load.times.get(&metric)?;
        let n = load.completed().filter(|n| *n >= ENOUGH)?;
        Some(times.std? / times.mean.filter(|mean| *mean > 0.0)? / n.sqrt())
    };
    let (mean_a, mean_b) = (a.mean(metric)?, b.mean(metric)?);
    let half = NORMAL * (relative(a)?.powi(2) + relative(b)?.powi(2)).sqrt();
    let ratio = (mean_b / mean_a).ln();
    Some(((ratio - half).exp(), (ratio + half).exp()))
}

/// Where the two curves over load cross: the time, the neighbouring loads, and where between them.
pub type Crossing = (Metric, f64, f64, f64);

/// Two results.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// What forbids to set one beside the other.
    pub refused: Vec<Reason>,
    /// What is not known and has to be taken for equal.
    pub caveats: Vec<Reason>,
    /// Equal loads; none where the comparison is refused.
    pub pairs: Vec<Pair>,
    /// Loads of each side that the other has no equal of, with what they lack.
    pub alone: [Vec<Load>; 2],
    /// The load of each side at which it does most for how long its users wait.
    pub knees: [Option<Load>; 2],
    /// Where curves cross.
    pub crossings: Vec<Crossing>,
    /// Targets.
    pub slo: Option<Slo>,
}

impl Beside {
    /// Of the captures of both sides, which are serving results.
    pub fn of(sides: [&[&Trace]; 2], slo: Option<Slo>) -> Self {
        let [a, b] = sides.map(|side| side.iter().flat_map(|trace| load::of(trace)).collect::<Vec<Load>>());
        let knees = [knee(&a), knee(&b)];
        let (mut refused, mut caveats) = contract(sides);
        let (mut pairs, mut left_a, mut left_b) = (Vec::new(), Vec::new(), b);
        for own in a {
            match left_b.iter().position(|other| is_same(&own, other)) {
                Some(at) => pairs.push(Pair::of(own, left_b.remove(at), slo.as_ref())),
                None => left_a.push(own),
            }
        }
        pairs.sort_by(|x, y| {
            let key = |pair: &Pair| (pair.level.map_or(0.0, Level::value), pair.loads[0].input_len().unwrap_or(0.0));
            let ((a, b), (c, d)) = (key(x), key(y));
            a.total_cmp(&c).then(b.total_cmp(&d))
        });
        caveats.extend(pairs.iter().find_map(|pair| arrivals(&pair.loads[0], &pair.loads[1])));
        if pairs.is_empty() {
            refused.push(Reason::NoLoad);
        }
        if !refused.is_empty() {
            for Pair { loads: [a, b], .. } in pairs.drain(..) {
                left_a.push(a);
                left_b.push(b);
            }
        }
        let crossings = crossings(&pairs);
        Self { refused, caveats, pairs, alone: [left_a, left_b], knees, crossings, slo }
    }
}

fn knee(loads: &[Load]) -> Option<Load> {
    let mut order: Vec<&Load> = loads.iter().filter(|load| load.level().is_some()).collect();
    order.sort_by(|a, b| level(a).total_cmp(&level(b)));
    // One curve is one kind of work under several loads.
    let first = order.first()?;
    let one = order.windows(2).all(|pair| matches!(pair, [a, b] if level(a) < level(b)))
        && order.iter().all(|load| near(load.input_len(), first.input_len(), PROMPT));
    let at = curve::knee(&order).filter(|_| one)?;
    order.get(at).map(|load| (*load).clone())
}

fn level(load: &Load) -> f64 {
    load.level().map_or(0.0, Level::value)
}

fn crossings(pairs: &[Pair]) -> Vec<Crossing> {
    let rising = pairs.windows(2).all(|two| matches!(two, [a, b] if level(&a.loads[0]) < level(&b.loads[0])));
    if !rising {
        return Vec::new();
    }
    let of = |metric: Metric| {
        let points = pairs.iter().filter_map(|pair| {
            let [a, b] = pair.row(Quantity::Mean(metric))?.values;
            Some((level(&pair.loads[0]), a, b))
        });
        let points: Vec<_> = points.collect();
        curve::crossings(&points, LEAST).into_iter().map(move |(from, to, at)| (metric, from, to, at))
    };
    [Metric::Ttft, Metric::Tpot].into_iter().flat_map(of).collect()
}
