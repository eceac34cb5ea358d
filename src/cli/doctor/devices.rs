//! What `strato doctor` says of the devices that the engine can run on beside the processor, and of what tells of them.

use collectors::{
    cupti::{Api, Unavailable},
    telemetry::nvml,
};
use engine::{Error, ascend, cuda, opencl};
use model::Reading;

use super::Finding;
use crate::cli::backend;

const CUDA_REMEDY: &str = "only for --backend cuda: the NVIDIA driver (Debian: apt-get install nvidia-driver), in a container \
                           its devices (--gpus all)";

/// Devices of OpenCL drivers, numbered as `--device` takes them.
pub fn opencl() -> Finding {
    const REMEDY: &str = "only for --backend opencl: the device's own driver, or a CPU as one, with \
                          apt-get install ocl-icd-libopencl1 pocl-opencl-icd";
    match opencl::devices() {
        Ok(found) if found.is_empty() => Finding::lacking("the OpenCL drivers offer no device", REMEDY),
        Ok(found) => {
            if let Some(what) = found.iter().find_map(opencl::Facts::lacks) {
                return Finding::lacking(what, "only for --backend opencl on that device");
            }
            let line = |(number, device): (usize, &opencl::Facts)| {
                let graphs = if device.has_command_buffers() { ", command buffers" } else { "" };
                format!("{number}: {}, {}, {} units{graphs}", device.title(), device.driver, device.units)
            };
            Finding::good(found.iter().enumerate().map(line).collect::<Vec<_>>().join("; "))
        }
        Err(Error::Unavailable { what, .. }) => {
            // What to do has a column of its own.
            Finding::lacking(what.split(';').next().unwrap_or_default(), REMEDY)
        }
        Err(error) => Finding::unknown(error.to_string()),
    }
}

/// NVIDIA devices, by their driver's library.
pub fn nvml() -> Finding {
    const REMEDY: &str = "only for telemetry of NVIDIA devices: their driver brings libnvidia-ml.so.1";
    let nvml = match nvml::library() {
        Ok(nvml) => nvml,
        Err(reason) => return Finding::lacking(reason, REMEDY),
    };
    match nvml::devices(nvml) {
        Ok((found, hidden)) => {
            let versions = match nvml::versions(nvml) {
                Reading::Value(versions) => versions,
                Reading::Unavailable(reason) => reason,
            };
            let devices = found.iter().map(nvml::Gpu::title).chain(hidden);
            Finding::good(std::iter::once(versions).chain(devices).collect::<Vec<_>>().join("; "))
        }
        Err(reason) => Finding::unknown(reason),
    }
}

/// The library that records what CUDA does.
pub fn cupti() -> Finding {
    const REMEDY: &str = "only for --observer graph or node of a CUDA run: the CUDA toolkit brings it, or pip install \
                          nvidia-cuda-cupti; STRATO_CUPTI names its file";
    match Api::find() {
        Ok(api) => {
            let version = api.version().map_or_else(|| "version unknown".to_owned(), |v| format!("version {v}"));
            let missing = api.missing();
            let lacks = if missing.is_empty() { String::new() } else { format!("; without {}", missing.join(", ")) };
            Finding::good(format!("{}, {version}{lacks}", api.file.display()))
        }
        Err(Unavailable::Library { why }) => Finding::lacking(format!("no CUPTI: {why}"), REMEDY),
        Err(error) => Finding::lacking(error.to_string(), REMEDY),
    }
}

/// Devices of the CUDA driver, numbered as `--device` takes them, and where their kernels come from.
pub fn cuda() -> Finding {
    let libraries = backend::libraries();
    let kernels = match cuda::compiler(&libraries) {
        Ok(version) => format!("NVRTC {version}"),
        Err(_) => format!("no NVRTC, so the embedded PTX is compiled by the driver ({})", cuda::COMPILER_REMEDY),
    };
    match cuda::devices(&libraries) {
        Ok(found) => {
            let line = |(number, device): (usize, &cuda::Facts)| {
                format!("{number}: {}, {}, {} multiprocessors", device.name, device.architecture(), device.units)
            };
            let devices = found.iter().enumerate().map(line).collect::<Vec<_>>().join("; ");
            let driver = found.first().map(|device| format!(", driver {}", device.driver)).unwrap_or_default();
            // What an option needs is looked for where there is a device that could use it.
            let optional = [
                ("cuBLASLt", "--gemm cublaslt", cuda::products(&libraries)),
                ("NCCL", "--tp", cuda::collectives(&libraries)),
            ];
            let optional = optional.map(|(name, option, found)| match found {
                Ok(version) => format!("{name} {version}"),
                Err(why) => format!("no {name} for {option} ({why})"),
            });
            Finding::good(format!("{devices}{driver}; {kernels}; {}", optional.join("; ")))
        }
        Err(Error::Unavailable { what, .. }) => {
            Finding::lacking(what.split(';').next().unwrap_or_default(), CUDA_REMEDY)
        }
        Err(error) => Finding::unknown(error.to_string()),
    }
}

/// Devices of CANN, numbered as `--device` takes them.
pub fn ascend() -> Finding {
    const REMEDY: &str = "only for --backend ascend: install CANN 8.2 or later and source its set_env.sh, or set STRATO_ASCEND_LIB \
                          to a library that has its calls, such as libsim_npu.so of this project's simulated NPU";
    match ascend::facts(backend::simulator()) {
        Ok(facts) if facts.count == 0 => Finding::lacking(format!("{} knows no device", facts.library), REMEDY),
        Ok(facts) => Finding::good(format!("{} of {}, by {}", facts.count, facts.name, facts.library)),
        Err(Error::Unavailable { what, .. }) => {
            // What to do has a column of its own.
            Finding::lacking(what.split(';').next().unwrap_or_default(), REMEDY)
        }
        Err(error) => Finding::unknown(error.to_string()),
    }
}
