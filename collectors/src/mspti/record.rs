//! A record as a value. Nothing of MSPTI is asked here: bytes become a value, or the reason why not. Its structures are packed, so
//! that fields of eight bytes lie at multiples of four.

use super::api;
use crate::activity::{
    fields::{Field, Named, Word, records},
    found::Unread,
};

records! {
    /// What all records begin with.
    any { KIND: u32 = 0, "kind"; }
    /// A kernel: `msptiActivityKernel`.
    kernel {
        START: u64 = 4, "start";
        END: u64 = 12, "end";
        DEVICE: u32 = 20, "ds.deviceId";
        STREAM: u32 = 24, "ds.streamId";
        CORRELATION: u64 = 28, "correlationId";
        UNIT: u64 = 36, "type";
        NAME: u64 = 44, "name";
    }
    /// A collective: `msptiActivityCommunication`.
    communication {
        DEVICE: u32 = 16, "ds.deviceId";
        STREAM: u32 = 20, "ds.streamId";
        START: u64 = 24, "start";
        END: u64 = 32, "end";
        UNIT: u64 = 40, "algType";
        NAME: u64 = 48, "name";
        CORRELATION: u64 = 64, "correlationId";
    }
    /// A call: `msptiActivityApi`.
    call {
        START: u64 = 4, "start";
        END: u64 = 12, "end";
        THREAD: u32 = 24, "pt.threadId";
        CORRELATION: u64 = 28, "correlationId";
        NAME: u64 = 36, "name";
    }
    /// The id that was pushed around a call: `msptiActivityExternalCorrelation`.
    external {
        WHOSE: u32 = 4, "externalKind";
        ID: u64 = 8, "externalId";
        CORRELATION: u64 = 16, "correlationId";
    }
    /// Memory that is allocated or freed: `msptiActivityMemory`.
    memory {
        OPERATION: u32 = 4, "memoryOperationType";
        START: u64 = 20, "start";
        END: u64 = 28, "end";
        BYTES: u64 = 44, "bytes";
        DEVICE: u32 = 56, "deviceId";
    }
    /// A call that copies or fills: `msptiActivityMemcpy` and `msptiActivityMemset`.
    transfer {
        BYTES: u64 = 8, "bytes";
        START: u64 = 16, "start";
        END: u64 = 24, "end";
    }
}

/// From when to when, by MSPTI's clock, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Start.
    pub start: u64,
    /// End.
    pub end: u64,
}

/// What a record says. Names are the addresses of texts that belong to MSPTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A kernel or a collective.
    Task {
        /// When it ran.
        when: When,
        /// Numbers of its device and stream.
        queue: [u32; 2],
        /// The call that launched it; of a graph's task the call that was captured.
        correlation: u64,
        /// Address of the name of what ran it: a unit of the device, or an algorithm.
        unit: u64,
        /// Address of its name.
        name: u64,
    },
    /// A call.
    Call {
        /// When.
        when: When,
        /// The system's number of the thread.
        thread: u32,
        /// Address of its name.
        name: u64,
    },
    /// The id that was pushed around a call.
    External {
        /// Whose ids they are.
        whose: u32,
        /// The id.
        id: u64,
        /// The call.
        correlation: u64,
    },
    /// Memory of a device was allocated or freed.
    Memory {
        /// When.
        when: When,
        /// Bytes; negative where they were freed.
        bytes: i64,
        /// Number of the device.
        device: u32,
    },
    /// A call copied or filled. It is the call that has a time, and not the device.
    Transfer {
        /// When.
        when: When,
        /// Bytes.
        bytes: u64,
    },
}

/// Reads a record. `bytes` begin with it and end where the next one begins, so that nothing of a later version is read from an
/// earlier one.
///
/// # Errors
/// Why it says nothing.
pub fn read(bytes: &[u8]) -> Result<Record, Unread> {
    let kind = any::KIND.of(bytes).ok_or(Unread::Short(0))?;
    let record = match kind {
        api::KIND_KERNEL => of_kernel(bytes),
        api::KIND_COMMUNICATION => of_communication(bytes),
        api::KIND_API => of_call(bytes),
        api::KIND_EXTERNAL => of_external(bytes),
        api::KIND_MEMORY => of_memory(bytes),
        api::KIND_MEMCPY | api::KIND_MEMSET => of_transfer(bytes),
        _ => return Err(Unread::Unknown(kind)),
    };
    record.ok_or(Unread::Short(kind))
}

/// A task from the fields of a record whose module is in sight.
macro_rules! task {
    ($bytes:ident) => {
        Record::Task {
            when: When { start: START.of($bytes)?, end: END.of($bytes)? },
            queue: [DEVICE.of($bytes)?, STREAM.of($bytes)?],
            correlation: CORRELATION.of($bytes)?,
            unit: UNIT.of($bytes)?,
            name: NAME.of($bytes)?,
        }
    };
}

fn of_kernel(b: &[u8]) -> Option<Record> {
    use kernel::*;
    Some(task!(b))
}

fn of_communication(b: &[u8]) -> Option<Record> {
    use communication::*;
    Some(task!(b))
}

fn of_call(b: &[u8]) -> Option<Record> {
    use call::*;
    let when = When { start: START.of(b)?, end: END.of(b)? };
    CORRELATION.of(b)?;
    Some(Record::Call { when, thread: THREAD.of(b)?, name: NAME.of(b)? })
}

fn of_external(b: &[u8]) -> Option<Record> {
    use external::*;
    Some(Record::External { whose: WHOSE.of(b)?, id: ID.of(b)?, correlation: CORRELATION.of(b)? })
}

fn of_memory(b: &[u8]) -> Option<Record> {
    use memory::*;
    let bytes = i64::try_from(BYTES.of(b)?).unwrap_or(i64::MAX);
    Some(Record::Memory {
        when: When { start: START.of(b)?, end: END.of(b)? },
        // `MSPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE`.
        bytes: if OPERATION.of(b)? == 1 { -bytes } else { bytes },
        device: DEVICE.of(b)?,
    })
}

fn of_transfer(b: &[u8]) -> Option<Record> {
    use transfer::*;
    Some(Record::Transfer { when: When { start: START.of(b)?, end: END.of(b)? }, bytes: BYTES.of(b)? })
}
