//! The devices that the OpenCL drivers of this machine offer, and which of them a run takes.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use opencl3::{
    context::Context,
    device::{
        CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU,
        CL_DEVICE_TYPE_GPU, Device as ClDevice, SubDevice,
    },
    error_codes::{CL_DEVICE_NOT_FOUND, ClError, DLOPEN_RUNTIME_LOAD_FAILED},
    platform::{Platform, get_platforms},
};

use super::{OpenClOptions, graph::EXTENSION, refused};
use crate::{Error, Shard};

/// `CL_PLATFORM_NOT_FOUND_KHR` of `cl_khr_icd`: the loader is there and knows no driver.
const NO_PLATFORM: i32 = -1001;
/// What brings a driver that needs no accelerator.
const REMEDY: &str =
    "install the driver of the device, or a CPU one: apt-get install ocl-icd-libopencl1 pocl-opencl-icd";

/// The context of every device that was opened, by the driver's handle, for as long as the program runs. PoCL takes its devices
/// down with their last context and sets them up with the next one, and another thread that asks for a name meanwhile reads
/// freed memory: so one context stays, and nobody asks while the first is made.
static CONTEXTS: Mutex<Vec<(usize, Arc<Context>)>> = Mutex::new(Vec::new());

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A graphics processor.
    Gpu,
    /// Another accelerator.
    Accelerator,
    /// The cores of the host.
    Cpu,
    /// None of these.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Cpu => "CPU",
            Self::Other => "device",
        })
    }
}

/// What a driver says of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Name of the driver's platform.
    pub platform: String,
    /// Its version.
    pub platform_version: String,
    /// Product name.
    pub name: String,
    /// Maker.
    pub vendor: String,
    /// Version of the driver.
    pub driver: String,
    /// OpenCL that the device supports.
    pub version: String,
    /// What it is.
    pub kind: Kind,
    /// Compute units.
    pub units: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Largest single buffer, bytes.
    pub largest_buffer: u64,
    /// Most work-items of a group.
    pub group: usize,
    /// Resolution of its profiling stamps, ns.
    pub stamp_ns: usize,
    /// Extensions.
    pub extensions: Vec<String>,
}

impl Facts {
    /// The device in a line: of a CPU also through which driver, because its cores are the host's.
    pub fn title(&self) -> String {
        match self.kind {
            Kind::Cpu => format!("{} (a CPU through {})", self.name, self.platform),
            _ => self.name.clone(),
        }
    }

    /// What the driver needs of the machine and does not find. PoCL links every kernel by a linker of its path when it first
    /// runs, and ends the program where there is none.
    pub fn lacks(&self) -> Option<String> {
        let is_pocl = self.kind == Kind::Cpu && self.platform == "Portable Computing Language";
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &str| std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
        (is_pocl && !is_there("ld") && !is_there("ld.lld"))
            .then(|| "PoCL links its kernels with 'ld', which is not on PATH; apt-get install binutils".to_owned())
    }

    /// Whether a step can be one command.
    pub fn has_command_buffers(&self) -> bool {
        self.extensions.iter().any(|extension| extension == EXTENSION)
    }

