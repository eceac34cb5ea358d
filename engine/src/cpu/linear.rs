//! Products of activations with weights, shared out by rows of weights.

#![allow(unsafe_code)]

use std::ops::Range;

use super::{
    kernels::{
        Activations, Kernels, Matrix, PANEL_COLUMNS, PANEL_ROWS, PANEL_TOKENS, RowsOf, Staged, TILE_ROWS, TILE_TOKENS,
        Tile, rows_of,
    },
    memory::Rows,
    ops::Part,
};
use crate::Tensor;

/// Rows of activations from which on widening the weights of a panel first pays for itself; an estimate, not measured: the
/// third tile of activations would widen them once more.
const PANEL_FROM: usize = 8;

/// In what sums of products grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sums {
    /// Single precision.
    Single,
    /// Rounded again and again, as on hardware without wider sums.
    Bf16,
}

/// A matrix and what is computed of its product.
pub(super) struct Linear<'a> {
    pub weights: &'a Tensor,
    pub bias: Option<&'a [f32]>,
    /// Rows of the weights, which are columns of the output.
    pub rows: Range<usize>,
    pub sums: Sums,
}

impl Linear<'_> {
    /// This worker's columns of `x` times the weights.
    pub(super) fn compute(&self, part: Part, kernels: &Kernels, x: Rows, out: Rows) {
        let share = part.of(self.rows.len(), TILE_ROWS);
        let mine = self.rows.start + share.start..self.rows.start + share.end;
        if x.rows >= PANEL_FROM && self.sums == Sums::Single {
            match kernels.matrix(self.weights.dtype) {
                Some(matrix) => self.by_matrix(mine, matrix, x, out),
                None => self.by_panels(mine, kernels, x, out),
            }
        } else {
            let x = all(x);
            let tiles = Tiles { weights: self.weights, first: 0, sums: self.sums };
            tiles.compute(mine, kernels, &x, |row| self.bias(row), |token| token, out);
        }
    }

    fn bias(&self, row: usize) -> f32 {
        self.bias.and_then(|bias| bias.get(row)).copied().unwrap_or(0.0)
    }

    fn by_matrix(&self, mine: Range<usize>, matrix: Matrix, x: Rows, out: Rows) {
        let x = all(x);
        matrix(self.weights, mine, &x, &mut |rows, first, sums| {
            let bias = self.bias.and_then(|bias| bias.get(rows.clone()));
            for (token, sums) in (first..x.len()).zip(sums) {
                // SAFETY: this worker alone writes the columns of its share.
                let out = unsafe { out.part_mut(token, rows.clone()) };
                match bias {
                    Some(bias) => out.iter_mut().zip(sums).zip(bias).for_each(|((out, sum), bias)| *out = sum + bias),
                    None => out.iter_mut().zip(sums).for_each(|(out, sum)| *out = *sum),
                }
            }
        });
    }

    /// A panel stays in the first-level cache while all activations pass by.
    fn by_panels(&self, mine: Range<usize>, kernels: &Kernels, x: Rows, out: Rows) {
        let mut panel = [[0.0; PANEL_ROWS]; PANEL_COLUMNS];
        for row in mine.clone().step_by(PANEL_ROWS) {
            let height = PANEL_ROWS.min(mine.end - row);
            for first in (0..x.width).step_by(PANEL_COLUMNS) {
                let columns = first..x.width.min(first + PANEL_COLUMNS);
                let panel = &mut panel[..columns.len()];
                for lane in (0..height).step_by(TILE_ROWS) {
                    kernels.widen(rows_of(self.weights, row + lane).columns(columns.clone()), panel, lane);
                }
                for token in (0..x.rows).step_by(PANEL_TOKENS) {
                    let count = PANEL_TOKENS.min(x.rows - token);
                    // SAFETY: nobody writes `x` while it is read: it is another buffer than `out`.
                    let part = |i: usize| unsafe { x.part(token + i, columns.clone()) };
                    let tokens: [&[f32]; PANEL_TOKENS] = std::array::from_fn(|i| if i < count { part(i) } else { &[] });
                    let mut sums = [[0.0; PANEL_ROWS]; PANEL_TOKENS];
                    kernels.panel(panel, &tokens[..count], &mut sums);
                    for (i, sums) in sums.iter().enumerate().take(count) {
                        // SAFETY: this worker alone writes the columns of its share.
                        let out = unsafe { out.part_mut(token + i, row..row + height) };
                        match <&mut [f32; PANEL_ROWS]>::try_from(&mut *out) {
                            // Of a length that is known, so that it is done in vectors.
                            Ok(out) if first > 0 => out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum),
                            _ => {
                                for ((out, sum), row) in out.iter_mut().zip(sums).zip(row..) {
                                    *out = sum + if first == 0 { self.bias(row) } else { *out };
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The activations that an operator reads.
fn all<'a>(x: Rows) -> Vec<&'a [f32]> {
    // SAFETY: nobody writes `x` while it is read: it is another buffer than the operator's output.
    (0..x.rows).map(|row| unsafe { x.row(row) }).collect()
}

/// Rows of a matrix by a few rows of activations at a time.
pub(super) struct Tiles<'a> {
    pub weights: &'a Tensor,
    /// Row of the weights that makes the first column of the output.
    pub first: usize,
    pub sums: Sums,
}

impl Tiles<'_> {
    /// Columns `mine` of the products; those of activation `i` go to row `to(i)` of the output.
    pub(super) fn compute(
        &self,
        mine: Range<usize>,
        kernels: &Kernels,
        x: &[&[f32]],
        bias: impl Fn(usize) -> f32,
        to: impl Fn(usize) -> usize,
        out: Rows,
    ) {
        let staged: Vec<Staged> = x.iter().map(|x| kernels.stage(self.weights.dtype, x)).collect();
        let x: Vec<Activations<'_>> = staged.iter().zip(x).map(|(staged, x)| staged.of(x)).collect();
        for row in mine.clone().step_by(TILE_ROWS) {
            let weights = rows_of(self.weights, self.first + row);
            let height = TILE_ROWS.min(mine.end - row);
            for (token, tokens) in (0..).step_by(TILE_TOKENS).zip(x.chunks(TILE_TOKENS)) {
                let tile = match self.sums {
                    Sums::Single => kernels.tile(weights, tokens),
                    Sums::Bf16 => rounded_tile(kernels, weights, tokens),
                };
                for i in 0..tokens.len() {
                    // SAFETY: this worker alone writes the columns of its share.
                    let out = unsafe { out.part_mut(to(token + i), row..row + height) };
                    for ((out, sums), row) in out.iter_mut().zip(&tile).zip(row..) {
                        *out = sums[i] + bias(row);
                    }
                }
            }
        }
    }
}

/// Columns after which a sum that grows in bf16 is rounded.
const ROUNDED: usize = 64;

/// A tile whose sums are rounded to bf16 as they grow.
fn rounded_tile(kernels: &Kernels, weights: RowsOf<'_>, tokens: &[Activations<'_>]) -> Tile {
    let width = tokens.first().map_or(0, |token| token.values.len());
    let mut sums = Tile::default();
    for start in (0..width).step_by(ROUNDED) {
        let columns = start..width.min(start + ROUNDED);
        let part = |i: usize| tokens.get(i).and_then(|token| token.values.get(columns.clone())).unwrap_or_default();
        let parts: [Activations<'_>; TILE_TOKENS] = std::array::from_fn(|i| Activations::single(part(i)));
        let tile = kernels.tile(weights.columns(columns.clone()), &parts[..tokens.len()]);
        for (sum, part) in sums.iter_mut().flatten().zip(tile.iter().flatten()) {
            *sum = half::bf16::from_f32(*sum + *part).to_f32();
        }
    }
    sums
}
