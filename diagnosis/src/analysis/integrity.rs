//! Signs that a trace cannot be taken at face value.

use model::Ns;

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
    /// Of those, operations between others of their queue whose launch is known.
    #[serde(skip)]
    pub lost_links: u64,
    /// Calls that issued device work of which no record exists, of processes that drive one device.
    pub unrecorded: u64,
    /// Kernels without a record between others of their graph replay, as far as other places of the replays show.
    #[serde(skip)]
    pub graph_holes: u64,
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

    /// Share of gaps of at most 2 ns from which durations hold the dispatch time.
    pub const FOLDED: f64 = 0.80;

    /// Whether durations hold the dispatch time, so that gaps say nothing.
    pub fn is_folded(&self) -> bool {
        self.gaps > 0 && self.zero_gaps as f64 > Self::FOLDED * self.gaps as f64
    }

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
