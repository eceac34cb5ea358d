//! Panels: for many rows of activations, where a weight is widened once and used for all of them.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256, _mm_loadl_epi64, _mm_loadu_si128, _mm_storeu_ps, _mm256_castpd_ps, _mm256_castps_pd,
    _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu16_epi32,
    _mm256_cvtph_ps, _mm256_extractf128_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_slli_epi32,
    _mm256_unpackhi_pd, _mm256_unpackhi_ps, _mm256_unpacklo_pd, _mm256_unpacklo_ps,
};

use super::{Brain, Half, Vector, Wide};
use crate::{
    Q8_BLOCK,
    cpu::kernels::{Column, PANEL_ROWS, PANEL_TOKENS, PanelSums, RowsOf, TILE_ROWS},
    q8_scale,
};

/// Columns that are widened and turned together.
const EIGHT: usize = 8;

/// Weights of which eight can be widened as they follow one another.
trait InOrder: Copy {
    /// # Safety
    /// AVX2 and F16C are there, and so are eight elements.
    unsafe fn eight(at: *const Self) -> __m256;
}

impl InOrder for f32 {
    #[inline(always)]
    unsafe fn eight(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller.
        unsafe { _mm256_loadu_ps(at) }
    }
}

impl InOrder for Half {
    #[inline(always)]
    unsafe fn eight(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast::<__m128i>())) }
    }
}

impl InOrder for Brain {
    #[inline(always)]
    unsafe fn eight(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller; the bits of a bf16 are the upper half of a single.
        unsafe {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast::<__m128i>()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        }
    }
}

impl InOrder for i8 {
    #[inline(always)]
    unsafe fn eight(at: *const Self) -> __m256 {
        // SAFETY: passed on to the caller.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast::<__m128i>()))) }
    }
}

pub(in super::super) fn widen(rows: RowsOf<'_>, out: &mut [Column], first: usize) {
    assert!(first + TILE_ROWS <= PANEL_ROWS, "rows beyond a panel");
    // SAFETY: the kernels of this set are only given out where the processor has AVX2, FMA and F16C; rows come with their
    // lengths.
    unsafe {
        match rows {
            RowsOf::F32(rows) => plain(rows.map(|row| (row.as_ptr(), row.len())), out, first),
            RowsOf::F16(rows) => plain(rows.map(|row| (row.as_ptr().cast::<Half>(), row.len())), out, first),
            RowsOf::Bf16(rows) => plain(rows.map(|row| (row.as_ptr().cast::<Brain>(), row.len())), out, first),
            RowsOf::Q8(rows) => quantised(rows, out, first),
        }
    }
}

/// # Safety
/// AVX2, FMA and F16C are there; each row points to as many elements as it says, and the panel has four rows from `first` on.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn plain<W: Wide + InOrder>(rows: [(*const W, usize); TILE_ROWS], out: &mut [Column], first: usize) {
    let shortest = rows.iter().map(|(_, len)| *len).min().unwrap_or(0).min(out.len());
    let whole = shortest / EIGHT * EIGHT;
    for k in (0..whole).step_by(EIGHT) {
        // SAFETY: eight elements from `k` on are within each row and within the panel.
        unsafe { turn(rows.map(|(row, _)| W::eight(row.add(k))), &mut out[k..k + EIGHT], first) };
    }
    for (k, column) in out.iter_mut().enumerate().take(shortest).skip(whole) {
        for (i, (row, _)) in rows.iter().enumerate() {
            // SAFETY: within the shortest row.
            column[first + i] = unsafe { *row.add(k) }.value();
        }
    }
}

/// # Safety
/// AVX2 and FMA are there, and the panel has four rows from `first` on.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn quantised(rows: [(&[i8], &[u16]); TILE_ROWS], out: &mut [Column], first: usize) {
    let stored = rows.iter().map(|(quants, scales)| (quants.len() / Q8_BLOCK).min(scales.len())).min().unwrap_or(0);
    let blocks = stored.min(out.len() / Q8_BLOCK);
    for k in (0..blocks * Q8_BLOCK).step_by(EIGHT) {
        let scaled = |(quants, scales): (&[i8], &[u16])| {
            let scale = _mm256_set1_ps(q8_scale(scales[k / Q8_BLOCK]));
            // SAFETY: eight bytes from `k` on are within a whole block of the row.
            _mm256_mul_ps(unsafe { i8::eight(quants.as_ptr().add(k)) }, scale)
        };
        // SAFETY: eight columns from `k` on are within the panel.
        unsafe { turn(rows.map(scaled), &mut out[k..k + EIGHT], first) };
    }
    for (k, column) in out.iter_mut().enumerate().skip(blocks * Q8_BLOCK) {
        for (i, (quants, scales)) in rows.iter().enumerate() {
            let scale = scales.get(k / Q8_BLOCK).map_or(0.0, |scale| q8_scale(*scale));
            column[first + i] = quants.get(k).map_or(0.0, |quant| scale * f32::from(*quant));
        }
    }
}

