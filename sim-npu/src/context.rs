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
extern "C" fn aclrtSetDevice(device: i32) -> i32 {
    answer(|| {
        let mut state = state();
        if !state.initialised {
            return fault(error::UNINITIALISED, "aclInit was not called");
        }
        if !(0..cost().devices).contains(&device) {
            return fault(error::DEVICE, format!("there is no device {device} of {}", cost().devices));
        }
        // The primary context of a device is one for all threads.
        if let Some((own, _)) = state.contexts.iter().find(|(_, context)| context.device == device) {
            CURRENT.set(*own);
            return Ok(());
        }
        let (own, default) = (state.handle(), state.handle());
        let stream = Stream::start(default, own, device)?;
        state.streams.insert(default, stream);
        state.contexts.insert(own, Context { device, default });
        CURRENT.set(own);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetCurrentContext(out: *mut Handle) -> i32 {
    answer(|| {
        let own = state().current()?.0;
        if out.is_null() {
            return fault(error::INVALID_PARAM, "aclrtGetCurrentContext with a null pointer");
        }
        unsafe { *out = std::ptr::without_provenance_mut(own) };
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
