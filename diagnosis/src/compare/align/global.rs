//! Global alignment of two short sequences of device operations (method §6.2): the cheapest way to lay one beside the other
//! by matches, substitutions inside a family, gaps with affine cost, and groups in which one kernel stands for several.

use std::ops::Range;

use super::symbol::{Slots, Symbol};
use crate::platform::{CanonicalOp, OpClass};

/// Costs in quarters of the method's unit.
mod cost {
    /// Same operator, but a kernel that the other side has elsewhere: decides only between equals.
    pub const OTHER_NAME: u32 = 1;
    /// Same operator, but another caller: the method's shape penalty, for what callers tell.
    pub const OTHER_CALL: u32 = 2;
    /// Another operator of the same family.
    pub const SUBSTITUTE: u32 = 4;
    /// Kernels that do together what others do together.
    pub const GROUP: u32 = 2;
    /// First operation of a run that only one side has.
    pub const OPEN: u32 = 8;
    /// Every further one.
    pub const EXTEND: u32 = 4;
}

/// What an operation costs that differs from the body of its layer: less than one that only one side has, since its place is known.
pub const FLAW: u32 = cost::EXTEND;

/// Kernels that one fused kernel may stand for (the fusion estimator of TraceLens uses the same limit).
pub const LONGEST_GROUP: usize = 15;
/// Kernels on each side of a group in which both sides fuse differently.
const CROSSED: usize = 4;
/// Largest product of the two lengths: some seven hundred kernels on each side. Longer sequences have layers, or no structure.
pub const MAX_CELLS: usize = 1 << 19;

/// How a stretch of one side lies beside a stretch of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// The same operator on both sides.
    Match,
    /// Operators of one family.
    Substitute,
    /// Kernels that do together what others do together.
    Group,
    /// Only one side has it.
    Gap,
}

impl Move {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Substitute => "substitute",
            Self::Group => "group",
            Self::Gap => "gap",
        }
    }
}

/// How these lie beside those, given that they do.
pub fn moved(a: &[CanonicalOp], b: &[CanonicalOp]) -> Move {
    match (a, b) {
        ([], _) | (_, []) => Move::Gap,
        ([x], [y]) if x == y => Move::Match,
        ([_], [_]) => Move::Substitute,
        _ => Move::Group,
    }
}

/// One column of an alignment: where it lies on either side. A gap has an empty range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Operations of the first sequence.
    pub a: Range<usize>,
    /// Operations of the second.
    pub b: Range<usize>,
    /// How they correspond.
    pub by: Move,
}

/// Lays `b` beside `a` at the least cost; `None` where the two are too long for it. The answer for the two exchanged is the
/// same with its sides exchanged.
pub fn align(a: &[Symbol], b: &[Symbol]) -> Option<(u32, Vec<Column>)> {
    if a.len().checked_mul(b.len())? > MAX_CELLS {
        return None;
    }
    if a == b {
        let same = |i: usize| Column { a: i..i + 1, b: i..i + 1, by: Move::Match };
        return Some((0, (0..a.len()).map(same).collect()));
    }
    // Of several cheapest alignments the trace-back takes one; which one must not depend on who is called first.
    if a <= b {
        return Some(Table::fill(a, b).trace());
    }
    let (cost, columns) = Table::fill(b, a).trace();
    Some((cost, columns.into_iter().map(|c| Column { a: c.b, b: c.a, by: c.by }).collect()))
}

/// What it costs to lay two operations beside each other; `None` where they have nothing to do with each other.
pub(super) fn pair(a: Symbol, b: Symbol) -> Option<(u32, Move)> {
    let call = if a.calls_differ(b) { cost::OTHER_CALL } else { 0 };
    let name = if a.names_differ(b) { cost::OTHER_NAME } else { 0 };
    let unknown = a.op == CanonicalOp::Other;
    match () {
        () if a == b => Some((0, Move::Match)),
        // What no pack knows is the same where it has the same name.
        () if a.op == b.op && (!unknown || (a.name.is_some() && a.name == b.name)) => Some((call + name, Move::Match)),
        () if a.op.class() == b.op.class() => Some((cost::SUBSTITUTE + call + name, Move::Substitute)),
        () => None,
    }
}

