#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use model::{Category, CollectiveCall, Detail, Provenance, Slice, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind};

use super::{beside::Beside, *};

/// A test of `ranks` ranks as its reader gives it: bytes, ns and the bus bandwidth that was printed.
fn test(op: &str, ranks: u32, sizes: &[(i64, i64, Option<f64>)]) -> Trace {
    let mut builder = TraceBuilder::new("t", FORMAT);
    let process = builder.process(0);
    let track = builder.track(TrackKey { kind: TrackKind::Global, process, device: None, context: None, id: 0 });
    let (op, busbw) = (builder.intern(op), builder.intern("busbw"));
    let mut at = 0;
    for (bytes, dur, bus) in sizes {
        let call =
            CollectiveCall { op: Some(op), group_size: Some(ranks), bytes: Some(*bytes), ..CollectiveCall::default() };
        let detail = Detail::Collective(Box::new(call));
        let category = Category::CollectiveCall;
        let slice = Slice { track, start: at, dur: *dur, name: op, category, correlation: None, detail: Some(&detail) };
        builder.slice(slice);
        bus.iter().for_each(|bus| builder.counter(process, None, busbw, "GB/s", at, *bus));
        at += dur;
    }
    builder.finish()
}

#[test]
fn plateau_knee_and_latency_follow_from_the_sizes() {
    let trace = test(
        "all_reduce",
        2,
        &[
            (8, 20_000, Some(0.0)),
            (1 << 20, 30_000, Some(35.0)),
            (1 << 21, 40_000, Some(60.0)),
            (1 << 24, 170_000, Some(98.0)),
            (1 << 25, 340_000, Some(100.0)),
        ],
    );
    let [series] = &of(&[&trace])[..] else { panic!() };
    let plateau = series.plateau().unwrap();
    assert_eq!((plateau.gb_per_s, plateau.bytes, plateau.rises), (100.0, 1 << 25, false));
    assert_eq!((series.knee().unwrap().bytes, series.smallest()), (1 << 21, Some((8, 20_000))));
    assert!(series.starts_below_the_knee() && !series.computed);
    assert_eq!(series.latency(), Some((8, 20_000)));
    // A third of the plateau: a third of the call moves bytes.
    let trace = test("all_reduce", 2, &[(1 << 20, 30_000, Some(35.0)), (1 << 24, 170_000, Some(98.0))]);
    let series = &of(&[&trace])[0];
    assert!(series.starts_below_the_knee() && series.latency().is_none());
    // Where the largest size is far above the one before it, the plateau was not reached.
    let trace = test("all_reduce", 2, &[(1 << 20, 30_000, Some(35.0)), (1 << 21, 40_000, Some(60.0))]);
    let series = &of(&[&trace])[0];
    assert!(series.plateau().unwrap().rises && !series.starts_below_the_knee());
}

/// hccl_test prints algorithm bandwidth only.
#[test]
fn bus_bandwidth_that_is_not_printed_is_computed_and_says_so() {
    let series = &of(&[&test("all_reduce", 8, &[(1_000_000, 100_000, None)])])[0];
    assert!(series.computed);
    assert!((series.plateau().unwrap().gb_per_s - 17.5).abs() < 1e-9, "{series:?}");
    // Of a collective that has no factor nothing is.
    let series = &of(&[&test("barrier", 8, &[(1_000_000, 100_000, None)])])[0];
    assert!(!series.computed && series.plateau().is_none() && series.knee().is_none());
}

#[test]
fn two_tests_are_held_size_by_size_and_repeats_give_their_middle() {
    let a = test("all_reduce", 2, &[(1 << 20, 100_000, None), (1 << 21, 150_000, None)]);
    let slow = |time| test("all_reduce", 2, &[(1 << 20, 102_000, None), (1 << 21, time, None), (1 << 22, 1, None)]);
    let mut b = [slow(1_140_000), slow(900_000), slow(9_000_000)];
    for (key, value) in [("kind", "NVL"), ("from", "x"), ("to", "y"), ("gb_per_s", "20"), ("of_gb_per_s", "240")] {
        b[0].manifest.set(&format!("link.slowest.{key}"), value, Provenance::Observed);
    }
    let beside = Beside::of([&[&a], &[&b[0], &b[1], &b[2]]]);
    let [pair] = &beside.pairs[..] else { panic!() };
    let most = pair.most().unwrap();
    assert_eq!((pair.rows.len(), most.bytes, most.ratio()), (2, 1 << 21, 7.6));
    assert!(!pair.rows[0].differs());
    let (side, link) = beside.slower_link().unwrap();
    assert_eq!((side, link.gb_per_s, link.of_gb_per_s), (1, 20.0, 240.0));
    // Other ranks are another test.
    let other = Beside::of([&[&a], &[&test("all_reduce", 4, &[(1 << 20, 1, None)])]]);
    assert!(other.pairs.is_empty() && other.alone.iter().all(|all| all.len() == 1));
    assert!(other.slower_link().is_none());
}
