//! Sums that a profiler made of a capture and left beside it. The rows of the capture give every one of them anew, so that a
//! table of which rows are missing is found out.

use crate::{strings::StringId, time::Ns, track::ProcessId};

/// What of a capture a profiler summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stated {
    /// The time in which kernels ran that are no collectives; kernels side by side count once.
    Computing,
    /// The time in which collectives ran, their waits included; those side by side count once.
    Communication,
    /// Of that, the time in which no kernel ran.
    ExposedCommunication,
    /// Of it, the time in which a kernel ran.
    OverlappedCommunication,
    /// The time of a step in which neither kernels nor collectives ran.
    Free,
    /// The step from its first device work to its last, without what receives took.
    Stage,
    /// The durations of collectives that receive from another stage of the pipeline.
    Receives,
    /// The durations of all collectives, their waits included.
    Collectives,
    /// The durations of kernels that are no collectives.
    Kernels,
    /// The durations of the runtime's calls on the host.
    HostCalls,
}

impl Stated {
    /// Everything.
    pub const ALL: [Self; 10] = [
        Self::Computing,
        Self::Communication,
        Self::ExposedCommunication,
        Self::OverlappedCommunication,
        Self::Free,
        Self::Stage,
        Self::Receives,
        Self::Collectives,
        Self::Kernels,
        Self::HostCalls,
    ];

    /// Name in capture files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Communication => "communication",
            Self::ExposedCommunication => "exposed_communication",
            Self::OverlappedCommunication => "overlapped_communication",
            Self::Free => "free",
            Self::Stage => "stage",
            Self::Receives => "receives",
            Self::Collectives => "collectives",
            Self::Kernels => "kernels",
            Self::HostCalls => "host_calls",
        }
    }
}

/// A sum that a profiler made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedSum {
    /// The process whose devices or calls were summed; absent where the capture holds one rank.
    pub process: Option<ProcessId>,
    /// The file or table that says it.
    pub source: StringId,
    /// What was summed.
    pub what: Stated,
    /// Of which calls, where the source sums each by its name.
    pub name: Option<StringId>,
    /// How many there were, where the source says it.
    pub count: Option<u64>,
    /// Their time, ns.
    pub time: Ns,
}
