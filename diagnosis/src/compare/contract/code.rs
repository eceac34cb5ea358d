//! Why a claim is refused or limited, as a code that scripts can rely on and what it speaks of.

use model::{EvidenceClass, manifest::Field, manifest::Group};

use super::{
    super::{Side, work::Part},
    claim::Claim,
};

/// Kind of reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// Another model, or other weights.
    Model,
    /// Another precision.
    Prec,
    /// Another workload.
    Workload,
    /// Another service target.
    Slo,
    /// Not warmed up alike.
    Warmup,
    /// Another division of the model over devices.
    Parallel,
    /// Another batch.
    BatchCap,
    /// Another metric.
    Metric,
    /// Traced against untraced, or slowed down by tracing.
    Traced,
    /// Tuned against untuned.
    Tuning,
    /// Other answers.
    Quality,
    /// Another share of the prompts came from the prefix cache.
    Cache,
    /// Devices of several vendors in one group.
    MixedVendor,
    /// The traces show other work.
    Work,
    /// A side's own diagnosis allows no verdict.
    Withheld,
    /// The trace cannot be taken at face value.
    Integrity,
    /// Not known.
    Unknown,
    /// A soft field differs.
    Different,
    /// Differs on purpose: it is what the pair was made to find out.
    Studied,
    /// Too few independent repeats.
    Repeats,
    /// Clocks could move.
    Clocks,
    /// Simulated and not measured.
    Simulated,
    /// No measured ceilings.
    Probes,
    /// No noise floor from runs of one side against itself.
    Noise,
    /// One side's source cannot show what the other's shows.
    Evidence,
}

impl Code {
    /// The code's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Model => "MODEL",
            Self::Prec => "PREC",
            Self::Workload => "WORKLOAD",
            Self::Slo => "SLO",
            Self::Warmup => "WARMUP",
            Self::Parallel => "PARALLEL",
            Self::BatchCap => "BATCHCAP",
            Self::Metric => "METRIC",
            Self::Traced => "TRACED",
            Self::Tuning => "TUNING",
            Self::Quality => "QUALITY",
            Self::Cache => "CACHE",
            Self::MixedVendor => "MIXEDVENDOR",
            Self::Work => "WORK",
            Self::Withheld => "WITHHELD",
            Self::Integrity => "INTEGRITY",
            Self::Unknown => "UNKNOWN",
            Self::Different => "DIFFERENT",
            Self::Studied => "STUDIED",
            Self::Repeats => "REPEATS",
            Self::Clocks => "CLOCKS",
            Self::Simulated => "SIMULATED",
            Self::Probes => "PROBES",
            Self::Noise => "NOISE",
            Self::Evidence => "EVIDENCE",
        }
    }

    /// The code of a hard field that differs.
    pub(super) fn of_difference(field: &Field) -> Self {
        match (field.group, field.key) {
            (_, "workload.prefix_cache_hit") => Self::Cache,
            (_, "measurement.traced") => Self::Traced,
            (Group::Model, _) => Self::Model,
            (Group::Precision, _) => Self::Prec,
            (Group::Workload, _) => Self::Workload,
            (Group::Service, _) => Self::Slo,
            (Group::Warmup, _) => Self::Warmup,
            (Group::Parallel, _) => Self::Parallel,
            (Group::Caps, _) => Self::BatchCap,
            (Group::Measurement, _) => Self::Metric,
            (Group::Tuning, _) => Self::Tuning,
            (Group::Quality, _) => Self::Quality,
            (Group::Software | Group::Hardware, _) => Self::Different,
        }
    }
}

/// What a reason speaks of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum About {
    /// A field of the manifest; its control holds both values.
    Field(&'static Field),
    /// Devices of several vendors in one group.
    Vendors,
    /// A part of the work, as both traces show it.
    Work(Part),
    /// Nothing in common that both traces show of their work.
    Unseen,
    /// A run on a machine that others had.
    Shared,
    /// A server without requests.
    Idle,
    /// Launches without their operation, or operations without their launch.
    Links,
    /// Records that the import counted as lost or wrong.
    Losses(u64),
    /// Traced over untraced step.
    Inflation(f64),
    /// Independent repeats, if known.
    Repeats(Option<u64>),
    /// Clocks that were not locked.
    Clocks,
    /// Numbers that were simulated.
    Simulated,
    /// No measured ceilings.
    Probes,
    /// No noise floor.
    Noise,
    /// No steps that count.
    Steps,
    /// No device operations.
    Device,
    /// No samples of the power drawn.
    Power,
    /// Evidence that only the other side holds.
    Lacks(EvidenceClass),
}

/// What a reason does to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Force {
    /// It forbids it.
    Refuses,
    /// It goes with every number of it.
    Limits,
}

/// One reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Its kind.
    pub code: Code,
    /// What it speaks of.
    pub about: About,
    /// The capture it speaks of; `None` for both, or the pair.
    pub side: Option<Side>,
    /// What it does.
    pub force: Force,
    /// The claims it does that to.
    pub claims: Vec<Claim>,
}

impl Reason {
    /// The code with its field: `MODEL`, `UNKNOWN(model.name)`.
    pub fn text(&self) -> String {
        match (self.code, self.about) {
            (Code::Unknown | Code::Different | Code::Studied, About::Field(field)) => {
                format!("{}({})", self.code.word(), field.key)
            }
            (Code::Work, About::Work(part)) => format!("{}({})", self.code.word(), part.key()),
            _ => self.code.word().to_owned(),
        }
    }

    /// Whether it forbids the claim.
    pub fn refuses(&self, claim: Claim) -> bool {
        self.force == Force::Refuses && self.claims.contains(&claim)
    }
}
