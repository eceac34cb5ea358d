//! Kernels for the vector registers of x86-64. The loops are written once over [`Vector`] and compiled for each instruction
//! set, one file each.

#![allow(unsafe_code)]

use half::{bf16, f16};

use super::{Staged, elementwise};
use crate::Dtype;

pub(super) mod amx;
pub(super) mod avx2;
pub(super) mod avx512;
pub(super) mod avx512_bf16;
mod panel;
mod tile;

/// A register of singles, with what the loops do with it.
///
/// # Safety
/// Every function is called where the instruction set is there, and pointers have as many elements behind them as is said.
trait Vector: Copy {
    /// Singles in it.
    const LANES: usize;
    /// Rows of activations that a panel is multiplied with at once: as many sums as there are registers for.
    const TOKENS: usize;
    /// A block of [`crate::Q8_BLOCK`] bytes, each widened to 16 bits.
    type Block: Copy;

    unsafe fn zero() -> Self;
    unsafe fn all(value: f32) -> Self;
    /// [`Self::LANES`] singles.
    unsafe fn load(at: *const f32) -> Self;
    unsafe fn store(self, at: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn multiply(self, by: Self) -> Self;
    /// `self` · `by` + `plus`.
    unsafe fn multiply_add(self, by: Self, plus: Self) -> Self;
    /// Sum of the lanes.
    unsafe fn total(self) -> f32;
    /// [`Self::LANES`] of half precision, widened.
    unsafe fn halves(at: *const u16) -> Self;
    /// Twice [`Self::LANES`] upper halves of singles: those with even numbers, and those with odd ones. A shift and a mask
    /// widen them where they are.
    unsafe fn brains(at: *const u16) -> [Self; 2];
    /// [`Self::LANES`] upper halves of singles, widened in their order.
    unsafe fn wide(at: *const u16) -> Self;
    unsafe fn block(at: *const i8) -> Self::Block;
    /// Products of a block with as many numbers in fixed point, in any order added up to one for each lane.
    unsafe fn products(block: Self::Block, fixed: *const i16) -> Self;
}

/// Weights that can be widened to singles.
trait Wide: Copy {
    /// Whether they are in the order of [`super::Activations::ordered`] once widened.
    const IS_STAGED: bool = false;

    /// Twice as many as a vector holds.
    ///
    /// # Safety
    /// The instruction set and the elements are there.
    unsafe fn two<V: Vector>(at: *const Self) -> [V; 2];

