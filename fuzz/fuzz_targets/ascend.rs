//! Any bytes as an Ascend timeline, database, table of tasks, table of sums or analysis of a job: reading must end, without
//! panic, and give a trace whose columns agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::TraceBuilder;
use parsers::ascend::{CLUSTER_FORMAT, FORMAT, TABLE_FORMAT, TOTALS_FORMAT};

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
    if std::fs::write(file.path(), bytes).is_err() {
        return;
    }
    for format in [FORMAT, TABLE_FORMAT, TOTALS_FORMAT, CLUSTER_FORMAT] {
        let mut sink = TraceBuilder::new("fuzz", format.id);
        if (format.read)(file.path(), &mut sink, &parsers::ReadOptions::default()).is_ok() {
            let trace = sink.finish();
            for lane in &trace.lanes {
                assert_eq!((lane.start.len(), lane.start.len()), (lane.dur.len(), lane.depth.len()));
                assert!(lane.start.is_sorted() && lane.dur.iter().all(|dur| *dur >= 0));
            }
        }
    }
});
