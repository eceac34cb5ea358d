//! The matrix unit of Intel's processors since Sapphire Rapids: eight registers of sixteen rows of 64 bytes, and one
//! instruction that adds the products of two of them, of bf16, to a third, of singles. Everything else is that of AVX-512 with
//! bf16.
//!
//! Of C += A·B, A is sixteen rows of weights and 32 columns, as they lie in memory; B has the activations of sixteen tokens, a
//! pair of columns in each row. So weights are used as they are, and C is turned when it is done.
//!
//! The instructions are assembly, because the compiler has them only in its unstable part. Intel 64 and IA-32 Architectures
//! Software Developer's Manual, volume 1 chapter 18 and volume 2 (`LDTILECFG`, `TILELOADD`, `TDPBF16PS`).

#![allow(unsafe_code)]

use std::{
    arch::{
        asm,
        x86_64::{
            __cpuid_count, __m512i, _mm512_loadu_si512, _mm512_maskz_loadu_epi16, _mm512_setzero_si512,
            _mm512_shuffle_i32x4, _mm512_storeu_si512, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
            _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
        },
    },
    cell::RefCell,
    marker::PhantomData,
    ops::Range,
    sync::OnceLock,
};

use super::avx512_bf16::{LANES, rounded};
use crate::{
    Tensor,
    cpu::kernels::{MATRIX_ROWS, MATRIX_TOKENS, MatrixSums},
};

pub(in super::super) use super::avx512_bf16::{axpy, dot, exponentials, panel, silu_mul, stage, tile, weigh, widen};

/// Rows of a tile register.
const ROWS: usize = 16;

/// A row of a tile register.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; ROWS]);

const EMPTY: Line = Line([0; ROWS]);

/// What a tile register holds.
type Register = [Line; ROWS];

/// Two registers side by side, of weights or of activations: what a step of a product takes of each.
type Pair = [Register; 2];

/// Whether the processor has the unit and the system lets this process use it; asked for once.
pub(in super::super) fn is_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| {
        // CPUID.(EAX=7, ECX=0):EDX, bits 22 (AMX-BF16) and 24 (AMX-TILE). A processor without leaf 7 says 0.
        const UNIT: u32 = 1 << 22 | 1 << 24;
        __cpuid_count(7, 0).edx & UNIT == UNIT && is_permitted()
    })
}

/// Linux keeps the registers' eight kilobytes from processes that do not ask (`arch/x86/kernel/fpu/xstate.c`).
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    /// `ARCH_REQ_XCOMP_PERM` and the number of the tiles' state.
    const REQUEST: i64 = 0x1023;
    const TILES: i64 = 18;
    // SAFETY: asks for a permission; no memory is given to the system.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILES) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// Rows of weights for two registers, step by step.
struct Panel<'w> {
    /// The first row of each register.
    halves: [*const u8; 2],
    /// Bytes from row to row, and from step to step.
    stride: usize,
    step: usize,
    steps: usize,
    /// Where they lie.
    of: PhantomData<&'w [u16]>,
}

impl<'w> Panel<'w> {
    /// Steps of whole rows of a matrix, as they lie; `None` where rows or columns are missing.
    fn in_place(weights: &'w Tensor, rows: Range<usize>, steps: Range<usize>) -> Option<Self> {
        let (columns, width) = (steps.start * LANES..steps.end * LANES, weights.width);
        let all = weights.halves().get(..rows.end * width)?;
        if rows.len() != PANEL || columns.end > width {
            return None;
        }
        let half = |row: usize| all.get(row * width + columns.start..).map(|at| at.as_ptr().cast::<u8>());
        let halves = [half(rows.start)?, half(rows.start + ROWS)?];
        Some(Self { halves, stride: width * 2, step: size_of::<Line>(), steps: steps.len(), of: PhantomData })
    }

    /// Steps that were gathered.
    fn gathered(pairs: &'w [Pair]) -> Self {
        let first = pairs.as_ptr().cast::<Register>();
        let halves = [first, first.wrapping_add(1)].map(<*const Register>::cast::<u8>);
        Self { halves, stride: size_of::<Line>(), step: size_of::<Pair>(), steps: pairs.len(), of: PhantomData }
    }
}

/// Configuration of the eight registers: palette 1, each of sixteen rows of 64 bytes.
#[repr(C, align(64))]
struct Configuration([u8; 64]);

static CONFIGURATION: Configuration = {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    let mut register = 0;
    while register < 8 {
        bytes[16 + 2 * register] = 64;
        bytes[48 + register] = 16;
        register += 1;
    }
    Configuration(bytes)
};

/// The registers while they are in use. Whoever has none to save switches threads faster.
struct Unit;

