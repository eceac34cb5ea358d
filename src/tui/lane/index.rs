//! One lane, ready to be drawn at any zoom: a frame asks for as many answers as the terminal has columns, and each costs a
//! short search, however many slices there are.
//!
//! Busy time is exact: the columns of a window add up to what the lane covers of it, to the nanosecond. What was busy longest
//! in a column is exact too, and a column that shows part of several slices says so.

use std::{ops::Range, sync::Arc};

use model::{Ns, Span};

use super::kind::{KINDS, Kind};

/// Slices between two rows of running sums: 7.5 bytes a slice, and fewer additions beside them. A frame of a whole capture waits for
/// memory, and what it adds up in a column lies in two lines of the cache per array; with 64 it was eight.
const BLOCK: usize = 16;
/// Among so many slices one is looked for that begins later here than it says, since others overlap it.
const MOVED: usize = 64;
/// Steps in which a place is looked for around where it is expected: a line of the cache.
const NEAR: usize = 8;

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

/// When slices are, and which.
#[derive(Debug, Default)]
struct Times {
    start: Vec<Ns>,
    end: Vec<Ns>,
    row: Vec<u32>,
}

/// The slices of one lane in order of time.
#[derive(Clone, Debug, Default)]
pub struct LaneIndex {
    times: Arc<Times>,
    kind: Vec<Kind>,
    /// Sums of all slices before each block.
    before: Vec<Sums>,
    /// Added to all times, ns: from the clock that they were recorded with to the one that all lanes are drawn on.
    shift: Ns,
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
        let times =
            Times { start: Vec::with_capacity(count), end: Vec::with_capacity(count), row: Vec::with_capacity(count) };
        Self { times, kind: Vec::with_capacity(count), covered: Ns::MIN }
    }

    /// Puts one in. Where it overlaps those before, it counts from their end, so that busy time stays that of the union.
    pub fn push(&mut self, item: Item) {
        let start = item.span.start.max(self.covered);
        self.covered = item.span.end.max(start);
        self.times.start.push(start);
        self.times.end.push(self.covered);
        self.times.row.push(item.row);
        self.kind.push(item.kind);
    }

    /// The lane, ready to be drawn.
    pub fn finish(self) -> LaneIndex {
        LaneIndex::of(Arc::new(self.times), self.kind)
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
        Self::of(Arc::clone(&self.times), self.times.row.iter().copied().map(kind).collect())
    }

    fn of(times: Arc<Times>, kind: Vec<Kind>) -> Self {
        let mut before = Vec::with_capacity(kind.len() / BLOCK + 2);
        let mut sums: Sums = [0; KINDS];
        for (slot, ((start, end), kind)) in times.start.iter().zip(&times.end).zip(&kind).enumerate() {
            if slot.is_multiple_of(BLOCK) {
                before.push(sums);
            }
            if let Some(sum) = sums.get_mut(*kind as usize) {
                *sum += end - start;
            }
        }
        before.push(sums);
        Self { times, kind, before, shift: 0 }
    }

    /// The same on another clock, on which everything is so much later.
    pub fn shifted(self, by: Ns) -> Self {
        Self { shift: by, ..self }
    }

    /// What is added to the recorded times, ns.
    pub fn shift(&self) -> Ns {
        self.shift
    }

    /// Bytes that it allocates, those included that it shares.
    pub fn bytes(&self) -> usize {
        let Times { start, end, row } = &*self.times;
        size_of::<Ns>() * (start.capacity() + end.capacity())
            + size_of::<u32>() * row.capacity()
            + size_of::<Kind>() * self.kind.capacity()
            + size_of::<Sums>() * self.before.capacity()
    }

    /// Number of slices.
    pub fn len(&self) -> usize {
        self.times.start.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.start.is_empty()
    }

    /// What the lane's owner knows a slice by.
    pub fn row(&self, slot: usize) -> Option<u32> {
        self.times.row.get(slot).copied()
    }

    /// When a slice is.
    pub fn span(&self, slot: usize) -> Option<Span> {
        self.recorded(slot).map(|span| moved(span, self.shift))
    }

    /// When it is by the clock that it was recorded with.
    pub fn recorded(&self, slot: usize) -> Option<Span> {
        Some(Span::new(*self.times.start.get(slot)?, *self.times.end.get(slot)?))
    }

    /// What a slice is.
    pub fn kind(&self, slot: usize) -> Option<Kind> {
        self.kind.get(slot).copied()
    }

    /// From the first slice to the last.
    pub fn extent(&self) -> Option<Span> {
        Some(moved(Span::new(*self.times.start.first()?, *self.times.end.last()?), self.shift))
    }

    /// The slice at `t`, or else the one that is nearest to it.
    pub fn near(&self, t: Ns) -> Option<usize> {
        let t = t.saturating_sub(self.shift);
        let after = self.times.start.partition_point(|start| *start <= t);
        let Some(before) = after.checked_sub(1) else { return (!self.is_empty()).then_some(0) };
        let from_before = t.saturating_sub(*self.times.end.get(before)?);
        let to_after = self.times.start.get(after).map_or(Ns::MAX, |start| start.saturating_sub(t));
        Some(if from_before <= to_after { before } else { after })
    }

    /// The first slice that starts at `t` or later.
    pub fn first_from(&self, t: Ns) -> usize {
        let t = t.saturating_sub(self.shift);
        self.times.start.partition_point(|start| *start < t)
    }

    /// The slices that touch a window.
    pub fn touching(&self, window: Span) -> Range<usize> {
        let (mut first, last) = (self.first_from(window.start), self.first_from(window.end));
        while let Some(before) = first.checked_sub(1).filter(|at| self.span(*at).is_some_and(|s| s.end > window.start))
        {
            first = before;
        }
        first..last.max(first)
    }

    /// The slice with this `row` that starts at `t` by the clock that it was recorded with.
    pub fn find(&self, t: Ns, row: u32) -> Option<usize> {
        // An overlapped slice starts later here than it says.
        let near = self.times.start.partition_point(|start| *start < t);
        (near..self.len()).take(MOVED).find(|slot| self.row(*slot) == Some(row))
    }

    /// What each of `width` columns of a window shows. The edges are spread as evenly as whole nanoseconds allow.
    pub fn columns(&self, window: Span, width: u16, out: &mut Vec<Column>) {
        out.clear();
        let window = moved(window, self.shift.saturating_neg());
        let (part, rest) = (window.len() / Ns::from(width.max(1)), window.len() % Ns::from(width.max(1)));
        let edge = |i: u16| {
            let spread = rest * Ns::from(i) / Ns::from(width.max(1));
            window.start.saturating_add(part.saturating_mul(Ns::from(i)).saturating_add(spread))
        };
        let mut low = self.times.start.len().min(self.from(0, edge(0)));
        let mut sums_low: Option<Sums> = None;
        let (mut b, mut high) = (edge(0), low);
        for i in 1..=width {
            let a = std::mem::replace(&mut b, edge(i));
            // Columns beside each other hold about as many slices.
            let as_many = out.last().map_or(0, |column: &Column| column.count as usize);
            high = partition_near(&self.times.start, high.max(low), as_many, |start| *start < b);
            let mut column = Column { len: b - a, count: (high - low) as u32, slot: low as u32, ..Column::default() };
            if high > low && b > a {
                let (sums, sums_high) = self.between(low, high, sums_low);
                sums_low = sums_high;
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
                let reaches = high > low && self.times.end.get(high - 1).is_some_and(|end| *end > b);
                low = high - usize::from(reaches);
                sums_low = sums_low.filter(|_| !reaches);
            }
        }
    }

    /// The first slice from `low` on that touches what begins at `t`. A slice without length touches its own nanosecond.
    fn from(&self, low: usize, t: Ns) -> usize {
        let ends_before = |slot: usize| {
            let Times { start, end, .. } = &*self.times;
            start.get(slot).zip(end.get(slot)).is_some_and(|(start, end)| *end.max(&start.saturating_add(1)) <= t)
        };
        let mut size = self.len() - low.min(self.len());
        let mut first = low;
        while size > 0 {
            let half = size / 2;
            if ends_before(first + half) {
                first += half + 1;
                size -= half + 1;
            } else {
                size = half;
            }
        }
        first
    }

    /// Sums of the slices `low..high`, and of all slices before `high` where that was needed to know. `before_low` is the
    /// latter for `low`, if known.
    fn between(&self, low: usize, high: usize, before_low: Option<Sums>) -> (Sums, Option<Sums>) {
        if high - low <= 2 * BLOCK {
            let mut sums = [0; KINDS];
            self.add(&mut sums, low, high);
            return (sums, None);
        }
        let (from, to) = (before_low.unwrap_or_else(|| self.before(low)), self.before(high));
        (std::array::from_fn(|i| to.get(i).unwrap_or(&0) - from.get(i).unwrap_or(&0)), Some(to))
    }

    fn before(&self, slot: usize) -> Sums {
        let mut sums = self.before.get(slot / BLOCK).copied().unwrap_or_default();
        self.add(&mut sums, slot / BLOCK * BLOCK, slot);
        sums
    }

    fn add(&self, sums: &mut Sums, low: usize, high: usize) {
        for slot in low..high {
            if let Some((span, kind)) = self.recorded(slot).zip(self.kind(slot))
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
        if let Some(first) = self.recorded(low) {
            take(low, (column.start.min(first.end) - first.start).max(0));
        }
        if let Some(last) = self.recorded(high - 1) {
            take(high - 1, (last.end - column.end.max(last.start)).max(0));
        }
        sums
    }
}

/// An interval so much later.
pub fn moved(span: Span, by: Ns) -> Span {
    Span::new(span.start.saturating_add(by), span.end.saturating_add(by))
}

/// The first position from `low` on whose value does not satisfy `before`; it is looked for around `low + expected`.
fn partition_near(values: &[Ns], low: usize, expected: usize, before: impl Fn(&Ns) -> bool) -> usize {
    let is_before = |at: usize| values.get(at).is_some_and(&before);
    let guess = low.saturating_add(expected).min(values.len());
    let (mut from, mut to, mut step) = (low, guess, NEAR);
    if guess == low || is_before(guess - 1) {
        from = guess;
        while is_before(from + step - 1) {
            from += step;
            step *= 2;
        }
        to = (from + step - 1).min(values.len());
    } else {
        while to - low > step && !is_before(to - step) {
            to -= step;
            step *= 2;
        }
        from = from.max(to.saturating_sub(step));
    }
    from + values.get(from..to).map_or(0, |part| part.partition_point(before))
}

#[cfg(test)]
mod tests;
