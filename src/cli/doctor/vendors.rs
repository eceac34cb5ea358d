//! What `strato doctor` says of the tools and libraries of the vendors: which are there, which are missing, and the command
//! that brings them.

use std::{borrow::Cow, ffi::OsString, path::PathBuf};

use collectors::{cupti, mspti::preload, record, telemetry::dcmi};
use engine::{ascend, library};
use parsers::device_text;

use super::{Finding, on_path};

/// Something of a vendor.
struct Piece {
    vendor: &'static str,
    /// Its name, which of a library is that of its first file.
    name: &'static str,
    /// What it is for.
    what: &'static str,
    is_there: Result<String, &'static str>,
    remedy: Cow<'static, str>,
}

/// Files under which a library of these names may lie.
type Files = fn(&[&str]) -> Vec<PathBuf>;

/// A library that is opened when it is needed.
struct Library {
    vendor: &'static str,
    /// Names under which it may lie, the newest first.
    names: &'static [&'static str],
    /// Files to try in their order, as who opens it does; a bare name is looked for where the loader looks.
    files: Files,
    what: &'static str,
    remedy: &'static str,
}

const CANN: &str = "./Ascend-cann-toolkit_VERSION_linux-ARCH.run --install, then source \
                    /usr/local/Ascend/ascend-toolkit/set_env.sh";
const NPU_DRIVER: &str = "./Ascend-hdk-CHIP-npu-driver_VERSION_linux-ARCH.run --full";
const ROCM: &str = "amdgpu-install --usecase=rocm";

/// Libraries by vendor. Names and packages: NVIDIA's CUDA installation guide for Linux and its wheels on PyPI, the CANN and driver
/// installation guides of hiascend.com, AMD's ROCm installation guide for Linux.
#[rustfmt::skip]
const LIBRARIES: &[Library] = &[
    library("nvidia", &["libcuda.so.1"], |names| named("STRATO_CUDA_DRIVER", names), "driver", "apt-get install cuda-drivers (NVIDIA's repository)"),
    library("nvidia", &["libnvidia-ml.so.1"], bare, "NVML", "apt-get install cuda-drivers (NVIDIA's repository)"),
    library("nvidia", &["libnvrtc.so.13", "libnvrtc.so.12"], |names| named("STRATO_NVRTC", names), "compiler", "pip install nvidia-cuda-nvrtc"),
    library("nvidia", &["libcupti.so.13", "libcupti.so.12"], |_| cupti::find::candidates(&variable), "records of kernels", "pip install nvidia-cuda-cupti"),
    library("nvidia", &["libnccl.so.2"], |names| named("STRATO_NCCL", names), "collectives", "apt-get install libnccl2 (NVIDIA's repository)"),
    library("ascend", &["libascendcl.so"], of_cann, "AscendCL", CANN),
    library("ascend", &["libhccl.so"], of_cann, "collectives", CANN),
    library("ascend", &["libmspti.so"], |_| preload::find(&variable).into_iter().collect(), "records of tasks", CANN),
    library("ascend", &["libdcmi.so"], |_| dcmi::candidates(&variable).unwrap_or_default(), "management", NPU_DRIVER),
    library("amd", &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"], bare, "HIP", ROCM),
    library("amd", &["librccl.so.1"], bare, "collectives", ROCM),
];

const fn library(
    vendor: &'static str,
    names: &'static [&'static str],
    files: Files,
    what: &'static str,
    remedy: &'static str,
) -> Library {
    Library { vendor, names, files, what, remedy }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn bare(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

/// The file that a variable names and no other; without one the names.
fn named(by: &str, names: &[&str]) -> Vec<PathBuf> {
    let given = variable(by).filter(|file| !file.is_empty());
    given.map_or_else(|| bare(names), |file| vec![file.into()])
}

fn of_cann(names: &[&str]) -> Vec<PathBuf> {
    let given = variable("STRATO_ASCEND_LIB").filter(|file| !file.is_empty());
    given.map_or_else(|| names.iter().flat_map(|name| ascend::places(name)).collect(), |file| vec![file.into()])
}

/// The first of these files that is there.
fn first(files: Vec<PathBuf>) -> Result<String, &'static str> {
    let is_there = |file: &PathBuf| match file.to_str().filter(|_| file.components().count() == 1) {
        Some(name) => library::found(&[name]).is_some(),
        None => file.is_file(),
    };
    files.into_iter().find(is_there).map(|file| file.display().to_string()).ok_or("it is not found")
}

/// What brings a device tool: it comes with the vendor's driver.
fn tool_remedy(vendor: &str) -> &'static str {
    match vendor {
        "nvidia" => "apt-get install cuda-drivers (NVIDIA's repository)",
        "ascend" => NPU_DRIVER,
        "amd" => "apt-get install rocm-smi (Debian), or amdgpu-install --usecase=rocm",
        "hygon" => "the DTK of developer.hpccube.com, then source /opt/dtk/env.sh",
        "cambricon" => "apt-get install ./cambricon-mlu-driver_VERSION.deb",
        "metax" => "apt-get install ./metax-driver_VERSION.deb (developer.metax-tech.com)",
        "mthreads" => "apt-get install ./musa_VERSION.deb (developer.mthreads.com)",
        _ => "the driver of the device, from its vendor",
    }
}

