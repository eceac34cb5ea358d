//! Tensors and the other arguments of operators: descriptions of memory, and small values of the host.

#![allow(unsafe_code)]

use std::sync::Arc;

use half::{bf16, f16};

use crate::{
    error::{self, Outcome, fault},
    memory::Block,
    state::{Handle, State},
};

mod calls;

/// Types of elements, by their numbers (`aclDataType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    F32 = 0,
    F16 = 1,
    I8 = 2,
    I32 = 3,
    U8 = 4,
    I64 = 9,
    F64 = 11,
    Bool = 12,
    Bf16 = 27,
}

impl Type {
    fn of(number: i32) -> Option<Self> {
        [Self::F32, Self::F16, Self::I8, Self::I32, Self::U8, Self::I64, Self::F64, Self::Bool, Self::Bf16]
            .into_iter()
            .find(|own| *own as i32 == number)
    }

    /// Bytes.
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it is one that most operators compute with.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }
}

/// How elements lie, by their numbers (`aclFormat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// By strides.
    Nd = 2,
    /// In squares, column of squares by column of squares.
    Nz = 29,
}

/// Side of a square of NZ, elements of two bytes.
pub const SIDE: usize = 16;

/// The dimensions of the memory of a matrix that lies in NZ: squares of a row, of a column, and those of a square.
pub fn squares(rows: usize, columns: usize) -> [i64; 4] {
    [columns.div_ceil(SIDE) as i64, rows.div_ceil(SIDE) as i64, SIDE as i64, SIDE as i64]
}

/// A tensor.
pub struct Tensor {
    pub dims: Vec<usize>,
    strides: Vec<i64>,
    pub dtype: Type,
    pub format: Format,
    /// Address of the first element.
    at: usize,
}

impl Tensor {
    /// Elements.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Bytes.
    pub fn bytes(&self) -> usize {
        self.count() * self.dtype.size()
    }

    /// Whether its elements lie one after the other.
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        self.dims.iter().zip(&self.strides).rev().all(|(dim, stride)| {
            let fits = *dim == 1 || *stride == next;
            next *= *dim as i64;
            fits
        })
    }

    /// Whether rows and columns are those of a matrix the other way round.
    pub fn is_transposed(&self) -> bool {
        matches!((self.dims.as_slice(), self.strides.as_slice()), ([rows, _], [1, stride]) if *stride == *rows as i64)
    }
}

/// A tensor with its memory held.
#[derive(Clone)]
pub struct View {
    pub tensor: Arc<Tensor>,
    block: Arc<Block>,
}

impl State {
    /// A tensor with its memory, which must be allocated, whole, and of the device of the caller; only the products of laid
    /// out weights take one that is not by strides.
    pub fn view(&self, handle: Handle, argument: &str) -> Outcome<View> {
        let view = self.weight(handle, argument)?;
        if view.tensor.format != Format::Nd {
            return fault(error::INVALID, format!("'{argument}' lies in NZ, which this operator does not take"));
        }
        Ok(view)
    }

    /// The same of a tensor that may lie in NZ.
    pub fn weight(&self, handle: Handle, argument: &str) -> Outcome<View> {
        let tensor = self.tensor(handle, argument)?;
        let device = self.current()?.1.device;
        let reach = |sign: fn(i64) -> bool| -> i64 {
            let each = tensor.dims.iter().zip(&tensor.strides).filter(|(_, stride)| sign(**stride));
            each.map(|(dim, stride)| (*dim as i64 - 1).max(0) * stride).sum()
        };
        let size = tensor.dtype.size();
        let (low, high) = (reach(i64::is_negative), reach(i64::is_positive));
        let elements = match tensor.format {
            Format::Nd => usize::try_from(high - low).unwrap_or(usize::MAX / 16) + 1,
            Format::Nz => tensor.dims.iter().map(|dim| dim.next_multiple_of(SIDE)).product(),
        };
        let first = tensor.at.saturating_add_signed(isize::try_from(low).unwrap_or(0) * size as isize);
        let found = self.block(first, elements.saturating_mul(size));
        match found {
            Some(block) if block.device == Some(device) => Ok(View { tensor, block }),
            Some(block) => fault(
                error::INVALID,
                format!(
                    "'{argument}' is memory of device {:?}, the context is of device {device}",
                    block.device.unwrap_or(-1)
                ),
            ),
            None => fault(
                error::INVALID,
                format!("'{argument}' reaches {elements} elements of {size} bytes, which are no memory of the device"),
            ),
        }
    }

    /// Where the tensors of an argument begin; nowhere for an argument of another kind.
    pub fn addresses(&self, argument: usize) -> impl Iterator<Item = usize> + '_ {
        let listed = self.lists.get(&argument).into_iter().flatten();
        std::iter::once(argument)
            .chain(listed.copied())
            .filter_map(|tensor| self.tensors.get(&tensor))
            .map(|own| own.at)
    }

    /// A tensor that need not be there.
    pub fn optional(&self, handle: Handle, argument: &str) -> Outcome<Option<View>> {
        if handle.is_null() { Ok(None) } else { self.view(handle, argument).map(Some) }
    }

    /// A scalar.
    pub fn scalar(&self, handle: Handle, argument: &str) -> Outcome<f64> {
        let found = self.scalars.get(&handle.addr()).copied();
        let code = if handle.is_null() { error::NULL } else { error::INVALID };
        found.map_or_else(|| fault(code, format!("'{argument}' is no scalar, or was destroyed")), Ok)
    }

    /// Numbers.
    pub fn ints(&self, handle: Handle, argument: &str) -> Outcome<Arc<Vec<i64>>> {
        let found = self.int_arrays.get(&handle.addr()).cloned();
        let code = if handle.is_null() { error::NULL } else { error::INVALID };
        found.map_or_else(|| fault(code, format!("'{argument}' is no array of numbers, or was destroyed")), Ok)
    }
}

