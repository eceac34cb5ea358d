//! Serving results for scripts: a part of `strato.diagnosis/2`, and two of them as `strato.serving/1`, whose schema is
//! `docs/schema/strato.serving.json`. Times are ms, rates per second.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Loads, ServingReport};
use crate::{diff::ci::Asked, text};
use diagnosis::serving::{
    Level, Load, Slo,
    beside::{Pair, Quantity, Reading, Reason, Row},
};

/// Name of the schema.
pub const SCHEMA: &str = "strato.serving/1";
/// Most characters of a text from a result.
const TEXT: usize = 1000;

fn plain(value: &str) -> String {
    text::plain(value, TEXT)
}

/// A load.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServingLoad")]
pub(crate) struct LoadJson {
    source: String,
    /// Limit of requests at a time.
    concurrency: Option<f64>,
    /// Requests each second.
    request_rate: Option<f64>,
    /// Mean tokens of a prompt.
    input_len: Option<f64>,
    /// Mean tokens of an answer.
    output_len: Option<f64>,
    completed: Option<f64>,
    requests_per_s: Option<f64>,
    output_tokens_per_s: Option<f64>,
    /// By name and statistic, ms: `ttft` with `mean`, `std`, `p50`, …
    times_ms: BTreeMap<&'static str, BTreeMap<String, f64>>,
    /// Requests per second that hold every target, at least and at most.
    goodput: Option<[f64; 2]>,
    /// Whether the percentile of every target holds; null where that cannot be told.
    holds_slo: Option<bool>,
}

pub(crate) fn load(load: &Load, slo: Option<&Slo>) -> LoadJson {
    let times = load.times.iter().map(|(metric, times)| {
        let named = [("mean", times.mean), ("std", times.std)];
        let named = named.into_iter().filter_map(|(name, ms)| Some((name.to_owned(), ms?)));
        (metric.key(), named.chain(times.percentiles.iter().map(|(p, ms)| (format!("p{p}"), *ms))).collect())
    });
    let level = load.level();
    LoadJson {
        source: plain(&load.source),
        concurrency: level.and_then(|level| if let Level::Concurrency(n) = level { Some(n) } else { None }),
        request_rate: level.and_then(|level| if let Level::Rate(n) = level { Some(n) } else { None }),
        input_len: load.input_len(),
        output_len: load.output_len(),
        completed: load.completed(),
        requests_per_s: load.request_throughput(),
        output_tokens_per_s: load.output_throughput(),
        times_ms: times.collect(),
        goodput: slo.and_then(|slo| slo.goodput(load)).map(|good| [good.low, good.high]),
        holds_slo: slo.and_then(|slo| slo.holds(load)),
    }
}

/// The loads of one capture.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Serving")]
pub(crate) struct Single {
    /// Targets.
    slo: Option<String>,
    loads: Vec<LoadJson>,
}

pub(crate) fn single(loads: &Loads) -> Single {
    let slo = loads.slo.as_ref();
    Single { slo: slo.map(Slo::text), loads: loads.loads.iter().map(|own| load(own, slo)).collect() }
}

/// What `strato diff --format json` says of two serving results.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Serving {
    /// Name and version of this schema.
    #[schemars(schema_with = "name")]
    schema: &'static str,
    a: String,
    b: String,
    /// What served each side: its engine, or what the benchmark was told to speak with.
    engine_a: Option<String>,
    engine_b: Option<String>,
    /// Whether the two may be compared.
    comparable: bool,
    /// The answer to `--fail-on`; null without it.
    gate: Option<Asked>,
    slo: Option<String>,
    /// Why not.
    refused: Vec<Why>,
    /// What is not known of both and was taken for equal.
    caveats: Vec<Why>,
    loads: Vec<PairJson>,
    /// Loads that only one side has.
    alone_a: Vec<LoadJson>,
    alone_b: Vec<LoadJson>,
    /// The load of each side at which it does most for how long its users wait.
    knee_a: Option<LoadJson>,
    knee_b: Option<LoadJson>,
    crossings: Vec<CrossingJson>,
}

