//! A step as a command buffer of `cl_khr_command_buffer`: recorded once, and then one call of the host for all its kernels.
//!
//! The extension says nothing of the stamps of single commands, and drivers differ in what the event of a whole buffer says
//! (that of PoCL 3.1 lasts a tenth of a microsecond). So a replay lasts from the end of the copy before it, or from its call
//! where that came later, to the start of the copy after it: both are commands of the same queue, which runs one after the
//! other.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_void},
    ptr,
};

use cl3::load_library;
use opencl3::{
    device::Device as ClDevice,
    error_codes::CL_SUCCESS,
    event::Event,
    types::{cl_command_queue, cl_event, cl_int, cl_kernel, cl_uint},
};

use super::{device::Facts, lower::Launch, refused};
use crate::Error;

pub(super) const EXTENSION: &str = "cl_khr_command_buffer";

/// `cl_command_buffer_khr`.
type Handle = *mut c_void;
type Create = unsafe extern "C" fn(cl_uint, *const cl_command_queue, *const c_void, *mut cl_int) -> Handle;
type Kernel = unsafe extern "C" fn(
    Handle,
    cl_command_queue,
    *const c_void,
    cl_kernel,
    cl_uint,
    *const usize,
    *const usize,
    *const usize,
    cl_uint,
    *const cl_uint,
    *mut cl_uint,
    *mut *mut c_void,
) -> cl_int;
type Plain = unsafe extern "C" fn(Handle) -> cl_int;
type Enqueue =
    unsafe extern "C" fn(cl_uint, *mut cl_command_queue, Handle, cl_uint, *const cl_event, *mut cl_event) -> cl_int;

/// The extension's calls, version 0.9 and later: it is found by name, as no library exports it.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    create: Create,
    kernel: Kernel,
    finalize: Plain,
    release: Plain,
    enqueue: Enqueue,
}

impl Calls {
    /// Those of a device, or what it lacks.
    pub(super) fn find(device: &ClDevice, facts: &Facts) -> Result<Self, String> {
        let missing = |what: &str| format!("{} has no {what}, which --mode graph needs; leave --mode out", facts.name);
        if !facts.has_command_buffers() {
            return Err(missing(EXTENSION));
        }
        let platform = device.platform().map_err(|error| missing(&format!("platform ({error})")))?;
        let address = |call: &CStr| -> Result<*mut c_void, String> {
            let library = load_library().as_ref().map_err(|_| missing("OpenCL loader"))?;
            let found = library.clGetExtensionFunctionAddressForPlatform(platform, call.as_ptr());
            found.filter(|call| !call.is_null()).ok_or_else(|| missing(&call.to_string_lossy()))
        };
        // SAFETY: the driver gives the addresses of functions of these names, whose arguments the extension fixes since 0.9.
        unsafe {
            Ok(Self {
                create: std::mem::transmute::<*mut c_void, Create>(address(c"clCreateCommandBufferKHR")?),
                kernel: std::mem::transmute::<*mut c_void, Kernel>(address(c"clCommandNDRangeKernelKHR")?),
                finalize: std::mem::transmute::<*mut c_void, Plain>(address(c"clFinalizeCommandBufferKHR")?),
                release: std::mem::transmute::<*mut c_void, Plain>(address(c"clReleaseCommandBufferKHR")?),
                enqueue: std::mem::transmute::<*mut c_void, Enqueue>(address(c"clEnqueueCommandBufferKHR")?),
            })
        }
    }
}

/// The recorded kernels of a step.
pub(super) struct Graph {
    calls: Calls,
    handle: Handle,
}

impl Graph {
    /// Records kernels, each after the one before it.
    pub(super) fn record<'l>(
        calls: Calls,
        queue: cl_command_queue,
        launches: impl Iterator<Item = &'l Launch>,
    ) -> Result<Self, Error> {
        let check = |doing: &str, code: cl_int| {
            if code == CL_SUCCESS { Ok(()) } else { Err(refused(doing, &code.into())) }
        };
        let mut code = CL_SUCCESS;
        // SAFETY: one queue, no properties, and a place for the code.
        let handle = unsafe { (calls.create)(1, &raw const queue, ptr::null(), &raw mut code) };
        check("make a command buffer", code)?;
        let graph = Self { calls, handle };
        let mut before: Option<cl_uint> = None;
        for Launch { kernel, global, local, .. } in launches {
            let mut point = 0;
            let (count, list) = before.as_ref().map_or((0, ptr::null()), |point| (1, ptr::from_ref(point)));
            // SAFETY: sizes are arrays of two dimensions; the list has as many sync points as are said; kernels have all their
            // arguments, which the buffer keeps. No queue is named: the buffer has one.
            let code = unsafe {
                (calls.kernel)(
                    handle,
                    ptr::null_mut(),
                    ptr::null(),
                    kernel.get(),
                    2,
                    ptr::null(),
                    global.as_ptr(),
                    local.as_ptr(),
                    count,
                    list,
                    &raw mut point,
                    ptr::null_mut(),
                )
            };
            check("record a kernel into a command buffer", code)?;
            before = Some(point);
        }
        // SAFETY: made above.
        check("finalize a command buffer", unsafe { (calls.finalize)(handle) })?;
        Ok(graph)
    }

    /// Starts all its kernels on the queue it was recorded for.
    pub(super) fn enqueue(&self) -> opencl3::Result<Event> {
        let mut event: cl_event = ptr::null_mut();
        // SAFETY: the buffer is finalized and not under way: every step ends with a wait. The event is ours to release.
        let code = unsafe { (self.calls.enqueue)(0, ptr::null_mut(), self.handle, 0, ptr::null(), &raw mut event) };
        if code == CL_SUCCESS { Ok(Event::new(event)) } else { Err(code.into()) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: ours, and released once. What a driver says of it changes nothing.
        let _ = unsafe { (self.calls.release)(self.handle) };
    }
}
