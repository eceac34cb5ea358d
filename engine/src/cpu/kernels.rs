//! Inner loops, one file per instruction set, chosen at run time.
//!
//! Products of matrices are made of one of two units, accumulated in single precision. A tile is a few rows of weights as
//! they lie in memory with a few rows of activations: for decode steps, which read each weight once. A panel is more rows of
//! weights, widened and turned first, with more rows of activations: for prompts, which use each weight many times. Where the
//! processor has a matrix unit, bf16 goes through that instead of panels.

use std::ops::Range;

use crate::Dtype;

mod elementwise;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Rows of weights of a tile.
pub const TILE_ROWS: usize = 4;
/// Most rows of activations of a tile.
pub const TILE_TOKENS: usize = 3;
/// Rows of weights of a panel.
pub const PANEL_ROWS: usize = 16;
/// Most rows of activations that a panel is multiplied with at once.
pub const PANEL_TOKENS: usize = 12;
/// Most columns of a panel, a multiple of [`crate::Q8_BLOCK`]: 16 KiB widened, half of the smallest first-level caches.
pub const PANEL_COLUMNS: usize = 256;

/// Rows of weights of a block of a matrix unit.
pub const MATRIX_ROWS: usize = 256;
/// Rows of activations of a block of a matrix unit.
pub const MATRIX_TOKENS: usize = 32;

/// An instruction set for which there are kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// What every processor of the architecture has.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// That with AVX-512 F, BW, DQ and VL, as servers of Intel have since Skylake and those of AMD since Zen 4.
    Avx512,
    /// That with products of bf16 (AVX512-BF16), as Intel's servers have since Cooper Lake and AMD's since Zen 4.
    Avx512Bf16,
    /// That with the matrix unit for bf16 (AMX), as Intel's servers have since Sapphire Rapids.
    Amx,
}

impl Isa {
    /// Those that this processor has, best first.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        // Each needs those before it.
        #[cfg(target_arch = "x86_64")]
        for (isa, is_there) in [
            (
                Self::Avx2,
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c"),
            ),
            (
                Self::Avx512,
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl"),
            ),
            (Self::Avx512Bf16, is_x86_feature_detected!("avx512bf16")),
            (Self::Amx, x86::amx::is_there()),
        ] {
            if !is_there {
                break;
            }
            all.insert(0, isa);
        }
        all
    }

    /// Whether its products take activations that are rounded to the type of the weights.
    pub fn rounds(self, weights: Dtype) -> bool {
        weights == Dtype::Bf16 && matches!(self, Self::Avx512Bf16 | Self::Amx)
    }

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Bf16 => "avx512_bf16",
            Self::Amx => "amx",
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
    /// Bytes, and bits of scales.
    Q8([(&'w [i8], &'w [u16]); TILE_ROWS]),
}

impl RowsOf<'_> {
    /// Some columns of the rows; of [`RowsOf::Q8`] from the start of a block on.
    pub fn columns(self, columns: Range<usize>) -> Self {
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

/// A row of activations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activations<'x> {
    /// Single precision.
    pub values: &'x [f32],
    /// The same rounded to bf16; as many as are staged, or none.
    pub rounded: &'x [u16],
    /// The same in the order in which weights are widened with the least work; as many as are staged, or none.
    pub ordered: &'x [f32],
    /// The same in fixed point by blocks of [`crate::Q8_BLOCK`]; as many whole blocks as are staged, or none.
    pub fixed: &'x [i16],
    /// Scale of each block.
    pub scales: &'x [f32],
}

impl<'x> Activations<'x> {
    /// In single precision only, which tiles of any type take.
    pub fn single(values: &'x [f32]) -> Self {
        Self { values, ..Self::default() }
    }

    /// Whether all of them were staged as bf16.
    fn is_rounded(&self) -> bool {
        self.rounded.len() == self.values.len()
    }
}

/// A row of activations made ready for weights of a type.
#[derive(Clone, Debug, Default)]
pub struct Staged {
    rounded: Vec<u16>,
    ordered: Vec<f32>,
    fixed: Vec<i16>,
    scales: Vec<f32>,
}

impl Staged {
    /// The activations that this was made of, with what it adds.
    pub fn of<'x>(&'x self, values: &'x [f32]) -> Activations<'x> {
        let Self { rounded, ordered, fixed, scales } = self;
        Activations { values, rounded, ordered, fixed, scales }
    }
}

/// Dot products of rows of weights with up to [`TILE_TOKENS`] rows of activations.
pub type Tile = [[f32; TILE_TOKENS]; TILE_ROWS];

/// A column of a panel: one weight of each row.
pub type Column = [f32; PANEL_ROWS];

/// Dot products of rows of activations with the rows of a panel.
pub type PanelSums = [[f32; PANEL_ROWS]; PANEL_TOKENS];

