//! What the replay says beside the single estimates, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{plain, words};
use diagnosis::{analysis::replay::CriticalPath, diagnose::Counterfactual};

/// How far the replay can be trusted, and what findings gain together.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Replay")]
pub(super) struct Replayed {
    checks: Vec<SelfCheck>,
    interactions: Vec<Interaction>,
    joint: Option<Together>,
}

/// How well the replay meets the recorded steps of a rank without any change.
#[derive(Serialize, JsonSchema)]
struct SelfCheck {
    class: String,
    /// Share of the step.
    median_error: f64,
    p95_error: f64,
    passed: bool,
    rank: u32,
    steps: usize,
}

/// What two findings gain together, beside the sum of both.
#[derive(Serialize, JsonSchema)]
struct Interaction {
    /// Negative where one hides a part of the other.
    ns: i64,
    rules: Vec<&'static str>,
}

/// A step with several changes carried out together.
#[derive(Serialize, JsonSchema)]
struct Together {
    class: String,
    from_ns: i64,
    rules: Vec<&'static str>,
    to_ns_high: i64,
    to_ns_low: i64,
}

/// Self-check of the replay rank by rank, and what the first findings gain together.
pub(super) fn checks(replay: &Counterfactual) -> Replayed {
    let checks = replay.checks.iter().map(|c| SelfCheck {
        class: plain(&c.class),
        median_error: c.check.median,
        p95_error: c.check.p95,
        passed: c.check.passed(),
        rank: c.rank,
        steps: c.check.steps,
    });
    let interactions = replay.interactions.iter().map(|i| Interaction { ns: i.ns, rules: i.rules.to_vec() });
    Replayed {
        checks: checks.collect(),
        interactions: interactions.collect(),
        joint: replay.joint.as_ref().map(|j| Together {
            class: plain(&j.class),
            from_ns: j.estimate.from,
            rules: j.rules.clone(),
            to_ns_high: j.estimate.to_high,
            to_ns_low: j.estimate.to_low,
        }),
    }
}

/// The chain of work and waiting that makes a step as long as it is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CriticalPath")]
pub(super) struct Chain {
    class: String,
    /// How often it goes over to another rank.
    hops: usize,
    #[schemars(schema_with = "words::layers")]
    layers: BTreeMap<&'static str, i64>,
    length_ns: i64,
    /// Operations on it.
    ops: usize,
    rank: u32,
    step: u32,
}

/// A critical path.
pub(super) fn critical_path(path: &CriticalPath) -> Chain {
    Chain {
        class: plain(&path.class),
        hops: path.hops,
        layers: path.layers.iter().map(|(layer, ns)| (layer.key(), *ns)).collect(),
        length_ns: path.length,
        ops: path.ops,
        rank: path.rank,
        step: path.step,
    }
}
