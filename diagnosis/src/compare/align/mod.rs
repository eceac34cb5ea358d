//! Which operation of one side is which of the other (method §6.2).
//!
//! Of each side the step whose sequence of operators is the most frequent stands for its class. Its layers are found, the
//! consensus of one is laid beside that of the other, and so is what comes before and after. Every operation of every step
//! then has a slot: by its place in that sequence, or, where its step differs too much from it, by its operator alone. No
//! whole step is ever laid beside another at a cost that grows with the square of its length.

mod common;
mod global;
mod layers;
mod near;
mod sequence;
mod slot;
mod symbol;

use std::collections::{HashMap, HashSet};

use model::Ns;

pub use crate::platform::CanonicalOp as Op;
pub use global::Move;
pub use layers::Layers;
pub use sequence::{Reader, Sequence};
pub use slot::{Part, Slot};
pub use symbol::{Slots, Symbol};

use super::chosen::Chosen;
use crate::{analysis::Step, platform::CanonicalOp};

/// By what the operations of the two sides were brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By their place in a layer, or before and after the layers.
    Layers,
    /// By their place in the step: one of the sides shows no layers.
    Whole,
    /// By their operator alone: without layers, steps are too long to be laid beside each other.
    Operators,
}

impl Way {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Layers => "layers",
            Self::Whole => "whole",
            Self::Operators => "operators",
        }
    }
}

/// Where an operation lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// Index into [`Alignment::slots`].
    pub slot: u32,
    /// Layer of the model, from 0; absent outside the layers.
    pub layer: Option<u32>,
}

/// The slots of two sides and how each side's operations fall into them.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Alignment {
    /// All slots: those of the columns in the order of a step, then one per operator, then the step itself.
    pub slots: Vec<Slot>,
    /// By what operations are brought together.
    pub way: Way,
    /// Layers that both sides have, as far as they were found.
    pub layers: usize,
    /// The layers of each side as they were found in its reference step.
    pub found: [Option<Layers>; 2],
    /// Whether the callers of kernels were known on both sides and told equal kernels apart.
    pub callers: bool,
    #[serde(skip)]
    by_operator: usize,
    #[serde(skip)]
    references: [Reference; 2],
}

/// The step that stands for a class, operation by operation.
#[derive(Clone, Debug, Default)]
struct Reference {
    symbols: Vec<Symbol>,
    places: Vec<Place>,
}

/// Share of the operations whose callers must be known on both sides before callers tell anything: own value.
const CALLED: f64 = 0.9;

