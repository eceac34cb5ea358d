//! Any bytes given as a Chrome trace of rocmProfileData: reading must end, without panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::TraceBuilder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
    if std::fs::write(file.path(), bytes).is_err() {
        return;
    }
    let mut builder = TraceBuilder::new("fuzz", "rpd-json");
    if (parsers::rpd_json::FORMAT.read)(file.path(), &mut builder, &parsers::ReadOptions::default()).is_ok() {
        builder.finish();
    }
});
