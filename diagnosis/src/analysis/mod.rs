//! Pure functions from a capture's columns to what its steps are made of. No SQL, no UI, no text for people.
//!
//! | module | owns |
//! | --- | --- |
//! | [`bucket`] | buckets and layers |
//! | [`timeline`] | device operations of one rank with their launch calls |
//! | [`graph_capture`] | what replayed kernels are, told by the trace of their graphs' capture |
//! | [`host`] | what each host thread was doing, as a partition of time |
//! | [`launch_shape`] | how launches cut their work, and the rows that it shows |
//! | [`anchor`] | where steps begin |
//! | [`sequences`] | how long the sequences are that a step attends with |
//! | [`model`](mod@self::model) | ranks, steps, classes: what an analysis says |
//! | [`pipeline`] | who orders the analysis; the windows of the steps |
//! | `classes` | classes of steps, warm-up and steady state |
//! | `step_facts` | what is known of the work of a step |
//! | `class_keys` | which steps are one class, and what it is called |
//! | [`workload`] | the steps that belong together however their batch changes |
//! | [`equal_work`] | what steps of unequal work would take by their work alone |
//! | [`attribution`] | the sweep that gives every nanosecond one bucket |
//! | [`idle`] | which operation ends an idle gap, and why the gap was there |
//! | [`nest`] | the records of a host thread as a tree |
//! | [`owners`] | what the host was doing in it: the record that owns it |
//! | [`collective`] | transfer and wait on one rank |
//! | [`notify`] | waits that a source reports inside its collectives |
//! | [`job`] | what several ranks did together: collectives matched across ranks |
//! | [`job_sums`] | what sums of a job's steps and links allow to say |
//! | [`wait`] | for what on which other rank each rank waited |
//! | [`clock`] | offsets between the ranks' clocks, for display |
//! | [`dtype`] | data types as names of kernels and recorded inputs show them |
//! | [`lead`] | what the host does alone before the only step's first device operation |
//! | [`launching`] | operators behind launch calls, with what was recorded of them |
//! | [`op_shapes`] | shapes of the operators behind kernels, and what follows from them |
//! | [`manifest_inference`] | what a capture shows of its run that nobody said of it |
//! | [`edit`] | elementary changes to a recorded run |
//! | [`replay`] | what the steps would take after such changes |
//! | `logged` | steps that a log times |
//! | [`integrity`] | signs that a trace cannot be taken at face value |
//! | [`places`](mod@places) | where work ran: the accelerators of each process |
//! | [`loss`] | what of the run the capture lacks |
//! | `passes` | steps found as equal passes that repeat |
//! | [`period`] | layers found as tandem repeats |
//! | [`inflation`] | by how much tracing made a step longer |
//! | [`jitter`] | slow steps against the median one |
//! | [`median`](mod@median) | the middle of many durations |
//! | [`touched`] | whether the device was used at all |
//! | [`scheduler`] | what the engine's scheduler said of itself |
//! | [`evidence`] | what the capture can and cannot show |

mod align;
pub mod anchor;
pub mod attribution;
pub mod bucket;
mod class_keys;
mod classes;
pub mod clock;
pub mod collective;
pub mod contradiction;
mod convolved;
mod device_waits;
pub mod dtype;
pub mod edit;
pub mod equal_work;
pub mod evidence;
mod forward_calls;
pub mod graph_capture;
mod graph_holes;
pub mod host;
pub mod idle;
pub mod inflation;
pub mod integrity;
pub mod jitter;
pub mod job;
pub mod job_sums;
pub mod launch_shape;
pub mod launching;
pub mod lead;
mod loading;
mod logged;
pub mod loss;
pub mod manifest_inference;
mod matching;
pub mod measured;
pub mod median;
pub mod model;
pub mod nest;
pub mod notify;
pub mod op_shapes;
pub mod owners;
mod passes;
pub mod period;
pub mod pipeline;
pub mod places;
pub mod replay;
mod routed;
mod sampled;
pub mod scheduler;
mod segments;
pub mod sequences;
mod spans;
pub mod stated;
mod step_facts;
pub mod task_queue;
pub mod timeline;
pub mod touched;
mod training;
pub mod wait;
pub mod workload;

pub use self::model::{Analysis, Class, Facts, GraphMode, Jitter, Options, Rank, Selection, Step};
pub use anchor::{Anchor, AnchorKind, Confidence};
pub use bucket::{Bucket, CopyDir, HostLabel, Layer, Shadow};
pub use edit::Edit;
pub use integrity::Integrity;
pub use job::Job;
pub use loss::Loss;
pub use measured::{Joined, Measured};
pub use median::median;
pub use owners::{Owner, Owners};
pub use period::Period;
pub use pipeline::analyze;
pub use places::{Place, places, rank_count};
pub use scheduler::{RankCounter, Scheduler};
pub use timeline::{Call, DeviceOp, OpKind, Timeline};
pub use workload::Workload;

/// The path by which reports name [`Shadow`].
pub mod steps {
    pub use super::bucket::Shadow;
}

#[cfg(any(test, feature = "script"))]
pub mod job_script;
#[cfg(test)]
mod launch_tests;
#[cfg(test)]
mod ranks_tests;
#[cfg(any(test, feature = "script"))]
pub mod script;
#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod tests;
