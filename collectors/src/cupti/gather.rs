//! What CUPTI's callbacks leave. They are called on threads of CUPTI and of whoever calls CUDA, and know nothing but this
//! process: so there is one gathering at a time, and what comes when there is none is let go.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::c_void,
    ptr, slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Api, Mode, Unavailable, abi,
    layout::{node, resource},
    nodes::Nodes,
    record::{self, Record},
};
use crate::activity::{
    buffers::{Buffer, Pool},
    found,
    library::text,
};

/// A record with its name, an index into [`Found::names`].
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub record: Record,
    pub name: Option<u32>,
}

/// What was found so far; records that were read, by their kinds.
pub type Found = found::Found<Kept, BTreeMap<u32, u64>>;

/// Adds the record that `bytes` hold.
///
/// # Safety
/// They are of a buffer that CUPTI has just filled: the name of a kernel is an address.
unsafe fn add(found: &mut Found, bytes: &[u8], mode: Mode) {
    let record = match record::read(bytes) {
        Ok(record) => record,
        Err(why) => return found.unread(why, bytes.len()),
    };
    *found.read.entry(kind_of(&record)).or_default() += 1;
    if !fits(&record, mode) {
        return found.count("other_mode", 1, || Some(format!("{record:?}")));
    }
    found.keep(|found| {
        let Record::Kernel { name, .. } = record else { return Kept { record, name: None } };
        // SAFETY: CUPTI says that the name of a kernel is null or a text that ends with a zero, which is there at least until
        // the buffer is handed back.
        let name = found.number(unsafe { text(ptr::with_exposed_provenance(name as usize)) });
        found.count("kernel_without_name", u64::from(name.is_none()), || None);
        Kept { record, name }
    });
}

/// The kind of a record in CUPTI's numbers.
fn kind_of(record: &Record) -> u32 {
    match record {
        Record::Kernel { .. } => abi::KIND_KERNEL,
        Record::Copy { .. } => abi::KIND_MEMCPY,
        Record::Fill { .. } => abi::KIND_MEMSET,
        Record::Graph { .. } => abi::KIND_GRAPH,
        Record::Call { interface: record::Interface::Driver, .. } => abi::KIND_DRIVER,
        Record::Call { interface: record::Interface::Runtime, .. } => abi::KIND_RUNTIME,
        Record::External { .. } => abi::KIND_EXTERNAL,
        Record::Wait { .. } => abi::KIND_SYNCHRONIZATION,
        Record::Overhead { .. } => abi::KIND_OVERHEAD,
    }
}

/// Whether a record is one of the mode: of a replay there is either one record or one of each node, or its time would count
/// twice.
fn fits(record: &Record, mode: Mode) -> bool {
    match (record, mode) {
        (Record::Graph { .. }, mode) => mode == Mode::Graph,
        (Record::Kernel { work, .. } | Record::Copy { work, .. } | Record::Fill { work, .. }, Mode::Graph) => {
            work.node.is_none()
        }
        _ => true,
    }
}

/// One observation.
#[derive(Debug)]
pub struct Gathering {
    pub api: Arc<Api>,
    pub mode: Mode,
    found: Mutex<Found>,
    nodes: Mutex<Nodes>,
}

static CURRENT: Mutex<Option<Arc<Gathering>>> = Mutex::new(None);
static POOL: Mutex<Pool> = Mutex::new(Pool::new());

