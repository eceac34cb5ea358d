//! Ascend devices by their driver's management library DCMI, which is opened at run time: what `npu-smi` prints, without a process
//! per look. What a device or its driver does not tell is absent with the reason.
//!
//! Names, arguments and structures: `dcmi_interface_api.h` (github.com/Ascend/mind-cluster, Apache 2.0), units: the DCMI API reference
//! of hiascend.com. Run on a simulated library only.

#![allow(unsafe_code)]

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use libloading::Library;
use model::{Ns, Reading};

use super::{Collector, Counter};
use crate::activity::library::functions;

#[cfg(test)]
mod tests;

/// What every function answers; 0 where it was done.
type Status = i32;

/// `DCMI_ERR_CODE_NOT_SUPPORT`.
const NOT_SUPPORTED: Status = -8255;
/// Most codes of errors that are asked for; the count is told whatever it is.
const CODES: u32 = 128;
/// Where the driver puts the library (its installation guide), and where the loader looks.
const PLACES: [&str; 2] = ["/usr/local/dcmi/libdcmi.so", "libdcmi.so"];
/// Memory is told in MB of 2²⁰ bytes.
const MEBI: f64 = 1_048_576.0;

/// `struct dcmi_hbm_info`, with room for what later versions may add.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Hbm {
    /// MB.
    size: u64,
    /// MHz.
    _frequency: u32,
    /// MB.
    used: u64,
    /// °C.
    temperature: i32,
    /// %.
    _bandwidth: u32,
    _later: [u64; 8],
}

/// `struct dcmi_aicore_info`, MHz.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    most: u32,
    now: u32,
    _later: [u64; 4],
}

functions! {
    /// Begins to use the library.
    init: "dcmi_init" ();
    /// Version of the driver.
    driver_version: "dcmi_get_driver_version" (*mut u8, u32);
    /// Numbers of the cards, and how many there are.
    cards: "dcmi_get_card_list" (*mut i32, *mut i32, i32);
    /// Devices of a card.
    devices_of_card: "dcmi_get_device_num_in_card" (i32, *mut i32);
    /// Card and device of a number as CANN counts.
    of_number: "dcmi_get_card_id_device_id_from_logicid" (*mut i32, *mut i32, u32);
    /// How busy a unit is, %.
    utilisation: "dcmi_get_device_utilization_rate" (i32, i32, i32, *mut u32);
    /// Memory.
    memory: "dcmi_get_device_hbm_info" (i32, i32, *mut Hbm);
    /// Power, tenths of a watt.
    power: "dcmi_get_device_power_info" (i32, i32, *mut i32);
    /// Temperature, °C.
    temperature: "dcmi_get_device_temperature" (i32, i32, *mut i32);
    /// Clocks of the cores.
    clocks: "dcmi_get_device_aicore_info" (i32, i32, *mut Clocks);
    /// 0 for a healthy device, 1 to 3 for alarms of growing weight.
    health: "dcmi_get_device_health" (i32, i32, *mut u32);
    /// Codes of errors that have not been cleared: how many, the codes, how many are asked for.
    errors: "dcmi_get_device_errorcode_v2" (i32, i32, *mut i32, *mut u32, u32);
}

const fn counter(name: &'static str, unit: &'static str) -> Counter {
    Counter { name, unit, device: Some(0) }
}

const UTILISATION: Counter = counter("utilisation", "%");
/// Units by their numbers (`DCMI_UTILIZATION_RATE_AICORE`, `…_HBM`, `…_HBM_BANDWIDTH`, `…_VECTORCORE`).
const UNITS: [(Counter, i32); 4] = [
    (UTILISATION, 2),
    (counter("memory_utilisation", "%"), 6),
    (counter("memory_bandwidth", "%"), 10),
    (counter("vector_active", "%"), 12),
];
const MEMORY_USED: Counter = counter("memory_used", "B");
const MEMORY_TOTAL: Counter = counter("memory_total", "B");
const MEMORY_TEMPERATURE: Counter = counter("memory_temperature", "°C");
const POWER: Counter = counter("power", "W");
const TEMPERATURE: Counter = counter("temperature", "°C");
const CLOCK: Counter = counter("clock", "MHz");
const CLOCK_MOST: Counter = counter("clock_most", "MHz");
const HEALTH: Counter = counter("health", "");
const ERRORS: Counter = counter("error_codes", "");

/// An Ascend device that is looked at, or why it is not.
#[derive(Debug)]
pub struct Npu(Result<Chip, String>);

#[derive(Debug)]
struct Chip {
    api: Api,
    card: i32,
    device: i32,
}

/// The files to try. One that `STRATO_DCMI` names is the only one; and where another library stands for CANN, the driver's devices
/// are not those of the run.
///
/// # Errors
/// Why none is tried, in words.
pub fn candidates(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Vec<PathBuf>, String> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match (given("STRATO_DCMI"), given("STRATO_ASCEND_LIB")) {
        (Some(file), _) => Ok(vec![file]),
        (None, Some(library)) => {
            Err(format!("no DCMI: '{}' stands for CANN, and STRATO_DCMI names no library of it", library.display()))
        }
        (None, None) => Ok(PLACES.map(PathBuf::from).to_vec()),
    }
}

fn open(file: &Path) -> Result<Api, String> {
    // SAFETY: opening the library of the driver, or the one that whoever runs this names, starts nothing before it is initialised.
    let library = unsafe { Library::new(file) }.map_err(|error| {
        let said = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        format!("no DCMI: {said}")
    })?;
    let api = Api::of(file, library);
    // SAFETY: the call takes nothing.
    match api.init.map(|call| unsafe { call() }) {
        Some(0) => Ok(api),
        Some(status) => {
            Err(format!("DCMI does not begin (status {status}); 'npu-smi info' says whether the driver runs"))
        }
        None => Err(format!("'{}' has no dcmi_init and is no DCMI; name another with STRATO_DCMI", file.display())),
    }
}

