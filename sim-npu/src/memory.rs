//! Memory of devices and of the host.

#![allow(unsafe_code)]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ffi::c_void,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    cost::cost,
    error::{self, Outcome, answer, fault},
    mspti,
    state::{State, state},
    stream::{Kind, Task, Work},
};

/// Alignment of what `aclrtMalloc` gives.
const ALIGN: usize = 512;
/// Content of fresh memory: a NaN in every type of floating point, so that what was never written is seen.
const FRESH: u8 = 0xff;

/// An allocation.
pub struct Block {
    start: *mut u8,
    layout: Layout,
    /// Of which device; `None` on the host.
    pub device: Option<i32>,
    freed: AtomicBool,
}

// SAFETY: the bytes are plain memory; who reads and writes them in which order is the caller's programme, as on a device.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { dealloc(self.start, self.layout) };
    }
}

impl Block {
    /// Whether `bytes` from `at` lie in it.
    pub fn holds(&self, at: usize, bytes: usize) -> bool {
        let start = self.start.addr();
        at >= start && at.checked_add(bytes).is_some_and(|end| end <= start + self.layout.size())
    }

    /// Refuses memory that was freed.
    pub fn alive(&self) -> Outcome {
        if self.freed.load(Ordering::Acquire) {
            return fault(error::KERNEL, "a task touched memory that was freed before it ran");
        }
        Ok(())
    }

    /// The address, with the right to the whole block.
    pub fn at(&self, address: usize) -> *mut u8 {
        self.start.with_addr(address)
    }
}

impl State {
    /// The block that holds `bytes` from `at`.
    pub fn block(&self, at: usize, bytes: usize) -> Option<Arc<Block>> {
        let (_, block) = self.blocks.range(..=at).next_back()?;
        block.holds(at, bytes).then(|| Arc::clone(block))
    }

    fn allocate(&mut self, size: usize, device: Option<i32>) -> Outcome<usize> {
        if size == 0 {
            return fault(error::INVALID_PARAM, "memory of 0 bytes was asked for");
        }
        if let Some(device) = device {
            let used = self.used.entry(device).or_default();
            if *used + size as u64 > cost().memory {
                return fault(error::NO_MEMORY, format!("device {device} has no {size} bytes left"));
            }
            *used += size as u64;
        }
        let layout = Layout::from_size_align(size, ALIGN).map_err(|_| error::Fault {
            code: error::NO_MEMORY,
            text: format!("{size} bytes are more than there can be"),
        })?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return fault(error::NO_MEMORY, format!("the host has no {size} bytes for the simulated device"));
        }
        // SAFETY: `size` bytes were just allocated.
        unsafe { start.write_bytes(FRESH, size) };
        self.blocks.insert(start.addr(), Arc::new(Block { start, layout, device, freed: AtomicBool::new(false) }));
        Ok(start.expose_provenance())
    }

    fn free(&mut self, at: usize, on_device: bool) -> Outcome {
        let found = self.blocks.get(&at).is_some_and(|block| block.device.is_some() == on_device);
        let Some(block) = self.blocks.remove(&at).filter(|_| found) else {
            return fault(
                error::INVALID_PARAM,
                "no memory begins at this address: it was freed, or is of another kind",
            );
        };
        block.freed.store(true, Ordering::Release);
        if let Some(used) = block.device.and_then(|device| self.used.get_mut(&device)) {
            *used -= block.layout.size() as u64;
        }
        Ok(())
    }

    /// Memory of a copy. That of the host may be any; what is on a device must be allocated there, of the caller's device.
    fn end(&self, at: usize, bytes: usize, on_device: bool, pinned: bool) -> Outcome<Option<Arc<Block>>> {
        let device = self.current()?.1.device;
        let block = self.block(at, bytes);
        match (&block, on_device) {
            (Some(block), true) if block.device == Some(device) => Ok(Some(Arc::clone(block))),
            (Some(block), true) if block.device.is_some() => fault(
                error::INVALID_PARAM,
                format!("the memory is of device {:?}, the context of device {device}", block.device.unwrap_or(-1)),
            ),
            (_, true) => fault(error::INVALID_PARAM, format!("{bytes} bytes at {at:#x} are no memory of the device")),
            (Some(block), false) if block.device.is_some() => {
                fault(error::INVALID_PARAM, "memory of the device where memory of the host is meant")
            }
            (None, false) if pinned => fault(error::CAPTURE_MODE, "a captured copy needs memory of aclrtMallocHost"),
            _ => Ok(block),
        }
    }

    fn copy(&self, dst: usize, most: usize, src: usize, bytes: usize, kind: i32, pinned: bool) -> Outcome<Task> {
        if bytes > most {
            return fault(error::INVALID_PARAM, format!("{bytes} bytes are copied to a place of {most}"));
        }
        let (to, from) = match kind {
            0 => (false, false),
            1 => (true, false),
            2 => (false, true),
            3 => (true, true),
            _ => return fault(error::INVALID_PARAM, format!("there is no kind of copy {kind}")),
        };
        if bytes > 0 && (dst == 0 || src == 0) {
            return fault(error::INVALID_PARAM, "a copy from or to a null pointer");
        }
        let blocks = [self.end(dst, bytes, to, pinned)?, self.end(src, bytes, from, pinned)?];
        let work: Work = Arc::new(move || {
            blocks.iter().flatten().try_for_each(|block| block.alive())?;
            let place = |block: &Option<Arc<Block>>, at: usize| {
                block.as_ref().map_or_else(|| std::ptr::with_exposed_provenance_mut(at), |block| block.at(at))
            };
            // SAFETY: memory of the device was looked up and is held; that of the host is the caller's to keep until the copy
            // is over, as AscendCL asks.
            unsafe { std::ptr::copy(place(&blocks[1], src), place(&blocks[0], dst), bytes) };
            Ok(())
        });
        let time = if kind == 3 { cost().work(2 * bytes, 0.0) } else { cost().transfer(bytes) };
        Ok(Task { name: "memcpy", work, time, kind: Kind::Copy, correlation: 0 })
    }
}

