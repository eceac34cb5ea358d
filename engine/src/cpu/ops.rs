//! Operators on the CPU. Each runs on every thread with the number of the thread and does its share; rows are shared out
//! unless there is one, which is then divided by columns where the operator allows.

#![allow(unsafe_code)]

use super::{
    kernels::Kernels,
    memory::{Rows, share},
};
use crate::Tensor;

/// Which thread of how many runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub number: usize,
    pub of: usize,
}

impl Part {
    pub(super) fn of(self, count: usize, unit: usize) -> std::ops::Range<usize> {
        share(count, unit, self.number, self.of)
    }
}

/// Rows of the embedding table, of which this rank has those from `first` on; the others are 0.
pub(super) fn embed(part: Part, table: &Tensor, first: usize, tokens: &[u32], out: Rows) {
    for row in part.of(tokens.len(), 1) {
        // SAFETY: this thread alone has the rows of its share.
        let out = unsafe { out.row_mut(row) };
        match (tokens[row] as usize).checked_sub(first).filter(|token| *token < table.rows) {
            Some(token) => table.read_row(token, out),
            None => out.fill(0.0),
        }
    }
}

fn norm(x: &[f32], weight: &[f32], eps: f32, kernels: &Kernels) -> impl Fn(usize) -> f32 {
    let mean = kernels.dot(x, x) / x.len().max(1) as f32;
    let scale = (mean + eps).sqrt().recip();
    move |i| x[i] * scale * weight[i]
}

pub(super) fn rms_norm(part: Part, kernels: &Kernels, x: Rows, weight: &[f32], eps: f32, out: Rows) {
    for row in part.of(x.rows, 1) {
        // SAFETY: this thread alone has the rows of its share, and `x` is another buffer than `out`.
        let (x, out) = unsafe { (x.row(row), out.row_mut(row)) };
        let value = norm(x, weight, eps, kernels);
        out.iter_mut().enumerate().for_each(|(i, out)| *out = value(i));
    }
}

pub(super) fn add(part: Part, kernels: &Kernels, x: Rows, delta: Rows) {
    for row in part.of(x.rows, 1) {
        // SAFETY: this thread alone has the rows of its share, of two buffers.
        let (x, delta) = unsafe { (x.row_mut(row), delta.row(row)) };
        kernels.axpy(1.0, delta, x);
    }
}

/// Norms heads in place.
pub(super) fn head_norm(part: Part, kernels: &Kernels, x: Rows, at: usize, count: usize, weight: &[f32], eps: f32) {
    let width = weight.len();
    for head in part.of(x.rows * count, 1) {
        let (row, at) = (head / count, at + head % count * width);
        // SAFETY: this thread alone has the heads of its share.
        let head = unsafe { x.part_mut(row, at..at + width) };
        let mean = kernels.dot(head, head) / width.max(1) as f32;
        let scale = (mean + eps).sqrt().recip();
        head.iter_mut().zip(weight).for_each(|(value, weight)| *value *= scale * weight);
    }
}

/// Turns heads in place: element `i` and element `i + width / 2` are a pair, the layout of Hugging Face checkpoints.
/// `turns` holds the cosines and then the sines of each token.
pub(super) fn rope(part: Part, x: Rows, at: usize, count: usize, width: usize, turns: &[f32]) {
    for head in part.of(x.rows * count, 1) {
        let (row, at) = (head / count, at + head % count * width);
        // SAFETY: this thread alone has the heads of its share.
        let head = unsafe { x.part_mut(row, at..at + width) };
        let (cosines, sines) = turns[row * width..(row + 1) * width].split_at(width / 2);
        let (first, second) = head.split_at_mut(width / 2);
        for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cosines).zip(sines) {
            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
        }
    }
}

pub(super) fn square(part: Part, x: Rows, out: Rows) {
    let mine = part.of(x.rows * x.width, 16);
    // SAFETY: this worker alone has its share, of two buffers.
    let (x, out) = unsafe { (x.elements_mut(mine.clone()), out.elements_mut(mine)) };
    out.iter_mut().zip(x).for_each(|(out, x)| *out = *x * *x);
}

pub(super) fn mean(part: Part, x: Rows, out: Rows) {
    for row in part.of(x.rows, 1) {
        // SAFETY: this worker alone has the rows of its share, of two buffers.
        let (x, out) = unsafe { (x.row(row), out.row_mut(row)) };
        out.fill(x.iter().sum::<f32>() / x.len().max(1) as f32);
    }
}

