//! `msprof` of CANN. Source of the flags: `msprof [options] <app>` in the CANN Community Edition documents 8.1 to 9.1,
//! Profiling, atlasprofiling_16_0010 (`--output`) and atlasprofiling_16_0011 (the others), hiascend.com/document. When the
//! command ends, `msprof` parses what it collected into `PROF_*/mindstudio_profiler_output` by itself.

use std::{ffi::OsString, path::Path};

use super::{Numbering, Profiler, Stamps, with_path};

/// The profiler.
pub const PROFILER: Profiler = Profiler {
    id: "msprof",
    vendor: "ascend",
    flags,
    around: [&[], &[]],
    stamps: Stamps::Told,
    devices: Numbering::Ordinals,
    remedy: "install the CANN toolkit (hiascend.com/cann) and run 'source /usr/local/Ascend/ascend-toolkit/set_env.sh', \
             which puts msprof in PATH",
};

fn flags(directory: &Path) -> Vec<OsString> {
    let flags = [
        // Calls of AscendCL, by default on, and those of the runtime below it, by default off: without them no launch is
        // known.
        "--ascendcl=on",
        "--runtime-api=on",
        // Tasks of the device with what each operator is; 'l0' leaves the latter out and costs less.
        "--task-time=on",
    ];
    std::iter::once(with_path("--output=", directory)).chain(flags.into_iter().map(OsString::from)).collect()
}
