//! What the replay says beside the single estimates, as JSON.

use super::plain;
use diagnosis::{
    analysis::replay::CriticalPath,
    diagnose::{Counterfactual, Interaction, Joint, RankCheck},
};

/// Self-check of the replay rank by rank, and what the first findings gain together.
pub(super) fn checks(replay: &Counterfactual) -> serde_json::Value {
    let check = |c: &RankCheck| {
        serde_json::json!({
            "rank": c.rank, "class": plain(&c.class), "steps": c.check.steps, "passed": c.check.passed(),
            "median_error": c.check.median, "p95_error": c.check.p95,
        })
    };
    let joint = |j: &Joint| {
        serde_json::json!({
            "rules": j.rules, "class": plain(&j.class), "from_ns": j.estimate.from,
            "to_ns_low": j.estimate.to_low, "to_ns_high": j.estimate.to_high,
        })
    };
    let pair = |i: &Interaction| serde_json::json!({ "rules": i.rules, "ns": i.ns });
    serde_json::json!({
        "checks": replay.checks.iter().map(check).collect::<Vec<_>>(),
        "joint": replay.joint.as_ref().map(joint),
        "interactions": replay.interactions.iter().map(pair).collect::<Vec<_>>(),
    })
}

/// The chain of work and waiting that makes a step as long as it is.
pub(super) fn critical_path(path: &CriticalPath) -> serde_json::Value {
    let layers: serde_json::Map<String, serde_json::Value> =
        path.layers.iter().map(|(layer, ns)| (layer.key().to_owned(), (*ns).into())).collect();
    serde_json::json!({
        "rank": path.rank, "class": plain(&path.class), "step": path.step, "length_ns": path.length,
        "layers": layers, "hops": path.hops, "ops": path.ops,
    })
}
