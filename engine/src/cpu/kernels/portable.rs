//! Kernels in plain Rust: lanes that any compiler turns into the vectors of its target.

use half::{bf16, f16};

use super::{Activations, Column, PANEL_ROWS, PanelSums, RowsOf, Staged, TILE_ROWS, TILE_TOKENS, Tile, elementwise};
use crate::{Dtype, Q8_BLOCK, q8_scale};

pub(super) use elementwise::{exponentials, silu_mul};

/// Sums that are kept apart, so that additions need not wait for one another.
const LANES: usize = 8;

pub(super) fn tile(weights: RowsOf<'_>, tokens: &[Activations<'_>]) -> Tile {
    match weights {
        RowsOf::F32(rows) => each(tokens, |row, x| dot(rows[row], x.values)),
        RowsOf::F16(rows) => each(tokens, |row, x| lanes(rows[row], x.values, |bits| f16::from_bits(bits).to_f32())),
        RowsOf::Bf16(rows) => each(tokens, |row, x| lanes(rows[row], x.values, |bits| bf16::from_bits(bits).to_f32())),
        RowsOf::Q8(rows) => each(tokens, |row, x| quantised(rows[row], *x)),
    }
}

fn each(tokens: &[Activations<'_>], dot: impl Fn(usize, &Activations<'_>) -> f32) -> Tile {
    let mut tile = [[0.0; TILE_TOKENS]; TILE_ROWS];
    for (row, sums) in tile.iter_mut().enumerate() {
        for (sum, x) in sums.iter_mut().zip(tokens) {
            *sum = dot(row, x);
        }
    }
    tile
}

/// In integers by blocks as far as there are activations in fixed point; the rest in singles.
fn quantised((quants, scales): (&[i8], &[u16]), x: Activations<'_>) -> f32 {
    let blocks = quants.as_chunks::<Q8_BLOCK>().0.iter().zip(x.fixed.as_chunks::<Q8_BLOCK>().0);
    let blocks = blocks.zip(scales).zip(x.scales);
    let done = blocks.len() * Q8_BLOCK;
    let sum: f32 = blocks
        .map(|(((quants, fixed), scale), step)| {
            let products = quants.iter().zip(fixed).map(|(quant, fixed)| i32::from(*quant) * i32::from(*fixed));
            products.sum::<i32>() as f32 * (q8_scale(*scale) * step)
        })
        .sum();
    let rest = quants.iter().zip(x.values).enumerate().skip(done);
    let value = |(k, (quant, x)): (usize, (&i8, &f32))| {
        scales.get(k / Q8_BLOCK).map_or(0.0, |scale| q8_scale(*scale)) * f32::from(*quant) * x
    };
    sum + rest.map(value).sum::<f32>()
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

pub(super) fn widen(rows: RowsOf<'_>, out: &mut [Column], first: usize) {
    fn put<T: Copy>(rows: [&[T]; TILE_ROWS], out: &mut [Column], first: usize, value: impl Fn(T) -> f32) {
        for (row, weights) in (first..).zip(rows) {
            out.iter_mut().zip(weights).for_each(|(column, weight)| column[row] = value(*weight));
        }
    }
    match rows {
        RowsOf::F32(rows) => put(rows, out, first, |value| value),
        RowsOf::F16(rows) => put(rows, out, first, |bits| f16::from_bits(bits).to_f32()),
        RowsOf::Bf16(rows) => put(rows, out, first, |bits| bf16::from_bits(bits).to_f32()),
        RowsOf::Q8(rows) => {
            for (row, (quants, scales)) in (first..).zip(rows) {
                let weights = quants.chunks(Q8_BLOCK).zip(scales);
                let weights = weights.flat_map(|(block, scale)| {
                    let scale = q8_scale(*scale);
                    block.iter().map(move |quant| scale * f32::from(*quant))
                });
                out.iter_mut().zip(weights).for_each(|(column, weight)| column[row] = weight);
            }
        }
    }
}

pub(super) fn panel(columns: &[Column], tokens: &[&[f32]], out: &mut PanelSums) {
    for (out, x) in out.iter_mut().zip(tokens) {
        let mut sums = [0.0; PANEL_ROWS];
        for (column, x) in columns.iter().zip(*x) {
            for (sum, weight) in sums.iter_mut().zip(column) {
                *sum += weight * x;
            }
        }
        *out = sums;
    }
}

pub(super) fn weigh(weights: &[f32], rows: &[f32], out: &mut [f32]) {
    for (weight, row) in weights.iter().zip(rows.chunks_exact(out.len().max(1))) {
        axpy(*weight, row, out);
    }
}

pub(super) fn stage(dtype: Dtype, values: &[f32], staged: &mut Staged) {
    if dtype == Dtype::Q8 {
        elementwise::fix(values, &mut staged.fixed, &mut staged.scales);
    }
}
