//! What the engine counts of itself. Profilers have no records of it; the captures carry it as counter events of the
//! trace-event format (`"ph": "C"`, one per name and change, the value under the name itself). The names are those of
//! vLLM's metrics where it has them, without their prefix and unit suffix:
//!
//! | name | value at the moment of the event |
//! | --- | --- |
//! | `num_requests_running` | requests in the batch |
//! | `num_requests_waiting` | requests in the queue |
//! | `kv_cache_usage` | used share of the KV cache, 0 to 1 |
//! | `num_preemptions` | requests preempted since the engine started |
//! | `spec_draft_tokens` | tokens drafted since the engine started |
//! | `spec_accepted_tokens` | drafted tokens accepted since the engine started |
//! | `num_scheduled_tokens` | tokens of the step, without padding |
//! | `num_padded_tokens` | rows that the step's kernels work on, with padding |
//! | `context_tokens` | mean tokens in the KV cache of a sequence |
//! | `moe_tokens` | tokens that this rank's experts got in the step, all layers together |
//! | `moe_padded_tokens` | rows that they worked on, with padding, all layers together |
//!
//! The first eight are of the whole engine, the others of the rank whose file they stand in. A step's values are set
//! when the step is scheduled.

/// A value from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// Name, one of the table above.
    pub name: &'static str,
    /// When (ns).
    pub at: i64,
    /// Value.
    pub value: f64,
}

pub(crate) const RUNNING: &str = "num_requests_running";
pub(crate) const WAITING: &str = "num_requests_waiting";
pub(crate) const CACHE: &str = "kv_cache_usage";
pub(crate) const PREEMPTIONS: &str = "num_preemptions";
pub(crate) const DRAFTED: &str = "spec_draft_tokens";
pub(crate) const ACCEPTED: &str = "spec_accepted_tokens";
pub(crate) const SCHEDULED: &str = "num_scheduled_tokens";
pub(crate) const PADDED: &str = "num_padded_tokens";
pub(crate) const CONTEXT: &str = "context_tokens";
pub(crate) const EXPERT_TOKENS: &str = "moe_tokens";
pub(crate) const EXPERT_ROWS: &str = "moe_padded_tokens";
