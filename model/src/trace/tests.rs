use super::*;
use crate::{
    sink::{Clock, TraceSink},
    slice::Slice,
    time::{LONGEST, MOST_TIME, RANGE},
    track::{TrackKey, TrackKind},
};

fn host(b: &mut TraceBuilder, process: ProcessId, tid: i64) -> TrackId {
    b.track(TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: tid })
}

fn stream(b: &mut TraceBuilder, process: ProcessId, id: i64) -> TrackId {
    b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id })
}

fn add(b: &mut TraceBuilder, track: TrackId, start: Ns, dur: Ns, category: Category, correlation: Option<i64>) {
    let name = b.intern("x");
    b.slice(Slice { track, start, dur, name, category, correlation, detail: None });
}

#[test]
fn nested_slices_get_their_nesting_depth_and_overlaps_are_kept() {
    let mut b = TraceBuilder::new("t", "test");
    let p = b.process(0);
    let t = stream(&mut b, p, 7);
    for (s, d) in [(100, 100), (110, 20), (140, 20), (145, 5), (190, 40)] {
        add(&mut b, t, s, d, Category::Kernel, None);
    }
    let trace = b.finish();
    assert_eq!(trace.lanes[0].start, [0, 10, 40, 45, 90]);
    assert_eq!(trace.lanes[0].depth, [0, 1, 1, 2, 1]);
    assert_eq!(trace.stat("trace.overlapping_device_slices"), 4);
    assert_eq!(trace.window, Some(Span::new(0, 130)));
}

#[test]
fn correlation_links_within_a_process_only() {
    let mut b = TraceBuilder::new("t", "test");
    let (p, q) = (b.process(1), b.process(2));
    let (hp, hq, dp, dq) = (host(&mut b, p, 1), host(&mut b, q, 1), stream(&mut b, p, 7), stream(&mut b, q, 7));
    add(&mut b, dp, 50, 10, Category::Kernel, Some(5));
    add(&mut b, dq, 60, 10, Category::Kernel, Some(5));
    add(&mut b, dq, 90, 10, Category::Kernel, Some(6));
    add(&mut b, dq, 120, 10, Category::Kernel, None);
    add(&mut b, hq, 20, 5, Category::HostApi, Some(5));
    add(&mut b, hp, 10, 5, Category::HostApi, Some(5));
    let trace = b.finish();
    let launch_of = |track: TrackId, row: usize| {
        trace.lanes[track.0 as usize].link(row).and_then(|id| trace.locate(id)).map(|(t, _)| t)
    };
    assert_eq!(launch_of(dp, 0), Some(hp));
    assert_eq!(launch_of(dq, 0), Some(hq));
    assert_eq!(launch_of(dq, 1), None);
    assert_eq!(trace.stat("trace.device_work_without_launch"), 1);
    assert_eq!(trace.stat("trace.device_work_without_correlation"), 1);
}

#[test]
fn the_clock_is_settled_at_the_end() {
    let mut b = TraceBuilder::new("t", "test");
    let p = b.process(0);
    let t = stream(&mut b, p, 7);
    add(&mut b, t, 1_000, 10, Category::Kernel, None);
    let name = b.intern("power");
    b.counter(p, Some(0), name, "W", 1_005, 300.0);
    b.clock(Clock::FromFirstSlice { unix_offset: Some(500) });
    let trace = b.finish();
    assert_eq!((trace.lanes[0].start[0], trace.start_unix_ns, trace.counters[0].t[0]), (0, Some(1_500), 5));
}

#[test]
fn slices_of_every_lane_can_be_found_by_id() {
    let mut b = TraceBuilder::new("t", "test");
    let p = b.process(0);
    for id in 0..4 {
        let t = host(&mut b, p, id);
        for i in 0..id {
            add(&mut b, t, i * 10, 5, Category::FrameworkOp, None);
        }
    }
    let trace = b.finish();
    for (track, lane) in trace.lanes.iter().enumerate() {
        for i in 0..lane.len() {
            assert_eq!(trace.locate(lane.id(i)), Some((TrackId(track as u32), i)));
        }
    }
    assert_eq!(trace.locate(SliceId(trace.slice_count() as u32)), None);
}

