//! Memory that the ranks of a run share: flags, and a slot per rank in which it shows its part.

#![allow(unsafe_code)]

use std::{
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use super::World;
use crate::{Buffer, Error};

/// A cache line: what two ranks write lies in different ones.
const LINE: usize = 64;

/// A worker's flag: the last collective at which it has arrived, and how many sleep until it arrives at the next.
#[repr(C, align(64))]
pub(super) struct Flag {
    pub seq: AtomicU32,
    pub sleepers: AtomicU32,
}

/// Shared memory of a [`World`]: a line that says who was lost and when the run ends, a line per worker of a rank, two slots per rank.
pub struct Region {
    world: World,
    start: NonNull<u8>,
    memory: Memory,
}

/// Whose the memory is.
enum Memory {
    /// This process'.
    Own(#[allow(dead_code)] Buffer),
    /// Mapped from a file descriptor that processes share; its length.
    #[cfg(target_os = "linux")]
    Mapped(usize),
}

// SAFETY: the memory is reached by atomics, and by slices whose borrowers say why they are alone.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl World {
    /// Bytes of a slot.
    fn slot_bytes(&self) -> Option<usize> {
        self.slot.checked_mul(4)?.checked_next_multiple_of(LINE)
    }

    fn flags(&self) -> Option<usize> {
        self.ranks.checked_mul(self.workers)?.checked_mul(LINE)?.checked_add(LINE)
    }

    /// Bytes that the ranks share.
    fn bytes(&self) -> Result<usize, Error> {
        let slots = || self.slot_bytes()?.checked_mul(self.ranks)?.checked_mul(2);
        let bytes = || self.flags()?.checked_add(slots()?);
        bytes().ok_or_else(|| Error::Request(format!("{} ranks cannot share so much memory", self.ranks)))
    }
}

impl Region {
    /// Memory for ranks that are threads of this process.
    ///
    /// # Errors
    /// [`Error::Request`] when there is not so much memory.
    pub fn of_threads(world: World) -> Result<Self, Error> {
        let mut buffer = Buffer::zeroed(world.bytes()?)?;
        let start = NonNull::from(buffer.bytes_mut()).cast();
        Ok(Self { world, start, memory: Memory::Own(buffer) })
    }

    /// Memory for ranks that are processes, and the descriptor that they inherit.
    ///
    /// # Errors
    /// [`Error::Request`] when the system gives none.
    #[cfg(target_os = "linux")]
    pub fn of_processes(world: World) -> Result<(Self, std::os::fd::OwnedFd), Error> {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        let refuse = || Error::Request(format!("cannot share memory: {}", std::io::Error::last_os_error()));
        // SAFETY: the name is a text that ends in 0; without flags the descriptor is inherited, which is its purpose.
        let fd = unsafe { libc::memfd_create(c"strato-ranks".as_ptr(), 0) };
        if fd < 0 {
            return Err(refuse());
        }
        // SAFETY: the descriptor was just made and is nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let length = libc::off_t::try_from(world.bytes()?).map_err(|_| refuse())?;
        // SAFETY: a call on our own descriptor.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), length) } != 0 {
            return Err(refuse());
        }
        Ok((Self::inherited(world, fd.as_raw_fd())?, fd))
    }

    /// The memory behind a descriptor that this process inherited.
    ///
    /// # Errors
    /// [`Error::Request`] when the descriptor is none, or has not the size that the world needs.
    #[cfg(target_os = "linux")]
    pub fn inherited(world: World, fd: std::os::fd::RawFd) -> Result<Self, Error> {
        let refuse = |what: &str| Error::Request(format!("descriptor {fd} is not the memory of the ranks: {what}"));
        let bytes = world.bytes()?;
        // SAFETY: a `stat` of zeros is one, and the call writes no more than it.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as above; the descriptor may be any number.
        if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
            return Err(refuse(&std::io::Error::last_os_error().to_string()));
        }
        if usize::try_from(stat.st_size) != Ok(bytes) {
            return Err(refuse(&format!("it has {} bytes, not {bytes}", stat.st_size)));
        }
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the system's choice, of a file that has the length.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(refuse(&std::io::Error::last_os_error().to_string()));
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| refuse("it was mapped nowhere"))?;
        Ok(Self { world, start, memory: Memory::Mapped(bytes) })
    }

    /// What the memory is for.
    pub fn world(&self) -> World {
        self.world
    }

    /// The rank that was lost, if any.
    pub fn lost(&self) -> Option<usize> {
        (self.lost_flag().load(Ordering::Acquire) as usize).checked_sub(1)
    }

    /// Says that a rank is lost, unless another one was lost before; nobody waits for any rank from then on.
    pub fn lose(&self, rank: usize) {
        let code = u32::try_from(rank + 1).unwrap_or(u32::MAX);
        let _ = self.lost_flag().compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }

    fn lost_flag(&self) -> &AtomicU32 {
        &self.words()[0]
    }

    /// The step after which the run ends, if that is decided.
    pub(super) fn last_step(&self) -> Option<u32> {
        self.words()[1].load(Ordering::Acquire).checked_sub(1)
    }

    /// Decides after which step the run ends, unless that is decided.
    pub(super) fn end_after(&self, step: u32) {
        let code = step.saturating_add(1);
        let _ = self.words()[1].compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Who was lost, and the last step; each one more than its number, and 0 for none.
    fn words(&self) -> &[AtomicU32; 2] {
        // SAFETY: the first line holds these words and nothing else; zeros are words.
        unsafe { self.start.cast::<[AtomicU32; 2]>().as_ref() }
    }

    /// The flag of a worker of a rank.
    pub(super) fn flag(&self, rank: usize, worker: usize) -> &Flag {
        assert!(rank < self.world.ranks && worker < self.world.workers, "no such worker");
        let at = LINE * (1 + rank * self.world.workers + worker);
        // SAFETY: within the flags, which are lines of two words each; zeros are a flag.
        unsafe { self.start.add(at).cast::<Flag>().as_ref() }
    }

    /// The slot of a rank for the collectives of an even or odd number.
    pub(super) fn slot(&self, rank: usize, odd: bool) -> *mut f32 {
        assert!(rank < self.world.ranks, "no such rank");
        let (flags, slot) = (self.world.flags().unwrap_or(0), self.world.slot_bytes().unwrap_or(0));
        let at = flags + slot * (2 * rank + usize::from(odd));
        // SAFETY: within the slots, which follow the flags; lines are aligned for numbers.
        unsafe { self.start.add(at).cast::<f32>().as_ptr() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match &self.memory {
            Memory::Own(_) => {}
            #[cfg(target_os = "linux")]
            // SAFETY: mapped with this length, and unmapped only here.
            Memory::Mapped(bytes) => unsafe {
                libc::munmap(self.start.as_ptr().cast(), *bytes);
            },
        }
    }
}
