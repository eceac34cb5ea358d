//! Memory of the device, and the copies that the host waits for.

#![allow(unsafe_code)]

use std::{ptr, sync::Arc};

use opencl3::{
    command_queue::CommandQueue,
    context::Context,
    memory::{Buffer, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, ClMem},
    types::{CL_BLOCKING, cl_mem},
};

use super::{
    device::{Facts, Kind},
    refused,
};
use crate::{Buffer as Pages, Error, Number, device_model::Room};

/// Where memory is made: a device with its queue.
pub(super) struct Place {
    pub context: Arc<Context>,
    pub facts: Facts,
    pub queue: CommandQueue,
}

impl Room for Place {
    type Memory<T: Number> = Memory<T>;
    type Handle = cl_mem;
    const BACKEND: &'static str = "opencl";

    fn of<T: Number>(&self, content: &[T]) -> Result<Memory<T>, Error> {
        let mut memory = Memory::new(self, content.len())?;
        memory.set(&self.queue, content)?;
        Ok(memory)
    }

    fn zeroed<T: Number>(&self, count: usize) -> Result<Memory<T>, Error> {
        Memory::zeroed(self, count)
    }

    fn handle<T: Number>(memory: &Memory<T>) -> cl_mem {
        memory.handle()
    }
}

/// Elements in the memory of a device.
pub(super) struct Memory<T> {
    buffer: Buffer<T>,
    count: usize,
    /// Where they lie, of a device that is a processor: in huge pages, which drivers do not ask for, and through small ones it
    /// reads weights a sixth slower. Nobody touches it, and it is dropped after the buffer.
    _pages: Option<Pages>,
}

impl<T: Number> Memory<T> {
    /// Memory for `count` elements, at least one, of which nothing is said yet.
    pub(super) fn new(place: &Place, count: usize) -> Result<Self, Error> {
        let count = count.max(1);
        let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| u64::try_from(bytes).ok());
        if bytes.is_none_or(|bytes| bytes > place.facts.largest_buffer) {
            return Err(Error::Request(format!(
                "{} cannot have a buffer of {count} elements of {} bytes, its largest is {} bytes; choose a smaller model or \
                 context",
                place.facts.name,
                size_of::<T>(),
                place.facts.largest_buffer
            )));
        }
        let mut pages = match place.facts.kind {
            Kind::Cpu => Some(Pages::zeroed(count.saturating_mul(size_of::<T>()))?),
            _ => None,
        };
        let (flags, start) = match &mut pages {
            Some(pages) => (CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, pages.bytes_mut().as_mut_ptr().cast()),
            None => (CL_MEM_READ_WRITE, ptr::null_mut()),
        };
        // SAFETY: memory of the host that is handed over has as many bytes, and is there longer than the buffer.
        let buffer = unsafe { Buffer::create(&place.context, flags, count, start) };
        let buffer = buffer.map_err(|error| refused("allocate memory of the device", &error))?;
        Ok(Self { buffer, count, _pages: pages })
    }

    /// Memory of zeros.
    pub(super) fn zeroed(place: &Place, count: usize) -> Result<Self, Error> {
        let mut memory = Self::new(place, count)?;
        // SAFETY: any bytes are a number, and the whole buffer is filled and no more.
        let fill = unsafe {
            let bytes: &mut Buffer<T> = &mut memory.buffer;
            let zero = [0u8];
            opencl3::command_queue::enqueue_fill_buffer(
                place.queue.get(),
                bytes.get_mut(),
                zero.as_ptr().cast(),
                1,
                0,
                memory.count * size_of::<T>(),
                0,
                ptr::null(),
            )
        };
        // SAFETY: the call has just given this event, and nobody else releases it.
        fill.and_then(|event| unsafe { opencl3::event::release_event(event) })
            .map_err(|code| refused("clear memory of the device", &code.into()))?;
        Ok(memory)
    }

    /// Replaces the first elements and waits until that is done.
    pub(super) fn set(&mut self, queue: &CommandQueue, content: &[T]) -> Result<(), Error> {
        if content.is_empty() {
            return Ok(());
        }
        // SAFETY: the driver has read `content` when the call returns; the driver itself refuses more than fits.
        let done = unsafe { queue.enqueue_write_buffer(&mut self.buffer, CL_BLOCKING, 0, content, &[]) };
        done.map(drop).map_err(|error| refused("copy to the device", &error))
    }

    /// Elements.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The driver's buffer, for commands that are not waited for.
    pub(super) fn buffer(&mut self) -> &mut Buffer<T> {
        &mut self.buffer
    }

    /// The driver's handle, as kernels take it.
    pub(super) fn handle(&self) -> cl_mem {
        self.buffer.get()
    }
}
