//! What becomes of an observation.

use engine::record::Clock;
use model::{Beside, Category, Detail, Trace, TraceBuilder, TraceSink, TrackKind};

use super::{
    super::{Mode, Place, Session, Unavailable, abi},
    fake::{Alone, Batch, api, call, external, graph, kernel, long, name, record, shared, word},
};
use crate::activity::clock::stamp;

/// A trace of a session that was handed these batches; `meanwhile` is done while it is under way.
fn observed(alone: &Alone, mode: Mode, batches: Vec<Batch>, meanwhile: impl FnOnce(&Session)) -> Trace {
    let session = Session::start(shared(), mode, Clock::start()).unwrap();
    meanwhile(&session);
    alone.with(|fake| fake.batches.extend(batches));
    written(&session.finish())
}

fn written(observed: &super::super::Observed) -> Trace {
    let mut builder = TraceBuilder::new("run", "strato");
    let process = builder.process(0);
    let names: Vec<_> = (0..100).map(|id| builder.intern(&format!("op{id}"))).collect();
    let operator = |id: u64| names.get(id as usize).map(|name| (*name, None));
    observed.write(Place { process, thread: None, operator: &operator }, &mut builder);
    builder.finish()
}

/// Names, times since the first and categories of a track.
fn rows(trace: &Trace, kind: TrackKind) -> Vec<(String, i64, i64, Category)> {
    let tracks = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == kind);
    let row = |lane: &model::Columns, i: usize| {
        (trace.strings.get(lane.name[i]).to_owned(), lane.start[i], lane.dur[i], lane.category[i])
    };
    tracks.flat_map(|(_, lane)| (0..lane.len()).map(|i| row(lane, i)).collect::<Vec<_>>()).collect()
}

fn stat(trace: &Trace, name: &str) -> u64 {
    trace.stat(&format!("cupti.{name}"))
}

/// Now, by the clock of the stamps, in whole microseconds.
fn now() -> u64 {
    stamp() / 1000 * 1000
}

/// Every kind of record.
fn everything(t: u64, kernel_size: usize, graph_size: usize) -> Vec<Vec<u8>> {
    let copy = |kind, correlation_at: usize, size| {
        let fields: [(usize, &[u8]); 8] = [
            (4, &[1, 2, 3]),
            (8, &long(4096)),
            (16, &long(t + 500)),
            (24, &long(t + 700)),
            (32, &word(1)),
            (36, &word(2)),
            (40, &word(7)),
            (correlation_at, &word(12)),
        ];
        record(kind, size, &fields)
    };
    vec![
        call(4, 307, [t, t + 50], 11, 0),
        external(abi::EXTERNAL_CUSTOM0, 7, 11),
        external(4, 99, 11),
        kernel(kernel_size, [t + 100, t + 400], 11, name(b"gemm"), 0),
        call(5, 211, [t + 60, t + 90], 12, 2),
        copy(1, 44, 64 + 16),
        copy(22, 60, 72 + 16),
        record(
            2,
            88,
            &[
                (8, &long(64)),
                (16, &long(t + 800)),
                (24, &long(t + 810)),
                (32, &word(1)),
                (36, &word(2)),
                (40, &word(7)),
                (44, &word(13)),
                (50, &3u16.to_ne_bytes()),
            ],
        ),
        record(
            38,
            56,
            &[
                (4, &word(3)),
                (8, &long(t + 820)),
                (16, &long(t + 900)),
                (24, &word(14)),
                (28, &word(2)),
                (32, &word(7)),
            ],
        ),
        record(
            17,
            48,
            &[
                (4, &word(65536)),
                (8, &word(2)),
                (12, &word(4711)),
                (16, &word(4712)),
                (24, &long(t + 910)),
                (32, &long(t + 950)),
            ],
        ),
        graph(graph_size, [t + 1000, t + 1900], 15),
    ]
}

