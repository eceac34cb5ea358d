//! The device work of one step, in the order the model issues it, with durations drawn and faults applied.

use crate::{
    config::Config,
    fault::FaultKind,
    kernel::Slot,
    random::{Dice, Of},
    seat::Seat,
};

/// The stream that carries the model.
pub(crate) const MAIN: usize = 0;
/// The stream for overlapped operations.
pub(crate) const SIDE: usize = 1;
/// The stream for background copies.
pub(crate) const COPIES: usize = 2;

/// One kernel to be issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) slot: Slot,
    pub(crate) layer: i64,
    /// Distinguishes kernels of one slot and layer.
    pub(crate) nth: i64,
    /// Time on the device, for a collective its transfer.
    pub(crate) ns: i64,
    /// For a collective, how long it waits for the other ranks.
    pub(crate) wait: i64,
    pub(crate) stream: usize,
    /// Starts only when the named stream's work so far is done.
    pub(crate) after: Option<usize>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) index: i64,
    pub(crate) prefill: bool,
}

struct Builder<'c> {
    config: &'c Config,
    seat: Seat<'c>,
    step: Step,
    tasks: Vec<Task>,
}

/// Steps that share one value of the drift.
const DRIFT_STEPS: i64 = 5;

impl<'c> Builder<'c> {
    fn new(seat: Seat<'c>, step: Step) -> Self {
        Self { config: seat.config, seat, step, tasks: Vec::new() }
    }

    /// What all durations of the step share, in parts per thousand.
    fn pace(&self, dice: Dice) -> i64 {
        let config = self.config;
        let drift = dice.around(Of::Drift, [self.step.index / DRIFT_STEPS, 0, 0], 1000, config.drift_permille);
        let settling = config.steps / 3;
        let measured = (self.step.index - config.warmup_steps).max(0);
        let slower = config.dose(FaultKind::ShortWarmup, 400) * (settling - measured).max(0) / settling.max(1);
        drift + slower
    }

    fn duration(&self, slot: Slot, layer: i64, nth: i64) -> i64 {
        let key = [self.step.index, layer * 4096 + nth, slot as i64];
        // A transfer takes as long on every rank.
        let (dice, throttled) = match slot.card().class {
            None => (self.seat.common, 0),
            Some(_) => (self.seat.own, self.seat.dose(FaultKind::ThrottledRank, 200)),
        };
        let base = self.config.kernel(slot) * (self.pace(dice) + throttled) / 1000;
        let heavier = if self.step.prefill { prefill_factor(slot) } else { 1 };
        dice.around(Of::Duration, key, base * heavier, self.config.jitter_permille)
    }

    fn push(&mut self, slot: Slot, layer: i64, nth: i64) -> &mut Task {
        let key = [self.step.index, layer * 4096 + nth, slot as i64];
        let collective = slot.card().class.is_none();
        let wait = if collective { self.seat.own.tail(Of::Wait, key, self.config.wait_ns) } else { 0 };
        let ns = self.duration(slot, layer, nth);
        let at = self.tasks.len();
        self.tasks.push(Task { slot, layer, nth, ns, wait, stream: MAIN, after: None });
        &mut self.tasks[at]
    }

    fn several(&mut self, slot: Slot, layer: i64, first: i64, count: i64) {
        for nth in first..first + count {
            self.push(slot, layer, nth);
        }
    }

    /// A norm, or the elementwise kernels that stand for it.
    fn norm(&mut self, slot: Slot, layer: i64, place: i64) {
        match self.config.dose(FaultKind::Unfused, 6) {
            0 => {
                self.push(slot, layer, 0);
            }
            pieces => self.several(Slot::UnfusedNorm, layer, place * 64, pieces.clamp(3, 8)),
        }
    }

