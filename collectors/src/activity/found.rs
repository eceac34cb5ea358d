//! What was found in the buffers of a library.

use std::{
    collections::{BTreeMap, HashMap},
    ptr, slice,
};

use super::{
    buffers::Buffer,
    library::{Next, Status},
};

/// Most records that are kept, half a gigabyte; later ones are counted.
const MOST: usize = 1 << 22;

/// Why a record is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// A record of this kind ends before its fields do.
    Short(u32),
    /// Nobody reads records of this kind.
    Unknown(u32),
}

/// Records and their names, what was handed over, and what went wrong.
#[derive(Debug)]
pub struct Found<Kept, Read> {
    pub records: Vec<Kept>,
    pub names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Records that were handed over.
    pub read: Read,
    /// What went wrong: how often, and the first instance.
    pub wrong: BTreeMap<&'static str, (u64, Option<String>)>,
}

impl<Kept, Read: Default> Default for Found<Kept, Read> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            names: Vec::new(),
            numbers: HashMap::new(),
            read: Read::default(),
            wrong: BTreeMap::new(),
        }
    }
}

impl<Kept, Read> Found<Kept, Read> {
    /// Counts something that went wrong.
    pub fn count(&mut self, what: &'static str, count: u64, example: impl FnOnce() -> Option<String>) {
        if count > 0 {
            self.wrong.entry(what).or_insert_with(|| (0, example())).0 += count;
        }
    }

    /// Counts a record of so many bytes that is not read.
    pub fn unread(&mut self, why: Unread, bytes: usize) {
        match why {
            Unread::Short(kind) => {
                self.count("short_record", 1, || Some(format!("{bytes} bytes of a record of kind {kind}")));
            }
            Unread::Unknown(kind) => self.count("unknown_kind", 1, || Some(format!("kind {kind}"))),
        }
    }

    /// Keeps the record that `make` gives, where there is room.
    pub fn keep(&mut self, make: impl FnOnce(&mut Self) -> Kept) {
        if self.records.len() >= MOST {
            return self.count("record_full", 1, || None);
        }
        let kept = make(self);
        self.records.push(kept);
    }

    /// The number of a name, that of its text in `names`; none of an empty one.
    pub fn number(&mut self, name: Option<String>) -> Option<u32> {
        let name = name.filter(|name| !name.is_empty())?;
        if let Some(number) = self.numbers.get(&name) {
            return Some(*number);
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        Some(number)
    }

    /// The text of a name.
    pub fn name(&self, number: Option<u32>) -> Option<&str> {
        self.names.get(number? as usize).map(String::as_str)
    }

    /// Gives `add` the bytes of every record of a buffer, of which `valid` bytes hold some; `no_more` is what the library answers
    /// behind the last. A buffer is read to its end on one thread: a library may keep its place for the thread.
    ///
    /// # Safety
    /// The library whose function `next` is has just filled the buffer.
    pub unsafe fn walk(
        &mut self,
        (next, no_more): (Next, Status),
        buffer: &mut Buffer,
        valid: usize,
        mut add: impl FnMut(&mut Self, &[u8]),
    ) {
        /// What every function answers that did what it was asked for, of CUPTI and of MSPTI.
        const SUCCESS: Status = 0;
        let (begin, room) = (buffer.as_mut_ptr().cast::<u8>(), size_of_val(&**buffer));
        if valid > room {
            self.count("damaged_buffer", 1, || Some(format!("{valid} of {room} bytes are said to hold records")));
        }
        let valid = valid.min(room);
        let (mut record, mut last) = (ptr::null_mut::<u8>(), None);
        loop {
            // SAFETY: so many bytes of the buffer are there, and the record is none or the one before.
            let status = unsafe { next(begin, valid, &raw mut record) };
            // Every record lies behind the one before, or this would never end.
            let at = (record as usize).checked_sub(begin as usize);
            let at = at.filter(|at| status == SUCCESS && *at < valid && last.is_none_or(|last| *at > last));
            if let Some(last) = last {
                // SAFETY: the buffer is this function's, has so many bytes, and all were written before they were lent.
                let bytes = unsafe { slice::from_raw_parts(begin, valid) };
                add(self, bytes.get(last..at.unwrap_or(valid)).unwrap_or_default());
            }
            if at.is_none() {
                if status != no_more {
                    let offset = last.unwrap_or(0);
                    self.count("damaged_buffer", 1, || {
                        Some(format!("no record after the one at byte {offset} of {valid}, status {status}"))
                    });
                }
                return;
            }
            last = at;
        }
    }
}
