//! NVIDIA devices by their driver's library NVML, which is opened at run time: what `nvidia-smi` prints and more, without a
//! process per look. What a device or its driver does not tell is absent with the reason.
//!
//! Names, units and limits of the quantities: NVML reference R590 (docs.nvidia.com/deploy/nvml-api).

use std::{error::Error, ffi::OsStr, sync::OnceLock};

use model::{Ns, Reading};
use nvml_wrapper::{
    Device, Nvml,
    bitmasks::device::ThrottleReasons,
    enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor},
    enums::{device::UsedGpuMemory, gpm::GpmMetricId},
    error::NvmlError,
    gpm::{GpmSample, gpm_metrics_get},
};

use super::{Collector, Counter, Growth};

#[cfg(test)]
mod tests;

/// Time between two looks at what changes slowly or takes the driver long, ns.
const SLOW: Ns = 1_000_000_000;
/// Most links of a device; a GB200 has 18.
const LINKS: u32 = 18;

const fn counter(name: &'static str, unit: &'static str) -> Counter {
    Counter { name, unit, device: Some(0) }
}

const UTILISATION: Counter = counter("utilisation", "%");
const MEMORY_BUSY: Counter = counter("memory_busy", "%");
const MEMORY_USED: Counter = counter("memory_used", "B");
const MEMORY_TOTAL: Counter = counter("memory_total", "B");
const POWER: Counter = counter("power", "W");
const POWER_MEAN: Counter = counter("power_mean", "W");
const POWER_CAP: Counter = counter("power_cap", "W");
const ENERGY: Counter = counter("energy", "J");
const TEMPERATURE: Counter = counter("temperature", "°C");
const CLOCK: Counter = counter("clock", "MHz");
const CLOCK_MOST: Counter = counter("clock_most", "MHz");
const MEMORY_CLOCK: Counter = counter("memory_clock", "MHz");
const PCIE_SENT: Counter = counter("pcie_sent", "B/s");
const PCIE_RECEIVED: Counter = counter("pcie_received", "B/s");
const PCIE_GENERATION: Counter = counter("pcie_generation", "");
const PCIE_WIDTH: Counter = counter("pcie_width", "");
const PCIE_REPLAYS: Counter = counter("pcie_replays", "");
const NVLINKS: Counter = counter("nvlinks", "");
const PROCESSES: Counter = counter("processes", "");
const MEMORY_OWN: Counter = counter("memory_own", "B");

/// Why clocks are lowered, 1 where it is so: the bits of `nvmlClocksThrottleReasons`. That a device idles is no reason.
const THROTTLES: [(Counter, ThrottleReasons); 4] = [
    (counter("throttle_power", ""), ThrottleReasons::SW_POWER_CAP.union(ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN)),
    (counter("throttle_thermal", ""), ThrottleReasons::SW_THERMAL_SLOWDOWN.union(ThrottleReasons::HW_THERMAL_SLOWDOWN)),
    (counter("throttle_hardware", ""), ThrottleReasons::HW_SLOWDOWN),
    (
        counter("throttle_settings", ""),
        ThrottleReasons::APPLICATIONS_CLOCKS_SETTING
            .union(ThrottleReasons::SYNC_BOOST)
            .union(ThrottleReasons::DISPLAY_CLOCK_SETTING),
    ),
];

/// What the units of a Hopper or later did between two looks, with the factor that its unit needs.
const UNITS: [(Counter, GpmMetricId, f64); 9] = [
    (counter("sm_active", "%"), GpmMetricId::SmUtil, 1.0),
    (counter("sm_occupancy", "%"), GpmMetricId::SmOccupancy, 1.0),
    (counter("tensor_active", "%"), GpmMetricId::AnyTensorUtil, 1.0),
    (counter("fp32_active", "%"), GpmMetricId::Fp32Util, 1.0),
    (counter("memory_bandwidth", "%"), GpmMetricId::DramBwUtil, 1.0),
    (counter("pcie_unit_sent", "B/s"), GpmMetricId::PcieTxPerSec, MEBI),
    (counter("pcie_unit_received", "B/s"), GpmMetricId::PcieRxPerSec, MEBI),
    (counter("nvlink_sent", "B/s"), GpmMetricId::NvlinkTotalTxPerSec, MEBI),
    (counter("nvlink_received", "B/s"), GpmMetricId::NvlinkTotalRxPerSec, MEBI),
];
/// Links are told in MiB per second.
const MEBI: f64 = 1_048_576.0;

