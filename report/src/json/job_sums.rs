//! Sums of a job's steps and links as JSON; none of them lies on a time axis.

use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use diagnosis::analysis::job_sums::{JobTotals, LinkTotal, RankTotal};

/// Sums that another tool made of a job's steps and links; none of them lies on a time axis.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobSums {
    links: Vec<Link>,
    ranks: Vec<Rank>,
    slowest_links: Vec<SlowestLink>,
    slowest_ranks: Vec<SlowestRank>,
}

/// What moved from one rank to another.
#[derive(Serialize, JsonSchema)]
struct Link {
    bytes: i64,
    bytes_per_second: Option<f64>,
    from: u32,
    ns: i64,
    to: u32,
    transport: String,
}

/// What the steps of a rank consist of.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RankSums")]
struct Rank {
    parts: Vec<Part>,
    rank: u32,
    /// Stage of the pipeline.
    stage: Option<u32>,
}

/// A part of the steps of a rank.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RankSumsPart")]
struct Part {
    ns: i64,
    #[schemars(schema_with = "words::step_part")]
    part: &'static str,
    steps: u64,
}

/// The slowest link of those of one transport that moved alike much.
#[derive(Serialize, JsonSchema)]
struct SlowestLink {
    link: Link,
    /// How many were compared.
    links: u64,
    median_bytes_per_second: f64,
}

/// The slowest rank of a stage.
#[derive(Serialize, JsonSchema)]
struct SlowestRank {
    /// What the fastest one takes besides communicating.
    least_ns_per_step: i64,
    /// What it takes besides communicating.
    own_ns_per_step: i64,
    rank: u32,
    /// How many were compared.
    ranks: u64,
    stage: Option<u32>,
}

/// Ranks, links, and the slowest of each.
pub(super) fn totals(totals: &JobTotals) -> JobSums {
    let links = totals.slowest_links.iter().map(|slowest| SlowestLink {
        link: link(&slowest.link),
        links: slowest.links,
        median_bytes_per_second: slowest.median,
    });
    let ranks = totals.slowest_ranks.iter().map(|slowest| SlowestRank {
        least_ns_per_step: slowest.least,
        own_ns_per_step: slowest.own,
        rank: slowest.rank,
        ranks: slowest.ranks,
        stage: slowest.stage,
    });
    JobSums {
        links: totals.links.iter().map(link).collect(),
        ranks: totals.ranks.iter().map(rank).collect(),
        slowest_links: links.collect(),
        slowest_ranks: ranks.collect(),
    }
}

fn rank(rank: &RankTotal) -> Rank {
    let parts = rank.parts.iter().map(|(part, (ns, steps))| Part { ns: *ns, part: part.name(), steps: *steps });
    Rank { parts: parts.collect(), rank: rank.rank, stage: rank.stage }
}

fn link(link: &LinkTotal) -> Link {
    Link {
        bytes: link.bytes,
        bytes_per_second: link.rate(),
        from: link.from,
        ns: link.time,
        to: link.to,
        transport: plain(&link.transport),
    }
}
