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
        let start = if is_mapped(layout) {
            map(layout)
        } else {
            // SAFETY: the size is not zero.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        Ok(Self { start: start.ok_or_else(refuse)?, layout, len })
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
        if is_mapped(self.layout) {
            #[cfg(target_os = "linux")]
            // SAFETY: mapped with this size, and unmapped only here.
            unsafe {
                libc::munmap(self.start.as_ptr().cast(), self.layout.size())
            };
        } else {
            // SAFETY: allocated with this layout, and freed only here.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

/// Whether memory of a layout is mapped and not allocated. Allocators clear what they give by writing to it, before it can
/// be said that it shall have huge pages.
fn is_mapped(layout: Layout) -> bool {
    cfg!(target_os = "linux") && layout.align() == HUGE
}

/// Pages of the system, of huge ones where it gives them; `None` when it has no more.
#[cfg(target_os = "linux")]
fn map(layout: Layout) -> Option<NonNull<u8>> {
    let (size, align) = (layout.size(), layout.align());
    let whole = size.checked_add(align)?;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory at a place of the system's choice.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), whole, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let before = start.cast::<u8>().align_offset(align);
    let first = start.wrapping_byte_add(before);
    // SAFETY: the pages before and after the aligned part are in what was just mapped and nobody has seen them; sizes are
    // multiples of a page, because a huge page is one of pages. The advice is about paging only.
    unsafe {
        if before > 0 {
            libc::munmap(start, before);
        }
        if align > before {
            libc::munmap(first.wrapping_byte_add(size), align - before);
        }
        libc::madvise(first, size, libc::MADV_HUGEPAGE);
    }
    NonNull::new(first.cast())
}

#[cfg(not(target_os = "linux"))]
fn map(_: Layout) -> Option<NonNull<u8>> {
    None
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
// SAFETY: as above.
unsafe impl Number for u8 {}

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

    #[cfg(target_os = "linux")]
    #[test]
    fn large_buffers_get_huge_pages_where_the_system_gives_them() {
        let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        if !enabled.contains("[madvise]") && !enabled.contains("[always]") {
            eprintln!("skipped: no huge pages here ({})", enabled.trim());
            return;
        }
        let mut buffer = Buffer::zeroed(4 * HUGE).unwrap();
        buffer.bytes_mut().fill(1);
        let at = format!("{:x}-", buffer.bytes().as_ptr().addr());
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let flags = maps.lines().skip_while(|line| !line.starts_with(&at)).find(|line| line.starts_with("VmFlags"));
        // Whether there is a huge page to be had now is the system's business; that it was asked for is ours.
        assert!(flags.is_some_and(|flags| flags.contains(" hg")), "{flags:?}");
    }

    #[test]
    fn more_than_there_is_is_refused() {
        assert!(Buffer::zeroed(usize::MAX).unwrap_err().to_string().contains("no memory"));
        assert!(Buffer::zeroed(isize::MAX as usize / 2).is_err());
    }
}
