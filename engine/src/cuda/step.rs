//! The commands of a step: one copy of its inputs, one kernel per operator or one graph, one copy of what it chose; and when
//! each was under way.

use std::{collections::BTreeMap, ops::Range};

use super::{
    graph::Graph,
    inputs::Inputs,
    memory::{Memory, Staging},
    queue::{Events, Queue},
    work::Work,
};
use crate::{
    Batch, Config, Error, Number,
    clock::Offset,
    hook::HostHook,
    options::{Mode, Sync},
    program::{OpCall, OpKind, Program},
    record::{Kind, Log, Ns, Span},
};

/// A program with its kernels and memory. What is first goes first: a graph before the memory that its kernels name.
pub(super) struct Plan {
    /// Captured kernels by their first operator, and the way of starting a step that they were captured for.
    pub captured: (Mode, BTreeMap<usize, Piece>),
    pub program: Program,
    /// The commands of each operator; none of one that the run suffers to be left out.
    pub work: Vec<Option<Work>>,
    pub buffers: Vec<Memory<f32>>,
    pub inputs: Inputs,
    /// The most likely token of each row of logits: on the device, and as it was last copied from there.
    pub chosen: Memory<u32>,
    pub tokens: Staging<u32>,
    /// What the commands of an operator leave for one another.
    pub _scratch: Memory<u8>,
    /// Values that were last asked for.
    pub values: Staging<f32>,
    pub events: Events,
    pub noted: Vec<Noted>,
    /// When the host last saw that everything had ended.
    pub seen: Ns,
}

/// Operators that were captured together.
pub(super) struct Piece {
    ops: Range<usize>,
    graph: Graph,
}

/// Which operators are captured together. Attention and what it appends to the cache are what changes from step to step.
fn pieces(ops: &[OpCall], mode: Mode) -> Vec<Range<usize>> {
    let is_alone = |op: &OpCall| match mode {
        Mode::Eager => true,
        Mode::Graph => false,
        Mode::Piecewise => matches!(op.kind, OpKind::KvAppend { .. } | OpKind::Attention { .. }),
    };
    let mut at = 0;
    let mut all = Vec::new();
    for run in ops.chunk_by(|a, b| is_alone(a) == is_alone(b)) {
        if !run.first().is_some_and(is_alone) {
            all.push(at..at + run.len());
        }
        at += run.len();
    }
    all
}

/// A number of operators, or of one among them, as a record has it.
fn count(ops: usize) -> u32 {
    u32::try_from(ops).unwrap_or(u32::MAX)
}

/// How a step is started, and what holds it up.
pub(super) struct Start<'s> {
    pub mode: Mode,
    pub sync: Sync,
    pub hook: Option<&'s mut HostHook>,
}

/// A command between two events; its place is that of its pair.
pub(super) struct Noted {
    kind: Kind,
    /// When the host turned to it.
    from: Ns,
    /// When the host recorded the first event.
    marked: Ns,
    /// The call that enqueued it.
    host: Span,
}

/// Commands on their way to the device.
pub(super) struct Commands<'c> {
    pub queue: &'c Queue,
    pub events: &'c mut Events,
    pub noted: &'c mut Vec<Noted>,
    pub seen: &'c mut Ns,
    pub log: &'c mut Log,
}

impl Commands<'_> {
    /// Enqueues a command, between two events where there is a record.
    fn note(
        &mut self,
        kind: Kind,
        from: Option<Ns>,
        call: impl FnOnce(&Queue) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let driver = self.queue.context.driver;
        let marked = self.log.now();
        let pair = if self.log.sees_device() { Some(self.events.pair(self.noted.len())?) } else { None };
        if let Some([start, _]) = pair {
            driver.check("record an event", self.queue.record(start))?;
        }
        let start = self.log.now();
        self.log.launch(kind, || call(self.queue))?;
        let host = Span { start, end: self.log.now() };
        let from = from.unwrap_or(start);
        match pair {
            Some([_, end]) => {
                driver.check("record an event", self.queue.record(end))?;
                self.noted.push(Noted { kind, from, marked, host });
            }
            None => self.log.push_command(kind, from, host, None, Span::default()),
        }
        Ok(())
    }

    /// Copies from the device and waits for it.
    pub(super) fn read<T: Number>(&mut self, from: &Memory<T>, to: &mut [T]) -> Result<(), Error> {
        self.note(Kind::Read(size_of_val(to)), None, |queue| {
            queue.context.driver.check("copy from the CUDA device", from.read(queue, to))
        })?;
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Error> {
        let start = self.log.now();
        self.queue.settle("wait for the commands of a step")?;
        *self.seen = self.log.now();
        self.log.push(Kind::Sync, Span { start, end: *self.seen });
        Ok(())
    }
}

