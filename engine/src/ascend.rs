//! Ascend NPUs through CANN: AscendCL, the operators of aclnn, and HCCL. Its libraries are opened when a run asks for them;
//! nothing of CANN is needed to build this program or to start it.
//!
//! | module | owns |
//! | --- | --- |
//! | `library`, `calls` | the libraries, and the calls that are made of them |
//! | `memory`, `model`, `inputs` | memory and tensors, weights and cache, what a step gets from the host |
//! | `lower`, `attention` | an operator as calls |
//! | `launch` | the two phases of a call |
//! | `step` | the commands of a step |
//! | `graph` | a step that is captured and replayed |
//! | `comm` | collectives |
//! | `clock` | the device's clock on the host's time |
//!
//! Weights and activations are of one type, as its operators want them. Everything has been run on the simulated NPU of the
//! crate `sim-npu` only, which is strict where the documentation is; what it gives is marked as simulated.

#![allow(unsafe_code)]

use std::{ffi::CStr, path::PathBuf, rc::Rc};

use crate::{
    Config, Error, Shard, Weights,
    backend::Device,
    comm::Communicator,
    faults::Faults,
    hook::HostHook,
    kv::{KvLayout, KvPlan},
    options::Sync,
};

mod attention;
mod backend;
mod calls;
mod clock;
mod comm;
mod graph;
mod inputs;
mod launch;
mod library;
mod lower;
mod memory;
mod model;
mod step;

use attention::CAUSAL;
use calls::{Api, Handle};
use clock::Marks;
use comm::Comm;
use memory::{Argument, Memory, Owned, Shape, Type};
use model::Model;
use step::Plan;

/// `ACL_ERROR_REPEAT_INITIALIZE`: another run of this process has initialised the library.
const INITIALISED: i32 = 100_002;
/// `ACL_HBM_MEM`.
const HBM: i32 = 1;
/// A block of the cache must be a multiple of this where a prompt is read, and may be at most so long (documentation of
/// `aclnnFusedInferAttentionScoreV2`, page attention).
const BLOCK: usize = 128;
const LONGEST_BLOCK: usize = 512;

/// How attention knows how long sequences are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttentionBy {
    /// By lengths of the host, which a replayed step must be given anew.
    #[default]
    Lengths,
    /// By a mask over the whole context. Single precision always goes by it.
    Mask,
}

/// Which device, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AscendOptions {
    /// One library that has every call, such as the simulator's; without it those of CANN are looked for.
    pub library: Option<PathBuf>,
    /// Number of the device; of several ranks that of the first, and the next ones follow.
    pub device: i32,
    /// Whether weights are laid out in NZ.
    pub nz: bool,
    /// Whether executors are made once and used again.
    pub reuse: bool,
    /// How attention knows how long sequences are.
    pub attention: AttentionBy,
}

impl AscendOptions {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let (api, count) = self.open()?;
        match u32::try_from(self.device) {
            Ok(device) if device < count => Ok(()),
            _ => Err(missing(match count {
                0 => format!("{} knows no device; check the driver with 'npu-smi info'", api.library),
                _ => format!("there is no Ascend device {}; the last one is {}", self.device, count - 1),
            })),
        }
    }

    /// The calls, and how many devices there are.
    fn open(&self) -> Result<(&'static Api, u32), Error> {
        let api = library::api(self.library.as_deref()).map_err(missing)?;
        // SAFETY: no configuration.
        let status = unsafe { (api.runtime.init)(std::ptr::null()) };
        if status != INITIALISED {
            api.check("initialise CANN", status)?;
        }
        let mut count = 0;
        // SAFETY: a place for the number.
        let status = unsafe { (api.runtime.devices)(&raw mut count) };
        // Without a driver there is an error, and no device.
        Ok((api, if status == 0 { count } else { 0 }))
    }
}

/// What a library says of the devices of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The library that says it.
    pub library: String,
    /// Name of the chip.
    pub name: String,
    /// Devices.
    pub count: u32,
    /// Whether all of it is simulated.
    pub simulated: bool,
}

/// What there is.
///
/// # Errors
/// [`Error::Unavailable`] when no library of CANN can be opened.
pub fn facts(library: Option<PathBuf>) -> Result<Facts, Error> {
    let (api, count) = AscendOptions { library, ..AscendOptions::default() }.open()?;
    Ok(Facts { library: api.library.clone(), name: soc(api), count, simulated: api.simulated })
}

/// Where a library of CANN may lie, in the order in which it is looked for; a bare name is looked for where the loader looks.
pub fn places(name: &str) -> Vec<PathBuf> {
    library::places(name)
}

/// The names of all calls that are looked up, of which some runs need only some.
pub fn symbols() -> Vec<&'static str> {
    Api::symbols().collect()
}

/// A device with a model in its memory. Fields are dropped in their order: what was launched goes before the stream.
pub(crate) struct Ascend {
    plans: Vec<Plan>,
    model: Model,
    causal: Option<Argument>,
    marks: Marks,
    comm: Option<Rc<Comm>>,
    stream: Owned,
    api: &'static Api,
    /// The device's context, which every thread that calls must have set.
    context: Handle,
    config: Config,
    /// The shape of this rank's part.
    part: Config,
    shard: Shard,
    ranks: Option<Communicator>,
    cache: KvPlan,
    options: AscendOptions,
    device: Device,
    sync: Sync,
    faults: Faults,
    /// What holds up the host.
    hook: Option<HostHook>,
}

