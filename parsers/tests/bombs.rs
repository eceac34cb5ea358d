//! Compressed files that inflate to hundreds of megabytes are read in the memory of what is kept. A binary of its own,
//! so that no other test's memory counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)] // the tests of damage look at more of an input
#[path = "damaged/inputs.rs"]
mod inputs;

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use model::TraceBuilder;

/// What is inflated behind each whole file, MiB.
const FILLING: usize = 192;
/// What may be held, kB: a result of 64 MiB is read as a whole, and blocks of a stream lie in queues.
const GROWTH: u64 = 150 << 10;

#[test]
fn a_gzip_bomb_is_read_in_bounded_memory() {
    let directory = tempfile::tempdir().unwrap();
    let before = resident();
    // One of each way of reading: the others read by the same one.
    let readers = [
        "trace_view.json",
        "kernel_details.csv",
        "3_results.json",
        "results.json",
        "p.details.csv",
        "steps.jsonl",
        "steps.csv",
        "server.log",
        "result.json",
        "nccl.txt",
    ];
    // One endless line, empty lines, and an endless nesting.
    for filling in [b'0', b'\n', b'['] {
        let block = vec![filling; 1 << 20];
        for input in inputs::all().iter().filter(|input| readers.contains(&input.name)) {
            // Brackets nest in JSON only, and empty lines are none there.
            if (filling == b'[') != input.name.ends_with(".json") && filling != b'0' {
                continue;
            }
            let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
            gz.write_all(&input.bytes).unwrap();
            (0..FILLING).for_each(|_| gz.write_all(&block).unwrap());
            let path = directory.path().join(input.name);
            std::fs::write(&path, gz.finish().unwrap()).unwrap();
            assert!(path.metadata().unwrap().len() < 4 << 20);
            let mut sink = TraceBuilder::new("t", input.format);
            if parsers::detect::read(&path, Some(input.format), &mut sink, &|_, _| {}).is_ok() {
                assert!(sink.finish().slice_count() < 1000, "{}", input.name);
            }
            std::fs::remove_file(path).unwrap();
            if let (Some(before), Some(after)) = (before, resident()) {
                let grown = after.saturating_sub(before);
                assert!(grown < GROWTH, "{} and {:?}: grew by {grown} kB", input.name, char::from(filling));
            }
        }
    }
}

/// Peak resident memory, kB, where the system tells it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}
