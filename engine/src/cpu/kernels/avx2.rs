//! Kernels for AVX2, FMA and F16C.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadl_epi64, _mm_loadu_si128, _mm_movehdup_ps,
    _mm_movehl_ps, _mm256_and_si256, _mm256_broadcast_ss, _mm256_castps256_ps128, _mm256_castsi256_ps,
    _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_extractf128_ps,
    _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_slli_epi32, _mm256_storeu_ps,
};

use half::{bf16, f16};

use super::{Staged, elementwise};
use crate::Dtype;

mod panel;
mod tile;

pub(super) use panel::{panel, widen};
pub(super) use tile::tile;

/// Elements of a vector.
const LANES: usize = 8;
/// Elements that are widened together.
const STRIDE: usize = 2 * LANES;

/// Weights of which eight can be widened to single precision.
trait Wide: Copy {
    /// Eight from `at` on.
    ///
    /// # Safety
    /// AVX2 and F16C are there, and so are eight elements.
    unsafe fn wide(at: *const Self) -> __m256;

    /// Whether sixteen are in the order of [`Activations::ordered`].
    const IS_STAGED: bool = false;

    /// Sixteen from `at` on.
    ///
    /// # Safety
    /// AVX2 and F16C are there, and so are sixteen elements.
    #[inline(always)]
    unsafe fn sixteen(at: *const Self) -> [__m256; 2] {
        // SAFETY: passed on to the caller.
        unsafe { [Self::wide(at), Self::wide(at.add(LANES))] }
    }

    fn value(self) -> f32;
}

impl Wide for f32 {
    #[inline(always)]
    unsafe fn wide(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller.
        unsafe { _mm256_loadu_ps(at) }
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
    unsafe fn wide(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast::<__m128i>())) }
    }
    fn value(self) -> f32 {
        f16::from_bits(self.0).to_f32()
    }
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Brain(u16);

impl Wide for Brain {
    #[inline(always)]
    unsafe fn wide(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller.
        let bits = unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast::<__m128i>())) };
        // SAFETY: as above; the bits of a bf16 are the upper half of a single.
        unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)) }
    }
    const IS_STAGED: bool = true;
    /// Those with even numbers and those with odd ones: a shift and a mask widen them where they are.
    #[inline(always)]
    unsafe fn sixteen(at: *const Self) -> [__m256; 2] {
        // SAFETY: passed on to the caller.
        unsafe {
            let bits = _mm256_loadu_si256(at.cast::<__m256i>());
            let odd = _mm256_and_si256(bits, _mm256_set1_epi32(-0x1_0000));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)), _mm256_castsi256_ps(odd)]
        }
    }
    fn value(self) -> f32 {
        bf16::from_bits(self.0).to_f32()
    }
}

impl Wide for i8 {
    #[inline(always)]
    unsafe fn wide(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast::<__m128i>()))) }
    }
    fn value(self) -> f32 {
        f32::from(self)
    }
}

/// Sum of the lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn total(v: __m256) -> f32 {
    let half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)))
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2 and FMA.
    unsafe { dot_avx2(a, b) }
}

/// # Safety
/// AVX2 and FMA are there.
#[target_feature(enable = "avx2,fma")]
unsafe fn dot_avx2(a: &[f32], b: &[f32]) -> f32 {
    let length = a.len().min(b.len());
    let mut sums = [_mm256_setzero_ps(); 2];
    let whole = length / (2 * LANES) * (2 * LANES);
    for k in (0..whole).step_by(2 * LANES) {
        for (half, sum) in sums.iter_mut().enumerate() {
            let at = k + half * LANES;
            // SAFETY: sixteen elements from `k` on are within both.
            let (x, y) = unsafe { (_mm256_loadu_ps(a.as_ptr().add(at)), _mm256_loadu_ps(b.as_ptr().add(at))) };
            *sum = _mm256_fmadd_ps(x, y, *sum);
        }
    }
    let rest: f32 = a[whole..length].iter().zip(&b[whole..length]).map(|(a, b)| a * b).sum();
    total(sums[0]) + total(sums[1]) + rest
}

