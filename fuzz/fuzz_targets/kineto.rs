//! Any bytes as a Kineto trace: no panic, no hang, and a trace whose columns agree.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use model::TraceBuilder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    if file.write_all(bytes).is_err() {
        return;
    }
    let mut sink = TraceBuilder::new("fuzz", "kineto");
    if (parsers::kineto::FORMAT.read)(file.path(), &mut sink, &parsers::ReadOptions::default()).is_ok() {
        let trace = sink.finish();
        for lane in &trace.lanes {
            assert_eq!((lane.start.len(), lane.start.len()), (lane.dur.len(), lane.depth.len()));
            assert!(lane.start.is_sorted() && lane.dur.iter().all(|dur| *dur >= 0));
        }
    }
});
