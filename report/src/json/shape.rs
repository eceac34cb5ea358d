//! What a class looks like beside its sums, as JSON: where its idle time lies, what its attention saw, what it copied,
//! what its replayed kernels are.

use serde_json::{Value, json};

use super::plain;
use crate::{idle::Idle, model::Copies, replayed::Replayed};

/// Idle time that lies together: `kind` says whether in one gap or at the start of the steps.
pub(super) fn idle(idle: &Idle) -> Value {
    match idle {
        Idle::Gap { ns, before, preparing } => json!({
            "kind": "gap", "ns": ns, "before": (!before.is_empty()).then(|| plain(before)),
            "preparing": preparing.iter().map(|call| plain(call)).collect::<Vec<_>>(),
        }),
        Idle::Start { early, all } => json!({ "kind": "start", "early_ns": early, "all_ns": all }),
    }
}

/// Queries and keys per sequence in attention.
pub(super) fn attended((queries, keys): (u64, u64)) -> Value {
    json!({ "queries": queries, "keys": keys })
}

/// Copies of one direction over the steps that count; `time_ns` is of those that say their bytes.
pub(super) fn copies(copies: &Copies) -> Value {
    json!({ "name": copies.name, "count": copies.count, "bytes": copies.bytes, "time_ns": copies.time })
}

/// What launched replayed kernels when their graph was captured; what is not known is absent.
pub(super) fn replayed(row: &Replayed) -> Value {
    let said = |text: &str| (!text.is_empty()).then(|| plain(text));
    json!({
        "operator": said(&row.operator), "shapes": said(&row.shapes), "module": said(&row.module),
        "count": row.count, "exclusive_ns": row.busy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_idle_time_say_which_they_are() {
        let gap = Idle::Gap { ns: 820, before: "b".into(), preparing: vec!["cuModuleLoadData".into()] };
        let told = json!({ "kind": "gap", "ns": 820, "before": "b", "preparing": ["cuModuleLoadData"] });
        assert_eq!(idle(&gap), told);
        assert_eq!(
            idle(&Idle::Gap { ns: 820, before: String::new(), preparing: Vec::new() })["before"],
            Value::Null,
            "what was not read is absent"
        );
        let start = idle(&Idle::Start { early: 9, all: 10 });
        assert_eq!(start, json!({ "kind": "start", "early_ns": 9, "all_ns": 10 }));
    }
}
