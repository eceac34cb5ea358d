//! Odd and damaged files: what can be read is read, the rest is counted or refused with a place.

use model::{Category, TrackKind};

use super::*;

#[test]
fn oddities_are_kept_and_counted() {
    let t = trace(
        &[
            r#"{"ph": "X", "cat": "cpu_op", "name": "no dur", "pid": 1, "tid": 1, "ts": 1}"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "no ts", "pid": 1, "tid": 1, "dur": 1}"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "nan", "pid": 1, "tid": 1, "ts": NaN, "dur": 1}"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "dur inf", "pid": 1, "tid": 1, "ts": 2, "dur": Infinity}"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "twice", "name": "last", "pid": 1, "tid": 1, "ts": 3, "dur": 1}"#,
            "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"raw\u{1}\ncontrol\", \"pid\": 1, \"tid\": 1, \"ts\": 4, \"dur\": 1}",
            r#"{"ph": "X", "cat": "kernel", "name": "wrong", "pid": 0, "tid": 7, "ts": 5, "dur": 1, "args": {"correlation": {"a": 1}, "grid": "x"}}"#,
            r#"{"ph": "X", "cat": 5, "name": 6, "pid": [], "tid": null, "ts": 6, "dur": 1, "args": [],}"#,
            r#"{"ph": "Q", "name": "?", "ts": 6}, {}, null, 7, ,"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "last of all", "pid": 1, "tid": 1, "ts": 7, "dur": -3},"#,
        ]
        .join(","),
        "",
    );
    assert_eq!(
        rows(&t),
        [
            "host_thread/-/1 no dur framework_op 0+0 -",
            "host_thread/-/1 dur inf framework_op 1000+0 -",
            "host_thread/-/1 last framework_op 2000+1000 -",
            "host_thread/-/1 raw\u{1}\ncontrol framework_op 3000+1000 -",
            "host_thread/-/1 last of all framework_op 6000+0 -",
            "device_queue/0/7 wrong kernel 4000+1000 -",
            "host_thread/-/-1099511627777  host_other 5000+1000 -",
        ]
    );
    for (stat, count) in [
        ("kineto.events_without_duration", 2),
        ("kineto.events_without_time", 2),
        ("kineto.unreadable_times", 2),
        ("kineto.values_of_wrong_type", 2),
        ("kineto.unknown_phase", 1),
        ("kineto.empty_events", 1),
        ("kineto.elements_that_are_no_event", 2),
        ("trace.negative_duration", 1),
        ("kineto.truncated", 0),
        ("kineto.broken_events", 0),
    ] {
        assert_eq!(t.stat(stat), count, "{stat}");
    }
}

#[test]
fn damage_costs_the_event_it_hits() {
    let event = |name: &str| {
        format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {{"a": [1, 2]}}}}"#
        )
    };
    let (a, b, c) = (event("a"), event("b"), event("c"));
    let names =
        |t: &Trace| -> Vec<String> { t.strings.iter().map(|(_, s)| s.to_owned()).filter(|s| s.len() == 1).collect() };
    for broken in [
        b.replace("\"name\"", "\"name"),
        b.replace("[1, 2]}}", "[1, 2}}"),
        b.replace("}}", ""),
        b.replace("}}", "}"),
        b.replace("\"X\"", "X"),
        b.replace("\"dur\": 1", "\"dur\": 1x"),
        format!("{}1{}", "[".repeat(200), "]".repeat(200)),
    ] {
        let t = trace(&[a.as_str(), &broken, &c].join(",\n"), r#", "baseTimeNanoseconds": 5"#);
        assert_eq!((names(&t), t.stat("kineto.broken_events")), (vec!["a".into(), "c".into()], 1), "{broken}");
        assert_eq!(t.start_unix_ns, Some(1005), "{broken}: what follows the events is read");
        let t = trace(&[a.as_str(), &c, &broken].join(",\n"), r#", "baseTimeNanoseconds": 5"#);
        assert_eq!((names(&t), t.stat("kineto.broken_events")), (vec!["a".into(), "c".into()], 1), "last: {broken}");
    }
}

#[test]
fn a_cut_file_keeps_every_complete_event() {
    let whole = format!(r#"{{"schemaVersion": 1, "traceEvents": [{LAUNCH}, {KERNEL}]}}"#);
    let second = whole.find(KERNEL).unwrap();
    for end in second..whole.len() - 2 {
        let t = read(&whole[..end]);
        assert_eq!((t.slice_count(), t.stat("kineto.truncated")), (1, 1), "cut at {end}");
    }
    for end in whole.len() - 2..whole.len() {
        assert_eq!((read(&whole[..end]).slice_count(), read(&whole[..end]).stat("kineto.truncated")), (2, 1));
    }
    assert_eq!(read(&whole).stat("kineto.truncated"), 0);
}

#[test]
fn what_is_no_trace_is_refused_with_a_place() {
    for content in ["hello", "  \n12", "{\"a\": 1}", "{oops}", "\0\0\0\0"] {
        let error = try_read(content.as_bytes()).expect_err(content).to_string();
        assert!(error.contains("at byte") && error.contains("PyTorch profiler"), "{error}");
    }
    assert_eq!(read(r#"{"traceEvents": []}"#).slice_count(), 0);
    assert_eq!(read(&format!(r#"{{"traceEventz": [ {KERNEL}], "x": [{{"name": "k"}}]}}"#)).slice_count(), 1);
    assert_eq!(read("\u{feff}{\"traceEvents\": []}").slice_count(), 0);
}

#[test]
fn blocks_give_what_the_whole_gives() {
    // About 11 MB, so that several blocks are cut; strings and nested values hold what looks like an event.
    let decoy = r#"}, {\"ph\": 1}, {"#;
    let nested = r#"[{"name": 1}, {"ph": 2}]"#;
    let events: Vec<String> = (0..45_000)
        .map(|i| {
            format!(
                r#"{{"ph": "X", "cat": "cpu_op", "name": "op{}", "pid": 1, "tid": {}, "ts": {i}.{:03}, "dur": 0.5,
                "args": {{"Call stack": "{decoy}{decoy}", "nested": {nested}}}}}"#,
                i % 100,
                i % 7,
                i % 1000
            )
        })
        .collect();
    let t = trace(&events.join(",\n"), r#", "baseTimeNanoseconds": 0"#);
    assert_eq!((t.slice_count(), t.tracks.len(), t.start_unix_ns), (45_000, 7, Some(0)));
    assert!(t.stats.is_empty(), "{:?}", t.stats);
    for (lane, tid) in t.lanes.iter().zip(0..) {
        for row in 0..lane.len() {
            let i = tid + 7 * row as i64;
            assert_eq!((lane.start[row], lane.dur[row]), (i * 1000 + i % 1000, 500));
            assert_eq!(lane.category[row], Category::FrameworkOp);
        }
    }
    assert!(t.tracks.iter().all(|track| track.key.kind == TrackKind::HostThread));
}