#[test]
fn every_kind_of_record_becomes_its_row_in_every_version() {
    let alone = Alone::new();
    // Bytes of a kernel's record in CUDA 11.0, 11.8 and 13.2, and of a replay's in 11.7 and 12.
    for (kernel_size, graph_size) in [(160, 40), (176, 40), (224, 56)] {
        let t = now();
        let trace = observed(&alone, Mode::Graph, vec![Batch::of(&everything(t, kernel_size, graph_size))], |_| ());
        let device = rows(&trace, TrackKind::DeviceQueue);
        let zero = device[0].1 - 100;
        let row =
            |(name, start, dur, category): &(String, i64, i64, Category)| (name.clone(), start - zero, *dur, *category);
        let names: Vec<_> = device.iter().map(row).collect();
        assert_eq!(
            names,
            [
                ("gemm", 100, 300, Category::Kernel),
                ("[CUDA memcpy Host-to-Device]", 500, 200, Category::Memcpy),
                ("[CUDA memcpy Host-to-Device]", 500, 200, Category::Memcpy),
                ("[CUDA memset]", 800, 10, Category::Memset),
                ("CUDA graph 9", 1000, 900, Category::GraphExec),
            ]
            .map(|(name, start, dur, category)| (name.to_owned(), start, dur, category))
        );
        let queue = trace.tracks.iter().position(|track| track.key.kind == TrackKind::DeviceQueue).unwrap();
        let key = trace.tracks[queue].key;
        assert_eq!((key.device, key.context, key.id), (Some(1), Some(2), 7));
        let lane = &trace.lanes[queue];
        let Some(Detail::Kernel(detail)) = trace.detail(lane, 0) else { panic!("no detail") };
        assert_eq!((detail.grid, detail.block), (Some([128, 2, 1]), Some([256, 1, 1])));
        // What lies there in the version without it is padding.
        assert_eq!(detail.graph, (kernel_size > 160).then_some(5), "{kernel_size}");
        let Some(Detail::Copy(copy)) = trace.detail(lane, 1) else { panic!("no detail") };
        let word = |id: Option<model::StringId>| id.map(|id| trace.strings.get(id));
        assert_eq!((copy.bytes, word(copy.src), word(copy.dst)), (Some(4096), Some("pinned"), Some("device")));
        // The call that launched it, by what ties them.
        let (track, row) = trace.locate(lane.link(0).unwrap()).unwrap();
        assert_eq!(trace.tracks[track.0 as usize].key.id, 4712);
        assert_eq!(trace.strings.get(trace.lanes[track.0 as usize].name[row]), "cuLaunchKernel");
        let host: Vec<_> = rows(&trace, TrackKind::HostThread).into_iter().map(|row| (row.0, row.3)).collect();
        let expected = [
            ("cuLaunchKernel", Category::HostApi),
            ("cudaLaunchKernel", Category::HostApi),
            ("buffer flush (profiler)", Category::Overhead),
        ];
        assert_eq!(host, expected.map(|(name, category)| (name.to_owned(), category)));
        let waits = rows(&trace, TrackKind::DeviceSync);
        assert_eq!(
            waits.iter().map(|wait| (wait.0.as_str(), wait.2)).collect::<Vec<_>>(),
            [("stream synchronize", 80)]
        );
        let sync = trace.tracks.iter().find(|track| track.key.kind == TrackKind::DeviceSync).unwrap();
        assert_eq!(sync.key.device, Some(1), "a wait is on the device of its context");
        let counter = |name: &str| {
            let counter = trace.counters.iter().find(|counter| trace.strings.get(counter.name) == name).unwrap();
            counter.value.clone()
        };
        assert_eq!((counter("queued_to_submitted"), counter("submitted_to_started")), (vec![20.0], vec![10.0]));
        assert_eq!(trace.devices[0].ordinal, 1);
        assert_eq!(trace.manifest.value("cupti.mode"), Some("graph"));
        assert_eq!(trace.stats.iter().filter(|stat| stat.name.starts_with("cupti.")).count(), 0, "{:?}", trace.stats);
        let operators: Vec<_> = rows(&trace, TrackKind::DeviceAnnotation);
        assert_eq!(operators.iter().map(|row| (row.0.as_str(), row.2)).collect::<Vec<_>>(), [("op7", 300)]);
        let said = trace.manifest.value(Beside::MATCH).unwrap();
        assert!(said.starts_with("1 of 4 "), "{said}");
    }
}

#[test]
fn times_are_those_of_the_runs_clock_whichever_clock_cupti_has() {
    let alone = Alone::new();
    for own in [true, false] {
        let clock = Clock::start();
        let mut api = api();
        if !own {
            api.register_timestamp = None;
        }
        let ahead = if own { 0 } else { 86_400_000_000_000 };
        let session = Session::start(std::sync::Arc::new(api), Mode::Graph, clock).unwrap();
        let (before, t, after) = (clock.now(), stamp() + ahead, clock.now());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let record = kernel(208, [t, t + 100], 1, name(b"k"), 0);
        alone.with(|fake| fake.batches.push_back(Batch::of(&[record])));
        let observed = session.finish();
        let start = observed.conversion.run(t);
        // Both clocks count the same, so only the looks at them are uncertain.
        let slack = 50_000;
        assert!(before - slack <= start && start <= after + slack, "{before} {start} {after}");
        let said = written(&observed).manifest.value("cupti.clock").unwrap().to_owned();
        assert_eq!(said.contains("by its own clock"), !own, "{said}");
    }
}

