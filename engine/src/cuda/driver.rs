//! The CUDA driver's calls (`libcuda.so.1`). Names, arguments and codes are those of the CUDA Driver API reference; all calls
//! are of CUDA 11.4 or earlier, so that every driver of the last years has them. Where a call had several versions, the
//! library exports each by a name of its own.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void},
    path::Path,
    ptr,
};

use super::library::{Loaded, calls};
use crate::Error;

/// What brings a driver.
pub const REMEDY: &str = "install the NVIDIA driver (Debian: apt-get install nvidia-driver), or give the container its \
                          devices (--gpus all)";

/// `CUcontext`, `CUstream`, `CUevent`, `CUmodule`, `CUfunction`, `CUgraph`, `CUgraphExec`.
pub(super) type Handle = *mut c_void;
/// `CUdeviceptr`.
pub(super) type Address = c_ulonglong;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) const OUT_OF_MEMORY: c_int = 2;
/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: c_int = 100;
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
pub(super) const UNSUPPORTED_PTX: c_int = 222;
/// `CU_STREAM_NON_BLOCKING`: work of the default stream, which others use, is not waited for.
pub(super) const NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: calls of other threads do not disturb a capture.
pub(super) const THREAD_LOCAL: c_int = 1;

static LOADED: Loaded<Driver> = Loaded::new();

calls! {
    /// The calls of the driver that the engine makes.
    Calls {
        init = "cuInit"(c_uint);
        version = "cuDriverGetVersion"(*mut c_int);
        error_name = "cuGetErrorName"(c_int, *mut *const c_char);
        count = "cuDeviceGetCount"(*mut c_int);
        device = "cuDeviceGet"(*mut c_int, c_int);
        name = "cuDeviceGetName"(*mut c_char, c_int, c_int);
        bus = "cuDeviceGetPCIBusId"(*mut c_char, c_int, c_int);
        memory = "cuDeviceTotalMem_v2"(*mut usize, c_int);
        attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
        retain = "cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
        release = "cuDevicePrimaryCtxRelease_v2"(c_int);
        enter = "cuCtxSetCurrent"(Handle);
        free_memory = "cuMemGetInfo_v2"(*mut usize, *mut usize);
        alloc = "cuMemAlloc_v2"(*mut Address, usize);
        free = "cuMemFree_v2"(Address);
        alloc_pinned = "cuMemAllocHost_v2"(*mut Handle, usize);
        free_pinned = "cuMemFreeHost"(Handle);
        fill = "cuMemsetD8Async"(Address, u8, usize, Handle);
        to_device = "cuMemcpyHtoDAsync_v2"(Address, *const c_void, usize, Handle);
        to_host = "cuMemcpyDtoHAsync_v2"(*mut c_void, Address, usize, Handle);
        stream = "cuStreamCreate"(*mut Handle, c_uint);
        destroy_stream = "cuStreamDestroy_v2"(Handle);
        wait = "cuStreamSynchronize"(Handle);
        event = "cuEventCreate"(*mut Handle, c_uint);
        destroy_event = "cuEventDestroy_v2"(Handle);
        record = "cuEventRecord"(Handle, Handle);
        elapsed = "cuEventElapsedTime"(*mut f32, Handle, Handle);
        load_module = "cuModuleLoadDataEx"(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        unload_module = "cuModuleUnload"(Handle);
        function = "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
        launch = "cuLaunchKernel"(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void,
        );
        begin_capture = "cuStreamBeginCapture_v2"(Handle, c_int);
        end_capture = "cuStreamEndCapture"(Handle, *mut Handle);
        instantiate = "cuGraphInstantiateWithFlags"(*mut Handle, Handle, c_ulonglong);
        launch_graph = "cuGraphLaunch"(Handle, Handle);
        destroy_graph = "cuGraphDestroy"(Handle);
        destroy_executable = "cuGraphExecDestroy"(Handle);
    }
}

/// What a test holds against the vendor's header.
#[cfg(test)]
pub(super) const SIGNATURES: &[super::library::Signature] = Calls::SIGNATURES;
#[cfg(test)]
pub(super) const NUMBERS: &[(&str, i64)] = &[
    ("CUDA_ERROR_OUT_OF_MEMORY", OUT_OF_MEMORY as i64),
    ("CUDA_ERROR_NO_DEVICE", NO_DEVICE as i64),
    ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", UNSUPPORTED_PTX as i64),
    ("CU_STREAM_NON_BLOCKING", NON_BLOCKING as i64),
    ("CU_STREAM_CAPTURE_MODE_THREAD_LOCAL", THREAD_LOCAL as i64),
];

/// The driver, ready for calls.
pub(super) struct Driver {
    pub calls: Calls,
    /// CUDA that it supports: 1000 × major + 10 × minor.
    pub version: c_int,
}

impl Driver {
    /// Loads the driver and makes it ready; `path` names it in place of the system's.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none, when it is too old, or when it has no device.
    pub(super) fn load(path: Option<&Path>) -> Result<&'static Self, Error> {
        let named = path.map_or_else(|| "libcuda.so.1".to_owned(), |path| format!("'{}'", path.display()));
        let find = |library: &libloading::Library| {
            let calls = Calls::find(library).map_err(|what| format!("{what}; install a newer driver"))?;
            let mut driver = Self { calls, version: 0 };
            // SAFETY: flags must be 0; the version is written to a number of ours.
            let codes = unsafe { [(driver.calls.init)(0), (driver.calls.version)(&raw mut driver.version)] };
            match codes {
                [0, 0] => Ok(driver),
                [NO_DEVICE, _] => Err(format!("it finds no device; {REMEDY}")),
                [0, code] | [code, _] => Err(format!("it answers {}; {REMEDY}", driver.name(code))),
            }
        };
        LOADED.get(path, &["libcuda.so.1", "libcuda.so"], find).map_err(|why| {
            let remedy = if why.contains(';') { String::new() } else { format!("; {REMEDY}") };
            Error::Unavailable { backend: "cuda", what: format!("{named}, the CUDA driver: {why}{remedy}") }
        })
    }

    /// What a code of the driver is called.
    pub(super) fn name(&self, code: c_int) -> String {
        let mut name: *const c_char = ptr::null();
        // SAFETY: the driver writes the address of a text that stays, or none.
        let known = unsafe { (self.calls.error_name)(code, &raw mut name) } == 0 && !name.is_null();
        // SAFETY: a text of the driver that ends with a zero.
        let name = known.then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
        name.map_or_else(|| format!("code {code}"), |name| format!("{name} ({code})"))
    }

    /// Success, or what the driver refused.
    pub(super) fn check(&self, doing: &str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let what = format!("the CUDA driver answers {}", self.name(code));
        Err(Error::Device { doing: doing.to_owned(), what })
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
    /// first version, which takes 32-bit sizes.
    #[test]
    fn calls_that_changed_are_taken_in_the_version_that_is_meant() {
        for symbol in ["cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuStreamBeginCapture_v2", "cuEventElapsedTime"] {
            assert!(Calls::SYMBOLS.contains(&symbol), "{symbol}");
        }
        let mut sorted = Calls::SYMBOLS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), Calls::SYMBOLS.len());
    }
}
