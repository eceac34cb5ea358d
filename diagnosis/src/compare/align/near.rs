//! Two steps that are nearly one sequence of the same kernels: where one of them has a kernel more or less, another one, or the
//! same ones in another order.
//!
//! Each side's layers alone would begin where its longest even stretch does, so that one kernel more in one layer would lay
//! halves of two layers beside whole ones. Here the kernels that both have are found first, over the whole step; then one side's
//! layers are those of both, and only what is left over has a place of its own.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
};

use super::{
    Place, common, global,
    layers::Layers,
    slot::{self, Part, Slot},
    symbol::Symbol,
};
use crate::{
    analysis::period,
    platform::{CanonicalOp, OpClass},
};

/// Share of both sides' operations that must be the same kernels in the same order: own value. Below it the steps are the work
/// of other kernels, and which of them stand for which is the question of [`global`].
const SAME: f64 = 0.8;
/// Share of a step from which its layers are more than a chance repeat of a few kernels: own value.
const LAYERED: f64 = 0.1;
/// Operations at most in which the two differ: the memory of the search grows with its square.
const MOST: usize = 1024;
/// Operations of a step at most, as many as are searched for layers: each may become a slot.
const LONGEST: usize = period::MAX_SYMBOLS;

/// Where in a step an operation lies, apart from the number of its layer, in the order of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    part: Part,
    /// Number of the column in its part, from 1; what comes before the first has 0.
    column: usize,
    /// 0 for the column itself; what only the other side has behind it is counted from 1.
    behind: usize,
    op: Option<CanonicalOp>,
}

/// A spot and the layer that it was met in.
type Met = (Spot, Option<u32>);

/// The operators that one side has in a spot, layer by layer.
type Copies = BTreeMap<Option<u32>, Vec<CanonicalOp>>;

/// Both steps laid beside each other.
pub struct Near {
    /// The slots in the order of the step.
    pub slots: Vec<Slot>,
    /// The place of each operation of the two sides.
    pub places: [Vec<Place>; 2],
    /// Layers, where any were found on one of the sides, as each side has them.
    pub layers: Option<[Layers; 2]>,
}

/// Lays two sequences beside each other where they are nearly one. `mined` are the layers that each side shows by itself. The
/// answer for the two exchanged is the same with its sides exchanged.
pub fn lay(a: &[Symbol], b: &[Symbol], mined: [Option<Layers>; 2]) -> Option<Near> {
    let layered =
        |(layers, all): (Option<Layers>, usize)| layers.filter(|l| (l.len * l.repeats) as f64 >= LAYERED * all as f64);
    let mined = [(mined[0], a.len()), (mined[1], b.len())].map(layered);
    // Neither the order in which common kernels are looked for nor whose layers are taken may hang on who is called first.
    let turned = a > b;
    // Of as many layers the shorter, so that a kernel more is more; otherwise those that hold most of the step.
    let [x, y] = mined.map(|layers| layers.map_or((0, 0), |l| (l.repeats, l.len)));
    let by_b = match (x.0 * x.1).cmp(&(y.0 * y.1)) {
        Ordering::Equal => turned,
        longer => (longer == Ordering::Less) != (x.0 == y.0),
    };
    let pairs = if turned { pairs(b, a)?.into_iter().map(|(j, i)| (i, j)).collect() } else { pairs(a, b)? };
    let near = if by_b {
        let pairs: Vec<(usize, usize)> = pairs.into_iter().map(|(i, j)| (j, i)).collect();
        Laid::of(b, a, mined[1], &pairs).finish(b, a, true)
    } else {
        Laid::of(a, b, mined[0], &pairs).finish(a, b, false)
    };
    Some(near)
}

/// The kernels that both have, in order; `None` where these are too few.
fn pairs(a: &[Symbol], b: &[Symbol]) -> Option<Vec<(usize, usize)>> {
    let all = a.len() + b.len();
    if a.len().max(b.len()) > LONGEST {
        return None;
    }
    let most = ((1.0 - SAME) * all as f64) as usize;
    let pairs = common::common(a, b, most.min(MOST))?;
    let named = pairs.iter().filter(|(i, _)| a.get(*i).is_some_and(|s| s.name.is_some())).count();
    (all > 0 && 2.0 * named as f64 >= SAME * all as f64).then_some(pairs)
}

/// The places of one side, whose layers are taken, and of the other.
struct Laid {
    layers: Option<Layers>,
    own: Vec<Met>,
    other: Vec<Option<Met>>,
    /// Columns that are one with an earlier one, and in how many layers: the other side does both in one kernel.
    joined: BTreeMap<Spot, (Spot, usize)>,
}

