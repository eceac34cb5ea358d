//! Matrices of weights in the type they are computed with.

use half::{bf16, f16};

use crate::{Buffer, Error};

/// Elements that share a scale in [`Dtype::Q8`].
pub const Q8_BLOCK: usize = 32;

/// The scale of a block of [`Dtype::Q8`]: bf16, which every processor widens with one shift and whose range is that of single
/// precision. That it is coarse costs nothing but a 128th of the steps, as bytes are made by the scale that is stored.
#[inline]
pub fn q8_scale(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Bits of the least bf16 that is not less than a scale, so that the greatest value of its block is still at most 127 steps.
fn scale_at_least(scale: f32) -> u16 {
    (scale.to_bits().saturating_add(0xffff) >> 16) as u16
}

/// Type of stored weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Upper half of single precision.
    Bf16,
    /// Blocks of [`Q8_BLOCK`] signed bytes with one scale of two bytes, see [`q8_scale`]: value = scale × byte.
    Q8,
}

impl Dtype {
    /// Its name in commands and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8 => "q8",
        }
    }

    /// Bytes of a row of `width` elements; rows of [`Dtype::Q8`] hold all bytes first, then all scales.
    pub fn row_bytes(self, width: usize) -> usize {
        match self {
            Self::F32 => width * 4,
            Self::F16 | Self::Bf16 => width * 2,
            Self::Q8 => width.next_multiple_of(Q8_BLOCK) + width.div_ceil(Q8_BLOCK) * 2,
        }
    }
}

/// A matrix in row order, `rows` × `width`.
#[derive(Debug)]
pub struct Tensor {
    /// Type of its elements.
    pub dtype: Dtype,
    /// Rows: outputs of a projection, tokens of an embedding.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
    data: Buffer,
}

impl Tensor {
    /// A matrix of zeros.
    ///
    /// # Errors
    /// [`Error::Request`] when there is not so much memory.
    pub fn zeroed(dtype: Dtype, rows: usize, width: usize) -> Result<Self, Error> {
        let bytes = dtype.row_bytes(width).checked_mul(rows);
        let bytes = bytes.ok_or_else(|| Error::Request(format!("a matrix of {rows} rows of {width} is too large")))?;
        Ok(Self { dtype, rows, width, data: Buffer::zeroed(bytes)? })
    }

    /// Bytes that reading it once moves.
    pub fn bytes(&self) -> usize {
        self.data.bytes().len()
    }

    /// The bytes of its rows, one after the other.
    pub fn raw(&self) -> &[u8] {
        self.data.bytes()
    }

    /// The elements of a matrix of [`Dtype::F32`]; of another type there are none.
    #[inline]
    pub fn f32s(&self) -> &[f32] {
        if self.dtype == Dtype::F32 { self.data.as_slice() } else { &[] }
    }

    /// The bits of a matrix of [`Dtype::F16`] or [`Dtype::Bf16`]; of another type there are none.
    #[inline]
    pub fn halves(&self) -> &[u16] {
        if matches!(self.dtype, Dtype::F16 | Dtype::Bf16) { self.data.as_slice() } else { &[] }
    }

    /// Row `row` of a matrix of [`Dtype::Q8`]: its bytes and its scales' bits.
    #[inline]
    pub fn q8_row(&self, row: usize) -> (&[i8], &[u16]) {
        let stride = self.dtype.row_bytes(self.width);
        let bytes = self.data.bytes().get(row * stride..(row + 1) * stride).unwrap_or_default();
        let (quants, scales) = bytes.split_at(self.width.next_multiple_of(Q8_BLOCK).min(bytes.len()));
        (cast(quants), cast(scales))
    }

    /// Writes a row from single precision, rounded to nearest.
    pub fn set_row(&mut self, row: usize, values: &[f32]) {
        let (width, stride) = (self.width, self.dtype.row_bytes(self.width));
        match self.dtype {
            Dtype::F32 => {
                let at = row * width;
                if let Some(out) = self.data.as_mut_slice::<f32>().get_mut(at..at + width) {
                    out.copy_from_slice(values);
                }
            }
            Dtype::F16 | Dtype::Bf16 => {
                let at = row * width;
                let to_bits = |value: f32| match self.dtype {
                    Dtype::F16 => f16::from_f32(value).to_bits(),
                    _ => bf16::from_f32(value).to_bits(),
                };
                let out = self.data.as_mut_slice::<u16>().get_mut(at..at + width).unwrap_or_default();
                out.iter_mut().zip(values).for_each(|(out, value)| *out = to_bits(*value));
            }
            Dtype::Q8 => {
                let padded = width.next_multiple_of(Q8_BLOCK);
                let out = self.data.bytes_mut().get_mut(row * stride..(row + 1) * stride).unwrap_or_default();
                let (quants, scales) = out.split_at_mut(padded.min(out.len()));
                for ((block, quants), scale) in
                    values.chunks(Q8_BLOCK).zip(quants.chunks_mut(Q8_BLOCK)).zip(scales.chunks_exact_mut(2))
                {
                    // Bytes hold no NaN and `max` passes it over: the scale carries what is no number.
                    let largest = match block.iter().all(|value| value.is_finite()) {
                        true => block.iter().fold(0f32, |most, value| most.max(value.abs())),
                        false => f32::NAN,
                    };
                    let bits = scale_at_least(largest / 127.0);
                    let step = q8_scale(bits);
                    let inverse = if step > 0.0 { step.recip() } else { 0.0 };
                    for (quant, value) in quants.iter_mut().zip(block) {
                        *quant = ((value * inverse).round() as i8).cast_unsigned();
                    }
                    scale.copy_from_slice(&bits.to_ne_bytes());
                }
            }
        }
    }

