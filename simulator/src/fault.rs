//! What can be wrong with a run: each fault, the rules it should trigger, and the base configuration in which it bites.

use serde::{Deserialize, Serialize};

use crate::{
    config::{Config, Mode},
    random::{Dice, Of},
};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Decode issues every operation by itself although graphs are there to be used.
    GraphOff,
    /// Norm, activation and rotary embedding run as several elementwise kernels.
    Unfused,
    /// A layout copy before each matrix product.
    Transposes,
    /// Many tiny kernels beside the real ones.
    SmallOps,
    /// Sampling sorts the whole vocabulary.
    FullSort,
    /// The forward pass is cut in many graphs.
    ManyPieces,
    /// Compilation in the steady state.
    Recompile,
    /// Host work on metadata before the forward pass.
    HostUpdate,
    /// The host waits for the device in each layer.
    LayerSync,
    /// Device memory is allocated and freed in each step.
    AllocStall,
    /// A pageable copy to the device in each step.
    PageableCopy,
    /// The scheduler takes long between steps.
    Scheduling,
    /// Pauses of the interpreter's garbage collection.
    Gc,
    /// Long gaps between the nodes of a graph.
    NodeGap,
    /// Rare host stalls of unknown origin.
    Stalls,
    /// Steps are still getting faster after the claimed warm-up.
    ShortWarmup,
    /// Collectives that the model does not need.
    ExtraCollective,
    /// Each collective costs much host time.
    CollectiveHost,
    /// The profiler slows each launch and flushes often.
    Profiler,
    /// One rank's host is late with every step.
    HostStraggler,
    /// One rank computes slower than the others.
    ThrottledRank,
}

/// Layer a diagnosis should name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the layers
pub enum Layer {
    Operator,
    Runtime,
    Communication,
    Measurement,
}

/// A fault of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// How much, in parts per thousand of the usual size.
    pub magnitude_permille: i64,
}

impl FaultKind {
    /// All faults.
    pub const ALL: [Self; 21] = [
        Self::GraphOff,
        Self::Unfused,
        Self::Transposes,
        Self::SmallOps,
        Self::FullSort,
        Self::ManyPieces,
        Self::Recompile,
        Self::HostUpdate,
        Self::LayerSync,
        Self::AllocStall,
        Self::PageableCopy,
        Self::Scheduling,
        Self::Gc,
        Self::NodeGap,
        Self::Stalls,
        Self::ShortWarmup,
        Self::ExtraCollective,
        Self::CollectiveHost,
        Self::Profiler,
        Self::HostStraggler,
        Self::ThrottledRank,
    ];

    /// Rules that name this fault, the expected one first.
    pub fn rules(self) -> &'static [&'static str] {
        match self {
            Self::GraphOff => &["RT-01", "RT-14"],
            Self::Unfused => &["OP-03", "OP-08"],
            Self::Transposes => &["OP-05"],
            Self::SmallOps => &["OP-08", "OP-03"],
            Self::FullSort => &["OP-14"],
            Self::ManyPieces => &["RT-03"],
            Self::Recompile => &["RT-05"],
            Self::HostUpdate => &["RT-08"],
            Self::LayerSync => &["RT-09"],
            Self::AllocStall => &["RT-10"],
            Self::PageableCopy => &["RT-11"],
            Self::Scheduling => &["RT-12"],
            Self::Gc => &["RT-15", "RT-22"],
            Self::NodeGap => &["RT-18"],
            Self::Stalls => &["RT-22"],
            Self::ShortWarmup => &["RT-23"],
            Self::ExtraCollective => &["CM-06"],
            Self::CollectiveHost => &["CM-11"],
            Self::Profiler => &["CP-04"],
            Self::HostStraggler | Self::ThrottledRank => &["CM-01"],
        }
    }

    /// Whether a single rank suffers from it, and the others only wait.
    pub fn of_one_rank(self) -> bool {
        matches!(self, Self::HostStraggler | Self::ThrottledRank)
    }

    /// Layer of the cause.
    pub fn layer(self) -> Layer {
        match self {
            Self::Unfused | Self::Transposes | Self::SmallOps | Self::FullSort | Self::ThrottledRank => Layer::Operator,
            Self::ExtraCollective => Layer::Communication,
            Self::Profiler => Layer::Measurement,
            _ => Layer::Runtime,
        }
    }
}

