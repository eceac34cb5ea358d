//! Layers of the two sides made comparable: as many copies on both, each with its consensus.

use std::{cmp::Reverse, collections::HashMap, ops::Range};

use super::symbol::Symbol;
use crate::{analysis::period, platform::CanonicalOp};

/// Places at which a body is cut at most: a layer has two norms, several layers mined as one have more.
const MOST_CUTS: usize = 8;

/// Copies of one body in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Layers {
    /// First operation of the first copy.
    pub start: usize,
    /// Operations of a copy.
    pub len: usize,
    /// Copies.
    pub repeats: usize,
}

impl Layers {
    /// The layers of a sequence, if it has any, by every place at which they may be cut; the first is the one that is mined.
    pub fn cuts(symbols: &[Symbol]) -> Vec<Self> {
        let ops: Vec<u32> = symbols.iter().map(|s| s.op as u32).collect();
        let norms = [CanonicalOp::AddNorm as u32, CanonicalOp::Norm as u32];
        let Some(found) = period::mine(&ops, &norms) else { return Vec::new() };
        let own = |p: &period::Period| Self { start: p.start, len: p.len, repeats: p.repeats };
        found
            .cuts(&ops, &norms, &[CanonicalOp::Elementwise as u32, CanonicalOp::Format as u32])
            .iter()
            .take(MOST_CUTS)
            .map(own)
            .collect()
    }

    /// Operations of the copies that differ from the majority of their column.
    pub fn flaws(&self, symbols: &[Symbol]) -> u32 {
        let body = self.consensus(symbols);
        let own = symbols.get(self.start..self.end()).unwrap_or(&[]).iter().enumerate();
        let odd = own.filter(|(i, symbol)| body.get(i % self.len.max(1)).is_some_and(|usual| usual.op != symbol.op));
        u32::try_from(odd.count()).unwrap_or(u32::MAX)
    }

    /// First operation after the last copy.
    pub fn end(&self) -> usize {
        self.start + self.len * self.repeats
    }

    /// Where an operation lies: its copy and its column.
    pub fn column(&self, index: usize) -> Option<(usize, usize)> {
        let inside = (self.start..self.end()).contains(&index).then(|| index - self.start)?;
        Some((inside / self.len, inside % self.len))
    }

    /// The operations of a copy.
    pub fn copy(&self, number: usize) -> Range<usize> {
        let start = self.start + number * self.len;
        start..start + self.len
    }

    /// The majority of each column over the copies; the smallest of equals.
    pub fn consensus(&self, symbols: &[Symbol]) -> Vec<Symbol> {
        let column = |offset: usize| {
            let mut counts: HashMap<Symbol, usize> = HashMap::new();
            let copies = (0..self.repeats).filter_map(|n| symbols.get(self.start + n * self.len + offset));
            copies.for_each(|s| *counts.entry(*s).or_default() += 1);
            counts.into_iter().max_by_key(|(s, n)| (*n, Reverse(*s))).map(|(s, _)| s)
        };
        (0..self.len).filter_map(column).collect()
    }
}

/// A body that is so many times as long as the other side's, and not in as many copies, is of other layers.
const LONGER: usize = 2;
/// One copy in so many may be lost to the search.
const LOST: usize = 4;

/// Whether what was found on the two sides may be the same layers: a stack without fusion has many times as many operations in
/// each, but as many layers.
pub fn are_alike(a: &Layers, b: &Layers) -> bool {
    let (mut p, mut q) = (*a, *b);
    agree(&mut p, &mut q, (a.end(), b.end()));
    let as_many = a.repeats.abs_diff(b.repeats) * LOST <= a.repeats.max(b.repeats);
    as_many || p.len.max(q.len) <= LONGER * p.len.min(q.len)
}

/// Makes the two sides have as many copies. Where one side's body is several of the other's (alternating layers, mined as
/// one on one side only), the shorter body is taken so many times. Otherwise the side with more gives up its outermost
/// copies, where the other side's rest has the place for them: a record that was lost there hid a copy from the search.
pub fn agree(a: &mut Layers, b: &mut Layers, lengths: (usize, usize)) {
    if a.repeats < b.repeats {
        return agree(b, a, (lengths.1, lengths.0));
    }
    let times = a.repeats / b.repeats.max(1);
    if times > 1 && (a.len * times).abs_diff(b.len) < a.len.abs_diff(b.len) {
        (a.len, a.repeats) = (a.len * times, a.repeats / times);
        return agree(a, b, lengths);
    }
    let more = a.repeats.saturating_sub(b.repeats);
    let tail = |side: &Layers, length: usize| length.saturating_sub(side.end());
    let misfit = |first: usize| {
        let before = (a.start + first * a.len).abs_diff(b.start);
        let after = (tail(a, lengths.0) + (more - first) * a.len).abs_diff(tail(b, lengths.1));
        before + after
    };
    let first = (0..=more).min_by_key(|first| misfit(*first)).unwrap_or(0);
    (a.start, a.repeats) = (a.start + first * a.len, a.repeats - more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(start: usize, len: usize, repeats: usize) -> Layers {
        Layers { start, len, repeats }
    }

    #[test]
    fn both_sides_have_as_many_layers() {
        let agreed = |mut a: Layers, mut b: Layers, lengths| {
            agree(&mut a, &mut b, lengths);
            (a, b)
        };
        // Two types of layers in turn, mined as one body on one side.
        let (twice, whole) = (layers(3, 7, 12), layers(3, 14, 6));
        assert_eq!(agreed(twice, whole, (90, 90)), (layers(3, 14, 6), whole));
        assert_eq!(agreed(whole, twice, (90, 90)), (whole, layers(3, 14, 6)));
        // A lost record in the first copy of the second side: the rest is where the first side's first copy lies.
        assert_eq!(agreed(layers(4, 10, 8), layers(13, 10, 7), (90, 89)).0, layers(14, 10, 7));
        assert_eq!(agreed(layers(4, 10, 8), layers(4, 10, 7), (90, 89)).0, layers(4, 10, 7));
        // Half as many layers of the same length are fewer layers, not longer ones.
        assert_eq!(agreed(layers(0, 10, 8), layers(0, 10, 4), (80, 40)).0.repeats, 4);
    }

    #[test]
    fn layers_of_another_kind_are_not_laid_beside_each_other() {
        // Fused and unfused: as many layers, of other lengths.
        assert!(are_alike(&layers(3, 12, 32), &layers(3, 60, 32)));
        assert!(are_alike(&layers(3, 12, 32), &layers(3, 60, 30)));
        // Two types of layers in turn, mined as one body on one side.
        assert!(are_alike(&layers(3, 7, 12), &layers(3, 14, 6)));
        // One encoder's layers here, all that is done for each image there.
        assert!(!are_alike(&layers(80, 27, 24), &layers(3, 868, 4)));
    }

    #[test]
    fn the_consensus_is_the_majority_of_each_column() {
        use CanonicalOp::{Act, Gemm, Norm};
        let ops = [Norm, Gemm, Norm, Act, Norm, Gemm];
        let symbols: Vec<Symbol> = ops.iter().map(|op| Symbol::plain(*op)).collect();
        let body: Vec<CanonicalOp> = layers(0, 2, 3).consensus(&symbols).iter().map(|s| s.op).collect();
        assert_eq!(body, [Norm, Gemm]);
        assert_eq!(layers(1, 2, 2).column(4), Some((1, 1)));
        assert_eq!(layers(1, 2, 2).column(5), None);
    }
}
