//! What `strato doctor` says of the tools and libraries of the vendors: which are there, which are missing, and the command
//! that brings them.

use std::{borrow::Cow, ffi::OsString, path::PathBuf};

use collectors::record;
use engine::library;
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

/// A library that is opened when it is needed.
struct Library {
    vendor: &'static str,
    /// Names under which it may lie, the newest first.
    names: &'static [&'static str],
    /// What names another file of it in its place.
    variable: &'static str,
    /// Where its vendor puts it, beside where the loader looks.
    directories: &'static [&'static str],
    what: &'static str,
    remedy: &'static str,
}

const CANN: &str = "./Ascend-cann-toolkit_VERSION_linux-ARCH.run --install, then source \
                    /usr/local/Ascend/ascend-toolkit/set_env.sh";
const NPU_DRIVER: &str = "./Ascend-hdk-CHIP-npu-driver_VERSION_linux-ARCH.run --full";
const ROCM: &str = "amdgpu-install --usecase=rocm";

const CUDA: &[&str] = &["/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"];
const CANN_LIBRARIES: &[&str] = &["/usr/local/Ascend/ascend-toolkit/latest/lib64", "/usr/local/Ascend/cann/lib64"];

/// Libraries by vendor. Names, directories and packages: NVIDIA's CUDA installation guide for Linux and its wheels on PyPI, the CANN
/// and driver installation guides of hiascend.com, AMD's ROCm installation guide for Linux.
#[rustfmt::skip]
const LIBRARIES: &[Library] = &[
    library("nvidia", &["libcuda.so.1"], "STRATO_CUDA_DRIVER", &[], "driver", "apt-get install cuda-drivers (NVIDIA's repository)"),
    library("nvidia", &["libnvidia-ml.so.1"], "", &[], "NVML", "apt-get install cuda-drivers (NVIDIA's repository)"),
    library("nvidia", &["libnvrtc.so.13", "libnvrtc.so.12"], "STRATO_NVRTC", CUDA, "compiler", "pip install nvidia-cuda-nvrtc"),
    library("nvidia", &["libcupti.so.13", "libcupti.so.12"], "STRATO_CUPTI", CUDA, "records of kernels", "pip install nvidia-cuda-cupti"),
    library("nvidia", &["libnccl.so.2"], "STRATO_NCCL", CUDA, "collectives", "apt-get install libnccl2 (NVIDIA's repository)"),
    library("ascend", &["libascendcl.so"], "STRATO_ASCEND_LIB", CANN_LIBRARIES, "AscendCL", CANN),
    library("ascend", &["libhccl.so"], "STRATO_ASCEND_LIB", CANN_LIBRARIES, "collectives", CANN),
    library("ascend", &["libmspti.so"], "STRATO_MSPTI", CANN_LIBRARIES, "records of tasks", CANN),
    library("ascend", &["libdcmi.so"], "STRATO_DCMI", &["/usr/local/dcmi"], "management", NPU_DRIVER),
    library("amd", &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"], "", &["/opt/rocm/lib"], "HIP", ROCM),
    library("amd", &["librccl.so.1"], "", &["/opt/rocm/lib"], "collectives", ROCM),
];

const fn library(
    vendor: &'static str,
    names: &'static [&'static str],
    variable: &'static str,
    directories: &'static [&'static str],
    what: &'static str,
    remedy: &'static str,
) -> Library {
    Library { vendor, names, variable, directories, what, remedy }
}

/// Where a library lies: the file that its variable names and no other, or one where its vendor puts it, or where the loader looks.
fn place(library: &Library, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<String, &'static str> {
    let given = |name: &str| variable(name).filter(|value| !name.is_empty() && !value.is_empty()).map(PathBuf::from);
    if let Some(file) = given(library.variable) {
        return if file.is_file() {
            Ok(file.display().to_string())
        } else {
            Err("the file that is named is not there")
        };
    }
    let homes = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].into_iter().filter(|_| library.vendor == "ascend");
    let homes = homes.filter_map(given).map(|home| home.join("lib64"));
    let directories: Vec<PathBuf> = homes.chain(library.directories.iter().map(PathBuf::from)).collect();
    let files = library.names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    let there = files.into_iter().find(|file| file.is_file()).map(|file| file.display().to_string());
    there.or_else(|| library::found(library.names).map(str::to_owned)).ok_or("the loader does not find it")
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
        is_there: place(library, &|name| std::env::var_os(name)),
        remedy: library.remedy.into(),
    });
    tools.chain(profilers).chain(libraries).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_library_is_where_its_variable_says_or_where_its_vendor_puts_it() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("lib64/libmspti.so");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        let mspti = LIBRARIES.iter().find(|library| library.names == ["libmspti.so"]).unwrap();
        let of = |set: &'static str, value: PathBuf| {
            place(mspti, &move |name| (name == set).then(|| value.clone().into_os_string()))
        };
        assert_eq!(of("ASCEND_HOME_PATH", home.path().to_owned()), Ok(file.display().to_string()));
        assert_eq!(of("STRATO_MSPTI", file.clone()), Ok(file.display().to_string()));
        assert!(of("STRATO_MSPTI", home.path().join("none")).is_err());
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
