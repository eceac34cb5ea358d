//! Any bytes given as a layer profile of TensorRT: reading must end, without panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::TraceBuilder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
    if std::fs::write(file.path(), bytes).is_err() {
        return;
    }
    let Some(format) = parsers::format("trtexec") else { return };
    let mut builder = TraceBuilder::new("fuzz", format.id);
    let _ = (format.read)(file.path(), &mut builder, &parsers::ReadOptions::default());
    builder.finish();
});
