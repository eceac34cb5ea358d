//! Memory that is lent to a library. A buffer that is lent is never freed before it comes back, even when nobody observes any more;
//! and no more are lent than [`MOST`].

use std::{collections::BTreeMap, ptr};

/// Bytes of a buffer: some fifty thousand kernels. NVIDIA's guide asks for 1 to 10 MB.
pub const BYTES: usize = 8 << 20;
/// Most buffers at a time, 128 MiB: beyond it libraries drop records; CUPTI says how many.
pub const MOST: usize = 16;

/// A buffer. Records begin at multiples of 8 bytes.
pub type Buffer = Box<[u64]>;

/// Buffers that are lent, by their addresses, and those that are not.
#[derive(Debug, Default)]
pub struct Pool {
    free: Vec<Buffer>,
    lent: BTreeMap<usize, Buffer>,
    /// Requests that found none.
    pub refused: u64,
}

impl Pool {
    /// Nothing lent and nothing free.
    pub const fn new() -> Self {
        Self { free: Vec::new(), lent: BTreeMap::new(), refused: 0 }
    }

    /// Lends a buffer; `None` when all are lent.
    pub fn lend(&mut self) -> Option<*mut u8> {
        if self.free.is_empty() && self.lent.len() >= MOST {
            self.refused += 1;
            return None;
        }
        let mut buffer = self.free.pop().unwrap_or_else(|| vec![0; BYTES / 8].into_boxed_slice());
        let begin = buffer.as_mut_ptr().cast::<u8>();
        self.lent.insert(begin as usize, buffer);
        Some(begin)
    }

    /// Answers a library that asks for one: null where none is left, or `is_asked` says that nobody asked for records.
    ///
    /// # Safety
    /// The three places can be written.
    pub unsafe fn answer(&mut self, is_asked: bool, buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
        let lent = if is_asked { self.lend() } else { None };
        let (begin, bytes) = lent.map_or((ptr::null_mut(), 0), |begin| (begin, BYTES));
        // SAFETY: as the caller says.
        unsafe {
            *buffer = begin;
            *size = bytes;
            // As many records as fit.
            *most = 0;
        }
    }

    /// Takes a buffer back; `None` when it was not lent.
    pub fn take_back(&mut self, begin: *mut u8) -> Option<Buffer> {
        self.lent.remove(&(begin as usize))
    }

    /// Keeps a buffer for the next request.
    pub fn keep(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }

    /// Frees what is not lent, and gives how many requests found no buffer since the last time.
    pub fn clear(&mut self) -> u64 {
        self.free = Vec::new();
        std::mem::take(&mut self.refused)
    }

    /// Buffers that are lent.
    pub fn lent(&self) -> usize {
        self.lent.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_more_is_lent_than_there_may_be_and_nothing_foreign_is_taken() {
        let mut pool = Pool::default();
        let lent: Vec<_> = (0..MOST).map(|_| pool.lend().unwrap()).collect();
        assert!(pool.lend().is_none() && pool.lent() == MOST);
        assert!(lent.iter().all(|begin| (*begin as usize).is_multiple_of(8)));
        assert!(pool.take_back(std::ptr::without_provenance_mut(64)).is_none());
        let back = pool.take_back(lent[0]).unwrap();
        assert_eq!(back.len() * 8, BYTES);
        pool.keep(back);
        assert!(pool.lend().is_some());
        assert_eq!((pool.clear(), pool.clear(), pool.lent()), (1, 0, MOST));
    }
}
