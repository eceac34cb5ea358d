//! AVX-512 with its instructions on bytes and words: registers of sixteen singles, thirty-two of them.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, __m512, __m512i, _mm256_loadu_si256, _mm512_add_ps, _mm512_and_si512, _mm512_castsi512_ps,
    _mm512_cvtepi8_epi16, _mm512_cvtepi32_ps, _mm512_cvtepu16_epi32, _mm512_cvtph_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_madd_epi16, _mm512_mul_ps, _mm512_reduce_add_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_setzero_ps, _mm512_slli_epi32, _mm512_storeu_ps,
};

use super::{Vector, entries};
use crate::{
    Dtype,
    cpu::kernels::{Activations, Column, PanelSums, RowsOf, Staged, Tile, elementwise},
};

// A panel is widened once for all activations: wider registers would gain nothing.
pub(in super::super) use super::panel::widen;

entries!(__m512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c");

impl Vector for __m512 {
    const LANES: usize = 16;
    const TOKENS: usize = 12;
    type Block = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's, as in all that follow.
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn all(value: f32) -> Self {
        // SAFETY: above.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self {
        // SAFETY: above.
        unsafe { _mm512_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32) {
        // SAFETY: above.
        unsafe { _mm512_storeu_ps(at, self) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: above.
        unsafe { _mm512_add_ps(self, other) }
    }
    #[inline(always)]
    unsafe fn multiply(self, by: Self) -> Self {
        // SAFETY: above.
        unsafe { _mm512_mul_ps(self, by) }
    }
    #[inline(always)]
    unsafe fn multiply_add(self, by: Self, plus: Self) -> Self {
        // SAFETY: above.
        unsafe { _mm512_fmadd_ps(self, by, plus) }
    }
    #[inline(always)]
    unsafe fn total(self) -> f32 {
        // SAFETY: above.
        unsafe { _mm512_reduce_add_ps(self) }
    }
    #[inline(always)]
    unsafe fn halves(at: *const u16) -> Self {
        // SAFETY: above.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(at.cast::<__m256i>())) }
    }
    #[inline(always)]
    unsafe fn brains(at: *const u16) -> [Self; 2] {
        // SAFETY: above.
        unsafe {
            let bits = _mm512_loadu_si512(at.cast::<__m512i>());
            let odd = _mm512_and_si512(bits, _mm512_set1_epi32(-0x1_0000));
            [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits)), _mm512_castsi512_ps(odd)]
        }
    }
    #[inline(always)]
    unsafe fn wide(at: *const u16) -> Self {
        // SAFETY: above.
        unsafe {
            let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast::<__m256i>()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))
        }
    }
    #[inline(always)]
    unsafe fn block(at: *const i8) -> Self::Block {
        // SAFETY: above.
        unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(at.cast::<__m256i>())) }
    }
    #[inline(always)]
    unsafe fn products(block: Self::Block, fixed: *const i16) -> Self {
        // Two products each of at most 127·32767: far below 2³¹.
        // SAFETY: above.
        unsafe { _mm512_cvtepi32_ps(_mm512_madd_epi16(block, _mm512_loadu_si512(fixed.cast::<__m512i>()))) }
    }
}
