//! MSPTI's functions and numbers.

use std::{
    ffi::{c_char, c_void},
    path::{Path, PathBuf},
};

use libloading::Library;

use super::Unavailable;
use crate::activity::library::{self, functions};
pub use crate::activity::library::{Request, Status};

/// Hands a buffer back: where it begins, its bytes, bytes that hold records.
pub type Complete = unsafe extern "C" fn(*mut u8, usize, usize);
/// Told of calls; nobody is.
pub type Callback = Option<unsafe extern "C" fn(*mut c_void, u32, u32, *const c_char)>;

/// `MSPTI_SUCCESS`.
pub const SUCCESS: Status = 0;
/// `MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`.
pub const SUBSCRIBED: Status = 2;
/// `MSPTI_ERROR_MAX_LIMIT_REACHED`: there are no further records in a buffer.
pub const NO_MORE: Status = 3;
/// `MSPTI_ERROR_WITHOUT_LD_PRELOAD`.
pub const NOT_PRELOADED: Status = 6;
/// `MSPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0`: whose ids are pushed.
pub const CUSTOM0: u32 = 2;

/// `MSPTI_ACTIVITY_KIND_KERNEL`.
pub const KIND_KERNEL: u32 = 2;
/// `MSPTI_ACTIVITY_KIND_API`.
pub const KIND_API: u32 = 3;
/// `MSPTI_ACTIVITY_KIND_MEMORY`.
pub const KIND_MEMORY: u32 = 5;
/// `MSPTI_ACTIVITY_KIND_MEMSET`.
pub const KIND_MEMSET: u32 = 6;
/// `MSPTI_ACTIVITY_KIND_MEMCPY`.
pub const KIND_MEMCPY: u32 = 7;
/// `MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION`.
pub const KIND_EXTERNAL: u32 = 8;
/// `MSPTI_ACTIVITY_KIND_COMMUNICATION`: collectives of HCCL.
pub const KIND_COMMUNICATION: u32 = 9;

functions! {
    /// Takes the place of the one profiler of the process.
    subscribe: "msptiSubscribe" (*mut *mut c_void, Callback, *mut c_void);
    /// Leaves it.
    unsubscribe: "msptiUnsubscribe" (*mut c_void);
    /// Where buffers come from and go to.
    register_callbacks: "msptiActivityRegisterCallbacks" (Request, Complete);
    /// Begins to record a kind.
    enable: "msptiActivityEnable" (u32);
    /// Ends to record a kind.
    disable: "msptiActivityDisable" (u32);
    /// Hands all buffers back.
    flush_all: "msptiActivityFlushAll" (u32);
    /// The next record of a buffer.
    next_record: "msptiActivityGetNextRecord" (*mut u8, usize, *mut *mut u8);
    /// Begins the calls of an id.
    push_external: "msptiActivityPushExternalCorrelationId" (u32, u64);
    /// Ends them.
    pop_external: "msptiActivityPopExternalCorrelationId" (u32, *mut u64);
}

impl Api {
    /// Opens a library.
    ///
    /// # Errors
    /// [`Unavailable::Library`] when it cannot be opened, [`Unavailable::Symbol`] when it lacks what nothing goes without.
    pub fn open(file: &Path) -> Result<Self, Unavailable> {
        // SAFETY: opening MSPTI starts nothing before it is subscribed to, and has no other conditions.
        let library = unsafe { library::open(file) }.map_err(|why| Unavailable::Library { why })?;
        let api = Self::of(file, library);
        api.check()?;
        Ok(api)
    }

    /// Makes sure of the functions: nothing goes without any.
    ///
    /// # Errors
    /// [`Unavailable::Symbol`].
    pub(super) fn check(&self) -> Result<(), Unavailable> {
        match self.missing().first().copied() {
            Some(symbol) => Err(Unavailable::Symbol { file: self.file.clone(), symbol }),
            None => Ok(()),
        }
    }

    /// Whether a call was there and did what it was asked for.
    pub(super) fn done(&self, status: Option<Status>, call: impl FnOnce() -> String) -> Result<(), Unavailable> {
        match status {
            Some(SUCCESS) => Ok(()),
            Some(SUBSCRIBED) => Err(Unavailable::Attached),
            Some(NOT_PRELOADED) => Err(Unavailable::NotPreloaded { file: self.file.clone() }),
            Some(status) => {
                let next = "'strato doctor' says which CANN was found";
                Err(Unavailable::Refused { call: call(), status, next })
            }
            None => Err(Unavailable::Symbol { file: self.file.clone(), symbol: "a function that is asked for" }),
        }
    }
}
