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
//! | [`steps`] | windows, classes, warm-up and steady state |
//! | [`attribution`] | the sweep that gives every nanosecond one bucket |
//! | [`idle`] | who owns an idle gap, and why |
//! | [`collective`] | transfer and wait on one rank |
//! | [`notify`] | waits that a source reports inside its collectives |
//! | [`job`] | what several ranks did together: collectives matched across ranks |
//! | [`job_sums`] | what sums of a job's steps and links allow to say |
//! | [`wait`] | for what on which other rank each rank waited |
//! | [`clock`] | offsets between the ranks' clocks, for display |
//! | [`dtype`] | data types as names of kernels and recorded inputs show them |
//! | [`op_shapes`] | shapes of the operators behind kernels, and what follows from them |
//! | [`shown`] | what a capture shows of its run that nobody said of it |
//! | [`edit`] | elementary changes to a recorded run |
//! | [`replay`] | what the steps would take after such changes |
//! | `logged` | steps that a log times |
//! | [`period`] | layers found as tandem repeats |
//! | [`inflation`] | by how much tracing made a step longer |
//! | [`jitter`] | slow steps against the median one |
//! | [`median`](mod@median) | the middle of many durations |
//! | [`scheduler`] | what the engine's scheduler said of itself |
//! | [`evidence`] | what the capture can and cannot show |

mod align;
pub mod anchor;
pub mod attribution;
pub mod bucket;
mod classes;
pub mod clock;
pub mod collective;
pub mod dtype;
pub mod edit;
pub mod evidence;
pub mod graph_capture;
pub mod host;
pub mod idle;
pub mod inflation;
pub mod jitter;
pub mod job;
pub mod job_sums;
pub mod launch_shape;
mod logged;
mod matching;
pub mod measured;
pub mod median;
pub mod notify;
pub mod op_shapes;
pub mod period;
pub mod replay;
pub mod scheduler;
mod segments;
pub mod sequences;
pub mod shown;
pub mod steps;
pub mod task_queue;
pub mod timeline;
mod training;
pub mod wait;

use model::{Evidence, Ns, ProcessId, StringId, Trace};

pub use anchor::{Anchor, AnchorKind, Confidence};
pub use bucket::{Bucket, CopyDir, HostLabel, Layer};
pub use edit::Edit;
pub use jitter::Jitter;
pub use job::Job;
pub use measured::{Joined, Measured};
pub use median::median;
pub use period::Period;
pub use scheduler::{RankCounter, Scheduler};
pub use steps::{Class, GraphMode, Selection, Step};
pub use timeline::{Call, DeviceOp, OpKind, Timeline};

use crate::platform::{Chip, OpMatch, Packs, SemanticsCard};

/// What the user may narrow down.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these step indices, first and last included.
    pub steps: Option<(u32, u32)>,
    /// Only this rank.
    pub rank: Option<u32>,
}

/// Everything known about one capture.
pub struct Analysis {
    /// Ranks: each a (process, device) pair with work on it.
    pub ranks: Vec<Rank>,
    /// What the ranks did together.
    pub job: Job,
    /// Evidence the capture holds.
    pub evidence: Evidence,
    /// How this source's records are to be read.
    pub card: SemanticsCard,
    /// What is published of the chips that the names of its devices are known for.
    pub chips: rustc_hash::FxHashMap<StringId, Chip>,
    /// Names behind [`HostLabel`].
    pub host_labels: Vec<String>,
    /// Canonical operator of each device name.
    pub ops: rustc_hash::FxHashMap<StringId, OpMatch>,
    /// Device time of names that a pattern mapped, over all device time; `None` without device time.
    pub op_coverage: Option<f64>,
    /// Device names that no pattern mapped, with their device time, longest first.
    pub unmapped: Vec<(StringId, i64)>,
    /// What is wrong with the trace itself.
    pub integrity: Integrity,
    /// Measurements of its kernels that were taken apart from the run.
    pub measured: Measured,
}

