//! Any bytes given as a result of mcProfiler: reading must end, without panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::TraceBuilder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
    if std::fs::write(file.path(), bytes).is_err() {
        return;
    }
    let Some(format) = parsers::format("mcprofiler") else { return };
    let mut builder = TraceBuilder::new("fuzz", format.id);
    if (format.read)(file.path(), &mut builder, &parsers::ReadOptions::default()).is_ok() {
        assert_eq!(builder.finish().slice_count(), 0, "measurements are no slices");
    }
});
