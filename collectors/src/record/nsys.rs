//! `nsys profile` of Nsight Systems. Source of the flags: Nsight Systems User Guide, "CLI Profile Command Switch Options"
//! (docs.nvidia.com/nsight-systems/UserGuide), versions 2022.1 to 2025.6. That the report becomes an SQLite export is the
//! importer's work, with the same `nsys`.

use std::{ffi::OsString, path::Path};

use super::{Numbering, Profiler, Stamps, with_path};

/// The profiler.
pub const PROFILER: Profiler = Profiler {
    id: "nsys",
    vendor: "nvidia",
    flags,
    around: [&["profile"], &[]],
    stamps: Stamps::Told,
    devices: Numbering::Ordinals,
    remedy: "install Nsight Systems (developer.nvidia.com/nsight-systems, or apt-get install nsight-systems-cli from \
             NVIDIA's repository) and put nsys in PATH",
};

fn flags(directory: &Path) -> Vec<OsString> {
    let flags = [
        // Calls and kernels of CUDA, ranges, and system calls in which a host thread waits.
        "--trace=cuda,nvtx,osrt",
        // Samples of call stacks and switches between threads cost time and answer nothing that is asked here; both are on
        // where a command is launched.
        "--sample=none",
        "--cpuctxsw=none",
        // The guide's default is 'graph', one record for a whole replay, which leaves its kernels out. 'node' tells of each
        // and makes replays longer.
        "--cuda-graph-trace=node",
        "--force-overwrite=true",
    ];
    flags.into_iter().map(OsString::from).chain([with_path("--output=", &directory.join("report"))]).collect()
}
