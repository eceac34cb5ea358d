//! `rocprofv3` of ROCm. Source of the flags: "Using rocprofv3", ROCprofiler-SDK documents 6.2 to 7.14
//! (rocm.docs.amd.com/projects/rocprofiler-sdk). Stamps are those of `CLOCK_BOOTTIME`, as the SDK's `rocprofiler_get_timestamp`
//! and the driver's clock counters are; its files do not say what they are on the wall clock.

use std::{ffi::OsString, path::Path};

use super::{Numbering, Profiler, Stamps, with_path};

/// The profiler.
pub const PROFILER: Profiler = Profiler {
    id: "rocprofv3",
    vendor: "amd",
    flags,
    // What follows is the command and no option any more.
    around: [&[], &["--"]],
    stamps: Stamps::SinceBoot,
    devices: Numbering::Agents,
    remedy: "install rocprofiler-sdk of ROCm 6.2 or newer (apt-get install rocprofiler-sdk from AMD's repository) and put \
             /opt/rocm/bin in PATH",
};

fn flags(directory: &Path) -> Vec<OsString> {
    // Kernels, calls of HIP, copies, and ranges of rocTX. `--sys-trace` adds the calls of HSA below, which are many.
    let flags = ["--kernel-trace", "--hip-trace", "--memory-copy-trace", "--marker-trace", "--output-format=csv"];
    flags.into_iter().map(OsString::from).chain([with_path("--output-directory=", directory)]).collect()
}
