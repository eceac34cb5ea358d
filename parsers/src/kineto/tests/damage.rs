//! Odd and damaged files: what can be read is read, the rest is counted or refused with a place.

use model::{Category, ImportStat, TrackKind};

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

/// A launch, its kernel, and the arrow between them, as Kineto writes them.
fn linked(at: u32) -> [String; 4] {
    let slice = |cat: &str, name: &str, tid: u32, ts: u32| {
        format!(
            r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 0, "tid": {tid}, "ts": {ts}.5, "dur": 1, "args": {{"correlation": {at}}}}}"#
        )
    };
    let end = |ph: char, tid: u32, ts: u32| {
        format!(r#"{{"ph": "{ph}", "id": {at}, "pid": 0, "tid": {tid}, "ts": {ts}.5, "cat": "ac2g", "name": "ac2g"}}"#)
    };
    [
        slice("cuda_runtime", "cudaLaunchKernel", 9, at),
        end('s', 9, at),
        slice("kernel", "k", 7, at + 2),
        end('f', 7, at + 2),
    ]
}

/// Rows that were taken out of a file leave the ends of their arrows behind.
#[test]
fn arrows_without_a_slice_tell_of_rows_that_are_missing() {
    let lost = |keep: &dyn Fn(usize, usize) -> bool| {
        let rows =
            (0..20).flat_map(|i| linked(10 * i).into_iter().enumerate().map(move |(at, row)| (i as usize, at, row)));
        let kept: Vec<String> = rows.filter(|(i, at, _)| keep(*i, *at)).map(|(.., row)| row).collect();
        let t = trace(&kept.join(","), "");
        (t.stat(ImportStat::CALLS_WITHOUT_ROW), t.stat(ImportStat::WORK_WITHOUT_ROW))
    };
    assert_eq!(lost(&|_, _| true), (0, 0));
    assert_eq!(lost(&|i, at| at != 2 || i % 4 > 0), (0, 5));
    assert_eq!(lost(&|i, at| at != 0 || i == 0 || i % 4 > 0), (4, 0));
    // Sorted by something else than their place, arrows do not follow their slices.
    let mut rows: Vec<String> = (0..20).flat_map(|i| linked(10 * i)).collect();
    rows.sort_by_key(|row| row.contains("ac2g"));
    let t = trace(&rows.join(","), "");
    assert_eq!((t.stat(ImportStat::CALLS_WITHOUT_ROW), t.stat(ImportStat::WORK_WITHOUT_ROW)), (0, 0));
}

/// A kernel that is no JSON, or lasts no time, is read and not kept: it was none, or idle time.
#[test]
fn kernels_that_cannot_be_read_stand_in_the_ledger() {
    let [[_, _, kernel, _], [_, _, other, _]] = [10, 20].map(linked);
    for bad in [kernel.replace(r#""dur": 1,"#, r#""dur" 1,"#), kernel.replace(r#""dur": 1,"#, r#""dur": "x","#)] {
        let t = trace(&[kernel.as_str(), &bad, &other].join(","), "");
        let row = t.ledger.iter().find(|row| row.category == "kernel").unwrap();
        assert_eq!((row.read, row.kept, t.slice_count()), (3, 2, 2), "{bad}");
    }
}

#[test]
fn homes_are_left_out_of_the_names_of_python_frames() {
    let frame = r#"{"ph": "X", "cat": "python_function", "name": "/data/home/alice/x.py(3): f", "pid": 1, "tid": 1, "ts": 1, "dur": 1}"#;
    assert!(rows(&trace(frame, ""))[0].contains(" ~/x.py(3): f python_frame"));
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
