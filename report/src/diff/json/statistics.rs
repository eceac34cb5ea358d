//! What repeats say, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::plain;
use diagnosis::compare::{
    Statistics,
    statistics::{Interval, Outcome, RankTest, Repeated},
};

/// What repeats say. Logarithms of ratios stand as shares of the step in the middle; there is a ratio only where one is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Statistics")]
pub(super) struct Repeats {
    /// What is repeated.
    unit: &'static str,
    #[schemars(schema_with = "outcomes")]
    outcome: &'static str,
    a: Launches,
    b: Launches,
    /// What the repeats come to, where there are enough.
    repeated: Option<Shown>,
}

fn outcomes(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let all = [Outcome::Unknown, Outcome::NotSignificant, Outcome::Significant].map(Outcome::key);
    schemars::json_schema!({ "type": "string", "enum": all })
}

/// The launches of a side.
#[derive(Serialize, JsonSchema)]
struct Launches {
    /// Median step of each.
    repeats_ns: Vec<f64>,
    /// Steps behind them.
    steps: usize,
    /// Captures without a step of the class that is compared.
    absent: usize,
}

/// What repeats come to.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Repeated")]
struct Shown {
    /// Geometric mean of the launches.
    a_ns: f64,
    b_ns: f64,
    difference_ns: Bounds,
    /// The second over the first.
    ratio: Option<Bounds>,
    test: MannWhitney,
    /// What earlier A/A runs of each side differ by.
    earlier_noise: [Option<EarlierNoise>; 2],
    /// Whether the floor is that of launches in general.
    noise_assumed: bool,
    noise_floor_ns: f64,
    /// Smallest difference that so many launches find nine times in ten.
    detectable_ns: f64,
    buckets: Vec<RepeatedBucket>,
}

/// A value with its 95 % interval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Interval")]
struct Bounds {
    value: f64,
    low: f64,
    high: f64,
}

/// How the launches lie to each other.
#[derive(Serialize, JsonSchema)]
struct MannWhitney {
    u: f64,
    p: f64,
    cliffs_delta: f64,
}

/// What the launches of an A/A run differ by.
#[derive(Serialize, JsonSchema)]
struct EarlierNoise {
    repeats: usize,
    /// Standard deviation as a share.
    deviation: f64,
}

/// A bucket over the launches.
#[derive(Serialize, JsonSchema)]
struct RepeatedBucket {
    bucket: String,
    a_ns: f64,
    b_ns: f64,
    test: MannWhitney,
    /// Share of false ones among buckets that differ as much.
    false_share: f64,
    differs: bool,
}

pub(super) fn repeats(statistics: &Statistics) -> Repeats {
    let outcome = statistics.outcome();
    let side = |n: usize| Launches {
        repeats_ns: statistics.repeats[n].clone(),
        steps: statistics.steps[n],
        absent: statistics.absent[n],
    };
    let repeated = statistics.repeated.as_ref().map(|repeated| shown(repeated, outcome));
    Repeats { unit: "launch", outcome: outcome.key(), a: side(0), b: side(1), repeated }
}

fn shown(repeated: &Repeated, outcome: Outcome) -> Shown {
    let bounds =
        |i: &Interval, show: fn(f64) -> f64| Bounds { value: show(i.value), low: show(i.low), high: show(i.high) };
    let test = |test: &RankTest| MannWhitney { u: test.u, p: test.p, cliffs_delta: test.delta };
    let buckets = repeated.buckets.iter().map(|bucket| RepeatedBucket {
        bucket: plain(&bucket.name),
        a_ns: bucket.ns[0],
        b_ns: bucket.ns[1],
        test: test(&bucket.test),
        false_share: bucket.false_share,
        differs: bucket.differs(),
    });
    let noise = &repeated.noise;
    Shown {
        a_ns: repeated.centers[0],
        b_ns: repeated.centers[1],
        difference_ns: bounds(&repeated.difference, |ns| ns),
        ratio: (outcome == Outcome::Significant).then(|| bounds(&repeated.logarithm, f64::exp)),
        test: test(&repeated.test),
        earlier_noise: noise
            .earlier
            .map(|floor| floor.map(|floor| EarlierNoise { repeats: floor.repeats, deviation: floor.deviation })),
        noise_assumed: noise.assumed,
        noise_floor_ns: repeated.time(noise.floor),
        detectable_ns: repeated.time(noise.detectable),
        buckets: buckets.collect(),
    }
}
