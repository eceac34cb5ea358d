//! NCCL, the vendor's collectives between devices. Names, arguments and numbers are those of `nccl.h`; they are the same in every
//! version 2.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    path::Path,
    ptr,
    rc::Rc,
};

use super::{
    device::Context,
    driver::{Address, Handle},
    library::{Loaded, calls},
    queue::Queue,
};
use crate::{
    Error,
    cpu::{Communicator, LOADING},
};

/// What brings it.
const REMEDY: &str = "pip install nvidia-nccl-cu13, and name its libnccl.so.2 in STRATO_NCCL; or leave --tp out";
/// `ncclFloat32` and `ncclSum`.
const FLOAT32: c_int = 7;
const SUM: c_int = 0;
/// Numbers of single precision in whose place ranks give an [`Id`] to one another.
const WORDS: usize = size_of::<Id>() / size_of::<f32>();

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Id([u8; 128]);

calls! {
    /// The calls of NCCL.
    Calls {
        version = "ncclGetVersion"(*mut c_int);
        error = "ncclGetErrorString"(c_int) -> *const c_char;
        id = "ncclGetUniqueId"(*mut Id);
        join = "ncclCommInitRank"(*mut Handle, c_int, Id, c_int);
        leave = "ncclCommDestroy"(Handle);
        all_reduce = "ncclAllReduce"(*const c_void, *mut c_void, usize, c_int, c_int, Handle, Handle);
        all_gather = "ncclAllGather"(*const c_void, *mut c_void, usize, c_int, Handle, Handle);
    }
}

static LOADED: Loaded<Calls> = Loaded::new();

/// What a test holds against the vendor's header.
#[cfg(test)]
pub(super) const SIGNATURES: &[super::library::Signature] = Calls::SIGNATURES;
#[cfg(test)]
pub(super) const NUMBERS: &[(&str, i64)] = &[("ncclFloat32", FLOAT32 as i64), ("ncclSum", SUM as i64)];

impl Calls {
    fn check(&self, doing: &str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it takes any code and gives a text that stays, or none.
        let text = unsafe { (self.error)(code) };
        // SAFETY: a text of the library that ends with a zero.
        let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
        let what = format!("NCCL answers {} ({code})", text.unwrap_or_default());
        Err(Error::Device { doing: doing.to_owned(), what })
    }
}

fn load(path: Option<&Path>) -> Result<&'static Calls, String> {
    LOADED.get(path, &["libnccl.so.2", "libnccl.so"], Calls::find).map_err(|why| {
        let named = path.map_or_else(|| "libnccl.so.2".to_owned(), |path| format!("'{}'", path.display()));
        format!("{named}, the vendor's collectives: {why}; {REMEDY}")
    })
}

fn title(calls: &Calls) -> String {
    let mut version = 0;
    // SAFETY: a number of ours.
    match unsafe { (calls.version)(&raw mut version) } {
        // Since 2.9 22703 is 2.27.3 (`NCCL_VERSION`).
        0 => format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100),
        code => format!("of unknown version (code {code})"),
    }
}

/// Version of the library.
///
/// # Errors
/// Why there is none, and what brings it.
pub(super) fn version(path: Option<&Path>) -> Result<String, String> {
    load(path).map(title)
}

/// A rank's communicator.
pub(super) struct Comm {
    calls: &'static Calls,
    handle: Handle,
    context: Rc<Context>,
}

impl Comm {
    /// Joins the other ranks; all of them must do it. `path` names the library in place of the system's.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none, [`Error::Lost`] when a rank does not come.
    pub(super) fn join(
        context: &Rc<Context>,
        path: Option<&Path>,
        ranks: &mut Communicator,
    ) -> Result<Rc<Self>, Error> {
        let calls = load(path).map_err(|what| Error::Unavailable { backend: "cuda", what })?;
        let (shard, mut id) = (ranks.shard(), Id([0; 128]));
        if shard.rank == 0 {
            // SAFETY: a place of the documented size.
            calls.check("begin a communicator", unsafe { (calls.id)(&raw mut id) })?;
        }
        // Ranks may be processes: what all of them can read is the memory in which the ranks of a CPU exchange numbers.
        if ranks.world().slot < WORDS {
            return Err(Error::Request(format!("the ranks have no room for the {WORDS} words of an NCCL id")));
        }
        ranks.meet(LOADING)?;
        let words = id.0.as_chunks::<4>().0.iter().map(|bytes| f32::from_bits(u32::from_ne_bytes(*bytes)));
        let (mut own, mut all) = (words.collect::<Vec<f32>>(), vec![0.0; WORDS * shard.of]);
        ranks.gather(&mut own, &mut all, [WORDS, WORDS * shard.of])?;
        for (to, word) in id.0.as_chunks_mut::<4>().0.iter_mut().zip(&all) {
            *to = word.to_bits().to_ne_bytes();
        }
        let number = |number: usize| c_int::try_from(number).unwrap_or(c_int::MAX);
        let mut handle = ptr::null_mut();
        // SAFETY: the context is entered, the id is that of the first rank, and there is a place for the handle.
        let code = unsafe { (calls.join)(&raw mut handle, number(shard.of), id, number(shard.rank)) };
        calls.check("join the communicator of the ranks", code)?;
        Ok(Rc::new(Self { calls, handle, context: Rc::clone(context) }))
    }

    /// Version of the library in words.
    pub(super) fn title(&self) -> String {
        title(self.calls)
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: joined by this, and left once, after the queue that ran its collectives was waited for.
        let _ = unsafe { (self.calls.leave)(self.handle) };
    }
}

/// A collective with its memory.
pub(super) struct Exchange {
    pub comm: Rc<Comm>,
    /// What this rank brings, so many elements.
    pub part: Address,
    pub count: usize,
    /// Where all parts go one after the other; `None` where they are added up in place.
    pub gathered: Option<Address>,
}

impl Exchange {
    /// Enqueues it.
    pub(super) fn enqueue(&self, queue: &Queue) -> Result<(), Error> {
        let Comm { calls, handle, .. } = &*self.comm;
        let at = |address: Address| ptr::without_provenance_mut::<c_void>(address as usize);
        let (part, count) = (at(self.part), self.count);
        // SAFETY (both): memory of the device with so many elements, and as many of every rank where they are gathered, which
        // lives as long as the plan that has this.
        let code = match self.gathered {
            None => unsafe { (calls.all_reduce)(part, part, count, FLOAT32, SUM, *handle, queue.stream) },
            Some(all) => unsafe { (calls.all_gather)(part, at(all), count, FLOAT32, *handle, queue.stream) },
        };
        calls.check("exchange with other ranks", code)
    }
}