/// Signs that a trace cannot be taken at face value (rule CP-05).
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Integrity {
    /// Device operations considered.
    pub device_ops: u64,
    /// Operations that start before their launch call starts.
    pub before_launch: u64,
    /// Longest time by which a device's clock lags behind the host's, ns, as far as that shows; idle time is explained with
    /// the host's times moved so.
    pub lag: Ns,
    /// Operations whose launch is unknown.
    pub unlinked: u64,
    /// Of those, operations that ran on their queue before the first one whose launch is known: they were launched before
    /// the recording began, and nothing was lost.
    pub before_recording: u64,
    /// Calls that issued device work of which no record exists, of processes that drive one device.
    pub unrecorded: u64,
    /// Operations of the steps that count.
    pub judged: u64,
    /// Of those, operations whose launch is unknown.
    pub judged_unlinked: u64,
    /// Neighbouring operations of one queue whose gap could be measured.
    pub gaps: u64,
    /// Of those, gaps of at most 2 ns: durations that hold the dispatch time, not true back-to-back starts.
    pub zero_gaps: u64,
    /// Operations that overlap another one of their queue.
    pub overlapping: u64,
}

impl Integrity {
    /// Share of the operations whose launch, or of the launches whose operation, may be lost before a trace cannot be taken
    /// at face value; own value.
    pub const LOST: f64 = 0.02;

    /// Whether more than [`Self::LOST`] of the launches, or of what was launched, is missing although launches are recorded.
    pub fn is_broken(&self) -> bool {
        let links = self.unlinked < self.device_ops;
        links && (self.lost_launches() > Self::LOST || self.lost_operations() > Self::LOST)
    }

    /// Share of the operations whose launch was recorded and then lost, in 0..=1.
    pub fn lost_launches(&self) -> f64 {
        self.unlinked.saturating_sub(self.before_recording) as f64 / self.device_ops.max(1) as f64
    }

    /// Share of the operations that were launched and not recorded, in 0..=1.
    pub fn lost_operations(&self) -> f64 {
        self.unrecorded as f64 / (self.unrecorded + self.device_ops).max(1) as f64
    }

    /// Share of the operations of the steps that count whose launch is unknown, in 0..=1.
    pub fn judged_without_launch(&self) -> f64 {
        self.judged_unlinked as f64 / self.judged.max(1) as f64
    }
}

/// One accelerator as one process drove it.
pub struct Rank {
    /// Rank in the job if the source says it, else the position in the capture.
    pub rank: u32,
    /// Owning process.
    pub process: ProcessId,
    /// Device ordinal in that process.
    pub device: i32,
    /// Device operations and launch calls.
    pub timeline: Timeline,
    /// How the steps were found.
    pub anchor: Anchor,
    /// Steps in time order; their windows tile the run.
    pub steps: Vec<Step>,
    /// Step classes in order of total time, longest first.
    pub classes: Vec<Class>,
    /// Idle gaps in time order.
    pub gaps: Vec<idle::Gap>,
    /// Per device operation: exclusive ns and idle ns that it owns.
    pub exclusive: Vec<attribution::Exclusive>,
    /// Layer structure of the median step of the main class.
    pub period: Option<Period>,
    /// Whether transfer and wait of collectives were told apart, and how.
    pub collectives: collective::Split,
}

impl Rank {
    /// The class the verdict is about: decode if there is any, else the one with the most time.
    pub fn main_class(&self) -> Option<&Class> {
        let decode = |c: &&Class| c.stage == crate::platform::Stage::Decode && c.steady > 0;
        self.classes.iter().find(decode).or_else(|| self.classes.iter().find(|c| c.steady > 0)).or(self.classes.first())
    }

    /// The steps of a class that count.
    pub fn steady_steps<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().filter(move |s| s.class == class.index && s.selection == Selection::Steady)
    }

    /// The device operations of a step.
    pub fn ops_of(&self, step: &Step) -> &[DeviceOp] {
        self.timeline.ops.get(step.ops.clone()).unwrap_or(&[])
    }
}

/// Analyses one capture.
pub fn analyze(trace: &Trace, packs: &Packs, options: &Options) -> Analysis {
    steps::analyze(trace, packs, options)
}

/// An accelerator that a process drives: what [`analyze`] makes a [`Rank`] of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rank in the job if the source says it, else the position in the capture.
    pub rank: u32,
    /// Owning process.
    pub process: ProcessId,
    /// Device ordinal in that process.
    pub device: i32,
}

/// The ranks that [`analyze`] would find by what devices did, in its order.
pub fn places(trace: &Trace) -> Vec<Place> {
    steps::places(trace).collect()
}

/// Their number.
pub fn rank_count(trace: &Trace) -> usize {
    steps::places(trace).count()
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
mod tests;
