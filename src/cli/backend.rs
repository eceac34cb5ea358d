//! Which device the engine runs on: the options of every command that starts it.

use std::path::PathBuf;

use clap::ValueEnum;
use engine::{
    Target,
    ascend::{self, AscendOptions, AttentionBy},
    cuda::{self, CudaOptions, Gemm, Libraries},
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
    /// Which OpenCL, CUDA or Ascend device, by its number in 'strato doctor'; of several ranks that of the first.
    #[arg(long, default_value_t = 0, value_name = "N")]
    device: usize,
    /// How the kernels of an OpenCL device divide their work [default: as suits the device].
    #[arg(long, value_enum)]
    flavour: Option<Flavours>,
    /// Copies from and to a CUDA device go through pageable memory, not through pinned.
    #[arg(long)]
    #[serde(default)]
    pageable: bool,
    /// Whose kernels multiply the matrices of many tokens on a CUDA device [default: own].
    #[arg(long, value_enum)]
    #[serde(default)]
    gemm: Option<Products>,
    /// Lay weights out in NZ, the format that the matrix units of an Ascend device read.
    #[arg(long)]
    nz: bool,
    /// Make the executors of an Ascend device's operators once and use them again.
    #[arg(long)]
    reuse_executors: bool,
    /// How attention on an Ascend device knows how long sequences are; single precision goes by the mask [default: lengths].
    #[arg(long, value_enum)]
    attention_by: Option<Known>,
}

/// Whose matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Products {
    /// Those of this program.
    Own,
    /// cuBLASLt's, with activations in the type of the weights.
    Cublaslt,
}

/// How attention knows lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Known {
    /// By lengths of the host, which every replay is given anew.
    Lengths,
    /// By a mask over the whole context.
    Mask,
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
    /// An Ascend NPU.
    Ascend,
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
        const CPU: &[Backend] = &[Backend::Cpu];
        const DEVICES: &[Backend] = &[Backend::Opencl, Backend::Cuda, Backend::Ascend];
        const OPENCL: &[Backend] = &[Backend::Opencl];
        const CUDA: &[Backend] = &[Backend::Cuda];
        const ASCEND: &[Backend] = &[Backend::Ascend];
        let given = of_cpu.iter().map(|(name, given)| (*name, *given, CPU));
        let of_devices = [
            ("--device", self.device > 0, DEVICES),
            ("--flavour", self.flavour.is_some(), OPENCL),
            ("--pageable", self.pageable, CUDA),
            ("--gemm", self.gemm.is_some(), CUDA),
            ("--nz", self.nz, ASCEND),
            ("--reuse-executors", self.reuse_executors, ASCEND),
            ("--attention-by", self.attention_by.is_some(), ASCEND),
        ];
        let foreign = given.chain(of_devices).find(|(_, given, of)| *given && !of.contains(&self.backend));
        if let Some((name, _, of)) = foreign {
            let names = of.iter().filter_map(|own| Some(own.to_possible_value()?.get_name().to_owned()));
            let names = names.collect::<Vec<_>>().join(" or ");
            return Err(Usage(format!("{name} is for --backend {names}; leave it out, or choose that one")));
        }
        let flavour = self.flavour.map(|flavour| match flavour {
            Flavours::Cpu => Flavour::Cpu,
            Flavours::Gpu => Flavour::Gpu,
        });
        Ok(match self.backend {
            Backend::Cpu => Target::Cpu,
            Backend::Opencl => Target::OpenCl(OpenClOptions { device: self.device, flavour }),
            Backend::Cuda => Target::Cuda(CudaOptions {
                device: self.device,
                pageable: self.pageable,
                gemm: match self.gemm {
                    Some(Products::Cublaslt) => Gemm::CublasLt,
                    Some(Products::Own) | None => Gemm::Own,
                },
                libraries: libraries(),
            }),
            Backend::Ascend => Target::Ascend(AscendOptions {
                library: simulator(),
                device: i32::try_from(self.device).unwrap_or(i32::MAX),
                nz: self.nz,
                reuse: self.reuse_executors,
                attention: match self.attention_by {
                    Some(Known::Mask) => AttentionBy::Mask,
                    Some(Known::Lengths) | None => AttentionBy::Lengths,
                },
            }),
        })
    }
}

/// The libraries of CUDA that the environment names in place of the system's.
pub fn libraries() -> Libraries {
    let path = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(Into::into);
    Libraries {
        driver: path("STRATO_CUDA_DRIVER"),
        compiler: path("STRATO_NVRTC"),
        cublaslt: path("STRATO_CUBLASLT"),
        nccl: path("STRATO_NCCL"),
    }
}

/// The one library that is asked to stand for all of CANN's, such as the simulator's.
pub fn simulator() -> Option<PathBuf> {
    std::env::var_os("STRATO_ASCEND_LIB").filter(|path| !path.is_empty()).map(PathBuf::from)
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
        Target::Ascend(options) => Some(match ascend::facts(options.library.clone()) {
            Ok(facts) => Reading::Value(facts.name),
            Err(error) => Reading::Unavailable(error.to_string()),
        }),
    }
}
