//! A simulated NPU: the calls of AscendCL, aclnn, HCCL and MSPTI that the engine makes, as one library that is opened in place of
//! CANN's (`STRATO_ASCEND_LIB`). What it computes is right, when it computes it is modelled, and everything that comes of it
//! is called simulated. It shares no code with the engine: what it knows of the calls comes from their documentation, so that
//! a call that is made wrongly is refused here as it would be there.
//!
//! | module | owns |
//! | --- | --- |
//! | `error` | codes of the documentation, and the text of the last one |
//! | `state` | what every handle stands for |
//! | `cost` | how long things take, from the environment |
//! | `memory`, `context` | memory, devices and contexts |
//! | `stream`, `event`, `graph` | queues, their marks, and what is captured from them |
//! | `tensor`, `executor` | descriptions of tensors, and operators in two phases |
//! | `ops` | what operators compute |
//! | `hccl` | collectives between devices of this process |
//! | `mspti` | records of all that, as MSPTI gives them |
//!
//! A handle is a number and never an address, so one that was destroyed is known as such. Work that reads memory which was
//! freed before it ran faults its stream, as a device does.

mod context;
mod cost;
mod error;
mod event;
mod executor;
mod graph;
mod hccl;
mod memory;
mod mspti;
mod ops;
mod state;
mod stream;
mod tensor;

/// Says that this library is no CANN. Whoever opens it marks as simulated what it gives.
#[allow(unsafe_code)]
// SAFETY: no other library has a symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn strato_sim_npu() -> u32 {
    1
}
