//! Any bytes given as a timeline of TensorFlow: reading must end, without panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::TraceBuilder;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
    if std::fs::write(file.path(), bytes).is_err() {
        return;
    }
    let mut builder = TraceBuilder::new("fuzz", "tf-timeline");
    if (parsers::tf_timeline::FORMAT.read)(file.path(), &mut builder, &parsers::ReadOptions::default()).is_ok() {
        builder.finish();
    }
});
