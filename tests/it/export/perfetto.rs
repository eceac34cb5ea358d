//! The trace for Perfetto as JSON: every slice once and to the nanosecond, links whole, counters in order, names harmless.

use std::collections::{BTreeMap, BTreeSet};

use diagnosis::{analysis::Analysis, diagnose::Diagnosis, i18n::Lang};
use model::{Category, Clock, Device, Flow, Ns, Slice, Trace, TraceBuilder, TraceSink, TrackId, TrackKey, TrackKind};
use proptest::prelude::*;
use report::perfetto::{self, Written};
use serde_json::Value;

use super::sample;
use crate::common;

/// The whole file as JSON, and what was said of it.
fn exported(traces: Vec<Trace>) -> (Vec<Value>, Written, Vec<(Trace, Analysis, Diagnosis)>) {
    let inputs: Vec<_> = traces.into_iter().map(common::diagnosed).collect();
    let mut out = Vec::new();
    let written = perfetto::write(&mut out, &inputs, Lang::En).unwrap();
    let mut file: Value = serde_json::from_slice(&out).unwrap();
    let Value::Array(events) = file["traceEvents"].take() else { panic!("no events") };
    (events, written, inputs)
}

/// A capture with one host thread and one stream.
struct Small {
    builder: TraceBuilder,
    thread: TrackId,
    stream: TrackId,
}

impl Small {
    fn new() -> Self {
        let mut builder = TraceBuilder::new("small", "kineto");
        let process = builder.process(0);
        let vendor = Some(builder.intern("nvidia"));
        builder.device(Device { process, ordinal: 0, name: None, vendor, cores: None, memory_bytes: None });
        let key = |kind, device, id| TrackKey { kind, process, device, context: None, id };
        let thread = builder.track(key(TrackKind::HostThread, None, 1));
        let stream = builder.track(key(TrackKind::DeviceQueue, Some(0), 7));
        builder.clock(Clock::AsIs { unix_zero: None });
        Self { builder, thread, stream }
    }

    fn slice(&mut self, track: TrackId, category: Category, name: &str, at: (Ns, Ns), correlation: Option<i64>) {
        let name = self.builder.intern(name);
        self.builder.slice(Slice { track, start: at.0, dur: at.1, name, category, correlation, detail: None });
    }

    fn launch(&mut self, id: i64, call: (Ns, Ns), kernel: (Ns, Ns)) {
        self.slice(self.thread, Category::HostApi, "cudaLaunchKernel", call, Some(id));
        self.slice(self.stream, Category::Kernel, "gemm", kernel, Some(id));
    }
}

/// ns of a time in µs; exact for times of tests.
fn ns(event: &Value, key: &str) -> Ns {
    (event[key].as_f64().unwrap() * 1000.0).round() as Ns
}

/// The capture's own slices: id, start, length. One beside the threads begins and ends as two events.
fn slices(events: &[Value]) -> Vec<(u64, Ns, Ns)> {
    let mut ends: BTreeMap<&str, Ns> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "e") {
        assert!(ends.insert(event["id2"]["local"].as_str().unwrap(), ns(event, "ts")).is_none());
    }
    let own = events.iter().filter(|event| event["args"]["slice"].is_u64() && event["ph"] != "e");
    let one = |event: &Value| {
        let start = ns(event, "ts");
        let length = match event["ph"].as_str().unwrap() {
            "X" => ns(event, "dur"),
            "b" => ends[event["id2"]["local"].as_str().unwrap()] - start,
            other => panic!("a slice as {other}"),
        };
        (event["args"]["slice"].as_u64().unwrap(), start, length)
    };
    own.map(one).collect()
}

