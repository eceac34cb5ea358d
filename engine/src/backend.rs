//! What runs programs: one trait for every kind of device, so that a run is driven and recorded alike on all of them.

use std::borrow::Cow;

use crate::{
    Batch, Error,
    faults::Faults,
    options::{Mode, Sync},
    program::{BufId, Program},
    record::Log,
};

/// A device in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Product name; absent where the machine's own facts say it.
    pub name: Option<String>,
    /// Version of the driver; absent where the operating system is the driver.
    pub driver: Option<String>,
    /// Compute units; absent where they are the threads of the run.
    pub units: Option<u32>,
    /// Memory that the device can use, bytes.
    pub memory_bytes: Option<i64>,
    /// What the kernels of a run were built for: an instruction set, or the flavour of a device.
    pub kernels: String,
    /// The queue that operators go through.
    pub queue: &'static str,
    /// Memory of the host that copies from and to the device go through, `pageable` or `pinned`; empty where there are none.
    pub host_memory: &'static str,
    /// Place on the PCI bus, domain, bus, device and function; absent where nobody says it.
    pub bus: Option<String>,
    /// Further facts, by the field of the manifest.
    pub facts: Vec<(&'static str, String)>,
}

/// A program that a backend has made ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanId(pub(crate) usize);

impl PlanId {
    /// Why nothing is written beyond a buffer.
    pub(crate) fn too_small(id: BufId, count: usize) -> Error {
        Error::Request(format!("buffer {} of the program has no room for {count} elements; write fewer", id.0))
    }

    /// Why nothing is done with a program of another device.
    pub(crate) fn unknown(self) -> Error {
        Error::Request(format!("program {} was made ready on another device; prepare it on this one", self.0))
    }
}

/// A device with a model in its memory.
pub trait Backend {
    /// What it is.
    fn device(&self) -> &Device;

    /// Gives a program its memory and its kernels; `log` gets what had to be built.
    ///
    /// # Errors
    /// [`Error::Request`] when the program does not fit the model, or memory runs out.
    fn prepare(&mut self, program: Program, log: &mut Log) -> Result<PlanId, Error>;

    /// Whether a program can be started in this way.
    ///
    /// # Errors
    /// [`Error::Unavailable`], which says what is missing.
    fn check_mode(&self, mode: Mode) -> Result<(), Error>;

    /// Says when the host waits for a step under way, and what the run suffers.
    ///
    /// # Errors
    /// [`Error::Request`] when the device cannot suffer that.
    fn suffer(&mut self, sync: Sync, faults: Faults) -> Result<(), Error>;

    /// Runs a step and returns the most likely next token of every row of logits, none where the program does not choose
    /// any. `log` gets what the host did, and what the device did now or at [`Backend::drain`].
    ///
    /// # Errors
    /// [`Error::Request`] when the batch does not fit the program, the vocabulary or the cache.
    fn run(&mut self, plan: PlanId, batch: &Batch, mode: Mode, log: &mut Log) -> Result<Vec<u32>, Error>;

    /// Content of a buffer after a step, (rows, width); `log` gets the copy where one is made.
    ///
    /// # Errors
    /// [`Error::Device`] when the device does not give it.
    fn values(&mut self, plan: PlanId, id: BufId, log: &mut Log) -> Result<Cow<'_, [f32]>, Error>;

    /// Replaces the first elements of a buffer, to be read by the next step.
    ///
    /// # Errors
    /// [`Error::Request`] when the buffer is smaller, [`Error::Device`] when the device does not take it.
    fn set_values(&mut self, plan: PlanId, id: BufId, values: &[f32]) -> Result<(), Error>;

    /// Allocates so many bytes where the device computes, clears them, waits for that and gives them back: what memory costs
    /// that a step asks for.
    ///
    /// # Errors
    /// [`Error::Request`] when there is not as much, [`Error::Device`] when the device does not clear it.
    fn allocate(&mut self, bytes: usize) -> Result<(), Error>;

    /// Writes into `log` what the device noted of the last step: done between steps, so that it is no part of one.
    fn drain(&mut self, _plan: PlanId, _log: &mut Log) {}

    /// Waits for the other ranks, where there are any, before the first step.
    ///
    /// # Errors
    /// [`Error::Lost`] when one does not come.
    fn meet(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the run ends after `step`. Alone, a rank ends when it does not want to go on; of several the first decides, and
    /// the step after its decision is the last of all.
    fn ends(&self, _step: u32, goes_on: bool) -> bool {
        !goes_on
    }

    /// Says to the other ranks that this one is done.
    fn leave(&mut self) {}
}
