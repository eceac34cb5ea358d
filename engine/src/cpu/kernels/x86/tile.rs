//! Tiles: for one to three rows of activations, where weights are read from memory once and used a few times.
//!
//! Rows are read one after the other, as they lie: one long stream is what hardware fetches ahead best, and it outweighs
//! that four rows side by side would load each activation a quarter as often.

#![allow(unsafe_code)]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::{Brain, Half, Vector, Wide};
use crate::{
    Q8_BLOCK,
    cpu::kernels::{Activations, RowsOf, TILE_ROWS, Tile},
    q8_scale,
};

/// A line of the caches, bytes.
const LINE: usize = 64;
/// How far ahead of the sums lines are fetched, bytes, by the size of an element. The processor's own look-ahead, of some
/// hundred instructions, is kilobytes of singles and a few hundred bytes of quantised weights. Measured with two threads on a
/// Sapphire Rapids: singles are read at 27 GB/s without, 32 to 34 with 512 to 2048 bytes and 22 with 4096; long rows of bytes
/// at 21 with 2048, 25 with 8192 and 23 with 16384; a decode step of bf16 takes 34.7 ms with 2048, 32.4 with 3072 and 34.6
/// with 4096.
const AHEAD_OF_SINGLES: usize = 1024;
const AHEAD_OF_HALVES: usize = 3072;
const AHEAD_OF_BYTES: usize = 8192;

#[inline(always)]
pub(super) fn fetch_ahead<T>(at: *const T) {
    let ahead = match size_of::<T>() {
        1 => AHEAD_OF_BYTES,
        2 => AHEAD_OF_HALVES,
        _ => AHEAD_OF_SINGLES,
    };
    fetch(at.wrapping_byte_add(ahead));
}

#[inline(always)]
fn fetch<T>(at: *const T) {
    // SAFETY: a fetch of a line that does not exist does nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector>(weights: RowsOf<'_>, tokens: &[Activations<'_>]) -> Tile {
    let bits = |rows: [&[u16]; TILE_ROWS]| rows.map(|row| (row.as_ptr(), row.len()));
    // SAFETY: the caller's; each row comes with its length.
    unsafe {
        match (weights, tokens) {
            (RowsOf::F32(rows), tokens) => by_tokens::<V, f32>(rows.map(|row| (row.as_ptr(), row.len())), tokens),
            (RowsOf::F16(rows), _) => by_tokens::<V, Half>(bits(rows).map(|(at, len)| (at.cast(), len)), tokens),
            (RowsOf::Bf16(rows), _) => by_tokens::<V, Brain>(bits(rows).map(|(at, len)| (at.cast(), len)), tokens),
            (RowsOf::Q8(rows), [a]) => quantised::<V, 1>(rows, [*a]),
            (RowsOf::Q8(rows), [a, b]) => quantised::<V, 2>(rows, [*a, *b]),
            (RowsOf::Q8(rows), [a, b, c, ..]) => quantised::<V, 3>(rows, [*a, *b, *c]),
            (RowsOf::Q8(_), []) => Tile::default(),
        }
    }
}

