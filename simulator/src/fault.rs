//! What can be wrong with a run: each fault, the rules it should trigger, and the base configuration in which it bites.

use serde::{Deserialize, Serialize};

use crate::config::{Config, Mode};

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
    pub const ALL: [Self; 19] = [
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
        }
    }

    /// Layer of the cause.
    pub fn layer(self) -> Layer {
        match self {
            Self::Unfused | Self::Transposes | Self::SmallOps | Self::FullSort => Layer::Operator,
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
        );
        // Issued ahead, such work would hide under the step before.
        config.async_scheduling &= !host_work_overlaps;
        // Rare stalls need steps to be rare in.
        if matches!(fault.kind, F::Gc | F::Stalls | F::Recompile | F::ShortWarmup) {
            config.steps = config.steps.max(40);
        }
        config.fault = Some(fault);
        config
    }

    /// `size` scaled by the magnitude if the run has the fault `kind`; 0 otherwise.
    pub(crate) fn dose(&self, kind: FaultKind, size: i64) -> i64 {
        match self.fault {
            Some(fault) if fault.kind == kind => size.saturating_mul(fault.magnitude_permille) / 1000,
            _ => 0,
        }
    }

    /// Whether the run has the fault `kind`.
    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.fault.is_some_and(|fault| fault.kind == kind)
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
