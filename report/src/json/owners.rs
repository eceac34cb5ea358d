//! Who owns the idle time, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::plain;
use crate::{model::Capture, owners};

/// Idle time with one owner: of a bucket, before one kind of operation. The rows of a rank add up to its idle time.
#[derive(Serialize, JsonSchema)]
pub(super) struct IdleOwner {
    capture: usize,
    rank: u32,
    /// Bucket of most of it; null for the sum of all further groups.
    bucket: Option<String>,
    /// The innermost record of the host that covers at least half of each gap; null where none says anything.
    owner: Option<String>,
    /// What kind of record it is, such as python_frame.
    owner_kind: Option<&'static str>,
    /// Whether the owner spans the whole step, so that nothing narrower is known.
    spans_step: bool,
    /// The records around the owner, innermost first.
    within: Vec<String>,
    /// Operator, copy or replay that ends the gaps.
    ended_by: Option<String>,
    /// Gaps per step.
    per_step: f64,
    ns_per_step: i64,
    /// Of the steps that count.
    share: f64,
    longest_ns: i64,
    /// The most frequent records inside the owner.
    children: Vec<Child>,
    /// Ids of the owner's longest record and of operations that end such gaps.
    slices: Vec<u32>,
}

/// A record inside an owner.
#[derive(Serialize, JsonSchema)]
struct Child {
    name: String,
    /// How often it comes in a gap.
    per_gap: u64,
}

/// The owners of a capture's idle time, longest first.
pub(super) fn owners(capture: &Capture) -> impl Iterator<Item = IdleOwner> {
    capture.owners.iter().map(|row| owner(capture.id, row))
}

fn owner(capture: usize, row: &owners::IdleOwner) -> IdleOwner {
    IdleOwner {
        capture,
        rank: row.rank,
        bucket: row.bucket.as_deref().map(plain),
        owner: row.owner.as_deref().map(plain),
        owner_kind: row.kind,
        spans_step: row.wraps,
        within: row.around.iter().map(|name| plain(name)).collect(),
        ended_by: row.ended_by.as_deref().map(plain),
        per_step: row.per_step,
        ns_per_step: row.ns,
        share: row.share,
        longest_ns: row.longest,
        children: row.children.iter().map(|(name, per_gap)| Child { name: plain(name), per_gap: *per_gap }).collect(),
        slices: row.slices.iter().map(|id| id.0).collect(),
    }
}
