//! Sums that the analysis of a whole job made: what each rank's steps consist of, and what moved between two ranks. Nothing
//! of it lies on a time axis: which operation or wait made up a sum cannot be told, and sums over ranks are no wall time.

use crate::{strings::StringId, time::Ns};

/// A part of a step, as an analysis that sums steps divides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPart {
    /// The device computed.
    Computing,
    /// It communicated and did not compute.
    ExposedCommunication,
    /// It did neither. These three are exclusive and fill the step.
    Free,
    /// It communicated and computed.
    Overlapped,
    /// It communicated, exposed or not.
    Communication,
    /// It waited for what another stage of the pipeline sends; part of the exposed communication.
    Bubble,
    /// Exposed communication without what it waited for another stage.
    ExposedWithoutReceive,
    /// The step without the bubble.
    Stage,
    /// From the start of the step on the host to the first work on the device.
    Preparing,
    /// Sum of the durations of all collectives, which may run side by side.
    InCollectives,
    /// Of that, what moved bytes.
    Transfer,
    /// Of that, what waited for other ranks.
    Wait,
}

impl StepPart {
    /// Every part.
    pub const ALL: [Self; 12] = [
        Self::Computing,
        Self::ExposedCommunication,
        Self::Free,
        Self::Overlapped,
        Self::Communication,
        Self::Bubble,
        Self::ExposedWithoutReceive,
        Self::Stage,
        Self::Preparing,
        Self::InCollectives,
        Self::Transfer,
        Self::Wait,
    ];

    /// Name in capture files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::ExposedCommunication => "exposed_communication",
            Self::Free => "free",
            Self::Overlapped => "overlapped",
            Self::Communication => "communication",
            Self::Bubble => "bubble",
            Self::ExposedWithoutReceive => "exposed_without_receive",
            Self::Stage => "stage",
            Self::Preparing => "preparing",
            Self::InCollectives => "in_collectives",
            Self::Transfer => "transfer",
            Self::Wait => "wait",
        }
    }
}

/// The parts of one step of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSum {
    /// The step as the source names it; empty where it has no name.
    pub step: StringId,
    /// Rank in the job.
    pub rank: u32,
    /// Stage of the pipeline, from 0 in the order of the source; absent where it does not say.
    pub stage: Option<u32>,
    /// Time of each part that was summed, ns.
    pub parts: Vec<(StepPart, Ns)>,
}

impl StepSum {
    /// Time of a part, ns.
    pub fn part(&self, part: StepPart) -> Option<Ns> {
        self.parts.iter().find(|(known, _)| *known == part).map(|(_, ns)| *ns)
    }
}

/// What moved from one rank to another over all steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSum {
    /// Rank that sends.
    pub from: u32,
    /// Rank that receives; the sender itself for copies on its own device.
    pub to: u32,
    /// What it went over, as the source spells it (`HCCS`, `RDMA`, `LOCAL`).
    pub transport: StringId,
    /// Bytes moved.
    pub bytes: i64,
    /// Sum of the times of the transfers, ns.
    pub time: Ns,
}

/// All sums of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSums {
    /// Steps by rank.
    pub steps: Vec<StepSum>,
    /// Links.
    pub links: Vec<LinkSum>,
}

impl JobSums {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.links.is_empty()
    }
}
