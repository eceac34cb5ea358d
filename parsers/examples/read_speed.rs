//! Reads trace files into memory and prints how fast: `cargo run --release --example read_speed -- FILE…`. The scripts in
//! `benches/` use it to time parsing without the store.

use std::{path::Path, time::Instant};

use model::TraceBuilder;

fn main() -> Result<(), parsers::ReadError> {
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        let mut sink = TraceBuilder::new(path.as_str(), "");
        let format = parsers::detect::read(Path::new(&path), &mut sink, &parsers::ReadOptions::default())?;
        let parsed = start.elapsed();
        let trace = sink.finish();
        let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        println!(
            "{path}: {} {} slices, {bytes} bytes, parse {:.3} s = {:.0} MB/s, settle {:.3} s, peak {}",
            format.id,
            trace.slice_count(),
            parsed.as_secs_f64(),
            bytes as f64 / 1e6 / parsed.as_secs_f64(),
            (start.elapsed() - parsed).as_secs_f64(),
            peak_memory().unwrap_or_else(|| "unknown".into()),
        );
    }
    Ok(())
}

/// Peak resident memory of this process, where the system tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().to_owned())
}