/// An NVIDIA device that is looked at.
#[derive(Debug)]
pub struct Gpu {
    nvml: &'static Nvml,
    device: Device<'static>,
    /// Its number with the driver; CUDA may number its devices otherwise.
    pub number: u32,
    /// Product name; none where the driver does not say it.
    pub name: Option<String>,
    /// Whether its units count, or why not: asked once.
    counts: Reading<()>,
    /// What the units had counted at the last look.
    counted: Option<GpmSample<'static>>,
    energy: Growth,
    /// When the slow ones were looked at.
    slow: Option<Ns>,
    /// Why it is not looked at.
    unclear: Option<String>,
}

/// The driver's library, as it was found when it was first asked for.
///
/// # Errors
/// Why there is none.
pub fn library() -> Result<&'static Nvml, String> {
    static LIBRARY: OnceLock<Result<Nvml, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| Nvml::init().map_err(|error| absent(&error))).as_ref().map_err(Clone::clone)
}

/// A library of this name. It stays open until the program ends, because what is counted belongs to it.
///
/// # Errors
/// Why it cannot be used.
pub fn library_at(file: &OsStr) -> Result<&'static Nvml, String> {
    let nvml = Nvml::builder().lib_path(file).init().map_err(|error| absent(&error))?;
    Ok(Box::leak(Box::new(nvml)))
}

/// Versions of the driver and of its library.
pub fn versions(nvml: &Nvml) -> Reading<String> {
    match (nvml.sys_driver_version(), nvml.sys_nvml_version()) {
        (Ok(driver), Ok(library)) => Reading::Value(format!("driver {driver}, NVML {library}")),
        (Err(error), _) | (_, Err(error)) => Reading::Unavailable(why(&error)),
    }
}

/// Every device that the driver lets this process see, and why it does not let it see the others.
///
/// # Errors
/// When the driver does not say how many there are.
pub fn devices(nvml: &'static Nvml) -> Result<(Vec<Gpu>, Vec<String>), String> {
    let count = nvml.device_count().map_err(|error| why(&error))?;
    let (mut found, mut hidden) = (Vec::new(), Vec::new());
    for number in 0..count {
        match nvml.device_by_index(number) {
            Ok(device) => found.push(Gpu::new(nvml, device, number)),
            Err(error) => hidden.push(format!("device {number}: {}", why(&error))),
        }
    }
    Ok((found, hidden))
}

/// The device of a run, by the name that its backend gives it and by its place on the PCI bus, where that is known; `None` where
/// there is no driver of NVIDIA, or none of its devices has that name. Of several with one name of which no place is known
/// nobody says which is meant: then it is one that tells this reason only.
pub fn of_run(name: &str, bus: Option<&str>) -> Option<Gpu> {
    named(library().ok()?, name, bus)
}

/// The same of a library.
fn named(nvml: &'static Nvml, name: &str, bus: Option<&str>) -> Option<Gpu> {
    let mut own: Vec<Gpu> = devices(nvml).ok()?.0.into_iter().filter(|gpu| gpu.name.as_deref() == Some(name)).collect();
    let meant = bus.and_then(place);
    let there = own.iter().position(|gpu| meant.is_some() && gpu.place() == meant);
    if let Some(there) = there {
        return Some(own.swap_remove(there));
    }
    let count = own.len();
    let mut first = own.into_iter().next()?;
    first.unclear =
        (count > 1).then(|| format!("{count} devices are named {name}, and the run does not say which is its own"));
    Some(first)
}

