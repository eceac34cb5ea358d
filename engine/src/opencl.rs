//! Devices behind an OpenCL driver: GPUs, other accelerators, and CPUs through PoCL. The driver is looked for when a run
//! asks for it; nothing of OpenCL is needed to build this program or to start it.
//!
//! | module | owns |
//! | --- | --- |
//! | `device` | which devices there are, and what their drivers say of them |
//! | `source` | the kernels (`kernels/*.cl`) and their compilation |
//! | `memory`, `inputs` | buffers, what a step gets from the host |
//! | `lower` | an operator as one kernel |
//! | `staged` | an operator that the host computes or ranks compute together, through memory of the host |
//! | `step` | the commands of a step, and their stamps |
//! | `graph` | a step as one command |
//! | `clock` | the device's clock on the host's time |

use opencl3::{
    command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue},
    context::Context,
    error_codes::ClError,
};

use crate::{
    Config, Error, Shard,
    backend::Device,
    comm::Communicator,
    cpu::{Isa, Kernels},
    device_model::Model,
    faults::Faults,
    hook::HostHook,
    kv::KvPlan,
    options::Sync,
    record::Log,
    weights::Supply,
};

mod backend;
mod clock;
mod device;
mod graph;
mod inputs;
mod lower;
mod memory;
mod source;
mod staged;
mod step;

pub use device::{Facts, Kind};

use graph::Calls;
use memory::Place;
use source::Source;
use step::Plan;

/// Work-items of a group that is not on a CPU: the width of a wavefront of AMD, two warps of NVIDIA.
const LANES: usize = 64;

/// How kernels divide their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// One work-item has a piece of an operator to itself, and the vectors of its core.
    Cpu,
    /// The items of a group share a row.
    Gpu,
}

impl Flavour {
    /// Its name in kernel names and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "opencl_cpu",
            Self::Gpu => "opencl_gpu",
        }
    }

    fn lanes(self) -> usize {
        match self {
            Self::Cpu => 1,
            Self::Gpu => LANES,
        }
    }
}

/// Which device, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenClOptions {
    /// Number of the device in [`devices`].
    pub device: usize,
    /// Flavour of the kernels; without it that of the device.
    pub flavour: Option<Flavour>,
}

impl OpenClOptions {
    pub(crate) fn check(&self) -> Result<(), Error> {
        device::choose(self).map(drop)
    }
}

/// What the drivers of this machine offer, in the order in which a run takes them: GPUs first, CPUs last.
///
/// # Errors
/// [`Error::Unavailable`] when there is no OpenCL loader or no driver.
pub fn devices() -> Result<Vec<Facts>, Error> {
    Ok(device::all()?.into_iter().map(|(_, facts)| facts).collect())
}

/// A device with a model in its memory.
pub(crate) struct OpenCl {
    config: Config,
    /// The shape of this rank's part of the model.
    part: Config,
    /// The other ranks.
    ranks: Option<Communicator>,
    /// What the host computes with.
    host_kernels: Kernels,
    cache: KvPlan,
    device: Device,
    flavour: Flavour,
    plans: Vec<Plan>,
    model: Model<Place>,
    source: Source,
    place: Place,
    sync: Sync,
    faults: Faults,
    /// What holds up the host.
    hook: Option<HostHook>,
    /// The calls of command buffers, or why there are none.
    graphs: Result<Calls, String>,
}

impl OpenCl {
    /// Copies the weights to the device that is asked for and builds the kernels; `log` gets what each family took.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no such device, [`Error::Request`] when the model does not fit it,
    /// [`Error::Device`] when the driver refuses.
    pub(crate) fn new(
        config: Config,
        weights: Supply<'_>,
        cache: KvPlan,
        options: &OpenClOptions,
        ranks: Option<Communicator>,
        log: &mut Log,
    ) -> Result<Self, Error> {
        let shard = weights.recipes.shard;
        if shard != ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard) {
            return Err(Error::Request("the weights are those of another rank; load this one's part".to_owned()));
        }
        if let Some(world) = ranks.as_ref().map(Communicator::world).filter(|world| world.workers != 1) {
            let count = world.workers;
            return Err(Error::Request(format!("ranks of OpenCL devices have one worker each, not {count}")));
        }
        let part = config.part(shard)?;
        let isa = Isa::available().first().copied().unwrap_or(Isa::Portable);
        let host_kernels = Kernels::of(isa)
            .ok_or_else(|| Error::Request(format!("this processor has no {} after all; report this", isa.name())))?;
        let (found, facts) = device::of_rank(options, shard)?;
        let flavour = options.flavour.unwrap_or(if facts.kind == Kind::Cpu { Flavour::Cpu } else { Flavour::Gpu });
        if facts.group < flavour.lanes() {
            return Err(Error::Unavailable {
                backend: "opencl",
                what: format!("{} takes {} work-items of a group, the kernels need {LANES}", facts.name, facts.group),
            });
        }
        let context = device::context(&found)?;
        let queue = queue(&context)?;
        let source = Source::build(&context, found.id(), weights.dtype, config.head_dim, flavour, log)?;
        let (device, graphs) = (described(&facts, flavour, shard), Calls::find(&found, &facts));
        let place = Place { context, facts, queue };
        // No kernel of this backend makes weights.
        let model = Model::load(&place, weights, &cache, |_, _, _| Ok(None))?;
        let (sync, faults, plans) = (Sync::default(), Faults::default(), Vec::new());
        Ok(Self {
            config,
            part,
            ranks,
            host_kernels,
            cache,
            device,
            flavour,
            plans,
            model,
            source,
            place,
            sync,
            faults,
            hook: None,
            graphs,
        })
    }
}

impl Drop for OpenCl {
    /// Commands under way read memory of the host that goes with this.
    fn drop(&mut self) {
        let _ = self.place.queue.finish();
    }
}

/// The device of a context with a queue that runs commands in their order and stamps them.
#[allow(unsafe_code)]
fn queue(context: &Context) -> Result<CommandQueue, Error> {
    // OpenCL 2.0 renamed this call; drivers of every version have the old one, which is enough.
    // SAFETY: the device is the context's own.
    let queue = unsafe { CommandQueue::create(context, context.default_device(), CL_QUEUE_PROFILING_ENABLE) };
    queue.map_err(|error| refused("make a queue with profiling on the OpenCL device", &error))
}

fn described(facts: &Facts, flavour: Flavour, shard: Shard) -> Device {
    Device {
        name: Some(facts.title()),
        driver: Some(format!("{} {}, {}", facts.platform, facts.driver, facts.version)),
        units: Some(facts.units),
        memory_bytes: i64::try_from(facts.memory_bytes).ok(),
        kernels: flavour.name().to_owned(),
        queue: "OpenCL queue",
        host_memory: "pageable",
        bus: None,
        facts: vec![
            ("opencl.platform", format!("{} ({})", facts.platform, facts.platform_version)),
            ("opencl.device_type", facts.kind.to_string()),
            ("opencl.device_vendor", facts.vendor.clone()),
            ("opencl.compute_units", facts.units.to_string()),
            ("opencl.ranks", format!("{}, their collectives through memory of the host", shard.of)),
            ("opencl.stamp_resolution_ns", facts.stamp_ns.to_string()),
        ],
    }
}

/// What the driver refused.
fn refused(doing: &str, error: &ClError) -> Error {
    Error::Device { doing: doing.to_owned(), what: format!("the OpenCL driver answers {error} ({})", error.0) }
}