impl View {
    /// Refuses memory that was freed since.
    pub fn alive(&self) -> Outcome {
        self.block.alive()
    }

    /// Where the element of these indices lies, from the first one, elements.
    pub fn offset(&self, indices: &[usize]) -> i64 {
        indices.iter().zip(&self.tensor.strides).map(|(index, stride)| *index as i64 * stride).sum()
    }

    fn place(&self, offset: i64) -> *mut u8 {
        let bytes = offset as isize * self.tensor.dtype.size() as isize;
        self.block.at(self.tensor.at.wrapping_add_signed(bytes))
    }

    /// The element there.
    pub fn get(&self, offset: i64) -> f32 {
        let at = self.place(offset);
        // SAFETY: offsets are those of elements, which `State::view` found to lie in the block; any bits are a value.
        unsafe {
            match self.tensor.dtype {
                Type::F32 => at.cast::<f32>().read_unaligned(),
                Type::F16 => f16::from_bits(at.cast::<u16>().read_unaligned()).to_f32(),
                Type::Bf16 => bf16::from_bits(at.cast::<u16>().read_unaligned()).to_f32(),
                Type::F64 => at.cast::<f64>().read_unaligned() as f32,
                Type::I8 => f32::from(at.cast::<i8>().read()),
                Type::U8 | Type::Bool => f32::from(at.read()),
                Type::I32 => at.cast::<i32>().read_unaligned() as f32,
                Type::I64 => at.cast::<i64>().read_unaligned() as f32,
            }
        }
    }

    /// The whole number there.
    pub fn int(&self, offset: i64) -> i64 {
        let at = self.place(offset);
        // SAFETY: as above.
        unsafe {
            match self.tensor.dtype {
                Type::I32 => i64::from(at.cast::<i32>().read_unaligned()),
                Type::I64 => at.cast::<i64>().read_unaligned(),
                _ => self.get(offset) as i64,
            }
        }
    }

    /// Writes the element there, rounded to nearest.
    pub fn set(&self, offset: i64, value: f32) {
        let at = self.place(offset);
        // SAFETY: as above; who writes what when is the caller's programme.
        unsafe {
            match self.tensor.dtype {
                Type::F32 => at.cast::<f32>().write_unaligned(value),
                Type::F16 => at.cast::<u16>().write_unaligned(f16::from_f32(value).to_bits()),
                Type::Bf16 => at.cast::<u16>().write_unaligned(bf16::from_f32(value).to_bits()),
                Type::F64 => at.cast::<f64>().write_unaligned(f64::from(value)),
                Type::I8 => at.cast::<i8>().write(value as i8),
                Type::U8 | Type::Bool => at.write(value as u8),
                Type::I32 => at.cast::<i32>().write_unaligned(value as i32),
                Type::I64 => at.cast::<i64>().write_unaligned(value as i64),
            }
        }
    }

    /// Writes the whole number there, which single precision would round.
    pub fn set_int(&self, offset: i64, value: i64) {
        let at = self.place(offset);
        // SAFETY: as above.
        unsafe {
            match self.tensor.dtype {
                Type::I32 => at.cast::<i32>().write_unaligned(value as i32),
                _ => at.cast::<i64>().write_unaligned(value),
            }
        }
    }

    /// Offsets of all elements, in the order of their indices.
    pub fn offsets(&self) -> impl Iterator<Item = i64> + use<> {
        self.spread(&self.tensor.dims)
    }

    /// Offsets of elements in a tensor of dimensions `to`, to which those of this one are spread.
    pub fn spread(&self, to: &[usize]) -> impl Iterator<Item = i64> + use<> {
        let lead = to.len() - self.tensor.dims.len().min(to.len());
        let strides: Vec<i64> = (0..to.len())
            .map(|i| {
                match i.checked_sub(lead).and_then(|own| self.tensor.dims.get(own).zip(self.tensor.strides.get(own))) {
                    Some((dim, stride)) if *dim > 1 => *stride,
                    _ => 0,
                }
            })
            .collect();
        let (dims, count) = (to.to_vec(), to.iter().product::<usize>());
        let mut indices = vec![0usize; dims.len()];
        let mut offset = 0i64;
        (0..count).map(move |_| {
            let here = offset;
            for axis in (0..dims.len()).rev() {
                indices[axis] += 1;
                offset += strides[axis];
                if indices[axis] < dims[axis] {
                    break;
                }
                offset -= strides[axis] * indices[axis] as i64;
                indices[axis] = 0;
            }
            here
        })
    }

    /// All elements.
    pub fn load(&self) -> Vec<f32> {
        self.offsets().map(|offset| self.get(offset)).collect()
    }

    /// Writes all elements.
    pub fn store(&self, values: &[f32]) {
        self.offsets().zip(values).for_each(|(offset, value)| self.set(offset, *value));
    }
}
