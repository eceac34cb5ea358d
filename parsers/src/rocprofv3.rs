//! rocprofv3, the profiler of ROCm 6 and later, as CSV files and as JSON.
//!
//! The CSV files of one process share a prefix (`<prefix>_kernel_trace.csv`, `<prefix>_hip_api_trace.csv`, …) and are one
//! capture; where the prefixes are process ids, so are all files of the directory, for all processes of a machine share
//! its clock. Times are ns since boot. Source: rocprofiler-sdk, files of ROCm 6.2 to 7.

use std::path::{Path, PathBuf};

use model::TraceSink;

use crate::{Format, Head, Match, ReadError, ReadOptions, csv_table, hip};

mod agents;
mod files;
mod import;
mod json;
mod records;
#[cfg(feature = "sqlite")]
mod rocpd;
mod tables;
#[cfg(test)]
mod tests;

#[cfg(feature = "sqlite")]
pub use rocpd::FORMAT as DATABASE_FORMAT;

/// rocprofv3's output.
pub const FORMAT: Format = Format { id: "rocprofv3", name: "rocprofv3 CSV or JSON", matches, read, lead };

fn matches(head: &Head<'_>) -> Match {
    if json::matches(head.bytes) {
        // The program's name is the key that holds everything.
        Match::Named
    } else if tables::of(&csv_table::first_header(head.bytes)).is_some() {
        Match::Certain
    } else {
        Match::No
    }
}

/// The first CSV file of the capture, which is read with all others.
fn lead(path: &Path) -> Option<PathBuf> {
    files::of_capture(path).into_iter().next().map(|file| file.path).filter(|first| first != path)
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let head = crate::container::head(path, 4096)?;
    if json::matches(&head) {
        json::read(path, sink, options.progress)
    } else {
        import::read(path, sink, options.progress)?;
        // What rocprof-compute and rocprofv3 --stats sum of the kernels.
        let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if named(path) == "pmc_perf.csv" {
            hip::tell_sums(&path.with_file_name("pmc_kernel_top.csv"), sink);
        }
        for file in files::of_capture(path).iter().filter(|file| named(&file.path).ends_with("kernel_stats.csv")) {
            hip::tell_sums(&file.path, sink);
        }
        Ok(())
    }
}
