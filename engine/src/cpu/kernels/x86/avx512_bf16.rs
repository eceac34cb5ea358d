//! AVX-512 with products of bf16: pairs of them are multiplied and added to a single in one instruction, so that activations
//! are rounded to bf16 and weights need not be widened. Everything else is AVX-512's.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_add_ps, _mm512_cvtne2ps_pbh, _mm512_dpbf16_ps, _mm512_loadu_si512,
    _mm512_maskz_loadu_epi16, _mm512_maskz_loadu_ps, _mm512_reduce_add_ps, _mm512_setzero_ps, _mm512_storeu_si512,
};

use super::tile::fetch_ahead;
use crate::{
    Dtype,
    cpu::kernels::{Activations, RowsOf, Staged, TILE_ROWS, Tile},
};

pub(in super::super) use super::avx512::{axpy, dot, exponentials, panel, silu_mul, weigh, widen};

/// bf16 numbers in a register.
pub(super) const LANES: usize = 32;
/// Registers of sums that do not wait for one another.
const SUMS: usize = 4;

pub(in super::super) fn tile(weights: RowsOf<'_>, tokens: &[Activations<'_>]) -> Tile {
    let RowsOf::Bf16(rows) = weights else { return super::avx512::tile(weights, tokens) };
    // SAFETY: the kernels of this set are only given out where the processor has its features.
    unsafe {
        match tokens {
            [a] if a.is_rounded() => sums(rows, [a.rounded]),
            [a, b] if a.is_rounded() && b.is_rounded() => sums(rows, [a.rounded, b.rounded]),
            [a, b, c, ..] if a.is_rounded() && b.is_rounded() && c.is_rounded() => {
                sums(rows, [a.rounded, b.rounded, c.rounded])
            }
            // Of activations that nobody staged.
            _ => super::avx512::tile(weights, tokens),
        }
    }
}

/// # Safety
/// AVX-512 with bf16 is there.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn sums<const T: usize>(rows: [&[u16]; TILE_ROWS], tokens: [&[u16]; T]) -> Tile {
    let mut tile = Tile::default();
    for (row, out) in rows.into_iter().zip(&mut tile) {
        let length = tokens.iter().map(|x| x.len()).min().unwrap_or(0).min(row.len());
        let whole = length / (SUMS * LANES) * (SUMS * LANES);
        let mut sums = [[_mm512_setzero_ps(); SUMS]; T];
        for k in (0..whole).step_by(SUMS * LANES) {
            for (i, k) in (k..).step_by(LANES).take(SUMS).enumerate() {
                fetch_ahead(row.as_ptr().wrapping_add(k));
                // SAFETY: a register from `k` on is within the row and every token.
                unsafe {
                    let w = brains(row.as_ptr().add(k));
                    for token in 0..T {
                        sums[token][i] = _mm512_dpbf16_ps(sums[token][i], w, brains(tokens[token].as_ptr().add(k)));
                    }
                }
            }
        }
        for k in (whole..length).step_by(LANES) {
            let mask = u32::MAX >> (LANES - (length - k).min(LANES));
            // SAFETY: the mask ends with the shortest of the row and the tokens.
            unsafe {
                let w = some_brains(row.as_ptr().add(k), mask);
                for token in 0..T {
                    let x = some_brains(tokens[token].as_ptr().add(k), mask);
                    sums[token][0] = _mm512_dpbf16_ps(sums[token][0], w, x);
                }
            }
        }
        for (out, [a, b, c, d]) in out.iter_mut().zip(sums) {
            *out = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)));
        }
    }
    tile
}

/// # Safety
/// AVX-512 is there, and [`LANES`] elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn brains(at: *const u16) -> __m512bh {
    // SAFETY: the caller's; registers of both types are the same bits.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(at.cast())) }
}

/// # Safety
/// AVX-512 with words is there, and the elements whose bits are set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn some_brains(at: *const u16, mask: u32) -> __m512bh {
    // SAFETY: the caller's; registers of both types are the same bits.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(_mm512_maskz_loadu_epi16(mask, at.cast())) }
}

/// Up to [`LANES`] singles rounded to the nearest bf16, 0 after the last.
///
/// # Safety
/// AVX-512 with bf16 is there.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn rounded(values: &[f32]) -> __m512i {
    let mask = |first: usize| {
        let count = values.len().saturating_sub(first).min(LANES / 2);
        u16::try_from((1u32 << count) - 1).unwrap_or(u16::MAX)
    };
    // SAFETY: no element after the last is loaded; registers of both types are the same bits.
    unsafe {
        let low = _mm512_maskz_loadu_ps(mask(0), values.as_ptr());
        let high = _mm512_maskz_loadu_ps(mask(LANES / 2), values.as_ptr().wrapping_add(LANES / 2));
        std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low))
    }
}

pub(in super::super) fn stage(dtype: Dtype, values: &[f32], staged: &mut Staged) {
    /// # Safety
    /// AVX-512 with bf16 is there.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn round(values: &[f32], out: &mut Vec<u16>) {
        out.resize(values.len().next_multiple_of(LANES), 0);
        for (out, values) in out.chunks_exact_mut(LANES).zip(values.chunks(LANES)) {
            // SAFETY: the caller's; `out` is a register long.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), rounded(values)) };
        }
        out.truncate(values.len());
    }
    match dtype {
        // SAFETY: the kernels of this set are only given out where the processor has its features.
        Dtype::Bf16 => unsafe { round(values, &mut staged.rounded) },
        _ => super::avx512::stage(dtype, values, staged),
    }
}
