//! Link tests for scripts: a part of `strato.diagnosis/2`, and two of them as `strato.links/1`, whose schema is
//! `docs/schema/strato.links.json`. Times are ns, rates GB/s (10⁹ B/s).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{LinkReport, LinkTest};
use crate::{diff::ci::Asked, text};
use diagnosis::{
    diagnose::limits::PublishedLink,
    link_test::{
        Links, Measured, Series, SlowLink,
        beside::{Pair, Row},
    },
};

/// Name of the schema.
pub const SCHEMA: &str = "strato.links/1";
/// Most characters of a text from a test.
const TEXT: usize = 1000;

fn plain(value: &str) -> String {
    text::plain(value, TEXT)
}

/// What was measured of a size.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkMeasured")]
struct MeasuredJson {
    time_ns: i64,
    /// Size over time.
    algorithm_gb_per_s: Option<f64>,
    /// What the links carry.
    bus_gb_per_s: Option<f64>,
}

/// One size.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkSize")]
struct SizeJson {
    bytes: i64,
    /// Out of place, or where the test does not tell.
    out_of_place: Option<MeasuredJson>,
    in_place: Option<MeasuredJson>,
    /// How often it was measured; the middle one stands.
    repeats: usize,
}

/// One collective.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkSeries")]
struct SeriesJson {
    op: Option<String>,
    ranks: Option<u32>,
    dtype: Option<String>,
    /// Whether bus bandwidths were computed from size, time and ranks, because the test prints none.
    bus_computed: bool,
    /// Highest bus bandwidth.
    plateau_gb_per_s: Option<f64>,
    /// Whether the bandwidth still rises at the largest size.
    plateau_rises: Option<bool>,
    /// Smallest size that reaches half of the plateau.
    knee_bytes: Option<i64>,
    /// Time of the smallest size; null where the bandwidth binds it already.
    latency_ns: Option<i64>,
    sizes: Vec<SizeJson>,
}

/// A link that is slower than others of its kind.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SlowLink")]
struct SlowJson {
    kind: String,
    from: String,
    to: String,
    gb_per_s: f64,
    of_gb_per_s: f64,
}

/// What the communication library says of the links.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkFacts")]
struct LinksJson {
    /// The slowest link, where links of one kind are uneven.
    slowest: Option<SlowJson>,
    /// Rate of the fastest link by kind.
    fastest_gb_per_s: BTreeMap<String, f64>,
    /// By transport.
    channels: BTreeMap<String, u64>,
    /// What is published of the device, in one direction over all its links.
    published_gb_per_s: Option<f64>,
}

/// The link test of one capture.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkTest")]
pub(crate) struct Single {
    series: Vec<SeriesJson>,
    links: LinksJson,
}

/// What `strato diff --format json` says of two link tests.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Links")]
pub(crate) struct Compared {
    /// Name and version of this schema.
    #[schemars(schema_with = "name")]
    schema: &'static str,
    a: String,
    b: String,
    /// Whether a collective was measured on both sides.
    comparable: bool,
    /// The answer to `--fail-on`; null without it.
    gate: Option<Asked>,
    series: Vec<PairJson>,
    /// Collectives that only one side measured.
    alone_a: Vec<SeriesJson>,
    alone_b: Vec<SeriesJson>,
    links_a: LinksJson,
    links_b: LinksJson,
    /// The side, `a` or `b`, whose slowest link is the slower one.
    slower_link: Option<&'static str>,
}

fn name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": SCHEMA })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkPair")]
struct PairJson {
    a: SeriesJson,
    b: SeriesJson,
    rows: Vec<RowJson>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkRow")]
struct RowJson {
    bytes: i64,
    in_place: bool,
    a_ns: i64,
    b_ns: i64,
    /// Time of B over that of A.
    ratio: f64,
    /// Whether the two differ by more than counts as equal.
    differs: bool,
}

fn measured(own: Measured) -> MeasuredJson {
    MeasuredJson { time_ns: own.time, algorithm_gb_per_s: own.algbw, bus_gb_per_s: own.busbw }
}

fn series(own: &Series) -> SeriesJson {
    let plateau = own.plateau();
    let size = |size: &diagnosis::link_test::Size| SizeJson {
        bytes: size.bytes,
        out_of_place: size.out.map(measured),
        in_place: size.in_place.map(measured),
        repeats: size.repeats,
    };
    SeriesJson {
        op: own.op.as_deref().map(plain),
        ranks: own.ranks,
        dtype: own.dtype.as_deref().map(plain),
        bus_computed: own.computed,
        plateau_gb_per_s: plateau.map(|plateau| plateau.gb_per_s),
        plateau_rises: plateau.map(|plateau| plateau.rises),
        knee_bytes: own.knee().map(|size| size.bytes),
        latency_ns: own.latency().map(|(_, time)| time),
        sizes: own.sizes.iter().map(size).collect(),
    }
}

fn links(own: &Links, published: Option<&PublishedLink>) -> LinksJson {
    let slow = |slow: &SlowLink| SlowJson {
        kind: plain(&slow.kind),
        from: plain(&slow.from),
        to: plain(&slow.to),
        gb_per_s: slow.gb_per_s,
        of_gb_per_s: slow.of_gb_per_s,
    };
    LinksJson {
        slowest: own.slowest.as_ref().map(slow),
        fastest_gb_per_s: own.fastest.iter().map(|(kind, rate)| (plain(kind), *rate)).collect(),
        channels: own.channels.iter().map(|(via, n)| (plain(via), *n)).collect(),
        published_gb_per_s: published.map(|link| link.gb_per_s),
    }
}

pub(crate) fn single(test: &LinkTest) -> Single {
    Single { series: test.series.iter().map(series).collect(), links: links(&test.links, test.published.as_ref()) }
}

fn document(report: &LinkReport) -> Compared {
    let beside = &report.beside;
    let row = |row: &Row| {
        let [a, b] = row.sides;
        RowJson {
            bytes: row.bytes,
            in_place: row.in_place,
            a_ns: a.time,
            b_ns: b.time,
            ratio: row.ratio(),
            differs: row.differs(),
        }
    };
    let pair = |pair: &Pair| {
        let [a, b] = pair.series.each_ref().map(series);
        PairJson { a, b, rows: pair.rows.iter().map(row).collect() }
    };
    let [alone_a, alone_b] = beside.alone.each_ref().map(|all| all.iter().map(series).collect());
    let [published_a, published_b] = report.published.each_ref().map(Option::as_ref);
    Compared {
        schema: SCHEMA,
        a: plain(&report.heads[0].name),
        b: plain(&report.heads[1].name),
        comparable: !beside.pairs.is_empty(),
        gate: None,
        series: beside.pairs.iter().map(pair).collect(),
        alone_a,
        alone_b,
        links_a: links(&beside.links[0], published_a),
        links_b: links(&beside.links[1], published_b),
        slower_link: beside.slower_link().map(|(side, _)| if side == 0 { "a" } else { "b" }),
    }
}

/// Writes the comparison as one JSON object.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render(report: &LinkReport, gate: Option<Asked>) -> Result<String, serde_json::Error> {
    let document = Compared { gate, ..document(report) };
    Ok(serde_json::to_string_pretty(&serde_json::to_value(document)?)? + "\n")
}
