//! What a class looks like beside its sums, as JSON: where its idle time lies, what its attention saw, what it copied,
//! what its replayed kernels are.

use schemars::JsonSchema;
use serde::Serialize;

use super::plain;
use crate::{idle, model, replayed};

/// Idle time that lies together: in one gap, or at the start of the steps.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Idle {
    /// One long gap.
    Gap {
        /// Kernel that ends it.
        before: Option<String>,
        #[schemars(schema_with = "gap")]
        kind: &'static str,
        ns: i64,
        /// Calls in it by which the host prepares code or graphs.
        preparing: Vec<String>,
    },
    /// The first fifth of the steps.
    Start {
        all_ns: i64,
        early_ns: i64,
        #[schemars(schema_with = "start")]
        kind: &'static str,
    },
}

fn gap(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": "gap" })
}

fn start(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": "start" })
}

/// Idle time that lies together: `kind` says whether in one gap or at the start of the steps.
pub(super) fn idle(idle: &idle::Idle) -> Idle {
    match idle {
        idle::Idle::Gap { ns, before, preparing } => Idle::Gap {
            before: (!before.is_empty()).then(|| plain(before)),
            kind: "gap",
            ns: *ns,
            preparing: preparing.iter().map(|call| plain(call)).collect(),
        },
        idle::Idle::Start { early, all } => Idle::Start { all_ns: *all, early_ns: *early, kind: "start" },
    }
}

/// Queries and keys per sequence in attention.
#[derive(Serialize, JsonSchema)]
pub(super) struct Attended {
    keys: u64,
    queries: u64,
}

/// Queries and keys per sequence in attention.
pub(super) fn attended((queries, keys): (u64, u64)) -> Attended {
    Attended { keys, queries }
}

/// Copies of one direction over the steps that count.
#[derive(Serialize, JsonSchema)]
pub(super) struct Copies {
    bytes: i64,
    count: u64,
    name: &'static str,
    /// Of those that say their bytes.
    time_ns: i64,
}

/// Blocking copies of one direction over the steps that count, of which the capture holds the calls and not the copies.
#[derive(Serialize, JsonSchema)]
pub(super) struct UntracedCopies {
    bytes: i64,
    /// What the calls reach at least: a part of their time may be no transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
    count: u64,
    name: &'static str,
    /// Of the calls.
    time_ns: i64,
}

/// Blocking copies of one direction that were not traced.
pub(super) fn untraced_copies(copies: &model::Copies) -> UntracedCopies {
    let model::Copies { name, count, bytes, time } = *copies;
    UntracedCopies { bytes, bytes_per_second: copies.rate(), count, name, time_ns: time }
}

/// Copies of one direction.
pub(super) fn copies(copies: &model::Copies) -> Copies {
    Copies { bytes: copies.bytes, count: copies.count, name: copies.name, time_ns: copies.time }
}

/// What launched replayed kernels when their graph was captured; what is not known is null.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReplayedKernels {
    count: u64,
    exclusive_ns: i64,
    module: Option<String>,
    operator: Option<String>,
    shapes: Option<String>,
}

/// Replayed kernels of one operator.
pub(super) fn replayed(row: &replayed::Replayed) -> ReplayedKernels {
    let said = |text: &str| (!text.is_empty()).then(|| plain(text));
    ReplayedKernels {
        count: row.count,
        exclusive_ns: row.busy,
        module: said(&row.module),
        operator: said(&row.operator),
        shapes: said(&row.shapes),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn both_kinds_of_idle_time_say_which_they_are() {
        let json_of = |idle_time: idle::Idle| serde_json::to_value(idle(&idle_time)).unwrap();
        let gap = idle::Idle::Gap { ns: 820, before: "b".into(), preparing: vec!["cuModuleLoadData".into()] };
        let told = json!({ "kind": "gap", "ns": 820, "before": "b", "preparing": ["cuModuleLoadData"] });
        assert_eq!(json_of(gap), told);
        let unread = json_of(idle::Idle::Gap { ns: 820, before: String::new(), preparing: Vec::new() });
        assert_eq!(unread["before"], serde_json::Value::Null, "what was not read is absent");
        let start = json_of(idle::Idle::Start { early: 9, all: 10 });
        assert_eq!(start, json!({ "kind": "start", "early_ns": 9, "all_ns": 10 }));
    }
}