    fn of(platform: &Platform, device: &ClDevice) -> Result<Self, ClError> {
        let bits = device.dev_type()?;
        let kind = if bits & CL_DEVICE_TYPE_GPU > 0 {
            Kind::Gpu
        } else if bits & CL_DEVICE_TYPE_ACCELERATOR > 0 {
            Kind::Accelerator
        } else if bits & CL_DEVICE_TYPE_CPU > 0 {
            Kind::Cpu
        } else {
            Kind::Other
        };
        let text = |text: String| text.trim().to_owned();
        Ok(Self {
            platform: text(platform.name()?),
            platform_version: text(platform.version()?),
            name: text(device.name()?),
            vendor: text(device.vendor()?),
            driver: text(device.driver_version()?),
            version: text(device.version()?),
            kind,
            units: device.max_compute_units()?,
            memory_bytes: device.global_mem_size()?,
            largest_buffer: device.max_mem_alloc_size()?,
            group: device.max_work_group_size()?,
            stamp_ns: device.profiling_timer_resolution()?,
            extensions: device.extensions()?.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

/// Every device with what its driver says of it, GPUs first, then other accelerators, CPUs last.
///
/// # Errors
/// [`Error::Unavailable`] when there is no OpenCL loader or no driver.
pub(super) fn all() -> Result<Vec<(ClDevice, Facts)>, Error> {
    let _alone = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = get_platforms().map_err(|error| missing(&error))?;
    let mut found = Vec::new();
    for platform in platforms {
        let ids = match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) => ids,
            Err(ClError(CL_DEVICE_NOT_FOUND)) => continue,
            Err(error) => return Err(refused("list the devices of an OpenCL platform", &error)),
        };
        for id in ids {
            let device = ClDevice::new(id);
            let facts = Facts::of(&platform, &device).map_err(|error| refused("ask an OpenCL device", &error))?;
            found.push((device, facts));
        }
    }
    let rank = |kind: Kind| [Kind::Gpu, Kind::Accelerator, Kind::Cpu, Kind::Other].iter().position(|k| *k == kind);
    found.sort_by_key(|(_, facts)| rank(facts.kind));
    Ok(found)
}

/// The context of a device, which all its models share.
pub(super) fn context(device: &ClDevice) -> Result<Arc<Context>, Error> {
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = device.id().addr();
    if let Some((_, context)) = contexts.iter().find(|(of, _)| *of == handle) {
        return Ok(Arc::clone(context));
    }
    let context = Context::from_device(device).map_err(|error| refused("open the OpenCL device", &error))?;
    let context = Arc::new(context);
    contexts.push((handle, Arc::clone(&context)));
    Ok(context)
}

/// The device that is asked for.
pub(super) fn choose(options: &OpenClOptions) -> Result<(ClDevice, Facts), Error> {
    let found = all()?;
    let count = found.len();
    let missing = |what| Error::Unavailable { backend: "opencl", what };
    let chosen = found.into_iter().nth(options.device).ok_or_else(|| {
        missing(match count {
            0 => format!("the OpenCL drivers offer no device; {REMEDY}"),
            _ => format!("there is no OpenCL device {}; the last one is {}", options.device, count - 1),
        })
    })?;
    match chosen.1.lacks() {
        Some(what) => Err(missing(what)),
        None => Ok(chosen),
    }
}

/// Devices that were divided, with their parts, for as long as the program runs: a part that is released takes its context
/// with it.
static PARTS: Mutex<Vec<(Division, Vec<SubDevice>)>> = Mutex::new(Vec::new());

/// The driver's handle of a device, and the units of each of its parts.
type Division = (usize, u32);

/// The device of a rank: one of its own where there are as many like the one that is asked for, from that one on, else an
/// equal part of it.
pub(super) fn of_rank(options: &OpenClOptions, shard: Shard) -> Result<(ClDevice, Facts), Error> {
    let (device, facts) = choose(options)?;
    if shard.of < 2 {
        return Ok((device, facts));
    }
    let is_like = |other: &Facts| (&other.platform, &other.name) == (&facts.platform, &facts.name);
    let mut own: Vec<(ClDevice, Facts)> = all()?.into_iter().skip(options.device).take(shard.of).collect();
    if own.len() == shard.of && own.iter().all(|(_, other)| is_like(other)) {
        return Ok(own.swap_remove(shard.rank));
    }
    part(&device, facts, shard)
}

/// A rank's part of a device.
fn part(device: &ClDevice, facts: Facts, shard: Shard) -> Result<(ClDevice, Facts), Error> {
    let refuse = |why: &str| Error::Unavailable {
        backend: "opencl",
        what: format!("{} cannot be divided between {} ranks: {why}; choose fewer ranks", facts.name, shard.of),
    };
    let units = u32::try_from(shard.of).map_or(0, |of| facts.units / of);
    if units == 0 {
        return Err(refuse(&format!("it has {} units", facts.units)));
    }
    let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let division = (device.id().addr(), units);
    if !parts.iter().any(|(known, _)| *known == division) {
        let properties = [CL_DEVICE_PARTITION_EQUALLY, isize::try_from(units).unwrap_or(isize::MAX), 0];
        let made =
            device.create_sub_devices(&properties).map_err(|error| refuse(&format!("its driver answers {error}")))?;
        parts.push((division, made));
    }
    let own = parts.iter().find(|(known, _)| *known == division).and_then(|(_, parts)| parts.get(shard.rank));
    let id = own.ok_or_else(|| refuse("its driver made fewer parts"))?.id();
    Ok((ClDevice::new(id), Facts { units, ..facts }))
}

fn missing(error: &ClError) -> Error {
    let what = match error.0 {
        DLOPEN_RUNTIME_LOAD_FAILED => {
            format!("libOpenCL.so.1, the OpenCL loader, cannot be loaded; {REMEDY}")
        }
        NO_PLATFORM => {
            format!("the OpenCL loader finds no driver (it reads OCL_ICD_VENDORS or /etc/OpenCL/vendors); {REMEDY}")
        }
        _ => format!("the OpenCL loader answers {error}; {REMEDY}"),
    };
    Error::Unavailable { backend: "opencl", what }
}