#[test]
fn replayed_nodes_are_the_operators_during_whose_launch_they_were_made() {
    let alone = Alone::new();
    let t = now();
    let kernels = [(20, t + 10), (21, t + 120), (99, t + 240)];
    let records: Vec<_> =
        kernels.iter().map(|(node, at)| kernel(224, [*at, at + 100], 40, name(b"k"), *node)).collect();
    let trace = observed(&alone, Mode::Node, vec![Batch::of(&records)], |session| {
        session.enter(3);
        alone.node(abi::NODE_CREATED, 10, 0);
        session.leave();
        session.enter(4);
        alone.node(abi::NODE_CREATED, 11, 0);
        session.leave();
        // Made while no operator was launched.
        alone.node(abi::NODE_CREATED, 12, 0);
        // The executable graph, with a copy of each.
        for (node, original) in [(20, 10), (21, 11), (99, 12)] {
            alone.node(abi::NODE_CREATED, node, 0);
            alone.node(abi::NODE_CLONED, node, original);
        }
    });
    assert_eq!(alone.with(|fake| (fake.pushed.clone(), fake.popped)), (vec![3, 4], 2));
    let operators: Vec<_> = rows(&trace, TrackKind::DeviceAnnotation).into_iter().map(|row| row.0).collect();
    assert_eq!(operators, ["op3", "op4"]);
    assert!(trace.manifest.value(Beside::MATCH).unwrap().starts_with("2 of 3 "));
    let lane = &trace.lanes[trace.tracks.iter().position(|t| t.key.kind == TrackKind::DeviceQueue).unwrap()];
    let Some(Detail::Kernel(detail)) = trace.detail(lane, 1) else { panic!("no detail") };
    assert_eq!((detail.graph, detail.graph_node), (Some(5), Some(21)));
}

#[test]
fn replays_are_never_recorded_both_ways() {
    let alone = Alone::new();
    let t = now();
    let both = || Batch::of(&[kernel(224, [t + 1, t + 2], 1, name(b"k"), 77), graph(56, [t + 1, t + 9], 1)]);
    for (mode, kept) in [(Mode::Graph, Category::GraphExec), (Mode::Node, Category::Kernel)] {
        let trace = observed(&alone, mode, vec![both()], |_| {
            let (kinds, callbacks) = alone.with(|fake| (fake.enabled.clone(), fake.callbacks.clone()));
            assert_eq!(kinds.contains(&abi::KIND_GRAPH), mode == Mode::Graph);
            assert!(kinds.contains(&abi::KIND_KERNEL) && !kinds.contains(&3), "kernels beside each other");
            assert_eq!(callbacks.is_empty(), mode == Mode::Graph);
        });
        assert_eq!(rows(&trace, TrackKind::DeviceQueue).iter().map(|row| row.3).collect::<Vec<_>>(), [kept]);
        assert_eq!(stat(&trace, "other_mode"), 1);
        alone.with(|fake| assert!(fake.enabled.is_empty() && fake.unsubscribed > 0, "everything is off again"));
        alone.with(|fake| fake.callbacks.clear());
    }
}

#[test]
fn what_is_lost_is_counted() {
    let alone = Alone::new();
    let t = now();
    alone.with(|fake| fake.dropped = 17);
    let records = [
        kernel(224, [t, t + 1], 1, name(b"whole"), 0),
        record(777, 24, &[]),
        record(10, 40, &[(16, &long(t))]),
        kernel(224, [t, t + 1], 2, 0, 0),
        kernel(224, [t, t + 1], 3, name(b""), 0),
        record(10, 224, &[(92, &word(4)), (104, &long(name(b"no time")))]),
    ];
    let foreign = Batch { said: Some(usize::MAX), ..Batch::of(&[kernel(224, [t + 5, t + 6], 5, name(b"last"), 0)]) };
    let trace = observed(&alone, Mode::Graph, vec![Batch::default(), Batch::of(&records), foreign], |_| ());
    let names: Vec<_> = rows(&trace, TrackKind::DeviceQueue).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["whole", "kernel without a name", "kernel without a name", "last"]);
    for (name, count) in [
        ("dropped_records", 17),
        ("unknown_kind", 1),
        ("short_record", 1),
        ("kernel_without_name", 2),
        ("without_time", 1),
        ("damaged_buffer", 1),
    ] {
        assert_eq!(stat(&trace, name), count, "{name}");
    }
    let unknown = trace.stats.iter().find(|stat| stat.name == "cupti.unknown_kind").unwrap();
    assert_eq!(unknown.example.as_deref(), Some("kind 777"));
}

