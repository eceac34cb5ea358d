//! CUPTI's functions, each opened on its own: an older library lacks some, and what needs those is then left out or refused.

use std::{
    ffi::{c_char, c_void},
    path::{Path, PathBuf},
    ptr,
};

use libloading::Library;

use super::{Unavailable, abi};
use crate::activity::library::{self, functions, text};
pub use crate::activity::library::{Request, Status};

/// Hands a buffer back: context, stream, where it begins, its bytes, bytes that hold records.
pub type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// Told of what is created: what was given at the subscription, domain, number, a description.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
/// Asked for the time.
pub type Timestamp = unsafe extern "C" fn() -> u64;

functions! {
    /// Version of the interface.
    version: "cuptiGetVersion" (*mut u32);
    /// A status in words.
    result_string: "cuptiGetResultString" (Status, *mut *const c_char);
    /// Takes the place of the one profiler of the process.
    subscribe: "cuptiSubscribe" (*mut *mut c_void, Callback, *mut c_void);
    /// Leaves it.
    unsubscribe: "cuptiUnsubscribe" (*mut c_void);
    /// Switches a callback on or off.
    enable_callback: "cuptiEnableCallback" (u32, *mut c_void, u32, u32);
    /// Name of a call.
    callback_name: "cuptiGetCallbackName" (u32, u32, *mut *const c_char);
    /// The number by which records name a node.
    node_id: "cuptiGetGraphNodeId" (*mut c_void, *mut u64);
    /// The time of CUPTI's own clock.
    timestamp: "cuptiGetTimestamp" (*mut u64);
    /// Makes another clock that of all records.
    register_timestamp: "cuptiActivityRegisterTimestampCallback" (Timestamp);
    /// How threads are numbered.
    thread_id_type: "cuptiSetThreadIdType" (u32);
    /// Stamps of the queue and of the hand-over to the device.
    latency_timestamps: "cuptiActivityEnableLatencyTimestamps" (u8);
    /// Where buffers come from and go to.
    register_callbacks: "cuptiActivityRegisterCallbacks" (Request, Complete);
    /// Begins to record a kind.
    enable: "cuptiActivityEnable" (u32);
    /// Ends to record a kind.
    disable: "cuptiActivityDisable" (u32);
    /// Hands all buffers back.
    flush_all: "cuptiActivityFlushAll" (u32);
    /// The next record of a buffer.
    next_record: "cuptiActivityGetNextRecord" (*mut u8, usize, *mut *mut u8);
    /// Records that found no buffer since the last question.
    dropped: "cuptiActivityGetNumDroppedRecords" (*mut c_void, u32, *mut usize);
    /// Begins the calls of an id, for the calling thread.
    push_external: "cuptiActivityPushExternalCorrelationId" (u32, u64);
    /// Ends them.
    pop_external: "cuptiActivityPopExternalCorrelationId" (u32, *mut u64);
}

/// Why the library was not opened, of all places that were tried: of the first file that is there and is none, else of the plain
/// name, which says what is missing to whoever has no CUPTI, else of the last.
fn told(refused: &[(PathBuf, String)]) -> Option<&str> {
    let is_plain = |(file, _): &&(PathBuf, String)| file == Path::new(super::find::PLAIN);
    let there = || refused.iter().find(|(file, _)| file.components().count() > 1 && file.exists());
    let (_, why) = there().or_else(|| refused.iter().find(is_plain)).or_else(|| refused.last())?;
    Some(why)
}

impl Api {
    /// Opens the library that is found first.
    ///
    /// # Errors
    /// [`Unavailable::Library`] when none can be opened, and what [`Api::open`] says of the one that can.
    pub fn find() -> Result<Self, Unavailable> {
        Self::first(super::find::candidates(&|name| std::env::var_os(name)))
    }

    /// Opens the first of these that can be; of those that cannot, what was said of [the one that tells most](told) is told.
    pub(super) fn first(files: Vec<PathBuf>) -> Result<Self, Unavailable> {
        let mut refused = Vec::new();
        for file in files {
            match Self::open(&file) {
                Err(Unavailable::Library { why }) => refused.push((file, why)),
                other => return other,
            }
        }
        let why = told(&refused).unwrap_or("no place to look for it").to_owned();
        Err(Unavailable::Library { why })
    }

    /// Opens a library: a file, or a name that the system looks for.
    ///
    /// # Errors
    /// [`Unavailable::Library`] when it cannot be opened, [`Unavailable::Symbol`] when it lacks what nothing goes without.
    pub fn open(file: &Path) -> Result<Self, Unavailable> {
        // SAFETY: the initialisation of CUPTI starts nothing before it is called, and has no other conditions.
        let library = unsafe { library::open(file) }.map_err(|why| Unavailable::Library { why })?;
        let api = Self::of(file, library);
        api.check()?;
        Ok(api)
    }

    /// Makes sure of the functions that nothing goes without.
    ///
    /// # Errors
    /// [`Unavailable::Symbol`].
    pub(super) fn check(&self) -> Result<(), Unavailable> {
        const NEEDED: [&str; 7] = [
            "cuptiSubscribe",
            "cuptiUnsubscribe",
            "cuptiActivityRegisterCallbacks",
            "cuptiActivityEnable",
            "cuptiActivityDisable",
            "cuptiActivityFlushAll",
            "cuptiActivityGetNextRecord",
        ];
        let missing = self.missing();
        match NEEDED.into_iter().find(|symbol| missing.contains(symbol)) {
            Some(symbol) => Err(Unavailable::Symbol { file: self.file.clone(), symbol }),
            None => Ok(()),
        }
    }

    /// Version of the interface, where the library says it.
    pub fn version(&self) -> Option<u32> {
        let (function, mut version) = (self.version?, 0);
        // SAFETY: the function writes one number.
        (unsafe { function(&mut version) } == abi::SUCCESS).then_some(version)
    }

    /// Name of a call, without the version that it dates from.
    pub(super) fn call_name(&self, domain: u32, id: u32) -> Option<String> {
        let (function, mut name) = (self.callback_name?, ptr::null());
        // SAFETY: the function writes the address of a text that is part of the library.
        let status = unsafe { function(domain, id, &mut name) };
        // SAFETY: as above; where the call was refused the address is null as it was.
        (status == abi::SUCCESS).then(|| unsafe { text(name) }).flatten()
    }

    /// What a status other than success means.
    pub(super) fn refused(&self, call: impl Into<String>, status: Status) -> Unavailable {
        let said = self.result_string.and_then(|function| {
            let mut said = ptr::null();
            // SAFETY: the function writes the address of a text that is part of the library, or nothing.
            (unsafe { function(status, &mut said) } == abi::SUCCESS).then(|| unsafe { text(said) }).flatten()
        });
        let next = match status {
            abi::MULTIPLE_SUBSCRIBERS => return Unavailable::Attached,
            abi::INSUFFICIENT_PRIVILEGES => {
                "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run as an administrator"
            }
            abi::INVALID_KIND => "this version does not record that; take a newer CUPTI",
            _ => "'strato doctor' says which CUPTI was found",
        };
        Unavailable::Refused { call: call.into(), status, said: said.unwrap_or_else(|| "no reason".to_owned()), next }
    }
}