impl Laid {
    fn of(own: &[Symbol], other: &[Symbol], layers: Option<Layers>, pairs: &[(usize, usize)]) -> Self {
        let met = (0..own.len()).map(|i| spot(layers.as_ref(), i)).collect();
        let mut laid = Self { layers, own: met, other: vec![None; other.len()], joined: BTreeMap::new() };
        let mut alone = Vec::new();
        let (mut i, mut j) = (0, 0);
        for (to_i, to_j) in pairs.iter().copied().chain([(own.len(), other.len())]) {
            alone.extend(laid.between(own, other, (i, to_i), (j, to_j)));
            if let (Some(place), Some(met)) = (laid.other.get_mut(to_j), laid.own.get(to_i)) {
                *place = Some(*met);
            }
            (i, j) = (to_i + 1, to_j + 1);
        }
        // What is done in one in a few layers says nothing of the others.
        let most = |spot: &Spot, layers: usize| spot.part != Part::Layer || 2 * layers > layers_of(laid.layers);
        laid.joined.retain(|spot, (_, layers)| most(spot, *layers));
        laid.moved(own, other, &alone);
        laid.left_over(other);
        laid
    }

    /// Lays what is between two common kernels beside each other; returns the own operations that stay alone.
    fn between(&mut self, own: &[Symbol], other: &[Symbol], x: (usize, usize), y: (usize, usize)) -> Vec<usize> {
        let stretch = |side: &[Symbol], (from, to): (usize, usize)| side.get(from..to).unwrap_or(&[]).to_vec();
        let (p, q) = (stretch(own, x), stretch(other, y));
        let mut alone: Vec<usize> = (x.0..x.1).collect();
        if p.is_empty() || q.is_empty() {
            return alone;
        }
        // A kernel that no pack knows, alone in the place of another, does its work.
        let unknown = |side: &[Symbol]| side.iter().any(|symbol| symbol.op == CanonicalOp::Other);
        let exchanged = || (p.len() == 1 && q.len() == 1 && (unknown(&p) || unknown(&q))).then(|| vec![(0..1, 0..1)]);
        let aligned = || {
            let (_, columns) = global::align(&p, &q)?;
            let both = columns.into_iter().filter(|c| !c.a.is_empty() && !c.b.is_empty());
            Some(both.map(|c| (c.a, c.b)).collect::<Vec<_>>())
        };
        // Kernels that work element by element, and one in their place that the other side has instead: they are done in one.
        let pointwise = |symbol: &Symbol| {
            matches!(
                symbol.op.class(),
                OpClass::Elementwise | OpClass::Norm | OpClass::Act | OpClass::Rope | OpClass::Quant
            )
        };
        let together = || {
            let one = p.len().min(q.len()) == 1 && (2..=global::LONGEST_GROUP).contains(&p.len().max(q.len()));
            let new = p.iter().all(|x| q.iter().all(|y| x.name != y.name || x.name.is_none()));
            (one && new && p.iter().chain(&q).all(pointwise)).then(|| vec![(0..p.len(), 0..q.len())])
        };
        for (of_p, of_q) in exchanged().or_else(together).or_else(aligned).unwrap_or_default() {
            let Some(first) = self.own.get(x.0 + of_p.start).copied() else { continue };
            for met in self.own.get(x.0 + of_p.start + 1..x.0 + of_p.end).unwrap_or(&[]) {
                // A fusion over the border of a layer is no fusion in every layer.
                if met.0.part == first.0.part && met.1 == first.1 {
                    self.joined.entry(met.0).or_insert((first.0, 0)).1 += 1;
                }
            }
            self.other.get_mut(y.0 + of_q.start..y.0 + of_q.end).unwrap_or(&mut []).fill(Some(first));
            alone.retain(|i| !(x.0 + of_p.start..x.0 + of_p.end).contains(i));
        }
        alone
    }

    /// What both have in one layer, but not in the same order, is the same.
    fn moved(&mut self, own: &[Symbol], other: &[Symbol], alone: &[usize]) {
        let mut left: HashMap<(Part, Option<u32>, Symbol), Vec<usize>> = HashMap::new();
        for i in alone.iter().rev() {
            if let (Some((spot, layer)), Some(symbol)) = (self.own.get(*i), own.get(*i)) {
                left.entry((spot.part, *layer, *symbol)).or_default().push(*i);
            }
        }
        let mut near = self.other.iter().flatten().next().copied();
        for (place, symbol) in self.other.iter_mut().zip(other) {
            near = place.or(near);
            let (None, Some((spot, layer)), Some(_)) = (&place, near, symbol.name) else { continue };
            let same = left.get_mut(&(spot.part, layer, *symbol)).and_then(Vec::pop);
            *place = same.and_then(|i| self.own.get(i).copied());
        }
    }

