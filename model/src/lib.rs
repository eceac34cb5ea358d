//! The vocabulary of Stratoscope: every source of events is read into these types and every analysis reads from them.
//!
//! | module | owns |
//! | --- | --- |
//! | [`time`] | integer nanoseconds, spans, decimal timestamps |
//! | [`strings`] | interned text |
//! | [`track`] | processes, devices and the tracks slices lie on |
//! | [`mod@slice`] | slices, their categories and details |
//! | [`manifest`] | what a run says of itself, field by field |
//! | [`evidence`] | which classes of evidence a capture holds |
//! | [`probe`] | what a machine was measured to be able to do |
//! | [`readiness`] | how ready a platform is, area by area |
//! | [`stat`] | what an import read, kept and lost |
//! | [`summary`] | what is said of kernels without saying when they ran |
//! | [`job_sums`] | what is said of a job's steps and links without a timeline |
//! | [`secret`] | what of command lines, process names and variables is not kept |
//! | [`shared`] | rows that copies of a capture share |
//! | [`stated`] | sums that a profiler left beside a capture |
//! | [`sink`] | the trait a parser or collector writes to |
//! | [`trace`] | a whole capture as columns, and its builder |
//!
//! No I/O and no async: this crate depends on nothing that can fail for reasons outside the process.

pub mod ceiling;
pub mod evidence;
pub mod job_sums;
pub mod manifest;
pub mod probe;
pub mod readiness;
pub mod secret;
pub mod shared;
pub mod sink;
pub mod slice;
pub mod stat;
pub mod stated;
pub mod strings;
pub mod summary;
pub mod time;
pub mod trace;
pub mod track;

pub use ceiling::{Ceiling, Work};
pub use evidence::{Evidence, EvidenceClass};
pub use job_sums::{JobSums, LinkSum, StepPart, StepSum};
pub use manifest::{Group, Manifest, Provenance};
pub use probe::{ProbeRow, ProbeRun, ProbeUnit, Setting, Statistic};
pub use readiness::{Area, Light, Maturity};
pub use shared::Shared;
pub use sink::{Clock, TraceSink};
pub use slice::{Category, CollectiveCall, CopyDetail, Detail, Flow, KernelDetail, OpDetail, Slice, SyncKind};
pub use stat::{ImportStat, LedgerRow, Severity};
pub use stated::{Stated, StatedSum};
pub use strings::{StringId, Strings};
pub use summary::{Conditions, KernelSummary, Metric};
pub use time::{Ns, Span};
pub use trace::{Columns, CounterTrack, SliceId, Trace, TraceBuilder};
pub use track::{Beside, Device, Process, ProcessId, Reading, Track, TrackId, TrackKey, TrackKind};
