//! Kernels for AVX2, FMA and F16C. A tile keeps twelve sums in registers, so that a weight is loaded and widened once for
//! three tokens and an activation once for four rows.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadl_epi64, _mm_loadu_si128, _mm_movehdup_ps,
    _mm_movehl_ps, _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps,
    _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
    _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi32, _mm256_storeu_ps,
};

use half::{bf16, f16};

use super::{RowsOf, TILE_ROWS, Tile};
use crate::Q8_BLOCK;

/// Elements of a vector.
const LANES: usize = 8;

/// Weights of which eight can be widened to single precision.
trait Wide: Copy {
    /// Eight from `at` on.
    ///
    /// # Safety
    /// AVX2 and F16C are there, and so are eight elements.
    unsafe fn wide(at: *const Self) -> __m256;
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

pub(super) fn tile(weights: RowsOf<'_>, tokens: &[&[f32]]) -> Tile {
    let bits = |rows: [&[u16]; TILE_ROWS]| rows.map(|row| (row.as_ptr(), row.len()));
    match (weights, tokens) {
        (RowsOf::F32(rows), tokens) => by_tokens(rows.map(|row| (row.as_ptr(), row.len())), tokens),
        (RowsOf::F16(rows), tokens) => by_tokens(bits(rows).map(|(at, len)| (at.cast::<Half>(), len)), tokens),
        (RowsOf::Bf16(rows), tokens) => by_tokens(bits(rows).map(|(at, len)| (at.cast::<Brain>(), len)), tokens),
        (RowsOf::Q8(rows), [a]) => quantised(rows, [a]),
        (RowsOf::Q8(rows), [a, b]) => quantised(rows, [a, b]),
        (RowsOf::Q8(rows), [a, b, c, ..]) => quantised(rows, [a, b, c]),
        (RowsOf::Q8(_), []) => Tile::default(),
    }
}

fn by_tokens<W: Wide>(rows: [(*const W, usize); TILE_ROWS], tokens: &[&[f32]]) -> Tile {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2, FMA and F16C; each row comes with
    // its length.
    unsafe {
        match tokens {
            [] => Tile::default(),
            [a] => sums(rows, [a]),
            [a, b] => sums(rows, [a, b]),
            [a, b, c, ..] => sums(rows, [a, b, c]),
        }
    }
}

/// # Safety
/// AVX2, FMA and F16C are there; each row points to as many elements as it says.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn sums<W: Wide, const T: usize>(rows: [(*const W, usize); TILE_ROWS], tokens: [&[f32]; T]) -> Tile {
    let shortest = rows.iter().map(|(_, len)| *len).chain(tokens.iter().map(|x| x.len())).min().unwrap_or(0);
    let mut sums = [[_mm256_setzero_ps(); T]; TILE_ROWS];
    let whole = shortest / LANES * LANES;
    for k in (0..whole).step_by(LANES) {
        let mut x = [_mm256_setzero_ps(); T];
        for token in 0..T {
            // SAFETY: eight elements from `k` on are within the shortest operand.
            x[token] = unsafe { _mm256_loadu_ps(tokens[token].as_ptr().add(k)) };
        }
        for row in 0..TILE_ROWS {
            // SAFETY: as above.
            let w = unsafe { W::wide(rows[row].0.add(k)) };
            for token in 0..T {
                sums[row][token] = _mm256_fmadd_ps(w, x[token], sums[row][token]);
            }
        }
    }
    let mut tile = Tile::default();
    for row in 0..TILE_ROWS {
        for token in 0..T {
            let mut sum = total(sums[row][token]);
            for (k, x) in tokens[token].iter().enumerate().take(shortest).skip(whole) {
                // SAFETY: within the shortest operand.
                sum += unsafe { *rows[row].0.add(k) }.value() * x;
            }
            tile[row][token] = sum;
        }
    }
    tile
}

fn quantised<const T: usize>(rows: [(&[i8], &[f32]); TILE_ROWS], tokens: [&[f32]; T]) -> Tile {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2 and FMA.
    unsafe { quantised_sums(rows, tokens) }
}

/// # Safety
/// AVX2 and FMA are there.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn quantised_sums<const T: usize>(rows: [(&[i8], &[f32]); TILE_ROWS], tokens: [&[f32]; T]) -> Tile {
    let width = tokens.iter().map(|x| x.len()).min().unwrap_or(0);
    let stored = rows.iter().map(|(quants, scales)| (quants.len() / Q8_BLOCK).min(scales.len())).min().unwrap_or(0);
    let blocks = stored.min(width / Q8_BLOCK);
    let mut sums = [[_mm256_setzero_ps(); T]; TILE_ROWS];
    for block in 0..blocks {
        for row in 0..TILE_ROWS {
            let scale = _mm256_set1_ps(rows[row].1[block]);
            for k in (block * Q8_BLOCK..(block + 1) * Q8_BLOCK).step_by(LANES) {
                // SAFETY: eight elements from `k` on are within a whole block of every operand.
                let w = _mm256_mul_ps(unsafe { i8::wide(rows[row].0.as_ptr().add(k)) }, scale);
                for token in 0..T {
                    // SAFETY: as above.
                    let x = unsafe { _mm256_loadu_ps(tokens[token].as_ptr().add(k)) };
                    sums[row][token] = _mm256_fmadd_ps(w, x, sums[row][token]);
                }
            }
        }
    }
    let mut tile = Tile::default();
    for row in 0..TILE_ROWS {
        for token in 0..T {
            let (quants, scales) = rows[row];
            let rest = (blocks * Q8_BLOCK..width.min(quants.len()))
                .map(|k| scales.get(k / Q8_BLOCK).copied().unwrap_or(0.0) * f32::from(quants[k]) * tokens[token][k]);
            tile[row][token] = total(sums[row][token]) + rest.sum::<f32>();
        }
    }
    tile
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