/// # Safety
/// The instruction set of `V` is there; each row points to as many elements as it says.
#[inline(always)]
unsafe fn by_tokens<V: Vector, W: Wide>(rows: [(*const W, usize); TILE_ROWS], tokens: &[Activations<'_>]) -> Tile {
    // SAFETY: the caller's.
    unsafe {
        match tokens {
            [] => Tile::default(),
            [a] => sums::<V, W, 1>(rows, [*a]),
            [a, b] => sums::<V, W, 2>(rows, [*a, *b]),
            [a, b, c, ..] => sums::<V, W, 3>(rows, [*a, *b, *c]),
        }
    }
}

/// # Safety
/// The instruction set of `V` is there; each row points to as many elements as it says.
#[inline(always)]
unsafe fn sums<V: Vector, W: Wide, const T: usize>(
    rows: [(*const W, usize); TILE_ROWS],
    tokens: [Activations<'_>; T],
) -> Tile {
    // Four vectors at once, so that sums wait for one another a quarter as often.
    let stride = 4 * V::LANES;
    let mut tile = Tile::default();
    let staged = tokens.map(|x| if W::IS_STAGED { x.ordered } else { x.values });
    for ((row, len), out) in rows.into_iter().zip(&mut tile) {
        let length = tokens.iter().map(|x| x.values.len()).min().unwrap_or(0).min(len);
        let whole = staged.iter().map(|x| x.len()).min().unwrap_or(0).min(length) / stride * stride;
        // SAFETY: the caller's.
        let mut sums = [[unsafe { V::zero() }; 4]; T];
        for k in (0..whole).step_by(stride) {
            for line in (0..stride * size_of::<W>()).step_by(LINE) {
                fetch_ahead(row.wrapping_add(k).wrapping_byte_add(line));
            }
            for half in 0..2 {
                let at = k + half * 2 * V::LANES;
                // SAFETY: two vectors from `at` on are within the row and every token.
                let w = unsafe { W::two::<V>(row.add(at)) };
                for token in 0..T {
                    for (i, w) in w.into_iter().enumerate() {
                        let sum = &mut sums[token][2 * half + i];
                        // SAFETY: as above.
                        *sum = unsafe { w.multiply_add(V::load(staged[token].as_ptr().add(at + i * V::LANES)), *sum) };
                    }
                }
            }
        }
        for token in 0..T {
            let [a, b, c, d] = sums[token];
            // SAFETY: the caller's.
            let sum = unsafe { a.add(b).add(c.add(d)).total() };
            // SAFETY: within the row.
            let rest = (whole..length).map(|k| unsafe { *row.add(k) }.value() * tokens[token].values[k]);
            out[token] = sum + rest.sum::<f32>();
        }
    }
    tile
}

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn quantised<V: Vector, const T: usize>(
    rows: [(&[i8], &[u16]); TILE_ROWS],
    tokens: [Activations<'_>; T],
) -> Tile {
    let width = tokens.iter().map(|x| x.values.len()).min().unwrap_or(0);
    let fixed = tokens.iter().map(|x| (x.fixed.len() / Q8_BLOCK).min(x.scales.len())).min().unwrap_or(0);
    let mut tile = Tile::default();
    for ((quants, scales), out) in rows.into_iter().zip(&mut tile) {
        let blocks = (quants.len() / Q8_BLOCK).min(scales.len()).min(fixed);
        // Scales lie behind all bytes of their row, where no byte is fetched for: as many bytes of what comes are left out. Those
        // of a long row are also needed long before its end is fetched.
        let behind = size_of_val(scales);
        for line in (0..behind).step_by(LINE) {
            fetch(quants.as_ptr().wrapping_byte_add(AHEAD_OF_BYTES - behind.min(AHEAD_OF_BYTES) + line));
            if quants.len() > AHEAD_OF_BYTES {
                fetch(scales.as_ptr().wrapping_byte_add(quants.len() + behind + line));
            }
        }
        // Two sums, so that they wait for one another half as often.
        // SAFETY: the caller's.
        let mut sums = [[unsafe { V::zero() }; 2]; T];
        for first in (0..blocks).step_by(FACTORS) {
            // The last ones are made with some before them, so that nothing after the last scale is read.
            let base = first.min(blocks.saturating_sub(FACTORS));
            // SAFETY: the caller's; the row and every token have `blocks` scales.
            let factors: [Factors; T] = unsafe { factors::<V, T>(&scales[base..blocks], &tokens, base) };
            let last = blocks.min(first + FACTORS);
            for pair in (first..last).step_by(2) {
                #[allow(
                    clippy::needless_range_loop,
                    reason = "two iterators are not unrolled, and sums then lie in memory"
                )]
                for half in 0..2 {
                    let block = pair + half;
                    if block == last {
                        break;
                    }
                    // SAFETY: the row has a block of bytes, every token one of fixed-point numbers, and there is its factor.
                    unsafe {
                        let at = quants.as_ptr().add(block * Q8_BLOCK);
                        fetch_ahead(at);
                        let w = V::block(at);
                        for token in 0..T {
                            let products = V::products(w, tokens[token].fixed.as_ptr().add(block * Q8_BLOCK));
                            let factor = V::all(*factors[token].0.as_ptr().add(block - base));
                            let sum = &mut sums[token][half];
                            *sum = products.multiply_add(factor, *sum);
                        }
                    }
                }
            }
        }
        for token in 0..T {
            let x = tokens[token].values;
            let scale = |k: usize| scales.get(k / Q8_BLOCK).map_or(0.0, |scale| q8_scale(*scale));
            let rest = (blocks * Q8_BLOCK..width.min(quants.len())).map(|k| scale(k) * f32::from(quants[k]) * x[k]);
            let [even, odd] = sums[token];
            // SAFETY: the caller's.
            out[token] = unsafe { even.add(odd).total() } + rest.sum::<f32>();
        }
    }
    tile
}

/// Blocks whose factors are made at once: a multiple of the lanes of every register.
const FACTORS: usize = 16;

/// What sums of products in integers are multiplied with, block by block.
#[repr(align(64))]
struct Factors([f32; FACTORS]);

/// Scales of the weights times those of every token from block `base` on, as many as are there. From memory a factor is
/// spread over a register while it is loaded.
///
/// # Safety
/// The instruction set of `V` is there, and every token has as many scales from `base` on.
#[inline(always)]
unsafe fn factors<V: Vector, const T: usize>(
    scales: &[u16],
    tokens: &[Activations<'_>; T],
    base: usize,
) -> [Factors; T] {
    let mut factors = [const { Factors([0.0; FACTORS]) }; T];
    for token in 0..T {
        if scales.len() < FACTORS {
            for (i, scale) in scales.iter().enumerate() {
                factors[token].0[i] = q8_scale(*scale) * tokens[token].scales[base + i];
            }
            continue;
        }
        for lane in (0..FACTORS).step_by(V::LANES) {
            // SAFETY: the caller's; a register from `lane` on is within scales and factors.
            unsafe {
                let of_token = V::load(tokens[token].scales.as_ptr().add(base + lane));
                V::wide(scales.as_ptr().add(lane)).multiply(of_token).store(factors[token].0.as_mut_ptr().add(lane));
            }
        }
    }
    factors
}