impl Alignment {
    /// Aligns two sides.
    pub fn of(sides: &[Chosen<'_>; 2]) -> Self {
        let mut sequences = sides.map(|side| {
            let reader = Reader::new(side);
            let mut sequence = reference(&side, &reader).map(|step| reader.read(step)).unwrap_or_default();
            reader.name(&mut sequence);
            sequence.symbols
        });
        let called = |symbols: &Vec<Symbol>| {
            let known = symbols.iter().filter(|s| s.call.is_some()).count();
            !symbols.is_empty() && known as f64 >= CALLED * symbols.len() as f64
        };
        let told = sequences.iter().all(called);
        if !told {
            sequences.iter_mut().flatten().for_each(|s| s.call = None);
        }
        share_names(&mut sequences);
        Self::build(sequences, told)
    }

    fn build(sequences: [Vec<Symbol>; 2], callers: bool) -> Self {
        let [a, b] = &sequences;
        let cuts = [Layers::cuts(a), Layers::cuts(b)];
        let mut found = [cuts[0].first().copied(), cuts[1].first().copied()];
        let mut slots = Vec::new();
        let near = near::lay(a, b, found);
        let cut = near.is_none().then(|| common_cut(a, b, &cuts)).flatten();
        let (way, layers, places) = match (near, cut.and_then(|cut| layered(a, b, cut, &mut slots))) {
            (Some(near), _) => {
                slots = near.slots;
                found = near.layers.map_or([None; 2], |layers| layers.map(Some));
                let way = if near.layers.is_some() { Way::Layers } else { Way::Whole };
                (way, near.layers.map_or(0, |[own, _]| own.repeats), near.places)
            }
            (None, Some((layers, places))) => {
                found = cut.map_or(found, |cut| cut.map(Some));
                (Way::Layers, layers, places)
            }
            (None, None) => match lay(Part::Whole, &mut slots, a, b) {
                Some(places) => (Way::Whole, 0, places.map(|side| side.into_iter().map(outside).collect())),
                None => (Way::Operators, 0, [a, b].map(|side| vec![UNPLACED; side.len()])),
            },
        };
        let by_operator = slots.len();
        let operator = |op: &CanonicalOp| Slot {
            part: Part::Anywhere,
            name: op.name().to_owned(),
            a: vec![*op],
            b: vec![*op],
            by: None,
            rare: false,
        };
        slots.extend(CanonicalOp::ALL.iter().map(operator));
        slots.push(Slot {
            part: Part::Step,
            name: Part::Step.key().to_owned(),
            a: vec![],
            b: vec![],
            by: None,
            rare: false,
        });
        let mut places = places.into_iter();
        let references = sequences.map(|mut symbols| {
            symbols.iter_mut().for_each(Symbol::forget);
            let placed = places.next().unwrap_or_default();
            let by_op = |(symbol, place): (&Symbol, Place)| match place {
                UNPLACED => anywhere(by_operator, symbol),
                place => place,
            };
            Reference { places: symbols.iter().zip(placed).map(by_op).collect(), symbols }
        });
        Self { slots, way, layers, found, callers, by_operator, references }
    }

    /// The slot of what belongs to no operation.
    pub fn step_slot(&self) -> u32 {
        self.slots.len().saturating_sub(1) as u32
    }

    /// Operations of a layer of one side, 0 or 1; 0 without layers.
    pub fn per_layer(&self, side: usize) -> usize {
        let own = |slot: &&Slot| slot.part == Part::Layer && !slot.rare;
        self.slots.iter().filter(own).map(|slot| if side == 0 { slot.a.len() } else { slot.b.len() }).sum()
    }
}

/// A place that is decided by the operator.
const UNPLACED: Place = Place { slot: u32::MAX, layer: None };

fn outside(slot: u32) -> Place {
    Place { slot, layer: None }
}

fn anywhere(by_operator: usize, symbol: &Symbol) -> Place {
    outside((by_operator + symbol.op as usize) as u32)
}

/// Lays one stretch beside another and appends its slots; `None` where both are too long for it.
fn lay(part: Part, slots: &mut Vec<Slot>, a: &[Symbol], b: &[Symbol]) -> Option<[Vec<u32>; 2]> {
    let (_, columns) = global::align(a, b)?;
    let (own, places) = slot::slots(part, slots.len(), &columns, a, b);
    slots.extend(own);
    Some(places)
}

/// Names that only one side has say nothing beside the other's; an operation that no pack knows keeps its own.
fn share_names(sequences: &mut [Vec<Symbol>; 2]) {
    let [a, b] = &*sequences;
    let of = |side: &[Symbol]| side.iter().filter_map(|s| s.name).collect::<HashSet<u64>>();
    let (of_a, of_b) = (of(a), of(b));
    let shared: HashSet<u64> = of_a.intersection(&of_b).copied().collect();
    for symbol in sequences.iter_mut().flatten().filter(|s| s.op != CanonicalOp::Other) {
        symbol.name = symbol.name.filter(|name| shared.contains(name));
    }
}

/// The cuts of both sides at the same place in a layer: of all pairs the one by which the whole steps are laid beside each other
/// at the least cost, flaws included; of equal ones those with the most copies, then the earliest. Which side is the first
/// decides nothing.
fn common_cut(a: &[Symbol], b: &[Symbol], cuts: &[Vec<Layers>; 2]) -> Option<[Layers; 2]> {
    let [of_a, of_b] = cuts;
    let turned = a > b;
    let price = |x: Layers, y: Layers| -> Option<(u32, std::cmp::Reverse<usize>, usize, usize)> {
        let (mut p, mut q) = (x, y);
        layers::agree(&mut p, &mut q, (a.len(), b.len()));
        let (body, _) = global::align(&p.consensus(a), &q.consensus(b))?;
        let outside = |from: fn(&Layers) -> usize, to: &dyn Fn(&Layers, usize) -> usize| -> Option<u32> {
            let a = a.get(from(&p)..to(&p, a.len()))?;
            let b = b.get(from(&q)..to(&q, b.len()))?;
            Some(global::align(a, b)?.0)
        };
        let before = outside(|_| 0, &|own, _| own.start).unwrap_or(0);
        let after = outside(Layers::end, &|_, len| len).unwrap_or(0);
        let flaws = p.flaws(a).saturating_add(q.flaws(b)).saturating_mul(global::FLAW);
        let repeats = p.repeats.min(q.repeats);
        let whole = body.saturating_mul(u32::try_from(repeats).unwrap_or(u32::MAX));
        let cost = whole.saturating_add(before).saturating_add(after).saturating_add(flaws);
        let first = if turned { q.start } else { p.start };
        (repeats > 0).then_some((cost, std::cmp::Reverse(repeats), p.start + q.start, first))
    };
    let pairs = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (*x, *y)));
    let pairs = pairs.filter(|(x, y)| layers::are_alike(x, y));
    let priced = pairs.filter_map(|(x, y)| Some((price(x, y)?, [x, y])));
    priced.min_by_key(|(price, _)| *price).map(|(_, pair)| pair)
}

type Places = [Vec<Place>; 2];

