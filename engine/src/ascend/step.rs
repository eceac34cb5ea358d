//! The commands of a step: one copy of its inputs, the calls of every operator, one copy of what it chose.

#![allow(unsafe_code)]

use std::{cell::RefCell, rc::Rc};

use super::{
    calls::{Api, Graphs, Handle, Status},
    clock::{Marks, Noted},
    graph::Graph,
    inputs::Inputs,
    launch::Work,
    memory::{Argument, Memory, Pinned, Type},
};
use crate::{
    Error,
    hook::HostHook,
    options::{Mode, Sync},
    program::{OpKind, Program},
    record::{Kind, Log, Ns, Span},
};

/// A program with its calls and memory. Fields are dropped in their order: what speaks of memory goes before it.
pub(super) struct Plan {
    /// The calls as one, once they were captured.
    pub graph: Option<Graph>,
    /// What each operator is lowered to; nothing where it is left out.
    pub work: Vec<Vec<Work>>,
    pub program: Program,
    pub inputs: Inputs,
    /// What attention reads of the host.
    pub lengths: Rc<RefCell<Argument>>,
    pub buffers: Vec<Rc<Memory>>,
    /// The most likely token of each row of logits, 64 bits each.
    pub chosen: Rc<Memory>,
    /// Memory for one call at a time.
    pub workspace: Rc<Memory>,
    /// Where copies from the device go.
    pub received: Option<Pinned>,
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
}

/// Commands on their way to the device.
pub(super) struct Commands<'c> {
    pub api: &'static Api,
    pub stream: Handle,
    pub marks: &'c mut Marks,
    pub noted: &'c mut Vec<Noted>,
    pub seen: &'c mut Ns,
    pub log: &'c mut Log,
}

impl Commands<'_> {
    /// Puts something between two events.
    fn note(
        &mut self,
        kind: Kind,
        from: Option<Ns>,
        enqueue: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let start = self.log.now();
        // Of operators that somebody else watches there are no marks, which would be work of the device of their own.
        let is_watched = self.log.tells() && matches!(kind, Kind::Op(_) | Kind::Replay);
        if !self.log.sees_device() || is_watched {
            enqueue(self)?;
            let host = Span { start, end: self.log.now() };
            self.log.push_command(kind, from.unwrap_or(start), host, None, Span::default());
            return Ok(());
        }
        let before = self.marks.record(self.stream, self.log)?;
        let called = self.log.now();
        enqueue(self)?;
        let after = self.marks.record(self.stream, self.log)?;
        let host = Span { start, end: self.log.now() };
        self.noted.push(Noted { kind, from: from.unwrap_or(start), host, called, marks: [before, after] });
        Ok(())
    }

    fn command(&mut self, kind: Kind, doing: &str, call: impl FnOnce(Handle) -> Status) -> Result<(), Error> {
        self.note(kind, None, |own| own.api.check(doing, call(own.stream)))
    }

    /// The calls of an operator. Their first phases are done before the event from which on the device counts.
    fn launch(&mut self, op: usize, from: Ns, work: &[Work], workspace: &Memory) -> Result<(), Error> {
        let ready = work.iter().map(Work::ready).collect::<Result<Vec<_>, _>>()?;
        let kind = Kind::Op(u32::try_from(op).unwrap_or(u32::MAX));
        self.note(kind, Some(from), |own| {
            let stream = own.stream;
            let mut each = work.iter().zip(ready);
            own.log.launch(kind, || each.try_for_each(|(work, ready)| work.launch(ready, workspace, stream)))
        })
    }

    /// Copies the first `bytes` from the device and waits for it.
    pub(super) fn read(&mut self, from: &Memory, bytes: usize, to: &mut Option<Pinned>) -> Result<(), Error> {
        let held = match to {
            Some(held) if held.bytes().len() >= bytes => held,
            place => place.insert(Pinned::new(self.api, bytes)?),
        };
        self.command(Kind::Read(bytes), "copy from the device", |stream| held.receive(from, bytes, stream))?;
        self.finish()
    }

    pub(super) fn finish(&mut self) -> Result<(), Error> {
        let start = self.log.now();
        // SAFETY: a stream of ours.
        let status = unsafe { (self.api.runtime.synchronize)(self.stream) };
        self.api.check("wait for the commands of a step", status)?;
        *self.seen = self.log.now();
        self.log.push(Kind::Sync, Span { start, end: *self.seen });
        Ok(())
    }
}

