#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::{
    compare::align::{Alignment, Move, Placer, Way},
    platform::CanonicalOp::{self, *},
};

/// A kernel of this operator and name.
fn kernel(op: CanonicalOp, name: u64) -> Symbol {
    Symbol { name: Some(name), ..Symbol::plain(op) }
}

/// An unfused layer as T5 has it: no norm by which it could be cut.
fn layer() -> Vec<Symbol> {
    let ops = [Elementwise, Reduce, Elementwise, Gemm, Gemm, Gemm, Attn, Format, Gemm, Elementwise, Act, Gemm];
    ops.iter().zip(0..).map(|(op, n)| kernel(*op, n)).collect()
}

fn step(layers: usize) -> Vec<Symbol> {
    let body = layer();
    let inner = body.iter().copied().cycle().take(body.len() * layers);
    [kernel(Embedding, 90)].into_iter().chain(inner).chain([kernel(Gemm, 91), kernel(Sample, 92)]).collect()
}

/// The keys of the slots that only one side has, and those that it has as something else.
fn odd(alignment: &Alignment) -> Vec<(String, Move)> {
    let odd = alignment.slots.iter().filter_map(|slot| Some((slot.key(), slot.by?)));
    odd.filter(|(_, by)| *by != Move::Match).collect()
}

/// How many operations of each side lie in a slot.
fn counts(alignment: &Alignment, key: &str) -> [usize; 2] {
    let slot = alignment.slots.iter().position(|slot| slot.key() == key).unwrap() as u32;
    [0, 1].map(|side| alignment.references[side].places.iter().filter(|place| place.slot == slot).count())
}

/// C1: the longest even stretch of layers began behind the added kernel, at another place in the layer, and 23 µs were told as
/// 18.1 ms more and less.
#[test]
fn c1_one_kernel_more_in_one_layer_moves_no_other() {
    for at in [1, 5, 60, 140, 200, 287] {
        let (a, mut b) = (step(24), step(24));
        b.insert(at, kernel(Quant, 50));
        let alignment = Alignment::build([a, b], false);
        assert_eq!((alignment.way, alignment.layers), (Way::Layers, 24), "at {at}");
        let odd = odd(&alignment);
        assert_eq!(odd.len(), 1, "at {at}: {odd:?}");
        assert!(odd[0].0.ends_with(".quant") && odd[0].1 == Move::Gap, "at {at}: {odd:?}");
        assert_eq!((alignment.per_layer(0), alignment.per_layer(1)), (12, 12), "one layer's kernel is in no other");
    }
}

/// C3: a kernel that was left out beside one of its operator became a fusion of the one that stays.
#[test]
fn c3_a_kernel_left_out_beside_one_of_its_kind_is_no_fusion() {
    let with = |extra: bool| -> Vec<Symbol> {
        let of = |s: &Symbol| {
            if *s == kernel(Elementwise, 9) && extra { vec![kernel(Elementwise, 70), *s] } else { vec![*s] }
        };
        step(24).iter().flat_map(of).collect()
    };
    let alignment = Alignment::build([with(true), with(false)], false);
    let odd = odd(&alignment);
    assert_eq!(odd.len(), 1, "{odd:?}");
    assert_eq!((counts(&alignment, &odd[0].0), odd[0].1), ([24, 0], Move::Gap));
}

/// C4: two independent kernels in the other order were told as work of one side alone.
#[test]
fn c4_the_same_kernels_in_another_order_are_the_same() {
    let swapped: Vec<Symbol> = {
        let mut body = layer();
        body.swap(9, 10);
        let inner = body.iter().copied().cycle().take(body.len() * 24);
        [kernel(Embedding, 90)].into_iter().chain(inner).chain([kernel(Gemm, 91), kernel(Sample, 92)]).collect()
    };
    assert_eq!(odd(&Alignment::build([step(24), swapped], false)), []);
}

/// C5: another kernel in some of the layers has the place of the one that it stands for; and so has one that no pack knows.
#[test]
fn c5_another_kernel_in_some_layers_lies_where_the_usual_one_does() {
    for other in [kernel(Act, 80), kernel(Other, 81)] {
        let mut b = step(24);
        (8..16).for_each(|n| b[1 + 12 * n + 10] = other);
        let alignment = Alignment::build([step(24), b], false);
        assert_eq!(odd(&alignment), []);
        assert_eq!(counts(&alignment, "layer.act"), [24, 24]);
    }
}

