//! Memory for weights and activations: zeroed, in huge pages where it is not small.
//!
//! Reading weights through 2 MiB pages instead of 4 KiB ones is worth a fifth to a third of the bandwidth where the
//! kernel gives huge pages to those that ask (`/sys/kernel/mm/transparent_hugepage/enabled` = `madvise`). A buffer smaller
//! than such a page shares it with others: half of a small model's matrices are.

#![allow(unsafe_code)]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::Error;

/// Size of a huge page on x86-64 and, with pages of 4 KiB, on aarch64, bytes.
const HUGE: usize = 2 << 20;
/// Alignment of smaller buffers: a cache line, and the widest vector.
const LINE: usize = 64;
/// Bytes from which on a buffer that is smaller than a huge page shares some with others: own value, eight small pages.
const SHARED: usize = 32 << 10;
/// Bytes of huge pages that are shared out at once: own value.
const CHUNK: usize = 4 * HUGE;

/// Zeroed memory that stays where it is.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    memory: Memory,
    len: usize,
}

/// What a buffer's bytes lie in.
#[derive(Debug)]
enum Memory {
    /// Memory of the allocator's, of its own.
    Allocated(Layout),
    /// Pages of the system's, perhaps with other buffers.
    Pages { _kept: Arc<Pages> },
}

// SAFETY: a buffer owns its memory, as a `Vec<u8>` does; pages are shared, their bytes are not.
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
        let paged = match size {
            HUGE.. => Pages::map(size).map(|pages| (pages.start, Arc::new(pages))),
            SHARED.. => shared(size),
            _ => None,
        };
        if let Some((start, pages)) = paged {
            return Ok(Self { start, memory: Memory::Pages { _kept: pages }, len });
        }
        let layout = Layout::from_size_align(size, align).map_err(|_| refuse())?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refuse)?;
        Ok(Self { start, memory: Memory::Allocated(layout), len })
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
        if let Memory::Allocated(layout) = self.memory {
            // SAFETY: allocated with this layout, and freed only here.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// Pages of the system, huge ones where it gives them: zeroed, and given back when nobody needs them. Allocators clear what
/// they give by writing to it, before it can be said that it shall have huge pages.
#[derive(Debug)]
struct Pages {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: an address and a size; who may use the bytes is a matter of the buffers.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// `size` bytes from the beginning of a huge page on; `None` when the system has no more, or maps no memory.
    #[cfg(target_os = "linux")]
    fn map(size: usize) -> Option<Self> {
        let whole = size.checked_add(HUGE)?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory at a place of the system's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), whole, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let before = start.cast::<u8>().align_offset(HUGE);
        let first = start.wrapping_byte_add(before);
        // SAFETY: the pages before and after the aligned part are in what was just mapped and nobody has seen them; sizes
        // are multiples of a page, because a huge page is one of pages. The advice is about paging only.
        unsafe {
            if before > 0 {
                libc::munmap(start, before);
            }
            if HUGE > before {
                libc::munmap(first.wrapping_byte_add(size), HUGE - before);
            }
            libc::madvise(first, size, libc::MADV_HUGEPAGE);
        }
        Some(Self { start: NonNull::new(first.cast())?, size })
    }

    #[cfg(not(target_os = "linux"))]
    fn map(_: usize) -> Option<Self> {
        None
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        // SAFETY: mapped with this size, and unmapped only here, when no buffer lies in it any more.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.size)
        };
    }
}

/// `size` bytes, a multiple of [`LINE`], of pages that several buffers share. No byte is given out twice, so that all are
/// still zero; the pages go with the last of their buffers.
fn shared(size: usize) -> Option<(NonNull<u8>, Arc<Pages>)> {
    /// The pages that have room, and how many of their bytes are given out.
    static OPEN: Mutex<(Weak<Pages>, usize)> = Mutex::new((Weak::new(), 0));
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (pages, used) = match open.0.upgrade().filter(|pages| pages.size - open.1 >= size) {
        Some(pages) => (pages, open.1),
        None => (Arc::new(Pages::map(CHUNK)?), 0),
    };
    // SAFETY: the bytes from `used` on are within the pages.
    let start = unsafe { pages.start.add(used) };
    *open = (Arc::downgrade(&pages), used + size);
    Some((start, pages))
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
        for len in [0, 1, 63, 4096, SHARED, SHARED + 5, HUGE - 1, HUGE, HUGE + 5] {
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
