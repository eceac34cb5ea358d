//! The way to the device that a run asks for.

use std::sync::Arc;

use super::RunOptions;
use crate::{
    Backend, Config, Error, KvPlan, Shard, Source, Target,
    ascend::Ascend,
    comm::Communicator,
    cpu::{CpuOptions, OnCpu},
    cuda::Cuda,
    opencl::OpenCl,
    record::Log,
    weights::Supply,
};

/// The device that a run asks for, with this rank's part of the weights in its memory and room for its sequences; `ranks` is
/// the way to the other ranks, and `log` gets what had to be built.
///
/// # Errors
/// [`Error::Unavailable`] when there is no such device, [`Error::Request`] when it cannot do what is asked for, and those of
/// the source.
pub fn open(
    config: &Config,
    source: &mut dyn Source,
    options: &RunOptions,
    ranks: Option<Communicator>,
    log: &mut Log,
) -> Result<Box<dyn Backend>, Error> {
    let (layout, sequences) = (options.layout, options.sequences());
    let context = options.prompt.saturating_add(options.steps);
    let shard = ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard);
    let weights = Supply::new(config, shard, options.dtype, source)?;
    let plan = || KvPlan::new(&config.part(shard)?, layout, sequences, context);
    match &options.target {
        Target::Cpu => {
            let cpu = CpuOptions { threads: options.threads, isa: options.isa, layout, sequences, context };
            Ok(Box::new(OnCpu::new(config.clone(), Arc::new(weights.load()?), cpu, ranks)?))
        }
        Target::OpenCl(asked) => Ok(Box::new(OpenCl::new(config.clone(), weights, plan()?, asked, ranks, log)?)),
        Target::Cuda(asked) => Ok(Box::new(Cuda::new(config.clone(), weights, plan()?, asked, ranks, log)?)),
        Target::Ascend(asked) => {
            let cache = (layout, sequences, context);
            Ok(Box::new(Ascend::new(config.clone(), &weights.load()?, cache, asked, ranks)?))
        }
    }
}
