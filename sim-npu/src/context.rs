//! Devices and contexts.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use crate::{
    cost::cost,
    error::{self, answer, fault},
    state::{CURRENT, Context, Handle, state},
    stream::Stream,
};

/// What the chip is called; whatever shows a name of a device shows that it is none.
const NAME: &CStr = c"sim-npu (simulated)";

// SAFETY (all below): the names are AscendCL's, which this library stands in for; places to be written are looked at for null.

#[unsafe(no_mangle)]
extern "C" fn aclInit(_: *const c_char) -> i32 {
    answer(|| {
        let mut state = state();
        if std::mem::replace(&mut state.initialised, true) {
            return fault(error::REPEATED_INIT, "aclInit was called before");
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclnnInit(_: *const c_char) -> i32 {
    answer(|| if state().initialised { Ok(()) } else { fault(error::UNINITIALISED, "aclInit was not called") })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetVersion(major: *mut i32, minor: *mut i32, patch: *mut i32) -> i32 {
    answer(|| {
        for (place, number) in [(major, 1), (minor, 17), (patch, 0)] {
            if place.is_null() {
                return fault(error::INVALID_PARAM, "aclrtGetVersion with a null pointer");
            }
            unsafe { *place = number };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetSocName() -> *const c_char {
    NAME.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetDeviceCount(count: *mut u32) -> i32 {
    answer(|| {
        if !state().initialised {
            return fault(error::UNINITIALISED, "aclInit was not called");
        }
        if count.is_null() {
            return fault(error::INVALID_PARAM, "aclrtGetDeviceCount with a null pointer");
        }
        unsafe { *count = cost().devices.unsigned_abs() };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateContext(out: *mut Handle, device: i32) -> i32 {
    answer(|| {
        let mut state = state();
        if !state.initialised {
            return fault(error::UNINITIALISED, "aclInit was not called");
        }
        if out.is_null() {
            return fault(error::INVALID_PARAM, "aclrtCreateContext with a null pointer");
        }
        if !(0..cost().devices).contains(&device) {
            return fault(error::DEVICE, format!("there is no device {device} of {}", cost().devices));
        }
        let (own, default) = (state.handle(), state.handle());
        let stream = Stream::start(default, own, device)?;
        state.streams.insert(default, stream);
        state.contexts.insert(own, Context { device, default });
        CURRENT.set(own);
        unsafe { *out = std::ptr::without_provenance_mut(own) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyContext(context: Handle) -> i32 {
    answer(|| {
        let gone: Vec<_> = {
            let mut state = state();
            if state.contexts.remove(&context.addr()).is_none() {
                return fault(error::HANDLE, "the context was destroyed or never created");
            }
            let own: Vec<usize> =
                state.streams.values().filter(|s| s.context == context.addr()).map(|s| s.handle).collect();
            own.iter().filter_map(|stream| state.streams.remove(stream)).collect()
        };
        gone.iter().for_each(|stream| stream.close());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSetCurrentContext(context: Handle) -> i32 {
    answer(|| {
        if !state().contexts.contains_key(&context.addr()) {
            return fault(error::HANDLE, "the context was destroyed or never created");
        }
        CURRENT.set(context.addr());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetDevice(device: *mut i32) -> i32 {
    answer(|| {
        let state = state();
        let own = state.current()?.1.device;
        if device.is_null() {
            return fault(error::INVALID_PARAM, "aclrtGetDevice with a null pointer");
        }
        unsafe { *device = own };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeDevice() -> i32 {
    answer(|| {
        let streams: Vec<_> = {
            let mut state = state();
            state.not_captured("aclrtSynchronizeDevice", true)?;
            let device = state.current()?.1.device;
            state.streams.values().filter(|stream| stream.device == device).cloned().collect()
        };
        streams.iter().try_for_each(|stream| stream.synchronize())
    })
}

