//! Panels: for many rows of activations, where a weight is widened once and used for all of them.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256, _mm_storeu_ps, _mm256_broadcast_ss, _mm256_castpd_ps, _mm256_castps_pd, _mm256_castps256_ps128,
    _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_storeu_ps, _mm256_unpackhi_pd, _mm256_unpackhi_ps, _mm256_unpacklo_pd, _mm256_unpacklo_ps,
};

use super::{Brain, Half, LANES, Wide};
use crate::{
    Q8_BLOCK,
    cpu::kernels::{Column, PANEL_ROWS, PANEL_TOKENS, PanelSums, RowsOf, TILE_ROWS},
};

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
unsafe fn plain<W: Wide>(rows: [(*const W, usize); TILE_ROWS], out: &mut [Column], first: usize) {
    let shortest = rows.iter().map(|(_, len)| *len).min().unwrap_or(0).min(out.len());
    let whole = shortest / LANES * LANES;
    for k in (0..whole).step_by(LANES) {
        // SAFETY: eight elements from `k` on are within each row and within the panel.
        unsafe { turn(rows.map(|(row, _)| W::wide(row.add(k))), &mut out[k..k + LANES], first) };
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
unsafe fn quantised(rows: [(&[i8], &[f32]); TILE_ROWS], out: &mut [Column], first: usize) {
    let stored = rows.iter().map(|(quants, scales)| (quants.len() / Q8_BLOCK).min(scales.len())).min().unwrap_or(0);
    let blocks = stored.min(out.len() / Q8_BLOCK);
    for k in (0..blocks * Q8_BLOCK).step_by(LANES) {
        let scaled = |(quants, scales): (&[i8], &[f32])| {
            let scale = _mm256_set1_ps(scales[k / Q8_BLOCK]);
            // SAFETY: eight bytes from `k` on are within a whole block of the row.
            _mm256_mul_ps(unsafe { i8::wide(quants.as_ptr().add(k)) }, scale)
        };
        // SAFETY: eight columns from `k` on are within the panel.
        unsafe { turn(rows.map(scaled), &mut out[k..k + LANES], first) };
    }
    for (k, column) in out.iter_mut().enumerate().skip(blocks * Q8_BLOCK) {
        for (i, (quants, scales)) in rows.iter().enumerate() {
            let scale = scales.get(k / Q8_BLOCK).copied().unwrap_or(0.0);
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

pub(in super::super) fn panel(columns: &[Column], tokens: &[&[f32]], sums: &mut PanelSums) {
    // SAFETY: the kernels of this set are only given out where the processor has AVX2 and FMA.
    unsafe {
        match tokens {
            [] => {}
            [a] => products(columns, [a], sums),
            [a, b] => products(columns, [a, b], sums),
            [a, b, c] => products(columns, [a, b, c], sums),
            [a, b, c, d] => products(columns, [a, b, c, d], sums),
            [a, b, c, d, e] => products(columns, [a, b, c, d, e], sums),
            [a, b, c, d, e, f, ..] => products(columns, [a, b, c, d, e, f], sums),
        }
    }
}

/// Twelve sums stay in registers; a column of the panel is two vectors, an activation is one broadcast.
///
/// # Safety
/// AVX2 and FMA are there.
#[target_feature(enable = "avx2,fma")]
unsafe fn products<const T: usize>(columns: &[Column], tokens: [&[f32]; T], out: &mut PanelSums) {
    const { assert!(T <= PANEL_TOKENS && PANEL_ROWS == 2 * LANES) };
    let depth = tokens.iter().map(|x| x.len()).min().unwrap_or(0).min(columns.len());
    let mut sums = [[_mm256_setzero_ps(); 2]; T];
    for (k, column) in columns[..depth].iter().enumerate() {
        // SAFETY: a column is two vectors.
        let w = unsafe { [_mm256_loadu_ps(column.as_ptr()), _mm256_loadu_ps(column.as_ptr().add(LANES))] };
        for token in 0..T {
            // SAFETY: `k` is within the shortest token.
            let x = _mm256_broadcast_ss(unsafe { &*tokens[token].as_ptr().add(k) });
            sums[token][0] = _mm256_fmadd_ps(w[0], x, sums[token][0]);
            sums[token][1] = _mm256_fmadd_ps(w[1], x, sums[token][1]);
        }
    }
    for token in 0..T {
        // SAFETY: the sums of a token are two vectors.
        unsafe {
            _mm256_storeu_ps(out[token].as_mut_ptr(), sums[token][0]);
            _mm256_storeu_ps(out[token].as_mut_ptr().add(LANES), sums[token][1]);
        }
    }
}
