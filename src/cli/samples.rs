//! The sample captures, built into the program: what `strato diagnose --samples` shows.

use std::path::Path;

/// Name and content of each sample. All are simulated and say so themselves.
const SAMPLES: &[(&str, &[u8])] = &[
    ("launch-bound-eager.json.gz", include_bytes!("../../sample-traces/launch-bound-eager.json.gz")),
    ("sync-per-layer.sqlite", include_bytes!("../../sample-traces/sync-per-layer.sqlite")),
    ("tensor-parallel-rocm.json.gz", include_bytes!("../../sample-traces/tensor-parallel-rocm.json.gz")),
    ("healthy-full-graph.json.gz", include_bytes!("../../sample-traces/healthy-full-graph.json.gz")),
];

/// Writes the samples into a directory, from which they are read like any other trace.
///
/// # Errors
/// Those of writing files.
pub fn unpack(directory: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    SAMPLES
        .iter()
        .map(|(name, content)| {
            let path = directory.join(name);
            std::fs::write(&path, content)?;
            Ok(path)
        })
        .collect()
}
