//! One lane, ready to be drawn at any zoom: a frame asks for as many answers as the terminal has columns, and each costs a
//! short search, however many slices there are.
//!
//! Busy time is exact: the columns of a window add up to what the lane covers of it, to the nanosecond. What was busy longest
//! in a column is exact too, and a column that shows part of several slices says so.

use model::{Ns, Span};

use super::kind::{KINDS, Kind};

/// Slices between two rows of running sums: 2 bytes a slice, and at most so many additions beside them.
const BLOCK: usize = 64;

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

/// The slices of one lane in order of time.
#[derive(Clone, Debug, Default)]
pub struct LaneIndex {
    start: Vec<Ns>,
    end: Vec<Ns>,
    kind: Vec<Kind>,
    row: Vec<u32>,
    /// Sums of all slices before each block.
    before: Vec<Sums>,
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
    /// Takes slices in order of their start. Where they overlap, a later one counts from the end of those before it, so that
    /// busy time stays that of the union.
    pub fn new(items: impl IntoIterator<Item = Item>) -> Self {
        let mut lane = Self::default();
        let (mut sums, mut covered) = ([0; KINDS], Ns::MIN);
        for item in items {
            if lane.start.len().is_multiple_of(BLOCK) {
                lane.before.push(sums);
            }
            let start = item.span.start.max(covered);
            let end = item.span.end.max(start);
            covered = end;
            if let Some(sum) = sums.get_mut(item.kind as usize) {
                *sum += end - start;
            }
            lane.start.push(start);
            lane.end.push(end);
            lane.kind.push(item.kind);
            lane.row.push(item.row);
        }
        lane.before.push(sums);
        lane
    }

    /// Number of slices.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// What the lane's owner knows a slice by.
    pub fn row(&self, slot: usize) -> Option<u32> {
        self.row.get(slot).copied()
    }

    /// When a slice is.
    pub fn span(&self, slot: usize) -> Option<Span> {
        Some(Span::new(*self.start.get(slot)?, *self.end.get(slot)?))
    }

    /// What a slice is.
    pub fn kind(&self, slot: usize) -> Option<Kind> {
        self.kind.get(slot).copied()
    }

    /// From the first slice to the last.
    pub fn extent(&self) -> Option<Span> {
        Some(Span::new(*self.start.first()?, *self.end.last()?))
    }

    /// The slice at `t`, or else the one that is nearest to it.
    pub fn near(&self, t: Ns) -> Option<usize> {
        let after = self.start.partition_point(|start| *start <= t);
        let Some(before) = after.checked_sub(1) else { return (!self.is_empty()).then_some(0) };
        let from_before = t.saturating_sub(*self.end.get(before)?);
        let to_after = self.start.get(after).map_or(Ns::MAX, |start| start.saturating_sub(t));
        Some(if from_before <= to_after { before } else { after })
    }

    /// The first slice that starts at `t` or later.
    pub fn first_from(&self, t: Ns) -> usize {
        self.start.partition_point(|start| *start < t)
    }

    /// The slice with this `row` that starts at `t`.
    pub fn find(&self, t: Ns, row: u32) -> Option<usize> {
        // An overlapped slice starts later here than it says.
        let near = self.start.partition_point(|start| *start < t);
        (near..self.len()).take(BLOCK).find(|slot| self.row(*slot) == Some(row))
    }

