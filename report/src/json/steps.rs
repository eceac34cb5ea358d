//! The steps of a rank as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use crate::{
    model::{ClassPart, RankPart},
    units,
    workload::WorkloadPart,
};

/// A rank and its steps.
#[derive(Serialize, JsonSchema)]
pub(super) struct Rank {
    /// Ordinal of the device in its process.
    device: i32,
    rank: u32,
    steps: Steps,
}

/// How the steps of a rank were found, and how long they took.
#[derive(Serialize, JsonSchema)]
pub(super) struct Steps {
    /// What marks a step.
    anchor: String,
    #[schemars(schema_with = "words::confidence")]
    confidence: &'static str,
    /// Marks that began no step.
    marks_without_work: u32,
    outside_ns: Outside,
    awaited: Option<Awaited>,
    count: usize,
    classes: Vec<Class>,
    /// The steps whose mean every share and gain refers to.
    workload: Option<Workload>,
}

/// The steps that count of the workload of a rank.
#[derive(Serialize, JsonSchema)]
pub(super) struct Workload {
    steps: usize,
    mean_ns: i64,
    median_ns: i64,
    stage: &'static str,
    /// Fewest and most sequences decoded in a step.
    sequences: Option<[u32; 2]>,
    /// Fewest and most tokens of a step, prompts included.
    tokens: Option<[u32; 2]>,
}

/// Device work in no step, ns.
#[derive(Serialize, JsonSchema)]
struct Outside {
    before: i64,
    after: i64,
}

/// The call in which the host waited before the first step for work that was not recorded.
#[derive(Serialize, JsonSchema)]
struct Awaited {
    call: String,
    ns: i64,
}

/// Steps of one kind.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StepClass")]
struct Class {
    count: usize,
    /// Median of the host ranges.
    host_median_ns: Option<i64>,
    /// Such as `decode b=32 graph=full`.
    key: String,
    median_ns: i64,
    p95_ns: Option<i64>,
    p99_ns: Option<i64>,
    /// Steps that count.
    used: usize,
}

pub(super) fn rank(rank: &RankPart) -> Rank {
    Rank { device: rank.device, rank: rank.rank, steps: steps(rank) }
}

pub(super) fn steps(rank: &RankPart) -> Steps {
    let class = |c: &ClassPart| Class {
        count: c.count,
        host_median_ns: c.host,
        key: plain(&c.key),
        median_ns: c.median,
        p95_ns: c.p95,
        p99_ns: c.p99,
        used: c.used,
    };
    Steps {
        anchor: plain(&rank.anchor.key()),
        confidence: units::confidence_key(rank.anchor.confidence),
        marks_without_work: rank.anchor.without_work,
        outside_ns: Outside { before: rank.outside[0], after: rank.outside[1] },
        awaited: rank.awaited.as_ref().map(|(call, ns)| Awaited { call: plain(call), ns: *ns }),
        count: rank.steps,
        classes: rank.classes.iter().map(class).collect(),
        workload: rank.workload.as_ref().map(workload),
    }
}

pub(super) fn workload(of: &WorkloadPart) -> Workload {
    Workload {
        steps: of.steps,
        mean_ns: of.mean,
        median_ns: of.median,
        stage: of.stage.name(),
        sequences: of.sequences.map(|(least, most)| [least, most]),
        tokens: of.tokens.map(|(least, most)| [least, most]),
    }
}
