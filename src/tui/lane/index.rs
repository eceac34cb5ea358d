//! One lane, ready to be drawn at any zoom: a frame asks for as many answers as the terminal has columns, and each costs a
//! short search, however many slices there are.
//!
//! Busy time is exact: the columns of a window add up to what the lane covers of it, to the nanosecond. What was busy longest
//! in a column is exact too, and a column that shows part of several slices says so.

mod blocks;

use std::sync::Arc;

use blocks::Times;
use model::{Ns, Span};

use super::kind::{KINDS, Kind};

/// Slices of a block, before which running sums stand: 7.5 bytes a slice, and few additions beside them.
const BLOCK: usize = 16;
/// Among so many slices one is looked for that begins later here than it says, since others overlap it.
const MOVED: usize = 64;

/// A slice on its way into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// From when to when.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
    /// What the lane's owner knows it by.
    pub row: u32,
}

/// Nanoseconds by kind.
type Sums = [Ns; KINDS];

/// What some slices beside each other are.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    /// Sums of all slices before them.
    before: Sums,
    kind: [Kind; BLOCK],
}

/// The slices of one lane in order of time.
#[derive(Clone, Debug, Default)]
pub struct LaneIndex {
    times: Arc<Times>,
    kinds: Vec<Kinds>,
}

/// A lane while slices are put into it, in order of their start.
#[derive(Debug)]
pub struct Filling {
    times: Times,
    kind: Vec<Kind>,
    covered: Ns,
}

impl Filling {
    /// Room for `count` slices.
    pub fn of(count: usize) -> Self {
        Self { times: Times::of(count), kind: Vec::with_capacity(count), covered: Ns::MIN }
    }

    /// Puts one in. Where it overlaps those before, it counts from their end, so that busy time stays that of the union.
    pub fn push(&mut self, item: Item) {
        let start = item.span.start.max(self.covered);
        self.covered = item.span.end.max(start);
        self.times.push(Span::new(start, self.covered), item.row);
        self.kind.push(item.kind);
    }

    /// The lane, ready to be drawn.
    pub fn finish(self) -> LaneIndex {
        LaneIndex::of(Arc::new(self.times), self.kind.into_iter())
    }
}

/// What one column of a window shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Time that the lane is busy in it, ns.
    pub busy: Ns,
    /// Its length, ns.
    pub len: Ns,
    /// Slices that touch it.
    pub count: u32,
    /// What it is busy with the longest.
    pub kind: Kind,
    /// The first slice that touches it.
    pub slot: u32,
}

impl LaneIndex {
    /// Takes slices in order of their start.
    pub fn new(items: impl IntoIterator<Item = Item>) -> Self {
        let items = items.into_iter();
        let mut filling = Filling::of(items.size_hint().0);
        items.for_each(|item| filling.push(item));
        filling.finish()
    }

    /// The same slices with other kinds, told by the row. Both share the times.
    pub fn told_apart(&self, kind: impl FnMut(u32) -> Kind) -> Self {
        Self::of(Arc::clone(&self.times), self.times.rows().map(kind))
    }

    fn of(times: Arc<Times>, kind: impl Iterator<Item = Kind>) -> Self {
        let mut kinds: Vec<Kinds> = Vec::with_capacity(times.len().div_ceil(BLOCK));
        let mut sums: Sums = [0; KINDS];
        for (slot, kind) in (0..times.len()).zip(kind) {
            let at = slot % BLOCK;
            if at == 0 {
                kinds.push(Kinds { before: sums, kind: [Kind::default(); BLOCK] });
            }
            if let Some(block) = kinds.last_mut() {
                block.kind[at] = kind;
            }
            if let Some(sum) = sums.get_mut(kind as usize) {
                *sum += times.span(slot).map_or(0, Span::len);
            }
        }
        Self { times, kinds }
    }

    /// Bytes that it allocates, those included that it shares.
    pub fn bytes(&self) -> usize {
        self.times.bytes() + size_of::<Kinds>() * self.kinds.capacity()
    }

    /// Number of slices.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the lane's owner knows a slice by.
    pub fn row(&self, slot: usize) -> Option<u32> {
        self.times.row(slot)
    }

    /// When a slice is.
    pub fn span(&self, slot: usize) -> Option<Span> {
        self.times.span(slot)
    }

    /// What a slice is.
    pub fn kind(&self, slot: usize) -> Option<Kind> {
        let block = self.kinds.get(slot / BLOCK).filter(|_| slot < self.len())?;
        Some(block.kind[slot % BLOCK])
    }

    /// From the first slice to the last.
    pub fn extent(&self) -> Option<Span> {
        Some(Span::new(self.span(0)?.start, self.span(self.len() - 1)?.end))
    }

    /// The slice at `t`, or else the one that is nearest to it.
    pub fn near(&self, t: Ns) -> Option<usize> {
        let after = self.times.before(|start| start <= t);
        let Some(before) = after.checked_sub(1) else { return (!self.is_empty()).then_some(0) };
        let from_before = t.saturating_sub(self.span(before)?.end);
        let to_after = self.span(after).map_or(Ns::MAX, |span| span.start.saturating_sub(t));
        Some(if from_before <= to_after { before } else { after })
    }

