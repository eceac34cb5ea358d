//! What a pair of captures may be asked, and from which question on a field of the manifest matters.
//!
//! The questions go from narrow to wide: each rests on everything that the one before it rests on. What is *known to differ*
//! refuses early, what is merely *unknown* refuses only the questions that cannot be answered without it: nobody needs the
//! arrival process of requests to compare two decode steps of one batch, but two that are known to differ are two workloads.

use model::manifest::{Field, Group};

/// A kind of statement about a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Of single operators.
    Op,
    /// Of decode steps: time per output token at one batch.
    Step,
    /// Of requests: time to first token, throughput under a load.
    E2e,
    /// Of money per token.
    Cost,
    /// Of energy per token.
    Energy,
}

impl Claim {
    /// All, narrow to wide.
    pub const ALL: [Self; 5] = [Self::Op, Self::Step, Self::E2e, Self::Cost, Self::Energy];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Step => "step",
            Self::E2e => "e2e",
            Self::Cost => "cost",
            Self::Energy => "energy",
        }
    }

    /// This and every wider one.
    pub(super) fn and_wider(self) -> Vec<Self> {
        Self::ALL.into_iter().filter(|claim| *claim >= self).collect()
    }
}

/// Fields without which no operator can be compared, where the work itself does not show them: which model, over how long a
/// context, in which batch, on how many ranks. What else is unknown goes with every number.
const OPERATOR: &[&str] = &["model.name", "workload.prompt_len", "caps.batch", "parallel.tp"];
/// Fields of the requests, which a single operator does not see.
const REQUESTS: &[&str] = &[
    "workload.dataset",
    "workload.output_len",
    "workload.requests",
    "workload.arrival",
    "workload.concurrency",
    "workload.stop_rule",
    "workload.sampling",
    "workload.seed",
    "workload.prefix_cache_hit",
    "measurement.metric",
    "quality.generated_tokens",
];

/// Claims that are refused while a hard field is unknown.
pub fn refused_unknown(field: &Field) -> Vec<Claim> {
    let from = if OPERATOR.contains(&field.key) { Claim::Op } else { Claim::E2e };
    from.and_wider()
}

/// Claims that are refused where a hard field differs. Systems of different size may be compared by what they cost and use.
pub fn refused_different(field: &Field) -> Vec<Claim> {
    let requests = matches!(field.group, Group::Service | Group::Warmup) || REQUESTS.contains(&field.key);
    let from = if requests { Claim::Step } else { Claim::Op };
    let system = |claim: &Claim| matches!(claim, Claim::Cost | Claim::Energy);
    from.and_wider().into_iter().filter(|claim| field.group != Group::Parallel || !system(claim)).collect()
}

/// Whether a run may be made to find out what this field does. What a model is asked and what it answers is never the thing
/// that is studied: such runs did different work.
pub fn may_be_studied(field: &Field) -> bool {
    matches!(
        field.group,
        Group::Precision | Group::Parallel | Group::Caps | Group::Software | Group::Hardware | Group::Tuning
    )
}
