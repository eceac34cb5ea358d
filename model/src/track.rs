//! Where slices lie: processes, devices, and the tracks (host threads, device queues) that belong to them.

use crate::strings::StringId;

/// Index of a process in [`crate::Trace::processes`]. Correlation ids are unique within one process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// Index of a track in [`crate::Trace::tracks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// A value that may not have been readable. Absence is never written as 0.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Reading<T> {
    /// The value as the source gave it.
    Value(T),
    /// Why there is no value.
    Unavailable(String),
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(v) => Some(v),
            Self::Unavailable(_) => None,
        }
    }
}

/// One operating-system process of the captured job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id as the source shows it (possibly inside a container's namespace).
    pub pid: Option<i64>,
    /// Process name, if the source has one.
    pub name: Option<StringId>,
    /// Rank in the distributed job, if the source says it.
    pub rank: Option<u32>,
}

/// One accelerator as one process saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The process whose ordinal this is.
    pub process: ProcessId,
    /// Ordinal in that process; two processes may both say 0 and mean different hardware.
    pub ordinal: i32,
    /// Product name such as `NVIDIA H100 80GB HBM3`.
    pub name: Option<StringId>,
    /// Vendor key of the platform packs: `nvidia`, `amd`, `ascend`, `hygon`, `cambricon`, `metax`, `mthreads`, …
    pub vendor: Option<StringId>,
    /// Number of cores (SM, CU, AI core), if the source says it.
    pub cores: Option<u32>,
    /// Memory in bytes, if the source says it.
    pub memory_bytes: Option<i64>,
}

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TrackKind {
    /// A host thread; slices nest by time.
    HostThread = 0,
    /// A device stream or queue: work that ran.
    DeviceQueue = 1,
    /// Spans that the profiler drew on a device, which are not work.
    DeviceAnnotation = 2,
    /// Waits and event records on a device queue, which are not work.
    DeviceSync = 3,
    /// Anything that belongs to no thread or queue (capture spans, ranges that end on another thread).
    Global = 4,
}

impl TrackKind {
    /// All kinds, in the order of their codes in the store.
    pub const ALL: [Self; 5] =
        [Self::HostThread, Self::DeviceQueue, Self::DeviceAnnotation, Self::DeviceSync, Self::Global];

    /// Name in the store and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostThread => "host_thread",
            Self::DeviceQueue => "device_queue",
            Self::DeviceAnnotation => "device_annotation",
            Self::DeviceSync => "device_sync",
            Self::Global => "global",
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What identifies a track while it is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrackKey {
    /// What the track shows.
    pub kind: TrackKind,
    /// The owning process.
    pub process: ProcessId,
    /// Device ordinal in the process, for device tracks.
    pub device: Option<i32>,
    /// Device context, where streams are numbered per context.
    pub context: Option<i64>,
    /// Thread id or stream id.
    pub id: i64,
}

/// What a track beside a queue tells of the kernels that run on it, from a graph's capture or from the profiler's own table: its
/// ranges lie where the kernels do. The manifest fields [`Beside::MATCH`] and [`Beside::TOLD`] say how it is known; without
/// either there are no such tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Operators with their shapes.
    Operators = 2,
    /// Modules.
    Modules = 3,
}

impl Beside {
    /// Manifest field that tells how many replayed kernels are known, and from what.
    pub const MATCH: &str = "graph_capture.match";

    /// Manifest field that tells of how many kernels the profiler's own table says the operator.
    pub const TOLD: &str = "kernels.operators";

    /// The key of the track. Profilers number contexts from 0 on, so negative ones are free; the queue's own context stays
    /// recognisable, because two contexts may number their queues alike.
    pub fn key(self, queue: TrackKey) -> TrackKey {
        let own = queue.context.map_or(0, |context| context.max(0).saturating_add(1)).saturating_mul(2);
        let context = (-(self as i64)).saturating_sub(own);
        TrackKey { kind: TrackKind::DeviceAnnotation, context: Some(context), ..queue }
    }
}

/// A track of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its identity.
    pub key: TrackKey,
    /// Thread or stream name, if the source has one.
    pub name: Option<StringId>,
}
