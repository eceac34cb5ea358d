//! Every kind of device by its name, with what is asked of it.

use crate::{
    Dtype, Error,
    ascend::AscendOptions,
    cuda::CudaOptions,
    opencl::OpenClOptions,
    program::{OpCall, Program},
    record::Observer,
};

/// Which kind of device a run is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Workers of this process, one per core.
    #[default]
    Cpu,
    /// A device that an OpenCL driver of this machine offers.
    OpenCl(OpenClOptions),
    /// A device of the CUDA driver.
    Cuda(CudaOptions),
    /// An Ascend NPU.
    Ascend(AscendOptions),
}

impl Target {
    /// Its name in commands and manifests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OpenCl(_) => "opencl",
            Self::Cuda(_) => "cuda",
            Self::Ascend(_) => "ascend",
        }
    }

    /// Whose platform it is, as captures name it: there is one maker behind CUDA, and none behind OpenCL alone.
    pub fn vendor(&self) -> &'static str {
        match self {
            Self::Cuda(_) => "nvidia",
            _ => self.name(),
        }
    }

    /// Makes sure that there is such a device, before a model is made ready for it.
    ///
    /// # Errors
    /// [`Error::Unavailable`], which says what is missing.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Cpu => Ok(()),
            Self::OpenCl(asked) => asked.check(),
            Self::Cuda(asked) => asked.check(),
            Self::Ascend(asked) => asked.check(),
        }
    }

    /// Workers of the device that stamp their own shares of an operator, of so many threads that a run asks for.
    pub fn workers(&self, threads: usize) -> usize {
        match self {
            Self::Cpu => threads,
            Self::OpenCl(_) | Self::Cuda(_) | Self::Ascend(_) => 0,
        }
    }

    /// The vendor's library that runs an operator in place of a kernel of this program, by its name in kernel names.
    pub fn library(&self, program: &Program, op: &OpCall, weights: Dtype) -> Option<&'static str> {
        match self {
            Self::Cuda(asked) => asked.library(program, op, weights),
            Self::Cpu | Self::OpenCl(_) | Self::Ascend(_) => None,
        }
    }

    /// The type of activations and of the cache, of runs whose weights are of this one.
    pub fn activations(&self, weights: Dtype) -> Dtype {
        match self {
            Self::Cpu | Self::OpenCl(_) | Self::Cuda(_) => Dtype::F32,
            Self::Ascend(_) => weights,
        }
    }
}

impl Observer {
    /// Makes sure that runs on a device of this kind can be recorded so.
    ///
    /// # Errors
    /// [`Error::Unavailable`], which says what can be.
    pub fn check(self, target: &Target) -> Result<(), Error> {
        if self <= Self::Device || matches!(target, Target::Cuda(_)) {
            return Ok(());
        }
        let what = format!("CUPTI records CUDA devices only; take --observer off, host or device, not {}", self.name());
        Err(Error::Unavailable { backend: target.name(), what })
    }
}