proptest::proptest! {
    #[test]
    fn slices_of_one_depth_never_overlap(slices in proptest::collection::vec((0i64..500, 0i64..80), 0..200)) {
        let mut b = TraceBuilder::new("t", "test");
        let p = b.process(0);
        let t = stream(&mut b, p, 7);
        for (s, d) in &slices {
            add(&mut b, t, *s, *d, Category::Kernel, None);
        }
        let trace = b.finish();
        let lane = &trace.lanes[0];
        proptest::prop_assert_eq!(lane.len(), slices.len());
        let mut ends = std::collections::HashMap::new();
        for i in 0..lane.len() {
            let last = ends.insert(lane.depth[i], lane.end(i)).unwrap_or(i64::MIN);
            proptest::prop_assert!(last <= lane.start[i]);
        }
    }
}

#[test]
fn times_are_kept_where_their_differences_and_sums_fit_64_bits() {
    let mut b = TraceBuilder::new("t", "test");
    let p = b.process(0);
    let t = stream(&mut b, p, 7);
    for start in [RANGE.start, RANGE.end, RANGE.start - 1, RANGE.end + 1, Ns::MIN, Ns::MAX] {
        add(&mut b, t, start, 0, Category::Kernel, None);
    }
    for dur in [LONGEST, LONGEST + 1, Ns::MAX] {
        add(&mut b, t, 0, dur, Category::Kernel, None);
    }
    for _ in 0..MOST_TIME / LONGEST + 1 {
        add(&mut b, t, 0, LONGEST, Category::Kernel, None);
    }
    let trace = b.finish();
    assert_eq!(trace.stat("trace.time_out_of_range"), 4 + 2 + 2);
    let lane = &trace.lanes[0];
    assert_eq!(lane.dur.iter().map(|d| i128::from(*d)).sum::<i128>(), i128::from(MOST_TIME));
    assert!((0..lane.len()).all(|i| lane.end(i).checked_sub(lane.start[0]).is_some()));
}

#[test]
fn a_ledger_stays_short_and_counts_everything() {
    let mut b = TraceBuilder::new("t", "test");
    for i in 0..10_000 {
        b.ledger(&format!("category {i}"), 2, 1, 10, "");
    }
    b.ledger("category 0", 1, 1, 10, "");
    let trace = b.finish();
    assert!(trace.ledger.len() <= 257, "{}", trace.ledger.len());
    assert_eq!(trace.ledger.iter().map(|row| row.read).sum::<u64>(), 20_001);
    assert_eq!(trace.ledger.iter().find(|row| row.category == "category 0").map(|row| row.read), Some(3));
}

/// A capture of one device with ceilings of so many rows.
fn probed(device: &str, rows: usize) -> Trace {
    let mut b = TraceBuilder::new("probes.strato", "strato-probe");
    b.manifest("hardware.device", device, crate::Provenance::Observed);
    let mut trace = b.finish();
    let row = crate::ProbeRow {
        probe: "timer".to_owned(),
        metric: "cost".to_owned(),
        unit: crate::ProbeUnit::Ns,
        setting: crate::Setting::new(),
        value: crate::Reading::Unavailable("not now".to_owned()),
    };
    trace.probes.rows = vec![row; rows];
    trace
}

#[test]
fn ceilings_of_the_same_device_are_taken_in_and_those_of_another_are_named() {
    let mut run = probed("AMD EPYC", 1);
    assert!(attach_probes(&mut run, &probed("amd epyc ", 3)));
    assert_eq!(run.probes.rows.len(), 3);
    assert!(run.ledger.iter().any(|row| (row.read, row.kept) == (3, 3) && row.category.contains("probes.strato")));
    assert_eq!(run.stat("probes.disturbed"), 0);
    let mut busy = probed("AMD EPYC", 3);
    busy.probes.provenance.push(("noise".to_owned(), crate::Reading::Value("other processes took 9.0 %".to_owned())));
    assert!(attach_probes(&mut run, &busy) && run.stat("probes.disturbed") == 1);
    assert!(!attach_probes(&mut run, &probed("Xeon", 5)));
    assert_eq!((run.probes.rows.len(), run.stat("probes.other_device")), (3, 5));
}

#[test]
fn joined_ranks_keep_the_first_ceilings() {
    let joined = join(vec![probed("a", 0), probed("a", 2), probed("a", 4)]);
    assert_eq!(joined.map_or(0, |joined| joined.probes.rows.len()), 2);
}
