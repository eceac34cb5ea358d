//! What several ranks did together, as JSON values.

use serde_json::{Value, json};

use super::plain;
use crate::job::{JobPart, Moved};
use diagnosis::analysis::Layer;

/// Groups, what was not matched, and the clocks.
pub(super) fn job(job: &JobPart) -> Value {
    json!({
        "groups": job.groups.iter().map(|group| json!({
            "name": group.name.as_deref().map(plain), "ranks": group.ranks, "size": group.size,
            "collectives": group.collectives,
        })).collect::<Vec<_>>(),
        "unmatched": job.unmatched,
        "one_sided": job.one_sided,
        "notified": job.notified.iter().map(|(rank, peer, ns)| json!({
            "rank": rank, "waited_for": peer, "ns": ns,
        })).collect::<Vec<_>>(),
        "clocks": job.clocks.iter().map(|(rank, clock)| json!({
            "rank": rank, "ahead_ns": clock.ahead, "drift_ppm": clock.drift_ppm, "uncertainty_ns": clock.uncertainty,
            "collectives": clock.collectives,
        })).collect::<Vec<_>>(),
    })
}

/// Layers after waits were moved to their causes; with `unassigned` they add up to the window.
pub(super) fn reassigned(moved: &Moved) -> Value {
    let layers: serde_json::Map<String, Value> =
        Layer::ALL.iter().zip(moved.layers).map(|(layer, ns)| (layer.key().to_owned(), ns.into())).collect();
    json!({
        "layers": layers,
        "unassigned": moved.unassigned,
        "waits": moved.waits.0,
        "skewed": moved.waits.1,
        "residual": moved.residual.map(|(waits, median, most)| json!({ "waits": waits, "median_ns": median, "max_ns": most })),
        "causes": moved.causes.iter().map(|(rank, bucket, layer, ns)| json!({
            "late_rank": rank, "bucket": plain(bucket), "layer": layer, "ns": ns,
        })).collect::<Vec<_>>(),
    })
}
