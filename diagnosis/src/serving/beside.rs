//! Two serving results load by load, where their work is the same.

use model::{
    Trace,
    manifest::{self, Manifest},
};

use super::{Level, Load, Metric, Slo, curve, load, slo::Goodput};
use crate::compare::contract::rule::{Status, status};

/// What runs of one command differ by and no difference is shown below: that of the gate of two captures.
pub const LEAST: f64 = 0.02;
/// How far prompts may be apart, a share: that of the contract's `workload.prompt_len`.
const PROMPT: f64 = 0.02;
/// How far answers may be apart, a share: that of `workload.output_len`.
const OUTPUT: f64 = 0.10;
/// Half the width of a 95 % interval in standard deviations of the mean.
const NORMAL: f64 = 1.959_964;
/// Requests from which a mean has an interval by the central limit theorem: the usual 30.
const ENOUGH: f64 = 30.0;

/// Fields that must not differ: what was asked of which model on how many ranks, and in which format.
const FIELDS: [&str; 8] = [
    "model.name",
    "model.revision",
    "precision.weights",
    "precision.kv",
    "precision.quantization",
    "parallel.tp",
    "workload.dataset",
    "workload.speculative",
];
/// Of these, the ones that have to be known before the two may be said to be equal.
const ASKED: [&str; 3] = ["model.name", "precision.weights", "parallel.tp"];

/// What stands between two results.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// A field of the contract differs.
    Differs(&'static str, String, String),
    /// A field is not known of every side: it and what each says.
    Unknown(&'static str, [Option<String>; 2]),
    /// No load of the two was the same.
    NoLoad,
}

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
        let (mut refused, caveats) = contract(sides);
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

/// Whether two loads asked the same of a server.
fn is_same(a: &Load, b: &Load) -> bool {
    let level = match (a.level(), b.level()) {
        (Some(Level::Concurrency(a)), Some(Level::Concurrency(b))) | (Some(Level::Rate(a)), Some(Level::Rate(b))) => {
            (a - b).abs() <= 1e-6 * a.max(b)
        }
        (a, b) => a == b,
    };
    // Failed requests count: they were asked.
    let asked = |load: &Load| Some(load.completed()? + load.number("failed").unwrap_or(0.0));
    level && is_same_work(a, b) && near(asked(a), asked(b), 0.0)
}

/// Whether the prompts and answers of two loads are as long as each other.
pub fn is_same_work(a: &Load, b: &Load) -> bool {
    near(a.input_len(), b.input_len(), PROMPT) && near(a.output_len(), b.output_len(), OUTPUT)
}

/// Whether two numbers are at most a share apart; what one side does not say is no difference.
fn near(a: Option<f64>, b: Option<f64>, share: f64) -> bool {
    a.zip(b).is_none_or(|(a, b)| (a - b).abs() <= share * a.max(b))
}

/// What the contract says of the two: what differs, and what is not known.
fn contract(sides: [&[&Trace]; 2]) -> (Vec<Reason>, Vec<Reason>) {
    let said = |side: &[&Trace], key: &str| -> Vec<String> {
        let value = |manifest: &Manifest| manifest.value(key).map(str::to_owned);
        side.iter().filter_map(|trace| value(&trace.manifest)).collect()
    };
    let (mut refused, mut caveats) = (Vec::new(), Vec::new());
    for key in FIELDS {
        let Some(field) = manifest::field(key) else { continue };
        let [a, b] = sides.map(|side| said(side, key));
        // Every result of a side has to be of the same, too.
        let all: Vec<&String> = a.iter().chain(&b).collect();
        let other = all.first().and_then(|first| {
            let differs = |value: &&&String| status(field, Some(first), Some(value)) == Status::Different;
            all.iter().find(differs).map(|other| ((*first).clone(), (*other).clone()))
        });
        match other {
            Some((one, other)) => refused.push(Reason::Differs(field.key, one, other)),
            None if (a.is_empty() || b.is_empty()) && ASKED.contains(&key) => {
                caveats.push(Reason::Unknown(field.key, [a.first().cloned(), b.first().cloned()]));
            }
            None => {}
        }
    }
    (refused, caveats)
}
