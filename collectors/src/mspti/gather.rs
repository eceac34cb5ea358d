//! What MSPTI's callbacks leave. They are called on threads of MSPTI and know nothing but this process: so there is one gathering at
//! a time, and what comes when there is none is let go.

use std::{
    collections::{BTreeMap, HashMap},
    ptr, slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Api, Unavailable, api,
    record::{self, Record, Unread},
};
use crate::cupti::{
    api::text,
    buffers::{BYTES, Pool},
};

/// Most records that are kept, half a gigabyte; later ones are counted.
const MOST: usize = 1 << 22;

/// A record with its names, indices into [`Found::names`].
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub record: Record,
    pub name: Option<u32>,
    pub unit: Option<u32>,
}

/// What was found so far.
#[derive(Debug, Default)]
pub struct Found {
    pub records: Vec<Kept>,
    pub names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Records that were handed over.
    pub read: u64,
    /// What went wrong: how often, and the first instance.
    pub wrong: BTreeMap<&'static str, (u64, Option<String>)>,
}

impl Found {
    /// Counts something that went wrong.
    pub fn count(&mut self, what: &'static str, count: u64, example: impl FnOnce() -> Option<String>) {
        if count > 0 {
            self.wrong.entry(what).or_insert_with(|| (0, example())).0 += count;
        }
    }

    /// The text of a name.
    pub fn name(&self, number: Option<u32>) -> Option<&str> {
        self.names.get(number? as usize).map(String::as_str)
    }

    /// Adds the record that `bytes` hold.
    ///
    /// # Safety
    /// They are of a buffer that MSPTI has just filled: names are addresses.
    unsafe fn add(&mut self, bytes: &[u8]) {
        self.read += 1;
        let record = match record::read(bytes) {
            Ok(record) => record,
            Err(Unread::Short(kind)) => {
                let size = bytes.len();
                return self.count("short_record", 1, || Some(format!("{size} bytes of a record of kind {kind}")));
            }
            Err(Unread::Unknown(kind)) => return self.count("unknown_kind", 1, || Some(format!("kind {kind}"))),
        };
        if self.records.len() >= MOST {
            return self.count("record_full", 1, || None);
        }
        let (name, unit) = match record {
            Record::Task { name, unit, .. } => (name, unit),
            Record::Call { name, .. } => (name, 0),
            Record::External { .. } | Record::Memory { .. } | Record::Transfer { .. } => (0, 0),
        };
        // SAFETY: MSPTI says that a name is null or a text that ends with a zero, and it keeps its names.
        let [name, unit] = [name, unit].map(|at| unsafe { text(ptr::with_exposed_provenance(at as usize)) });
        let [name, unit] = [name, unit].map(|name| name.filter(|name| !name.is_empty()).map(|name| self.number(name)));
        self.records.push(Kept { record, name, unit });
    }

    fn number(&mut self, name: String) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }
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

    /// Reads the records of a buffer of which `valid` bytes hold some. It is read to its end on one thread, because MSPTI keeps the
    /// place between two calls for the thread.
    ///
    /// # Safety
    /// MSPTI has just filled it.
    unsafe fn read(&self, buffer: &mut [u64], valid: usize) {
        let (begin, room) = (buffer.as_mut_ptr().cast::<u8>(), size_of_val(buffer));
        let mut found = locked(&self.found);
        let Some(next) = self.api.next_record else { return };
        if valid > room {
            found.count("damaged_buffer", 1, || Some(format!("{valid} of {room} bytes are said to hold records")));
        }
        let valid = valid.min(room);
        let (mut record, mut last) = (ptr::null_mut::<u8>(), None);
        loop {
            // SAFETY: so many bytes of the buffer are there, and the record is none or the one before.
            let status = unsafe { next(begin, valid, &raw mut record) };
            // Every record lies behind the one before, or this would never end.
            let at = (record as usize).checked_sub(begin as usize);
            let at = at.filter(|at| status == api::SUCCESS && *at < valid && last.is_none_or(|last| *at > last));
            if let Some(last) = last {
                // SAFETY: the buffer is this function's, has so many bytes, and all were written before they were lent.
                let bytes = unsafe { slice::from_raw_parts(begin, valid) };
                // SAFETY: MSPTI has filled them, as the caller says.
                unsafe { found.add(bytes.get(last..at.unwrap_or(valid)).unwrap_or_default()) };
            }
            if at.is_none() {
                if status != api::NO_MORE {
                    let offset = last.unwrap_or(0);
                    found.count("damaged_buffer", 1, || {
                        Some(format!("no record after the one at byte {offset} of {valid}, status {status}"))
                    });
                }
                return;
            }
            last = at;
        }
    }
}

/// MSPTI asks for a buffer.
///
/// # Safety
/// The three places can be written.
pub unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    // Without a buffer MSPTI drops the record.
    let lent = current().and_then(|_| pool().lend());
    let (begin, bytes) = lent.map_or((ptr::null_mut(), 0), |begin| (begin, BYTES));
    // SAFETY: MSPTI asks for these three.
    unsafe {
        *buffer = begin;
        *size = bytes;
        *most = 0;
    }
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
