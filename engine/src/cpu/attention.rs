//! Causal attention over the cache, and the writing of the cache.

#![allow(unsafe_code)]

use super::{
    kernels::{Activations, Kernels, RowsOf, TILE_ROWS, TILE_TOKENS},
    memory::Rows,
    ops::Part,
};
use crate::kv::KvPlan;

mod prompt;

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

/// Attention of every query head of this worker's tokens and key heads. Pairs are dealt out in turn, because later tokens have
/// more to attend to.
pub(super) fn attend(part: Part, kernels: &Kernels, h: Heads<'_>, qkv: Rows, keys: Rows, values: Rows, out: Rows) {
    let blocks = prompt::blocks(h.sequence);
    let mut scores = Vec::new();
    for item in (part.number..blocks.len() * h.kv_heads).step_by(part.of.max(1)) {
        let (tokens, kv_head) = (blocks[item / h.kv_heads].clone(), item % h.kv_heads);
        let head = Head { h, kv_head, keys, values };
        if tokens.len() >= prompt::FROM {
            prompt::attend(kernels, head, tokens, qkv, out, &mut scores);
        } else {
            tokens.for_each(|token| one(kernels, head, token, qkv, out, &mut scores));
        }
    }
}

/// The cache of a key head.
#[derive(Clone, Copy)]
struct Head<'a> {
    h: Heads<'a>,
    kv_head: usize,
    keys: Rows,
    values: Rows,
}

impl Head<'_> {
    /// Query heads that share the key head.
    fn queries(&self) -> std::ops::Range<usize> {
        let group = self.h.heads / self.h.kv_heads;
        self.kv_head * group..(self.kv_head + 1) * group
    }

    /// Tokens that a token attends to: those of its sequence up to itself.
    fn length(&self, token: usize) -> usize {
        self.h.position[token] as usize + 1
    }

    /// Keys or values of `count` tokens of a sequence that lie one after the other.
    fn of(&self, cache: Rows, sequence: usize, position: usize, count: usize) -> &[f32] {
        let place = self.h.plan.place(sequence, position, self.kv_head);
        // SAFETY: the cache was written by an operator before this one, and is only read now.
        unsafe { cache.part(0, place..place + count * self.h.head_dim) }
    }

    /// Columns of a query head, in the output and among the queries.
    fn columns(&self, head: usize) -> std::ops::Range<usize> {
        head * self.h.head_dim..(head + 1) * self.h.head_dim
    }

    /// Factor of the scores.
    fn scale(&self) -> f32 {
        (self.h.head_dim as f32).sqrt().recip()
    }
}

/// Attention of one token: as many heads together as a tile has activations.
fn one(kernels: &Kernels, head: Head<'_>, token: usize, qkv: Rows, out: Rows, scores: &mut Vec<f32>) {
    let (plan, dim, heads) = (head.h.plan, head.h.head_dim, head.queries());
    let (sequence, length, scale) = (head.h.sequence[token] as usize, head.length(token), head.scale());
    scores.resize(scores.len().max(TILE_TOKENS * length), 0.0);
    for first in heads.clone().step_by(TILE_TOKENS) {
        let count = TILE_TOKENS.min(heads.end - first);
        // SAFETY: queries are only read.
        let query = |i: usize| Activations::single(unsafe { qkv.part(token, head.columns(first + i)) });
        let queries: [Activations<'_>; TILE_TOKENS] =
            std::array::from_fn(|i| if i < count { query(i) } else { Activations::default() });
        for_runs(plan, length, |position, run| {
            let keys = head.of(head.keys, sequence, position, run);
            for key in (0..run).step_by(TILE_ROWS) {
                let row = |i: usize| (key + i).min(run - 1) * dim;
                let rows = RowsOf::F32(std::array::from_fn(|i| &keys[row(i)..row(i) + dim]));
                let tile = kernels.tile(rows, &queries[..count]);
                for (key, sums) in (position + key..position + run).zip(tile) {
                    for (i, sum) in sums.into_iter().enumerate() {
                        scores[i * length + key] = sum * scale;
                    }
                }
            }
        });
        for (i, scores) in scores.chunks_exact_mut(length).enumerate().take(count) {
            // SAFETY: this worker alone writes the heads of its share, of another buffer.
            let out = unsafe { out.part_mut(token, head.columns(first + i)) };
            let sum = kernels.exponentials(scores, prompt::most(scores));
            out.fill(0.0);
            for_runs(plan, length, |position, run| {
                let values = head.of(head.values, sequence, position, run);
                kernels.weigh(&scores[position..position + run], values, out);
            });
            out.iter_mut().for_each(|out| *out /= sum);
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
