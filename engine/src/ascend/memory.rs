//! Memory of the device and of the host, descriptions of tensors, and what else of a library must be given back.

#![allow(unsafe_code)]

use std::{ffi::CStr, rc::Rc};

use half::{bf16, f16};

use super::{
    calls::{Api, Handle, Status},
    refused,
};
use crate::{Dtype, Error};

/// `ACL_MEM_MALLOC_HUGE_FIRST`: pages of 2 MiB where there are any.
const HUGE_FIRST: i32 = 0;
/// `aclrtMemcpyKind`.
const TO_DEVICE: i32 = 1;
const FROM_DEVICE: i32 = 2;
/// `ACL_FORMAT_ND`.
const ND: i32 = 2;
/// `ACL_FORMAT_FRACTAL_NZ`.
pub(super) const NZ: i32 = 29;

/// Types of elements (`aclDataType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    F32 = 0,
    F16 = 1,
    I32 = 3,
    I64 = 9,
    Bool = 12,
    Bf16 = 27,
}

impl Type {
    /// That of activations and weights.
    pub(super) fn of(dtype: Dtype) -> Result<Self, Error> {
        match dtype {
            Dtype::F32 => Ok(Self::F32),
            Dtype::F16 => Ok(Self::F16),
            Dtype::Bf16 => Ok(Self::Bf16),
            Dtype::Q8 => Err(Error::Unavailable {
                backend: "ascend",
                what: "its operators take no blocks of 8-bit weights; use --dtype bf16 or f16".to_owned(),
            }),
        }
    }

    /// Bytes.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::I64 => 8,
        }
    }

    /// Numbers as bytes of this type, which is one of floating point.
    pub(super) fn bytes(self, values: &[f32], to: &mut Vec<u8>) {
        match self {
            Self::F16 => values.iter().for_each(|value| to.extend(f16::from_f32(*value).to_ne_bytes())),
            Self::Bf16 => values.iter().for_each(|value| to.extend(bf16::from_f32(*value).to_ne_bytes())),
            _ => values.iter().for_each(|value| to.extend(value.to_ne_bytes())),
        }
    }

    /// Bytes of this type as numbers.
    pub(super) fn numbers(self, bytes: &[u8], to: &mut [f32]) {
        match self {
            Self::F16 | Self::Bf16 => {
                for (value, [low, high]) in to.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    let bits = u16::from_ne_bytes([*low, *high]);
                    *value =
                        if self == Self::F16 { f16::from_bits(bits).to_f32() } else { bf16::from_bits(bits).to_f32() };
                }
            }
            _ => to
                .iter_mut()
                .zip(bytes.as_chunks::<4>().0)
                .for_each(|(value, bytes)| *value = f32::from_ne_bytes(*bytes)),
        }
    }
}

impl Api {
    /// What a call answered, if it was not done.
    pub(super) fn check(&self, doing: &str, status: Status) -> Result<(), Error> {
        if status == 0 { Ok(()) } else { Err(refused(doing, &format!("CANN answers {status}{}", self.recent()))) }
    }

    /// What a call made, if it made anything.
    pub(super) fn made(&self, doing: &str, handle: Handle) -> Result<Handle, Error> {
        if handle.is_null() { Err(refused(doing, &format!("CANN gives none{}", self.recent()))) } else { Ok(handle) }
    }

    fn recent(&self) -> String {
        // SAFETY: the call takes nothing, and what it gives is a string until the next call of this thread, or null.
        let text = unsafe { (self.runtime.recent)() };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: as above.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        format!(": {}", text.trim())
    }
}

/// Memory of the device.
pub(super) struct Memory {
    api: &'static Api,
    pub at: Handle,
    /// Bytes.
    pub size: usize,
}

impl Memory {
    /// So many bytes, at least one, of which nothing is said yet.
    pub(super) fn new(api: &'static Api, size: usize) -> Result<Rc<Self>, Error> {
        let (mut at, size) = (std::ptr::null_mut(), size.max(1));
        // SAFETY: a place for the address.
        let status = unsafe { (api.runtime.malloc)(&raw mut at, size, HUGE_FIRST) };
        api.check(&format!("allocate {size} bytes of the device"), status)?;
        Ok(Rc::new(Self { api, at, size }))
    }