    /// The first slice that starts at `t` or later.
    pub fn first_from(&self, t: Ns) -> usize {
        self.times.before(|start| start < t)
    }

    /// The slice with this `row` that starts at `t`.
    pub fn find(&self, t: Ns, row: u32) -> Option<usize> {
        // An overlapped slice starts later here than it says.
        (self.first_from(t)..self.len()).take(MOVED).find(|slot| self.row(*slot) == Some(row))
    }

    /// What each of `width` columns of a window shows. The edges are spread as evenly as whole nanoseconds allow.
    pub fn columns(&self, window: Span, width: u16, out: &mut Vec<Column>) {
        out.clear();
        let (part, rest) = (window.len() / Ns::from(width.max(1)), window.len() % Ns::from(width.max(1)));
        let edge = |i: u16| {
            let spread = rest * Ns::from(i) / Ns::from(width.max(1));
            window.start.saturating_add(part.saturating_mul(Ns::from(i)).saturating_add(spread))
        };
        let mut low = self.touching(edge(0));
        // Sums before the slice with which the last column ended.
        let mut known: Option<(usize, Sums)> = None;
        let (mut b, mut high) = (edge(0), low);
        for i in 1..=width {
            let a = std::mem::replace(&mut b, edge(i));
            // Columns beside each other hold about as many slices.
            let as_many = out.last().map_or(0, |column: &Column| column.count as usize);
            high = self.times.before_near(high.max(low) + as_many, |start| start < b).max(low);
            let mut column = Column { len: b - a, count: (high - low) as u32, slot: low as u32, ..Column::default() };
            if high > low && b > a {
                let sums = self.between(low, high, &mut known);
                let sums = self.clipped(sums, low, high, Span::new(a, b));
                column.busy = sums.iter().sum();
                let longest = sums.iter().enumerate().max_by_key(|(i, ns)| (**ns, std::cmp::Reverse(*i)));
                column.kind = match longest.filter(|(_, ns)| **ns > 0) {
                    Some((i, _)) => Kind::ALL.get(i).copied().unwrap_or_default(),
                    None => self.kind(low).unwrap_or_default(),
                };
            }
            out.push(column);
            if b > a {
                // The last slice may reach into the next column.
                let reaches = high > low && self.span(high - 1).is_some_and(|span| span.end > b);
                low = high - usize::from(reaches);
            }
        }
    }

    /// The first slice that touches what begins at `t`. A slice without length touches its own nanosecond.
    fn touching(&self, t: Ns) -> usize {
        let ends_before =
            |slot: usize| self.span(slot).is_some_and(|span| span.end.max(span.start.saturating_add(1)) <= t);
        // They do not overlap: of those that start before `t` only the last few can reach it, instants beside them.
        let mut first = self.times.before(|start| start < t);
        while first > 0 && !ends_before(first - 1) {
            first -= 1;
        }
        first
    }

    /// Sums of the slices `low..high`. Sums before a slot that were needed to know are kept in `known`, for the next column
    /// begins there or one slice earlier.
    fn between(&self, low: usize, high: usize, known: &mut Option<(usize, Sums)>) -> Sums {
        let mut sums = [0; KINDS];
        if high - low <= 2 * BLOCK {
            self.add(&mut sums, low, high);
            return sums;
        }
        let from = match known.take() {
            Some((at, before)) if low <= at && at <= low + 1 => {
                self.add(&mut sums, low, at);
                before
            }
            _ => self.before(low),
        };
        let to = self.before(high);
        sums.iter_mut().zip(to.iter().zip(&from)).for_each(|(sum, (to, from))| *sum += to - from);
        *known = Some((high, to));
        sums
    }

    /// Sums of all slices before one.
    fn before(&self, slot: usize) -> Sums {
        // Of the end of the last block too.
        let block = (slot / BLOCK).min(self.kinds.len().saturating_sub(1));
        let mut sums = self.kinds.get(block).map_or([0; KINDS], |block| block.before);
        self.add(&mut sums, block * BLOCK, slot);
        sums
    }

    fn add(&self, sums: &mut Sums, low: usize, high: usize) {
        for slot in low..high {
            if let Some((span, kind)) = self.span(slot).zip(self.kind(slot))
                && let Some(sum) = sums.get_mut(kind as usize)
            {
                *sum += span.len();
            }
        }
    }

    /// `sums` without what the first and the last of the slices `low..high` do outside of `column`.
    fn clipped(&self, mut sums: Sums, low: usize, high: usize, column: Span) -> Sums {
        let mut take = |slot: usize, ns: Ns| {
            if let Some(sum) = self.kind(slot).and_then(|kind| sums.get_mut(kind as usize)) {
                *sum -= ns;
            }
        };
        if let Some(first) = self.span(low) {
            take(low, (column.start.min(first.end) - first.start).max(0));
        }
        if let Some(last) = self.span(high - 1) {
            take(high - 1, (last.end - column.end.max(last.start)).max(0));
        }
        sums
    }
}

#[cfg(test)]
mod tests;
