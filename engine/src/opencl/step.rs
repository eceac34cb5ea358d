//! The commands of a step: one copy of its inputs, one kernel per operator, one copy of what it chose; and what the device
//! noted of each.

#![allow(unsafe_code)]

use std::ptr;

use opencl3::{command_queue::CommandQueue, event::Event, types::CL_NON_BLOCKING};

use super::{
    clock::{self, Stamps},
    graph::{Calls, Graph},
    inputs::Inputs,
    lower::{Launch, Work},
    memory::Memory,
    refused,
    staged::{Stage, Staged},
};
use crate::{
    Batch, Config, Error, Number,
    clock::Offset,
    comm::Communicator,
    cpu::Kernels,
    hook::HostHook,
    options::{Mode, Sync},
    program::{OpKind, Program},
    record::{Kind, Log, Ns, Span},
};

/// A program with its kernels and memory.
pub(super) struct Plan {
    /// The kernels as one command, once they were recorded.
    pub graph: Option<Graph>,
    pub program: Program,
    /// What each operator became.
    pub work: Vec<Work>,
    pub stage: Stage,
    pub buffers: Vec<Memory<f32>>,
    pub inputs: Inputs,
    /// The most likely token of each row of logits: on the device, and as it was last copied from there.
    pub chosen: Memory<u32>,
    pub tokens: Vec<u32>,
    /// Values that were last asked for.
    pub values: Vec<f32>,
    pub noted: Vec<Noted>,
    /// When the host last saw that everything had ended.
    pub seen: Ns,
}

/// How a step is started, and what holds it up.
pub(super) struct Start<'s> {
    pub mode: Mode,
    pub sync: Sync,
    pub hook: Option<&'s mut HostHook>,
    /// The other ranks.
    pub ranks: Option<&'s mut Communicator>,
    /// What the host computes with.
    pub kernels: &'s Kernels,
    /// How many times as long as usual the operators of this rank take.
    pub slow: Option<f64>,
}

/// A command whose stamps are still with the driver.
pub(super) struct Noted {
    kind: Kind,
    /// When the host turned to it.
    from: Ns,
    /// The call that enqueued it.
    host: Span,
    /// None of what ranks computed together, which was when the call was.
    event: Option<Event>,
    /// Of the same kernel when it ran again.
    again: Option<Event>,
}

impl Noted {
    /// From the first of its commands to the last.
    fn stamps(&self) -> Option<Stamps> {
        let first = Stamps::of(self.event.as_ref()?)?;
        match &self.again {
            Some(last) => Stamps::of(last).map(|last| Stamps { end: last.end, ..first }),
            None => Some(first),
        }
    }
}

/// Commands on their way to the device.
pub(super) struct Commands<'c> {
    pub queue: &'c CommandQueue,
    pub noted: &'c mut Vec<Noted>,
    pub seen: &'c mut Ns,
    pub log: &'c mut Log,
}

