//! Live sources: what happens on this machine while it happens, written into the same sink as a file of another profiler.
//!
//! | module | owns |
//! | --- | --- |
//! | [`engine_run`] | a run of the reference engine |
//! | `op_shapes` | what the operators of a program work on |
//! | [`host`] | what this machine is |
//! | [`telemetry`] | what this machine does meanwhile: counters and the thread that samples them |

pub mod engine_run;
pub mod host;
mod op_shapes;
pub mod telemetry;