fn put(out: *mut *mut c_void, at: usize) -> Outcome {
    if out.is_null() {
        return fault(error::INVALID_PARAM, "the place for the address is a null pointer");
    }
    // SAFETY: not null, and the caller's to be written.
    unsafe { *out = std::ptr::with_exposed_provenance_mut(at) };
    Ok(())
}

// SAFETY (all below): the names are AscendCL's, which this library stands in for.

#[unsafe(no_mangle)]
extern "C" fn aclrtMalloc(out: *mut *mut c_void, size: usize, policy: i32) -> i32 {
    let start = mspti::stamp();
    answer(|| {
        if !(0..=5).contains(&policy) {
            return fault(error::INVALID_PARAM, format!("there is no policy {policy} of aclrtMalloc"));
        }
        let mut state = state();
        let device = state.current()?.1.device;
        let at = state.allocate(size, Some(device))?;
        mspti::memory(mspti::Memory::Allocated, device, at, size, start);
        put(out, at)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtFree(at: *mut c_void) -> i32 {
    let start = mspti::stamp();
    answer(|| {
        let mut state = state();
        let block = state.blocks.get(&at.addr()).cloned();
        state.free(at.addr(), true)?;
        if let Some((block, device)) = block.and_then(|block| Some((Arc::clone(&block), block.device?))) {
            mspti::memory(mspti::Memory::Released, device, at.addr(), block.layout.size(), start);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMallocHost(out: *mut *mut c_void, size: usize) -> i32 {
    answer(|| {
        let mut state = state();
        state.current()?;
        let at = state.allocate(size, None)?;
        put(out, at)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtFreeHost(at: *mut c_void) -> i32 {
    answer(|| state().free(at.addr(), false))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemset(at: *mut c_void, most: usize, value: i32, count: usize) -> i32 {
    answer(|| {
        let mut state = state();
        state.not_captured("aclrtMemset", false)?;
        if count > most {
            return fault(error::INVALID_PARAM, format!("{count} bytes are set in a place of {most}"));
        }
        let block = state.end(at.addr(), count, true, false)?;
        if let Some(block) = block {
            // SAFETY: the bytes lie in the block.
            unsafe { block.at(at.addr()).write_bytes(value as u8, count) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemcpy(dst: *mut c_void, most: usize, src: *const c_void, count: usize, kind: i32) -> i32 {
    answer(|| {
        let task = {
            let mut state = state();
            state.not_captured("aclrtMemcpy", false)?;
            let (dst, src) = (dst.expose_provenance(), src.expose_provenance());
            state.copy(dst, most, src, count, kind, false)?
        };
        (task.work)()
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemcpyAsync(
    dst: *mut c_void,
    most: usize,
    src: *const c_void,
    count: usize,
    kind: i32,
    stream: *mut c_void,
) -> i32 {
    let start = mspti::stamp();
    answer(|| {
        let (stream, task) = {
            let mut state = state();
            if stream.is_null() {
                state.default_allowed()?;
            }
            let stream = state.stream(stream)?;
            let (dst, src) = (dst.expose_provenance(), src.expose_provenance());
            let task = state.copy(dst, most, src, count, kind, stream.is_captured())?;
            (stream, task)
        };
        cost().launched();
        let at = mspti::Place { device: stream.device, stream: stream.handle };
        stream.put(task)?;
        mspti::copied(kind, count, at, start);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetMemInfo(attribute: i32, free: *mut usize, total: *mut usize) -> i32 {
    answer(|| {
        let state = state();
        let device = state.current()?.1.device;
        if free.is_null() || total.is_null() || !(0..=11).contains(&attribute) {
            return fault(
                error::INVALID_PARAM,
                "aclrtGetMemInfo with a null pointer or a kind of memory that there is not",
            );
        }
        let used = state.used.get(&device).copied().unwrap_or(0);
        // SAFETY: neither is null, and both are the caller's to be written.
        unsafe {
            *free = usize::try_from(cost().memory - used).unwrap_or(usize::MAX);
            *total = usize::try_from(cost().memory).unwrap_or(usize::MAX);
        }
        Ok(())
    })
}
