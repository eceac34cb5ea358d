//! An Ascend device as one backend among others.

#![allow(unsafe_code)]

use std::{borrow::Cow, cell::RefCell, rc::Rc};

use super::{
    Ascend, AttentionBy,
    inputs::Inputs,
    launch::Work,
    lower::Lowering,
    memory::{Memory, Shape, Type},
    step::{Commands, Plan, Start},
};
use crate::{
    Batch, Error,
    backend::{Backend, Device, PlanId},
    comm::LOADING,
    faults::Faults,
    hook::HostHook,
    options::{Mode, Sync},
    program::{BufId, Program},
    record::Log,
};

impl Backend for Ascend {
    fn device(&self) -> &Device {
        &self.device
    }

    fn prepare(&mut self, program: Program, _: &mut Log) -> Result<PlanId, Error> {
        self.enter()?;
        program.check(&self.config)?;
        if program.shard != self.shard {
            return Err(Error::Request(format!(
                "the program is that of rank {} of {}, the device has the weights of rank {} of {}",
                program.shard.rank, program.shard.of, self.shard.rank, self.shard.of
            )));
        }
        let (api, dtype) = (self.api, self.model.dtype);
        let room =
            |rows: usize, width: usize| Memory::zeroed(api, rows.saturating_mul(width).saturating_mul(dtype.size()));
        let buffers = program.buffers.iter().map(|b| room(b.rows, b.width)).collect::<Result<Vec<_>, _>>()?;
        let masked = self.options.attention.of(dtype) == AttentionBy::Mask;
        let inputs = Inputs::new(api, program.shape, &self.part, &self.cache, dtype, masked)?;
        let rows = program.buffer(program.logits).map_or(0, |logits| logits.rows);
        let chosen = Memory::zeroed(api, rows * Type::I64.size())?;
        let argument = api.tensor(&chosen, Type::I64, &Shape::of(&[rows]))?;
        // The longest that sequences get need the most workspace.
        let longest = vec![self.cache.context as i64; program.shape.sequences];
        let lengths = Rc::new(RefCell::new(api.ints(&longest)?));
        let lowering = Lowering {
            api,
            options: &self.options,
            model: &self.model,
            config: &self.part,
            plan: &self.cache,
            program: &program,
            buffers: &buffers,
            inputs: &inputs,
            chosen: &argument,
            comm: self.comm.as_ref(),
            faults: &self.faults,
            lengths: &lengths,
            causal: self.causal.as_ref(),
            stream: &self.stream,
            scratch: RefCell::default(),
        };
        let work = program.ops.iter().map(|op| lowering.lower(op)).collect::<Result<Vec<_>, _>>()?;
        let mut workspace = 0;
        for own in work.iter().flatten() {
            if let Work::Call(call) = own {
                workspace = workspace.max(call.try_out(self.options.reuse)?);
            }
        }
        self.plans.push(Plan {
            graph: None,
            work,
            program,
            inputs,
            lengths,
            buffers,
            chosen,
            workspace: Memory::new(api, workspace)?,
            received: None,
            values: Vec::new(),
            noted: Vec::new(),
            seen: 0,
        });
        Ok(PlanId(self.plans.len() - 1))
    }

    fn check_mode(&self, mode: Mode) -> Result<(), Error> {
        match (mode, &self.api.graphs) {
            (Mode::Piecewise, _) => Err(Mode::no_pieces("ascend")),
            (Mode::Graph, Err(why)) => Err(Error::Unavailable { backend: "ascend", what: why.clone() }),
            _ => Ok(()),
        }
    }

    fn suffer(&mut self, sync: Sync, faults: Faults) -> Result<(), Error> {
        let only_cpu = [
            ("cpu_fallback", faults.host.fallback.is_some()),
            ("bf16_accum", faults.numeric.bf16_accum),
            ("nan_at", faults.numeric.nan_at.is_some()),
            ("slow_rank", faults.rank.factor(0).is_some()),
        ];
        if let Some((name, _)) = only_cpu.into_iter().find(|(_, is_asked)| *is_asked) {
            return Err(Error::Request(format!(
                "an Ascend device cannot suffer '{name}'; leave it out, or run --backend cpu"
            )));
        }
        self.hook = HostHook::new(&faults.host)?;
        (self.sync, self.faults) = (sync, faults);
        Ok(())
    }

    fn run(&mut self, plan: PlanId, batch: &Batch, mode: Mode, log: &mut Log) -> Result<Vec<u32>, Error> {
        self.check_mode(mode)?;
        self.enter()?;
        let own = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        batch.check(&own.program, &self.config, &self.cache)?;
        let turned = self.faults.numeric.turned(&self.config);
        own.inputs.stage(batch, &turned, &self.cache, self.shard)?;
        // The lengths of the step before are read by nothing any more: every step ends with a wait.
        *own.lengths.borrow_mut() = self.api.ints(&own.inputs.lengths(batch))?;
        if let (Mode::Graph, Ok(calls)) = (mode, &self.api.graphs) {
            own.capture(self.api, *calls, self.stream.handle, log)?;
        }
        let start = Start { mode, sync: self.sync, hook: self.hook.as_mut() };
        own.run(self.api, self.stream.handle, &mut self.marks, start, log)
    }

    fn values(&mut self, plan: PlanId, id: BufId, log: &mut Log) -> Result<Cow<'_, [f32]>, Error> {
        self.enter()?;
        let dtype = self.model.dtype;
        let Plan { program, buffers, received, values, noted, seen, .. } =
            self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        let count = program.buffer(id).map_or(0, |buffer| buffer.rows.saturating_mul(buffer.width));
        values.resize(count, 0.0);
        if let Some(memory) = buffers.get(usize::from(id.0)).filter(|_| count > 0) {
            let (api, stream, marks) = (self.api, self.stream.handle, &mut self.marks);
            let mut commands = Commands { api, stream, marks, noted, seen, log };
            commands.read(memory, count * dtype.size(), received)?;
            dtype.numbers(received.as_ref().map_or(&[][..], |held| held.bytes()), values);
        }
        Ok(Cow::Borrowed(values))
    }

    fn set_values(&mut self, plan: PlanId, id: BufId, values: &[f32]) -> Result<(), Error> {
        self.enter()?;
        let dtype = self.model.dtype;
        let own = self.plans.get_mut(plan.0).ok_or_else(|| plan.unknown())?;
        let mut bytes = Vec::new();
        dtype.bytes(values, &mut bytes);
        let memory = own.buffers.get(usize::from(id.0)).filter(|memory| memory.size >= bytes.len());
        memory.ok_or_else(|| PlanId::too_small(id, values.len()))?.set(0, &bytes)
    }

    fn allocate(&mut self, bytes: usize) -> Result<(), Error> {
        self.enter()?;
        Memory::zeroed(self.api, bytes).map(drop)
    }

    fn drain(&mut self, plan: PlanId, log: &mut Log) {
        if let Some(plan) = self.plans.get_mut(plan.0) {
            self.marks.tell(&plan.noted, plan.seen, log);
            plan.noted.clear();
        }
    }

    fn meet(&mut self) -> Result<(), Error> {
        self.ranks.as_mut().map_or(Ok(()), |ranks| ranks.meet(LOADING))
    }

    fn ends(&self, step: u32, goes_on: bool) -> bool {
        self.ranks.as_ref().map_or(!goes_on, |ranks| ranks.ends(step, goes_on))
    }

    fn leave(&mut self) {
        if let Some(ranks) = &mut self.ranks {
            ranks.leave();
        }
    }
}
