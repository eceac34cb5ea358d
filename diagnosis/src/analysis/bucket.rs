//! Buckets: what each nanosecond of a step is attributed to, and the layer each bucket belongs to.

use crate::platform::CanonicalOp;

/// Layer of the stack that a bucket or finding belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Kernels, fusion, layout, dtype.
    Operator,
    /// Graphs, launches, synchronisation, host scheduling, compilation, allocation, staging copies.
    Runtime,
    /// Transfers between devices, and waits for late ranks.
    Communication,
    /// What the measurement itself cost or could not decide.
    Measurement,
}

impl Layer {
    /// All layers in report order.
    pub const ALL: [Self; 4] = [Self::Operator, Self::Runtime, Self::Communication, Self::Measurement];

    /// Key in JSON and SQL.
    pub fn key(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Runtime => "runtime",
            Self::Communication => "communication",
            Self::Measurement => "measurement",
        }
    }
}

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the directions
pub enum CopyDir {
    HtoD,
    DtoH,
    DtoD,
    PtoP,
    /// On one device, into or out of the memory that a collective works on.
    Staging,
    HtoH,
    Memset,
    Unknown,
}

impl CopyDir {
    /// The direction of this name, as readers of captures give it.
    pub fn named(name: &str) -> Self {
        match name {
            "HtoD" => Self::HtoD,
            "DtoH" => Self::DtoH,
            "DtoD" => Self::DtoD,
            "PtoP" => Self::PtoP,
            "HtoH" => Self::HtoH,
            _ => Self::Unknown,
        }
    }

    /// Name of the bucket of copies in this direction.
    pub fn name(self) -> &'static str {
        match self {
            Self::HtoD => "copy.h2d",
            Self::DtoH => "copy.d2h",
            Self::DtoD => "copy.d2d",
            Self::PtoP => "copy.p2p",
            Self::Staging => "copy.staging",
            Self::HtoH => "copy.h2h",
            Self::Memset => "copy.memset",
            Self::Unknown => "copy.unknown",
        }
    }
}

/// Index of a label in [`super::Analysis::host_labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostLabel(pub u16);

/// What a nanosecond of a step is attributed to. The order is that of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bucket {
    /// A compute operation runs.
    Compute(CanonicalOp),
    /// Host is inside a launch call.
    LaunchApi,
    /// Launch call returned, queue was empty, work has not started.
    LaunchLatency,
    /// The same for far longer than a launch takes: the device does not begin it.
    Unstarted,
    /// Work was queued well before; the device goes from one operation to the next.
    Dispatch,
    /// Host is inside a graph launch call.
    GraphLaunch,
    /// Between two nodes of one graph replay.
    GraphInternal,
    /// Graph parameters are updated before a replay.
    GraphUpdate,
    /// Waiting for an event of another queue.
    DeviceDep,
    /// The device drained while the host slept in a synchronisation: from then to the end of that call.
    SyncTail,
    /// A synchronisation called while the device was idle.
    SyncIdle,
    /// Compilation, autotuning, module load, graph capture or instantiation.
    Compile,
    /// Allocator calls.
    Alloc,
    /// Other host work of the issuing thread.
    Host(HostLabel),
    /// A copy or fill runs with no compute or transfer over it.
    Copy(CopyDir),
    /// The transfer part of a collective, not under compute.
    CommTransfer,
    /// The waiting part of a collective: caused by another rank, never by the link.
    CommWait,
    /// The profiler itself.
    Prof,
    /// One row for a whole graph replay: what runs inside is unknown.
    GraphOpaque,
    /// Idle, and the capture holds no host calls that could say why.
    IdleUndecided,
    /// Idle, and the operation that ended it has no usable launch.
    Unattributed,
    /// Time of which nothing was recorded: of a step that a log times, or between the collectives of a rank of which only those were
    /// kept.
    Unseen,
}

impl Bucket {
    /// Layer the bucket counts towards.
    pub fn layer(self) -> Layer {
        match self {
            Self::Compute(_) => Layer::Operator,
            Self::CommTransfer | Self::CommWait | Self::Copy(CopyDir::PtoP | CopyDir::Staging) => Layer::Communication,
            Self::Prof | Self::GraphOpaque | Self::IdleUndecided | Self::Unattributed | Self::Unseen => {
                Layer::Measurement
            }
            _ => Layer::Runtime,
        }
    }

    /// Whether the device was idle.
    pub fn is_idle(self) -> bool {
        !matches!(
            self,
            Self::Compute(_) | Self::Copy(_) | Self::CommTransfer | Self::CommWait | Self::GraphOpaque | Self::Unseen
        )
    }

    /// Whether the host's side of the step is the reason: launch calls, scheduling, synchronisation, allocation.
    pub fn is_host_side(self) -> bool {
        matches!(
            self,
            Self::LaunchApi
                | Self::LaunchLatency
                | Self::GraphLaunch
                | Self::GraphUpdate
                | Self::SyncTail
                | Self::SyncIdle
                | Self::Compile
                | Self::Alloc
                | Self::Host(_)
        )
    }

    /// Name such as `compute.gemm`; `labels` are [`super::Analysis::host_labels`].
    pub fn name(self, labels: &[String]) -> String {
        match self {
            Self::Compute(op) => format!("compute.{}", op.name()),
            Self::LaunchApi => "rt.launch_api".into(),
            Self::LaunchLatency => "rt.launch_latency".into(),
            Self::Unstarted => "rt.unstarted".into(),
            Self::Dispatch => "rt.dispatch".into(),
            Self::GraphLaunch => "rt.graph_launch".into(),
            Self::GraphInternal => "rt.graph_internal".into(),
            Self::GraphUpdate => "rt.graph_update".into(),
            Self::DeviceDep => "rt.device_dep".into(),
            Self::SyncTail => "rt.sync_tail".into(),
            Self::SyncIdle => "rt.sync_idle".into(),
            Self::Compile => "rt.compile".into(),
            Self::Alloc => "rt.alloc".into(),
            Self::Host(label) => {
                format!("rt.host.{}", labels.get(usize::from(label.0)).map_or("unknown", String::as_str))
            }
            Self::Copy(dir) => dir.name().into(),
            Self::CommTransfer => "comm.transfer".into(),
            Self::CommWait => "comm.wait".into(),
            Self::Prof => "prof".into(),
            Self::GraphOpaque => "graph.opaque".into(),
            Self::IdleUndecided => "idle.undecided".into(),
            Self::Unattributed => "unattributed".into(),
            Self::Unseen => "unseen".into(),
        }
    }
}

/// Two kinds of device work at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub enum Shadow {
    /// Compute over a transfer.
    ComputeTransfer,
    /// Compute over a copy.
    ComputeCopy,
    /// Compute over the wait of a collective.
    ComputeWait,
    /// A transfer over a copy.
    TransferCopy,
    /// Several compute operations at once.
    ComputeCompute,
}
