//! hipprof, the profiler of Hygon's DTK, as JSON. DTK descends from ROCm and so does the shape of the file; its durations
//! mean something else: a queued kernel begins where its predecessor ends, so that the gap of its dispatch lies inside it
//! (the card of this format says so).
//!
//! No public file of it is known; the reader takes the lanes of roctracer's shape, with times as µs or as exact ns.

use std::path::Path;

use model::TraceSink;

use crate::{Format, Head, Match, Progress, ReadError, hip_events};

/// hipprof's JSON.
pub const FORMAT: Format = Format { id: "hipprof", name: "DTK hipprof JSON", matches, read, lead: crate::alone };

fn matches(head: &Head<'_>) -> Match {
    let has = |text: &str| memchr::memmem::find(head.bytes, text.as_bytes()).is_some();
    let json = head.bytes.trim_ascii_start().first().is_some_and(|b| matches!(b, b'{' | b'['));
    if json && has("hipprof") && has("\"ph\"") { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    hip_events::read(path, &hip_events::Profiler { format: "hipprof", vendor: "hygon" }, sink, progress)
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

    #[test]
    fn queued_kernels_touch_and_keep_every_nanosecond() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        std::fs::write(&path, FILE).unwrap();
        assert_eq!(matches(&Head { path: &path, bytes: FILE.as_bytes() }), Match::Certain);
        let mut builder = TraceBuilder::new("t", "hipprof");
        read(&path, &mut builder, &|_, _| {}).unwrap();
        let trace = builder.finish();
        let queue = trace.lanes.iter().find(|lane| lane.len() == 2).unwrap();
        assert_eq!((queue.start.as_slice(), queue.dur.as_slice()), (&[9_625, 15_125][..], &[5_500, 4_000][..]));
        assert!(queue.link(0).is_some() && queue.link(1).is_none());
        assert_eq!(trace.manifest.value("hardware.vendor"), Some("hygon"));
    }
}
