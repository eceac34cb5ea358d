//! An OpenCL device as one backend among others.

use std::borrow::Cow;

use super::{
    OpenCl,
    inputs::Inputs,
    lower::{Lowering, Work},
    memory::Memory,
    refused,
    staged::{self, Stage},
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

impl Backend for OpenCl {
    fn device(&self) -> &Device {
        &self.device
    }

    fn prepare(&mut self, program: Program, _: &mut Log) -> Result<PlanId, Error> {
        program.check(&self.config)?;
        let shard = self.ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard);
        let (needed, slot) = (program.largest_exchange(), self.ranks.as_ref().map_or(0, |ranks| ranks.world().slot));
        if program.shard != shard || needed > slot {
            return Err(Error::Request(format!(
                "the program is for rank {} of {} and exchanges {needed} elements; plan it for this rank, and memory for it",
                program.shard.rank, program.shard.of
            )));
        }
        let buffer = |rows: usize, width: usize| Memory::zeroed(&self.place, rows.saturating_mul(width));
        let buffers = program.buffers.iter().map(|b| buffer(b.rows, b.width)).collect::<Result<Vec<_>, _>>()?;
        let inputs = Inputs::new(&self.place, program.shape, self.config.head_dim)?;
        let rows = program.buffer(program.logits).map_or(0, |logits| logits.rows);
        let chosen = Memory::zeroed(&self.place, rows)?;
        let lowering = Lowering {
            source: &self.source,
            model: &self.model,
            config: &self.part,
            first_token: shard.range(self.config.vocab).start,
            plan: &self.cache,
            flavour: self.flavour,
            units: usize::try_from(self.place.facts.units).unwrap_or(1).max(1),
            program: &program,
            buffers: &buffers,
            inputs: &inputs,
            chosen: chosen.handle(),
            faults: &self.faults,
        };
        let work = program.ops.iter().map(|op| lowering.lower(op)).collect::<Result<Vec<Work>, _>>()?;
        let stage = Stage::of(work.iter().filter_map(|work| match work {
            Work::Staged(staged) => Some(staged),
            _ => None,
        }));
        let (tokens, values, noted) = (Vec::new(), Vec::new(), Vec::new());
        self.plans.push(Plan {
            graph: None,
            program,
            work,
            stage,
            buffers,
            inputs,
            chosen,
            tokens,
            values,
            noted,
            seen: 0,
        });
        Ok(PlanId(self.plans.len() - 1))
    }

    fn check_mode(&self, mode: Mode) -> Result<(), Error> {
        match mode {
            Mode::Eager => Ok(()),
            Mode::Piecewise => Err(Mode::no_pieces("opencl")),
            Mode::Graph if self.ranks.is_some() => Err(Error::Unavailable {
                backend: "opencl",
                what: "a step of several ranks cannot be one command, as its collectives go through memory of the host; leave \
                       --mode out"
                    .to_owned(),
            }),
            Mode::Graph => match &self.graphs {
                Ok(_) => Ok(()),
                Err(why) => Err(Error::Unavailable { backend: "opencl", what: why.clone() }),
            },
        }
    }

    fn suffer(&mut self, sync: Sync, faults: Faults) -> Result<(), Error> {
        if faults.numeric.bf16_accum {
            return Err(Error::Request(
                "an OpenCL device cannot suffer 'bf16_accum'; leave it out, or run --backend cpu".to_owned(),
            ));
        }
        if let Some(op) = faults.host.fallback.filter(|op| *op != staged::FALLBACK) {
            return Err(Error::Request(format!(
                "an OpenCL device cannot suffer 'cpu_fallback' of {}, whose weights are on it; choose op={}",
                op.text(),
                staged::FALLBACK.text()
            )));
        }
        self.hook = HostHook::new(&faults.host)?;
        (self.sync, self.faults) = (sync, faults);
        Ok(())
    }

    fn run(&mut self, plan: PlanId, batch: &Batch, mode: Mode, log: &mut Log) -> Result<Vec<u32>, Error> {
        self.check_mode(mode)?;
        let own = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        batch.check(&own.program, &self.config, &self.cache)?;
        let turned = self.faults.numeric.turned(&self.config);
        // What the host computes itself cannot be part of one command.
        let mode = if own.is_staged() { Mode::Eager } else { mode };
        if let (Mode::Graph, Ok(calls)) = (mode, &self.graphs) {
            own.capture(*calls, &self.place.queue, log)?;
        }
        let rank = self.ranks.as_ref().map_or(0, |ranks| ranks.shard().rank);
        let start = Start {
            mode,
            sync: self.sync,
            hook: self.hook.as_mut(),
            ranks: self.ranks.as_mut(),
            kernels: &self.host_kernels,
            slow: self.faults.rank.factor(rank),
        };
        own.run(&self.place.queue, batch, &turned, start, log)
    }

    fn values(&mut self, plan: PlanId, id: BufId, log: &mut Log) -> Result<Cow<'_, [f32]>, Error> {
        let Plan { program, buffers, values, noted, seen, .. } =
            self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        let count = program.buffer(id).map_or(0, |buffer| buffer.rows.saturating_mul(buffer.width));
        values.resize(count, 0.0);
        if let Some(memory) = buffers.get_mut(usize::from(id.0)).filter(|_| count > 0) {
            Commands { queue: &self.place.queue, noted, seen, log }.read(memory, values)?;
        }
        Ok(Cow::Borrowed(values))
    }

    fn set_values(&mut self, plan: PlanId, id: BufId, values: &[f32]) -> Result<(), Error> {
        let own = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        let memory = own.buffers.get_mut(usize::from(id.0)).filter(|memory| memory.count() >= values.len());
        memory.ok_or_else(|| PlanId::too_small(id, values.len()))?.set(&self.place.queue, values)
    }

    fn allocate(&mut self, bytes: usize) -> Result<(), Error> {
        let _memory = Memory::<u8>::zeroed(&self.place, bytes)?;
        self.place.queue.finish().map_err(|error| refused("clear memory of the device", &error))
    }

    fn drain(&mut self, plan: PlanId, log: &mut Log) {
        if let Some(plan) = self.plans.get_mut(plan.0) {
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
