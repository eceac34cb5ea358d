#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::platform::CanonicalOp::{self, *};

const LAYER: [CanonicalOp; 8] = [AddNorm, Gemm, Rope, KvWrite, AttnDecode, Gemm, Act, Gemm];

fn step(before: &[CanonicalOp], layer: &[CanonicalOp], layers: usize, after: &[CanonicalOp]) -> Vec<Symbol> {
    let body = layer.iter().cycle().take(layer.len() * layers);
    before.iter().chain(body).chain(after).map(|op| Symbol::plain(*op)).collect()
}

fn keys(alignment: &Alignment, part: Part) -> Vec<(String, usize, usize)> {
    let own = alignment.slots.iter().filter(|slot| slot.part == part);
    own.map(|slot| (slot.key(), slot.a.len(), slot.b.len())).collect()
}

#[test]
fn layers_of_two_platforms_are_laid_beside_each_other_slot_by_slot() {
    let split =
        [Elementwise, Elementwise, Reduce, Elementwise, Gemm, Rope, KvWrite, AttnDecode, AttnCombine, Gemm, Act];
    let split: Vec<CanonicalOp> = split.into_iter().chain([Elementwise, Fill, Gemm]).collect();
    let a = step(&[Embedding], &LAYER, 6, &[AddNorm, Gemm, Sample]);
    let b = step(&[Index], &split, 6, &[AddNorm, Gemm, Sample]);
    let alignment = Alignment::build([a.clone(), b.clone()], false);
    assert_eq!((alignment.way, alignment.layers), (Way::Layers, 6));
    let layer: Vec<(String, usize, usize)> = keys(&alignment, Part::Layer);
    let key = |name: &str, a, b| (format!("layer.{name}"), a, b);
    let expected = [
        key("add_norm", 1, 4),
        key("gemm", 1, 1),
        key("rope", 1, 1),
        key("kv_write", 1, 1),
        key("attn_decode", 1, 2),
        key("gemm#2", 1, 1),
        key("act", 1, 2),
        key("gemm#3", 1, 2),
    ];
    assert_eq!(layer, expected);
    assert_eq!((alignment.per_layer(0), alignment.per_layer(1)), (8, 14));
    // Every operation has the slot of its column and the number of its copy.
    let places = Placer::new(&alignment, 1).place(&b);
    let last = places[1 + 14 * 5 + 13];
    assert_eq!((alignment.slots[last.slot as usize].key(), last.layer), ("layer.gemm#3".to_owned(), Some(5)));
    assert_eq!(alignment.slots[places.last().unwrap().slot as usize].key(), "after.sample");
}

#[test]
fn a_step_with_a_lost_record_keeps_the_places_of_the_others() {
    let whole = step(&[Embedding], &LAYER, 6, &[Sample]);
    let alignment = Alignment::build([whole.clone(), whole.clone()], false);
    let mut placer = Placer::new(&alignment, 0);
    let all = placer.place(&whole);
    let mut lost = whole.clone();
    lost.remove(20);
    let rest: Vec<Place> = all.iter().enumerate().filter(|(i, _)| *i != 20).map(|(_, place)| *place).collect();
    assert_eq!(placer.place(&lost), rest);
    // A kernel that the reference lacks is told by its operator.
    lost.insert(3, Symbol::plain(Quant));
    let place = placer.place(&lost)[3];
    assert_eq!(alignment.slots[place.slot as usize].key(), "anywhere.quant");
}

#[test]
fn without_layers_short_steps_are_compared_as_a_whole_and_long_ones_by_operator() {
    let short = step(&[Embedding, Gemm, Act, Gemm, Sample], &[], 0, &[]);
    let alignment = Alignment::build([short.clone(), short[1..].to_vec()], false);
    assert_eq!(alignment.way, Way::Whole);
    assert_eq!(keys(&alignment, Part::Whole)[0], ("whole.embedding".to_owned(), 1, 0));
    let long: Vec<Symbol> = (0..3000).map(|i: u32| Symbol::plain(if (i * i) % 7 < 3 { Gemm } else { Act })).collect();
    let odd: Vec<Symbol> = vec![Symbol::plain(Gemm); 3000];
    let alignment = Alignment::build([long, odd.clone()], false);
    assert_eq!(alignment.way, Way::Operators);
    let place = Placer::new(&alignment, 1).place(&odd)[7];
    assert_eq!(alignment.slots[place.slot as usize].key(), "anywhere.gemm");
}

