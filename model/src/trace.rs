//! A whole capture as columns.
//!
//! Slices of one track lie together, sorted by start; a slice's id is its position in that order over all tracks, so the
//! id tells the track and the row, and no index is needed to go from one to the other.

use crate::{
    job_sums::JobSums,
    manifest::Manifest,
    probe::ProbeRun,
    shared::Shared,
    slice::{Category, Detail, Flow},
    stat::{ImportStat, LedgerRow},
    stated::StatedSum,
    strings::{StringId, Strings},
    summary::KernelSummary,
    time::{Ns, Span},
    track::{Device, Process, ProcessId, Track, TrackId},
};

mod attach;
mod beside;
mod builder;
mod join;

pub use attach::{attach, attach_probes};
pub use beside::attach_counters;
pub use builder::TraceBuilder;
pub use join::join;

/// Position of a slice in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct SliceId(pub u32);

/// No link, no detail.
const NONE: u32 = u32::MAX;
/// No correlation id.
pub const NO_CORRELATION: i64 = i64::MIN;

/// The slices of one track, column by column, sorted by (start, longest first, order of arrival).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Id of the first slice.
    pub first: u32,
    /// Start, ns from the capture's zero.
    pub start: Vec<Ns>,
    /// Duration, ns, never negative.
    pub dur: Vec<Ns>,
    /// Name.
    pub name: Vec<StringId>,
    /// Category.
    pub category: Vec<Category>,
    /// Nesting depth; slices of one depth never overlap.
    pub depth: Vec<u16>,
    /// Correlation id or [`NO_CORRELATION`].
    pub correlation: Vec<i64>,
    /// Slice id of the launch call of device work, or `u32::MAX`.
    pub link: Vec<u32>,
    /// Index into [`Trace::details`], or `u32::MAX`.
    pub detail: Vec<u32>,
}

impl Columns {
    /// Number of slices.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether the track is empty.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// End of slice `i` of this track.
    pub fn end(&self, i: usize) -> Ns {
        self.start[i].saturating_add(self.dur[i])
    }

    /// Id of slice `i` of this track.
    pub fn id(&self, i: usize) -> SliceId {
        SliceId(self.first + i as u32)
    }

    /// Launch call of slice `i`.
    pub fn link(&self, i: usize) -> Option<SliceId> {
        (self.link[i] != NONE).then_some(SliceId(self.link[i]))
    }
}

/// Samples of one counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterTrack {
    /// Owning process.
    pub process: ProcessId,
    /// Device ordinal, if it belongs to one.
    pub device: Option<i32>,
    /// Counter name.
    pub name: StringId,
    /// Unit of the values (`%`, `B`, `MHz`, `W`, …; empty for a plain count).
    pub unit: String,
    /// Times, ns.
    pub t: Vec<Ns>,
    /// Values.
    pub value: Vec<f64>,
}

/// A whole capture in memory. A clone shares what there is much of: slices, details, samples and links.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Path or description of the source.
    pub source: String,
    /// Id of the format it was read as (`kineto`, `nsys`).
    pub format: String,
    /// Whether the source is simulated rather than measured.
    pub simulated: bool,
    /// Interned text.
    pub strings: Strings,
    /// Processes.
    pub processes: Vec<Process>,
    /// Devices.
    pub devices: Vec<Device>,
    /// Tracks.
    pub tracks: Vec<Track>,
    /// Slices of each track, same index as `tracks`.
    pub lanes: Shared<Columns>,
    /// Details that slices refer to.
    pub details: Shared<Detail>,
    /// Counters.
    pub counters: Shared<CounterTrack>,
    /// What is said of kernels without saying when they ran.
    pub summaries: Vec<KernelSummary>,
    /// What is said of the steps and links of a whole job without a timeline.
    pub job_sums: JobSums,
    /// What the profiler summed of the capture itself.
    pub stated: Vec<StatedSum>,
    /// What the machine was measured to be able to do.
    pub probes: ProbeRun,
    /// Recorded links.
    pub flows: Shared<Flow>,
    /// What the run says of itself.
    pub manifest: Manifest,
    /// Import statistics.
    pub stats: Vec<ImportStat>,
    /// Import ledger.
    pub ledger: Vec<LedgerRow>,
    /// Wall clock of the capture's zero, Unix ns.
    pub start_unix_ns: Option<Ns>,
    /// From when to when the source recorded; from the first slice to the end of the last when it does not say.
    pub window: Option<Span>,
}

impl Trace {
    /// Number of slices.
    pub fn slice_count(&self) -> usize {
        self.lanes.iter().map(Columns::len).sum()
    }

    /// Track and row of a slice.
    pub fn locate(&self, id: SliceId) -> Option<(TrackId, usize)> {
        // Empty lanes share their `first` with the next lane; the last lane that starts at or before the id holds it.
        let lane = self.lanes.partition_point(|lane| lane.first <= id.0).checked_sub(1)?;
        let row = (id.0 - self.lanes[lane].first) as usize;
        (row < self.lanes[lane].len()).then_some((TrackId(lane as u32), row))
    }

    /// The detail of row `i` of a lane.
    pub fn detail(&self, lane: &Columns, i: usize) -> Option<&Detail> {
        self.details.get(lane.detail[i] as usize)
    }

    /// The count of an import statistic, 0 when it never occurred.
    pub fn stat(&self, name: &str) -> u64 {
        self.stats.iter().filter(|s| s.name == name).map(|s| s.count).sum()
    }

    /// Gives every lane the id of its first slice; must follow any change in the number of slices.
    pub fn number_slices(&mut self) {
        let mut first = 0u32;
        for lane in &mut self.lanes {
            lane.first = first;
            first = first.saturating_add(lane.len() as u32);
        }
    }
}

#[cfg(test)]
mod tests;
