//! Memory for weights and activations: zeroed, aligned to huge pages where it is large.
//!
//! Reading weights through 2 MiB pages instead of 4 KiB ones is worth a fifth to a third of the bandwidth where the
//! kernel gives huge pages to those that ask (`/sys/kernel/mm/transparent_hugepage/enabled` = `madvise`).

#![allow(unsafe_code)]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
};

use crate::Error;

/// Size of a huge page on x86-64 and, with pages of 4 KiB, on aarch64, bytes.
const HUGE: usize = 2 << 20;
/// Alignment of smaller buffers: a cache line, and the widest vector.
const LINE: usize = 64;

/// Zeroed memory that stays where it is.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
    len: usize,
}

// SAFETY: a buffer owns its memory, as a `Vec<u8>` does.
unsafe impl Send for Buffer {}
// SAFETY: shared references only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeroed bytes.
    ///
    /// # Errors
    /// [`Error::Request`] when there is not so much memory.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let refuse = || Error::Request(format!("no memory for {len} bytes; choose a smaller model or context"));
        let align = if len >= HUGE { HUGE } else { LINE };
        let size = len.max(1).checked_next_multiple_of(align).ok_or_else(refuse)?;
        let layout = Layout::from_size_align(size, align).map_err(|_| refuse())?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refuse)?;
        #[cfg(target_os = "linux")]
        if align == HUGE {
            // SAFETY: the range was just allocated, is page-aligned and ours; this is advice about its paging only, and
            // where it is not taken the memory is the same but for speed.
            unsafe { libc::madvise(start.as_ptr().cast(), size, libc::MADV_HUGEPAGE) };
        }
        Ok(Self { start, layout, len })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are allocated and initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// The content as numbers; as many as fit whole.
    pub fn as_slice<T: Number>(&self) -> &[T] {
        // SAFETY: every bit pattern is a `T`, and the memory is aligned for any of them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / size_of::<T>()) }
    }

    /// The content as numbers, to be written.
    pub fn as_mut_slice<T: Number>(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len / size_of::<T>()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Numbers of which every bit pattern is one, of at most 64 bytes.
///
/// # Safety
/// Any bytes must be a valid value, and the alignment at most that of a cache line.
pub unsafe trait Number: Copy + Send + Sync + 'static {}

// SAFETY: plain numbers.
unsafe impl Number for f32 {}
// SAFETY: as above.
unsafe impl Number for u16 {}
// SAFETY: as above.
unsafe impl Number for u32 {}
// SAFETY: as above.
unsafe impl Number for i8 {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn buffers_are_zeroed_aligned_and_of_the_asked_length() {
        for len in [0, 1, 63, 4096, HUGE, HUGE + 5] {
            let mut buffer = Buffer::zeroed(len).unwrap();
            assert_eq!(buffer.bytes().len(), len);
            assert!(buffer.bytes().iter().all(|byte| *byte == 0));
            assert_eq!(buffer.bytes().as_ptr() as usize % if len >= HUGE { HUGE } else { LINE }, 0);
            buffer.bytes_mut().fill(1);
            assert_eq!(buffer.as_slice::<u16>().len(), len / 2);
        }
    }

    #[test]
    fn more_than_there_is_is_refused() {
        assert!(Buffer::zeroed(usize::MAX).unwrap_err().to_string().contains("no memory"));
        assert!(Buffer::zeroed(isize::MAX as usize / 2).is_err());
    }
}
