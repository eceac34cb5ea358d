//! Where the first fields of CUPTI's records lie. Every version of a record begins as the one before it and grows at its end, so
//! that one table holds from CUDA 11 to 13. Source: offsets that a C compiler computes of the headers of 11.7, 12.1, 12.9 and 13.5,
//! which `tests/headers.rs` does again where they are.

use crate::activity::fields::{Field, Named, Word, records};

records! {
    /// What all records begin with.
    any { KIND: u32 = 0, "kind"; }
    /// A kernel: `CUpti_ActivityKernel5` and later. The graph itself is in 6 and later.
    kernel {
        START: u64 = 16, "start";
        END: u64 = 24, "end";
        DEVICE: u32 = 40, "deviceId";
        CONTEXT: u32 = 44, "contextId";
        STREAM: u32 = 48, "streamId";
        GRID_X: u32 = 52, "gridX";
        GRID_Y: u32 = 56, "gridY";
        GRID_Z: u32 = 60, "gridZ";
        BLOCK_X: u32 = 64, "blockX";
        BLOCK_Y: u32 = 68, "blockY";
        BLOCK_Z: u32 = 72, "blockZ";
        CORRELATION: u32 = 92, "correlationId";
        NAME: u64 = 104, "name";
        QUEUED: u64 = 120, "queued";
        SUBMITTED: u64 = 128, "submitted";
        NODE: u64 = 144, "graphNodeId";
    }
    /// The graph of a kernel: `CUpti_ActivityKernel6` and later.
    graph_of_kernel { GRAPH: u32 = 156, "graphId"; }
    /// A copy: `CUpti_ActivityMemcpy4` and later.
    copy {
        DIRECTION: u8 = 4, "copyKind";
        SOURCE: u8 = 5, "srcKind";
        TARGET: u8 = 6, "dstKind";
        BYTES: u64 = 8, "bytes";
        START: u64 = 16, "start";
        END: u64 = 24, "end";
        DEVICE: u32 = 32, "deviceId";
        CONTEXT: u32 = 36, "contextId";
        STREAM: u32 = 40, "streamId";
        CORRELATION: u32 = 44, "correlationId";
        NODE: u64 = 64, "graphNodeId";
    }
    /// A copy between devices: `CUpti_ActivityMemcpyPtoP3` and later.
    peer_copy {
        DIRECTION: u8 = 4, "copyKind";
        SOURCE: u8 = 5, "srcKind";
        TARGET: u8 = 6, "dstKind";
        BYTES: u64 = 8, "bytes";
        START: u64 = 16, "start";
        END: u64 = 24, "end";
        DEVICE: u32 = 32, "deviceId";
        CONTEXT: u32 = 36, "contextId";
        STREAM: u32 = 40, "streamId";
        CORRELATION: u32 = 60, "correlationId";
        NODE: u64 = 72, "graphNodeId";
    }
    /// A fill: `CUpti_ActivityMemset3` and later.
    fill {
        BYTES: u64 = 8, "bytes";
        START: u64 = 16, "start";
        END: u64 = 24, "end";
        DEVICE: u32 = 32, "deviceId";
        CONTEXT: u32 = 36, "contextId";
        STREAM: u32 = 40, "streamId";
        CORRELATION: u32 = 44, "correlationId";
        TARGET: u16 = 50, "memoryKind";
        NODE: u64 = 64, "graphNodeId";
    }
    /// A call: `CUpti_ActivityAPI`.
    call {
        ID: u32 = 4, "cbid";
        START: u64 = 8, "start";
        END: u64 = 16, "end";
        PROCESS: u32 = 24, "processId";
        THREAD: u32 = 28, "threadId";
        CORRELATION: u32 = 32, "correlationId";
        RESULT: u32 = 36, "returnValue";
    }
    /// The id that was pushed around a call: `CUpti_ActivityExternalCorrelation`.
    external {
        WHOSE: u32 = 4, "externalKind";
        ID: u64 = 8, "externalId";
        CORRELATION: u32 = 16, "correlationId";
    }
    /// A replay: `CUpti_ActivityGraphTrace` and later.
    graph {
        CORRELATION: u32 = 4, "correlationId";
        START: u64 = 8, "start";
        END: u64 = 16, "end";
        DEVICE: u32 = 24, "deviceId";
        GRAPH: u32 = 28, "graphId";
        CONTEXT: u32 = 32, "contextId";
        STREAM: u32 = 36, "streamId";
    }
    /// A wait: `CUpti_ActivitySynchronization` and later.
    wait {
        WHAT: u32 = 4, "type";
        START: u64 = 8, "start";
        END: u64 = 16, "end";
        CORRELATION: u32 = 24, "correlationId";
        CONTEXT: u32 = 28, "contextId";
        STREAM: u32 = 32, "streamId";
    }
    /// Overhead: `CUpti_ActivityOverhead` and later.
    overhead {
        WHAT: u32 = 4, "overheadKind";
        OBJECT: u32 = 8, "objectKind";
        PROCESS: u32 = 12, "objectId.pt.processId";
        THREAD: u32 = 16, "objectId.pt.threadId";
        START: u64 = 24, "start";
        END: u64 = 32, "end";
    }
    /// What a callback is told of a resource: `CUpti_ResourceData`.
    resource { ABOUT: u64 = 16, "resourceDescriptor"; }
    /// What that is for a graph: `CUpti_GraphData`.
    node {
        NODE: u64 = 16, "node";
        ORIGINAL: u64 = 24, "originalNode";
    }
}
