//! The seam between this backend and the driver below it. Everything above names devices, streams, events, modules and graphs
//! through [`Platform`], and nothing above knows whose driver it is; `driver` has the one implementation so far, CUDA through
//! `cudarc`.
//!
//! Drivers that are made after CUDA's come behind the same trait: HIP (`libamdhip64.so`, `hip…`), MUSA (`libmusa.so`, `mu…`)
//! and MACA (`libmcruntime.so`, `mc…`) have the same calls under other prefixes. A second implementation has to give
//!
//! - every call of the trait, found in its library before the first is made, so that a missing one is a sentence and no panic;
//! - its reasons to refuse as [`Why`], with the name and the number of its code in [`Refused::what`];
//! - streams that wait for nothing of the default stream, events that keep times, and captures of one thread;
//! - kernels in a form that its `load_module` takes: what stands in for NVRTC and the embedded PTX (`source`). A device whose
//!   warps are not of 32 lanes needs other numbers in `launch` and in `kernels/prelude.cu` besides.
//!
//! The vendor's products (`cublaslt`) and collectives (`nccl`) are no part of it: a run takes kernels of ours without the first,
//! and one device without the second.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};

/// A context, stream, event, module, function, graph, or graph that is ready to be launched.
pub(super) type Handle = *mut c_void;
/// Where something lies in the memory of a device.
pub(super) type Address = u64;

/// Why a driver refused, as far as it makes a difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// There is no room on the device.
    Memory,
    /// It has no device.
    NoDevice,
    /// The kernels are made for a younger driver.
    Younger,
    /// Anything else.
    Other,
}

/// A driver's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub why: Why,
    /// What its code is called, and its number.
    pub what: String,
}

/// What a call gives.
pub(super) type Answer<T = ()> = Result<T, Refused>;

/// A number that a driver says of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// Multiprocessors.
    Units,
    /// Cache of the second level, bytes.
    L2Bytes,
    /// Compute capability, major.
    Major,
    /// Compute capability, minor.
    Minor,
}

/// A kernel that is to run, with its arguments.
pub(super) struct Start<'a> {
    pub function: Handle,
    /// Blocks in two dimensions.
    pub grid: [u32; 2],
    /// Threads of a block.
    pub threads: u32,
    pub stream: Handle,
    /// Where each argument lies, as many as the function takes.
    pub arguments: &'a mut [*mut c_void],
}

/// The calls of a driver that the engine makes. A call that takes or makes something on a device asks for its context to be that
/// of the calling thread.
///
/// # Safety
/// What is unsafe takes handles and addresses that the same driver gave and that were not yet given back; memory that is copied
/// or filled has as many bytes as are said, and stays until the stream was waited for.
pub(super) trait Platform: Send + Sync {
    /// What people call it.
    fn title(&self) -> &'static str;
    /// Makes it ready, before every other call.
    fn init(&self) -> Answer;
    /// What it supports: 1000 × major + 10 × minor.
    fn version(&self) -> Answer<c_int>;
    /// How many devices there are.
    fn count(&self) -> Answer<c_int>;
    /// The device of a number.
    fn device(&self, number: c_int) -> Answer<c_int>;
    /// Product name of a device.
    fn name(&self, device: c_int) -> Answer<String>;
    /// Its place on the PCI bus.
    fn bus(&self, device: c_int) -> Answer<String>;
    /// Its memory, bytes.
    fn memory(&self, device: c_int) -> Answer<usize>;
    /// A number that says something of it.
    fn attribute(&self, which: Attribute, device: c_int) -> Answer<c_int>;
    /// Its primary context.
    fn retain(&self, device: c_int) -> Answer<Handle>;
    /// Gives the primary context back.
    unsafe fn release(&self, device: c_int) -> Answer;
    /// Makes a context that of the calling thread.
    unsafe fn enter(&self, context: Handle) -> Answer;
    /// Bytes that are free, and all of them.
    fn free_memory(&self) -> Answer<(usize, usize)>;
    /// Memory of the device.
    fn alloc(&self, bytes: usize) -> Answer<Address>;
    /// Gives it back.
    unsafe fn free(&self, memory: Address) -> Answer;
    /// Memory of the host that stays where it is.
    fn alloc_pinned(&self, bytes: usize) -> Answer<*mut c_void>;
    /// Gives it back.
    unsafe fn free_pinned(&self, memory: *mut c_void) -> Answer;
    /// Enqueues a filling with one byte.
    unsafe fn fill(&self, memory: Address, byte: u8, bytes: usize, stream: Handle) -> Answer;
    /// Enqueues a copy to the device.
    unsafe fn to_device(&self, to: Address, from: &[u8], stream: Handle) -> Answer;
    /// Enqueues a copy from the device.
    unsafe fn to_host(&self, to: &mut [u8], from: Address, stream: Handle) -> Answer;
    /// A stream that waits for nothing of the default stream, which others use.
    fn stream(&self) -> Answer<Handle>;
    /// Takes a stream away.
    unsafe fn destroy_stream(&self, stream: Handle) -> Answer;
    /// Waits for everything on a stream.
    unsafe fn wait(&self, stream: Handle) -> Answer;
    /// An event with a time.
    fn event(&self) -> Answer<Handle>;
    /// Takes an event away.
    unsafe fn destroy_event(&self, event: Handle) -> Answer;
    /// Enqueues an event.
    unsafe fn record(&self, event: Handle, stream: Handle) -> Answer;
    /// Milliseconds from one event to another.
    unsafe fn elapsed(&self, from: Handle, to: Handle) -> Answer<f32>;
    /// Loads kernels; an image that is a text ends with a zero, and `log` gets what a compiler in the driver says.
    unsafe fn load_module(&self, image: &[u8], log: &mut [u8]) -> Answer<Handle>;
    /// Takes them away.
    unsafe fn unload_module(&self, module: Handle) -> Answer;
    /// A kernel by its name.
    unsafe fn function(&self, module: Handle, name: &CStr) -> Answer<Handle>;
    /// Enqueues a kernel.
    unsafe fn launch(&self, start: Start<'_>) -> Answer;
    /// From here on commands of a stream are noted and not run; calls of other threads do not disturb it.
    unsafe fn begin_capture(&self, stream: Handle) -> Answer;
    /// What was noted.
    unsafe fn end_capture(&self, stream: Handle) -> Answer<Handle>;
    /// A graph that is ready to be launched.
    unsafe fn instantiate(&self, graph: Handle) -> Answer<Handle>;
    /// Enqueues it.
    unsafe fn launch_graph(&self, executable: Handle, stream: Handle) -> Answer;
    /// Takes a graph away.
    unsafe fn destroy_graph(&self, graph: Handle) -> Answer;
    /// Takes a graph away that is ready to be launched.
    unsafe fn destroy_executable(&self, executable: Handle) -> Answer;
}