/// Slots by layer: how many layers both sides have, and the place of every operation of both.
fn layered(a: &[Symbol], b: &[Symbol], [mut x, mut y]: [Layers; 2], slots: &mut Vec<Slot>) -> Option<(usize, Places)> {
    layers::agree(&mut x, &mut y, (a.len(), b.len()));
    if x.repeats == 0 {
        return None;
    }
    let sides = [(a, x), (b, y)];
    let [before_a, before_b] = sides.map(|(side, layers)| side.get(..layers.start).unwrap_or(&[]));
    let [after_a, after_b] = sides.map(|(side, layers)| side.get(layers.end()..).unwrap_or(&[]));
    let bodies = sides.map(|(side, layers)| layers.consensus(side));
    let before = lay(Part::Before, slots, before_a, before_b);
    let body = lay(Part::Layer, slots, &bodies[0], &bodies[1])?;
    let after = lay(Part::After, slots, after_a, after_b);
    let place = |side: usize| {
        let (symbols, layers) = sides[side];
        let of = |part: &Option<[Vec<u32>; 2]>, index: usize| {
            part.as_ref().and_then(|part| part[side].get(index)).map_or(UNPLACED, |slot| outside(*slot))
        };
        let at = |index: usize| match layers.column(index) {
            Some((copy, column)) => {
                body[side].get(column).map_or(UNPLACED, |slot| Place { slot: *slot, layer: Some(copy as u32) })
            }
            None if index < layers.start => of(&before, index),
            None => of(&after, index - layers.end()),
        };
        (0..symbols.len()).map(at).collect()
    };
    Some((x.repeats, [place(0), place(1)]))
}

/// The step that stands for its class: of those with the most frequent sequence the one nearest the median.
fn reference<'a>(side: &Chosen<'a>, reader: &Reader<'_>) -> Option<&'a Step> {
    let far = |step: &Step| (step.window.len().abs_diff(side.class.p50), step.index);
    let mut groups: HashMap<Vec<Symbol>, (usize, &Step)> = HashMap::new();
    for step in side.steps() {
        let group = groups.entry(reader.read(step).symbols).or_insert((0, step));
        group.0 += 1;
        if far(step) < far(group.1) {
            group.1 = step;
        }
    }
    groups.into_values().max_by_key(|(count, step)| (*count, std::cmp::Reverse(far(step)))).map(|(_, step)| step)
}

/// Operations by which a step may differ from the reference before only their operators tell where they belong: own value,
/// some layers' worth of lost records.
const MOST_DIFFERENT: usize = 256;
/// Sequences other than the reference that are remembered, and positions that are compared in all: bounds for runs whose
/// steps are all different.
const REMEMBERED: usize = 64;
const BUDGET: usize = 100_000_000;

/// Gives the operations of one side's steps their places.
pub struct Placer<'a> {
    alignment: &'a Alignment,
    reference: &'a Reference,
    known: HashMap<Vec<Symbol>, Vec<Place>>,
    budget: usize,
}

impl<'a> Placer<'a> {
    /// For one side, 0 or 1.
    pub fn new(alignment: &'a Alignment, side: usize) -> Self {
        let reference = &alignment.references[side.min(1)];
        Self { alignment, reference, known: HashMap::new(), budget: BUDGET }
    }

    /// The places of a step's operations in the order of the timeline.
    pub fn step(&mut self, reader: &Reader<'_>, step: &Step) -> Vec<Place> {
        let sequence = reader.read(step);
        let mut places = vec![outside(self.alignment.step_slot()); step.ops.len()];
        for (op, place) in sequence.ops.iter().zip(self.place(&sequence.symbols)) {
            if let Some(slot) = op.checked_sub(step.ops.start).and_then(|i| places.get_mut(i)) {
                *slot = place;
            }
        }
        places
    }

    /// The places of a step's operations in canonical order.
    pub fn place(&mut self, symbols: &[Symbol]) -> Vec<Place> {
        if symbols == self.reference.symbols {
            return self.reference.places.clone();
        }
        if let Some(known) = self.known.get(symbols) {
            return known.clone();
        }
        let mut places: Vec<Place> = symbols.iter().map(|s| anywhere(self.alignment.by_operator, s)).collect();
        let cost = (symbols.len() + self.reference.symbols.len()).saturating_mul(MOST_DIFFERENT);
        let affordable = self.budget.checked_sub(cost);
        self.budget = affordable.unwrap_or(0);
        let shared = affordable.and_then(|_| common::common(symbols, &self.reference.symbols, MOST_DIFFERENT));
        for (own, reference) in shared.into_iter().flatten() {
            if let Some((place, known)) = places.get_mut(own).zip(self.reference.places.get(reference)) {
                *place = *known;
            }
        }
        if self.known.len() < REMEMBERED {
            self.known.insert(symbols.to_vec(), places.clone());
        }
        places
    }
}

/// Device time of one side by how surely its place is known, ns over the steps that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Coverage {
    /// All of it.
    pub busy: Ns,
    /// In operations whose operator is known and whose place in the step is.
    pub mapped: Ns,
    /// Of that, in slots that the other side has too.
    pub shared: Ns,
}

impl Coverage {
    /// Share that is mapped, in 0..=1; absent without device time.
    pub fn share(&self) -> Option<f64> {
        (self.busy > 0).then(|| self.mapped as f64 / self.busy as f64)
    }
}

#[cfg(test)]
mod tests;
