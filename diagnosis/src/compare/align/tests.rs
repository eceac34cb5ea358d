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
