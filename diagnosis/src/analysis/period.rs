//! Layers as repeats: the stretch of a symbol sequence that is one body repeated, with what comes before and after.
//!
//! A decode step runs the same kernels for every layer, so the sequence of its operators is prologue, body × layers,
//! epilogue. Sequences have flaws: a kernel picked differently in one layer, a name that no pack knows. The search
//! therefore goes by lag: for a period `p`, symbol `i` should equal symbol `i + p`; long stretches where almost all do
//! are candidates, and the body is the majority of each column over the copies. The work is the length of the sequence
//! times the longest body.

use std::{cmp::Reverse, ops::Range};

use rustc_hash::FxHashMap;

/// Longest sequence that is searched, in symbols: 20 000 is a step of 100 layers with 200 kernels each.
pub const MAX_SYMBOLS: usize = 20_000;

/// Longest body, in symbols: several layer types with a hundred kernels each, as unfused eager models have.
pub const MAX_BODY: usize = 1_000;

/// Fewest copies that make a period: two could be chance.
const MIN_REPEATS: usize = 3;

/// Least share of a copy's symbols that equal the body. Below it is other code.
const MIN_COPY: f64 = 0.7;

/// Least share over all copies.
const MIN_AGREEMENT: f64 = 0.85;

/// Cost of a mismatch in the search for the best stretch, where a match earns 1: one flaw makes two mismatches at a lag,
/// and a stretch survives one flaw in twelve symbols.
const MISMATCH: i64 = -5;

/// Loss at which a stretch ends although more gain may follow: what follows is another run of layers, at another phase.
const DROP: i64 = 60;

/// How many lags are looked at closely.
const CANDIDATES: usize = 16;

/// The layer structure of one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// Index of the first symbol of the first copy.
    pub start: usize,
    /// Symbols of the body.
    pub len: usize,
    /// Copies of the body.
    pub repeats: usize,
    /// The body: the majority symbol of each column over the copies.
    pub body: Vec<u32>,
    /// What comes before the first copy.
    pub prologue: Range<usize>,
    /// What comes after the last copy.
    pub epilogue: Range<usize>,
    /// Share of the symbols of all copies that equal the body, in 0..=1.
    pub agreement: f64,
}

impl Period {
    /// The same repeats cut elsewhere: before every symbol of `cut_before` that the body holds, and before one of `with` that
    /// belongs to it, this cut first. Which of two norms of a layer comes first the repeats do not say.
    pub fn cuts(&self, symbols: &[u32], cut_before: &[u32], with: &[u32]) -> Vec<Self> {
        let rotated = |offset: usize| self.body.iter().copied().cycle().skip(offset).take(self.len).collect();
        let after = self.body.iter().cycle().skip(1);
        let begins = |symbol: &u32, next: &u32| {
            cut_before.contains(symbol) || (with.contains(symbol) && cut_before.contains(next))
        };
        let preferred = self.body.iter().zip(after).enumerate().filter(|(n, (own, next))| *n > 0 && begins(own, next));
        let others = preferred.filter_map(|(offset, _)| place(symbols, self.start + offset, rotated(offset)));
        std::iter::once(self.clone()).chain(others).collect()
    }

    /// Symbols of all copies.
    fn covered(&self) -> usize {
        self.len * self.repeats
    }

    /// Symbols of the copies that differ from the body.
    fn flaws(&self) -> usize {
        ((1.0 - self.agreement) * self.covered() as f64).round() as usize
    }

    /// Symbols that the repeats explain: those that agree with the body, less the body itself.
    fn explained(&self) -> usize {
        self.covered().saturating_sub(self.flaws() + self.len)
    }

    /// Whether this period describes the sequence better than a shorter one: it explains a tenth more, or the shorter one
    /// has at least one flaw per long copy and the long copies hold a third of them. Layers of alternating types become
    /// pure so; chance flaws stay, whatever the length.
    fn betters(&self, shorter: &Self) -> bool {
        let systematic = shorter.flaws() * self.len >= shorter.covered() && self.repeats > MIN_REPEATS;
        let purer = self.flaws() * 3 <= shorter.flaws() && self.covered() + self.len >= shorter.covered();
        self.explained() * 10 > shorter.explained() * 11 || systematic && purer
    }
}

/// Finds the body whose repeats explain most of `symbols`, the shortest one among those that explain about the same. The
/// cut goes before a symbol of `cut_before` (norms) where the body holds one and at most one copy is lost by it. `None`
/// when no body of two or more different symbols repeats three times.
pub fn mine(symbols: &[u32], cut_before: &[u32]) -> Option<Period> {
    let symbols = symbols.get(..symbols.len().min(MAX_SYMBOLS))?;
    let mut best: Option<Period> = None;
    for (lag, stretch) in candidates(symbols) {
        let Some(period) = fit(symbols, lag, stretch, cut_before) else { continue };
        if best.as_ref().is_none_or(|held| period.betters(held)) {
            best = Some(period);
        }
    }
    best
}