thread_local! {
    /// The operator that this thread launches.
    static OPERATOR: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Says which operator the calling thread launches from now on.
pub fn launches(operator: Option<u64>) {
    OPERATOR.set(operator);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The buffers of this process.
pub fn pool() -> MutexGuard<'static, Pool> {
    locked(&POOL)
}

fn current() -> Option<Arc<Gathering>> {
    locked(&CURRENT).clone()
}

/// The right to be the one that gathers, until it is dropped.
#[derive(Debug)]
pub struct Claim(pub Arc<Gathering>);

impl Claim {
    /// Takes it.
    ///
    /// # Errors
    /// [`Unavailable::Busy`] when there is another.
    pub fn take(api: Arc<Api>, mode: Mode) -> Result<Self, Unavailable> {
        let mut current = locked(&CURRENT);
        if current.is_some() {
            return Err(Unavailable::Busy);
        }
        let gathering = Arc::new(Gathering { api, mode, found: Mutex::default(), nodes: Mutex::default() });
        *current = Some(Arc::clone(&gathering));
        Ok(Self(gathering))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        *locked(&CURRENT) = None;
    }
}

impl Gathering {
    /// Counts something that went wrong.
    pub fn count(&self, what: &'static str, count: u64, example: Option<String>) {
        locked(&self.found).count(what, count, || example);
    }

    /// Takes everything that was found.
    pub fn take(&self) -> (Found, Nodes) {
        (std::mem::take(&mut *locked(&self.found)), std::mem::take(&mut *locked(&self.nodes)))
    }

    /// Records that CUPTI dropped since it was last asked.
    ///
    /// # Safety
    /// `context` is null or one that CUPTI has just named.
    pub unsafe fn dropped(&self, context: *mut c_void, stream: u32) -> u64 {
        let mut count = 0;
        // SAFETY: the function writes one number, and knows the context.
        let status = self.api.dropped.map(|function| unsafe { function(context, stream, &mut count) });
        if status == Some(abi::SUCCESS) { count as u64 } else { 0 }
    }

    /// Reads the records of a buffer, of which `valid` bytes hold some.
    ///
    /// # Safety
    /// CUPTI has just filled it.
    unsafe fn read(&self, buffer: &mut Buffer, valid: usize) {
        let Some(next) = self.api.next_record else { return };
        // SAFETY (both): as the caller says.
        unsafe {
            locked(&self.found)
                .walk((next, abi::MAX_LIMIT_REACHED), buffer, valid, |found, bytes| add(found, bytes, self.mode));
        }
    }
}

/// CUPTI asks for a buffer.
///
/// # Safety
/// The three places can be written.
pub unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let is_asked = current().is_some();
    // SAFETY: CUPTI asks for these three. Without a buffer it drops records, and counts them.
    unsafe { pool().answer(is_asked, buffer, size, most) }
}

/// CUPTI hands a buffer back.
///
/// # Safety
/// The buffer was lent by [`requested`] or is no concern of this process, and nobody writes to it any more.
pub unsafe extern "C" fn completed(context: *mut c_void, stream: u32, buffer: *mut u8, _: usize, valid: usize) {
    let gathering = current();
    let back = pool().take_back(buffer);
    if let Some(gathering) = &gathering {
        // SAFETY: CUPTI has just named the context.
        let dropped = unsafe { gathering.dropped(context, stream) };
        gathering.count("dropped_records", dropped, None);
        if back.is_none() && !buffer.is_null() {
            gathering.count("foreign_buffer", 1, None);
        }
    }
    let Some(mut back) = back else { return };
    if let Some(gathering) = &gathering {
        // SAFETY: CUPTI has filled it, and hands it back.
        unsafe { gathering.read(&mut back, valid) };
        pool().keep(back);
    }
}

/// CUPTI tells of something that was created.
///
/// # Safety
/// `about` is null or describes what `domain` and `id` say.
pub unsafe extern "C" fn told(_: *mut c_void, domain: u32, id: u32, about: *const c_void) {
    let is_node = domain == abi::DOMAIN_RESOURCE && matches!(id, abi::NODE_CREATED | abi::NODE_CLONED);
    if !is_node || about.is_null() {
        return;
    }
    let Some(gathering) = current() else { return };
    let Some(number) = gathering.api.node_id else { return };
    // SAFETY: of the resource domain, it is a `CUpti_ResourceData`, which has so many bytes at least.
    let resource = unsafe { slice::from_raw_parts(about.cast::<u8>(), 24) };
    let Some(graph) = resource::ABOUT.of(resource).filter(|address| *address != 0) else { return };
    // SAFETY: of these numbers, the descriptor is a `CUpti_GraphData`, which has so many bytes at least.
    let graph = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(graph as usize), 32) };
    let of = |handle: Option<u64>| {
        let (handle, mut node) = (handle.filter(|handle| *handle != 0)?, 0);
        // SAFETY: the handle is one that CUPTI has just told of; the function writes one number.
        let status = unsafe { number(ptr::with_exposed_provenance_mut(handle as usize), &mut node) };
        (status == abi::SUCCESS).then_some(node)
    };
    let Some(node) = of(node::NODE.of(graph)) else { return };
    if id == abi::NODE_CLONED {
        if let Some(original) = of(node::ORIGINAL.of(graph)) {
            locked(&gathering.nodes).cloned(node, original);
        }
    } else if let Some(operator) = OPERATOR.get() {
        locked(&gathering.nodes).created(node, operator);
    }
}