/// Domain, bus and device of a place on the PCI bus: `0000:C1:00.0` with CUDA, `00000000:C1:00.0` with NVML.
fn place(text: &str) -> Option<[u32; 3]> {
    let number = |part: &str| u32::from_str_radix(part, 16).ok();
    let (domain, rest) = text.trim().split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    Some([number(domain)?, number(bus)?, number(rest.split_once('.').map_or(rest, |(device, _)| device))?])
}

impl Gpu {
    fn new(nvml: &'static Nvml, device: Device<'static>, number: u32) -> Self {
        let counts = match device.gpm_support() {
            Ok(true) => Reading::Value(()),
            Ok(false) => Reading::Unavailable(why(&NvmlError::NotSupported)),
            Err(error) => Reading::Unavailable(why(&error)),
        };
        let name = device.name().ok();
        Self { nvml, device, number, name, counts, counted: None, energy: Growth::default(), slow: None, unclear: None }
    }

    /// Its place on the PCI bus, where the driver says it.
    fn place(&self) -> Option<[u32; 3]> {
        place(&self.device.pci_info().ok()?.bus_id)
    }

    /// What it is called among others.
    pub fn title(&self) -> String {
        let name = self.name.as_deref().map_or(String::new(), |name| format!("  {name}"));
        format!("nvml {:>2}{name}", self.number)
    }

    /// What changes from moment to moment.
    fn fast(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let device = &self.device;
        let used = device.utilization_rates();
        give(UTILISATION, reading(used.as_ref().map(|used| f64::from(used.gpu))));
        give(MEMORY_BUSY, reading(used.as_ref().map(|used| f64::from(used.memory))));
        give(POWER, reading(device.power_usage().as_ref().map(|milliwatts| f64::from(*milliwatts) / 1e3)));
        match device.total_energy_consumption() {
            Ok(millijoules) => {
                give(ENERGY, Reading::Value(millijoules as f64 / 1e3));
                if let Some(milliwatts) = self.energy.per_second(at, millijoules) {
                    give(POWER_MEAN, Reading::Value(milliwatts / 1e3));
                }
            }
            Err(error) => [ENERGY, POWER_MEAN].into_iter().for_each(|c| give(c, Reading::Unavailable(why(&error)))),
        }
        give(CLOCK, reading(device.clock_info(Clock::SM).as_ref().map(|mhz| f64::from(*mhz))));
        give(MEMORY_CLOCK, reading(device.clock_info(Clock::Memory).as_ref().map(|mhz| f64::from(*mhz))));
        let throttled = device.current_throttle_reasons();
        for (counter, bits) in THROTTLES {
            let is = throttled.as_ref().map(|reasons| f64::from(u8::from(reasons.intersects(bits))));
            give(counter, reading(is));
        }
        let memory = device.memory_info();
        give(MEMORY_USED, reading(memory.as_ref().map(|memory| memory.used as f64)));
        self.units(give);
    }

    /// What its units did since the last look.
    fn units(&mut self, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        if let Reading::Unavailable(reason) = &self.counts {
            return none(reason, give);
        }
        let now = match self.device.gpm_sample() {
            Ok(now) => now,
            Err(error) => return none(&why(&error), give),
        };
        // The first look has nothing to compare with.
        if let Some(before) = &self.counted {
            match gpm_metrics_get(self.nvml, before, &now, &UNITS.map(|(_, metric, _)| metric)) {
                Ok(metrics) => {
                    for ((counter, _, factor), metric) in UNITS.iter().zip(&metrics) {
                        give(*counter, reading(metric.as_ref().map(|metric| metric.value * factor)));
                    }
                }
                Err(error) => none(&why(&error), give),
            }
        }
        self.counted = Some(now);
    }

