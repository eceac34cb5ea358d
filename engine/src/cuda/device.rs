//! The devices of the CUDA driver, and the context that work on one of them needs.

#![allow(unsafe_code)]

use std::{ffi::c_int, path::Path};

use super::{
    driver::Driver,
    platform::{Attribute, Handle},
};
use crate::Error;

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
    let count = driver.check("count the CUDA devices", driver.calls.count())?;
    let version = format!("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10);
    let version = match std::fs::read_to_string("/sys/module/nvidia/version") {
        Ok(own) => format!("{}, {version}", own.trim()),
        Err(_) => version,
    };
    (0..count).map(|number| facts(driver, number, &version)).collect()
}

fn facts(driver: &Driver, number: c_int, version: &str) -> Result<(c_int, Facts), Error> {
    const DOING: &str = "ask a CUDA device";
    let calls = &driver.calls;
    let device = driver.check(DOING, calls.device(number))?;
    let attribute = |which| -> Result<u32, Error> {
        Ok(u32::try_from(driver.check(DOING, calls.attribute(which, device))?).unwrap_or(0))
    };
    let bytes = driver.check(DOING, calls.memory(device))?;
    let facts = Facts {
        name: driver.check(DOING, calls.name(device))?,
        // A device that is no card has no place there.
        bus: calls.bus(device).unwrap_or_default(),
        capability: (attribute(Attribute::Major)?, attribute(Attribute::Minor)?),
        units: attribute(Attribute::Units)?,
        memory_bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        l2_bytes: attribute(Attribute::L2Bytes)?.into(),
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
        let handle = driver.check("open the CUDA device", driver.calls.retain(device))?;
        let context = Self { driver, facts, device, handle };
        context.enter()?;
        Ok(context)
    }

    /// Makes it that of the calling thread, which every other call takes for granted.
    pub(super) fn enter(&self) -> Result<(), Error> {
        // SAFETY: retained until this goes.
        self.driver.check("enter the context of the CUDA device", unsafe { self.driver.calls.enter(self.handle) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, and everything that was made in it holds it and has gone.
        let _ = unsafe { self.driver.calls.release(self.device) };
    }
}
