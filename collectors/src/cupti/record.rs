//! A record as a value. Nothing of CUPTI is asked here: bytes become a value, or the reason why not.

use super::{
    abi,
    layout::{any, call, copy, external, fill, graph, graph_of_kernel, kernel, overhead, peer_copy, wait},
};
use crate::activity::found::Unread;

/// From when to when, by the clock of the stamps; both 0 where CUPTI could not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Start.
    pub start: u64,
    /// End.
    pub end: u64,
}

/// Where something ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Device.
    pub device: u32,
    /// Context of the process.
    pub context: u32,
    /// Stream of the context.
    pub stream: u32,
}

/// Work of the device, of whatever kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// When it ran.
    pub when: When,
    /// Where it ran.
    pub queue: Queue,
    /// The call that launched it.
    pub correlation: u32,
    /// Node of a graph that it is a run of.
    pub node: Option<u64>,
}

/// Which interface a call is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interface {
    /// `cu…`.
    Driver,
    /// `cuda…`.
    Runtime,
}

/// What a record says. Names are the addresses of texts that belong to CUPTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A kernel.
    Kernel {
        /// When and where.
        work: Work,
        /// Address of its name; 0 without one.
        name: u64,
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: [u32; 3],
        /// When the call put it into the queue of the host; `None` where that is not recorded.
        queued: Option<u64>,
        /// When it was handed to the device; `None` where that is not recorded.
        submitted: Option<u64>,
        /// The graph.
        graph: Option<u32>,
    },
    /// A copy.
    Copy {
        /// When and where.
        work: Work,
        /// Direction, in CUPTI's numbers.
        direction: u8,
        /// Kind of memory that is read.
        source: u8,
        /// Kind of memory that is written.
        target: u8,
        /// Bytes.
        bytes: u64,
    },
    /// A fill.
    Fill {
        /// When and where.
        work: Work,
        /// Kind of memory that is written.
        target: u16,
        /// Bytes.
        bytes: u64,
    },
    /// A replay of a whole graph.
    Graph {
        /// When and where.
        work: Work,
        /// The graph.
        graph: u32,
    },
    /// A call.
    Call {
        /// Its interface.
        interface: Interface,
        /// Its number there.
        id: u32,
        /// When.
        when: When,
        /// Process and thread that called.
        thread: [u32; 2],
        /// What ties it to what it launched.
        correlation: u32,
        /// What it returned.
        result: u32,
    },
    /// The id that was pushed around a call.
    External {
        /// Whose ids they are.
        whose: u32,
        /// The id.
        id: u64,
        /// The call.
        correlation: u32,
    },
    /// A wait.
    Wait {
        /// What for, in CUPTI's numbers.
        what: u32,
        /// When.
        when: When,
        /// Context and stream.
        place: [u32; 2],
        /// The call.
        correlation: u32,
    },
    /// Time that CUPTI or the driver took.
    Overhead {
        /// What for, in CUPTI's numbers.
        what: u32,
        /// When.
        when: When,
        /// Process and thread, where it is a thread's.
        thread: Option<[u32; 2]>,
    },
}

/// Sizes of the first version of a kernel's record that holds its graph: in `Kernel5` padding lies there. 160 bytes are those of
/// `CUpti_ActivityKernel5` (CUDA 11.0).
const KERNEL_WITHOUT_GRAPH: usize = 160;

/// Reads a record. `bytes` begin with it and end where the next one begins, so that nothing of a later version is read from an
/// earlier one.
///
/// # Errors
/// Why it says nothing.
pub fn read(bytes: &[u8]) -> Result<Record, Unread> {
    let kind = any::KIND.of(bytes).ok_or(Unread::Short(0))?;
    let record = match kind {
        abi::KIND_KERNEL => of_kernel(bytes),
        abi::KIND_MEMCPY => of_copy(bytes),
        abi::KIND_PEER_COPY => of_peer_copy(bytes),
        abi::KIND_MEMSET => of_fill(bytes),
        abi::KIND_GRAPH => of_graph(bytes),
        abi::KIND_DRIVER => of_call(bytes, Interface::Driver),
        abi::KIND_RUNTIME => of_call(bytes, Interface::Runtime),
        abi::KIND_EXTERNAL => of_external(bytes),
        abi::KIND_SYNCHRONIZATION => of_wait(bytes),
        abi::KIND_OVERHEAD => of_overhead(bytes),
        _ => return Err(Unread::Unknown(kind)),
    };
    record.ok_or(Unread::Short(kind))
}