/// The number that the driver gives the device which CANN calls `number`: a process may see some of them only.
fn seen(number: u32, visible: Option<&str>) -> Option<u32> {
    match visible.filter(|list| !list.is_empty()) {
        Some(list) => list.split(',').nth(number as usize)?.trim().parse().ok(),
        None => Some(number),
    }
}

impl Npu {
    /// The device of a run, by its number with CANN.
    pub fn of_run(number: i32) -> Self {
        Self(Self::find(number, &|name| std::env::var_os(name)))
    }

    fn find(number: i32, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Chip, String> {
        let mut api = Err("no DCMI: no place to look for it".to_owned());
        for file in candidates(variable)? {
            api = open(&file);
            if api.is_ok() {
                break;
            }
        }
        let api = api?;
        let visible = variable("ASCEND_RT_VISIBLE_DEVICES").map(|list| list.to_string_lossy().into_owned());
        let number = u32::try_from(number).ok().and_then(|number| seen(number, visible.as_deref()));
        let number = number.ok_or("ASCEND_RT_VISIBLE_DEVICES does not say which device it is")?;
        let (mut card, mut device) = (0, 0);
        // SAFETY: places for both numbers.
        let status = api.of_number.map(|call| unsafe { call(&raw mut card, &raw mut device, number) });
        if status == Some(0) {
            return Ok(Chip { api, card, device });
        }
        // An older library cannot be asked: then cards are counted in their order.
        let (card, device) = api.counted(number).ok_or_else(|| format!("DCMI knows no device {number}"))?;
        Ok(Chip { api, card, device })
    }

    /// Why it tells nothing.
    pub fn absent(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }
}

impl Api {
    /// Card and device of the device `number` of all cards.
    fn counted(&self, number: u32) -> Option<(i32, i32)> {
        let (mut count, mut cards) = (0, [0i32; 64]);
        let room = i32::try_from(cards.len()).ok()?;
        // SAFETY: places for the count and for as many numbers as are said.
        let status = unsafe { self.cards?(&raw mut count, cards.as_mut_ptr(), room) };
        let cards = cards.get(..usize::try_from(count).ok().filter(|_| status == 0)?)?;
        let mut left = i32::try_from(number).ok()?;
        for card in cards {
            let mut own = 0;
            // SAFETY: a place for the count.
            let status = unsafe { self.devices_of_card?(*card, &raw mut own) };
            if status != 0 {
                return None;
            }
            if left < own {
                return Some((*card, left));
            }
            left -= own.max(0);
        }
        None
    }
}

impl Chip {
    /// What a function says of this device, which writes one value.
    fn ask<T: Copy + Default>(
        &self,
        function: Option<unsafe extern "C" fn(i32, i32, *mut T) -> Status>,
    ) -> Result<T, String> {
        let mut value = T::default();
        // SAFETY: the function writes one value of this type, for which its declaration says so.
        let status = function.map(|call| unsafe { call(self.card, self.device, &raw mut value) });
        said(status).map(|()| value)
    }

    fn errors(&self) -> Result<f64, String> {
        let (mut count, mut codes) = (0i32, [0u32; CODES as usize]);
        let call = self.api.errors;
        // SAFETY: places for the count and for as many codes as are said.
        let call = call.map(|call| unsafe { call(self.card, self.device, &raw mut count, codes.as_mut_ptr(), CODES) });
        said(call).map(|()| f64::from(count))
    }

    fn look(&self, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let mut tell = |counter, value: Result<f64, String>| {
            give(counter, value.map_or_else(Reading::Unavailable, Reading::Value));
        };
        for (counter, unit) in UNITS {
            let mut share = 0u32;
            let call = self.api.utilisation;
            // SAFETY: a place for the number.
            let status = call.map(|call| unsafe { call(self.card, self.device, unit, &raw mut share) });
            tell(counter, said(status).map(|()| f64::from(share)));
        }
        let memory = self.ask(self.api.memory);
        let of_memory = |value: fn(&Hbm) -> f64| memory.as_ref().map(value).map_err(Clone::clone);
        tell(MEMORY_USED, of_memory(|memory| memory.used as f64 * MEBI));
        tell(MEMORY_TOTAL, of_memory(|memory| memory.size as f64 * MEBI));
        tell(MEMORY_TEMPERATURE, of_memory(|memory| f64::from(memory.temperature)));
        tell(POWER, self.ask(self.api.power).map(|tenths| f64::from(tenths) / 10.0));
        tell(TEMPERATURE, self.ask(self.api.temperature).map(f64::from));
        let clocks = self.ask(self.api.clocks);
        tell(CLOCK, clocks.as_ref().map(|clocks| f64::from(clocks.now)).map_err(Clone::clone));
        tell(CLOCK_MOST, clocks.map(|clocks| f64::from(clocks.most)));
        tell(HEALTH, self.ask(self.api.health).map(f64::from));
        tell(ERRORS, self.errors());
    }
}

/// Why a call gave no value.
fn said(status: Option<Status>) -> Result<(), String> {
    match status {
        Some(0) => Ok(()),
        Some(NOT_SUPPORTED) => Err("the device does not support it".to_owned()),
        Some(status) => Err(format!("DCMI: status {status}")),
        None => Err("the driver is too old for it".to_owned()),
    }
}

impl Collector for Npu {
    fn look(&mut self, _: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        match &self.0 {
            Ok(chip) => chip.look(give),
            Err(reason) => give(UTILISATION, Reading::Unavailable(reason.clone())),
        }
    }
}
