//! Causal attention over the cache, and the writing of the cache.

#![allow(unsafe_code)]

use super::{
    kernels::{Activations, Kernels, RowsOf, TILE_ROWS, TILE_TOKENS},
    memory::Rows,
    ops::Part,
};
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

/// Attention of every query head of this worker's tokens and key heads. Heads that share keys go together, as many as a
/// tile has activations. Pairs are dealt out in turn, because later tokens have more to attend to.
pub(super) fn attend(part: Part, kernels: &Kernels, h: Heads<'_>, qkv: Rows, keys: Rows, values: Rows, out: Rows) {
    let (group, dim) = (h.heads / h.kv_heads, h.head_dim);
    let scale = (dim as f32).sqrt().recip();
    let longest = h.position.iter().max().map_or(0, |position| *position as usize + 1);
    let mut scores = vec![0.0; TILE_TOKENS * longest];
    for item in (part.number..out.rows * h.kv_heads).step_by(part.of.max(1)) {
        let (token, kv_head) = (item / h.kv_heads, item % h.kv_heads);
        let (sequence, length) = (h.sequence[token] as usize, h.position[token] as usize + 1);
        // SAFETY: the cache was written by an operator before this one, and is only read now.
        let part_of = |cache: Rows, position: usize, count: usize| unsafe {
            let place = h.plan.place(sequence, position, kv_head);
            cache.part(0, place..place + count * dim)
        };
        for first in (kv_head * group..(kv_head + 1) * group).step_by(TILE_TOKENS) {
            let count = TILE_TOKENS.min((kv_head + 1) * group - first);
            let of_head = |i: usize| (first + i) * dim..(first + i + 1) * dim;
            // SAFETY: queries are only read.
            let query = |i: usize| Activations::single(unsafe { qkv.part(token, of_head(i)) });
            let queries: [Activations<'_>; TILE_TOKENS] =
                std::array::from_fn(|i| if i < count { query(i) } else { Activations::default() });
            for_runs(h.plan, length, |position, run| {
                let keys = part_of(keys, position, run);
                for key in (0..run).step_by(TILE_ROWS) {
                    let row = |i: usize| (key + i).min(run - 1) * dim;
                    let rows = RowsOf::F32(std::array::from_fn(|i| &keys[row(i)..row(i) + dim]));
                    let tile = kernels.tile(rows, &queries[..count]);
                    for (key, sums) in (position + key..position + run).zip(tile) {
                        for (i, sum) in sums.into_iter().enumerate() {
                            scores[i * longest + key] = sum * scale;
                        }
                    }
                }
            });
            for (i, scores) in scores.chunks_exact_mut(longest.max(1)).enumerate().take(count) {
                let scores = &mut scores[..length];
                // SAFETY: this worker alone writes the heads of its share, of another buffer.
                let out = unsafe { out.part_mut(token, of_head(i)) };
                let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum = kernels.exponentials(scores, most);
                out.fill(0.0);
                for_runs(h.plan, length, |position, run| {
                    kernels.weigh(&scores[position..position + run], part_of(values, position, run), out);
                });
                out.iter_mut().for_each(|out| *out /= sum);
            }
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