impl Unit {
    /// # Safety
    /// The unit is there.
    unsafe fn configured() -> Self {
        // SAFETY: the caller's; the configuration is valid and 64 bytes long.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const CONFIGURATION, options(nostack, preserves_flags, readonly));
        }
        Self
    }

    /// Products of all steps, added to `c` unless they are the first: (first weights, first tokens), (first, second),
    /// (second, first), (second, second).
    fn multiply(&self, weights: &Panel<'_>, tokens: &[Pair], c: &mut [Register; 4], first: bool) {
        let steps = weights.steps.min(tokens.len());
        if steps == 0 {
            return;
        }
        // SAFETY: the unit is configured; every step reads two registers of the panel, which has them, and a pair of tokens,
        // and `c` is four registers long.
        unsafe {
            asm!(
                "test {first:e}, {first:e}",
                "jnz 2f",
                "tileloadd tmm0, [{c} + {line}]",
                "tileloadd tmm1, [{c} + {line} + 1024]",
                "tileloadd tmm2, [{c} + {line} + 2048]",
                "tileloadd tmm3, [{c} + {line} + 3072]",
                "jmp 3f",
                "2:",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "3:",
                "tileloadd tmm4, [{a} + {stride}]",
                "tileloadd tmm6, [{b} + {line}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {line} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{second} + {stride}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a}, {step}",
                "add {second}, {step}",
                "add {b}, 2048",
                "dec {steps}",
                "jnz 3b",
                "tilestored [{c} + {line}], tmm0",
                "tilestored [{c} + {line} + 1024], tmm1",
                "tilestored [{c} + {line} + 2048], tmm2",
                "tilestored [{c} + {line} + 3072], tmm3",
                first = in(reg) u32::from(first),
                a = inout(reg) weights.halves[0] => _,
                second = inout(reg) weights.halves[1] => _,
                stride = in(reg) weights.stride,
                step = in(reg) weights.step,
                b = inout(reg) tokens.as_ptr() => _,
                steps = inout(reg) steps => _,
                line = in(reg) size_of::<Line>(),
                c = in(reg) c.as_mut_ptr(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // SAFETY: the unit is there, and what the registers hold was stored.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    }
}

/// Tokens whose activations are packed at once.
const TOKENS: usize = 512;
/// Columns after which other weights are taken: the activations of [`TOKENS`], 1 MiB, stay in the second-level cache.
const COLUMNS: usize = 1024;
/// Rows of weights that a register pair takes.
const PANEL: usize = 2 * ROWS;
/// Panels whose sums are kept meanwhile, half a megabyte.
const PANELS: usize = MATRIX_ROWS / PANEL;

/// Memory of a worker, kept from product to product: that of a prompt is megabytes, and the system would clear it each time.
struct Scratch {
    /// Activations, block by block.
    tokens: Vec<Pair>,
    /// Weights of a panel that has not all rows or columns.
    gathered: Vec<Pair>,
    /// Sums of a few panels with all blocks.
    sums: Vec<[Register; 4]>,
    /// The same by token.
    wide: Box<MatrixSums>,
}

impl Default for Scratch {
    fn default() -> Self {
        let wide = Box::new([[0.0; MATRIX_ROWS]; MATRIX_TOKENS]);
        Self { tokens: Vec::new(), gathered: Vec::new(), sums: Vec::new(), wide }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

pub(in super::super) fn multiply(
    weights: &Tensor,
    rows: Range<usize>,
    tokens: &[&[f32]],
    each: &mut dyn FnMut(Range<usize>, usize, &MatrixSums),
) {
    SCRATCH.with_borrow_mut(|scratch| {
        // SAFETY: the kernels of this set are only given out where the processor has the unit.
        unsafe {
            let unit = Unit::configured();
            for (group, tokens) in tokens.chunks(TOKENS).enumerate() {
                some(&unit, scratch, weights, rows.clone(), tokens, &mut |rows, token, sums| {
                    each(rows, group * TOKENS + token, sums);
                });
            }
        }
    });
}

/// The products of as many tokens as are packed at once.
///
/// # Safety
/// AVX-512 with bf16 is there.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn some(
    unit: &Unit,
    scratch: &mut Scratch,
    weights: &Tensor,
    rows: Range<usize>,
    tokens: &[&[f32]],
    each: &mut dyn FnMut(Range<usize>, usize, &MatrixSums),
) {
    let Scratch { tokens: packed, gathered, sums, wide } = scratch;
    let steps = weights.width.div_ceil(LANES);
    let blocks = tokens.len().div_ceil(MATRIX_TOKENS);
    packed.resize((blocks * steps).max(packed.len()), [[EMPTY; ROWS]; 2]);
    for (block, tokens) in packed.chunks_exact_mut(steps.max(1)).zip(tokens.chunks(MATRIX_TOKENS)) {
        // SAFETY: the caller's.
        unsafe { pack(tokens, weights.width, block) };
    }
    sums.resize(PANELS * blocks, [[EMPTY; ROWS]; 4]);
    for first in rows.clone().step_by(MATRIX_ROWS) {
        let group = first..rows.end.min(first + MATRIX_ROWS);
        let of = |panel: usize| panel..group.end.min(panel + PANEL);
        for columns in (0..steps).step_by(COLUMNS / LANES) {
            let columns = columns..steps.min(columns + COLUMNS / LANES);
            for (row, sums) in group.clone().step_by(PANEL).zip(sums.chunks_exact_mut(blocks.max(1))) {
                let panel = match Panel::in_place(weights, of(row), columns.clone()) {
                    Some(panel) => panel,
                    None => {
                        // SAFETY: the caller's.
                        unsafe { gather(weights, of(row), columns.clone(), gathered) };
                        Panel::gathered(gathered)
                    }
                };
                for (tokens, sums) in packed.chunks_exact(steps.max(1)).zip(sums) {
                    unit.multiply(&panel, &tokens[columns.clone()], sums, columns.start == 0);
                }
            }
        }
        // Whole rows of the group for one token after the other, so that the output is written in long pieces.
        for block in 0..blocks {
            for (panel, sums) in sums.chunks_exact(blocks).enumerate().take(group.len().div_ceil(PANEL)) {
                // SAFETY: the caller's.
                unsafe { spread(&sums[block], wide, panel * PANEL) };
            }
            each(group.clone(), block * MATRIX_TOKENS, wide);
        }
    }
}

/// Steps of rows of weights, 0 after the last row and column.
///
/// # Safety
/// AVX-512 is there.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn gather(weights: &Tensor, rows: Range<usize>, steps: Range<usize>, panel: &mut Vec<Pair>) {
    if rows.len() < PANEL {
        panel.clear();
    }
    panel.resize(steps.len(), [[EMPTY; ROWS]; 2]);
    let columns = steps.start * LANES..weights.width.min(steps.end * LANES);
    for (i, row) in rows.enumerate().take(PANEL) {
        let at = row * weights.width;
        let row = weights.halves().get(at + columns.start..at + columns.end).unwrap_or_default();
        for (pair, part) in panel.iter_mut().zip(row.chunks(LANES)) {
            let mask = u32::MAX >> (LANES - part.len());
            // SAFETY: no element after the last is loaded; a line is a register long.
            unsafe {
                let line = _mm512_maskz_loadu_epi16(mask, part.as_ptr().cast());
                _mm512_storeu_si512(pair[i / ROWS][i % ROWS].0.as_mut_ptr().cast(), line);
            }
        }
    }
}

/// Activations of a block of tokens step by step, 0 after the last token and column.
///
/// # Safety
/// AVX-512 with bf16 is there.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn pack(tokens: &[&[f32]], width: usize, block: &mut [Pair]) {
    for (step, pair) in block.iter_mut().enumerate() {
        let columns = step * LANES..width.min((step + 1) * LANES);
        for (half, to) in pair.iter_mut().enumerate() {
            // SAFETY: the caller's; a line is a register long.
            unsafe {
                let mut lines = [_mm512_setzero_si512(); ROWS];
                for (line, x) in lines.iter_mut().zip(tokens.get(half * ROWS..).unwrap_or_default()) {
                    *line = rounded(x.get(columns.clone()).unwrap_or_default());
                }
                for (line, to) in turned(lines).into_iter().zip(to) {
                    _mm512_storeu_si512(to.0.as_mut_ptr().cast(), line);
                }
            }
        }
    }
}

/// Sums by token, from row `first` of each.
///
/// # Safety
/// AVX-512 is there.
#[target_feature(enable = "avx512f")]
unsafe fn spread(c: &[Register; 4], sums: &mut MatrixSums, first: usize) {
    for (i, register) in c.iter().enumerate() {
        let (row, token) = (first + i / 2 * ROWS, i % 2 * ROWS);
        // SAFETY: the caller's; a line and half of the sums of a token are a register long.
        unsafe {
            let lines = turned(std::array::from_fn(|line| _mm512_loadu_si512(register[line].0.as_ptr().cast())));
            for (sums, line) in sums[token..token + ROWS].iter_mut().zip(lines) {
                _mm512_storeu_si512(sums[row..row + ROWS].as_mut_ptr().cast(), line);
            }
        }
    }
}

/// Sixteen lines of sixteen numbers with lines and columns exchanged.
///
/// # Safety
/// AVX-512 is there.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn turned(lines: [__m512i; ROWS]) -> [__m512i; ROWS] {
    // Squares of four numbers within each quarter of a register first, then the quarters.
    let mut quarters = [_mm512_setzero_si512(); ROWS];
    for (four, out) in lines.as_chunks::<4>().0.iter().zip(quarters.as_chunks_mut::<4>().0) {
        let [a, b, c, d] = *four;
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        *out = [
            _mm512_unpacklo_epi64(ab, cd),
            _mm512_unpackhi_epi64(ab, cd),
            _mm512_unpacklo_epi64(ab_high, cd_high),
            _mm512_unpackhi_epi64(ab_high, cd_high),
        ];
    }
    let mut out = quarters;
    for column in 0..4 {
        let [a, b, c, d] = std::array::from_fn(|four| quarters[4 * four + column]);
        let (low, high) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b));
        let (low_2, high_2) = (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xee>(c, d));
        out[column] = _mm512_shuffle_i32x4::<0x88>(low, low_2);
        out[4 + column] = _mm512_shuffle_i32x4::<0xdd>(low, low_2);
        out[8 + column] = _mm512_shuffle_i32x4::<0x88>(high, high_2);
        out[12 + column] = _mm512_shuffle_i32x4::<0xdd>(high, high_2);
    }
    out
}
