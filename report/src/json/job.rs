//! What several ranks did together, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use crate::job::{JobPart, Moved};
use diagnosis::analysis::Layer;

/// What several ranks did together.
#[derive(Serialize, JsonSchema)]
pub(super) struct Job {
    clocks: Vec<Clock>,
    groups: Vec<Group>,
    /// Waits inside collectives, as the profiler recorded them.
    notified: Vec<Notified>,
    /// Operations that one rank does alone.
    one_sided: u64,
    /// Collectives without a partner in the capture.
    unmatched: u64,
}

/// The clock of a rank against that of the first.
#[derive(Serialize, JsonSchema)]
struct Clock {
    ahead_ns: i64,
    /// Collectives that it was read from.
    collectives: usize,
    drift_ppm: f64,
    rank: u32,
    uncertainty_ns: i64,
}

/// A group of ranks that communicate.
#[derive(Serialize, JsonSchema)]
struct Group {
    /// Collectives that were matched.
    collectives: usize,
    name: Option<String>,
    /// Those that are in the capture.
    ranks: Vec<u32>,
    /// How many ranks it has, if known.
    size: Option<u32>,
}

/// Time that one rank waited for another.
#[derive(Serialize, JsonSchema)]
struct Notified {
    ns: i64,
    rank: u32,
    waited_for: u32,
}

/// Groups, what was not matched, and the clocks.
pub(super) fn job(job: &JobPart) -> Job {
    let clocks = job.clocks.iter().map(|(rank, clock)| Clock {
        ahead_ns: clock.ahead,
        collectives: clock.collectives,
        drift_ppm: clock.drift_ppm,
        rank: *rank,
        uncertainty_ns: clock.uncertainty,
    });
    let groups = job.groups.iter().map(|group| Group {
        collectives: group.collectives,
        name: group.name.as_deref().map(plain),
        ranks: group.ranks.clone(),
        size: group.size,
    });
    let notified = job.notified.iter().map(|(rank, peer, ns)| Notified { ns: *ns, rank: *rank, waited_for: *peer });
    Job {
        clocks: clocks.collect(),
        groups: groups.collect(),
        notified: notified.collect(),
        one_sided: job.one_sided,
        unmatched: job.unmatched,
    }
}

/// Time of a class after waits were moved to their causes; layers and `unassigned` add up to the window.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reassigned {
    causes: Vec<LateRank>,
    #[schemars(schema_with = "words::layers")]
    layers: BTreeMap<&'static str, i64>,
    /// What the late ranks' longer work does not explain.
    residual: Option<Residual>,
    /// Waits whose ranks left the collective too far apart to be sure of the cause.
    skewed: usize,
    /// Waits without known cause, ns.
    unassigned: i64,
    /// Waits in collectives.
    waits: usize,
}

/// What a late rank spent longer on while others waited.
#[derive(Serialize, JsonSchema)]
struct LateRank {
    bucket: String,
    late_rank: u32,
    #[schemars(schema_with = "words::layer")]
    layer: Layer,
    ns: i64,
}

/// How far causes and waits are apart.
#[derive(Serialize, JsonSchema)]
struct Residual {
    max_ns: i64,
    median_ns: i64,
    waits: usize,
}

/// Layers after waits were moved to their causes.
pub(super) fn reassigned(moved: &Moved) -> Reassigned {
    let causes = moved.causes.iter().map(|(rank, bucket, layer, ns)| LateRank {
        bucket: plain(bucket),
        late_rank: *rank,
        layer: *layer,
        ns: *ns,
    });
    Reassigned {
        causes: causes.collect(),
        layers: Layer::ALL.into_iter().map(Layer::key).zip(moved.layers).collect(),
        residual: moved.residual.map(|(waits, median_ns, max_ns)| Residual { max_ns, median_ns, waits }),
        skewed: moved.waits.1,
        unassigned: moved.unassigned,
        waits: moved.waits.0,
    }
}
