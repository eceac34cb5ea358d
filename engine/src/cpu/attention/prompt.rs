//! Attention of many tokens of a sequence at once: products of matrices, in which each key and value is read once for all of
//! them.

#![allow(unsafe_code)]

use std::ops::Range;

use super::Head;
use crate::cpu::{
    kernels::{Column, Kernels, PANEL_ROWS, PANEL_TOKENS, PanelSums, RowsOf, TILE_ROWS},
    memory::Rows,
};

/// Most tokens of a block: their scores, of all heads that share keys, stay in the second-level cache.
const BLOCK: usize = 16;
/// Tokens from which on turning keys for panels pays for itself.
pub(super) const FROM: usize = 4;

/// Rows of a batch that are tokens of one sequence, in blocks.
pub(super) fn blocks(sequence: &[u32]) -> Vec<Range<usize>> {
    let mut first = 0;
    let mut blocks = Vec::new();
    for run in sequence.chunk_by(|a, b| a == b) {
        let run = first..first + run.len();
        first = run.end;
        blocks.extend(run.clone().step_by(BLOCK).map(|start| start..run.end.min(start + BLOCK)));
    }
    blocks
}

/// Attention of a block of tokens; `scores` is memory that is used again.
pub(super) fn attend(
    kernels: &Kernels,
    head: Head<'_>,
    tokens: Range<usize>,
    qkv: Rows,
    out: Rows,
    scores: &mut Vec<f32>,
) {
    let sequence = head.h.sequence[tokens.start] as usize;
    let longest = tokens.clone().map(|token| head.length(token)).max().unwrap_or(0);
    let queries: Vec<(usize, usize)> = tokens.flat_map(|t| head.queries().map(move |h| (t, h))).collect();
    scores.clear();
    scores.resize(queries.len() * longest, 0.0);
    score(kernels, head, sequence, &queries, qkv, scores, longest);
    let sums: Vec<f32> = queries
        .iter()
        .zip(scores.chunks_exact_mut(longest))
        .map(|((token, _), scores)| {
            let (seen, later) = scores.split_at_mut(head.length(*token));
            later.fill(0.0);
            kernels.exponentials(seen, most(seen))
        })
        .collect();
    weigh(kernels, head, sequence, &queries, (scores, longest), &sums, out);
}

/// The greatest score, found in lanes.
pub(super) fn most(scores: &[f32]) -> f32 {
    let (whole, rest) = scores.as_chunks::<16>();
    let mut lanes = [f32::NEG_INFINITY; 16];
    for scores in whole {
        lanes.iter_mut().zip(scores).for_each(|(most, score)| *most = if *score > *most { *score } else { *most });
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// Scores of the queries with the first `longest` keys, (queries, keys).
fn score(
    kernels: &Kernels,
    head: Head<'_>,
    sequence: usize,
    queries: &[(usize, usize)],
    qkv: Rows,
    scores: &mut [f32],
    longest: usize,
) {
    let scale = head.scale();
    let mut panel: Vec<Column> = vec![[0.0; PANEL_ROWS]; head.h.head_dim];
    let mut sums: PanelSums = [[0.0; PANEL_ROWS]; PANEL_TOKENS];
    for key in (0..longest).step_by(PANEL_ROWS) {
        let count = PANEL_ROWS.min(longest - key);
        for lane in (0..PANEL_ROWS).step_by(TILE_ROWS) {
            // What is after the last key is the last key again, and its sums are not used.
            let row = |i: usize| head.of(head.keys, sequence, (key + lane + i).min(longest - 1), 1);
            kernels.widen(RowsOf::F32(std::array::from_fn(row)), &mut panel, lane);
        }
        let scores = scores.chunks_mut(PANEL_TOKENS * longest);
        for (queries, scores) in queries.chunks(PANEL_TOKENS).zip(scores) {
            // SAFETY: queries are only read.
            let query = |(token, h): (usize, usize)| unsafe { qkv.part(token, head.columns(h)) };
            let some: [&[f32]; PANEL_TOKENS] = std::array::from_fn(|i| queries.get(i).map_or(&[][..], |of| query(*of)));
            kernels.panel(&panel, &some[..queries.len()], &mut sums);
            for (scores, sums) in scores.chunks_exact_mut(longest).zip(&sums) {
                let scores = &mut scores[key..key + count];
                match <&mut [f32; PANEL_ROWS]>::try_from(&mut *scores) {
                    // Of a length that is known, so that it is one vector.
                    Ok(scores) => *scores = sums.map(|sum| sum * scale),
                    Err(_) => scores.iter_mut().zip(sums).for_each(|(score, sum)| *score = sum * scale),
                }
            }
        }
    }
}

/// Values weighed by the scores, of which `sums` are the totals.
fn weigh(
    kernels: &Kernels,
    head: Head<'_>,
    sequence: usize,
    queries: &[(usize, usize)],
    (scores, longest): (&[f32], usize),
    sums: &[f32],
    out: Rows,
) {
    let dim = head.h.head_dim;
    let mut panel: Vec<Column> = vec![[0.0; PANEL_ROWS]; longest];
    let mut weighed: PanelSums = [[0.0; PANEL_ROWS]; PANEL_TOKENS];
    for first in (0..dim).step_by(PANEL_ROWS) {
        let columns = first..dim.min(first + PANEL_ROWS);
        super::for_runs(head.h.plan, longest, |position, run| {
            let values = head.of(head.values, sequence, position, run);
            for (value, column) in values.chunks_exact(dim).zip(&mut panel[position..]) {
                match value[first..].first_chunk() {
                    // Of a length that is known, so that it is one vector.
                    Some(value) => *column = *value,
                    None => column[..columns.len()].copy_from_slice(&value[columns.clone()]),
                }
            }
        });
        let scores = scores.chunks(PANEL_TOKENS * longest);
        for ((queries, scores), sums) in queries.chunks(PANEL_TOKENS).zip(scores).zip(sums.chunks(PANEL_TOKENS)) {
            let part = |i: usize| scores.get(i * longest..(i + 1) * longest).unwrap_or_default();
            let some: [&[f32]; PANEL_TOKENS] = std::array::from_fn(part);
            kernels.panel(&panel, &some[..queries.len()], &mut weighed);
            for (((token, h), sum), weighed) in queries.iter().zip(sums).zip(&weighed) {
                let at = head.columns(*h).start + first;
                // SAFETY: this worker alone writes the heads of its share, of another buffer than it reads.
                let out = unsafe { out.part_mut(*token, at..at + columns.len()) };
                out.iter_mut().zip(weighed).for_each(|(out, weighed)| *out = weighed / sum);
            }
        }
    }
}
