//! Codes that calls return, and the text of the last one of a thread. Codes are those of AscendCL's and aclnn's
//! documentation ("aclError", "aclnn return codes").

use std::{
    cell::RefCell,
    ffi::{CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

/// `ACL_ERROR_INVALID_PARAM`: an argument of AscendCL cannot be.
pub const INVALID_PARAM: i32 = 100_000;
/// `ACL_ERROR_UNINITIALIZE`: nothing was initialised.
pub const UNINITIALISED: i32 = 100_001;
/// `ACL_ERROR_REPEAT_INITIALIZE`: initialised before.
pub const REPEATED_INIT: i32 = 100_002;
/// `ACL_ERROR_RT_PARAM_INVALID`: an argument of the runtime cannot be.
pub const RT_PARAM: i32 = 107_000;
/// `ACL_ERROR_RT_INVALID_DEVICEID`.
pub const DEVICE: i32 = 107_001;
/// `ACL_ERROR_RT_CONTEXT_NULL`: the thread has no context.
pub const NO_CONTEXT: i32 = 107_002;
/// `ACL_ERROR_RT_STREAM_CONTEXT`: a stream of another context.
pub const STREAM_CONTEXT: i32 = 107_003;
/// `ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID`: an event without a time.
pub const EVENT_TIME: i32 = 107_006;
/// `ACL_ERROR_RT_INVALID_HANDLE`: something that was destroyed, or never was.
pub const HANDLE: i32 = 107_017;
/// `ACL_ERROR_RT_CAPTURE_DEPENDENCY`: a wait in a capture for what is not in it.
pub const CAPTURE_DEPENDENCY: i32 = 107_024;
/// `ACL_ERROR_RT_STREAM_CAPTURED`: not while the stream is captured.
pub const STREAM_CAPTURED: i32 = 107_027;
/// `ACL_ERROR_RT_STREAM_NOT_CAPTURED`.
pub const NOT_CAPTURED: i32 = 107_029;
/// `ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT`: not while something is captured in this mode.
pub const CAPTURE_MODE: i32 = 107_030;
/// `ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT`: the default stream while something is captured.
pub const CAPTURE_IMPLICIT: i32 = 107_031;
/// `ACL_ERROR_STREAM_TASK_GROUP_STATUS`: a group of tasks that is not what the call needs.
pub const TASK_GROUP: i32 = 107_033;
/// `ACL_ERROR_RT_MEMORY_ALLOCATION`.
pub const NO_MEMORY: i32 = 207_001;
/// `ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP`: a task that cannot be updated.
pub const UPDATE_OP: i32 = 207_019;
/// `ACL_ERROR_RT_EVENT_NOT_COMPLETE`.
pub const EVENT_PENDING: i32 = 507_006;
/// `ACL_ERROR_RT_AICORE_EXCEPTION`: a kernel faulted.
pub const KERNEL: i32 = 507_015;
/// `ACL_ERROR_RT_EVENT_SYNC_TIMEOUT`.
pub const EVENT_TIMEOUT: i32 = 507_047;
/// `ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED`.
pub const CAPTURE_INVALID: i32 = 507_903;
/// `ACLNN_ERR_PARAM_NULLPTR`.
pub const NULL: i32 = 161_001;
/// `ACLNN_ERR_PARAM_INVALID`.
pub const INVALID: i32 = 161_002;
/// `ACLNN_ERR_RUNTIME_ERROR`.
pub const ACLNN_RUNTIME: i32 = 361_001;
/// `HCCL_E_PARA`.
pub const HCCL_PARAM: i32 = 1;
/// `HCCL_E_TIMEOUT`.
pub const HCCL_TIMEOUT: i32 = 9;

/// Why a call or a task failed.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What the call returns.
    pub code: i32,
    /// What is wrong, for people.
    pub text: String,
}

/// What a call gives.
pub type Outcome<T = ()> = Result<T, Fault>;

/// A failure.
pub fn fault<T>(code: i32, text: impl Into<String>) -> Outcome<T> {
    Err(Fault { code, text: text.into() })
}

thread_local! {
    static RECENT: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Runs a call; its code is what the caller gets, its text is kept for `aclGetRecentErrMsg`.
pub fn answer(call: impl FnOnce() -> Outcome) -> i32 {
    let outcome = catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| fault(ACLNN_RUNTIME, "the simulator panicked; this is a defect of it"));
    match outcome {
        Ok(()) => 0,
        Err(Fault { code, text }) => {
            keep(code, &text);
            code
        }
    }
}

/// Keeps a text for `aclGetRecentErrMsg`.
pub fn keep(code: i32, text: &str) {
    let text = format!("sim-npu (simulated): {code}: {text}").replace('\0', " ");
    RECENT.with_borrow_mut(|recent| *recent = CString::new(text).ok());
}

/// The text of the last failure of this thread, until the next one.
#[allow(unsafe_code)]
mod calls {
    use super::{RECENT, c_char, ptr};

    // SAFETY: the name is AscendCL's, which this library stands in for.
    #[unsafe(no_mangle)]
    extern "C" fn aclGetRecentErrMsg() -> *const c_char {
        RECENT.with_borrow(|recent| recent.as_ref().map_or(ptr::null(), |text| text.as_ptr()))
    }
}