    /// What changes slowly, or takes the driver long.
    fn slow(&self, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let device = &self.device;
        let number =
            |value: Result<u32, NvmlError>, factor: f64| reading(value.as_ref().map(|n| f64::from(*n) * factor));
        give(MEMORY_TOTAL, reading(device.memory_info().as_ref().map(|memory| memory.total as f64)));
        give(POWER_CAP, number(device.enforced_power_limit(), 1e-3));
        give(TEMPERATURE, number(device.temperature(TemperatureSensor::Gpu), 1.0));
        give(CLOCK_MOST, number(device.max_clock_info(Clock::SM), 1.0));
        // A look of the driver at its counters of 20 ms, in KB per second.
        give(PCIE_SENT, number(device.pcie_throughput(PcieUtilCounter::Send), 1e3));
        give(PCIE_RECEIVED, number(device.pcie_throughput(PcieUtilCounter::Receive), 1e3));
        give(PCIE_GENERATION, number(device.current_pcie_link_gen(), 1.0));
        give(PCIE_WIDTH, number(device.current_pcie_link_width(), 1.0));
        give(PCIE_REPLAYS, number(device.pcie_replay_counter(), 1.0));
        give(NVLINKS, self.links());
        match device.running_compute_processes() {
            Ok(processes) => {
                give(PROCESSES, Reading::Value(processes.len() as f64));
                // In a container the driver's numbers may be those of the host, and nobody's here.
                let own = processes.iter().find(|process| process.pid == std::process::id());
                match own.map(|process| &process.used_gpu_memory) {
                    Some(UsedGpuMemory::Used(bytes)) => give(MEMORY_OWN, Reading::Value(*bytes as f64)),
                    Some(UsedGpuMemory::Unavailable) => {
                        give(MEMORY_OWN, Reading::Unavailable(why(&NvmlError::NotSupported)));
                    }
                    None => {}
                }
            }
            Err(error) => give(PROCESSES, Reading::Unavailable(why(&error))),
        }
    }

    /// Links that are up.
    fn links(&self) -> Reading<f64> {
        let mut up = 0u32;
        for link in 0..LINKS {
            match self.device.link_wrapper_for(link).is_active() {
                Ok(is_up) => up += u32::from(is_up),
                // A device without links says so of its first one; one with fewer than there can be, of the next.
                Err(NvmlError::NotSupported | NvmlError::InvalidArg) if link > 0 => break,
                Err(error) => return Reading::Unavailable(why(&error)),
            }
        }
        Reading::Value(up.into())
    }
}

impl Collector for Gpu {
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        if let Some(reason) = &self.unclear {
            return give(UTILISATION, Reading::Unavailable(reason.clone()));
        }
        self.fast(at, give);
        if self.slow.is_none_or(|before| at - before >= SLOW) {
            self.slow = Some(at);
            self.slow(give);
        }
    }
}

/// Nothing that the units count.
fn none(reason: &str, give: &mut dyn FnMut(Counter, Reading<f64>)) {
    UNITS.iter().for_each(|(counter, ..)| give(*counter, Reading::Unavailable(reason.to_owned())));
}

/// A value, or why there is none.
fn reading(value: Result<f64, &NvmlError>) -> Reading<f64> {
    match value {
        Ok(value) if value.is_finite() => Reading::Value(value),
        Ok(_) => Reading::Unavailable("the value is no number".to_owned()),
        Err(error) => Reading::Unavailable(why(error)),
    }
}

/// Why a value is absent.
fn why(error: &NvmlError) -> String {
    match error {
        NvmlError::NotSupported => "the device does not support it".to_owned(),
        NvmlError::NoPermission => "the driver denies it to this user".to_owned(),
        NvmlError::GpuLost => "the device is lost: it fell off the bus, or its driver failed".to_owned(),
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => "the driver is too old for it".to_owned(),
        error => format!("NVML: {error}"),
    }
}

/// Why the library cannot be used.
fn absent(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(error) => {
            format!("no NVML: {}", error.source().map_or_else(|| error.to_string(), ToString::to_string))
        }
        error => format!("no NVML: {error}"),
    }
}
