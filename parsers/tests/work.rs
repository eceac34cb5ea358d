//! Every reader's work is bounded by a multiple of the bytes that it reads. Each input here once cost its square, or never ended; the
//! limits are generous to a slow build on a busy machine and still far from what the square of these sizes takes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::Write,
    time::{Duration, Instant},
};

use model::{Category, Trace, TraceBuilder};
use parsers::{ReadOptions, format};

const LIMIT: Duration = Duration::from_secs(120);

fn kineto(content: &str) -> Trace {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    let began = Instant::now();
    let mut sink = TraceBuilder::new("t", "kineto");
    (format("kineto").unwrap().read)(file.path(), &mut sink, &ReadOptions::default()).unwrap();
    assert!(began.elapsed() < LIMIT, "{} bytes took {:?}", content.len(), began.elapsed());
    sink.finish()
}

fn event(i: usize) -> String {
    format!(r#"{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{i},"dur":1}}"#)
}

#[test]
fn a_million_empty_arrays_of_events_cost_their_own_bytes() {
    let trace = kineto(&format!(r#"{{{}"traceEvents":[{}]}}"#, r#""traceEvents":[],"#.repeat(1_000_000), event(1)));
    assert_eq!(trace.slice_count(), 1);
}

#[test]
fn many_arrays_of_an_event_each_lose_none() {
    let arrays: Vec<String> = (0..100_000).map(|i| format!(r#""traceEvents":[{}]"#, event(i))).collect();
    let trace = kineto(&format!("{{{}}}", arrays.join(",")));
    assert_eq!(trace.slice_count(), 100_000);
}

#[test]
fn members_beside_the_events_cost_their_own_bytes() {
    let trace = kineto(&format!(r#"{{"traceEvents":[{}]{}}}"#, event(1), r#","a":1"#.repeat(600_000)));
    assert_eq!(trace.slice_count(), 1);
}

/// Damage that looks like the end of the events, again and again.
#[test]
fn events_behind_many_false_ends_are_read_once() {
    let part = |i: usize| format!(r#"{},{{"ph":!}}],"x":1,{}"#, event(2 * i), event(2 * i + 1));
    let parts: Vec<String> = (0..50_000).map(part).collect();
    let trace = kineto(&format!(r#"{{"traceEvents":[{}]}}"#, parts.join(",")));
    assert!(trace.slice_count() >= 99_000, "{}", trace.slice_count());
    assert!(trace.stat("kineto.broken_events") > 0);
}

/// Whole events are found wherever the blocks of a large file end.
#[test]
fn a_file_of_many_blocks_is_whole() {
    let events: Vec<String> = (0..400_000).map(event).collect();
    let trace = kineto(&format!("{{\"schemaVersion\":1,\"traceEvents\":[{}]}}", events.join(",\n")));
    let categories = trace.lanes.iter().flat_map(|lane| &lane.category);
    assert_eq!(categories.filter(|category| **category == Category::FrameworkOp).count(), 400_000);
    assert!(trace.stats.iter().all(|stat| !stat.name.starts_with("kineto.")), "{:?}", trace.stats);
}