    /// What only the other side has lies behind what it follows; the same kernel once more is a further call of its neighbour.
    fn left_over(&mut self, other: &[Symbol]) {
        let first = if self.layers.is_some() { Part::Before } else { Part::Whole };
        let mut after: Option<(Symbol, Met)> = None;
        for (place, symbol) in self.other.iter_mut().zip(other).rev() {
            *place = place.or(after.filter(|(next, _)| again(*next, *symbol)).map(|(_, met)| met));
            after = place.map(|met| (*symbol, met));
        }
        let mut before: Option<Symbol> = None;
        let mut last = (Spot { part: first, column: 0, behind: 0, op: None }, None);
        for (place, symbol) in self.other.iter_mut().zip(other) {
            let (spot, layer) = last;
            let next = Spot { behind: spot.behind + 1, op: Some(symbol.op), ..spot };
            let further = before.is_some_and(|before| again(before, *symbol));
            last = place.unwrap_or((if further { spot } else { next }, layer));
            (*place, before) = (Some(last), Some(*symbol));
        }
    }

    fn root(&self, mut spot: Spot) -> Spot {
        while let Some((earlier, _)) = self.joined.get(&spot).filter(|(earlier, _)| *earlier < spot) {
            spot = *earlier;
        }
        spot
    }

    /// The slots of both; `turned` where the side whose layers are taken is the second.
    fn finish(self, own: &[Symbol], other: &[Symbol], turned: bool) -> Near {
        let of_own = self.own.iter().copied().zip(own);
        let of_other = self.other.iter().flatten().copied().zip(other);
        let mut found: BTreeMap<Spot, [Copies; 2]> = BTreeMap::new();
        for (side, ((spot, layer), symbol)) in of_own.map(|met| (0, met)).chain(of_other.map(|met| (1, met))) {
            let copies = found.entry(self.root(spot)).or_default();
            copies[usize::from(turned) ^ side].entry(layer).or_default().push(symbol.op);
        }
        let index: BTreeMap<Spot, u32> = found.keys().zip(0..).map(|(spot, i)| (*spot, i)).collect();
        let mut names = slot::Names::default();
        let repeats = layers_of(self.layers);
        let slots = found.iter().map(|(spot, sides)| {
            let [a, b] = sides.each_ref().map(usual);
            let copies = sides.iter().map(BTreeMap::len).max().unwrap_or(0);
            let rare = spot.part == Part::Layer && 2 * copies < repeats;
            Slot { part: spot.part, name: names.next(spot.part, &a, &b), by: Some(global::moved(&a, &b)), a, b, rare }
        });
        let slots: Vec<Slot> = slots.collect();
        let place =
            |(spot, layer): &Met| Place { slot: index.get(&self.root(*spot)).copied().unwrap_or(0), layer: *layer };
        let of_other: Vec<Met> = self.other.iter().flatten().copied().collect();
        let inside = of_other.iter().filter(|(spot, _)| spot.part == Part::Layer).count();
        let start = of_other.iter().take_while(|(spot, _)| spot.part == Part::Before).count();
        let layers =
            self.layers.map(|layers| [layers, Layers { start, len: inside / layers.repeats.max(1), ..layers }]);
        let mut places = [self.own.iter().map(place).collect::<Vec<_>>(), of_other.iter().map(place).collect()];
        if turned {
            places.reverse();
        }
        Near { slots, places, layers: layers.map(|[x, y]| if turned { [y, x] } else { [x, y] }) }
    }
}

fn layers_of(layers: Option<Layers>) -> usize {
    layers.map_or(1, |layers| layers.repeats)
}

/// Whether the second is a further call of the first.
fn again(first: Symbol, second: Symbol) -> bool {
    first == second && first.name.is_some()
}

fn spot(layers: Option<&Layers>, index: usize) -> Met {
    let at = |part, column: usize| Spot { part, column: column + 1, behind: 0, op: None };
    match layers.map(|layers| (layers, layers.column(index))) {
        None => (at(Part::Whole, index), None),
        Some((_, Some((copy, column)))) => (at(Part::Layer, column), Some(copy as u32)),
        Some((layers, None)) if index < layers.start => (at(Part::Before, index), None),
        Some((layers, None)) => (at(Part::After, index - layers.end()), None),
    }
}

/// What most copies have in a slot; the same kernel several times is one that is called more often.
fn usual(copies: &Copies) -> Vec<CanonicalOp> {
    let mut counts: BTreeMap<&Vec<CanonicalOp>, usize> = BTreeMap::new();
    copies.values().for_each(|ops| *counts.entry(ops).or_default() += 1);
    let most = counts.into_iter().max_by_key(|(_, n)| *n).map(|(ops, _)| ops.clone()).unwrap_or_default();
    match most.first() {
        Some(first) if most.iter().all(|op| op == first) => vec![*first],
        _ => most,
    }
}

#[cfg(test)]
mod tests;
