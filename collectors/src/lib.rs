//! Live sources: what happens on this machine while it happens, written into the same sink as a file of another profiler.
//!
//! | module | owns |
//! | --- | --- |
//! | [`cupti`] | what CUDA does in this process |
//! | [`engine_run`] | a run of the reference engine |
//! | [`engine_watch`] | its steps as they end, summed |
//! | `op_shapes` | what the operators of a program work on |
//! | [`host`] | what this machine is |
//! | [`telemetry`] | what this machine does meanwhile: counters and the thread that samples them |
//! | [`metrics`] | what a serving engine says of itself |
//! | [`record`] | a vendor's profiler around a command |
//! | [`mspti`] | what CANN does in this process |
//! | [`program`] | programs of this machine |

mod activity;
pub mod cupti;
pub mod engine_run;
pub mod engine_watch;
pub mod host;
pub mod metrics;
pub mod mspti;
mod op_shapes;
pub mod program;
pub mod record;
pub mod telemetry;