/// A number that is 0 where there is none.
fn some<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// Work of the device from the fields of a record whose module is in sight.
macro_rules! work {
    ($bytes:ident, $node:expr) => {
        Work {
            when: When { start: START.of($bytes)?, end: END.of($bytes)? },
            queue: Queue { device: DEVICE.of($bytes)?, context: CONTEXT.of($bytes)?, stream: STREAM.of($bytes)? },
            correlation: CORRELATION.of($bytes)?,
            node: $node,
        }
    };
}

fn of_kernel(b: &[u8]) -> Option<Record> {
    use kernel::*;
    let graph = (b.len() > KERNEL_WITHOUT_GRAPH).then(|| graph_of_kernel::GRAPH.of(b)).flatten();
    Some(Record::Kernel {
        work: work!(b, some(NODE.of(b)?)),
        name: NAME.of(b)?,
        grid: [GRID_X.of(b)?, GRID_Y.of(b)?, GRID_Z.of(b)?],
        block: [BLOCK_X.of(b)?, BLOCK_Y.of(b)?, BLOCK_Z.of(b)?],
        queued: some(QUEUED.of(b)?),
        submitted: some(SUBMITTED.of(b)?),
        graph: graph.and_then(some),
    })
}

fn of_copy(b: &[u8]) -> Option<Record> {
    use copy::*;
    Some(Record::Copy {
        work: work!(b, some(NODE.of(b)?)),
        direction: DIRECTION.of(b)?,
        source: SOURCE.of(b)?,
        target: TARGET.of(b)?,
        bytes: BYTES.of(b)?,
    })
}

fn of_peer_copy(b: &[u8]) -> Option<Record> {
    use peer_copy::*;
    Some(Record::Copy {
        work: work!(b, some(NODE.of(b)?)),
        direction: DIRECTION.of(b)?,
        source: SOURCE.of(b)?,
        target: TARGET.of(b)?,
        bytes: BYTES.of(b)?,
    })
}

fn of_fill(b: &[u8]) -> Option<Record> {
    use fill::*;
    Some(Record::Fill { work: work!(b, some(NODE.of(b)?)), target: TARGET.of(b)?, bytes: BYTES.of(b)? })
}

fn of_graph(b: &[u8]) -> Option<Record> {
    use graph::*;
    Some(Record::Graph { work: work!(b, None), graph: GRAPH.of(b)? })
}

fn of_call(b: &[u8], interface: Interface) -> Option<Record> {
    use call::*;
    Some(Record::Call {
        interface,
        id: ID.of(b)?,
        when: When { start: START.of(b)?, end: END.of(b)? },
        thread: [PROCESS.of(b)?, THREAD.of(b)?],
        correlation: CORRELATION.of(b)?,
        result: RESULT.of(b)?,
    })
}

fn of_external(b: &[u8]) -> Option<Record> {
    use external::*;
    Some(Record::External { whose: WHOSE.of(b)?, id: ID.of(b)?, correlation: CORRELATION.of(b)? })
}

fn of_wait(b: &[u8]) -> Option<Record> {
    use wait::*;
    Some(Record::Wait {
        what: WHAT.of(b)?,
        when: When { start: START.of(b)?, end: END.of(b)? },
        place: [CONTEXT.of(b)?, STREAM.of(b)?],
        correlation: CORRELATION.of(b)?,
    })
}

fn of_overhead(b: &[u8]) -> Option<Record> {
    use overhead::*;
    let of_thread = OBJECT.of(b)? == abi::OBJECT_THREAD;
    Some(Record::Overhead {
        what: WHAT.of(b)?,
        when: When { start: START.of(b)?, end: END.of(b)? },
        thread: if of_thread { Some([PROCESS.of(b)?, THREAD.of(b)?]) } else { None },
    })
}