/// The magnitudes at which faults are examined, in parts per thousand.
pub const MAGNITUDES: [i64; 3] = [350, 1000, 2000];

impl Config {
    /// A drawn configuration, turned into one where `fault` shows, with the fault in it.
    pub fn draw_faulty(seed: u64, fault: Fault) -> Self {
        let mut config = Self::draw(seed);
        use FaultKind as F;
        match fault.kind {
            // Issued one by one, each operation must cost the host more than it costs the device.
            F::GraphOff => {
                config.mode = Mode::Full;
                config.framework_ns = config.mean_kernel() * (600 + fault.magnitude_permille) / 1000;
            }
            F::NodeGap => config.mode = Mode::Full,
            F::ManyPieces => {
                config.mode = Mode::Full;
                config.layers = config.layers.max(16);
            }
            F::LayerSync => config.mode = Mode::Eager,
            F::CollectiveHost => {
                config.mode = Mode::Eager;
                config.tensor_parallel = config.tensor_parallel.max(2);
            }
            F::ExtraCollective => config.tensor_parallel = config.tensor_parallel.max(2),
            F::Profiler => {
                config.mode = Mode::Eager;
                config.framework_ns = config.mean_kernel();
            }
            F::HostStraggler | F::ThrottledRank => config.gather(4),
            F::Recompile
            | F::HostUpdate
            | F::AllocStall
            | F::PageableCopy
            | F::Scheduling
            | F::Gc
            | F::Stalls
            | F::ShortWarmup
            | F::Unfused
            | F::Transposes
            | F::SmallOps
            | F::FullSort => {}
        }
        let host_work_overlaps = matches!(
            fault.kind,
            F::HostUpdate
                | F::AllocStall
                | F::PageableCopy
                | F::Scheduling
                | F::CollectiveHost
                | F::LayerSync
                | F::ManyPieces
                | F::HostStraggler
        );
        // Issued ahead, such work would hide under the step before.
        config.async_scheduling &= !host_work_overlaps;
        // Rare stalls need steps to be rare in.
        if matches!(fault.kind, F::Gc | F::Stalls | F::Recompile | F::ShortWarmup) {
            config.steps = config.steps.max(40);
        }
        config.faults = vec![fault];
        config
    }

    /// Simulates all ranks of the group, of which there are then at least two.
    fn gather(&mut self, ranks: usize) {
        let job = Self::draw_job(self.seed, ranks);
        (self.ranks, self.tensor_parallel) = (job.ranks, job.tensor_parallel);
        (self.clock_offset_ns, self.clock_drift_ppm) = (job.clock_offset_ns, job.clock_drift_ppm);
    }

    /// `size` scaled by the magnitude if the run has the fault `kind`; 0 otherwise.
    pub(crate) fn dose(&self, kind: FaultKind, size: i64) -> i64 {
        let permille = self.faults.iter().find(|fault| fault.kind == kind).map_or(0, |fault| fault.magnitude_permille);
        size.saturating_mul(permille) / 1000
    }

    /// The rank that suffers from `kind`, if that is a fault of one rank.
    pub fn culprit(&self, kind: FaultKind) -> Option<usize> {
        let last = i64::try_from(self.ranks).unwrap_or(1) - 1;
        let rank = Dice::new(self.seed).uniform(Of::Culprit, [kind as i64, 0, 0], 0, last);
        usize::try_from(rank).ok().filter(|_| kind.of_one_rank())
    }

    /// Whether the run has the fault `kind`.
    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// How decode is really issued, faults included.
    pub(crate) fn issued(&self) -> Mode {
        if self.has(FaultKind::GraphOff) {
            Mode::Eager
        } else if self.has(FaultKind::ManyPieces) {
            Mode::Piecewise { pieces: (self.dose(FaultKind::ManyPieces, self.layers + 1)).clamp(8, self.layers + 1) }
        } else {
            self.mode
        }
    }
}
