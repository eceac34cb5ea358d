//! What a source says of executions of a kernel without saying when they ran: sums over a run, or measurements of a single
//! execution that a kernel profiler replayed apart from the run. Nothing of it lies on a time axis, so nothing of it may be
//! read as wall time.

use crate::{strings::StringId, time::Ns};

/// How the executions that a summary is about were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conditions {
    /// As in the run: summed over it.
    Run,
    /// Alone: serialised, usually with cold caches and fixed clocks. Its duration is no duration of the run.
    Isolated,
    /// As in the run, while counters were read: executions that stand on the time axis too.
    Counted,
    /// No kernel but calls of the host, such as those of the runtime, or operators of the framework by the time of the host that
    /// they took themselves: summed over the run.
    Host,
    /// No kernel but operators of the framework, by the time of the device's work that they launched themselves: summed over
    /// the run.
    Operators,
    /// No kernel but whole classes of records, such as all kernels or all calls of one interface: summed over the run.
    Classes,
}

impl Conditions {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Run, Self::Isolated, Self::Counted, Self::Host, Self::Operators, Self::Classes];

    /// Name in the capture file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Isolated => "isolated",
            Self::Counted => "counted",
            Self::Host => "host",
            Self::Operators => "operators",
            Self::Classes => "classes",
        }
    }
}

/// A quantity that kernel profilers measure, whatever they call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Throughput of the compute cores, % of their peak; of the busiest compute pipe, % of the cycles, where only that is told.
    Compute,
    /// Throughput of the busiest part of the memory system, % of its peak.
    Memory,
    /// Throughput of the device's own memory, % of its peak.
    Dram,
    /// Bytes moved from and to the device's memory, per second.
    DramBytesPerSecond,
    /// Bytes read from the device's memory, per second, where what was written was not counted.
    DramReadBytesPerSecond,
    /// Arithmetic operations as the source counts them, per second.
    OperationsPerSecond,
    /// Operations per byte of the device's memory from which the peak of its arithmetic and not that of its memory is the lower
    /// limit, as the source gives it.
    Balance,
    /// Hits in the last cache before the device's memory, %.
    L2Hit,
    /// Warps that were resident, % of what a core can hold.
    Occupancy,
    /// The most that the launch's resources allow, % of what a core can hold.
    OccupancyLimit,
    /// Rounds in which all cores together take the blocks.
    Waves,
    /// Registers of a thread.
    Registers,
    /// Warps ready to issue per scheduler and cycle.
    EligibleWarps,
    /// Cores of the device.
    Cores,
    /// Clock of the cores, Hz.
    CoreClock,
    /// Cycles of the kernel in which a core had work, of the mean core, %: what is left idle is the tail.
    CoresBusy,
    /// Cycles in which the scalar unit worked, %: control flow and addresses, on chips that have such a unit of its own.
    Scalar,
    /// Time in which vector instructions were processed, %.
    VectorBusy,
    /// Time in which the units that load and store had work, what they wait for the memory included, %.
    LoadStoreBusy,
}

impl Metric {
    /// Every one of them.
    pub const ALL: [Self; 19] = [
        Self::Compute,
        Self::Memory,
        Self::Dram,
        Self::DramBytesPerSecond,
        Self::DramReadBytesPerSecond,
        Self::OperationsPerSecond,
        Self::Balance,
        Self::L2Hit,
        Self::Occupancy,
        Self::OccupancyLimit,
        Self::Waves,
        Self::Registers,
        Self::EligibleWarps,
        Self::Cores,
        Self::CoreClock,
        Self::CoresBusy,
        Self::Scalar,
        Self::VectorBusy,
        Self::LoadStoreBusy,
    ];

    /// Name in the capture file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Dram => "dram",
            Self::DramBytesPerSecond => "dram_bytes_per_second",
            Self::DramReadBytesPerSecond => "dram_read_bytes_per_second",
            Self::OperationsPerSecond => "operations_per_second",
            Self::Balance => "balance",
            Self::L2Hit => "l2_hit",
            Self::Occupancy => "occupancy",
            Self::OccupancyLimit => "occupancy_limit",
            Self::Waves => "waves",
            Self::Registers => "registers",
            Self::EligibleWarps => "eligible_warps",
            Self::Cores => "cores",
            Self::CoreClock => "core_clock",
            Self::CoresBusy => "cores_busy",
            Self::Scalar => "scalar",
            Self::VectorBusy => "vector_busy",
            Self::LoadStoreBusy => "load_store_busy",
        }
    }

    /// Unit of its values; empty for a plain number.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Compute | Self::Memory | Self::Dram | Self::L2Hit => "%",
            Self::Occupancy | Self::OccupancyLimit | Self::CoresBusy | Self::Scalar => "%",
            Self::VectorBusy | Self::LoadStoreBusy => "%",
            Self::DramBytesPerSecond | Self::DramReadBytesPerSecond => "B/s",
            Self::OperationsPerSecond => "1/s",
            Self::Balance => "1/B",
            Self::CoreClock => "Hz",
            Self::Waves | Self::Registers | Self::EligibleWarps | Self::Cores => "",
        }
    }
}

/// What is said of executions of one kernel with one launch shape.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSummary {
    /// Name as the source spells it.
    pub kernel: StringId,
    /// How the executions were run.
    pub conditions: Conditions,
    /// Executions.
    pub count: u64,
    /// Sum of their durations, ns.
    pub total: Option<Ns>,
    /// Shortest and longest, ns.
    pub range: Option<(Ns, Ns)>,
    /// Blocks launched, in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block, in x, y, z.
    pub block: Option<[u32; 3]>,
    /// What was measured, in the unit of each metric.
    pub metrics: Vec<(Metric, f64)>,
    /// Why warps waited: reason as the source names it, and cycles per instruction issued. The longest first.
    pub stalls: Vec<(StringId, f64)>,
    /// Further counters under the names that the source gives them, each the mean of one execution in the unit of the source.
    pub counters: Vec<(StringId, f64)>,
}

impl KernelSummary {
    /// One execution of `kernel` of which nothing else is known.
    pub fn of(kernel: StringId, conditions: Conditions) -> Self {
        Self {
            kernel,
            conditions,
            count: 1,
            total: None,
            range: None,
            grid: None,
            block: None,
            metrics: Vec::new(),
            stalls: Vec::new(),
            counters: Vec::new(),
        }
    }

    /// What was measured of a quantity.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| *known == metric).map(|(_, value)| *value)
    }
}