fn name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": SCHEMA })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServingReason")]
struct Why {
    /// Field of the contract; null where no load is the same.
    field: Option<&'static str>,
    a: Option<String>,
    b: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServingPair")]
struct PairJson {
    a: LoadJson,
    b: LoadJson,
    rows: Vec<RowJson>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServingRow")]
struct RowJson {
    /// Such as `ttft.mean`, `tpot.p99`, `requests_per_s`, `output_tokens_per_s`, `goodput`.
    what: String,
    a: f64,
    b: f64,
    ratio: f64,
    /// 95 % interval of the ratio.
    interval: Option<[f64; 2]>,
    /// `more`, `less`, `equal` or `open`, of B.
    #[schemars(with = "String")]
    reading: Reading,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServingCrossing")]
struct CrossingJson {
    metric: &'static str,
    from: f64,
    to: f64,
    at: f64,
}

fn why(reason: &Reason) -> Why {
    match reason {
        Reason::Differs(key, a, b) => Why { field: Some(key), a: Some(plain(a)), b: Some(plain(b)) },
        Reason::Unknown(key, [a, b]) => {
            Why { field: Some(key), a: a.as_deref().map(plain), b: b.as_deref().map(plain) }
        }
        Reason::NoLoad => Why { field: None, a: None, b: None },
    }
}

fn row(row: &Row) -> RowJson {
    let what = match row.what {
        Quantity::Mean(metric) => format!("{}.mean", metric.key()),
        Quantity::Percentile(metric, percent) => format!("{}.p{percent}", metric.key()),
        Quantity::Requests => "requests_per_s".to_owned(),
        Quantity::Tokens => "output_tokens_per_s".to_owned(),
        Quantity::Goodput => "goodput".to_owned(),
    };
    let [a, b] = row.values;
    RowJson {
        what,
        a,
        b,
        ratio: row.ratio(),
        interval: row.interval.map(|(low, high)| [low, high]),
        reading: row.reading,
    }
}

pub(crate) fn document(report: &ServingReport) -> Serving {
    let beside = &report.beside;
    let slo = beside.slo.as_ref();
    let one = |own: &Load| load(own, slo);
    let pair = |pair: &Pair| {
        let [a, b] = &pair.loads;
        PairJson { a: one(a), b: one(b), rows: pair.rows.iter().map(row).collect() }
    };
    let crossing = |(metric, from, to, at): &(diagnosis::serving::Metric, f64, f64, f64)| CrossingJson {
        metric: metric.key(),
        from: *from,
        to: *to,
        at: *at,
    };
    let [alone_a, alone_b] = beside.alone.each_ref().map(|loads| loads.iter().map(one).collect());
    let [knee_a, knee_b] = beside.knees.each_ref().map(|knee| knee.as_ref().map(one));
    Serving {
        schema: SCHEMA,
        a: plain(&report.heads[0].name),
        b: plain(&report.heads[1].name),
        engine_a: report.engines[0].as_deref().map(plain),
        engine_b: report.engines[1].as_deref().map(plain),
        comparable: beside.refused.is_empty(),
        gate: None,
        slo: slo.map(Slo::text),
        refused: beside.refused.iter().map(why).collect(),
        caveats: beside.caveats.iter().map(why).collect(),
        loads: beside.pairs.iter().map(pair).collect(),
        alone_a,
        alone_b,
        knee_a,
        knee_b,
        crossings: beside.crossings.iter().map(crossing).collect(),
    }
}

/// Writes the comparison as one JSON object.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render(report: &ServingReport, gate: Option<Asked>) -> Result<String, serde_json::Error> {
    let document = Serving { gate, ..document(report) };
    Ok(serde_json::to_string_pretty(&serde_json::to_value(document)?)? + "\n")
}
