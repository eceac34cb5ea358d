//! hipprof, the profiler of Hygon's DTK, as JSON. DTK descends from ROCm and so does the shape of the file; its durations
//! mean something else: a queued kernel begins where its predecessor ends, so that the gap of its dispatch lies inside it
//! (the card of this format says so).
//!
//! The reader takes the lanes of roctracer's shape, with times as µs or as exact ns, and the categories `HIP`, `HIPOPS` and
//! `HIPCOPY` that DTK 25 writes, whose arguments are `devId`, `queueId`, `procId` and whose calls are linked by arrows.

use std::path::Path;

use model::TraceSink;

use crate::{Format, Head, Match, ReadError, ReadOptions, hip_events, json::member};

/// hipprof's JSON.
pub const FORMAT: Format = Format { id: "hipprof", name: "DTK hipprof JSON", matches, read, lead: crate::alone };

/// hipprof's database.
#[cfg(feature = "sqlite")]
pub const DATABASE_FORMAT: Format = Format {
    id: "hipprof-db",
    name: "DTK hipprof database",
    matches: |head| crate::hip_database::matches(head, crate::hip_database::Profiler::Hipprof),
    read: crate::hip_database::read,
    lead: crate::alone,
};

/// Categories that only its events have.
const CATEGORIES: [&[u8]; 2] = [b"HIPOPS", b"HIPCOPY"];
/// What the program calls itself, before its version.
const NAME: &[u8] = b"hipprof";
/// Keys under which a file says which program wrote it.
const WRITERS: [&str; 6] = ["tool", "profiler", "generator", "producer", "creator", "version"];

/// Bytes in which a version that numbers its events has numbered one.
const HEAD: usize = 1 << 18;

fn matches(head: &Head<'_>) -> Match {
    let bytes = head.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head.bytes).trim_ascii_start();
    let is_own = |text: &[u8]| text.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
    let named = || WRITERS.iter().any(|key| member::texts(bytes, key).any(is_own));
    let json = bytes.first().is_some_and(|b| matches!(b, b'{' | b'['));
    let own = || member::texts(bytes, "cat").any(|cat| CATEGORIES.contains(&cat));
    if json && (named() || own()) && member::has_key(bytes, "ph") { Match::Named } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    // As with rocprof, numbered events need no arrows.
    let arrows = !member::has_key(&crate::container::head(path, HEAD)?, "Index");
    let profiler = hip_events::Profiler { format: "hipprof", vendor: "hygon", arrows };
    hip_events::read(path, &profiler, sink, options.progress)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::TraceBuilder;

    const FILE: &str = r#"{"otherData":{"tool":"hipprof"},"traceEvents":[
{"ph":"M","name":"process_name","pid":2,"args":{"name":"CPU HIP API"}},
{"ph":"M","name":"process_name","pid":6,"args":{"name":"GPU0"}},
{"ph":"X","name":"hipLaunchKernel","pid":2,"tid":7,"ts":"1000.5","dur":2,"args":{"pid":"7","tid":"7","Index":1}},
{"ph":"X","name":"first","pid":6,"tid":0,"ts":1010.125,"dur":"5.5","args":{"pid":"7","Index":1,"queue-id":"0"}},
{"ph":"X","name":"second","pid":6,"tid":0,"ts":1015.625,"dur":"4","args":{"pid":"7","Index":2,"queue-id":"0"}}]}"#;

    fn trace(text: &str) -> model::Trace {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        std::fs::write(&path, text).unwrap();
        assert_eq!(matches(&Head::new(&path, text.as_bytes())), Match::Named);
        let mut builder = TraceBuilder::new("t", "hipprof");
        read(&path, &mut builder, &crate::ReadOptions::default()).unwrap();
        builder.finish()
    }

    #[test]
    fn copies_say_their_direction() {
        let copy =
            r#"{"ph":"X","name":"CopyHostToDevice","pid":1,"tid":0,"ts":1,"dur":2,"args":{"pid":"7","dev-id":0}}]}"#;
        let trace = trace(&FILE.replace("]}", &format!(",\n{copy}")));
        let said =
            trace.details.iter().find_map(|d| if let model::Detail::Copy(copy) = d { copy.direction } else { None });
        assert_eq!(said.map(|direction| trace.strings.get(direction)), Some("HtoD"));
    }

    #[test]
    fn a_stream_is_one_track_whatever_queues_it_uses() {
        let on = |kind: &str, lane: i64, queue: i64| {
            format!(
                r#"{{"ph":"X","name":"{kind}","pid":{lane},"tid":0,"ts":1,"dur":2,"args":{{"pid":"7","dev-id":0,"queue-id":{queue},"stream-id":9}}}}"#
            )
        };
        let text =
            format!(r#"{{"tool":"hipprof","traceEvents":[{},{}]}}"#, on("CopyHostToDevice", 1, 0), on("gemm", 6, 4));
        assert_eq!(trace(&text).lanes.iter().map(model::Columns::len).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_file_of_the_simulator_says_that_it_is_simulated() {
        assert!(!trace(FILE).simulated);
        let label = r#""tool":"hipprof","stratoSimulated":"true""#;
        assert!(trace(&FILE.replace(r#""tool":"hipprof""#, label)).simulated);
    }

    #[test]
    fn queued_kernels_touch_and_keep_every_nanosecond() {
        let trace = trace(FILE);
        let queue = trace.lanes.iter().find(|lane| lane.len() == 2).unwrap();
        assert_eq!((queue.start.as_slice(), queue.dur.as_slice()), (&[9_625, 15_125][..], &[5_500, 4_000][..]));
        assert!(queue.link(0).is_some() && queue.link(1).is_none());
        assert_eq!(trace.manifest.value("hardware.vendor"), Some("hygon"));
    }

    /// What DTK 25 writes names no program and was taken for rocprof's; its kernels had no device and no launch.
    #[test]
    fn events_with_hipprofs_own_categories_have_devices_and_launches() {
        let text = r#"{"traceEvents":[
{"ph":"X","cat":"HIP","name":"hipLaunchKernel","pid":"app","tid":"Thread77","ts":1000.5,"dur":2,"args":{"BeginNs":"1000500","EndNs":"1002500","index":1,"procId":77}},
{"ph":"X","cat":"HIPOPS","name":"gemm","pid":"app","tid":"Stream2","ts":1010,"dur":5,"args":{"BeginNs":"1010000","EndNs":"1015000","devId":3,"queueId":2,"procId":77,"index":9}},
{"ph":"X","cat":"HIPCOPY","name":"CopyHostToDevice","pid":"app","tid":"H2D","ts":1020,"dur":5,"args":{"BeginNs":"1020000","EndNs":"1025000","devId":3,"queueId":2,"procId":77,"Bytes":64}},
{"ph":"s","cat":"DataFlow","id":4,"name":"dep","pid":"app","tid":"Thread77","ts":1001},
{"ph":"t","cat":"DataFlow","id":4,"name":"dep","pid":"app","tid":"Stream2","ts":1010.0001}]}"#;
        let trace = trace(text);
        let kernel = trace.lanes.iter().find(|lane| lane.category[0] == model::Category::Kernel).unwrap();
        assert!(kernel.link(0).is_some());
        let devices: Vec<_> = trace.tracks.iter().map(|track| track.key.device).collect();
        assert_eq!(devices, [None, Some(3), Some(3)]);
        let bytes =
            trace.details.iter().find_map(|d| if let model::Detail::Copy(copy) = d { copy.bytes } else { None });
        assert_eq!(bytes, Some(64));
    }
}
