//! The one interface through which every source of events enters.

use crate::{
    job_sums::JobSums,
    manifest::Provenance,
    probe::ProbeRow,
    slice::{Flow, Slice},
    stat::Severity,
    stated::StatedSum,
    strings::StringId,
    summary::KernelSummary,
    time::{Ns, Span},
    track::{Device, ProcessId, TrackId, TrackKey},
};

/// How the source's clock relates to the capture's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The capture's zero is the earliest slice; `unix_offset` added to a source time gives Unix nanoseconds.
    FromFirstSlice {
        /// Offset from the source's clock to the Unix epoch, if the source has one.
        unix_offset: Option<Ns>,
    },
    /// The source's zero is the capture's zero; `unix_zero` is its wall clock.
    AsIs {
        /// Unix time of the source's zero, if the source has one.
        unix_zero: Option<Ns>,
    },
}

/// Where parsers and collectors write. Times are in the source's clock; the capture's zero is settled at the end.
pub trait TraceSink {
    /// The id of `text`.
    fn intern(&mut self, text: &str) -> StringId;

    /// The process with this key of the source's own making; the same key gives the same process.
    fn process(&mut self, key: u64) -> ProcessId;

    /// Says more of a process; values already known are kept.
    fn describe_process(&mut self, process: ProcessId, pid: Option<i64>, name: Option<&str>, rank: Option<u32>);

    /// Says what a device is; the same (process, ordinal) is told once.
    fn device(&mut self, device: Device);

    /// The track with this key; the same key gives the same track.
    fn track(&mut self, key: TrackKey) -> TrackId;

    /// Names a track; the last name holds.
    fn name_track(&mut self, track: TrackId, name: &str);

    /// Adds a slice. Slices may come in any order and may overlap.
    fn slice(&mut self, slice: Slice<'_>);

    /// Adds a sample to the counter `name` of a process and, if it belongs to one, a device ordinal.
    fn counter(
        &mut self,
        process: ProcessId,
        device: Option<i32>,
        name: StringId,
        unit: &'static str,
        t: Ns,
        value: f64,
    );

    /// Adds what is said of executions of a kernel without saying when they ran.
    fn summary(&mut self, summary: KernelSummary);

    /// Adds what a source measured its machine to be able to do.
    fn probe(&mut self, row: ProbeRow);

    /// Adds what is said of a job's steps and links without a timeline.
    fn job_sums(&mut self, sums: JobSums);

    /// Adds a sum that the profiler made of the capture itself.
    fn stated(&mut self, sum: StatedSum);

    /// Adds a link that correlation ids do not express.
    fn flow(&mut self, flow: Flow);

    /// Sets a manifest field or a further fact.
    fn manifest(&mut self, key: &str, value: &str, provenance: Provenance);

    /// Adds to an import statistic; the first example is kept.
    fn stat(&mut self, name: &str, severity: Severity, count: u64, example: Option<&str>);

    /// Adds to the ledger row of one of the source's categories.
    fn ledger(&mut self, category: &str, read: u64, kept: u64, time_ns: Ns, note: &str);

    /// Counts memory that a reader holds beside what it hands over, bytes: a content that is taken in as a whole.
    fn hold(&mut self, bytes: u64);

    /// Counts no longer what was [held](Self::hold).
    fn let_go(&mut self, bytes: u64);

    /// Says how the clock is to be read. Without a call, [`Clock::FromFirstSlice`] without a wall clock holds.
    fn clock(&mut self, clock: Clock);

    /// Says from when to when the source recorded, in its own clock.
    fn window(&mut self, window: Span);
}
