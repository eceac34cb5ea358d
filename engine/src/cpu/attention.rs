//! Causal attention over the cache, and the writing of the cache.

#![allow(unsafe_code)]

use super::{kernels::Kernels, memory::Rows, ops::Part};
use crate::kv::KvPlan;

/// What attention needs to know beside the activations.
#[derive(Clone, Copy)]
pub(super) struct Heads<'a> {
    pub plan: &'a KvPlan,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Sequence of each token.
    pub sequence: &'a [u32],
    /// Position of each token in its sequence.
    pub position: &'a [u32],
}

/// Puts keys and values of the step's tokens into the cache.
pub(super) fn append(part: Part, h: Heads<'_>, qkv: Rows, keys: Rows, values: Rows) {
    let (q, kv) = (h.heads * h.head_dim, h.kv_heads * h.head_dim);
    for token in part.of(qkv.rows, 1) {
        for head in 0..h.kv_heads {
            let place = h.plan.place(h.sequence[token] as usize, h.position[token] as usize, head);
            for (cache, first) in [(keys, q), (values, q + kv)] {
                let at = first + head * h.head_dim;
                // SAFETY: a token has places of its own in the cache, and this thread alone has the token.
                unsafe {
                    let from = qkv.part(token, at..at + h.head_dim);
                    cache.part_mut(0, place..place + h.head_dim).copy_from_slice(from);
                }
            }
        }
    }
}

/// Attention of every query head of this thread's tokens and key heads.
pub(super) fn attend(part: Part, kernels: &Kernels, h: Heads<'_>, qkv: Rows, keys: Rows, values: Rows, out: Rows) {
    let group = h.heads / h.kv_heads;
    let scale = (h.head_dim as f32).sqrt().recip();
    let q_width = h.heads * h.head_dim;
    let mut scores: Vec<f32> = Vec::new();
    for item in part.of(out.rows * h.kv_heads, 1) {
        let (token, kv_head) = (item / h.kv_heads, item % h.kv_heads);
        let (sequence, length) = (h.sequence[token] as usize, h.position[token] as usize + 1);
        for head in kv_head * group..(kv_head + 1) * group {
            let at = head * h.head_dim;
            debug_assert!(at + h.head_dim <= q_width);
            // SAFETY: queries are read only; this thread alone writes the heads of its share, of another buffer.
            let (query, out) =
                unsafe { (qkv.part(token, at..at + h.head_dim), out.part_mut(token, at..at + h.head_dim)) };
            scores.clear();
            for_runs(h.plan, length, |position, count| {
                let place = h.plan.place(sequence, position, kv_head);
                // SAFETY: the cache was written by an operator before this one, and is only read now.
                let keys = unsafe { keys.part(0, place..place + count * h.head_dim) };
                scores.extend(keys.chunks_exact(h.head_dim).map(|key| kernels.dot(query, key) * scale));
            });
            softmax(&mut scores);
            out.fill(0.0);
            for_runs(h.plan, length, |position, count| {
                let place = h.plan.place(sequence, position, kv_head);
                // SAFETY: as above.
                let values = unsafe { values.part(0, place..place + count * h.head_dim) };
                for (value, weight) in values.chunks_exact(h.head_dim).zip(&scores[position..]) {
                    kernels.axpy(*weight, value, out);
                }
            });
        }
    }
}

/// Calls `each` with the first position and the number of tokens of every run of the first `length` tokens.
fn for_runs(plan: &KvPlan, length: usize, mut each: impl FnMut(usize, usize)) {
    let mut position = 0;
    while position < length {
        let count = plan.run(position).min(length - position);
        each(position, count);
        position += count;
    }
}

fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}
