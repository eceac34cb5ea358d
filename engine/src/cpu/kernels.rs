//! Inner loops, one file per instruction set, chosen at run time.
//!
//! The unit is a tile: dot products of a few rows of weights with a few rows of activations, accumulated in single
//! precision. Everything that a step spends its time on is made of tiles.

use crate::Dtype;

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;

/// Rows of weights of a tile.
pub const TILE_ROWS: usize = 4;
/// Most rows of activations of a tile.
pub const TILE_TOKENS: usize = 3;

/// An instruction set for which there are kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// What every processor of the architecture has.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
}

impl Isa {
    /// Those that this processor has, best first.
    pub fn available() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            return vec![Self::Avx2, Self::Portable];
        }
        vec![Self::Portable]
    }

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
        }
    }
}

/// Rows of weights, as they lie in memory.
#[derive(Clone, Copy, Debug)]
pub enum RowsOf<'w> {
    /// Single precision.
    F32([&'w [f32]; TILE_ROWS]),
    /// Half precision.
    F16([&'w [u16]; TILE_ROWS]),
    /// Upper halves of single precision.
    Bf16([&'w [u16]; TILE_ROWS]),
    /// Bytes and scales.
    Q8([(&'w [i8], &'w [f32]); TILE_ROWS]),
}

impl RowsOf<'_> {
    /// Some columns of the rows; of [`RowsOf::Q8`] from the start of a block on.
    pub fn columns(self, columns: std::ops::Range<usize>) -> Self {
        let blocks = columns.start / crate::Q8_BLOCK..columns.end.div_ceil(crate::Q8_BLOCK);
        match self {
            Self::F32(rows) => Self::F32(rows.map(|row| row.get(columns.clone()).unwrap_or_default())),
            Self::F16(rows) => Self::F16(rows.map(|row| row.get(columns.clone()).unwrap_or_default())),
            Self::Bf16(rows) => Self::Bf16(rows.map(|row| row.get(columns.clone()).unwrap_or_default())),
            Self::Q8(rows) => Self::Q8(rows.map(|(bytes, scales)| {
                // A row holds whole blocks, the last one filled up.
                let whole = blocks.start * crate::Q8_BLOCK..blocks.end * crate::Q8_BLOCK;
                (bytes.get(whole).unwrap_or_default(), scales.get(blocks.clone()).unwrap_or_default())
            })),
        }
    }
}

/// Dot products of rows of weights with up to [`TILE_TOKENS`] rows of activations.
pub type Tile = [[f32; TILE_TOKENS]; TILE_ROWS];

/// The kernels of an instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// Whose they are.
    pub isa: Isa,
    tile: fn(RowsOf<'_>, &[&[f32]]) -> Tile,
    dot: fn(&[f32], &[f32]) -> f32,
    axpy: fn(f32, &[f32], &mut [f32]),
}

impl Kernels {
    /// The kernels of an instruction set; `None` where the processor does not have it.
    pub fn of(isa: Isa) -> Option<Self> {
        Isa::available().contains(&isa).then_some(match isa {
            Isa::Portable => Self { isa, tile: portable::tile, dot: portable::dot, axpy: portable::axpy },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Self { isa, tile: avx2::tile, dot: avx2::dot, axpy: avx2::axpy },
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 => return None,
        })
    }

    /// The best kernels of this processor.
    pub fn best() -> Self {
        let portable = Self { isa: Isa::Portable, tile: portable::tile, dot: portable::dot, axpy: portable::axpy };
        Isa::available().into_iter().find_map(Self::of).unwrap_or(portable)
    }

    /// Dot products of four rows of weights with one to three rows of activations, all of one length; the columns of
    /// missing activations are 0.
    #[inline]
    pub fn tile(&self, weights: RowsOf<'_>, tokens: &[&[f32]]) -> Tile {
        (self.tile)(weights, tokens)
    }

    /// Dot product of the common length.
    #[inline]
    pub fn dot(&self, a: &[f32], b: &[f32]) -> f32 {
        (self.dot)(a, b)
    }

    /// y += a·x over the common length.
    #[inline]
    pub fn axpy(&self, a: f32, x: &[f32], y: &mut [f32]) {
        (self.axpy)(a, x, y);
    }
}

/// Four rows of a matrix from `row` on; rows after the last are the last again.
pub fn rows_of(tensor: &crate::Tensor, row: usize) -> RowsOf<'_> {
    let last = tensor.rows.saturating_sub(1);
    let index = |i: usize| (row + i).min(last);
    let range = |i: usize| index(i) * tensor.width..(index(i) + 1) * tensor.width;
    match tensor.dtype {
        Dtype::F32 => RowsOf::F32(std::array::from_fn(|i| tensor.f32s().get(range(i)).unwrap_or_default())),
        Dtype::F16 => RowsOf::F16(std::array::from_fn(|i| tensor.halves().get(range(i)).unwrap_or_default())),
        Dtype::Bf16 => RowsOf::Bf16(std::array::from_fn(|i| tensor.halves().get(range(i)).unwrap_or_default())),
        Dtype::Q8 => RowsOf::Q8(std::array::from_fn(|i| tensor.q8_row(index(i)))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;
    use crate::Tensor;

    fn expected(tensor: &Tensor, row: usize, x: &[f32]) -> (f64, f64) {
        let mut values = vec![0.0; tensor.width];
        tensor.read_row(row, &mut values);
        let products = values.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
        products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()))
    }

    proptest! {
        #[test]
        fn tiles_of_every_instruction_set_and_type_are_the_dot_products(
            width in 1usize..150,
            tokens in 1usize..=TILE_TOKENS,
            rows in 1usize..6,
            seed in any::<u32>(),
        ) {
            let value = |i: usize| ((seed as usize).wrapping_add(i * 7919) % 2003) as f32 / 1000.0 - 1.0;
            let x: Vec<Vec<f32>> = (0..tokens).map(|t| (0..width).map(|i| value(i + 31 * t)).collect()).collect();
            let x: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
            for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8] {
                let mut tensor = Tensor::zeroed(dtype, rows, width).unwrap();
                for row in 0..rows {
                    let values: Vec<f32> = (0..width).map(|i| value(i * 3 + row * 17)).collect();
                    tensor.set_row(row, &values);
                }
                for isa in Isa::available() {
                    let tile = Kernels::of(isa).unwrap().tile(rows_of(&tensor, 0), &x);
                    for (row, dots) in tile.iter().enumerate().take(rows) {
                        for (token, dot) in dots.iter().enumerate() {
                            let (sum, size) = x.get(token).map_or((0.0, 0.0), |x| expected(&tensor, row, x));
                            prop_assert!(
                                (f64::from(*dot) - sum).abs() <= size * 1e-5,
                                "{:?} {:?} row {} token {}: {} for {}", isa, dtype, row, token, dot, sum
                            );
                        }
                    }
                }
            }
        }

        #[test]
        fn dot_and_axpy_agree(length in 0usize..200, a in -2.0f32..2.0) {
            let x: Vec<f32> = (0..length).map(|i| (i % 13) as f32 - 6.0).collect();
            let y: Vec<f32> = (0..length).map(|i| (i % 7) as f32 - 3.0).collect();
            let dot: f32 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            for isa in Isa::available() {
                let kernels = Kernels::of(isa).unwrap();
                prop_assert_eq!(kernels.dot(&x, &y), dot);
                let mut z = y.clone();
                kernels.axpy(a, &x, &mut z);
                for ((x, y), z) in x.iter().zip(&y).zip(&z) {
                    prop_assert!((y + a * x - z).abs() <= 1e-5);
                }
            }
        }
    }
}