/// One row for everything of a vendor of whom something is here; one row in all for a vendor of whom nothing is.
pub(super) fn rows() -> Vec<(String, Finding)> {
    let pieces = pieces();
    let mut vendors: Vec<&str> = pieces.iter().map(|piece| piece.vendor).collect();
    vendors.dedup();
    let mut rows: Vec<(String, Finding)> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for vendor in vendors {
        if told.contains(&vendor) {
            continue;
        }
        told.push(vendor);
        let own: Vec<&Piece> = pieces.iter().filter(|piece| piece.vendor == vendor).collect();
        if own.iter().all(|piece| piece.is_there.is_err()) {
            let names: Vec<&str> = own.iter().map(|piece| piece.name).collect();
            let remedy = format!("only for devices of {vendor}: {}", tool_remedy(vendor));
            rows.push((vendor.to_owned(), Finding::lacking(format!("none of {}", names.join(", ")), remedy)));
            continue;
        }
        for Piece { name, what, is_there, remedy, .. } in own {
            let finding = match is_there {
                Ok(place) => Finding::good(format!("{what}: {place}")),
                Err(why) => Finding::lacking(format!("{what}: {why}"), remedy.clone()),
            };
            rows.push(((*name).to_owned(), finding));
        }
    }
    rows
}

fn pieces() -> Vec<Piece> {
    let program = |name: &str| on_path(name).map(|path| path.display().to_string()).ok_or("not on PATH");
    let tools = device_text::REGISTRY.iter().map(|tool| Piece {
        vendor: tool.vendor,
        name: tool.id,
        what: "device tool",
        is_there: program(tool.id),
        remedy: tool_remedy(tool.vendor).into(),
    });
    let profilers = record::REGISTRY.iter().map(|profiler| Piece {
        vendor: profiler.vendor,
        name: profiler.id,
        what: "profiler",
        is_there: program(profiler.id),
        remedy: profiler.remedy.into(),
    });
    let libraries = LIBRARIES.iter().map(|library| Piece {
        vendor: library.vendor,
        name: library.names.first().copied().unwrap_or_default(),
        what: library.what,
        is_there: first((library.files)(library.names)),
        remedy: library.remedy.into(),
    });
    tools.chain(profilers).chain(libraries).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_library_is_the_first_of_its_files_that_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let [there, absent] = ["libmspti.so", "libnone.so"].map(|name| directory.path().join(name));
        std::fs::write(&there, "").unwrap();
        assert_eq!(first(vec![absent.clone(), there.clone()]), Ok(there.display().to_string()));
        assert!(first(vec![absent, "libstrato-none.so.9".into()]).is_err());
        #[cfg(target_os = "linux")]
        assert_eq!(first(vec!["libstrato-none.so.9".into(), "libc.so.6".into()]), Ok("libc.so.6".to_owned()));
    }

    #[test]
    fn every_tool_profiler_and_library_is_spoken_of_and_what_is_missing_has_a_remedy() {
        let pieces = pieces();
        assert_eq!(pieces.len(), device_text::REGISTRY.len() + record::REGISTRY.len() + LIBRARIES.len());
        assert!(pieces.iter().all(|piece| !piece.name.is_empty() && !piece.remedy.is_empty()));
        let rows = rows();
        for piece in &pieces {
            let is_told =
                |(name, finding): &(String, Finding)| name == piece.name || finding.state.contains(piece.name);
            assert!(rows.iter().any(is_told), "{} is not spoken of", piece.name);
        }
        assert!(rows.iter().all(|(_, finding)| finding.verdict == "ok" || finding.remedy.is_some()));
    }
}
