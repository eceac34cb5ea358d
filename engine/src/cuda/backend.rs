//! A CUDA device as one backend among others.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    Cuda,
    inputs::Inputs,
    lower::{self, Lowering},
    memory::{Memory, Staging},
    queue::Events,
    step::{Commands, Plan, Start},
};
use crate::{
    Batch, Error, Shard,
    backend::{Backend, Device, PlanId},
    comm::{Communicator, LOADING},
    faults::Faults,
    hook::HostHook,
    options::{Mode, Sync},
    program::{BufId, Program},
    record::Log,
};

impl Backend for Cuda {
    fn device(&self) -> &Device {
        &self.device
    }

    fn prepare(&mut self, program: Program, _: &mut Log) -> Result<PlanId, Error> {
        program.check(&self.config)?;
        let shard = self.ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard);
        if program.shard != shard {
            return Err(Error::Request(format!(
                "the program is for rank {} of {}; plan it for this one",
                program.shard.rank, program.shard.of
            )));
        }
        self.context.enter()?;
        let context = &self.context;
        let buffer = |rows: usize, width: usize| Memory::zeroed(&self.queue, rows.saturating_mul(width));
        let buffers = program.buffers.iter().map(|b| buffer(b.rows, b.width)).collect::<Result<Vec<_>, _>>()?;
        let inputs = Inputs::new(context, program.shape, self.config.head_dim, self.pageable)?;
        let rows = program.buffer(program.logits).map_or(0, |logits| logits.rows);
        let chosen = Memory::zeroed(&self.queue, rows)?;
        let scratch = lower::scratch(&program, self.products.is_some(), self.dtype);
        let scratch: Memory<u8> = Memory::new(context, scratch)?;
        let lowering = Lowering {
            source: &self.source,
            model: &self.model,
            config: &self.part,
            first_token: shard.range(self.config.vocab).start,
            products: self.products.as_ref(),
            comm: self.comm.as_ref(),
            dtype: self.dtype,
            plan: &self.cache,
            program: &program,
            buffers: &buffers,
            inputs: &inputs,
            chosen: chosen.address(),
            scratch: scratch.address(),
            faults: &self.faults,
        };
        let work = program.ops.iter().map(|op| lowering.lower(op)).collect::<Result<_, _>>()?;
        let (tokens, values) = (Staging::new(context, rows, self.pageable)?, Staging::new(context, 0, self.pageable)?);
        self.plans.push(Plan {
            captured: (Mode::Eager, BTreeMap::new()),
            program,
            work,
            buffers,
            inputs,
            chosen,
            _scratch: scratch,
            tokens,
            values,
            events: Events::new(context),
            noted: Vec::new(),
            seen: 0,
        });
        Ok(PlanId(self.plans.len() - 1))
    }

    fn check_mode(&self, _: Mode) -> Result<(), Error> {
        Ok(())
    }

    fn suffer(&mut self, sync: Sync, faults: Faults) -> Result<(), Error> {
        let only_cpu = [
            ("cpu_fallback", faults.host.fallback.is_some()),
            ("bf16_accum", faults.numeric.bf16_accum),
            ("slow_rank", faults.rank.factor(0).is_some()),
        ];
        if let Some((name, _)) = only_cpu.into_iter().find(|(_, is_asked)| *is_asked) {
            return Err(Error::Request(format!(
                "a CUDA device cannot suffer '{name}'; leave it out, or run --backend cpu"
            )));
        }
        if self.products.is_some() && faults.numeric.nan_at.is_some() {
            return Err(Error::Request(
                "products of cuBLASLt cannot suffer 'nan_at'; leave it out, or leave --gemm out".to_owned(),
            ));
        }
        self.hook = HostHook::new(&faults.host)?;
        (self.sync, self.faults) = (sync, faults);
        Ok(())
    }

    fn run(&mut self, plan: PlanId, batch: &Batch, mode: Mode, log: &mut Log) -> Result<Vec<u32>, Error> {
        self.context.enter()?;
        let own = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        batch.check(&own.program, &self.config, &self.cache)?;
        let turned = self.faults.numeric.turned(&self.config);
        if mode != Mode::Eager {
            own.capture(mode, &self.queue, log)?;
        }
        own.run(&self.queue, batch, &turned, Start { mode, sync: self.sync, hook: self.hook.as_mut() }, log)
    }

    fn values(&mut self, plan: PlanId, id: BufId, log: &mut Log) -> Result<Cow<'_, [f32]>, Error> {
        self.context.enter()?;
        let Plan { program, buffers, values, events, noted, seen, .. } =
            self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        let count = program.buffer(id).map_or(0, |buffer| buffer.rows.saturating_mul(buffer.width));
        if values.elements().len() < count {
            *values = Staging::new(&self.context, count, self.pageable)?;
        }
        let values = values.elements().get_mut(..count).unwrap_or_default();
        if let Some(memory) = buffers.get(usize::from(id.0)).filter(|_| count > 0) {
            Commands { queue: &self.queue, events, noted, seen, log }.read(memory, values)?;
        }
        Ok(Cow::Borrowed(values))
    }

    fn set_values(&mut self, plan: PlanId, id: BufId, values: &[f32]) -> Result<(), Error> {
        self.context.enter()?;
        let own = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        let memory = own.buffers.get_mut(usize::from(id.0)).filter(|memory| memory.count() >= values.len());
        memory.ok_or_else(|| PlanId::too_small(id, values.len()))?.set(&self.queue, values)
    }

    fn allocate(&mut self, bytes: usize) -> Result<(), Error> {
        self.context.enter()?;
        Memory::<u8>::zeroed(&self.queue, bytes).map(drop)
    }

    fn drain(&mut self, plan: PlanId, log: &mut Log) {
        if let Some(plan) = self.plans.get_mut(plan.0).filter(|_| self.context.enter().is_ok()) {
            plan.drain(log);
        }
    }

    fn meet(&mut self) -> Result<(), Error> {
        self.ranks.as_mut().map_or(Ok(()), |ranks| ranks.meet(LOADING))
    }

    fn ends(&self, step: u32, goes_on: bool) -> bool {
        self.ranks.as_ref().map_or(!goes_on, |ranks| ranks.ends(step, goes_on))
    }

    fn leave(&mut self) {
        self.ranks.iter_mut().for_each(Communicator::leave);
    }
}
