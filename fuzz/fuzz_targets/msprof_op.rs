//! Any bytes given as a file of msprof op: reading must end, without panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::TraceBuilder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(directory) = tempfile::tempdir() else { return };
    let path = directory.path().join("OpBasicInfo.csv");
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    let mut builder = TraceBuilder::new("fuzz", "msprof-op");
    if (parsers::msprof_op::FORMAT.read)(&path, &mut builder, &parsers::ReadOptions::default()).is_ok() {
        builder.finish();
    }
});
