//! NCCL, the vendor's collectives between devices. Its calls are those of `cudarc`; what is used of them is the same in every
//! version 2.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    path::Path,
    ptr,
    rc::Rc,
};

use cudarc::nccl::{
    result::{self, NcclError, NcclStatus},
    sys::{self, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclUniqueId},
};

use super::{
    device::Context,
    library::{Loaded, Vendor},
    platform::Address,
    queue::Queue,
};
use crate::{
    Error,
    comm::{Communicator, LOADING},
};

/// What brings it.
const REMEDY: &str = "pip install nvidia-nccl-cu13, and name its libnccl.so.2 in STRATO_NCCL; or leave --tp out";
/// Numbers of single precision in whose place ranks give an id to one another.
const WORDS: usize = size_of::<ncclUniqueId>() / size_of::<f32>();

/// What is called below.
pub(super) const CALLS: &[&str] = &[
    "ncclGetVersion",
    "ncclGetErrorString",
    "ncclGetUniqueId",
    "ncclCommInitRank",
    "ncclCommDestroy",
    "ncclAllReduce",
    "ncclAllGather",
];

static LOADED: Loaded<String> =
    Loaded::new(Vendor { stem: "nccl", names: &["libnccl.so.2", "libnccl.so"], calls: CALLS, of_cudarc: sys::culib });

fn check(doing: &str, result: Result<NcclStatus, NcclError>) -> Result<(), Error> {
    let what = match result {
        Ok(NcclStatus::Success) => return Ok(()),
        // A communicator of ours waits.
        Ok(NcclStatus::InProgress | NcclStatus::NumResults) => "that it is not done".to_owned(),
        Err(error) => {
            let code = error.0 as u32;
            // SAFETY: it takes any code and gives a text that stays, or none.
            let text = unsafe { sys::ncclGetErrorString(error.0) };
            // SAFETY: a text of the library that ends with a zero.
            let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
            format!("{} ({code})", text.unwrap_or_default())
        }
    };
    Err(Error::Device { doing: doing.to_owned(), what: format!("NCCL answers {what}") })
}

/// The library's version in words, behind which its calls can be made.
fn load(path: Option<&Path>) -> Result<&'static String, String> {
    LOADED.get(path, || Ok(title())).map_err(|why| {
        let named = path.map_or_else(|| "libnccl.so.2".to_owned(), |path| format!("'{}'", path.display()));
        format!("{named}, the vendor's collectives: {why}; {REMEDY}")
    })
}

fn title() -> String {
    match result::get_nccl_version() {
        // Since 2.9 22703 is 2.27.3 (`NCCL_VERSION`).
        Ok(version) => format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100),
        Err(error) => format!("of unknown version (code {})", error.0 as u32),
    }
}

/// Version of the library.
///
/// # Errors
/// Why there is none, and what brings it.
pub(super) fn version(path: Option<&Path>) -> Result<String, String> {
    load(path).cloned()
}

/// A rank's communicator.
pub(super) struct Comm {
    title: &'static str,
    handle: ncclComm_t,
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
        let title = load(path).map_err(|what| Error::Unavailable { backend: "cuda", what })?;
        let (shard, mut id) = (ranks.shard(), [0u8; size_of::<ncclUniqueId>()]);
        if shard.rank == 0 {
            let made = result::get_uniqueid().map(|made| id = made.internal.map(|byte| byte as u8));
            check("begin a communicator", made.map(|()| NcclStatus::Success))?;
        }
        // Ranks may be processes: what all of them can read is the memory in which the ranks of a CPU exchange numbers.
        if ranks.world().slot < WORDS {
            return Err(Error::Request(format!("the ranks have no room for the {WORDS} words of an NCCL id")));
        }
        ranks.meet(LOADING)?;
        let words = id.as_chunks::<4>().0.iter().map(|bytes| f32::from_bits(u32::from_ne_bytes(*bytes)));
        let (mut own, mut all) = (words.collect::<Vec<f32>>(), vec![0.0; WORDS * shard.of]);
        ranks.gather(&mut own, &mut all, [WORDS, WORDS * shard.of])?;
        for (to, word) in id.as_chunks_mut::<4>().0.iter_mut().zip(&all) {
            *to = word.to_bits().to_ne_bytes();
        }
        let number = |number: usize| c_int::try_from(number).unwrap_or(c_int::MAX);
        let mut handle = ptr::null_mut();
        let id = ncclUniqueId { internal: id.map(|byte| byte as c_char) };
        // SAFETY: the context is entered, the id is that of the first rank, and there is a place for the handle.
        let joined = unsafe { result::comm_init_rank(&raw mut handle, number(shard.of), id, number(shard.rank)) };
        check("join the communicator of the ranks", joined)?;
        Ok(Rc::new(Self { title, handle, context: Rc::clone(context) }))
    }

    /// Version of the library in words.
    pub(super) fn title(&self) -> &'static str {
        self.title
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: joined by this, and left once, after the queue that ran its collectives was waited for.
        let _ = unsafe { result::comm_destroy(self.handle) };
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
        let (handle, stream) = (self.comm.handle, queue.stream.cast());
        let kind = ncclDataType_t::ncclFloat32;
        let at = |address: Address| ptr::without_provenance_mut::<c_void>(address as usize);
        let (part, count) = (at(self.part), self.count);
        // SAFETY (both): memory of the device with so many elements, and as many of every rank where they are gathered, which
        // lives as long as the plan that has this.
        let exchanged = match self.gathered {
            None => unsafe { result::all_reduce(part, part, count, kind, ncclRedOp_t::ncclSum, handle, stream) },
            Some(all) => unsafe { result::all_gather(part, at(all), count, kind, handle, stream) },
        };
        check("exchange with other ranks", exchanged)
    }
}