/// The lags whose best stretches gain most, in ascending order, each with its stretch of starts.
fn candidates(symbols: &[u32]) -> Vec<(usize, Range<usize>)> {
    let longest = MAX_BODY.min(symbols.len() / MIN_REPEATS);
    let mut found: Vec<(i64, usize, Range<usize>)> = (2..=longest)
        .map(|lag| {
            let (gain, stretch) = best_stretch(symbols, lag);
            (gain, lag, stretch)
        })
        // Three copies, less what may be flawed at both ends, give more than one body's worth of agreeing pairs.
        .filter(|(_, lag, stretch)| stretch.len() > *lag)
        .collect();
    found.sort_by_key(|(gain, lag, _)| (Reverse(*gain), *lag));
    found.truncate(CANDIDATES);
    found.sort_by_key(|(_, lag, _)| *lag);
    found.into_iter().map(|(_, lag, stretch)| (lag, stretch)).collect()
}

/// The stretch of starts `i` with the best balance of `symbols[i] == symbols[i + lag]` (Kadane's maximum subarray), not
/// reaching over a loss of more than [`DROP`].
fn best_stretch(symbols: &[u32], lag: usize) -> (i64, Range<usize>) {
    let later = symbols.get(lag..).unwrap_or(&[]);
    let (mut best, mut best_range) = (0, 0..0);
    let (mut sum, mut peak, mut from) = (0, 0, 0);
    for (i, (a, b)) in symbols.iter().zip(later).enumerate() {
        sum += if a == b { 1 } else { MISMATCH };
        if sum > peak {
            peak = sum;
            if peak > best {
                (best, best_range) = (peak, from..i + 1);
            }
        } else if sum <= 0 || sum < peak - DROP {
            (sum, peak, from) = (0, 0, i + 1);
        }
    }
    (best, best_range)
}

/// The period of a lag: the majority of each column, cut where copies are most and, if it costs at most one copy, before a
/// preferred symbol.
fn fit(symbols: &[u32], lag: usize, stretch: Range<usize>, cut_before: &[u32]) -> Option<Period> {
    let run = stretch.start..(stretch.end + lag).min(symbols.len());
    let consensus = columns(symbols.get(run.clone())?, lag);
    if consensus.iter().all(|symbol| Some(symbol) == consensus.first()) {
        return None;
    }
    let cut_at = |offset: usize| {
        let body = consensus.iter().copied().cycle().skip(offset).take(lag).collect();
        place(symbols, run.start + offset, body)
    };
    let preferred = consensus.iter().enumerate().filter(|(_, symbol)| cut_before.contains(symbol));
    let at_norm = preferred.filter_map(|(offset, _)| cut_at(offset)).max_by_key(|p| (p.repeats, Reverse(p.start)));
    // A flaw near its start cuts the head off a stretch; what agrees there may complete one more copy.
    let head = (1..lag).rev().find(|head| agreeing_head(symbols, run.start, &consensus, *head));
    let widest = head.and_then(|head| cut_at(lag - head));
    let plain = [cut_at(0), widest].into_iter().flatten().max_by_key(|p| (p.repeats, Reverse(p.start)));
    match (plain, at_norm) {
        (Some(plain), Some(norm)) if norm.repeats + 1 < plain.repeats => Some(plain),
        (plain, norm) => norm.or(plain),
    }
}

/// Whether the `head` symbols before `start` are the end of a body, beginning with a symbol that agrees.
fn agreeing_head(symbols: &[u32], start: usize, body: &[u32], head: usize) -> bool {
    let tail = body.get(body.len() - head..).unwrap_or(&[]);
    let Some(before) = start.checked_sub(head).and_then(|from| symbols.get(from..start)) else { return false };
    let equal = before.iter().zip(tail).filter(|(a, b)| a == b).count();
    before.first() == tail.first() && equal as f64 >= MIN_COPY * head as f64
}

/// The majority symbol of each column of `run` laid out in rows of `len`; the smallest symbol among equals.
fn columns(run: &[u32], len: usize) -> Vec<u32> {
    let column = |offset: usize| {
        let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
        run.iter().skip(offset).step_by(len).for_each(|symbol| *counts.entry(*symbol).or_default() += 1);
        counts.into_iter().max_by_key(|(symbol, count)| (*count, Reverse(*symbol))).map_or(0, |(symbol, _)| symbol)
    };
    (0..len).map(column).collect()
}

/// Lays copies of `body` over the sequence in both directions from `anchor`, as far as they agree.
fn place(symbols: &[u32], anchor: usize, body: Vec<u32>) -> Option<Period> {
    let len = body.len();
    let equal = |at: usize| {
        let copy = symbols.get(at..at.checked_add(len)?)?;
        Some(copy.iter().zip(&body).filter(|(a, b)| a == b).count())
    };
    let agrees = |at: usize| equal(at).is_some_and(|n| n as f64 >= MIN_COPY * len as f64);
    let mut start = anchor;
    while start.checked_sub(len).is_some_and(agrees) {
        start -= len;
    }
    let mut end = start;
    let mut matching = 0;
    // One bad copy between good ones is a flaw, not the end.
    while agrees(end) || agrees(end + len) {
        matching += equal(end)?;
        end += len;
    }
    let repeats = (end - start) / len;
    let agreement = matching as f64 / (end - start).max(1) as f64;
    let epilogue = end..symbols.len();
    (repeats >= MIN_REPEATS && agreement >= MIN_AGREEMENT).then_some(Period {
        start,
        len,
        repeats,
        body,
        prologue: 0..start,
        epilogue,
        agreement,
    })
}

#[cfg(test)]
mod tests;