    /// What each of `width` columns of a window shows. The edges are spread as evenly as whole nanoseconds allow.
    pub fn columns(&self, window: Span, width: u16, out: &mut Vec<Column>) {
        out.clear();
        let edge = |i: u16| {
            let part = i128::from(window.len()) * i128::from(i) / i128::from(width.max(1));
            window.start.saturating_add(part as Ns)
        };
        let mut low = self.start.len().min(self.from(0, edge(0)));
        let mut sums_low: Option<Sums> = None;
        for i in 0..width {
            let (a, b) = (edge(i), edge(i + 1));
            let high = gallop(&self.start, low, |start| *start < b);
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
                let reaches = high > low && self.end.get(high - 1).is_some_and(|end| *end > b);
                low = high - usize::from(reaches);
                sums_low = sums_low.filter(|_| !reaches);
            }
        }
    }

    /// The first slice from `low` on that touches what begins at `t`. A slice without length touches its own nanosecond.
    fn from(&self, low: usize, t: Ns) -> usize {
        let ends_before = |slot: usize| {
            self.start
                .get(slot)
                .zip(self.end.get(slot))
                .is_some_and(|(start, end)| *end.max(&start.saturating_add(1)) <= t)
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

/// The first position from `low` on whose value does not satisfy `before`, found in steps that double.
fn gallop(values: &[Ns], low: usize, before: impl Fn(&Ns) -> bool) -> usize {
    let mut step = 1;
    let mut from = low;
    while values.get(from + step - 1).is_some_and(&before) {
        from += step;
        step *= 2;
    }
    let to = (from + step - 1).min(values.len());
    from + values.get(from..to).map_or(0, |part| part.partition_point(before))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn items(raw: &[(u16, u16, u8)]) -> Vec<Item> {
        let mut at = 0;
        let item = |(row, (gap, len, kind)): (usize, &(u16, u16, u8))| {
            at += Ns::from(*gap);
            let start = at;
            // A third of the slices reach over the start of the next one.
            at += Ns::from(*len) / if row % 3 == 0 { 2 } else { 1 };
            let kind = Kind::ALL[usize::from(*kind) % KINDS];
            Item { span: Span::new(start, start + Ns::from(*len)), kind, row: row as u32 }
        };
        raw.iter().enumerate().map(item).collect()
    }

    /// The same answers, nanosecond by nanosecond of the clipped slices.
    fn brute(lane: &LaneIndex, column: Span) -> Column {
        let mut sums = [0; KINDS];
        let mut shown = Column { len: column.len(), ..Column::default() };
        for slot in 0..lane.len() {
            let span = lane.span(slot).unwrap();
            let touches = span.start < column.end && span.end.max(span.start + 1) > column.start;
            if touches && !column.is_empty() {
                shown.slot = if shown.count == 0 { slot as u32 } else { shown.slot };
                shown.count += 1;
                sums[lane.kind(slot).unwrap() as usize] += span.clip(column).len();
            }
        }
        shown.busy = sums.iter().sum();
        shown
    }

    proptest! {
        #[test]
        fn columns_are_exact(
            raw in proptest::collection::vec((0u16..40, 0u16..90, 0u8..15), 0..300),
            from in -50i64..9000, len in 0i64..20000, width in 1u16..90,
        ) {
            let given = items(&raw);
            let lane = LaneIndex::new(given.iter().copied());
            let window = Span::new(from, from + len);
            let mut columns = Vec::new();
            lane.columns(window, width, &mut columns);
            prop_assert_eq!(columns.len(), usize::from(width));
            let mut covered: Vec<(Ns, Ns)> = Vec::new();
            for item in &given {
                let part = item.span.clip(window);
                match covered.last_mut() {
                    Some(last) if part.start <= last.1 => last.1 = last.1.max(part.end),
                    _ => covered.push((part.start, part.end)),
                }
            }
            let union: Ns = covered.iter().map(|(a, b)| b - a).sum();
            prop_assert_eq!(columns.iter().map(|c| c.busy).sum::<Ns>(), union);
            let mut start = window.start;
            for shown in columns {
                let expected = brute(&lane, Span::new(start, start + shown.len));
                start += shown.len;
                prop_assert_eq!((shown.busy, shown.len), (expected.busy, expected.len));
                if shown.len > 0 {
                    prop_assert_eq!(shown.count, expected.count);
                }
                if shown.count > 0 && shown.len > 0 {
                    prop_assert_eq!(shown.slot, expected.slot);
                }
            }
            prop_assert_eq!(start, window.end);
        }

        #[test]
        fn the_dominant_kind_is_the_longest(raw in proptest::collection::vec((0u16..3, 0u16..9, 0u8..15), 1..900)) {
            let lane = LaneIndex::new(items(&raw));
            let extent = lane.extent().unwrap();
            let mut columns = Vec::new();
            lane.columns(extent, 3, &mut columns);
            let mut start = extent.start;
            for shown in columns {
                let column = Span::new(start, start + shown.len);
                start = column.end;
                let time = |kind: Kind| -> Ns {
                    (0..lane.len())
                        .filter(|slot| lane.kind(*slot) == Some(kind))
                        .map(|slot| lane.span(slot).unwrap().clip(column).len())
                        .sum()
                };
                let most = Kind::ALL.into_iter().map(time).max().unwrap();
                prop_assert!(shown.busy == 0 || time(shown.kind) == most, "{:?}", shown);
            }
        }

        #[test]
        fn the_nearest_slice_is_the_nearest(raw in proptest::collection::vec((1u16..40, 1u16..30, 0u8..15), 1..60), t in -20i64..2000) {
            let mut at = 0;
            let apart = raw.iter().map(|(gap, len, _)| {
                at += Ns::from(*gap);
                let span = Span::new(at, at + Ns::from(*len));
                at = span.end;
                Item { span, kind: Kind::Host, row: 0 }
            });
            let lane = LaneIndex::new(apart);
            let far = |slot: usize| {
                let span = lane.span(slot).unwrap();
                (span.start - t).max(t - span.end).max(0)
            };
            let near = lane.near(t).unwrap();
            prop_assert_eq!(far(near), (0..lane.len()).map(far).min().unwrap());
        }
    }

    #[test]
    fn an_instant_is_seen_and_an_empty_lane_is_empty() {
        let instant = Item { span: Span::new(50, 50), kind: Kind::Device, row: 7 };
        let mut columns = Vec::new();
        LaneIndex::new([instant]).columns(Span::new(0, 100), 10, &mut columns);
        let seen: Vec<u32> = columns.iter().map(|c| c.count).collect();
        assert_eq!(seen, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(columns[5].kind, Kind::Device);
        LaneIndex::new([]).columns(Span::new(0, 100), 4, &mut columns);
        assert!(columns.iter().all(|c| c.count == 0 && c.busy == 0));
        assert_eq!(LaneIndex::new([]).near(3), None);
        LaneIndex::new([instant]).columns(Span::new(i64::MIN / 2, i64::MAX / 2), 3, &mut columns);
        assert_eq!(columns.iter().map(|c| c.count).sum::<u32>(), 1);
    }

    #[test]
    fn a_slice_is_found_by_its_row() {
        let lane = LaneIndex::new((0..500).map(|i| Item {
            span: Span::new(i64::from(i) * 10, i64::from(i) * 10 + 5),
            kind: Kind::Host,
            row: i + 1000,
        }));
        assert_eq!(lane.find(2500, 1250), Some(250));
        assert_eq!(lane.find(2500, 1), None);
    }
}
