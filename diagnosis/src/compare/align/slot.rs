//! Places in a step that both sides have, or one of them: what the time of the two is compared by.

use std::{collections::HashMap, ops::Range};

use super::{
    global::{Column, Move},
    symbol::{Slots, Symbol},
};
use crate::platform::CanonicalOp;

/// Where in a step a slot lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Before the layers.
    Before,
    /// In every layer.
    Layer,
    /// After the layers.
    After,
    /// In the step, where no layers were found on both sides.
    Whole,
    /// Anywhere: told by the operator alone.
    Anywhere,
    /// The step as a whole: from its last operation to the next step, and work that runs on into the next one.
    Step,
}

impl Part {
    /// All parts in the order of a step.
    pub const ALL: [Self; 6] = [Self::Before, Self::Layer, Self::After, Self::Whole, Self::Anywhere, Self::Step];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Layer => "layer",
            Self::After => "after",
            Self::Whole => "whole",
            Self::Anywhere => "anywhere",
            Self::Step => "step",
        }
    }
}

/// One place in a step.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Slot {
    /// Where it lies.
    pub part: Part,
    /// What it is, such as `gemm` or `norm`; `gemm#2` is the second of its part.
    pub name: String,
    /// Operators of the first side's kernels in it, in order.
    pub a: Vec<CanonicalOp>,
    /// Operators of the second side's.
    pub b: Vec<CanonicalOp>,
    /// How the two correspond; absent for what is told by the operator alone and for the step.
    pub by: Option<Move>,
    /// Whether only a few of the layers have it, so that it says nothing of what a layer is made of.
    pub rare: bool,
}

impl Slot {
    /// Name with its part, which is unique: `layer.gemm#2`.
    pub fn key(&self) -> String {
        match self.part {
            Part::Step => Part::Step.key().to_owned(),
            part => format!("{}.{}", part.key(), self.name),
        }
    }

    /// The operator that the kernels of both sides stand for: that of the side that needs fewer of them. `None` where only one
    /// side has any.
    pub fn stands_for(&self) -> Option<CanonicalOp> {
        let (a, b) = (self.a.first()?, self.b.first()?);
        Some(match self.a.len().cmp(&self.b.len()) {
            std::cmp::Ordering::Less => *a,
            std::cmp::Ordering::Equal => *a.min(b),
            std::cmp::Ordering::Greater => *b,
        })
    }

    /// The operator without its number.
    pub fn operator(&self) -> &str {
        self.name.split('#').next().unwrap_or(&self.name)
    }
}

/// The slots of the columns of one part, and for each operation of either side the slot that it lies in, counted from
/// `first`.
pub fn slots(part: Part, first: usize, columns: &[Column], a: &[Symbol], b: &[Symbol]) -> (Vec<Slot>, [Vec<u32>; 2]) {
    let mut names = Names::default();
    let mut places = [vec![0; a.len()], vec![0; b.len()]];
    let mut out = Vec::with_capacity(columns.len());
    for (n, column) in columns.iter().enumerate() {
        let ops = |side: &[Symbol], range: &Range<usize>| -> Vec<CanonicalOp> {
            side.get(range.clone()).unwrap_or(&[]).iter().map(|s| s.op).collect()
        };
        let (own_a, own_b) = (ops(a, &column.a), ops(b, &column.b));
        let name = names.next(part, &own_a, &own_b);
        for (side, range) in places.iter_mut().zip([&column.a, &column.b]) {
            let place = u32::try_from(first + n).unwrap_or(u32::MAX);
            side.get_mut(range.clone()).unwrap_or(&mut []).fill(place);
        }
        out.push(Slot { part, name, a: own_a, b: own_b, by: Some(column.by), rare: false });
    }
    (out, places)
}

/// Names of the slots of a step, given in its order.
#[derive(Default)]
pub struct Names {
    seen: HashMap<(Part, String), usize>,
}

impl Names {
    /// The name of the next slot with these operators; the second of a name in its part has its number.
    pub fn next(&mut self, part: Part, a: &[CanonicalOp], b: &[CanonicalOp]) -> String {
        let name = name(a, b);
        let count = self.seen.entry((part, name.clone())).and_modify(|n| *n += 1).or_insert(1);
        if *count > 1 { format!("{name}#{count}") } else { name }
    }
}

/// What kernels laid beside each other are called: as the side that needs fewer of them calls it.
fn name(a: &[CanonicalOp], b: &[CanonicalOp]) -> String {
    let told = match (a.len(), b.len()) {
        (0, _) => Slots::of(b),
        (_, 0) => Slots::of(a),
        (m, n) if m < n => Slots::of(a),
        (m, n) if m > n => Slots::of(b),
        _ => Slots::of(a).union(Slots::of(b)),
    };
    told.iter().map(CanonicalOp::name).collect::<Vec<_>>().join("/")
}