impl Ascend {
    /// Copies the weights to the device that is asked for.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no such device or it lacks what is asked for, [`Error::Request`] when the model
    /// does not fit, [`Error::Device`] when CANN refuses.
    pub(crate) fn new(
        config: Config,
        weights: &Weights,
        (layout, sequences, context_length): (KvLayout, usize, usize),
        options: &AscendOptions,
        ranks: Option<Communicator>,
    ) -> Result<Self, Error> {
        let shard = ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard);
        let mut options = options.clone();
        options.device = options.device.saturating_add(i32::try_from(shard.rank).unwrap_or(i32::MAX));
        options.check()?;
        let (api, _) = options.open()?;
        let dtype = Type::of(weights.embed.dtype)?;
        if let KvLayout::Paged(block) = layout
            && (!block.is_multiple_of(BLOCK) || block > LONGEST_BLOCK)
        {
            return Err(missing(format!(
                "its attention reads blocks of {BLOCK} tokens or a multiple up to {LONGEST_BLOCK}, not {block}; choose such a \
                 --kv-block"
            )));
        }
        // SAFETY: a device that is there.
        api.check("open the device", unsafe { (api.runtime.set_device)(options.device) })?;
        let mut context = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        api.check("open the device", unsafe { (api.runtime.current_context)(&raw mut context) })?;
        let part = config.part(shard)?;
        let cache = KvPlan::new(&part, layout, sequences, context_length)?;
        if let (true, Err(why)) = (options.reuse, &api.reuse) {
            return Err(missing(format!("executors cannot be used again: {why}; leave --reuse-executors out")));
        }
        let stream = api.stream()?;
        let comm = ranks.as_ref().map(|ranks| Comm::join(api, ranks)).transpose()?;
        let model = Model::load(api, weights, &cache, options.nz)?;
        let by_lengths = options.attention.of(dtype) == AttentionBy::Lengths;
        let causal = by_lengths.then(|| causal(api)).transpose()?;
        let device = described(api, &options, dtype);
        Ok(Self {
            plans: Vec::new(),
            model,
            causal,
            marks: Marks::new(api),
            comm,
            stream,
            api,
            context,
            config,
            part,
            shard,
            ranks,
            cache,
            options,
            device,
            sync: Sync::default(),
            faults: Faults::default(),
            hook: None,
        })
    }

    /// Makes the device that of this thread.
    fn enter(&self) -> Result<(), Error> {
        // SAFETY: the context of a device that this has opened.
        self.api.check("set the context of the device", unsafe { (self.api.runtime.set_context)(self.context) })
    }
}

impl Drop for Ascend {
    /// Commands under way read memory of the host that goes with this.
    fn drop(&mut self) {
        let _ = self.enter();
        // SAFETY: a stream of ours.
        let _ = unsafe { (self.api.runtime.synchronize)(self.stream.handle) };
    }
}

/// The mask that stands for a causal one of any size: 1 above the diagonal.
fn causal(api: &'static Api) -> Result<Argument, Error> {
    let bytes: Vec<u8> = (0..CAUSAL).flat_map(|row| (0..CAUSAL).map(move |column| u8::from(column > row))).collect();
    api.tensor(&Memory::of(api, &bytes)?, Type::Bool, &Shape::of(&[CAUSAL, CAUSAL]))
}

fn soc(api: &Api) -> String {
    // SAFETY: the call takes nothing; what it gives is a string, or null where there is no device.
    let name = unsafe { (api.runtime.soc)() };
    if name.is_null() {
        return "an Ascend device".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().trim().to_owned()
}

fn described(api: &Api, options: &AscendOptions, dtype: Type) -> Device {
    let (mut free, mut total) = (0usize, 0usize);
    // SAFETY: places for both numbers.
    let status = unsafe { (api.runtime.memory)(HBM, &raw mut free, &raw mut total) };
    let mut facts = vec![
        ("ascend.library", api.library.clone()),
        ("ascend.device", options.device.to_string()),
        ("ascend.weight_format", if options.nz { "NZ" } else { "ND" }.to_owned()),
        (
            "ascend.executors",
            if options.reuse {
                "asked of the library's cache, but for attention by lengths"
            } else {
                "made for every launch"
            }
            .to_owned(),
        ),
        (
            "ascend.attention",
            match options.attention.of(dtype) {
                AttentionBy::Lengths => "lengths of the host",
                AttentionBy::Mask => "mask over the whole context",
            }
            .to_owned(),
        ),
    ];
    if api.simulated {
        facts.push(("simulated", "true".to_owned()));
    }
    Device {
        name: Some(soc(api)),
        driver: None,
        units: None,
        memory_bytes: i64::try_from(total).ok().filter(|_| status == 0),
        kernels: "aclnn".to_owned(),
        queue: "stream",
        host_memory: "pinned",
        bus: None,
        facts,
    }
}

fn missing(what: String) -> Error {
    Error::Unavailable { backend: "ascend", what }
}

/// What the library refused.
fn refused(doing: &str, what: &str) -> Error {
    Error::Device { doing: doing.to_owned(), what: what.to_owned() }
}
