//! Tiles: for one to three rows of activations, where weights are read from memory once and used a few times.
//!
//! Rows are read one after the other, as they lie: one long stream is what hardware fetches ahead best, and it outweighs
//! that four rows side by side would load each activation a quarter as often.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_add_epi32, _mm256_add_ps, _mm256_broadcast_ss,
    _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_mul_ps, _mm256_setzero_ps,
};

use super::{Brain, Half, LANES, Wide, total};
use crate::{
    Q8_BLOCK,
    cpu::kernels::{Activations, RowsOf, TILE_ROWS, Tile},
};

/// Columns that are multiplied at once: four vectors, so that sums wait for one another a quarter as often.
const STRIDE: usize = 4 * LANES;

/// A line of the caches, bytes.
const LINE: usize = 64;
/// How far ahead of the sums lines are fetched, bytes. The processor's own look-ahead, of some hundred instructions, is a few
/// hundred bytes of quantised weights.
const AHEAD: usize = 2048;

#[inline(always)]
fn fetch_ahead<T>(at: *const T) {
    // SAFETY: a fetch of a line that does not exist does nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>().wrapping_add(AHEAD)) };
}

pub(in super::super) fn tile(weights: RowsOf<'_>, tokens: &[Activations<'_>]) -> Tile {
    let bits = |rows: [&[u16]; TILE_ROWS]| rows.map(|row| (row.as_ptr(), row.len()));
    match (weights, tokens) {
        (RowsOf::F32(rows), tokens) => by_tokens(rows.map(|row| (row.as_ptr(), row.len())), tokens),
        (RowsOf::F16(rows), tokens) => by_tokens(bits(rows).map(|(at, len)| (at.cast::<Half>(), len)), tokens),
        (RowsOf::Bf16(rows), tokens) => by_tokens(bits(rows).map(|(at, len)| (at.cast::<Brain>(), len)), tokens),
        (RowsOf::Q8(rows), [a]) => quantised(rows, [*a]),
        (RowsOf::Q8(rows), [a, b]) => quantised(rows, [*a, *b]),
        (RowsOf::Q8(rows), [a, b, c, ..]) => quantised(rows, [*a, *b, *c]),
        (RowsOf::Q8(_), []) => Tile::default(),
    }
}

fn by_tokens<W: Wide>(rows: [(*const W, usize); TILE_ROWS], tokens: &[Activations<'_>]) -> Tile {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2, FMA and F16C; each row comes with
    // its length.
    unsafe {
        match tokens {
            [] => Tile::default(),
            [a] => sums(rows, [*a]),
            [a, b] => sums(rows, [*a, *b]),
            [a, b, c, ..] => sums(rows, [*a, *b, *c]),
        }
    }
}

/// # Safety
/// AVX2, FMA and F16C are there; each row points to as many elements as it says.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn sums<W: Wide, const T: usize>(rows: [(*const W, usize); TILE_ROWS], tokens: [Activations<'_>; T]) -> Tile {
    let mut tile = Tile::default();
    let staged = tokens.map(|x| if W::IS_STAGED { x.ordered } else { x.values });
    for ((row, len), out) in rows.into_iter().zip(&mut tile) {
        let length = tokens.iter().map(|x| x.values.len()).min().unwrap_or(0).min(len);
        let whole = staged.iter().map(|x| x.len()).min().unwrap_or(0).min(length) / STRIDE * STRIDE;
        let mut sums = [[_mm256_setzero_ps(); 4]; T];
        for k in (0..whole).step_by(STRIDE) {
            for line in (0..STRIDE * size_of::<W>()).step_by(LINE) {
                fetch_ahead(row.wrapping_add(k).wrapping_byte_add(line));
            }
            for half in 0..2 {
                let at = k + half * 2 * LANES;
                // SAFETY: sixteen elements from `at` on are within the row and every token.
                let w = unsafe { W::sixteen(row.add(at)) };
                for token in 0..T {
                    for (i, w) in w.into_iter().enumerate() {
                        // SAFETY: as above.
                        let x = unsafe { _mm256_loadu_ps(staged[token].as_ptr().add(at + i * LANES)) };
                        let sum = &mut sums[token][2 * half + i];
                        *sum = _mm256_fmadd_ps(w, x, *sum);
                    }
                }
            }
        }
        for token in 0..T {
            let [a, b, c, d] = sums[token];
            let sum = total(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
            // SAFETY: within the row.
            let rest = (whole..length).map(|k| unsafe { *row.add(k) }.value() * tokens[token].values[k]);
            out[token] = sum + rest.sum::<f32>();
        }
    }
    tile
}

fn quantised<const T: usize>(rows: [(&[i8], &[f32]); TILE_ROWS], tokens: [Activations<'_>; T]) -> Tile {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2 and FMA.
    unsafe { quantised_sums(rows, tokens) }
}

/// # Safety
/// AVX2 and FMA are there.
#[target_feature(enable = "avx2,fma")]
unsafe fn quantised_sums<const T: usize>(rows: [(&[i8], &[f32]); TILE_ROWS], tokens: [Activations<'_>; T]) -> Tile {
    let width = tokens.iter().map(|x| x.values.len()).min().unwrap_or(0);
    let fixed = tokens.iter().map(|x| (x.fixed.len() / Q8_BLOCK).min(x.scales.len())).min().unwrap_or(0);
    let mut tile = Tile::default();
    for ((quants, scales), out) in rows.into_iter().zip(&mut tile) {
        let blocks = (quants.len() / Q8_BLOCK).min(scales.len()).min(fixed);
        let mut sums = [_mm256_setzero_ps(); T];
        for block in 0..blocks {
            // SAFETY: the row has a block of bytes and its scale, every token a block of fixed-point numbers and its scale.
            unsafe {
                let at = quants.as_ptr().add(block * Q8_BLOCK).cast::<__m128i>();
                fetch_ahead(at);
                let w = [_mm_loadu_si128(at), _mm_loadu_si128(at.add(1))].map(|half| _mm256_cvtepi8_epi16(half));
                let scale = _mm256_broadcast_ss(&*scales.as_ptr().add(block));
                for token in 0..T {
                    let x = tokens[token].fixed.as_ptr().add(block * Q8_BLOCK).cast::<__m256i>();
                    // Four products each of at most 127·32767: far below 2³¹.
                    let sum = _mm256_add_epi32(
                        _mm256_madd_epi16(w[0], _mm256_loadu_si256(x)),
                        _mm256_madd_epi16(w[1], _mm256_loadu_si256(x.add(1))),
                    );
                    let factor = _mm256_mul_ps(scale, _mm256_broadcast_ss(&*tokens[token].scales.as_ptr().add(block)));
                    sums[token] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), factor, sums[token]);
                }
            }
        }
        for token in 0..T {
            let x = tokens[token].values;
            let rest = (blocks * Q8_BLOCK..width.min(quants.len()))
                .map(|k| scales.get(k / Q8_BLOCK).copied().unwrap_or(0.0) * f32::from(quants[k]) * x[k]);
            out[token] = total(sums[token]) + rest.sum::<f32>();
        }
    }
    tile
}