pub(super) fn rsqrt(part: Part, x: Rows, eps: f32) {
    // SAFETY: this worker alone has its share.
    let x = unsafe { x.elements_mut(part.of(x.rows * x.width, 16)) };
    x.iter_mut().for_each(|x| *x = (*x + eps).sqrt().recip());
}

pub(super) fn scale_rows(part: Part, x: Rows, by: Rows, out: Rows) {
    for row in part.of(x.rows, 1) {
        // SAFETY: this worker alone has the rows of its share, of several buffers.
        let (x, by, out) = unsafe { (x.row(row), by.row(row), out.row_mut(row)) };
        let by = by.first().copied().unwrap_or(0.0);
        out.iter_mut().zip(x).for_each(|(out, x)| *out = x * by);
    }
}

pub(super) fn scale_columns(part: Part, x: Rows, weight: &[f32]) {
    for row in part.of(x.rows, 1) {
        // SAFETY: this worker alone has the rows of its share.
        let x = unsafe { x.row_mut(row) };
        x.iter_mut().zip(weight).for_each(|(x, weight)| *x *= weight);
    }
}

/// Half of [`silu_mul`]: `gate` tells whether silu of the gate is written, or what is there multiplied by up.
pub(super) fn half_silu_mul(part: Part, gate_up: Rows, out: Rows, gate: bool) {
    let width = out.width;
    let columns = part.of(width, 16);
    let from = if gate { columns.clone() } else { width + columns.start..width + columns.end };
    for row in 0..out.rows {
        // SAFETY: as in `silu_mul`.
        let (x, out) = unsafe { (gate_up.part(row, from.clone()), out.part_mut(row, columns.clone())) };
        for (out, x) in out.iter_mut().zip(x) {
            *out = if gate { x / (1.0 + (-x).exp()) } else { *out * x };
        }
    }
}

pub(super) fn transpose(part: Part, x: Rows, out: Rows) {
    for row in part.of(out.rows, 1) {
        // SAFETY: this worker alone writes the rows of its share, of another buffer than it reads.
        let out = unsafe { out.row_mut(row) };
        for (from, out) in out.iter_mut().enumerate() {
            // SAFETY: as above.
            *out = unsafe { x.part(from, row..row + 1) }.first().copied().unwrap_or(0.0);
        }
    }
}

pub(super) fn silu_mul(part: Part, kernels: &Kernels, gate_up: Rows, out: Rows) {
    let width = out.width;
    // By columns, because one token has as many of them as there are in a layer.
    let columns = part.of(width, 16);
    for row in 0..out.rows {
        // SAFETY: this thread alone writes the columns of its share, of another buffer than it reads.
        let (gate, up, out) = unsafe {
            let up = width + columns.start..width + columns.end;
            (gate_up.part(row, columns.clone()), gate_up.part(row, up), out.part_mut(row, columns.clone()))
        };
        kernels.silu_mul(gate, up, out);
    }
}

pub(super) fn select(part: Part, x: Rows, chosen: &[usize], out: Rows) {
    for row in part.of(chosen.len(), 1) {
        // SAFETY: this thread alone writes the rows of its share, of another buffer than it reads.
        unsafe { out.row_mut(row).copy_from_slice(x.row(chosen[row])) };
    }
}

/// Greatest element of each row, the first of several.
pub(super) fn argmax(logits: &[f32]) -> u32 {
    /// Elements of which only the greatest is looked for at first: that is done in vectors.
    const BLOCK: usize = 1024;
    const LANES: usize = 16;
    // What is no number is greater than nothing.
    let greater = |most: f32, value: f32| if value > most { value } else { most };
    let most = |block: &[f32]| {
        let (whole, rest) = block.as_chunks::<LANES>();
        let mut most = [f32::NEG_INFINITY; LANES];
        for values in whole {
            most.iter_mut().zip(values).for_each(|(most, value)| *most = greater(*most, *value));
        }
        most.iter().chain(rest).copied().fold(f32::NEG_INFINITY, greater)
    };
    let mut best = (0, f32::NEG_INFINITY);
    for (i, block) in logits.chunks(BLOCK).enumerate() {
        let most = most(block);
        if most > best.1 {
            best = (i, most);
        }
    }
    let first = best.0 * BLOCK;
    let inside = logits.iter().skip(first).position(|value| *value == best.1).unwrap_or(0);
    u32::try_from(first + inside).unwrap_or(u32::MAX)
}
