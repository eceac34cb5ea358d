#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::platform::CanonicalOp::{self, *};

fn plain(ops: &[CanonicalOp]) -> Vec<Symbol> {
    ops.iter().map(|op| Symbol::plain(*op)).collect()
}

fn fused(op: CanonicalOp, slots: &[CanonicalOp]) -> Symbol {
    Symbol { slots: Slots::of(slots), ..Symbol::plain(op) }
}

/// The least cost by trying every way to go on; `run` is the side that stands alone just now.
fn cheapest(a: &[Symbol], b: &[Symbol], run: Option<bool>) -> u32 {
    if a.is_empty() && b.is_empty() {
        return 0;
    }
    let mut least = NEVER;
    for m in 0..=a.len() {
        for n in 0..=b.len() {
            let side = n == 0;
            let (cost, next) = match (m, n) {
                (1, 0) | (0, 1) if run == Some(side) => (cost::EXTEND, Some(side)),
                (1, 0) | (0, 1) => (cost::OPEN, Some(side)),
                (_, 0) | (0, _) => continue,
                (1, 1) => match pair(a[0], b[0]) {
                    Some((cost, _)) => (cost, None),
                    None => continue,
                },
                _ => match group(&a[..m], &b[..n]) {
                    Some(cost) => (cost, None),
                    None => continue,
                },
            };
            least = least.min(cost + cheapest(&a[m..], &b[n..], next));
        }
    }
    least
}

/// What the columns of an alignment cost, counted from the columns alone.
fn price(a: &[Symbol], b: &[Symbol], columns: &[Column]) -> u32 {
    let mut run = None;
    columns
        .iter()
        .map(|c| {
            let alone = (c.by == Move::Gap).then_some(c.b.is_empty());
            let cost = match alone {
                Some(side) if run == Some(side) => cost::EXTEND,
                Some(_) => cost::OPEN,
                None if c.a.len() == 1 && c.b.len() == 1 => pair(a[c.a.start], b[c.b.start]).unwrap().0,
                None => group(&a[c.a.clone()], &b[c.b.clone()]).unwrap(),
            };
            run = alone;
            cost
        })
        .sum()
}

fn symbol() -> impl Strategy<Value = Symbol> {
    let plain = prop::sample::select(&[Gemm, Norm, AddNorm, Elementwise, Reduce, Rope, Attn, Fill, Other][..]);
    let kinds = prop_oneof![
        4 => plain.prop_map(Symbol::plain),
        1 => Just(fused(FusedAttnPre, &[Gemm, Norm, Rope])),
        1 => Just(fused(AddNorm, &[Elementwise, Norm])),
    ];
    (kinds, prop::option::of(0u64..2), prop::option::of(0u64..2)).prop_map(|(symbol, call, name)| Symbol {
        call,
        name,
        ..symbol
    })
}

proptest! {
    #[test]
    fn no_other_alignment_is_cheaper(
        a in prop::collection::vec(symbol(), 0..6), b in prop::collection::vec(symbol(), 0..6),
    ) {
        let (cost, columns) = align(&a, &b).unwrap();
        prop_assert_eq!(cost, cheapest(&a, &b, None));
        prop_assert_eq!(price(&a, &b, &columns), cost);
        let (mut i, mut j) = (0, 0);
        for c in &columns {
            prop_assert_eq!((c.a.start, c.b.start), (i, j));
            (i, j) = (c.a.end, c.b.end);
        }
        prop_assert_eq!((i, j), (a.len(), b.len()));
    }

    #[test]
    fn the_sides_may_be_exchanged(
        a in prop::collection::vec(symbol(), 0..24), b in prop::collection::vec(symbol(), 0..24),
    ) {
        let mirror = |c: &Column| Column { a: c.b.clone(), b: c.a.clone(), by: c.by };
        let (there, back) = (align(&a, &b).unwrap(), align(&b, &a).unwrap());
        prop_assert_eq!(there.0, back.0);
        prop_assert_eq!(there.1.iter().map(mirror).collect::<Vec<_>>(), back.1);
    }
}

#[test]
fn one_kernel_stands_for_the_several_that_it_fuses() {
    let moves = |a: &[Symbol], b: &[Symbol]| -> Vec<(Range<usize>, Range<usize>, Move)> {
        align(a, b).unwrap().1.into_iter().map(|c| (c.a, c.b, c.by)).collect()
    };
    let unfused = plain(&[Elementwise, Reduce, Elementwise, Elementwise, Gemm]);
    assert_eq!(moves(&plain(&[Norm, Gemm]), &unfused), [(0..1, 0..4, Move::Group), (1..2, 4..5, Move::Match)]);
    let prolog = [fused(FusedAttnPre, &[Gemm, Norm, Rope, KvWrite])];
    assert_eq!(moves(&plain(&[Norm, Gemm, Rope, KvWrite]), &prolog), [(0..4, 0..1, Move::Group)]);
    // A workspace that is cleared belongs to the product; a kernel that is no part of anything stands alone.
    let cleared = plain(&[Fill, Gemm, Rope]);
    assert_eq!(moves(&cleared, &plain(&[Gemm])), [(0..2, 0..1, Move::Group), (2..3, 1..1, Move::Gap)]);
    // Only the norm stands for a reduction; sampling between two products is none of either's business.
    assert_eq!(moves(&plain(&[Gemm, Sample]), &plain(&[Gemm])), [(0..1, 0..1, Move::Match), (1..2, 1..1, Move::Gap)]);
    assert_eq!(moves(&plain(&[Norm]), &plain(&[AddNorm])), [(0..1, 0..1, Move::Substitute)]);
}

#[test]
fn what_is_too_long_is_refused() {
    let long = plain(&[Norm; 1025]);
    assert!(align(&long, &long[..512]).is_none() && align(&long, &long[..4]).is_some());
}
