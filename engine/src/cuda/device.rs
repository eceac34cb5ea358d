//! The devices of the CUDA driver, and the context that work on one of them needs.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_int},
    path::Path,
    ptr,
};

use super::driver::{Driver, Handle};
use crate::Error;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`, `…_L2_CACHE_SIZE`, `…_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR`.
const MULTIPROCESSORS: c_int = 16;
const L2_CACHE: c_int = 38;
const CAPABILITY: [c_int; 2] = [75, 76];

/// What the driver says of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Product name.
    pub name: String,
    /// Its place on the PCI bus, by which two of one name are told apart; empty where the driver does not say it.
    pub bus: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub units: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Cache of the second level, bytes.
    pub l2_bytes: u64,
    /// CUDA that the driver supports, and the driver's own version where the system tells it.
    pub driver: String,
}

impl Facts {
    /// The architecture as compilers name it: `sm_90`.
    pub fn architecture(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }
}

/// Every device with what the driver says of it, in the driver's order.
pub(super) fn all(driver: &Driver) -> Result<Vec<(c_int, Facts)>, Error> {
    let mut count = 0;
    // SAFETY: a number of ours.
    driver.check("count the CUDA devices", unsafe { (driver.calls.count)(&raw mut count) })?;
    let version = format!("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10);
    let version = match std::fs::read_to_string("/sys/module/nvidia/version") {
        Ok(own) => format!("{}, {version}", own.trim()),
        Err(_) => version,
    };
    (0..count).map(|number| facts(driver, number, &version)).collect()
}

fn facts(driver: &Driver, number: c_int, version: &str) -> Result<(c_int, Facts), Error> {
    let check = |code| driver.check("ask a CUDA device", code);
    let (mut device, mut name, mut bus, mut bytes) = (0, [0u8; 256], [0u8; 32], 0usize);
    let room = |text: &[u8]| c_int::try_from(text.len()).unwrap_or(0);
    // SAFETY: numbers of ours, and as many bytes for the name as are said.
    unsafe {
        check((driver.calls.device)(&raw mut device, number))?;
        check((driver.calls.name)(name.as_mut_ptr().cast(), room(&name), device))?;
        // A device that is no card has no place there.
        let _ = (driver.calls.bus)(bus.as_mut_ptr().cast(), room(&bus), device);
        check((driver.calls.memory)(&raw mut bytes, device))?;
    }
    let attribute = |which| -> Result<u32, Error> {
        let mut value = 0;
        // SAFETY: a number of ours.
        check(unsafe { (driver.calls.attribute)(&raw mut value, which, device) })?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let [major, minor] = CAPABILITY;
    let text = |bytes: &[u8]| {
        CStr::from_bytes_until_nul(bytes).map(|text| text.to_string_lossy().trim().to_owned()).unwrap_or_default()
    };
    let facts = Facts {
        name: text(&name),
        bus: text(&bus),
        capability: (attribute(major)?, attribute(minor)?),
        units: attribute(MULTIPROCESSORS)?,
        memory_bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        l2_bytes: attribute(L2_CACHE)?.into(),
        driver: version.to_owned(),
    };
    Ok((device, facts))
}

/// The device of a number.
pub(super) fn choose(library: Option<&Path>, number: usize) -> Result<(&'static Driver, c_int, Facts), Error> {
    let driver = Driver::load(library)?;
    let found = all(driver)?;
    let count = found.len();
    let (device, facts) = found.into_iter().nth(number).ok_or_else(|| Error::Unavailable {
        backend: "cuda",
        what: match count {
            0 => format!("the driver offers no device; {}", super::driver::REMEDY),
            _ => format!("there is no CUDA device {number}; the last one is {}", count - 1),
        },
    })?;
    Ok((driver, device, facts))
}

/// The device's primary context, which all users of the process share.
pub(super) struct Context {
    pub driver: &'static Driver,
    pub facts: Facts,
    device: c_int,
    handle: Handle,
}

impl Context {
    pub(super) fn new(driver: &'static Driver, device: c_int, facts: Facts) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        // SAFETY: a device that the driver has just named, and a place for the handle.
        driver.check("open the CUDA device", unsafe { (driver.calls.retain)(&raw mut handle, device) })?;
        let context = Self { driver, facts, device, handle };
        context.enter()?;
        Ok(context)
    }

    /// Makes it that of the calling thread, which every other call takes for granted.
    pub(super) fn enter(&self) -> Result<(), Error> {
        // SAFETY: retained until this goes.
        self.driver.check("enter the context of the CUDA device", unsafe { (self.driver.calls.enter)(self.handle) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, and everything that was made in it holds it and has gone.
        let _ = unsafe { (self.driver.calls.release)(self.device) };
    }
}