/// Whether a cast or copy lies beside a kernel that does the whole operator alone: then it is work of its own and no part of it.
fn pads(whole: Symbol, kernels: impl Iterator<Item = CanonicalOp> + Clone) -> bool {
    let alone = kernels.clone().any(|op| op.class() == whole.op.class());
    alone && kernels.into_iter().any(|op| op.class() == OpClass::Format)
}

/// What it costs that these operations do together what those do; `None` where they do not.
pub(super) fn group(a: &[Symbol], b: &[Symbol]) -> Option<u32> {
    if a.iter().chain(b).any(|s| s.op == CanonicalOp::Other) {
        return None;
    }
    let set = |side: &[Symbol]| side.iter().fold(Slots::default(), |all, s| all.union(s.slots));
    let fits = match (a, b) {
        ([one], many) | (many, [one]) if (2..=LONGEST_GROUP).contains(&many.len()) => {
            let kernels = set(many);
            kernels.is_within(one.parts())
                && !pads(*one, many.iter().map(|s| s.op))
                && one.makers().all(|makers| makers.meets(kernels))
        }
        (a, b) if (2..=CROSSED).contains(&a.len()) && (2..=CROSSED).contains(&b.len()) => {
            let fuses = |side: &[Symbol]| side.iter().any(|s| s.slots.len() > 1);
            fuses(a) && fuses(b) && set(a) == set(b)
        }
        _ => false,
    };
    let strangers = || a.iter().all(|a| b.iter().all(|b| a.calls_differ(*b)));
    fits.then(|| cost::GROUP + if strangers() { cost::OTHER_CALL } else { 0 })
}

/// What one operation may stand for, worked out once.
struct Whole {
    symbol: Symbol,
    parts: Slots,
    makers: Vec<Slots>,
}

impl Whole {
    fn of(symbol: Symbol) -> Self {
        Self { symbol, parts: symbol.parts(), makers: symbol.makers().collect() }
    }

    /// The numbers of operations at the end of `before` that together do what this one does, with what that costs.
    fn runs(&self, before: &[Symbol], mut found: impl FnMut(usize, u32)) {
        let (mut kernels, mut strangers) = (Slots::default(), true);
        for (n, symbol) in (1..=LONGEST_GROUP).zip(before.iter().rev()) {
            if !symbol.slots.is_within(self.parts) {
                return;
            }
            if self.symbol.op == CanonicalOp::Other || symbol.op == CanonicalOp::Other {
                return;
            }
            kernels = kernels.union(symbol.slots);
            strangers &= self.symbol.calls_differ(*symbol);
            let padded = || pads(self.symbol, before.iter().rev().take(n).map(|s| s.op));
            if n > 1 && !padded() && self.makers.iter().all(|makers| makers.meets(kernels)) {
                found(n, cost::GROUP + if strangers { cost::OTHER_CALL } else { 0 });
            }
        }
    }
}

/// How a cell was reached: by which move, over how many operations of each side, from which of the three tables.
#[derive(Clone, Copy, Default)]
struct Step {
    a: u8,
    b: u8,
    from: u8,
}

/// Costs and steps of the three ways in which a prefix pair can end: something laid beside something, a run of `a` alone, a
/// run of `b` alone (Gotoh's affine alignment).
struct Table<'a> {
    a: &'a [Symbol],
    b: &'a [Symbol],
    cost: Vec<[u32; 3]>,
    step: Vec<[Step; 3]>,
}

const PAIRED: usize = 0;
const ALONE_A: usize = 1;
const ALONE_B: usize = 2;
const NEVER: u32 = u32::MAX / 2;