    fn value(self) -> f32;
}

impl Wide for f32 {
    #[inline(always)]
    unsafe fn two<V: Vector>(at: *const Self) -> [V; 2] {
        // SAFETY: passed on to the caller.
        unsafe { [V::load(at), V::load(at.add(V::LANES))] }
    }
    fn value(self) -> f32 {
        self
    }
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Half(u16);

impl Wide for Half {
    #[inline(always)]
    unsafe fn two<V: Vector>(at: *const Self) -> [V; 2] {
        // SAFETY: passed on to the caller; a half is its bits.
        unsafe { [V::halves(at.cast()), V::halves(at.add(V::LANES).cast())] }
    }
    fn value(self) -> f32 {
        f16::from_bits(self.0).to_f32()
    }
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Brain(u16);

impl Wide for Brain {
    const IS_STAGED: bool = true;
    #[inline(always)]
    unsafe fn two<V: Vector>(at: *const Self) -> [V; 2] {
        // SAFETY: passed on to the caller; a bf16 is its bits.
        unsafe { V::brains(at.cast()) }
    }
    fn value(self) -> f32 {
        bf16::from_bits(self.0).to_f32()
    }
}

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn dot<V: Vector>(a: &[f32], b: &[f32]) -> f32 {
    let length = a.len().min(b.len());
    let whole = length / (2 * V::LANES) * (2 * V::LANES);
    // SAFETY: the caller's; two vectors from `k` on are within both.
    let sum = unsafe {
        let mut sums = [V::zero(); 2];
        for k in (0..whole).step_by(2 * V::LANES) {
            for (half, sum) in sums.iter_mut().enumerate() {
                let at = k + half * V::LANES;
                *sum = V::load(a.as_ptr().add(at)).multiply_add(V::load(b.as_ptr().add(at)), *sum);
            }
        }
        sums[0].total() + sums[1].total()
    };
    sum + a[whole..length].iter().zip(&b[whole..length]).map(|(a, b)| a * b).sum::<f32>()
}

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn axpy<V: Vector>(a: f32, x: &[f32], y: &mut [f32]) {
    let length = x.len().min(y.len());
    let whole = length / V::LANES * V::LANES;
    // SAFETY: the caller's; a vector from `k` on is within both.
    unsafe {
        let factor = V::all(a);
        for k in (0..whole).step_by(V::LANES) {
            factor.multiply_add(V::load(x.as_ptr().add(k)), V::load(y.as_ptr().add(k))).store(y.as_mut_ptr().add(k));
        }
    }
    for k in whole..length {
        y[k] += a * x[k];
    }
}

/// Vectors of a row that are summed at once: half of the registers of AVX2.
const SUMMED: usize = 8;

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn weigh<V: Vector>(weights: &[f32], rows: &[f32], out: &mut [f32]) {
    // Two vectors at a time where rows are too short for more.
    // SAFETY: the caller's.
    let whole = unsafe { weigh_by::<V, SUMMED>(weights, rows, out, 0) };
    // SAFETY: the caller's.
    let whole = unsafe { weigh_by::<V, 2>(weights, rows, out, whole) };
    for (weight, row) in weights.iter().zip(rows.chunks_exact(out.len().max(1))) {
        for (out, value) in out[whole..].iter_mut().zip(&row[whole..]) {
            *out += weight * value;
        }
    }
}

/// Columns from `first` on by so many vectors; returns the first column that is left.
///
/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn weigh_by<V: Vector, const N: usize>(weights: &[f32], rows: &[f32], out: &mut [f32], first: usize) -> usize {
    let width = out.len();
    let count = weights.len().min(rows.len() / width.max(1));
    let whole = first + (width - first) / (N * V::LANES) * (N * V::LANES);
    for column in (first..whole).step_by(N * V::LANES) {
        // SAFETY: the caller's; N vectors from `column` on are within `out`, and within each of `count` whole rows.
        unsafe {
            let at: [*mut f32; N] = std::array::from_fn(|i| out.as_mut_ptr().add(column + i * V::LANES));
            let mut sums = at.map(|at| V::load(at));
            for (row, weight) in weights[..count].iter().enumerate() {
                let weight = V::all(*weight);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let value = V::load(rows.as_ptr().add(row * width + column + i * V::LANES));
                    *sum = weight.multiply_add(value, *sum);
                }
            }
            for (at, sum) in at.into_iter().zip(sums) {
                sum.store(at);
            }
        }
    }
    whole
}

#[inline(always)]
fn stage<V: Vector>(dtype: Dtype, values: &[f32], staged: &mut Staged) {
    match dtype {
        Dtype::Q8 => elementwise::fix(values, &mut staged.fixed, &mut staged.scales),
        Dtype::Bf16 => {
            let stride = 2 * V::LANES;
            staged.ordered.resize(values.len() / stride * stride, 0.0);
            for (ordered, x) in staged.ordered.chunks_exact_mut(stride).zip(values.chunks_exact(stride)) {
                let (even, odd) = ordered.split_at_mut(V::LANES);
                for ((even, odd), x) in even.iter_mut().zip(odd).zip(x.as_chunks::<2>().0) {
                    (*even, *odd) = (x[0], x[1]);
                }
            }
        }
        Dtype::F32 | Dtype::F16 => {}
    }
}

/// The kernels of an instruction set: the loops over its vector, compiled with its features.
macro_rules! entries {
    ($vector:ty, $features:literal) => {
        entries! { $vector, $features,
            fn tile(weights: RowsOf<'_>, tokens: &[Activations<'_>]) -> Tile = super::tile::tile::<$vector>;
            fn panel(columns: &[Column], tokens: &[&[f32]], sums: &mut PanelSums) -> () = super::panel::panel::<$vector>;
            fn dot(a: &[f32], b: &[f32]) -> f32 = super::dot::<$vector>;
            fn axpy(a: f32, x: &[f32], y: &mut [f32]) -> () = super::axpy::<$vector>;
            fn weigh(weights: &[f32], rows: &[f32], out: &mut [f32]) -> () = super::weigh::<$vector>;
            fn exponentials(values: &mut [f32], most: f32) -> f32 = elementwise::exponentials;
            fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) -> () = elementwise::silu_mul;
            fn stage(dtype: Dtype, values: &[f32], staged: &mut Staged) -> () = super::stage::<$vector>;
        }
    };
    ($vector:ty, $features:literal, $(fn $name:ident($($of:ident: $type:ty),*) -> $out:ty = $loop:expr;)*) => {$(
        pub(in super::super) fn $name($($of: $type),*) -> $out {
            /// # Safety
            /// The instruction set is there.
            #[target_feature(enable = $features)]
            #[allow(unused_unsafe)]
            unsafe fn compiled($($of: $type),*) -> $out {
                // SAFETY: the caller's.
                unsafe { $loop($($of),*) }
            }
            // SAFETY: the kernels of this set are only given out where the processor has its features.
            unsafe { compiled($($of),*) }
        }
    )*};
}
use entries;