    fn gemm(&mut self, slot: Slot, layer: i64, place: i64) {
        let transpose = self.config.dose(FaultKind::Transposes, self.config.kernel(Slot::Transpose));
        if transpose > 0 {
            let key = [self.step.index, layer * 4096 + place, Slot::Transpose as i64];
            let ns = self.seat.own.around(Of::Duration, key, transpose, self.config.jitter_permille);
            self.push(Slot::Transpose, layer, place).ns = ns;
        }
        self.push(slot, layer, 0);
        let small = self.config.dose(FaultKind::SmallOps, 4);
        self.several(Slot::Small, layer, place * 64, small);
    }

    fn layer(&mut self, layer: i64) {
        let (config, unfused) = (self.config, self.config.has(FaultKind::Unfused));
        let side = config.streams > SIDE;
        self.norm(Slot::InputNorm, layer, 0);
        if config.quantized {
            self.push(Slot::InputQuant, layer, 0);
        }
        self.gemm(Slot::Qkv, layer, 1);
        match config.dose(FaultKind::Unfused, 3) {
            rope if rope > 1 => self.several(Slot::UnfusedRope, layer, 0, rope),
            _ => {
                self.push(Slot::Rope, layer, 0);
            }
        }
        self.push(Slot::KvWrite, layer, 0);
        self.push(Slot::Attention, layer, 0);
        if config.split_attention && !self.step.prefill {
            self.push(Slot::AttentionCombine, layer, 0);
        }
        self.gemm(Slot::OutProj, layer, 2);
        if config.tensor_parallel > 1 {
            self.push(Slot::AttentionReduce, layer, 0);
            let extra = config.dose(FaultKind::ExtraCollective, 1000);
            let whole = extra / 1000 + i64::from(layer % 3 == 0 && extra % 1000 > 0);
            self.several(Slot::ExtraGather, layer, 0, whole);
        }
        self.norm(Slot::PostNorm, layer, 1);
        if config.quantized {
            self.push(Slot::PostQuant, layer, 0);
        }
        if side {
            let task = self.push(Slot::SideProjection, layer, 0);
            (task.stream, task.after) = (SIDE, Some(MAIN));
        }
        self.gemm(Slot::GateUp, layer, 3);
        if unfused {
            self.several(Slot::UnfusedAct, layer, 0, 2);
        } else {
            self.push(Slot::Act, layer, 0);
        }
        self.gemm(Slot::Down, layer, 4);
        if side {
            self.push(Slot::SideAdd, layer, 0).after = Some(SIDE);
        }
        if config.tensor_parallel > 1 {
            self.push(Slot::MlpReduce, layer, 0);
        }
    }
}

/// How many times longer prefill takes.
fn prefill_factor(slot: Slot) -> i64 {
    match slot {
        Slot::Qkv | Slot::OutProj | Slot::GateUp | Slot::Down | Slot::SideProjection => 6,
        Slot::Attention => 4,
        Slot::LmHead | Slot::Argmax | Slot::Softmax | Slot::LogitsCast | Slot::Sort => 1,
        _ => 3,
    }
}

/// Kernels of the forward pass.
pub(crate) fn forward(seat: Seat<'_>, step: Step) -> Vec<Task> {
    let mut builder = Builder::new(seat, step);
    builder.push(Slot::Embedding, -1, 0);
    for layer in 0..seat.config.layers {
        builder.layer(layer);
    }
    builder.norm(Slot::FinalNorm, seat.config.layers, 0);
    builder.tasks
}

/// Kernels of the logits and the sampler.
pub(crate) fn sample(seat: Seat<'_>, step: Step) -> Vec<Task> {
    let mut builder = Builder::new(seat, step);
    let config = seat.config;
    let layer = config.layers + 1;
    builder.push(Slot::LmHead, layer, 0);
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

/// Small kernels that prepare the inputs.
pub(crate) fn prepare(seat: Seat<'_>, step: Step) -> Vec<Task> {
    let mut builder = Builder::new(seat, step);
    builder.several(Slot::Positions, -2, 0, 2);
    builder.tasks
}
