//! Kernels in plain Rust: lanes that any compiler turns into the vectors of its target.

use half::{bf16, f16};

use super::{RowsOf, TILE_ROWS, TILE_TOKENS, Tile};
use crate::Q8_BLOCK;

/// Sums that are kept apart, so that additions need not wait for one another.
const LANES: usize = 8;

pub(super) fn tile(weights: RowsOf<'_>, tokens: &[&[f32]]) -> Tile {
    match weights {
        RowsOf::F32(rows) => each(tokens, |row, x| dot(rows[row], x)),
        RowsOf::F16(rows) => each(tokens, |row, x| lanes(rows[row], x, |bits| f16::from_bits(bits).to_f32())),
        RowsOf::Bf16(rows) => each(tokens, |row, x| lanes(rows[row], x, |bits| bf16::from_bits(bits).to_f32())),
        RowsOf::Q8(rows) => each(tokens, |row, x| {
            let (quants, scales) = rows[row];
            let blocks = quants.chunks(Q8_BLOCK).zip(x.chunks(Q8_BLOCK)).zip(scales);
            blocks.map(|((quants, x), scale)| scale * lanes(quants, x, f32::from)).sum()
        }),
    }
}

fn each(tokens: &[&[f32]], dot: impl Fn(usize, &[f32]) -> f32) -> Tile {
    let mut tile = [[0.0; TILE_TOKENS]; TILE_ROWS];
    for (row, sums) in tile.iter_mut().enumerate() {
        for (sum, x) in sums.iter_mut().zip(tokens) {
            *sum = dot(row, x);
        }
    }
    tile
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    lanes(a, b, |value| value)
}

fn lanes<T: Copy>(weights: &[T], x: &[f32], value: impl Fn(T) -> f32) -> f32 {
    let length = weights.len().min(x.len());
    let (weights, x) = (&weights[..length], &x[..length]);
    let ((weights, weights_rest), (x, x_rest)) = (weights.as_chunks::<LANES>(), x.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (weights, x) in weights.iter().zip(x) {
        for lane in 0..LANES {
            sums[lane] += value(weights[lane]) * x[lane];
        }
    }
    let rest: f32 = weights_rest.iter().zip(x_rest).map(|(weight, x)| value(*weight) * x).sum();
    sums.iter().sum::<f32>() + rest
}

pub(super) fn axpy(a: f32, x: &[f32], y: &mut [f32]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}