#[test]
fn names_are_taken_as_they_are_and_no_longer_than_they_may_be() {
    let alone = Alone::new();
    let t = now();
    let hostile: [&[u8]; 4] = [b"\xff\xfe\x1b[2Jx", b"'; DROP TABLE slice; --", &[b'A'; 100_000], "内核\n".as_bytes()];
    let records: Vec<_> = hostile
        .iter()
        .zip(1..)
        .map(|(text, i)| kernel(224, [t + i * 10, t + i * 10 + 1], i as u32, name(text), 0))
        .collect();
    let trace = observed(&alone, Mode::Graph, vec![Batch::of(&records)], |_| ());
    let names: Vec<_> = rows(&trace, TrackKind::DeviceQueue).into_iter().map(|row| row.0).collect();
    assert!(names[0].starts_with("\u{fffd}\u{fffd}") && names[1] == "'; DROP TABLE slice; --" && names[3] == "内核\n");
    assert!(!names[2].is_empty() && names[2].len() <= 64 << 10, "{}", names[2].len());
}

#[test]
fn who_may_not_observe_is_told_why_and_leaves_nothing_behind() {
    let alone = Alone::new();
    let start = |api| Session::start(api, Mode::Graph, Clock::start());
    alone.with(|fake| fake.subscribe = abi::MULTIPLE_SUBSCRIBERS);
    let error = start(shared()).unwrap_err();
    assert_eq!(error, Unavailable::Attached);
    assert!(error.to_string().starts_with("another profiler is attached"));
    alone.with(|fake| fake.subscribe = abi::INSUFFICIENT_PRIVILEGES);
    let error = start(shared()).unwrap_err().to_string();
    assert!(error.contains("cuptiSubscribe") && error.contains("NVreg_RestrictProfilingToAdminUsers"), "{error}");
    alone.with(|fake| (fake.subscribe, fake.unknown) = (abi::SUCCESS, vec![abi::KIND_GRAPH]));
    let error = start(shared()).unwrap_err().to_string();
    assert!(error.contains("cuptiActivityEnable(51") && error.contains("CUPTI_ERROR_INVALID_KIND (21)"), "{error}");
    alone.with(|fake| {
        assert!(fake.enabled.is_empty() && fake.unsubscribed == 1, "what was begun is ended");
        fake.unknown.clear();
    });
    let mut lacking = api();
    lacking.subscribe = None;
    let error = start(std::sync::Arc::new(lacking)).unwrap_err();
    assert!(matches!(error, Unavailable::Symbol { symbol: "cuptiSubscribe", .. }), "{error}");
    // One at a time, and then the next.
    let first = start(shared()).unwrap();
    assert_eq!(start(shared()).unwrap_err(), Unavailable::Busy);
    drop(first);
    start(shared()).unwrap();
}

#[test]
fn what_a_version_does_not_record_is_left_out_and_said() {
    let alone = Alone::new();
    alone.with(|fake| fake.unknown = vec![abi::KIND_PEER_COPY, abi::KIND_OVERHEAD]);
    let mut old = api();
    (old.latency_timestamps, old.node_id, old.callback_name) = (None, None, None);
    let session = Session::start(std::sync::Arc::new(old), Mode::Node, Clock::start()).unwrap();
    alone.node(abi::NODE_CREATED, 10, 0);
    let t = now();
    alone.with(|fake| fake.batches.push_back(Batch::of(&[call(4, 307, [t, t + 5], 1, 0)])));
    let trace = written(&session.finish());
    for what in ["copies_between_devices", "overhead", "stamps_of_the_queue"] {
        let stat = trace.stats.iter().find(|stat| stat.name == format!("cupti.without_{what}")).expect(what);
        assert!(!stat.example.as_deref().unwrap_or_default().is_empty(), "{what}");
    }
    assert_eq!(rows(&trace, TrackKind::HostThread)[0].0, "driver call 307");
}

#[test]
fn buffers_are_taken_between_steps_and_no_more_are_lent_than_there_may_be() {
    let alone = Alone::new();
    let session = Session::start(shared(), Mode::Graph, Clock::start()).unwrap();
    let t = now();
    for step in 0..40u64 {
        let record = kernel(224, [t + step * 10, t + step * 10 + 5], 1, name(b"k"), 0);
        alone.with(|fake| fake.batches.push_back(Batch::of(&[record])));
        session.flush();
    }
    assert_eq!(alone.with(|fake| fake.without_buffer), 0, "buffers come back");
    let observed = session.finish();
    assert_eq!(observed.records(), 40);
}
