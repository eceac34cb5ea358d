//! Compressed files that inflate to hundreds of megabytes are read in the memory of what is kept. A binary of its own,
//! so that no other test's memory counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)] // the tests of damage look at more of an input
#[path = "damaged/inputs.rs"]
mod inputs;

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use model::TraceBuilder;

/// What is inflated behind each whole file, MiB, and what reading it may hold of that, kB: blocks of a stream lie in queues.
const STREAM: (usize, u64) = (64, 40 << 10);
/// The same where a file of up to 64 MiB is read as a whole.
const WHOLE: (usize, u64) = (192, 150 << 10);

#[test]
fn a_gzip_bomb_is_read_in_bounded_memory() {
    let directory = tempfile::tempdir().unwrap();
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
            let (filled, most) = if input.format == "serving" { WHOLE } else { STREAM };
            let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
            gz.write_all(&input.bytes).unwrap();
            (0..filled).for_each(|_| gz.write_all(&block).unwrap());
            let path = directory.path().join(input.name);
            std::fs::write(&path, gz.finish().unwrap()).unwrap();
            assert!(path.metadata().unwrap().len() < 4 << 20);
            let mut sink = TraceBuilder::new("t", input.format);
            let before = resident();
            let options = parsers::ReadOptions { format: Some(input.format), ..parsers::ReadOptions::default() };
            if parsers::detect::read(&path, &mut sink, &options).is_ok() {
                assert!(sink.finish().slice_count() < 1000, "{}", input.name);
            }
            std::fs::remove_file(path).unwrap();
            if let (Some(before), Some(after)) = (before, peak()) {
                let grown = after.saturating_sub(before);
                println!("{} and {:?}: {grown} kB", input.name, char::from(filling));
                assert!(grown < most, "{} and {:?}: grew by {grown} kB", input.name, char::from(filling));
            }
        }
    }
}

/// Resident memory, kB, where the system tells it; the peak begins anew there.
fn resident() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// Peak of the resident memory since [`resident`] was asked, kB.
fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(key))?.trim().trim_end_matches(" kB").parse().ok()
}
