//! Slices: what happened on a track from one nanosecond to another.

use crate::{
    strings::StringId,
    time::Ns,
    track::{ProcessId, TrackId},
};

/// What managed (unified) memory is called as the source and destination of a copy.
pub const MANAGED: &str = "managed";

/// What kind of event a slice is. The code is what the store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Category {
    /// A kernel or task that ran on the device, collectives included.
    Kernel = 0,
    /// A copy done by the device.
    Memcpy = 1,
    /// A fill done by the device.
    Memset = 2,
    /// A whole graph execution recorded as one row, its nodes unknown.
    GraphExec = 3,
    /// A wait recorded on the device's side; not work.
    DeviceSync = 8,
    /// An event record or other instant on a queue; not work.
    DeviceEvent = 9,
    /// The projection of a host range onto a queue; not work.
    DeviceRange = 10,
    /// A counter range or other device record that is not on the time axis of work. With a [`CopyDetail`] from and to
    /// [`MANAGED`] memory: what the driver moved of it by itself.
    DeviceOther = 11,
    /// A call of the accelerator's runtime or driver interface.
    HostApi = 16,
    /// An operator of the framework (`aten::mm`).
    FrameworkOp = 17,
    /// A range that the program or its serving engine annotated.
    UserRange = 18,
    /// A function of the interpreter.
    PythonFrame = 19,
    /// Time that the profiler says it took itself.
    Overhead = 20,
    /// A call of the operating system or its C library.
    OsApi = 21,
    /// A call of a compute library (cuBLAS, cuDNN, aclnn).
    LibraryApi = 22,
    /// A host wait recorded beside the call that waited.
    HostSync = 23,
    /// A collective as the host saw it.
    CollectiveCall = 24,
    /// Garbage collection of the interpreter.
    Gc = 25,
    /// A span of the capture itself.
    CaptureSpan = 26,
    /// A host event of a kind that we do not know.
    HostOther = 27,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 20] = [
        Self::Kernel,
        Self::Memcpy,
        Self::Memset,
        Self::GraphExec,
        Self::DeviceSync,
        Self::DeviceEvent,
        Self::DeviceRange,
        Self::DeviceOther,
        Self::HostApi,
        Self::FrameworkOp,
        Self::UserRange,
        Self::PythonFrame,
        Self::Overhead,
        Self::OsApi,
        Self::LibraryApi,
        Self::HostSync,
        Self::CollectiveCall,
        Self::Gc,
        Self::CaptureSpan,
        Self::HostOther,
    ];

    /// Name in the store's views and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
            Self::GraphExec => "graph_exec",
            Self::DeviceSync => "device_sync",
            Self::DeviceEvent => "device_event",
            Self::DeviceRange => "device_range",
            Self::DeviceOther => "device_other",
            Self::HostApi => "host_api",
            Self::FrameworkOp => "framework_op",
            Self::UserRange => "user_range",
            Self::PythonFrame => "python_frame",
            Self::Overhead => "overhead",
            Self::OsApi => "os_api",
            Self::LibraryApi => "library_api",
            Self::HostSync => "host_sync",
            Self::CollectiveCall => "collective_call",
            Self::Gc => "gc",
            Self::CaptureSpan => "capture_span",
            Self::HostOther => "host_other",
        }
    }

    /// The category with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|c| *c as u8 == code)
    }

    /// Whether the slice is work that occupied the device.
    pub fn is_device_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset | Self::GraphExec)
    }

    /// Whether a device slice of the same correlation may name this slice as its launch.
    pub fn can_launch(self) -> bool {
        matches!(self, Self::HostApi)
    }
}

/// One slice as a parser hands it over.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Track it lies on.
    pub track: TrackId,
    /// Start in the clock of the source.
    pub start: Ns,
    /// Duration; negative durations are clamped to 0 and counted by the builder.
    pub dur: Ns,
    /// Name.
    pub name: StringId,
    /// Kind of event.
    pub category: Category,
    /// Correlation id that ties a launch call to the device work it caused, unique within the process.
    pub correlation: Option<i64>,
    /// Further facts.
    pub detail: Option<&'a Detail>,
}

/// Facts that only some slices have. Equal details are stored once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Of a kernel or graph execution.
    Kernel(KernelDetail),
    /// Of a copy or fill.
    Copy(CopyDetail),
    /// Of a framework operator.
    Op(OpDetail),
    /// Of a collective, on the host call or the kernel.
    Collective(Box<CollectiveCall>),
    /// Of a host or device wait.
    Sync(SyncKind),
    /// Of a wait inside a collective: the rank waited for, as the group numbers its ranks.
    Peer(u32),
    /// Of a launch call: the kernel it launches, as the call itself names it. Under a graph capture nothing runs, and this is
    /// all that is known of the kernel.
    Launch(StringId),
    /// Return value of a call that failed (`cudaError_t`, `CUresult`, `aclError`, …).
    Failed(i64),
}

/// Launch shape and graph identity of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelDetail {
    /// Graph the kernel is a node of.
    pub graph: Option<i64>,
    /// Node in that graph, stable over replays.
    pub graph_node: Option<i64>,
    /// Blocks launched, in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block, in x, y, z.
    pub block: Option<[u32; 3]>,
    /// The collective this kernel carries out, if the source says so.
    pub collective: Option<Box<CollectiveCall>>,
}

/// Direction and memory kinds of a copy or fill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CopyDetail {
    /// `HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH`; absent for a fill.
    pub direction: Option<StringId>,
    /// Memory kind read: `pageable`, `pinned`, `device`, `managed`, …
    pub src: Option<StringId>,
    /// Memory kind written.
    pub dst: Option<StringId>,
    /// Bytes moved or filled.
    pub bytes: Option<i64>,
    /// Graph node, when replayed.
    pub graph_node: Option<i64>,
}

/// Shapes and dtypes of an operator's inputs, as the source's own text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpDetail {
    /// Input shapes, JSON text.
    pub shapes: Option<StringId>,
    /// Input dtypes, JSON text.
    pub dtypes: Option<StringId>,
}

/// One collective operation as one rank describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CollectiveCall {
    /// Operation such as `allreduce`.
    pub op: Option<StringId>,
    /// Process group name.
    pub group: Option<StringId>,
    /// Number of ranks in the group.
    pub group_size: Option<u32>,
    /// Sequence number within the group, which matches instances across ranks.
    pub seq: Option<i64>,
    /// Payload of this rank in bytes (the larger of input and output).
    pub bytes: Option<i64>,
    /// Element type.
    pub dtype: Option<StringId>,
}

/// What a synchronisation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// Host waits for an event.
    Event,
    /// A stream waits for an event; the host does not block.
    StreamWaitEvent,
    /// Host waits for a stream.
    Stream,
    /// Host waits for a whole context or device.
    Context,
}

/// A link between two slices that the source recorded itself and that correlation ids do not express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Process in which `id` is unique.
    pub process: ProcessId,
    /// Id shared by both ends.
    pub id: i64,
    /// Where it starts.
    pub from: (TrackId, Ns),
    /// Where it ends.
    pub to: (TrackId, Ns),
    /// What it means (`fwdbwd`, …).
    pub kind: StringId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_are_unique() {
        for c in Category::ALL {
            assert_eq!(Category::from_code(c as u8), Some(c));
            assert_eq!(Category::ALL.iter().filter(|d| d.name() == c.name()).count(), 1);
        }
        assert_eq!(Category::from_code(200), None);
    }
}