impl Commands<'_> {
    fn note(
        &mut self,
        kind: Kind,
        from: Option<Ns>,
        call: impl FnOnce() -> opencl3::Result<Event>,
    ) -> Result<(), Error> {
        let start = self.log.now();
        let event = call().map_err(|error| refused("enqueue a command of a step", &error))?;
        let (from, host) = (from.unwrap_or(start), Span { start, end: self.log.now() });
        if self.log.sees_device() {
            self.noted.push(Noted { kind, from, host, event: Some(event), again: None });
        } else {
            self.log.push_command(kind, from, host, None, Span::default());
        }
        Ok(())
    }

    fn launch(&mut self, op: usize, from: Ns, launch: &Launch, times: usize) -> Result<(), Error> {
        let (queue, Launch { kernel, global, local, .. }) = (self.queue, launch);
        let dimensions = global.len() as u32;
        // SAFETY: the sizes are arrays of as many dimensions, and the arguments of the kernel are set and name memory that
        // lives as long as the plan.
        let call = || unsafe {
            queue.enqueue_nd_range_kernel(kernel.get(), dimensions, ptr::null(), global.as_ptr(), local.as_ptr(), &[])
        };
        self.note(Kind::Op(u32::try_from(op).unwrap_or(u32::MAX)), Some(from), call)?;
        for _ in 1..times {
            let again = call().map_err(|error| refused("enqueue a kernel again", &error))?;
            if let Some(noted) = self.noted.last_mut().filter(|_| self.log.sees_device()) {
                noted.again = Some(again);
            }
        }
        Ok(())
    }

    /// Copies the input of an operator here, computes it, and copies the result back.
    fn staged(
        &mut self,
        op: usize,
        staged: &Staged,
        buffers: &mut [Memory<f32>],
        stage: &mut Stage,
        ranks: Option<&mut Communicator>,
        kernels: &Kernels,
    ) -> Result<(), Error> {
        let unknown = || Error::Request(format!("operator {op} has no memory; prepare the program again"));
        let [from, to] = [staged.from, staged.to].map(|id| usize::from(id.0));
        let counts = staged.counts();
        let Stage { input, result } = stage;
        let (input, result) = input.get_mut(..counts[0]).zip(result.get_mut(..counts[1])).ok_or_else(unknown)?;
        self.read(buffers.get_mut(from).ok_or_else(unknown)?, input)?;
        let start = self.log.now();
        staged.compute(ranks, kernels, input, result)?;
        let host = Span { start, end: self.log.now() };
        let number = u32::try_from(op).unwrap_or(u32::MAX);
        if !staged.is_collective() {
            self.log.push(Kind::Fallback(number), host);
        } else if self.log.sees_device() {
            self.noted.push(Noted { kind: Kind::Op(number), from: start, host, event: None, again: None });
        } else {
            self.log.push_command(Kind::Op(number), start, host, None, Span::default());
        }
        let (queue, memory, bytes) = (self.queue, buffers.get_mut(to).ok_or_else(unknown)?, size_of_val(result));
        // SAFETY: the memory of a stage is not moved, and not written before the next staged operator has waited for its own
        // input, which the queue copies after this; the driver refuses what is beyond the buffer.
        let call = || unsafe { queue.enqueue_write_buffer(memory.buffer(), CL_NON_BLOCKING, 0, result, &[]) };
        self.note(Kind::Write(bytes), None, call)
    }

    /// Copies from the device and waits for it.
    pub(super) fn read<T: Number>(&mut self, from: &mut Memory<T>, to: &mut [T]) -> Result<(), Error> {
        let (queue, bytes) = (self.queue, size_of_val(to));
        // SAFETY: `to` outlives the wait below, and the driver refuses what is beyond the buffer. Where the wait fails, the
        // device is lost and writes nothing any more.
        let call = || unsafe { queue.enqueue_read_buffer(from.buffer(), CL_NON_BLOCKING, 0, to, &[]) };
        self.note(Kind::Read(bytes), None, call)?;
        self.finish()
    }

    fn flush(&self) -> Result<(), Error> {
        self.queue.flush().map_err(|error| refused("hand the commands of a step to the device", &error))
    }

    fn finish(&mut self) -> Result<(), Error> {
        let start = self.log.now();
        self.queue.finish().map_err(|error| refused("wait for the commands of a step", &error))?;
        *self.seen = self.log.now();
        self.log.push(Kind::Sync, Span { start, end: *self.seen });
        Ok(())
    }
}

impl Plan {
    /// Records the kernels as one command, unless that was done.
    pub(super) fn capture(&mut self, calls: Calls, queue: &CommandQueue, log: &mut Log) -> Result<(), Error> {
        if self.graph.is_none() {
            let start = log.now();
            let kernels = self.work.iter().filter_map(|work| match work {
                Work::Kernel(launch) => Some(launch),
                Work::Staged(_) | Work::LeftOut => None,
            });
            self.graph = Some(Graph::record(calls, queue.get(), kernels)?);
            log.push(Kind::Capture, Span { start, end: log.now() });
        }
        Ok(())
    }

    /// Whether the host computes a part of it.
    pub(super) fn is_staged(&self) -> bool {
        self.work.iter().any(|work| matches!(work, Work::Staged(_)))
    }

    /// Runs a step.
    pub(super) fn run(
        &mut self,
        queue: &CommandQueue,
        batch: &Batch,
        turned: &Config,
        start: Start<'_>,
        log: &mut Log,
    ) -> Result<Vec<u32>, Error> {
        let ran = self.enqueue(queue, batch, turned, start, log);
        if ran.is_err() {
            // Copies may be under way whose memory the next step would write; the first error is the one that counts.
            let _ = queue.finish();
        }
        ran
    }

