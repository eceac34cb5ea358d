//! AVX2 with FMA and F16C: registers of eight singles, sixteen of them.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadu_si128, _mm_movehdup_ps, _mm_movehl_ps,
    _mm256_add_epi32, _mm256_add_ps, _mm256_and_si256, _mm256_castps256_ps128, _mm256_castsi256_ps,
    _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_extractf128_ps,
    _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_mul_ps, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi32, _mm256_storeu_ps,
};

use super::{Vector, entries};
use crate::{
    Dtype,
    cpu::kernels::{Activations, Column, PanelSums, RowsOf, Staged, Tile, elementwise},
};

pub(in super::super) use super::panel::widen;

entries!(__m256, "avx2,fma,f16c");

impl Vector for __m256 {
    const LANES: usize = 8;
    const TOKENS: usize = 6;
    type Block = [__m256i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's, as in all that follow.
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn all(value: f32) -> Self {
        // SAFETY: above.
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self {
        // SAFETY: above.
        unsafe { _mm256_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32) {
        // SAFETY: above.
        unsafe { _mm256_storeu_ps(at, self) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: above.
        unsafe { _mm256_add_ps(self, other) }
    }
    #[inline(always)]
    unsafe fn multiply(self, by: Self) -> Self {
        // SAFETY: above.
        unsafe { _mm256_mul_ps(self, by) }
    }
    #[inline(always)]
    unsafe fn multiply_add(self, by: Self, plus: Self) -> Self {
        // SAFETY: above.
        unsafe { _mm256_fmadd_ps(self, by, plus) }
    }
    #[inline(always)]
    unsafe fn total(self) -> f32 {
        // SAFETY: above.
        unsafe {
            let half = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
            let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
            _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)))
        }
    }
    #[inline(always)]
    unsafe fn halves(at: *const u16) -> Self {
        // SAFETY: above.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast::<__m128i>())) }
    }
    #[inline(always)]
    unsafe fn brains(at: *const u16) -> [Self; 2] {
        // SAFETY: above.
        unsafe {
            let bits = _mm256_loadu_si256(at.cast::<__m256i>());
            let odd = _mm256_and_si256(bits, _mm256_set1_epi32(-0x1_0000));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)), _mm256_castsi256_ps(odd)]
        }
    }
    #[inline(always)]
    unsafe fn wide(at: *const u16) -> Self {
        // SAFETY: above.
        unsafe {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast::<__m128i>()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        }
    }
    #[inline(always)]
    unsafe fn block(at: *const i8) -> Self::Block {
        let at = at.cast::<__m128i>();
        // SAFETY: above.
        unsafe { [_mm_loadu_si128(at), _mm_loadu_si128(at.add(1))].map(|half| _mm256_cvtepi8_epi16(half)) }
    }
    #[inline(always)]
    unsafe fn products(block: Self::Block, fixed: *const i16) -> Self {
        let x = fixed.cast::<__m256i>();
        // Four products each of at most 127·32767: far below 2³¹.
        // SAFETY: above.
        unsafe {
            _mm256_cvtepi32_ps(_mm256_add_epi32(
                _mm256_madd_epi16(block[0], _mm256_loadu_si256(x)),
                _mm256_madd_epi16(block[1], _mm256_loadu_si256(x.add(1))),
            ))
        }
    }
}
