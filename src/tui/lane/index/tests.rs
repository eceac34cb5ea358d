//! Against the same answers found nanosecond by nanosecond.
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