/// Writes eight columns of four rows as eight pieces of four.
///
/// # Safety
/// AVX2 is there; `out` has eight columns, and four rows from `first` on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn turn(rows: [__m256; TILE_ROWS], out: &mut [Column], first: usize) {
    let [a, b, c, d] = rows;
    let (ab, cd) = (
        [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)].map(|v| _mm256_castps_pd(v)),
        [_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d)].map(|v| _mm256_castps_pd(v)),
    );
    for half in 0..2 {
        let pairs = [_mm256_unpacklo_pd(ab[half], cd[half]), _mm256_unpackhi_pd(ab[half], cd[half])];
        for (i, columns) in pairs.into_iter().enumerate() {
            let (k, columns) = (2 * half + i, _mm256_castpd_ps(columns));
            // SAFETY: columns `k` and `k + 4` are two of eight, each with four rows from `first` on.
            unsafe {
                _mm_storeu_ps(out[k].as_mut_ptr().add(first), _mm256_castps256_ps128(columns));
                _mm_storeu_ps(out[k + 4].as_mut_ptr().add(first), _mm256_extractf128_ps::<1>(columns));
            }
        }
    }
}

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
pub(super) unsafe fn panel<V: Vector>(columns: &[Column], tokens: &[&[f32]], sums: &mut PanelSums) {
    for (tokens, sums) in tokens.chunks(V::TOKENS).zip(sums.chunks_mut(V::TOKENS)) {
        // SAFETY: the caller's.
        unsafe {
            match *tokens {
                [] => {}
                [a] => products::<V, 1>(columns, [a], sums),
                [a, b] => products::<V, 2>(columns, [a, b], sums),
                [a, b, c] => products::<V, 3>(columns, [a, b, c], sums),
                [a, b, c, d] => products::<V, 4>(columns, [a, b, c, d], sums),
                [a, b, c, d, e] => products::<V, 5>(columns, [a, b, c, d, e], sums),
                [a, b, c, d, e, f] => products::<V, 6>(columns, [a, b, c, d, e, f], sums),
                _ if tokens.len() >= PANEL_TOKENS => {
                    products::<V, PANEL_TOKENS>(columns, std::array::from_fn(|i| tokens[i]), sums);
                }
                // Only once for a prompt: the sums of what is not there are of nothing.
                _ => {
                    let some = std::array::from_fn(|i| tokens.get(i).copied().unwrap_or(tokens[0]));
                    let mut all = [[0.0; PANEL_ROWS]; PANEL_TOKENS];
                    products::<V, PANEL_TOKENS>(columns, some, &mut all);
                    sums[..tokens.len()].copy_from_slice(&all[..tokens.len()]);
                }
            }
        }
    }
}

/// The sums stay in registers; a column of the panel is one or two vectors, an activation is one broadcast.
///
/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn products<V: Vector, const T: usize>(columns: &[Column], tokens: [&[f32]; T], out: &mut [[f32; PANEL_ROWS]]) {
    const { assert!(T <= PANEL_TOKENS && V::TOKENS <= PANEL_TOKENS && PANEL_ROWS.is_multiple_of(V::LANES)) };
    // SAFETY: the caller's; `columns` and the sums of a token are whole vectors, and `k` is within the shortest token.
    unsafe {
        match PANEL_ROWS / V::LANES {
            1 => vectors::<V, T, 1>(columns, tokens, out),
            _ => vectors::<V, T, 2>(columns, tokens, out),
        }
    }
}

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn vectors<V: Vector, const T: usize, const N: usize>(
    columns: &[Column],
    tokens: [&[f32]; T],
    out: &mut [[f32; PANEL_ROWS]],
) {
    let depth = tokens.iter().map(|x| x.len()).min().unwrap_or(0).min(columns.len());
    // SAFETY: the caller's; a column and the sums of a token are N vectors, and `k` is within the shortest token.
    unsafe {
        let mut sums = [[V::zero(); N]; T];
        for (k, column) in columns[..depth].iter().enumerate() {
            let w: [V; N] = std::array::from_fn(|i| V::load(column.as_ptr().add(i * V::LANES)));
            for token in 0..T {
                let x = V::all(*tokens[token].as_ptr().add(k));
                for i in 0..N {
                    sums[token][i] = w[i].multiply_add(x, sums[token][i]);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (i, sum) in sums.into_iter().enumerate() {
                sum.store(out.as_mut_ptr().add(i * V::LANES));
            }
        }
    }
}