    /// So many zeros.
    pub(super) fn zeroed(api: &'static Api, size: usize) -> Result<Rc<Self>, Error> {
        let memory = Self::new(api, size)?;
        // SAFETY: the memory has that size.
        let status = unsafe { (api.runtime.memset)(memory.at, memory.size, 0, memory.size) };
        api.check("clear memory of the device", status)?;
        Ok(memory)
    }

    /// Memory with this content.
    pub(super) fn of(api: &'static Api, content: &[u8]) -> Result<Rc<Self>, Error> {
        let memory = Self::new(api, content.len())?;
        memory.set(0, content)?;
        Ok(memory)
    }

    /// Replaces the bytes from `from` on and waits until that is done.
    pub(super) fn set(&self, from: usize, content: &[u8]) -> Result<(), Error> {
        let room = self.size.saturating_sub(from);
        if content.len() > room {
            return Err(refused("copy to the device", &format!("{} bytes do not fit into {room}", content.len())));
        }
        // SAFETY: both ends are there and large enough; the call returns when the copy is over.
        let status = unsafe {
            (self.api.runtime.memcpy)(
                self.at.wrapping_byte_add(from),
                room,
                content.as_ptr().cast(),
                content.len(),
                TO_DEVICE,
            )
        };
        self.api.check("copy to the device", status)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: ours, freed once; what the library says of it changes nothing.
        let _ = unsafe { (self.api.runtime.free)(self.at) };
    }
}

/// Memory of the host that the device copies from and to on its own.
pub(super) struct Pinned {
    api: &'static Api,
    at: Handle,
    size: usize,
}

impl Pinned {
    pub(super) fn new(api: &'static Api, size: usize) -> Result<Self, Error> {
        let (mut at, size) = (std::ptr::null_mut(), size.max(1));
        // SAFETY: a place for the address.
        let status = unsafe { (api.runtime.malloc_host)(&raw mut at, size) };
        api.check(&format!("allocate {size} bytes of pinned memory"), status)?;
        let pinned = Self { api, at, size };
        // SAFETY: the bytes are ours, and nobody else has them yet.
        unsafe { pinned.at.cast::<u8>().write_bytes(0, size) };
        Ok(pinned)
    }

    /// The bytes. No copy of them may be under way.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: as many bytes were allocated and set to something.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.size) }
    }

    /// The bytes, to be written. No copy of them may be under way.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.size) }
    }

    /// Puts a copy of the first `count` bytes to the device into a stream; they must stay until it is over.
    pub(super) fn send(&self, to: &Memory, count: usize, stream: Handle) -> Status {
        let count = count.min(self.size).min(to.size);
        // SAFETY: both ends are large enough, and stay until the wait for the stream that ends every step.
        unsafe { (self.api.runtime.memcpy_async)(to.at, to.size, self.at, count, TO_DEVICE, stream) }
    }

    /// Puts a copy of `count` bytes from the device into a stream.
    pub(super) fn receive(&self, from: &Memory, count: usize, stream: Handle) -> Status {
        let count = count.min(self.size).min(from.size);
        // SAFETY: as above.
        unsafe { (self.api.runtime.memcpy_async)(self.at, self.size, from.at, count, FROM_DEVICE, stream) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: ours, freed once.
        let _ = unsafe { (self.api.runtime.free_host)(self.at) };
    }
}

/// How a tensor lies in memory.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub dims: Vec<usize>,
    /// Elements from one index to the next of each dimension.
    pub strides: Vec<usize>,
    /// The first element.
    pub offset: usize,
}

impl Shape {
    /// Elements one after the other.
    pub(super) fn of(dims: &[usize]) -> Self {
        let strides = (0..dims.len()).map(|i| dims.iter().skip(i + 1).product()).collect();
        Self { dims: dims.to_vec(), strides, offset: 0 }
    }

    /// The same from another element on.
    pub(super) fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    /// With these steps.
    pub(super) fn stepping(self, strides: &[usize]) -> Self {
        Self { strides: strides.to_vec(), ..self }
    }
}

/// Something of the library that is given back when nobody needs it.
pub(super) struct Owned {
    pub handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> Status,
    /// What it speaks of, held as long.
    memory: Option<Rc<Memory>>,
}