/// Slices of one thread lie apart or in each other.
fn assert_nested(events: &[Value]) {
    let mut threads: BTreeMap<(u64, u64), Vec<(Ns, Ns)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let place = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        threads.entry(place).or_default().push((ns(event, "ts"), ns(event, "dur")));
    }
    for (place, mut slices) in threads {
        slices.sort_by_key(|(start, dur)| (*start, -dur));
        let mut open: Vec<Ns> = Vec::new();
        for (start, dur) in slices {
            open.retain(|end| *end > start);
            assert!(open.last().is_none_or(|end| start + dur <= *end), "{place:?}: {start} + {dur} in {open:?}");
            open.push(start + dur);
            assert!(open.len() <= 512, "trace_processor refuses deeper slices");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_slice_is_there_once_to_the_nanosecond(
        host in proptest::collection::vec((-50i64..5000, 0i64..900), 0..120),
        device in proptest::collection::vec((0i64..5000, 0i64..400), 0..120),
    ) {
        let mut small = Small::new();
        for (i, at) in host.iter().enumerate() {
            small.slice(small.thread, Category::HostApi, "cudaLaunchKernel", *at, Some(i as i64));
        }
        for (i, at) in device.iter().enumerate() {
            small.slice(small.stream, Category::Kernel, "gemm", *at, Some(i as i64));
        }
        let (events, written, inputs) = exported(vec![small.builder.finish()]);
        let trace = &inputs[0].0;
        let shift = trace.lanes.iter().filter_map(|lane| lane.start.first()).min().map_or(0, |first| -first.min(&0));
        let mut found = slices(&events);
        found.sort_unstable();
        let expected: Vec<(u64, Ns, Ns)> = trace
            .lanes
            .iter()
            .flat_map(|lane| (0..lane.len()).map(move |i| (u64::from(lane.id(i).0), lane.start[i] + shift, lane.dur[i])))
            .collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(written.slices as usize, expected.len());
        assert_nested(&events);
        assert_links(&events);
        // Of every kernel's link it is known whether it is drawn.
        let linked: usize = trace.lanes.iter().map(|lane| (0..lane.len()).filter(|i| lane.link(*i).is_some()).count()).sum();
        prop_assert_eq!((written.flows + written.broken_flows) as usize, linked);
    }
}

/// More slices lie over each other than there are rows: those beside them have no links, and are counted.
#[test]
fn links_of_what_has_no_row_are_told() {
    let pile = |calls: Ns, kernels: Ns| {
        let mut small = Small::new();
        for i in 0..60 {
            small.launch(i, (i, 1 + (100 + i) * calls), (5_000 + i, 1 + (100 + i) * kernels));
        }
        let (events, written, _) = exported(vec![small.builder.finish()]);
        let begun: BTreeSet<&str> =
            events.iter().filter(|e| e["flow_out"] == true).filter_map(|e| e["bind_id"].as_str()).collect();
        let ends: Vec<&str> =
            events.iter().filter(|e| e["flow_in"] == true).filter_map(|e| e["bind_id"].as_str()).collect();
        assert!(ends.iter().all(|end| begun.contains(end)), "a link begins nowhere");
        assert_eq!(written.slices, 120);
        assert_eq!((written.flows as usize, written.flows + written.broken_flows), (ends.len(), 60));
        written.broken_flows
    };
    // One that begins later ends later: none nests in another.
    assert_eq!((pile(1, 0), pile(0, 1)), (28, 28));
}

/// Every link that ends somewhere begins once, and not later.
fn assert_links(events: &[Value]) {
    let ends = |key: &str| events.iter().filter(|event| event[key] == true).collect::<Vec<_>>();
    let mut from: BTreeMap<&str, Ns> = BTreeMap::new();
    for event in ends("flow_out") {
        assert!(from.insert(event["bind_id"].as_str().unwrap(), ns(event, "ts")).is_none(), "{event} begins twice");
    }
    for event in ends("flow_in") {
        let start = from.get(event["bind_id"].as_str().unwrap());
        assert!(start.is_some_and(|start| *start <= ns(event, "ts")), "{event} begins nowhere");
    }
}

#[test]
fn links_lead_from_the_launch_to_its_kernels_and_never_back_in_time() {
    let mut small = Small::new();
    small.launch(1, (0, 10), (20, 30));
    small.launch(2, (60, 10), (55, 10));
    let (thread, stream) = (small.thread, small.stream);
    let kind = small.builder.intern("fwd<bwd>");
    let process = small.builder.process(0);
    for (id, to) in [(5, (stream, 25)), (6, (stream, 4000))] {
        small.builder.flow(Flow { process, id, from: (thread, 3), to, kind });
    }
    let (events, written, _) = exported(vec![small.builder.finish()]);
    assert_links(&events);
    // Launch 1, and link 5; launch 2 would lead back, and link 6 ends in no slice.
    assert_eq!((written.flows, written.broken_flows), (2, 2));
    let recorded: Vec<&str> =
        events.iter().filter(|e| e["name"] == "fwd<bwd>").map(|e| e["ph"].as_str().unwrap()).collect();
    assert_eq!(recorded, ["s", "s", "f"]);
    let bound: BTreeSet<u64> =
        events.iter().filter(|e| e["bind_id"].is_string()).map(|e| e["args"]["slice"].as_u64().unwrap()).collect();
    assert_eq!(bound.len(), 2);
}

#[test]
fn counters_are_in_order_and_what_is_no_number_is_counted() {
    let mut small = Small::new();
    small.launch(1, (0, 10), (20, 30));
    let process = small.builder.process(0);
    let name = small.builder.intern("power \"x\"");
    for (t, value) in [(30, 2.5), (-10, 1.0), (20, f64::NAN), (25, f64::INFINITY), (10, -0.125)] {
        small.builder.counter(process, Some(0), name, "W", t, value);
    }
    let (events, written, _) = exported(vec![small.builder.finish()]);
    let samples: Vec<(Ns, f64)> = events
        .iter()
        .filter(|event| event["ph"] == "C")
        .map(|event| (ns(event, "ts"), event["args"]["W"].as_f64().unwrap()))
        .collect();
    assert_eq!(samples, [(0, 1.0), (20, -0.125), (40, 2.5)]);
    assert_eq!((written.samples, written.no_numbers), (3, 2));
}

#[test]
fn hostile_names_stay_names() {
    let evil = format!("a\"b\\\u{1b}[2J\u{202e}\u{2028}</script>\n{}", "y".repeat(1 << 20));
    let mut small = Small::new();
    for i in 0..20 {
        small.slice(small.stream, Category::Kernel, &evil, (i * 10, 5), None);
    }
    small.builder.name_track(small.stream, &evil);
    let mut trace = small.builder.finish();
    trace.source.clone_from(&evil);
    let (events, ..) = exported(vec![trace]);
    let text = Value::from(events).to_string();
    assert!(text.len() < 400_000, "{}", text.len());
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{2028}']) && !text.contains("\\u001b"));
}

/// A sample has everything: steps, idle time, replays or launches, findings at the slices that they were read from.
#[test]
fn what_the_analysis_says_lies_beside_the_slices() {
    let (events, written, inputs) = exported(vec![common::read(&sample("launch-bound-eager.json.gz"))]);
    let (trace, analysis, diagnosis) = &inputs[0];
    let of = |category: &str| events.iter().filter(|event| event["cat"] == category).collect::<Vec<_>>();
    assert_eq!(of("strato.step").len(), analysis.ranks[0].steps.len());
    let known: BTreeMap<u64, (Ns, Ns)> =
        slices(&events).into_iter().map(|(id, start, dur)| (id, (start, dur))).collect();
    let findings = of("strato.finding");
    assert!(!findings.is_empty() && !diagnosis.findings.is_empty());
    for event in findings {
        let at = known[&event["args"]["of_slice"].as_u64().unwrap()];
        assert_eq!(at, (ns(event, "ts"), ns(event, "dur")), "{event}");
        assert!(diagnosis.findings.iter().any(|finding| event["args"]["rule"] == finding.rule));
    }
    let idle: Ns = of("strato.idle").iter().map(|event| ns(event, "dur")).sum();
    let gaps = analysis.ranks[0].gaps.iter().flat_map(|gap| &gap.parts);
    assert_eq!(idle, gaps.map(|(_, span)| span.len()).sum::<Ns>());
    assert!(trace.simulated);
    let processes: Vec<&Value> = events.iter().filter(|event| event["name"] == "process_name").collect();
    assert!(processes.iter().all(|event| event["args"]["name"].as_str().unwrap().contains("simulated")));
    assert_eq!(
        written.derived as usize,
        events.iter().filter(|e| e["cat"].as_str().is_some_and(|c| c.starts_with("strato."))).count()
    );
    assert_nested(&events);
}

/// Links of two captures in one file never meet: their slices have the same ids.
#[test]
fn captures_of_one_file_keep_their_links_apart() {
    let small = || {
        let mut small = Small::new();
        small.launch(1, (0, 10), (20, 30));
        small.builder.finish()
    };
    let (events, written, _) = exported(vec![small(), small()]);
    assert_links(&events);
    assert_eq!(written.flows, 2);
    let pids: BTreeSet<u64> = events.iter().map(|event| event["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids.len(), 2);
}
