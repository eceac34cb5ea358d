//! Which device the engine runs on: the options of every command that starts it.

use clap::ValueEnum;
use engine::{
    Target,
    opencl::{self, Flavour, OpenClOptions},
};
use model::Reading;

use super::exit::Usage;

/// The device of a run or a probe.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize, serde::Deserialize)]
pub struct On {
    /// Kind of device.
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    backend: Backend,
    /// Which OpenCL device, by its number in 'strato doctor'.
    #[arg(long, default_value_t = 0, value_name = "N")]
    device: usize,
    /// How the kernels of an OpenCL device divide their work [default: as suits the device].
    #[arg(long, value_enum)]
    flavour: Option<Flavours>,
}

/// Kinds of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Backend {
    /// Cores of this machine.
    #[default]
    Cpu,
    /// A device that an OpenCL driver offers.
    Opencl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Flavours {
    /// A work-item has a piece to itself.
    Cpu,
    /// The work-items of a group share a row.
    Gpu,
}

impl On {
    /// The same as the engine takes it; `of_cpu` are options that mean cores of this machine, and whether they were given.
    ///
    /// # Errors
    /// Options that mean nothing to a device of that kind.
    pub fn target(&self, of_cpu: &[(&str, bool)]) -> Result<Target, Usage> {
        let of_opencl = [("--device", self.device > 0), ("--flavour", self.flavour.is_some())];
        let (foreign, other) = match self.backend {
            Backend::Cpu => (&of_opencl[..], "opencl"),
            Backend::Opencl => (of_cpu, "cpu"),
        };
        if let Some((name, _)) = foreign.iter().find(|(_, is_given)| *is_given) {
            return Err(Usage(format!("{name} is for --backend {other}; leave it out, or choose that one")));
        }
        let flavour = self.flavour.map(|flavour| match flavour {
            Flavours::Cpu => Flavour::Cpu,
            Flavours::Gpu => Flavour::Gpu,
        });
        Ok(match self.backend {
            Backend::Cpu => Target::Cpu,
            Backend::Opencl => Target::OpenCl(OpenClOptions { device: self.device, flavour }),
        })
    }
}

/// Name of a device that is not this machine's processor; `None` where it is.
pub fn device_name(target: &Target) -> Option<Reading<String>> {
    let Target::OpenCl(options) = target else { return None };
    Some(match opencl::devices() {
        Ok(found) => match found.get(options.device) {
            Some(facts) => Reading::Value(facts.title()),
            None => Reading::Unavailable(format!("there is no OpenCL device {}", options.device)),
        },
        Err(error) => Reading::Unavailable(error.to_string()),
    })
}
