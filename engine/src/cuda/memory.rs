//! Memory of the device, memory of the host that copies go through, and the copies that the host waits for.

#![allow(unsafe_code)]

use std::{ffi::c_void, marker::PhantomData, rc::Rc};

use super::{
    device::Context,
    platform::{Address, Answer, Refused, Why},
    queue::Queue,
};
use crate::{Error, Number, device_model::Room};

impl Room for Queue {
    type Memory<T: Number> = Memory<T>;
    type Handle = Address;
    const BACKEND: &'static str = "cuda";

    fn of<T: Number>(&self, content: &[T]) -> Result<Memory<T>, Error> {
        let mut memory = Memory::new(&self.context, content.len())?;
        memory.set(self, content)?;
        Ok(memory)
    }

    fn zeroed<T: Number>(&self, count: usize) -> Result<Memory<T>, Error> {
        Memory::zeroed(self, count)
    }

    fn handle<T: Number>(memory: &Memory<T>) -> Address {
        memory.address()
    }
}

/// Elements in the memory of a device.
pub(super) struct Memory<T> {
    context: Rc<Context>,
    address: Address,
    count: usize,
    elements: PhantomData<T>,
}

impl<T: Number> Memory<T> {
    /// Memory for `count` elements, at least one, of which nothing is said yet.
    pub(super) fn new(context: &Rc<Context>, count: usize) -> Result<Self, Error> {
        let (count, calls) = (count.max(1), &context.driver.calls);
        let none = |free: &str| {
            Error::Request(format!(
                "{} has no room for {count} elements of {} bytes{free}; choose a smaller model or context",
                context.facts.name,
                size_of::<T>(),
            ))
        };
        let bytes = count.checked_mul(size_of::<T>()).ok_or_else(|| none(""))?;
        match calls.alloc(bytes) {
            Err(Refused { why: Why::Memory, .. }) => {
                let told = calls.free_memory().map(|(free, total)| format!(", {free} of {total} bytes are free"));
                Err(none(&told.unwrap_or_default()))
            }
            answer => {
                let address = context.driver.check("allocate memory of the CUDA device", answer)?;
                Ok(Self { context: Rc::clone(context), address, count, elements: PhantomData })
            }
        }
    }

    /// Memory of zeros; waits until it is, so that nothing is under way on memory that nobody runs on yet.
    pub(super) fn zeroed(queue: &Queue, count: usize) -> Result<Self, Error> {
        let memory = Self::new(&queue.context, count)?;
        let bytes = memory.count * size_of::<T>();
        // SAFETY: any bytes are a number, and the whole memory is filled and no more.
        let filled = unsafe { queue.context.driver.calls.fill(memory.address, 0, bytes, queue.stream) };
        queue.context.driver.check("clear memory of the CUDA device", filled)?;
        queue.settle("clear memory of the CUDA device")?;
        Ok(memory)
    }

    /// Replaces the first elements, as many as fit, and waits until that is done.
    pub(super) fn set(&mut self, queue: &Queue, content: &[T]) -> Result<(), Error> {
        let driver = queue.context.driver;
        driver.check("copy to the CUDA device", self.write(queue, content))?;
        queue.settle("copy to the CUDA device")
    }

    /// Enqueues a copy into the first elements, as many as fit; `content` stays as it is until the queue was waited for.
    pub(super) fn write(&mut self, queue: &Queue, content: &[T]) -> Answer {
        let bytes = content.len().min(self.count) * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: numbers are bytes; both sides have so many, and the caller keeps `content` until the copy has ended.
        unsafe {
            let content = std::slice::from_raw_parts(content.as_ptr().cast(), bytes);
            queue.context.driver.calls.to_device(self.address, content, queue.stream)
        }
    }

    /// Enqueues a copy of the first elements, as many as there are; nobody looks at `to` until the queue was waited for.
    pub(super) fn read(&self, queue: &Queue, to: &mut [T]) -> Answer {
        let bytes = to.len().min(self.count) * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: any bytes are numbers; both sides have so many, and the caller keeps `to` until the copy has ended.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), bytes);
            queue.context.driver.calls.to_host(to, self.address, queue.stream)
        }
    }

    /// Elements.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Where it lies on the device, as kernels take it.
    pub(super) fn address(&self) -> Address {
        self.address
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: allocated by this, and freed once; every call that enqueues something on it waits for that, and so does a step.
        let _ = unsafe { self.context.driver.calls.free(self.address) };
    }
}

/// Memory of the host that the device copies from or to.
pub(super) enum Staging<T: Number> {
    /// Pages that stay where they are, which the device reads and writes itself.
    Pinned {
        /// Whose they are.
        context: Rc<Context>,
        /// The first element.
        first: *mut c_void,
        /// Elements.
        count: usize,
    },
    /// Any other memory: the driver copies it once more, and the host may wait meanwhile.
    Pageable(Vec<T>),
}

impl<T: Number + Default> Staging<T> {
    /// Room for so many elements.
    pub(super) fn new(context: &Rc<Context>, count: usize, pageable: bool) -> Result<Self, Error> {
        if pageable {
            return Ok(Self::Pageable(vec![T::default(); count]));
        }
        let bytes = count.max(1).saturating_mul(size_of::<T>());
        let first =
            context.driver.check("allocate pinned memory of the host", context.driver.calls.alloc_pinned(bytes))?;
        // SAFETY: so many bytes of ours, and zeros are a number.
        unsafe { first.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self::Pinned { context: Rc::clone(context), first, count })
    }

    /// The elements.
    pub(super) fn elements(&mut self) -> &mut [T] {
        match self {
            // SAFETY: allocated and cleared for so many elements, aligned to a page, and borrowed as long as the answer is.
            Self::Pinned { first, count, .. } => unsafe { std::slice::from_raw_parts_mut(first.cast(), *count) },
            Self::Pageable(elements) => elements,
        }
    }
}

impl<T: Number> Drop for Staging<T> {
    fn drop(&mut self) {
        if let Self::Pinned { context, first, .. } = self {
            let _ = context.enter();
            // SAFETY: allocated by this, and freed once, after the queue that uses it was waited for.
            let _ = unsafe { context.driver.calls.free_pinned(*first) };
        }
    }
}
