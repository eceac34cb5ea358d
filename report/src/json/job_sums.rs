//! Sums of a job's steps and links as JSON values; none of them lies on a time axis.

use serde_json::{Value, json};

use super::plain;
use diagnosis::analysis::job_sums::{JobTotals, LinkTotal, RankTotal};

/// Ranks, links, and the slowest of each.
pub(super) fn totals(totals: &JobTotals) -> Value {
    json!({
        "ranks": totals.ranks.iter().map(rank).collect::<Vec<_>>(),
        "links": totals.links.iter().map(link).collect::<Vec<_>>(),
        "slowest_ranks": totals.slowest_ranks.iter().map(|slowest| json!({
            "rank": slowest.rank, "stage": slowest.stage, "ranks": slowest.ranks,
            "own_ns_per_step": slowest.own, "least_ns_per_step": slowest.least,
        })).collect::<Vec<_>>(),
        "slowest_links": totals.slowest_links.iter().map(|slowest| json!({
            "link": link(&slowest.link), "links": slowest.links, "median_bytes_per_second": slowest.median,
        })).collect::<Vec<_>>(),
    })
}

fn rank(rank: &RankTotal) -> Value {
    let part =
        |(part, (ns, steps)): (&model::StepPart, &(i64, u64))| json!({ "part": part.name(), "ns": ns, "steps": steps });
    json!({ "rank": rank.rank, "stage": rank.stage, "parts": rank.parts.iter().map(part).collect::<Vec<_>>() })
}

fn link(link: &LinkTotal) -> Value {
    json!({
        "from": link.from, "to": link.to, "transport": plain(&link.transport),
        "bytes": link.bytes, "ns": link.time, "bytes_per_second": link.rate(),
    })
}