    fn enqueue(
        &mut self,
        queue: &CommandQueue,
        batch: &Batch,
        turned: &Config,
        Start { mode, sync, mut hook, mut ranks, kernels, slow }: Start<'_>,
        log: &mut Log,
    ) -> Result<Vec<u32>, Error> {
        let Self { graph, program, work, stage, buffers, inputs, chosen, tokens, noted, seen, .. } = self;
        // How much of a launch a slow rank still owes.
        let mut owed = 0.0;
        noted.clear();
        if let Some(hook) = &mut hook {
            hook.before_step(log);
        }
        let graph = graph.as_ref().filter(|_| mode == Mode::Graph);
        let (memory, staged) = inputs.stage(batch, turned);
        let mut commands = Commands { queue, noted, seen, log };
        // SAFETY: what is copied stays as it is until the next step, which begins after a wait for this one.
        let call = || unsafe { queue.enqueue_write_buffer(memory.buffer(), CL_NON_BLOCKING, 0, staged, &[]) };
        commands.note(Kind::Write(size_of_val(staged)), None, call)?;
        let chooses = program.ops.iter().any(|op| matches!(op.kind, OpKind::Argmax { .. }));
        for (number, (op, work)) in program.ops.iter().zip(work.iter()).enumerate() {
            let from = commands.log.now();
            if let Some(hook) = &mut hook {
                hook.before(op, commands.log);
            }
            if let Some(graph) = graph {
                commands.note(Kind::Replay, Some(from), || graph.enqueue())?;
                break;
            }
            match work {
                Work::Kernel(launch) => {
                    owed += slow.filter(|_| launch.is_repeatable).map_or(0.0, |factor| factor - 1.0);
                    let more = if launch.is_repeatable { owed as usize } else { 0 };
                    owed -= more as f64;
                    commands.launch(number, from, launch, 1 + more)?;
                }
                Work::Staged(staged) => {
                    commands.staged(number, staged, buffers, stage, ranks.as_deref_mut(), kernels)?;
                }
                Work::LeftOut => {}
            }
            let Some(next) = program.ops.get(number + 1) else { break };
            if sync.is_after(op, next) {
                commands.finish()?;
            } else if op.id.layer != next.id.layer {
                // Drivers may keep commands until they are told that these are all for now.
                commands.flush()?;
            }
        }
        if !chooses {
            commands.finish()?;
            return Ok(Vec::new());
        }
        let rows = program.buffer(program.logits).map_or(0, |logits| logits.rows);
        tokens.resize(rows, 0);
        commands.read(chosen, tokens)?;
        Ok(tokens.clone())
    }

    /// Writes what the device noted into a log, by the host's clock.
    pub(super) fn drain(&mut self, log: &mut Log) {
        let noted: Vec<(Noted, Option<Stamps>)> =
            self.noted.drain(..).map(|noted| (noted.stamps(), noted)).map(|(s, noted)| (noted, s)).collect();
        let mut offset = Offset::default();
        for (noted, stamps) in noted.iter().filter_map(|(noted, stamps)| Some((noted, stamps.as_ref()?))) {
            clock::queued(&mut offset, noted.host, stamps);
            offset.not_after(self.seen, stamps.end);
        }
        let middle = offset.middle();
        log.uncertainty = log.uncertainty.max(middle.map(|(_, uncertainty)| uncertainty));
        let neighbour = |at: Option<usize>| at.and_then(|at| noted.get(at)?.1);
        for (number, (Noted { kind, from, host, event, .. }, stamps)) in noted.iter().enumerate() {
            let (kind, from, host) = (*kind, *from, *host);
            if event.is_none() {
                // What ranks did together lies between the copies around it, whatever the clocks make of these.
                let on_host = |stamps: Stamps| middle.map(|(ahead, _)| clock::on_host(&stamps, ahead).1);
                let (before, after) = (neighbour(number.checked_sub(1)), neighbour(number.checked_add(1)));
                let start = before.and_then(on_host).map_or(host.start, |copy| host.start.max(copy.end));
                let end = after.and_then(on_host).map_or(host.end, |copy| host.end.min(copy.start)).max(start);
                log.push_command(kind, from, host, None, Span { start, end });
                continue;
            }
            let stamps = match kind {
                // What the event of a command buffer says is no measure of it: `graph` says why and what is.
                Kind::Replay => {
                    let (before, after) = (neighbour(number.checked_sub(1)), neighbour(number.checked_add(1)));
                    before.zip(after).zip(middle).map(|((before, after), (ahead, _))| {
                        // Nor did it start before its call, which comes late where the host is busy.
                        let start = before.end.max(host.start.saturating_sub(ahead)).min(after.start);
                        let queued = stamps.map_or(before.queued, |own| own.queued).min(start);
                        Stamps { queued, submitted: start, start, end: after.start }
                    })
                }
                _ => *stamps,
            };
            match stamps.zip(middle) {
                Some((stamps, (ahead, _))) => {
                    let (submit, device) = clock::on_host(&stamps, ahead);
                    log.push_command(kind, from, host, Some(submit), device);
                }
                None => log.unread += 1,
            }
        }
    }
}