impl Plan {
    /// Captures the calls, unless that was done. They run once before, because what a library does at the first launch of an
    /// operator may not be captured.
    pub(super) fn capture(
        &mut self,
        api: &'static Api,
        calls: Graphs,
        stream: Handle,
        log: &mut Log,
    ) -> Result<(), Error> {
        if self.graph.is_some() {
            return Ok(());
        }
        let start = log.now();
        // SAFETY: memory and a stream of ours.
        api.check("copy to the device", self.inputs.send(stream))?;
        for work in self.work.iter().flatten() {
            work.launch(work.ready()?, &self.workspace, stream)?;
        }
        // SAFETY: a stream of ours.
        api.check("wait for a step", unsafe { (api.runtime.synchronize)(stream) })?;
        self.graph = Some(Graph::capture(api, calls, &self.work, &self.workspace, stream, log)?);
        log.push(Kind::Capture, Span { start, end: log.now() });
        Ok(())
    }

    /// Runs a step, whose inputs are staged.
    pub(super) fn run(
        &mut self,
        api: &'static Api,
        stream: Handle,
        marks: &mut Marks,
        start: Start<'_>,
        log: &mut Log,
    ) -> Result<Vec<u32>, Error> {
        let ran = self.enqueue(api, stream, marks, start, log);
        if ran.is_err() {
            // Copies may be under way whose memory the next step would write; the first error is the one that counts.
            // SAFETY: a stream of ours.
            let _ = unsafe { (api.runtime.synchronize)(stream) };
        }
        ran
    }

    fn enqueue(
        &mut self,
        api: &'static Api,
        stream: Handle,
        marks: &mut Marks,
        Start { mode, sync, mut hook }: Start<'_>,
        log: &mut Log,
    ) -> Result<Vec<u32>, Error> {
        let Self { graph, work, program, inputs, chosen, workspace, received, noted, seen, .. } = self;
        noted.clear();
        marks.clear();
        if let Some(hook) = &mut hook {
            hook.before_step(log);
        }
        let mut commands = Commands { api, stream, marks, noted, seen, log };
        commands.command(Kind::Write(inputs.bytes()), "copy to the device", |stream| inputs.send(stream))?;
        let graph = graph.as_ref().filter(|_| mode == Mode::Graph);
        for (number, (op, own)) in program.ops.iter().zip(work.iter()).enumerate() {
            let from = commands.log.now();
            if let Some(hook) = &mut hook {
                hook.before(op, commands.log);
            }
            if let Some(graph) = graph {
                commands.note(Kind::Replay, Some(from), |own| graph.replay(own.stream))?;
                graph.update(work, workspace, commands.log)?;
                break;
            }
            if !own.is_empty() {
                commands.launch(number, from, own, workspace)?;
            }
            let Some(next) = program.ops.get(number + 1) else { break };
            if sync.is_after(op, next) {
                commands.finish()?;
            }
        }
        if !program.ops.iter().any(|op| matches!(op.kind, OpKind::Argmax { .. })) {
            commands.finish()?;
            return Ok(Vec::new());
        }
        let rows = program.buffer(program.logits).map_or(0, |logits| logits.rows);
        commands.read(chosen, rows * Type::I64.size(), received)?;
        let bytes = received.as_ref().map_or(&[][..], Pinned::bytes);
        let tokens = bytes.as_chunks::<8>().0.iter().take(rows).map(|token| i64::from_ne_bytes(*token));
        Ok(tokens.map(|token| u32::try_from(token).unwrap_or(0)).collect())
    }
}