    /// Reads a row into single precision.
    pub fn read_row(&self, row: usize, out: &mut [f32]) {
        let range = row * self.width..(row + 1) * self.width;
        match self.dtype {
            Dtype::F32 => {
                if let Some(values) = self.f32s().get(range) {
                    out.copy_from_slice(values);
                }
            }
            Dtype::F16 | Dtype::Bf16 => {
                let bits = self.halves().get(range).unwrap_or_default();
                let value = |bits: u16| match self.dtype {
                    Dtype::F16 => f16::from_bits(bits).to_f32(),
                    _ => bf16::from_bits(bits).to_f32(),
                };
                out.iter_mut().zip(bits).for_each(|(out, bits)| *out = value(*bits));
            }
            Dtype::Q8 => {
                let (quants, scales) = self.q8_row(row);
                for ((out, quants), scale) in out.chunks_mut(Q8_BLOCK).zip(quants.chunks(Q8_BLOCK)).zip(scales) {
                    let scale = q8_scale(*scale);
                    out.iter_mut().zip(quants).for_each(|(out, quant)| *out = f32::from(*quant) * scale);
                }
            }
        }
    }
}

/// Bytes of a [`Buffer`], at an offset that is a multiple of the element, as numbers.
#[allow(unsafe_code)]
fn cast<T: crate::buffer::Number>(bytes: &[u8]) -> &[T] {
    // SAFETY: every bit pattern is a `T`; `align_to` keeps what is not aligned out of the middle.
    unsafe { bytes.align_to::<T>().1 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn rows_come_back_within_the_rounding_of_their_type() {
        let row: Vec<f32> = (0..70).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
        for (dtype, relative) in [(Dtype::F32, 0.0), (Dtype::F16, 1.0 / 2048.0), (Dtype::Bf16, 1.0 / 256.0)] {
            let mut tensor = Tensor::zeroed(dtype, 3, 70).unwrap();
            tensor.set_row(1, &row);
            let mut back = vec![0.0; 70];
            tensor.read_row(1, &mut back);
            for (a, b) in row.iter().zip(&back) {
                assert!((a - b).abs() <= a.abs() * relative, "{dtype:?}: {a} came back as {b}");
            }
        }
        let mut tensor = Tensor::zeroed(Dtype::Q8, 3, 70).unwrap();
        tensor.set_row(2, &row);
        let mut back = vec![0.0; 70];
        tensor.read_row(2, &mut back);
        for (a, b) in row.iter().zip(&back) {
            assert!((a - b).abs() <= 0.5 / 127.0 * (1.0 + 1.0 / 128.0) + 1e-6, "{a} came back as {b}");
        }
        assert_eq!(tensor.q8_row(2).1.len(), 3);
        assert_eq!(Dtype::Q8.row_bytes(70), 96 + 3 * 2);
    }

    #[test]
    fn bytes_keep_what_is_no_number() {
        for fault in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut row = vec![0.5; 2 * Q8_BLOCK];
            row[Q8_BLOCK + 3] = fault;
            let mut tensor = Tensor::zeroed(Dtype::Q8, 1, row.len()).unwrap();
            tensor.set_row(0, &row);
            let mut back = vec![0.0; row.len()];
            tensor.read_row(0, &mut back);
            assert!(back[..Q8_BLOCK].iter().all(|value| (value - 0.5).abs() < 0.01), "{fault}: {back:?}");
            assert!(back[Q8_BLOCK..].iter().all(|value| value.is_nan()), "{fault}: {back:?}");
        }
    }

    #[test]
    fn a_scale_is_never_less_than_what_it_stands_for() {
        for scale in [0.0, f32::MIN_POSITIVE, 1.0, 1.0 + f32::EPSILON, 0.3, 1e-30, f32::MAX / 127.0] {
            let stored = q8_scale(scale_at_least(scale));
            assert!(stored >= scale && stored <= scale * (1.0 + 1.0 / 128.0), "{scale} is stored as {stored}");
        }
    }
}