/// How many operations of either side have a place that only one side has.
fn alone(alignment: &Alignment) -> usize {
    alignment.slots.iter().filter(|slot| slot.by == Some(Move::Gap)).count()
}

/// D2: two neighbours exchanged in one of 80 layers moved the cut of all others from one norm to the other.
#[test]
fn d2_one_flaw_in_one_layer_moves_nothing_else() {
    let layer = [AddNorm, Gemm, Rope, KvWrite, Attn, Gemm, CommAllReduce, AddNorm, Gemm, Act, Gemm, CommAllReduce];
    let base = step(&[Embedding], &layer, 80, &[AddNorm, Gemm, Sample]);
    for at in 0..layer.len() - 1 {
        for of in [0, 1, 40, 79] {
            let mut odd = base.clone();
            odd.swap(1 + of * layer.len() + at, 2 + of * layer.len() + at);
            let alignment = Alignment::build([base.clone(), odd.clone()], false);
            let found = alignment.found.map(Option::unwrap);
            assert_eq!(found[0].start % 12, found[1].start % 12, "cut at one place: {at} of layer {of}");
            assert_eq!(alone(&alignment), 0, "{at} of layer {of}");
            let exchanged = Alignment::build([odd, base.clone()], false);
            assert_eq!(exchanged.slots.len(), alignment.slots.len());
        }
    }
}

/// D2: a fused norm as two kernels in every layer is a difference of the norm and of nothing else.
#[test]
fn d2_a_norm_in_two_kernels_stays_a_norm() {
    let layer = [AddNorm, Gemm, Rope, KvWrite, Attn, Gemm, AddNorm, Gemm, Act, Gemm];
    let split: Vec<CanonicalOp> =
        layer.iter().flat_map(|op| if *op == AddNorm { vec![Elementwise, Norm] } else { vec![*op] }).collect();
    let a = step(&[Embedding], &layer, 18, &[AddNorm, Gemm, Sample]);
    let b = step(&[Embedding], &split, 18, &[Elementwise, Norm, Gemm, Sample]);
    for sides in [[a.clone(), b.clone()], [b, a]] {
        let alignment = Alignment::build(sides, false);
        assert_eq!(alone(&alignment), 0, "{:?}", alignment.slots);
        let groups = alignment.slots.iter().filter(|slot| slot.by == Some(Move::Group));
        assert!(groups.map(Slot::operator).all(|name| name == "add_norm"));
    }
}

fn unnamed(name: &str) -> Symbol {
    Symbol { name: Some(symbol::number(name)), ..Symbol::plain(Other) }
}

/// D3: kernels that no pack knows were told apart by nothing and laid beside each other in heaps.
#[test]
fn d3_unnamed_kernels_match_by_name_and_a_side_beside_itself_is_itself() {
    let body: Vec<Symbol> = (0..12).map(|i| unnamed(&format!("kernel_{}", i % 5))).collect();
    let alignment = Alignment::build([body.clone(), body.clone()], false);
    assert!(alignment.slots.iter().all(|slot| slot.by.is_none_or(|by| by == Move::Match)));
    let one: Vec<Symbol> = std::iter::once(unnamed("new")).chain(body.clone()).collect();
    let alignment = Alignment::build([body, one], false);
    let by = |by: Move| alignment.slots.iter().filter(|slot| slot.by == Some(by)).count();
    assert_eq!((by(Move::Match), by(Move::Gap), by(Move::Group)), (12, 1, 0));
}

/// What lies beside a kernel that does the whole operator is no part of it.
#[test]
fn a_cast_beside_a_norm_is_a_cast_and_no_norm() {
    let a = step(&[], &LAYER, 6, &[Sample]);
    let cast = [Format, AddNorm, Gemm, Rope, KvWrite, AttnDecode, Gemm, Act, Format, Gemm];
    let b = step(&[], &cast, 6, &[Sample]);
    let alignment = Alignment::build([a, b], false);
    let gaps: Vec<&str> = alignment.slots.iter().filter(|s| s.by == Some(Move::Gap)).map(Slot::operator).collect();
    assert_eq!(gaps.iter().filter(|name| **name == "format").count(), gaps.len(), "{gaps:?}");
    assert!(!gaps.is_empty());
}