/// Dot products of a block of rows of activations with a block of rows of weights.
pub type MatrixSums = [[f32; MATRIX_ROWS]; MATRIX_TOKENS];

/// Products of rows of bf16 weights with all activations, which are rounded to bf16: called block by block with the rows, the
/// first of the activations, and the sums. Those of rows and activations that are not there mean nothing.
pub type Matrix = fn(&crate::Tensor, Range<usize>, &[&[f32]], &mut dyn FnMut(Range<usize>, usize, &MatrixSums));

/// The kernels of an instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// Whose they are.
    pub isa: Isa,
    tile: fn(RowsOf<'_>, &[Activations<'_>]) -> Tile,
    widen: fn(RowsOf<'_>, &mut [Column], usize),
    panel: fn(&[Column], &[&[f32]], &mut PanelSums),
    dot: fn(&[f32], &[f32]) -> f32,
    axpy: fn(f32, &[f32], &mut [f32]),
    weigh: fn(&[f32], &[f32], &mut [f32]),
    exponentials: fn(&mut [f32], f32) -> f32,
    silu_mul: fn(&[f32], &[f32], &mut [f32]),
    stage: fn(Dtype, &[f32], &mut Staged),
    matrix: Option<Matrix>,
}

/// The kernels of one module, which all have the same names.
macro_rules! kernels {
    ($isa:expr, $($of:ident)::+) => {
        Kernels {
            isa: $isa,
            tile: $($of)::+::tile,
            widen: $($of)::+::widen,
            panel: $($of)::+::panel,
            dot: $($of)::+::dot,
            axpy: $($of)::+::axpy,
            weigh: $($of)::+::weigh,
            exponentials: $($of)::+::exponentials,
            silu_mul: $($of)::+::silu_mul,
            stage: $($of)::+::stage,
            matrix: None,
        }
    };
}

impl Kernels {
    /// The kernels of an instruction set; `None` where the processor does not have it.
    pub fn of(isa: Isa) -> Option<Self> {
        Isa::available().contains(&isa).then_some(match isa {
            Isa::Portable => kernels!(isa, portable),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => kernels!(isa, x86::avx2),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => kernels!(isa, x86::avx512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16 => kernels!(isa, x86::avx512_bf16),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => Self { matrix: Some(x86::amx::multiply), ..kernels!(isa, x86::amx) },
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx => return None,
        })
    }

    /// The best kernels of this processor.
    pub fn best() -> Self {
        Isa::available().into_iter().find_map(Self::of).unwrap_or(kernels!(Isa::Portable, portable))
    }

    /// Dot products of four rows of weights with one to three rows of activations, all of one length; the columns of
    /// missing activations are 0.
    #[inline]
    pub fn tile(&self, weights: RowsOf<'_>, tokens: &[Activations<'_>]) -> Tile {
        (self.tile)(weights, tokens)
    }

    /// Widens four rows of weights into rows `first` to `first + 3` of a panel, as many columns as both have.
    ///
    /// # Panics
    /// When the panel has no such rows.
    #[inline]
    pub fn widen(&self, weights: RowsOf<'_>, panel: &mut [Column], first: usize) {
        (self.widen)(weights, panel, first);
    }

    /// Dot products of up to [`PANEL_TOKENS`] rows of activations with the rows of a panel, over the common columns; the sums
    /// of missing activations are left alone.
    #[inline]
    pub fn panel(&self, columns: &[Column], tokens: &[&[f32]], sums: &mut PanelSums) {
        (self.panel)(columns, tokens, sums);
    }

    /// The matrix unit, for weights of a type that it takes.
    pub fn matrix(&self, dtype: Dtype) -> Option<Matrix> {
        self.matrix.filter(|_| dtype == Dtype::Bf16)
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

    /// `out` += Σ weight·row, of rows as long as `out` that lie one after the other.
    #[inline]
    pub fn weigh(&self, weights: &[f32], rows: &[f32], out: &mut [f32]) {
        (self.weigh)(weights, rows, out);
    }

    /// Makes activations ready for weights of a type.
    #[inline]
    pub fn stage(&self, dtype: Dtype, values: &[f32]) -> Staged {
        let mut staged = Staged::default();
        (self.stage)(dtype, values, &mut staged);
        staged
    }

    /// Replaces each value by e^(value − `most`) and returns their sum.
    #[inline]
    pub fn exponentials(&self, values: &mut [f32], most: f32) -> f32 {
        (self.exponentials)(values, most)
    }

    /// gate · sigmoid(gate) · up of each element.
    #[inline]
    pub fn silu_mul(&self, gate: &[f32], up: &[f32], out: &mut [f32]) {
        (self.silu_mul)(gate, up, out);
    }
}

/// Four rows of a matrix from `row` on; rows after the last are the last again.
#[inline]
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
mod tests;