impl<'a> Table<'a> {
    fn fill(a: &'a [Symbol], b: &'a [Symbol]) -> Self {
        let cells = (a.len() + 1) * (b.len() + 1);
        let mut table = Self { a, b, cost: vec![[NEVER; 3]; cells], step: vec![[Step::default(); 3]; cells] };
        if let Some(origin) = table.cost.first_mut() {
            origin[PAIRED] = 0;
        }
        let wholes = |side: &[Symbol]| -> Vec<Whole> { side.iter().map(|s| Whole::of(*s)).collect() };
        let wholes = [wholes(a), wholes(b)];
        let fuses = |side: &[Symbol]| side.iter().any(|s| s.slots.len() > 1);
        let crossed = if fuses(a) && fuses(b) { CROSSED } else { 0 };
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                table.paired(i, j, &wholes, crossed);
                if i > 0 {
                    table.alone(i, j, ALONE_A, (1, 0));
                }
                if j > 0 {
                    table.alone(i, j, ALONE_B, (0, 1));
                }
            }
        }
        table
    }

    fn at(&self, i: usize, j: usize) -> usize {
        i * (self.b.len() + 1) + j
    }

    /// The cheapest way to have come to a cell at all.
    fn best(&self, i: usize, j: usize) -> (u32, usize) {
        let costs = self.cost.get(self.at(i, j)).copied().unwrap_or([NEVER; 3]);
        let cheaper = |best: (u32, usize), (way, cost): (usize, u32)| if cost < best.0 { (cost, way) } else { best };
        costs.into_iter().enumerate().fold((NEVER, PAIRED), cheaper)
    }

    fn offer(&mut self, (i, j): (usize, usize), way: usize, cost: u32, (m, n): (usize, usize), from: usize) {
        let at = self.at(i, j);
        let (Some(held), Some(step)) = (self.cost.get_mut(at), self.step.get_mut(at)) else { return };
        if cost < held[way] {
            held[way] = cost;
            step[way] = Step { a: m as u8, b: n as u8, from: from as u8 };
        }
    }

    fn alone(&mut self, i: usize, j: usize, way: usize, (m, n): (usize, usize)) {
        let costs = self.cost.get(self.at(i - m, j - n)).copied().unwrap_or([NEVER; 3]);
        for (from, held) in costs.into_iter().enumerate() {
            let more = if from == way { cost::EXTEND } else { cost::OPEN };
            self.offer((i, j), way, held.saturating_add(more), (m, n), from);
        }
    }

    fn paired(&mut self, i: usize, j: usize, wholes: &[Vec<Whole>; 2], crossed: usize) {
        let (a, b) = (self.a, self.b);
        let last = |side: &'a [Symbol], n: usize| n.checked_sub(1).and_then(|n| side.get(n));
        let (Some(x), Some(y)) = (last(a, i), last(b, j)) else { return };
        if let Some((cost, _)) = pair(*x, *y) {
            let (held, from) = self.best(i - 1, j - 1);
            self.offer((i, j), PAIRED, held.saturating_add(cost), (1, 1), from);
        }
        if let Some(whole) = wholes[0].get(i - 1) {
            whole.runs(&b[..j], |n, cost| {
                let (held, from) = self.best(i - 1, j - n);
                self.offer((i, j), PAIRED, held.saturating_add(cost), (1, n), from);
            });
        }
        if let Some(whole) = wholes[1].get(j - 1) {
            whole.runs(&a[..i], |m, cost| {
                let (held, from) = self.best(i - m, j - 1);
                self.offer((i, j), PAIRED, held.saturating_add(cost), (m, 1), from);
            });
        }
        for (m, n) in (2..=crossed.min(i)).flat_map(|m| (2..=crossed.min(j)).map(move |n| (m, n))) {
            let Some(cost) = group(&a[i - m..i], &b[j - n..j]) else { continue };
            let (held, from) = self.best(i - m, j - n);
            self.offer((i, j), PAIRED, held.saturating_add(cost), (m, n), from);
        }
    }

    fn trace(self) -> (u32, Vec<Column>) {
        let (mut i, mut j) = (self.a.len(), self.b.len());
        let (total, mut way) = self.best(i, j);
        let mut columns = Vec::new();
        while i > 0 || j > 0 {
            let Some(step) = self.step.get(self.at(i, j)).and_then(|ways| ways.get(way)).copied() else { break };
            let (m, n) = (usize::from(step.a), usize::from(step.b));
            if m + n == 0 {
                break;
            }
            let by = match (m, n) {
                (1, 1) => {
                    let both = self.a.get(i - 1).zip(self.b.get(j - 1));
                    both.and_then(|(a, b)| pair(*a, *b)).map_or(Move::Substitute, |(_, by)| by)
                }
                (0, _) | (_, 0) => Move::Gap,
                _ => Move::Group,
            };
            columns.push(Column { a: i - m..i, b: j - n..j, by });
            (i, j, way) = (i - m, j - n, usize::from(step.from));
        }
        columns.reverse();
        (total, columns)
    }
}

#[cfg(test)]
mod tests;
