//! CUDA as a [`Platform`]: the driver's calls (`libcuda.so.1`) through `cudarc`. All of them are of CUDA 11.4 or earlier, in the
//! version that drivers up to 13 still have.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr,
};

use cudarc::driver::{
    result::{self, DriverError},
    sys::{self, CUdevice_attribute, CUgraphInstantiate_flags, CUjit_option, CUresult, CUstreamCaptureMode},
};

use super::{
    library::{Loaded, Vendor},
    platform::{Address, Answer, Attribute, Handle, Platform, Refused, Start, Why},
};
use crate::Error;

/// What brings a driver.
pub const REMEDY: &str = "install the NVIDIA driver (Debian: apt-get install nvidia-driver), or give the container its \
                          devices (--gpus all)";

/// What is called below. Where a call had several versions, the library exports each by a name of its own.
pub(super) const CALLS: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetPCIBusId",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemAllocHost_v2",
    "cuMemFreeHost",
    "cuMemsetD8Async",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventElapsedTime",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuLaunchKernel",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];

static LOADED: Loaded<Driver> =
    Loaded::new(Vendor { stem: "cuda", names: &["libcuda.so.1", "libcuda.so"], calls: CALLS, of_cudarc: sys::culib });

/// CUDA's driver, behind [`Loaded::get`], which looked for its calls.
struct Cudarc;

fn answer<T>(result: Result<T, DriverError>) -> Answer<T> {
    result.map_err(|error| {
        let code = error.0 as u32;
        let why = [
            (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Why::Memory),
            (CUresult::CUDA_ERROR_NO_DEVICE, Why::NoDevice),
            (CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, Why::Younger),
        ];
        let why = why.into_iter().find(|(known, _)| *known as u32 == code).map_or(Why::Other, |(_, why)| why);
        let name = error.error_name().ok().map(CStr::to_string_lossy);
        Refused { why, what: name.map_or_else(|| format!("code {code}"), |name| format!("{name} ({code})")) }
    })
}

fn handle<T>(result: Result<*mut T, DriverError>) -> Answer<Handle> {
    answer(result).map(<*mut T>::cast)
}

/// What a call writes as a text into as many bytes as it is told.
fn text(write: impl FnOnce(*mut c_char, c_int) -> CUresult) -> Answer<String> {
    let mut bytes = [0u8; 256];
    let room = c_int::try_from(bytes.len()).unwrap_or(0);
    answer(write(bytes.as_mut_ptr().cast(), room).result())?;
    let text = CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().trim().to_owned());
    Ok(text.unwrap_or_default())
}

// SAFETY (of every block below): the library has the call, places for answers are ours, and for all else the caller answers, as
// the trait says.
impl Platform for Cudarc {
    fn title(&self) -> &'static str {
        "CUDA"
    }

    fn init(&self) -> Answer {
        answer(result::init())
    }

    fn version(&self) -> Answer<c_int> {
        let mut version = 0;
        answer(unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()).map(|()| version)
    }

    fn count(&self) -> Answer<c_int> {
        answer(result::device::get_count())
    }

    fn device(&self, number: c_int) -> Answer<c_int> {
        answer(result::device::get(number))
    }

    fn name(&self, device: c_int) -> Answer<String> {
        // That of `result` panics where a name is longer than its room.
        text(|to, room| unsafe { sys::cuDeviceGetName(to, room, device) })
    }

    fn bus(&self, device: c_int) -> Answer<String> {
        text(|to, room| unsafe { sys::cuDeviceGetPCIBusId(to, room, device) })
    }

    fn memory(&self, device: c_int) -> Answer<usize> {
        answer(unsafe { result::device::total_mem(device) })
    }

    fn attribute(&self, which: Attribute, device: c_int) -> Answer<c_int> {
        let which = match which {
            Attribute::Units => CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
            Attribute::L2Bytes => CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
            Attribute::Major => CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            Attribute::Minor => CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        };
        answer(unsafe { result::device::get_attribute(device, which) })
    }

    fn retain(&self, device: c_int) -> Answer<Handle> {
        handle(unsafe { result::primary_ctx::retain(device) })
    }

    unsafe fn release(&self, device: c_int) -> Answer {
        answer(unsafe { result::primary_ctx::release(device) })
    }

    unsafe fn enter(&self, context: Handle) -> Answer {
        answer(unsafe { result::ctx::set_current(context.cast()) })
    }

    fn free_memory(&self) -> Answer<(usize, usize)> {
        answer(result::mem_get_info())
    }

    fn alloc(&self, bytes: usize) -> Answer<Address> {
        answer(unsafe { result::malloc_sync(bytes) })
    }

    unsafe fn free(&self, memory: Address) -> Answer {
        answer(unsafe { result::free_sync(memory) })
    }

    fn alloc_pinned(&self, bytes: usize) -> Answer<*mut c_void> {
        let mut first = ptr::null_mut();
        answer(unsafe { sys::cuMemAllocHost_v2(&raw mut first, bytes) }.result()).map(|()| first)
    }

    unsafe fn free_pinned(&self, memory: *mut c_void) -> Answer {
        answer(unsafe { result::free_host(memory) })
    }

    unsafe fn fill(&self, memory: Address, byte: u8, bytes: usize, stream: Handle) -> Answer {
        answer(unsafe { result::memset_d8_async(memory, byte, bytes, stream.cast()) })
    }

    unsafe fn to_device(&self, to: Address, from: &[u8], stream: Handle) -> Answer {
        answer(unsafe { result::memcpy_htod_async(to, from, stream.cast()) })
    }

    unsafe fn to_host(&self, to: &mut [u8], from: Address, stream: Handle) -> Answer {
        answer(unsafe { result::memcpy_dtoh_async(to, from, stream.cast()) })
    }

    fn stream(&self) -> Answer<Handle> {
        handle(result::stream::create(result::stream::StreamKind::NonBlocking))
    }

    unsafe fn destroy_stream(&self, stream: Handle) -> Answer {
        answer(unsafe { result::stream::destroy(stream.cast()) })
    }

    unsafe fn wait(&self, stream: Handle) -> Answer {
        answer(unsafe { result::stream::synchronize(stream.cast()) })
    }

    fn event(&self) -> Answer<Handle> {
        handle(result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT))
    }

    unsafe fn destroy_event(&self, event: Handle) -> Answer {
        answer(unsafe { result::event::destroy(event.cast()) })
    }

    unsafe fn record(&self, event: Handle, stream: Handle) -> Answer {
        answer(unsafe { result::event::record(event.cast(), stream.cast()) })
    }

    unsafe fn elapsed(&self, from: Handle, to: Handle) -> Answer<f32> {
        answer(unsafe { result::event::elapsed(from.cast(), to.cast()) })
    }

    unsafe fn load_module(&self, image: &[u8], log: &mut [u8]) -> Answer<Handle> {
        let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len())];
        let (count, mut module) = (options.len() as c_uint, ptr::null_mut());
        let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
        let code = unsafe { sys::cuModuleLoadDataEx(&raw mut module, image.as_ptr().cast(), count, options, values) };
        handle(code.result().map(|()| module))
    }

    unsafe fn unload_module(&self, module: Handle) -> Answer {
        answer(unsafe { result::module::unload(module.cast()) })
    }

    unsafe fn function(&self, module: Handle, name: &CStr) -> Answer<Handle> {
        handle(unsafe { result::module::get_function(module.cast(), name.to_owned()) })
    }

    unsafe fn launch(&self, start: Start<'_>) -> Answer {
        let Start { function, grid: [x, y], threads, stream, arguments } = start;
        answer(unsafe {
            result::launch_kernel(function.cast(), (x, y, 1), (threads, 1, 1), 0, stream.cast(), arguments)
        })
    }

    unsafe fn begin_capture(&self, stream: Handle) -> Answer {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        answer(unsafe { result::stream::begin_capture(stream.cast(), mode) })
    }

    unsafe fn end_capture(&self, stream: Handle) -> Answer<Handle> {
        handle(unsafe { result::stream::end_capture(stream.cast()) })
    }

    unsafe fn instantiate(&self, graph: Handle) -> Answer<Handle> {
        handle(unsafe { result::graph::instantiate(graph.cast(), CUgraphInstantiate_flags(0)) })
    }

    unsafe fn launch_graph(&self, executable: Handle, stream: Handle) -> Answer {
        answer(unsafe { result::graph::launch(executable.cast(), stream.cast()) })
    }

    unsafe fn destroy_graph(&self, graph: Handle) -> Answer {
        answer(unsafe { result::graph::destroy(graph.cast()) })
    }

    unsafe fn destroy_executable(&self, executable: Handle) -> Answer {
        answer(unsafe { result::graph::exec_destroy(executable.cast()) })
    }
}