impl Plan {
    /// Captures what the mode starts at once, unless that was done.
    pub(super) fn capture(&mut self, mode: Mode, queue: &Queue, log: &mut Log) -> Result<(), Error> {
        if self.captured.0 == mode {
            return Ok(());
        }
        self.work.iter().flatten().try_for_each(|work| work.warm(queue))?;
        queue.settle("load what a capture cannot")?;
        let mut captured = BTreeMap::new();
        for ops in pieces(&self.program.ops, mode) {
            let start = log.now();
            let work = (ops.start..).zip(self.work.get_mut(ops.clone()).unwrap_or_default());
            let work = work.filter_map(|(op, work)| Some((Kind::Op(count(op)), work.as_mut()?)));
            let graph = Graph::capture(queue, work, log)?;
            captured.insert(ops.start, Piece { ops, graph });
            log.push(Kind::Capture, Span { start, end: log.now() });
        }
        self.captured = (mode, captured);
        Ok(())
    }

    /// Runs a step.
    pub(super) fn run(
        &mut self,
        queue: &Queue,
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
        queue: &Queue,
        batch: &Batch,
        turned: &Config,
        Start { mode, sync, mut hook }: Start<'_>,
        log: &mut Log,
    ) -> Result<Vec<u32>, Error> {
        let Self { captured: (_, captured), program, work, inputs, chosen, tokens, events, noted, seen, .. } = self;
        noted.clear();
        if let Some(hook) = &mut hook {
            hook.before_step(log);
        }
        inputs.stage(batch, turned);
        let mut commands = Commands { queue, events, noted, seen, log };
        // What is copied stays as it is until the next step, which begins after a wait for this one.
        commands.note(Kind::Write(inputs.bytes()), None, |queue| {
            queue.context.driver.check("copy to the CUDA device", inputs.write(queue))
        })?;
        let mut number = 0;
        while let Some(op) = program.ops.get(number) {
            let from = commands.log.now();
            if let Some(hook) = &mut hook {
                hook.before(op, commands.log);
            }
            let next = match captured.get(&number).filter(|_| mode != Mode::Eager) {
                Some(Piece { ops, graph }) => {
                    let kind = match mode {
                        Mode::Piecewise => Kind::Piece { first: count(ops.start), count: count(ops.len()) },
                        Mode::Graph | Mode::Eager => Kind::Replay,
                    };
                    commands.note(kind, Some(from), |queue| graph.enqueue(queue))?;
                    ops.end
                }
                None => {
                    if let Some(work) = work.get_mut(number).and_then(Option::as_mut) {
                        commands.note(Kind::Op(count(number)), Some(from), |queue| work.enqueue(queue))?;
                    }
                    number + 1
                }
            };
            // A wait that is asked for inside of a piece comes behind it; behind the last operator everything is waited for.
            let done = program.ops.get(number..=next).unwrap_or_default();
            if done.iter().zip(done.iter().skip(1)).any(|(op, next)| sync.is_after(op, next)) {
                commands.finish()?;
            }
            number = next;
        }
        if !program.ops.iter().any(|op| matches!(op.kind, OpKind::Argmax { .. })) {
            commands.finish()?;
            return Ok(Vec::new());
        }
        commands.read(chosen, tokens.elements())?;
        Ok(tokens.elements().to_vec())
    }

    /// Writes when each command was under way into a log, by the host's clock.
    ///
    /// An event cannot happen before the host recorded it, and has happened when the host has waited for it; the events of a
    /// step so bound the difference of the clocks.
    pub(super) fn drain(&mut self, log: &mut Log) {
        let stamps: Vec<Option<(Ns, Ns)>> = (0..self.noted.len()).map(|place| self.events.stamps(place)).collect();
        let mut offset = Offset::default();
        for (noted, (start, end)) in self.noted.iter().zip(&stamps).filter_map(|(n, s)| Some((n, s.as_ref()?))) {
            offset.not_before(noted.marked, *start);
            offset.not_after(self.seen, *end);
        }
        let middle = offset.middle();
        log.uncertainty = log.uncertainty.max(middle.map(|(_, uncertainty)| uncertainty));
        for (Noted { kind, from, host, .. }, stamps) in self.noted.drain(..).zip(stamps) {
            match stamps.zip(middle) {
                Some(((start, end), (ahead, _))) => {
                    let at = |ns: Ns| ns.saturating_add(ahead);
                    log.push_command(kind, from, host, None, Span { start: at(start), end: at(end) });
                }
                None => log.unread += 1,
            }
        }
    }
}
