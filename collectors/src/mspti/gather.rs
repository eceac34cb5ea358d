//! What MSPTI's callbacks leave. They are called on threads of MSPTI and know nothing but this process: so there is one gathering at
//! a time, and what comes when there is none is let go.

use std::{
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Api, Unavailable, api,
    record::{self, Record},
};
use crate::activity::{
    buffers::{Buffer, Pool},
    found,
    library::text,
};

/// A record with its names, indices into [`Found::names`].
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub record: Record,
    pub name: Option<u32>,
    pub unit: Option<u32>,
}

/// What was found so far, and how many records were handed over.
pub type Found = found::Found<Kept, u64>;

/// Adds the record that `bytes` hold.
///
/// # Safety
/// They are of a buffer that MSPTI has just filled: names are addresses.
unsafe fn add(found: &mut Found, bytes: &[u8]) {
    found.read += 1;
    let record = match record::read(bytes) {
        Ok(record) => record,
        Err(why) => return found.unread(why, bytes.len()),
    };
    let (name, unit) = match record {
        Record::Task { name, unit, .. } => (name, unit),
        Record::Call { name, .. } => (name, 0),
        Record::External { .. } | Record::Memory { .. } | Record::Transfer { .. } => (0, 0),
    };
    found.keep(|found| {
        // SAFETY: MSPTI says that a name is null or a text that ends with a zero, and it keeps its names.
        let [name, unit] = [name, unit].map(|at| unsafe { text(ptr::with_exposed_provenance(at as usize)) });
        Kept { record, name: found.number(name), unit: found.number(unit) }
    });
}

/// One observation.
#[derive(Debug)]
pub struct Gathering {
    pub api: Arc<Api>,
    found: Mutex<Found>,
}

static CURRENT: Mutex<Option<Arc<Gathering>>> = Mutex::new(None);
static POOL: Mutex<Pool> = Mutex::new(Pool::new());

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
    pub fn take(api: Arc<Api>) -> Result<Self, Unavailable> {
        let mut current = locked(&CURRENT);
        if current.is_some() {
            return Err(Unavailable::Busy);
        }
        let gathering = Arc::new(Gathering { api, found: Mutex::default() });
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
    pub fn take(&self) -> Found {
        std::mem::take(&mut *locked(&self.found))
    }

    /// Reads the records of a buffer of which `valid` bytes hold some.
    ///
    /// # Safety
    /// MSPTI has just filled it.
    unsafe fn read(&self, buffer: &mut Buffer, valid: usize) {
        let Some(next) = self.api.next_record else { return };
        // SAFETY (both): as the caller says.
        unsafe { locked(&self.found).walk((next, api::NO_MORE), buffer, valid, |found, bytes| add(found, bytes)) }
    }
}

/// MSPTI asks for a buffer.
///
/// # Safety
/// The three places can be written.
pub unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let is_asked = current().is_some();
    // SAFETY: MSPTI asks for these three. Without a buffer it drops the record.
    unsafe { pool().answer(is_asked, buffer, size, most) }
}

/// MSPTI hands a buffer back.
///
/// # Safety
/// The buffer was lent by [`requested`] or is no concern of this process, and nobody writes to it any more.
pub unsafe extern "C" fn completed(buffer: *mut u8, _: usize, valid: usize) {
    let gathering = current();
    let back = pool().take_back(buffer);
    let Some(gathering) = gathering else { return };
    match back {
        Some(mut back) => {
            // SAFETY: MSPTI has filled it, and hands it back.
            unsafe { gathering.read(&mut back, valid) };
            pool().keep(back);
        }
        None if buffer.is_null() => (),
        None => gathering.count("foreign_buffer", 1, None),
    }
}
