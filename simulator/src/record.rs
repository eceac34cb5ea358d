//! What a run leaves behind: host events and device operations, each with the reason it began when it did.

use std::borrow::Cow;

use crate::kernel::{Class, Slot, Vendor};

/// What a synchronisation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOn {
    /// A stream.
    Stream,
    /// An event.
    Event,
}

/// What a host event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// Launch of one kernel.
    Launch,
    /// Launch of a graph.
    GraphLaunch,
    /// A copy or fill call that does not block.
    Copy,
    /// A copy call that returns when the copy is done.
    BlockingCopy,
    /// A call that waits for the device.
    Sync(SyncOn),
    /// An event record.
    EventRecord,
    /// A stream told to wait for an event.
    StreamWait,
    /// Device memory allocated or freed.
    Alloc,
    /// A graph captured or made ready to launch.
    Capture,
    /// Module load, the last part of a compilation.
    ModuleLoad,
    /// A compilation.
    Compile,
    /// Garbage collection.
    Gc,
    /// The profiler's own work.
    Overhead,
    /// An operator of the framework.
    FrameworkOp,
    /// A range the program annotated.
    UserRange,
    /// An interpreter frame.
    PythonFrame,
}

impl HostKind {
    /// Whether the event is a call of the accelerator's interface.
    pub fn is_api(self) -> bool {
        !matches!(
            self,
            Self::Compile | Self::Gc | Self::Overhead | Self::FrameworkOp | Self::UserRange | Self::PythonFrame
        )
    }

    /// Whether the host sleeps in it until the device is done.
    pub fn blocks(self) -> bool {
        matches!(self, Self::BlockingCopy | Self::Sync(_))
    }
}

/// Something the host did. Times are nanoseconds of the capture's clock.
#[derive(Clone, Debug)]
pub struct HostEvent {
    /// What it is.
    pub kind: HostKind,
    /// Name as the profiler writes it.
    pub name: Cow<'static, str>,
    /// Start (ns).
    pub start: i64,
    /// End (ns).
    pub end: i64,
    /// Correlation id, of calls.
    pub correlation: Option<i64>,
    /// Id of the innermost recorded operator or range; of operators and ranges their own.
    pub external: Option<i64>,
    /// What an operator was called with, if that was recorded.
    pub inputs: Option<Inputs>,
    /// Stream the call concerns.
    pub stream: Option<usize>,
    /// Step it belongs to.
    pub step: i64,
}

/// What an operator was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// Shape of each input.
    pub shapes: Vec<[i64; 2]>,
    /// Type of all inputs as the framework names it.
    pub dtype: &'static str,
}

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the directions
pub enum Direction {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    PeerToPeer,
}

/// What a device operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A kernel of the model.
    Compute(Class),
    /// A collective; its first `wait` nanoseconds wait for the other ranks.
    Collective {
        /// Wait at its beginning (ns).
        wait: i64,
        /// Number of the instance in its group.
        seq: i64,
    },
    /// A copy.
    Copy {
        /// Where to.
        direction: Direction,
        /// Whether the host's side is pageable.
        pageable: bool,
    },
    /// A fill.
    Memset,
}

impl Work {
    /// Time at its beginning that waits for other ranks (ns).
    pub fn wait(self) -> i64 {
        if let Self::Collective { wait, .. } = self { wait } else { 0 }
    }
}

/// What an operation's start waited for last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Its launch reached the device then.
    Launch,
    /// The operation before it on its stream.
    Stream,
    /// Work of another stream that ended at this time.
    Dependency(i64),
    /// The node before it in its graph.
    Node,
}

/// Something the device did.
#[derive(Clone, Debug)]
pub struct DeviceOp {
    /// What it does.
    pub work: Work,
    /// Slot of the model, of kernels.
    pub slot: Option<Slot>,
    /// Stream it ran on.
    pub stream: usize,
    /// Start (ns).
    pub start: i64,
    /// End (ns).
    pub end: i64,
    /// Index of its launch call among the host events.
    pub call: usize,
    /// Graph and node, of graph nodes.
    pub node: Option<(i64, i64)>,
    /// What its start waited for last.
    pub bound: Bound,
    /// Bytes, of copies and collectives.
    pub bytes: i64,
    /// Thread blocks, of kernels.
    pub blocks: i64,
    /// Name, of kernels whose name is not that of their slot.
    pub name: Option<&'static str>,
    /// The other rank, of what two ranks do.
    pub peer: Option<usize>,
    /// Step it belongs to.
    pub step: i64,
}

impl DeviceOp {
    /// Name of a kernel under `vendor`'s stack.
    pub(crate) fn kernel(&self, vendor: Vendor) -> &'static str {
        self.name.or(self.slot.map(|slot| slot.kernel(vendor))).unwrap_or("unknown")
    }
}
