//! The device work of one step, in the order the model issues it, with durations drawn and faults applied.

use crate::{config::Config, fault::FaultKind, kernel::Slot, random::Of, seat::Seat, serving::names, step::Step};

mod duration;
mod layer;
pub(crate) mod shape;

/// The stream that carries the model.
pub(crate) const MAIN: usize = 0;
/// The stream for overlapped operations.
pub(crate) const SIDE: usize = 1;
/// The stream for background copies.
pub(crate) const COPIES: usize = 2;

/// One kernel to be issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// Its place in the model, by which its costs are addressed.
    pub(crate) slot: Slot,
    /// Whose kernel runs there; another slot's where a fault puts a worse one in its place.
    pub(crate) kernel: Slot,
    pub(crate) layer: i64,
    /// Distinguishes kernels of one slot and layer.
    pub(crate) nth: i64,
    /// Time on the device, for a collective its transfer.
    pub(crate) ns: i64,
    /// For a collective, how long it waits for the other ranks if none of them is simulated.
    pub(crate) wait: i64,
    pub(crate) stream: usize,
    /// Starts only when the named stream's work so far is done.
    pub(crate) after: Option<usize>,
    /// Rows it works on.
    pub(crate) rows: i64,
    /// Thread blocks.
    pub(crate) blocks: i64,
    /// Name of the kernel, where it is not that of its slot.
    pub(crate) name: Option<&'static str>,
    /// The one rank that takes part in it beside its own; all do otherwise.
    pub(crate) peer: Option<usize>,
}

struct Builder<'c> {
    config: &'c Config,
    seat: Seat<'c>,
    step: Step,
    tasks: Vec<Task>,
}

impl<'c> Builder<'c> {
    fn new(seat: Seat<'c>, step: Step) -> Self {
        Self { config: seat.config, seat, step, tasks: Vec::new() }
    }

    fn key(&self, slot: Slot, layer: i64, nth: i64) -> [i64; 3] {
        [self.step.index, layer * 4096 + nth, slot as i64]
    }

    fn push(&mut self, slot: Slot, layer: i64, nth: i64) -> &mut Task {
        let wait = match slot.card().class {
            None => self.seat.own.tail(Of::Wait, self.key(slot, layer, nth), self.config.wait_ns),
            Some(_) => 0,
        };
        let ns = self.duration(slot, layer, nth);
        let blocks = shape::blocks(self.config, slot, self.step.rows);
        let at = self.tasks.len();
        let rows = self.step.rows;
        let name = self.config.serving.and_then(|serving| names::of(self.config, &serving, slot, rows));
        let (stream, after, peer) = (MAIN, None, None);
        self.tasks.push(Task { slot, kernel: slot, layer, nth, ns, wait, stream, after, rows, blocks, name, peer });
        &mut self.tasks[at]
    }

    fn several(&mut self, slot: Slot, layer: i64, first: i64, count: i64) {
        for nth in first..first + count {
            self.push(slot, layer, nth);
        }
    }
}

/// Kernels of the forward pass.
pub(crate) fn forward(seat: Seat<'_>, step: Step) -> Vec<Task> {
    let mut builder = Builder::new(seat, step);
    if seat.is_first() {
        builder.push(Slot::Embedding, -1, 0);
    }
    for layer in 0..seat.layers() {
        builder.layer(layer);
    }
    if seat.is_last() {
        builder.norm(Slot::FinalNorm, seat.layers(), 0);
    }
    builder.move_aside();
    builder.tasks
}

/// Kernels of the logits and the sampler.
pub(crate) fn sample(seat: Seat<'_>, step: Step) -> Vec<Task> {
    // Of a prompt only the last token is sampled, and no row that only fills up a graph is.
    let step = match seat.config.serving {
        Some(_) => Step { rows: step.batch.max(1), ..step },
        None if step.prefill => Step { rows: 1, ..step },
        None => step,
    };
    let mut builder = Builder::new(seat, step);
    let config = seat.config;
    let layer = seat.layers() + 1;
    builder.push(Slot::LmHead, layer, 0);
    if config.serving.is_some() && config.tensor_parallel > 1 {
        // Each rank has the logits of its part of the vocabulary.
        builder.push(Slot::ExtraGather, layer, 0);
    }
    builder.push(Slot::LogitsCast, layer, 0);
    if config.has(FaultKind::FullSort) {
        let each = config.kernel(Slot::Sort);
        let passes = (config.dose(FaultKind::FullSort, config.estimate() / 5) / each).max(4);
        builder.several(Slot::Sort, layer, 0, passes);
    }
    if config.sampling {
        builder.push(Slot::Softmax, layer, 0);
    }
    builder.push(Slot::Argmax, layer, 0);
    builder.tasks
}

/// Kernels of the draft model's pass for the `nth` token.
pub(crate) fn draft(seat: Seat<'_>, step: Step, nth: i64) -> Vec<Task> {
    let mut builder = Builder::new(seat, step);
    let layer = seat.layers() + 2 + nth;
    for slot in [
        Slot::InputNorm,
        Slot::Qkv,
        Slot::Attention,
        Slot::OutProj,
        Slot::PostNorm,
        Slot::GateUp,
        Slot::Act,
        Slot::Down,
        Slot::Argmax,
    ] {
        builder.push(slot, layer, 0);
    }
    builder.tasks
}

/// What a stage of a pipeline sends to `peer` or receives from it.
pub(crate) fn pass(seat: Seat<'_>, step: Step, slot: Slot, peer: usize, nth: i64) -> Vec<Task> {
    // Tokens are few beside activations.
    let mut builder = Builder::new(seat, if nth > 0 { Step { rows: 1, ..step } } else { step });
    builder.push(slot, -3, nth).peer = Some(peer);
    builder.tasks
}

/// Tokens that the experts of this rank get in the step, all layers together.
pub(crate) fn expert_tokens(seat: Seat<'_>, step: Step) -> i64 {
    let builder = Builder::new(seat, step);
    // Each token goes to eight experts.
    (0..seat.layers()).map(|layer| 8 * step.batch * builder.tokens_permille(layer) / 1000).sum()
}

/// Small kernels that prepare the inputs.
pub(crate) fn prepare(seat: Seat<'_>, step: Step) -> Vec<Task> {
    let mut builder = Builder::new(seat, step);
    builder.several(Slot::Positions, -2, 0, 2);
    builder.tasks
}
