//! What `strato doctor` says of the tools and libraries of the vendors: which are there, which are missing, and the command
//! that brings them.

use std::borrow::Cow;

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
    what: &'static str,
    remedy: &'static str,
}

const CANN: &str = "./Ascend-cann-toolkit_VERSION_linux-ARCH.run --install, then source \
                    /usr/local/Ascend/ascend-toolkit/set_env.sh";
const NPU_DRIVER: &str = "./Ascend-hdk-CHIP-npu-driver_VERSION_linux-ARCH.run --full";
const ROCM: &str = "amdgpu-install --usecase=rocm";

/// Libraries by vendor. Names and packages: NVIDIA's CUDA installation guide for Linux and its wheels on PyPI, the CANN and driver
/// installation guides of hiascend.com, AMD's ROCm installation guide for Linux.
const LIBRARIES: &[Library] = &[
    library("nvidia", &["libcuda.so.1"], "driver", "apt-get install cuda-drivers (NVIDIA's repository)"),
    library("nvidia", &["libnvidia-ml.so.1"], "NVML", "apt-get install cuda-drivers (NVIDIA's repository)"),
    library("nvidia", &["libnvrtc.so.13", "libnvrtc.so.12"], "compiler", "pip install nvidia-cuda-nvrtc"),
    library("nvidia", &["libcupti.so.13", "libcupti.so.12"], "records of kernels", "pip install nvidia-cuda-cupti"),
    library("nvidia", &["libnccl.so.2"], "collectives", "apt-get install libnccl2 (NVIDIA's repository)"),
    library("ascend", &["libascendcl.so"], "AscendCL", CANN),
    library("ascend", &["libhccl.so"], "collectives", CANN),
    library("ascend", &["libmspti.so"], "records of tasks", CANN),
    library("ascend", &["libdcmi.so"], "management", NPU_DRIVER),
    library("amd", &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"], "HIP", ROCM),
    library("amd", &["librccl.so.1"], "collectives", ROCM),
];

const fn library(
    vendor: &'static str,
    names: &'static [&'static str],
    what: &'static str,
    remedy: &'static str,
) -> Library {
    Library { vendor, names, what, remedy }
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
        is_there: library::found(library.names).map(str::to_owned).ok_or("the loader does not find it"),
        remedy: library.remedy.into(),
    });
    tools.chain(profilers).chain(libraries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
