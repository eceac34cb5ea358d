//! Which device the engine runs on: the options of every command that starts it.

use clap::ValueEnum;
use engine::{
    Target,
    cuda::{self, CudaOptions, Libraries},
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
    /// Which OpenCL or CUDA device, by its number in 'strato doctor'.
    #[arg(long, default_value_t = 0, value_name = "N")]
    device: usize,
    /// How the kernels of an OpenCL device divide their work [default: as suits the device].
    #[arg(long, value_enum)]
    flavour: Option<Flavours>,
    /// Copies from and to a CUDA device go through pageable memory, not through pinned.
    #[arg(long)]
    #[serde(default)]
    pageable: bool,
}

/// Kinds of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Backend {
    /// Cores of this machine.
    #[default]
    Cpu,
    /// A device that an OpenCL driver offers.
    Opencl,
    /// A device of the CUDA driver.
    Cuda,
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
        let own = |backends: &[Backend]| backends.contains(&self.backend);
        let of_devices = [
            ("--device", self.device > 0, own(&[Backend::Opencl, Backend::Cuda]), "opencl or cuda"),
            ("--flavour", self.flavour.is_some(), own(&[Backend::Opencl]), "opencl"),
            ("--pageable", self.pageable, own(&[Backend::Cuda]), "cuda"),
        ];
        let of_cpu = of_cpu.iter().map(|(name, is_given)| (*name, *is_given, own(&[Backend::Cpu]), "cpu"));
        if let Some((name, .., other)) = of_devices.into_iter().chain(of_cpu).find(|(_, is, fits, _)| *is && !fits) {
            return Err(Usage(format!("{name} is for --backend {other}; leave it out, or choose that one")));
        }
        let flavour = self.flavour.map(|flavour| match flavour {
            Flavours::Cpu => Flavour::Cpu,
            Flavours::Gpu => Flavour::Gpu,
        });
        Ok(match self.backend {
            Backend::Cpu => Target::Cpu,
            Backend::Opencl => Target::OpenCl(OpenClOptions { device: self.device, flavour }),
            Backend::Cuda => {
                Target::Cuda(CudaOptions { device: self.device, pageable: self.pageable, libraries: libraries() })
            }
        })
    }
}

/// The libraries of CUDA that the environment names in place of the system's.
pub fn libraries() -> Libraries {
    let path = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(Into::into);
    Libraries { driver: path("STRATO_CUDA_DRIVER"), compiler: path("STRATO_NVRTC") }
}

/// Name of a device that is not this machine's processor; `None` where it is.
pub fn device_name(target: &Target) -> Option<Reading<String>> {
    let named = |names: Result<Vec<String>, engine::Error>, number: usize, kind: &str| match names {
        Ok(names) => match names.into_iter().nth(number) {
            Some(name) => Reading::Value(name),
            None => Reading::Unavailable(format!("there is no {kind} device {number}")),
        },
        Err(error) => Reading::Unavailable(error.to_string()),
    };
    match target {
        Target::Cpu => None,
        Target::OpenCl(options) => {
            let names = opencl::devices().map(|found| found.iter().map(opencl::Facts::title).collect());
            Some(named(names, options.device, "OpenCL"))
        }
        Target::Cuda(options) => {
            let names = cuda::devices(&options.libraries).map(|found| found.into_iter().map(|f| f.name).collect());
            Some(named(names, options.device, "CUDA"))
        }
    }
}