/// The driver, ready for calls.
pub(super) struct Driver {
    pub calls: Box<dyn Platform>,
    /// What it supports: 1000 × major + 10 × minor.
    pub version: c_int,
}

impl Driver {
    /// Loads the driver and makes it ready; `path` names it in place of the system's.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none, when it is too old, or when it has no device.
    pub(super) fn load(path: Option<&Path>) -> Result<&'static Self, Error> {
        let named = path.map_or_else(|| "libcuda.so.1".to_owned(), |path| format!("'{}'", path.display()));
        let make = || {
            let calls: Box<dyn Platform> = Box::new(Cudarc);
            match calls.init().and_then(|()| calls.version()) {
                Ok(version) => Ok(Self { calls, version }),
                Err(Refused { why: Why::NoDevice, .. }) => Err(format!("it finds no device; {REMEDY}")),
                Err(refused) => Err(format!("it answers {}; {REMEDY}", refused.what)),
            }
        };
        LOADED.get(path, make).map_err(|why| {
            let remedy = match &why {
                why if why.contains(';') => String::new(),
                why if why.starts_with("it has no '") => "; install a newer driver".to_owned(),
                _ => format!("; {REMEDY}"),
            };
            Error::Unavailable { backend: "cuda", what: format!("{named}, the CUDA driver: {why}{remedy}") }
        })
    }

    /// What a call gave, or what the driver refused.
    pub(super) fn check<T>(&self, doing: &str, answer: Answer<T>) -> Result<T, Error> {
        answer.map_err(|refused| {
            let what = format!("the {} driver answers {}", self.calls.title(), refused.what);
            Error::Device { doing: doing.to_owned(), what }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_is_no_driver_is_refused_with_the_next_step() {
        let refused = |path: &str| Driver::load(Some(Path::new(path))).err().unwrap().to_string();
        let none = refused("/nonexistent/libcuda.so.1");
        assert!(none.contains("no cuda run on this machine") && none.contains("nvidia-driver"), "{none}");
        // A library that is there and has none of the calls.
        let other = refused("libc.so.6");
        assert!(other.contains("no 'cuInit'") && other.contains("newer driver"), "{other}");
    }

    /// The names with a number are those that the library exports; without it they are macros of the vendor's header or the
    /// first version, which takes 32-bit sizes. The second version of elapsed times came with CUDA 12.8.
    #[test]
    fn calls_that_changed_are_taken_in_the_version_that_is_meant() {
        for call in ["cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuStreamBeginCapture_v2", "cuEventElapsedTime"] {
            assert!(CALLS.contains(&call), "{call}");
        }
    }
}
