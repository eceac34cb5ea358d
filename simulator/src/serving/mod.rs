//! What real serving adds to a run: a batch that changes as requests join and leave, prompts computed beside decode,
//! contexts that grow, kernels whose time and grid follow from their shapes, hosts that stall now and then, and stages of
//! a pipeline.
//!
//! | module | owns |
//! | --- | --- |
//! | [`model`] | dimensions of models, and what devices can do |
//! | [`schedule`] | which requests are in each step |
//! | [`cost`] | how long a kernel takes with these shapes |
//! | [`geometry`] | its tile and its grid |
//! | [`names`] | its name |
//! | [`load`] | kinds of healthy serving, and how they are drawn |

use serde::{Deserialize, Serialize};

pub(crate) mod cost;
pub(crate) mod geometry;
mod load;
mod model;
pub(crate) mod names;
pub(crate) mod schedule;

pub use load::{CALL_FOR, Load};
pub use model::{Accelerator, Model};

/// The serving that a run is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// What is served.
    pub model: Model,
    /// On what.
    pub accelerator: Accelerator,
    /// Whether a compiler wrote the kernels between the matrix products.
    pub inductor: bool,
    /// How requests come and go; the batch stays the same without it.
    pub churn: Option<Churn>,
    /// Standard deviation of the logarithm of kernel times, in parts per thousand.
    pub sigma_permille: i64,
    /// Share of the steps in which a healthy host stalls for 1 to 5 ms, in parts per thousand.
    pub hiccup_permille: i64,
    /// Stages of the pipeline; 1 for none.
    pub stages: usize,
    /// Batches that are under way in them at a time.
    pub in_flight: usize,
    /// Steps from one to the next of a fault's rare events.
    pub event_every: i64,
    /// Bytes of a weight.
    pub weight_bytes: i64,
    /// Whether the program names what it does between and before the forward passes.
    pub named_host: bool,
}

/// How requests come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Churn {
    /// Mean steps that a request stays.
    pub output_tokens: i64,
    /// Where prompts are computed.
    pub prompts: Prompts,
    /// Mean tokens of a prompt.
    pub prompt_tokens: i64,
}

/// Where the prompt of a request that joins is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompts {
    /// By another engine, or it is in the cache: requests join without a prompt.
    Elsewhere,
    /// In a step of its own, while decode waits.
    OwnStep,
    /// In chunks beside decode.
    Chunked,
}

/// Sizes that graphs are captured for.
pub(crate) fn graph_rows(rows: i64) -> i64 {
    match rows {
        ..=1 => 1,
        2 => 2,
        3..=4 => 4,
        5..=8 => 8,
        _ => (rows + 7) / 8 * 8,
    }
}

#[cfg(test)]
mod tests {
    use super::graph_rows;

    #[test]
    fn a_graph_is_the_next_captured_size() {
        let sizes = [1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 33].map(graph_rows);
        assert_eq!(sizes, [1, 2, 4, 4, 8, 8, 16, 16, 16, 24, 40]);
    }
}
