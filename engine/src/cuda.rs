//! NVIDIA devices behind the CUDA driver. Driver and compiler are looked for when a run asks for them; nothing of CUDA is needed
//! to build this program or to start it.
//!
//! | module | owns |
//! | --- | --- |
//! | `library`, `driver`, `compiler` | the vendor's libraries and their calls |
//! | `device`, `queue` | which devices there are, their contexts, streams and events |
//! | `source`, `signature`, `ptx` | the kernels (`kernels/*.cu`), what they take, and their compilation |
//! | `memory`, `inputs`, `synthetic` | memory of both sides, what a step gets from the host, weights that the device makes |
//! | `lower`, `launch` | an operator as one kernel, its threads and arguments |
//! | `step` | the commands of a step, and when they were under way |
//! | `graph` | a step as one graph |

use std::rc::Rc;

use crate::{
    Config, Dtype, Error, Shard,
    backend::Device,
    device_model::Model,
    inject::{Faults, HostHook},
    kv::KvPlan,
    record::Log,
    run::Sync,
    weights::{Made, Supply},
};

mod backend;
mod compiler;
mod device;
mod driver;
mod graph;
mod inputs;
mod launch;
mod library;
mod lower;
mod memory;
mod ptx;
mod queue;
mod signature;
mod source;
mod step;
mod synthetic;

pub use compiler::REMEDY as COMPILER_REMEDY;
pub use device::Facts;
pub use driver::REMEDY;
pub use library::Libraries;

use device::Context;
use queue::Queue;
use source::{Origin, Source};
use step::Plan;

/// Which device, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaOptions {
    /// Number of the device in [`devices`].
    pub device: usize,
    /// Whether copies go through pageable memory of the host, as those of a program that takes no care of it.
    pub pageable: bool,
    /// Libraries in place of the system's.
    pub libraries: Libraries,
}

impl CudaOptions {
    pub(crate) fn check(&self) -> Result<(), Error> {
        device::choose(self.libraries.driver.as_deref(), self.device).map(drop)
    }
}

/// The devices of the driver, in its order.
///
/// # Errors
/// [`Error::Unavailable`] when there is no driver or no device.
pub fn devices(libraries: &Libraries) -> Result<Vec<Facts>, Error> {
    let driver = driver::Driver::load(libraries.driver.as_deref())?;
    Ok(device::all(driver)?.into_iter().map(|(_, facts)| facts).collect())
}

/// Version of NVRTC, the compiler of kernels.
///
/// # Errors
/// Why there is none.
pub fn compiler(libraries: &Libraries) -> Result<String, String> {
    compiler::Compiler::load(libraries.compiler.as_deref()).map(compiler::Compiler::title)
}

/// A device with a model in its memory. What is first goes first: the stream,
/// which waits for what is under way, before all that its commands use.
pub(crate) struct Cuda {
    config: Config,
    cache: KvPlan,
    device: Device,
    dtype: Dtype,
    pageable: bool,
    queue: Queue,
    plans: Vec<Plan>,
    model: Model<Queue>,
    source: Source,
    context: Rc<Context>,
    sync: Sync,
    faults: Faults,
    /// What holds up the host.
    hook: Option<HostHook>,
}

impl Cuda {
    /// Makes the kernels ready on the device that is asked for, and brings the weights there; `log` gets what each family took.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no such device, [`Error::Request`] when the model does not fit it,
    /// [`Error::Device`] when the driver refuses.
    pub(crate) fn new(
        config: Config,
        weights: Supply<'_>,
        cache: KvPlan,
        options: &CudaOptions,
        log: &mut Log,
    ) -> Result<Self, Error> {
        if weights.recipes.shard != Shard::WHOLE {
            return Err(Error::Request("a CUDA device takes whole weights; load all of them".to_owned()));
        }
        let (driver, number, facts) = device::choose(options.libraries.driver.as_deref(), options.device)?;
        let context = Rc::new(Context::new(driver, number, facts)?);
        let origin = Origin::choose(&context, options.libraries.compiler.as_deref())?;
        let dtype = weights.dtype;
        let source = Source::build(&context, origin, dtype, log)?;
        let queue = Queue::new(&context)?;
        let make = |pieces: &[Made], dtype, width| synthetic::make(&queue, &source, pieces, dtype, width);
        let model = Model::load(&queue, weights, &cache, make)?;
        let mut device = described(&context, origin, options.pageable);
        device.facts.push(("cuda.weights", model.came()));
        Ok(Self {
            config,
            cache,
            device,
            dtype,
            pageable: options.pageable,
            queue,
            plans: Vec::new(),
            model,
            source,
            context,
            sync: Sync::default(),
            faults: Faults::default(),
            hook: None,
        })
    }
}

fn described(context: &Context, origin: Origin, pageable: bool) -> Device {
    let facts = &context.facts;
    let (major, minor) = facts.capability;
    Device {
        name: Some(facts.name.clone()),
        driver: Some(facts.driver.clone()),
        units: Some(facts.units),
        memory_bytes: i64::try_from(facts.memory_bytes).ok(),
        kernels: format!("cuda_{}", facts.architecture().replace('_', "")),
        queue: "CUDA stream",
        host_memory: if pageable { "pageable" } else { "pinned" },
        facts: vec![
            ("cuda.compute_capability", format!("{major}.{minor}")),
            ("cuda.multiprocessors", facts.units.to_string()),
            ("cuda.l2_bytes", facts.l2_bytes.to_string()),
            ("cuda.kernels", origin.describe(context)),
            ("cuda.stamps", "events before and after every command; a start may be that of its launch".to_owned()),
        ],
    }
}