pub(super) fn axpy(a: f32, x: &[f32], y: &mut [f32]) {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2 and FMA.
    unsafe { axpy_avx2(a, x, y) }
}

/// # Safety
/// AVX2 and FMA are there.
#[target_feature(enable = "avx2,fma")]
unsafe fn axpy_avx2(a: f32, x: &[f32], y: &mut [f32]) {
    let length = x.len().min(y.len());
    let factor = _mm256_set1_ps(a);
    let whole = length / LANES * LANES;
    for k in (0..whole).step_by(LANES) {
        // SAFETY: eight elements from `k` on are within both.
        unsafe {
            let sum = _mm256_fmadd_ps(factor, _mm256_loadu_ps(x.as_ptr().add(k)), _mm256_loadu_ps(y.as_ptr().add(k)));
            _mm256_storeu_ps(y.as_mut_ptr().add(k), sum);
        }
    }
    for k in whole..length {
        y[k] += a * x[k];
    }
}

/// Vectors of a row that are summed at once: half of the registers.
const SUMMED: usize = 8;

pub(super) fn weigh(weights: &[f32], rows: &[f32], out: &mut [f32]) {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2 and FMA.
    unsafe { weigh_avx2(weights, rows, out) }
}

/// # Safety
/// AVX2 and FMA are there.
#[target_feature(enable = "avx2,fma")]
unsafe fn weigh_avx2(weights: &[f32], rows: &[f32], out: &mut [f32]) {
    let width = out.len();
    let count = weights.len().min(rows.len() / width.max(1));
    let whole = width / (SUMMED * LANES) * (SUMMED * LANES);
    for column in (0..whole).step_by(SUMMED * LANES) {
        // SAFETY: eight vectors from `column` on are within `out`.
        let mut sums: [__m256; SUMMED] =
            std::array::from_fn(|i| unsafe { _mm256_loadu_ps(out.as_ptr().add(column + i * LANES)) });
        for (row, weight) in weights[..count].iter().enumerate() {
            let weight = _mm256_broadcast_ss(weight);
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: they are within row `row` too, which is one of `count` whole rows.
                let value = unsafe { _mm256_loadu_ps(rows.as_ptr().add(row * width + column + i * LANES)) };
                *sum = _mm256_fmadd_ps(weight, value, *sum);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(column + i * LANES), sum) };
        }
    }
    for (weight, row) in weights.iter().zip(rows.chunks_exact(width.max(1))) {
        for (out, value) in out[whole..].iter_mut().zip(&row[whole..]) {
            *out += weight * value;
        }
    }
}

pub(super) fn exponentials(values: &mut [f32], most: f32) -> f32 {
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2(values: &mut [f32], most: f32) -> f32 {
        elementwise::exponentials(values, most)
    }
    // SAFETY: the kernels of this set are only given out where the processor has AVX2.
    unsafe { with_avx2(values, most) }
}

pub(super) fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2(gate: &[f32], up: &[f32], out: &mut [f32]) {
        elementwise::silu_mul(gate, up, out);
    }
    // SAFETY: the kernels of this set are only given out where the processor has AVX2.
    unsafe { with_avx2(gate, up, out) }
}

pub(super) fn stage(dtype: Dtype, values: &[f32], staged: &mut Staged) {
    #[target_feature(enable = "avx2")]
    unsafe fn fix(values: &[f32], staged: &mut Staged) {
        elementwise::fix(values, &mut staged.fixed, &mut staged.scales);
    }
    match dtype {
        // SAFETY: the kernels of this set are only given out where the processor has AVX2.
        Dtype::Q8 => unsafe { fix(values, staged) },
        Dtype::Bf16 => {
            staged.ordered.resize(values.len() / STRIDE * STRIDE, 0.0);
            let pairs = staged.ordered.as_chunks_mut::<STRIDE>().0.iter_mut().zip(values.as_chunks::<STRIDE>().0);
            for (ordered, x) in pairs {
                let (even, odd) = ordered.split_at_mut(LANES);
                for ((even, odd), x) in even.iter_mut().zip(odd).zip(x.as_chunks::<2>().0) {
                    (*even, *odd) = (x[0], x[1]);
                }
            }
        }
        Dtype::F32 | Dtype::F16 => {}
    }
}
