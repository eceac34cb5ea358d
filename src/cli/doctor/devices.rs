//! What `strato doctor` says of the devices that the engine can run on beside the processor.

use engine::{Error, ascend, opencl};

use super::Finding;
use crate::cli::backend::simulator;

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

/// Devices of CANN, numbered as `--device` takes them.
pub fn ascend() -> Finding {
    const REMEDY: &str = "only for --backend ascend: install CANN 8.2 or later and source its set_env.sh, or set STRATO_ASCEND_LIB \
                          to a library that has its calls, such as libsim_npu.so of this project's simulated NPU";
    match ascend::facts(simulator()) {
        Ok(facts) if facts.count == 0 => Finding::lacking(format!("{} knows no device", facts.library), REMEDY),
        Ok(facts) => Finding::good(format!("{} of {}, by {}", facts.count, facts.name, facts.library)),
        Err(Error::Unavailable { what, .. }) => {
            // What to do has a column of its own.
            Finding::lacking(what.split(';').next().unwrap_or_default(), REMEDY)
        }
        Err(error) => Finding::unknown(error.to_string()),
    }
}
