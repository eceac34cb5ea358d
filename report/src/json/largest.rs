//! What takes the most time by name, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use crate::model::Capture;
use diagnosis::largest;

/// The tables of one rank over one time. Shares of one table may not be added to those of another: they are of the same time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Largest")]
pub(super) struct Tables {
    capture: usize,
    /// Absent where the evidence has no rank.
    rank: Option<u32>,
    /// What all time is: all recorded steps, a window without steps, the busiest thread of a host without device, what a
    /// profiler summed, kernels that ran alone.
    #[schemars(schema_with = "words::over")]
    over: &'static str,
    /// Steps in it, 0 where nothing marks any.
    steps: usize,
    /// All time: what shares refer to.
    time_ns: i64,
    /// Time in which collectives ran and nothing computed.
    exposed_communication_ns: Option<i64>,
    /// Time in which copies ran and no kernel.
    exposed_copies_ns: Option<i64>,
    /// Five of each table at most, the longest first.
    rows: Vec<Row>,
    /// The longest pauses of the device.
    gaps: Vec<Gap>,
    /// Calls of the host that take more than half as long outside of this time; only of a window. Shares are of this time, too.
    outside: Vec<Row>,
}

/// Everything of one name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LargestRow")]
struct Row {
    #[schemars(schema_with = "words::table")]
    table: &'static str,
    /// Empty for idle time that no record of the host owns.
    name: String,
    /// What the name is of: an operator, a category of records, a bucket of idle time.
    of: String,
    count: u64,
    total_ns: i64,
    /// Of all time.
    share: f64,
    mean_ns: i64,
    max_ns: Option<i64>,
    /// What of the total no kernel hides, for host work the part in which the device is idle.
    exposed_ns: Option<i64>,
    /// Of a collective each, of copies all.
    bytes: Option<i64>,
    bytes_per_second: Option<f64>,
    /// By how much the first rank came before the last one.
    skew_mean_ns: Option<i64>,
    skew_max_ns: Option<i64>,
    /// Id of the longest of them.
    slice: Option<u32>,
    /// Whether a finding names it.
    named: bool,
}

/// A pause of the device.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LongGap")]
struct Gap {
    start_ns: i64,
    ns: i64,
    step: u32,
    /// The record of the host that owns it.
    owner: Option<String>,
    /// Category of that record, else the bucket of most of the gap.
    of: String,
    ended_by: Option<String>,
    slice: Option<u32>,
}

/// Samples of one counter of one device.
#[derive(Serialize, JsonSchema)]
pub(super) struct Samples {
    capture: usize,
    name: String,
    unit: String,
    device: Option<i32>,
    rank: Option<u32>,
    count: usize,
    /// Samples during the steps; the values are of these, or of all where there are none.
    inside: usize,
    min: f64,
    min_at_ns: i64,
    median: f64,
    max: f64,
    max_at_ns: i64,
}

pub(super) fn tables(capture: &Capture) -> impl Iterator<Item = Tables> {
    capture.largest.tables.iter().map(|own| Tables {
        capture: capture.id,
        rank: own.rank,
        over: own.over.key(),
        steps: own.steps,
        time_ns: own.time,
        exposed_communication_ns: own.exposed_communication,
        exposed_copies_ns: own.exposed_copies,
        rows: own.rows.iter().map(|row| self::row(own, row)).collect(),
        gaps: own.gaps.iter().map(gap).collect(),
        outside: own.outside.iter().map(|row| self::row(own, row)).collect(),
    })
}

fn row(tables: &largest::Tables, row: &largest::Row) -> Row {
    Row {
        table: row.kind.key(),
        name: plain(&row.name),
        of: plain(&row.of),
        count: row.count,
        total_ns: row.total,
        share: tables.share(row.total),
        mean_ns: row.mean(),
        max_ns: row.max,
        exposed_ns: row.exposed,
        bytes: row.bytes,
        bytes_per_second: row.rate,
        skew_mean_ns: row.skew.map(|(mean, _)| mean),
        skew_max_ns: row.skew.map(|(_, most)| most),
        slice: row.longest.map(|slice| slice.0),
        named: row.named,
    }
}

fn gap(gap: &largest::LongGap) -> Gap {
    Gap {
        start_ns: gap.start,
        ns: gap.ns,
        step: gap.step,
        owner: gap.owner.as_deref().map(plain),
        of: plain(&gap.of),
        ended_by: gap.ended_by.as_deref().map(plain),
        slice: gap.slice.map(|slice| slice.0),
    }
}

pub(super) fn samples(capture: &Capture) -> impl Iterator<Item = Samples> {
    capture.largest.samples.iter().map(|own| Samples {
        capture: capture.id,
        name: plain(&own.name),
        unit: plain(&own.unit),
        device: own.device,
        rank: own.rank,
        count: own.count,
        inside: own.inside,
        min: own.min.0,
        min_at_ns: own.min.1,
        median: own.median,
        max: own.max.0,
        max_at_ns: own.max.1,
    })
}
