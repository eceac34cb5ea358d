//! The CPU as one backend among others: a device with the programs that it was given.

use std::{borrow::Cow, sync::Arc};

use super::{Communicator, Cpu, CpuOptions, Prepared};
use crate::{
    Batch, Buffer, Config, Error, Weights,
    backend::{Backend, Device, PlanId},
    faults::Faults,
    options::{Mode, Sync},
    program::{BufId, Program},
    record::Log,
};

/// The CPU with its programs.
pub(crate) struct OnCpu {
    cpu: Cpu,
    device: Device,
    plans: Vec<Prepared>,
}

impl OnCpu {
    /// # Errors
    /// Those of [`Cpu::of_rank`].
    pub(crate) fn new(
        config: Config,
        weights: Arc<Weights>,
        options: CpuOptions,
        ranks: Option<Communicator>,
    ) -> Result<Self, Error> {
        let device = Device { kernels: options.isa.name().to_owned(), queue: "worker pool", ..Device::default() };
        Ok(Self { cpu: Cpu::of_rank(config, weights, options, ranks)?, device, plans: Vec::new() })
    }
}

impl Backend for OnCpu {
    fn device(&self) -> &Device {
        &self.device
    }

    fn prepare(&mut self, program: Program, _: &mut Log) -> Result<PlanId, Error> {
        self.plans.push(self.cpu.prepare(program)?);
        Ok(PlanId(self.plans.len() - 1))
    }

    fn check_mode(&self, mode: Mode) -> Result<(), Error> {
        match mode {
            Mode::Eager | Mode::Graph => Ok(()),
            Mode::Piecewise => Err(Mode::no_pieces("cpu")),
        }
    }

    fn suffer(&mut self, sync: Sync, faults: Faults) -> Result<(), Error> {
        self.cpu.suffer(sync, faults)
    }

    fn run(&mut self, plan: PlanId, batch: &Batch, mode: Mode, log: &mut Log) -> Result<Vec<u32>, Error> {
        let prepared = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        match mode {
            Mode::Eager => self.cpu.run(prepared, batch, log),
            Mode::Graph => self.cpu.replay(prepared, batch, log),
            Mode::Piecewise => Err(Mode::no_pieces("cpu")),
        }
    }

    fn values(&mut self, plan: PlanId, id: BufId, _: &mut Log) -> Result<Cow<'_, [f32]>, Error> {
        let prepared = self.plans.get(plan.0).ok_or_else(|| plan.unknown())?;
        Ok(Cow::Borrowed(prepared.values(id)))
    }

    fn set_values(&mut self, plan: PlanId, id: BufId, values: &[f32]) -> Result<(), Error> {
        let prepared = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        let to = prepared.values_mut(id).get_mut(..values.len());
        to.ok_or_else(|| PlanId::too_small(id, values.len()))?.copy_from_slice(values);
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<(), Error> {
        Buffer::zeroed(bytes).map(|memory| drop(std::hint::black_box(memory)))
    }

    fn meet(&mut self) -> Result<(), Error> {
        self.cpu.meet()
    }

    fn ends(&self, step: u32, goes_on: bool) -> bool {
        self.cpu.ends(step, goes_on)
    }

    fn leave(&mut self) {
        self.cpu.leave();
    }
}
