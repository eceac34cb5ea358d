//! NVIDIA devices behind the CUDA driver. Driver and compiler are looked for when a run asks for them; nothing of CUDA is needed
//! to build this program or to start it.
//!
//! | module | owns |
//! | --- | --- |
//! | `platform` | the seam: what a driver gives, CUDA's now and others that are made after it |
//! | `driver`, `compiler` | the driver and the compiler of kernels, through `cudarc` |
//! | `library`, `alias` | which library that is, and how `cudarc` comes to find it |
//! | `device`, `queue` | which devices there are, their contexts, streams and events |
//! | `source`, `signature`, `ptx` | the kernels (`kernels/*.cu`), what they take, and their compilation |
//! | `memory`, `inputs`, `synthetic` | memory of both sides, what a step gets from the host, weights that the device makes |
//! | `lower`, `launch`, `work` | an operator as one kernel or a few commands, threads and arguments |
//! | `cublaslt`, `nccl` | products and collectives of the vendor's |
//! | `step` | the commands of a step, and when they were under way |
//! | `graph` | a step, or pieces of it, as graphs |

use std::rc::Rc;

use crate::{
    Config, Dtype, Error, Shard,
    backend::Device,
    comm::Communicator,
    device_model::Model,
    faults::Faults,
    hook::HostHook,
    kv::KvPlan,
    options::Sync,
    program::{OpCall, OpKind, Program},
    record::Log,
    weights::{Made, Supply},
};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod alias;
mod backend;
mod compiler;
mod cublaslt;
mod device;
mod driver;
mod graph;
#[cfg(test)]
mod headers;
mod inputs;
mod launch;
mod library;
mod lower;
mod memory;
mod nccl;
mod platform;
mod ptx;
mod queue;
mod signature;
mod source;
mod step;
mod synthetic;
mod work;

pub use compiler::REMEDY as COMPILER_REMEDY;
pub use device::Facts;
pub use driver::REMEDY;
pub use library::Libraries;

use cublaslt::CublasLt;
use device::Context;
use nccl::Comm;
use queue::Queue;
use source::{Origin, Source};
use step::Plan;

/// Whose kernels multiply the matrices of many tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gemm {
    /// Those of this program.
    #[default]
    Own,
    /// The vendor's, which take activations in the type of the weights.
    CublasLt,
}

/// Whether the vendor's products take over where they are asked for: of few tokens a product is a read of the weights, which
/// our own kernels are for, and of blocks of 8 bits the vendor has none.
fn takes(weights: Dtype, tokens: usize) -> bool {
    weights != Dtype::Q8 && tokens > launch::MOST_TOKENS
}

/// Which device, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaOptions {
    /// Number of the device in [`devices`].
    pub device: usize,
    /// Whether copies go through pageable memory of the host, as those of a program that takes no care of it.
    pub pageable: bool,
    /// Whose matrix products of many tokens.
    pub gemm: Gemm,
    /// Libraries in place of the system's.
    pub libraries: Libraries,
}

impl CudaOptions {
    /// The vendor's library that runs an operator in place of a kernel of ours.
    pub(crate) fn library(&self, program: &Program, op: &OpCall, weights: Dtype) -> Option<&'static str> {
        match &op.kind {
            OpKind::Linear { x, .. } if self.gemm == Gemm::CublasLt => {
                program.buffer(*x).is_some_and(|x| takes(weights, x.rows)).then_some("cublaslt")
            }
            OpKind::AllReduce { .. } | OpKind::AllGather { .. } => Some("nccl"),
            _ => None,
        }
    }

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

/// Version of cuBLASLt, which `--gemm cublaslt` needs.
///
/// # Errors
/// Why there is none, and what brings it.
pub fn products(libraries: &Libraries) -> Result<String, String> {
    cublaslt::version(libraries.cublaslt.as_deref())
}

/// Version of NCCL, which runs on several devices need.
///
/// # Errors
/// Why there is none, and what brings it.
pub fn collectives(libraries: &Libraries) -> Result<String, String> {
    nccl::version(libraries.nccl.as_deref())
}

/// A device with a model in its memory. What is first goes first: the stream,
/// which waits for what is under way, before all that its commands use.
pub(crate) struct Cuda {
    config: Config,
    /// The shape of this rank's part of the model.
    part: Config,
    cache: KvPlan,
    device: Device,
    dtype: Dtype,
    pageable: bool,
    queue: Queue,
    plans: Vec<Plan>,
    products: Option<Rc<CublasLt>>,
    comm: Option<Rc<Comm>>,
    /// The way to the other ranks.
    ranks: Option<Communicator>,
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
        mut ranks: Option<Communicator>,
        log: &mut Log,
    ) -> Result<Self, Error> {
        let shard = weights.recipes.shard;
        if shard != ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard) {
            return Err(Error::Request("the weights are those of another rank; load this one's part".to_owned()));
        }
        if let Some(world) = ranks.as_ref().map(Communicator::world).filter(|world| world.workers != 1) {
            let count = world.workers;
            return Err(Error::Request(format!("ranks of CUDA devices have one worker each, not {count}")));
        }
        let part = config.part(shard)?;
        // Every rank has a device of its own, from that of the first on.
        let number = options.device.saturating_add(shard.rank);
        let (driver, number, facts) = device::choose(options.libraries.driver.as_deref(), number)?;
        let context = Rc::new(Context::new(driver, number, facts)?);
        let library = options.libraries.nccl.as_deref();
        let comm = ranks.as_mut().map(|ranks| Comm::join(&context, library, ranks)).transpose()?;
        let products = match options.gemm {
            Gemm::Own => None,
            Gemm::CublasLt => Some(Rc::new(CublasLt::new(&context, options.libraries.cublaslt.as_deref())?)),
        };
        let origin = Origin::choose(&context, options.libraries.compiler.as_deref())?;
        let dtype = weights.dtype;
        let source = Source::build(&context, origin, dtype, log)?;
        let queue = Queue::new(&context)?;
        let make = |pieces: &[Made], dtype, width| synthetic::make(&queue, &source, pieces, dtype, width);
        let model = Model::load(&queue, weights, &cache, make)?;
        let mut device = described(&context, origin, options.pageable);
        let gemm = match &products {
            None => "stratoscope".to_owned(),
            Some(library) => format!(
                "cuBLASLt {} of more than {} tokens, activations rounded to the type of the weights",
                library.title(),
                launch::MOST_TOKENS
            ),
        };
        device.facts.extend([("cuda.weights", model.came()), ("cuda.gemm", gemm)]);
        if let Some(comm) = &comm {
            device.facts.push(("cuda.ranks", format!("{}, a device each, NCCL {}", shard.of, comm.title())));
        }
        Ok(Self {
            config,
            part,
            cache,
            device,
            dtype,
            pageable: options.pageable,
            queue,
            plans: Vec::new(),
            products,
            comm,
            ranks,
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
        bus: Some(facts.bus.clone()).filter(|bus| !bus.is_empty()),
        facts: vec![
            ("cuda.compute_capability", format!("{major}.{minor}")),
            ("cuda.multiprocessors", facts.units.to_string()),
            ("cuda.l2_bytes", facts.l2_bytes.to_string()),
            ("cuda.kernels", origin.describe(context)),
            ("cuda.stamps", "events before and after every command; a start may be that of its launch".to_owned()),
        ],
    }
}
