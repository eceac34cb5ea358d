//! Collectives between the ranks of a run through HCCL. Ranks are threads of this process, each with a device of its own.

#![allow(unsafe_code)]

use std::{
    collections::HashMap,
    rc::Rc,
    sync::{Condvar, Mutex, PoisonError},
};

use super::{
    calls::{Api, Handle, Hccl},
    memory::{Memory, Type},
};
use crate::{
    Error,
    comm::{Communicator, LOADING},
};

/// Bytes of `HcclRootInfo` (`HCCL_ROOT_INFO_BYTES`).
const ROOT: usize = 4108;
/// `HCCL_REDUCE_SUM`.
const SUM: i32 = 0;

/// A rank's communicator.
pub(super) struct Comm {
    api: &'static Api,
    hccl: Hccl,
    handle: Handle,
    /// Ranks.
    pub count: usize,
}

/// Where ranks of this process leave the root of their communicator for one another, by what they share.
static ROOTS: Mutex<Option<HashMap<usize, Box<[u8; ROOT]>>>> = Mutex::new(None);
static LEFT: Condvar = Condvar::new();

impl Comm {
    /// Joins the other ranks; all of them must do it.
    pub(super) fn join(api: &'static Api, ranks: &Communicator) -> Result<Rc<Self>, Error> {
        let missing = |what: &String| Error::Unavailable { backend: "ascend", what: what.clone() };
        let hccl = *api.hccl.as_ref().map_err(missing)?;
        let (shard, place) = (ranks.shard(), ranks.place());
        let known = |roots: &mut Option<HashMap<usize, _>>| !roots.get_or_insert_default().contains_key(&place);
        let mut roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
        if shard.rank == 0 {
            let mut root = Box::new([0u8; ROOT]);
            // SAFETY: a place of the documented size.
            let status = unsafe { (hccl.root)(root.as_mut_ptr()) };
            api.check("begin a communicator", status)?;
            roots.get_or_insert_default().insert(place, root);
            LEFT.notify_all();
        } else {
            roots = LEFT.wait_timeout_while(roots, LOADING, known).unwrap_or_else(PoisonError::into_inner).0;
        }
        let root = roots.as_ref().and_then(|roots| roots.get(&place)).cloned();
        let root = root.ok_or(Error::Lost { rank: 0, own: shard.rank })?;
        drop(roots);
        let (mut handle, of, rank) = (std::ptr::null_mut(), shard.of as u32, shard.rank as u32);
        // SAFETY: the root that the first rank was given, and a place for the handle.
        let status = unsafe { (hccl.join)(of, root.as_ptr(), rank, &raw mut handle) };
        api.check("join the communicator of the ranks", status)?;
        if shard.rank == 0 {
            // Everybody has it by now: joining waits for all.
            ROOTS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().remove(&place);
        }
        Ok(Rc::new(Self { api, hccl, handle, count: shard.of }))
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once.
        let _ = unsafe { (self.hccl.leave)(self.handle) };
    }
}

/// A collective with its memory.
pub(super) struct Exchange {
    pub comm: Rc<Comm>,
    pub dtype: Type,
    /// What this rank brings, so many elements.
    pub part: Rc<Memory>,
    pub count: usize,
    /// Where all parts go one after the other; `None` where they are added up in place.
    pub gathered: Option<Rc<Memory>>,
}

impl Exchange {
    pub(super) fn launch(&self, stream: Handle) -> Result<(), Error> {
        let Comm { api, hccl, handle, count: ranks } = &*self.comm;
        // `HcclDataType`.
        let dtype = match self.dtype {
            Type::F16 => 3,
            Type::Bf16 => 11,
            _ => 4,
        };
        let (count, bytes) = (self.count as u64, self.count * self.dtype.size());
        let room = self.gathered.as_ref().map_or(self.part.size, |gathered| gathered.size / ranks);
        if bytes > self.part.size || bytes > room {
            return Err(super::refused("exchange with other ranks", &format!("{bytes} bytes are more than there are")));
        }
        // SAFETY (both): as many elements are there, at both ends, as was just made sure.
        let status = match &self.gathered {
            None => unsafe { (hccl.all_reduce)(self.part.at, self.part.at, count, dtype, SUM, *handle, stream) },
            Some(all) => unsafe { (hccl.all_gather)(self.part.at, all.at, count, dtype, *handle, stream) },
        };
        api.check("exchange with other ranks", status)
    }
}