impl Owned {
    /// Where the memory begins that it speaks of, if it does of any.
    pub(super) fn memory(&self) -> Option<Handle> {
        self.memory.as_ref().map(|memory| memory.at)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, after everything that was launched with it.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

/// An argument of operators.
pub(super) type Argument = Rc<Owned>;

impl Api {
    fn own(
        &self,
        doing: &str,
        handle: Handle,
        destroy: unsafe extern "C" fn(Handle) -> Status,
    ) -> Result<Owned, Error> {
        Ok(Owned { handle: self.made(doing, handle)?, destroy, memory: None })
    }

    fn own_of(
        &self,
        memory: &Rc<Memory>,
        doing: &str,
        handle: Handle,
        destroy: unsafe extern "C" fn(Handle) -> Status,
    ) -> Result<Argument, Error> {
        let mut own = self.own(doing, handle, destroy)?;
        own.memory = Some(Rc::clone(memory));
        Ok(Rc::new(own))
    }

    fn describe(&self, memory: &Memory, dtype: Type, shape: &Shape) -> Handle {
        self.describe_in(memory, dtype, shape, ND, &[(memory.size / dtype.size()) as i64])
    }

    /// A tensor whose memory is a block of dimensions `storage` in a format.
    fn describe_in(&self, memory: &Memory, dtype: Type, shape: &Shape, format: i32, storage: &[i64]) -> Handle {
        let numbers = |values: &[usize]| values.iter().map(|value| *value as i64).collect::<Vec<i64>>();
        let (dims, strides) = (numbers(&shape.dims), numbers(&shape.strides));
        // SAFETY: arrays of as many numbers as are said, and memory that lives as long as the tensor.
        unsafe {
            (self.runtime.create_tensor)(
                dims.as_ptr(),
                dims.len() as u64,
                dtype as i32,
                strides.as_ptr(),
                shape.offset as i64,
                format,
                storage.as_ptr(),
                storage.len() as u64,
                memory.at,
            )
        }
    }

    /// A tensor in memory of the device.
    pub(super) fn tensor(&self, memory: &Rc<Memory>, dtype: Type, shape: &Shape) -> Result<Argument, Error> {
        let handle = self.describe(memory, dtype, shape);
        self.own_of(memory, "describe a tensor", handle, self.runtime.destroy_tensor)
    }

    /// A tensor in another format than by strides, whose memory is a block of dimensions `storage`.
    pub(super) fn formatted(
        &self,
        memory: &Rc<Memory>,
        dtype: Type,
        shape: &Shape,
        (format, storage): (i32, &[i64]),
    ) -> Result<Argument, Error> {
        let handle = self.describe_in(memory, dtype, shape, format, storage);
        self.own_of(memory, "describe a tensor", handle, self.runtime.destroy_tensor)
    }

    /// A list of one tensor.
    pub(super) fn list(&self, memory: &Rc<Memory>, dtype: Type, shape: &Shape) -> Result<Argument, Error> {
        // The list destroys it.
        let handles = [self.made("describe a tensor", self.describe(memory, dtype, shape))?];
        // SAFETY: an array of one handle.
        let handle = unsafe { (self.runtime.create_list)(handles.as_ptr(), 1) };
        self.own_of(memory, "make a list of tensors", handle, self.runtime.destroy_list)
    }

    /// Numbers of the host.
    pub(super) fn ints(&self, values: &[i64]) -> Result<Argument, Error> {
        // SAFETY: an array of as many numbers as are said.
        let handle = unsafe { (self.runtime.create_ints)(values.as_ptr(), values.len() as u64) };
        self.own("make an array of numbers", handle, self.runtime.destroy_ints).map(Rc::new)
    }

    /// A number of the host.
    pub(super) fn scalar(&self, mut value: f32) -> Result<Argument, Error> {
        // SAFETY: a number of the type that is said; the library copies it.
        let handle = unsafe { (self.runtime.create_scalar)((&raw mut value).cast(), Type::F32 as i32) };
        self.own("make a scalar", handle, self.runtime.destroy_scalar).map(Rc::new)
    }

    /// A stream.
    pub(super) fn stream(&self) -> Result<Owned, Error> {
        /// `ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC`.
        const FAST: u32 = 3;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        let status = unsafe { (self.runtime.create_stream)(&raw mut handle, 0, FAST) };
        self.check("make a stream", status)?;
        self.own("make a stream", handle, self.runtime.destroy_stream)
    }

    /// An event with these flags.
    pub(super) fn event(&self, flags: u32) -> Result<Owned, Error> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        let status = unsafe { (self.runtime.create_event)(&raw mut handle, flags) };
        self.check("make an event", status)?;
        self.own("make an event", handle, self.runtime.destroy_event)
    }
}
