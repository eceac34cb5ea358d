//! A discrete-event generator of decode captures whose truth is known. It examines the analysis, so it shares no code
//! and no semantics with it: it knows why each nanosecond passed because it made it pass.
//!
//! | module | owns |
//! | --- | --- |
//! | [`config`] | every parameter, and how configurations are drawn |
//! | [`counter`] | what the engine counts of itself, and its names |
//! | [`fault`] | what can be wrong, and which rule should say so |
//! | [`job`] | the ranks of a job, what they do together, and its files |
//! | [`kernel`] | slots of the model, their classes and kernel names |
//! | [`record`] | host events and device operations |
//! | [`run`] | one rank's run, its truth and its files |
//! | [`samples`] | the captures that the repository carries |
//! | [`serving`] | what real serving adds: churn, prompts, shapes, stages |
//! | [`truth`] | the exclusive attribution of a run |
//!
//! ```
//! let run = simulator::simulate(&simulator::Config::draw(7));
//! let truth = run.truth();
//! assert!(truth.steps.iter().all(|step| step.buckets.values().sum::<i64>() == step.end - step.start));
//! ```

mod ascend;
mod clock;
pub mod config;
pub mod counter;
mod database;
mod decode;
mod engine;
pub mod fault;
mod forward;
mod hipprof;
mod inserts;
pub mod job;
pub mod kernel;
mod kineto;
mod machine;
mod meeting;
mod nsys;
mod random;
pub mod record;
mod rocpd;
pub mod run;
pub mod samples;
mod seat;
pub mod serving;
mod step;
mod texts;
pub mod truth;

pub use ascend::{Form as AscendForm, Level as AscendLevel, Output as AscendOutput};
pub use config::Config;
pub use fault::{Control, Fault, FaultKind, Layer, MAGNITUDES, Strength};
pub use job::{CollectiveTruth, Job, JobTruth, StageTruth, simulate_job};
pub use run::{Run, Truth, WriteError, simulate};
pub use serving::{Load, Serving};