#[test]
fn the_same_kernel_once_more_is_a_further_call() {
    let of = |s: &Symbol| if s.op == Attn { vec![*s, *s] } else { vec![*s] };
    let twice: Vec<Symbol> = step(24).iter().flat_map(of).collect();
    let alignment = Alignment::build([step(24), twice], false);
    assert_eq!(odd(&alignment), []);
    assert_eq!(counts(&alignment, "layer.attn"), [24, 48]);
}

#[test]
fn kernels_that_are_done_in_one_are_one_slot_in_every_layer() {
    let of = |s: &Symbol| match s.name {
        Some(9) => vec![],
        Some(10) => vec![kernel(Act, 77)],
        _ => vec![*s],
    };
    let fused: Vec<Symbol> = step(24).iter().flat_map(of).collect();
    let alignment = Alignment::build([step(24), fused], false);
    assert_eq!(odd(&alignment), [("layer.act".to_owned(), Move::Group)]);
    assert_eq!(counts(&alignment, "layer.act"), [48, 24]);
    assert_eq!((alignment.per_layer(0), alignment.per_layer(1)), (12, 11));
}

/// One layer in which two kernels are done in one made a fusion of every layer, and one over the first layer's border moved all
/// layers' first kernels before the layers.
#[test]
fn a_fusion_in_one_layer_is_none_in_the_others() {
    let fused = |at: usize| {
        let mut b = step(24);
        b.splice(at..at + 2, [kernel(Elementwise, 77)]);
        Alignment::build([step(24), b], false)
    };
    let inside = fused(1 + 12 * 7 + 9);
    assert!(odd(&inside).iter().all(|(_, by)| *by != Move::Group), "{:?}", odd(&inside));
    assert_eq!((counts(&inside, "layer.act")[0], inside.per_layer(0)), (24, 12));
    let border = fused(12);
    assert_eq!((counts(&border, "layer.elementwise")[0], border.per_layer(0)), (24, 12));
}

#[test]
fn a_step_that_is_too_long_to_be_a_slot_each_is_told_by_its_operators() {
    let long: Vec<Symbol> = (0..30_000).map(|n| kernel(Gemm, n)).collect();
    assert_eq!(Alignment::build([long.clone(), long], false).way, Way::Operators);
}

#[test]
fn a_long_step_without_layers_is_laid_beside_one_that_is_nearly_the_same() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let long: Vec<Symbol> = (0..3000).map(|i| kernel(if random() % 7 < 3 { Gemm } else { Act }, i)).collect();
    let mut b = long.clone();
    b.remove(1500);
    let alignment = Alignment::build([long, b], false);
    assert_eq!((alignment.way, odd(&alignment).len()), (Way::Whole, 1));
}

#[test]
fn steps_of_other_kernels_are_not_laid_by_names() {
    let renamed: Vec<Symbol> = step(24).iter().map(|s| Symbol { name: None, ..*s }).collect();
    assert!(lay(&step(24), &renamed, [None; 2]).is_none());
    assert!(lay(&renamed, &renamed, [None; 2]).is_none(), "nothing says that they are the same kernels");
}

proptest! {
    #[test]
    fn every_operation_has_a_place_and_the_sides_may_be_exchanged(
        layers in 3usize..9, edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, 0u64..14), 0..9),
    ) {
        let a = step(layers);
        let mut b = a.clone();
        for (at, what, name) in edits {
            let at = at.index(b.len());
            match what {
                0 => b.insert(at, kernel([Quant, Gemm, Elementwise][name as usize % 3], name)),
                1 => { b.remove(at); }
                2 => b[at] = kernel(b[at].op, 40 + name),
                _ => { let other = (at + 1) % b.len(); b.swap(at, other); }
            }
        }
        let there = Alignment::build([a.clone(), b.clone()], false);
        let back = Alignment::build([b.clone(), a.clone()], false);
        prop_assert_eq!(there.slots.len(), back.slots.len());
        for (slot, other) in there.slots.iter().zip(&back.slots) {
            prop_assert_eq!((slot.key(), &slot.a, &slot.b), (other.key(), &other.b, &other.a));
        }
        for (side, symbols) in [(0, &a), (1, &b)] {
            let places = Placer::new(&there, side).place(symbols);
            prop_assert_eq!(&places, &Placer::new(&back, 1 - side).place(symbols));
            prop_assert_eq!(places.len(), symbols.len());
        }
        prop_assert!(odd(&Alignment::build([b.clone(), b], false)).is_empty());
    }
}
