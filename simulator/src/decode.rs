//! The program that the host runs: schedule, prepare, forward, sample, return the token, again.

use crate::{
    config::{Annotation, Config, Mode, TokenReturn},
    engine,
    fault::FaultKind,
    forward::{self, COPIES, MAIN, Task},
    kernel::Slot,
    machine::Machine,
    meeting::Meeting,
    random::Of,
    record::{Direction, HostKind, SyncOn},
    seat::Seat,
    step::Step,
};

mod interrupt;
mod stage;

use interrupt::{collect_garbage, due, hiccup, interrupt, interrupts_forward};

/// Places of the program, by which costs are addressed.
mod place {
    pub(super) const SCHEDULE: i64 = 1;
    pub(super) const PREPARE: i64 = 2;
    pub(super) const BACKGROUND: i64 = 3;
    pub(super) const GRAPH: i64 = 1000;
    pub(super) const RETURN: i64 = 5;
    pub(super) const DETOKENIZE: i64 = 6;
    pub(super) const FAULT: i64 = 7;
    pub(super) const IDLE: i64 = 8;
    pub(super) const LOGITS: i64 = 9;
    pub(super) const FALLBACK: i64 = 100_000;
}

/// Runs all steps of the rank that sits there. Without a meeting its waits for other ranks are drawn.
pub(crate) fn run<'c>(seat: Seat<'c>, meeting: Option<&'c Meeting>) -> Machine<'c> {
    let config = seat.config;
    let mut program = Program { machine: Machine::new(seat, meeting), awaited: None, tokens: Vec::new() };
    for index in 0..config.warmup_steps + config.steps {
        program.step(Step::of(&seat, index));
    }
    if let Some(end) = program.awaited.take() {
        program.machine.at(place::RETURN);
        program.machine.sync(SyncOn::Event, MAIN, Some(end));
    }
    program.machine
}

struct Program<'c> {
    machine: Machine<'c>,
    /// End of the token copy that asynchronous scheduling has yet to wait for.
    awaited: Option<i64>,
    /// When the host had the tokens of each step.
    tokens: Vec<i64>,
}

impl Program<'_> {
    fn step(&mut self, step: Step) {
        let config = self.machine.config;
        self.machine.step = step.index;
        stage::await_tokens(&mut self.machine, step, &self.tokens);
        self.schedule(step);
        let name = match config.annotation {
            Annotation::None => String::new(),
            Annotation::Vllm if step.prefill => format!("execute_context_1({})_generation_0(0)", step.rows),
            Annotation::Vllm if step.prompt > 0 => {
                format!("execute_context_1({})_generation_{1}({1})", step.prompt, step.batch)
            }
            Annotation::Vllm if step.recompute => format!("execute_context_1(512)_generation_{0}({0})", step.batch),
            Annotation::Vllm => format!("execute_context_0(0)_generation_{0}({0})", step.batch),
            Annotation::Sglang if step.prefill => format!("step[EXTEND bs=1 toks={}]", step.rows),
            Annotation::Sglang if step.prompt > 0 => format!("step[MIXED bs={} toks={}]", step.batch + 1, step.rows),
            Annotation::Sglang if step.recompute => format!("step[MIXED bs={} toks=512]", step.batch + 1),
            Annotation::Sglang => format!("step[DECODE bs={}]", step.batch),
        };
        let frame = "vllm/v1/worker/gpu_model_runner.py(1371): execute_model";
        let mut awaited = self.awaited.take();
        self.machine.record_if(config.python_frames, HostKind::PythonFrame, frame, |machine| {
            machine.record_if(config.annotation != Annotation::None, HostKind::UserRange, name, |machine| {
                prepare(machine, step);
                stage::receive(machine, step);
                model(machine, step);
                if machine.seat.is_last() {
                    for task in forward::sample(machine.seat, step) {
                        machine.launch(&task);
                    }
                    return_logits(machine, step);
                }
                stage::send(machine, step);
                awaited = return_token(machine, step, awaited);
                draft(machine, step);
            });
        });
        self.awaited = awaited;
        self.tokens.push(self.machine.now);
        self.machine.at(place::DETOKENIZE);
        self.machine.work(config.detokenize_ns);
    }

    /// Between steps: the scheduler, and what interrupts a host now and then.
    fn schedule(&mut self, step: Step) {
        let machine = &mut self.machine;
        let config = machine.config;
        machine.at(place::SCHEDULE);
        let ranges = config.annotation == Annotation::Vllm && names_host(config);
        machine.record_if(ranges, HostKind::UserRange, "schedule: allocate_slots", |machine| {
            machine.work(config.schedule_ns);
            engine::count(machine, step);
            machine.pause(config.dose(FaultKind::Scheduling, 400_000));
            machine.pause(machine.seat.dose(FaultKind::RankScheduling, 400_000));
        });
        machine.at(place::FAULT);
        let measured = step.index - config.warmup_steps;
        if measured < 0 {
            machine.compile(config.estimate() * (config.warmup_steps - step.index));
        } else if !interrupts_forward(config) {
            interrupt(machine, step);
        }
        if machine.seat.own.chance(Of::Stall, [step.index, 0, 0], 80) && measured >= 0 {
            machine.pause(config.dose(FaultKind::Stalls, 3 * config.estimate()));
        }
        if due(measured, config.serving.map_or(4, |serving| serving.event_every)) {
            let collect = machine.seat.dose(FaultKind::RankGc, 4 * config.estimate());
            if collect > 0 {
                collect_garbage(machine, collect);
            }
        }
        let hiccup = hiccup(machine, step);
        machine.pause(if step.index % 2 == 0 { hiccup } else { 0 });
        let noise = config.dose(FaultKind::RankNoise, config.estimate() / 4);
        machine.pause(machine.seat.own.tail(Of::Noise, [step.index, 0, 0], noise));
        engine::await_requests(machine, step);
        let flush = if config.has(FaultKind::Profiler) { 4 } else { config.flush_every };
        if due(step.index, flush) {
            machine.record(HostKind::Overhead, "Buffer Flush", |machine| machine.work(config.flush_ns));
        }
    }
}

/// Whether the program names what its host does beside the forward passes.
fn names_host(config: &Config) -> bool {
    config.serving.is_none_or(|serving| serving.named_host)
}

/// Sequences whose inputs and tokens are copied.
fn sequences(config: &Config, step: Step) -> i64 {
    if config.serving.is_some() { step.batch } else { config.batch }
}

/// Inputs: host work, copies to the device, small kernels.
fn prepare(machine: &mut Machine<'_>, step: Step) {
    let config = machine.config;
    if interrupts_forward(config) {
        interrupt(machine, step);
    }
    machine.at(place::PREPARE);
    let hiccup = hiccup(machine, step);
    machine.pause(if step.index % 2 == 0 { 0 } else { hiccup });
    let named = config.framework_ops && names_host(config);
    machine.record_if(named, HostKind::FrameworkOp, "gpu_model_runner: preprocess", |machine| {
        machine.work(config.prepare_ns);
        machine.pause(config.dose(FaultKind::HostUpdate, (config.estimate() / 4).max(250_000)));
        machine.pause(machine.seat.dose(FaultKind::HostStraggler, 500_000));
        for copy in 0..config.input_copies {
            let bytes = 256 * sequences(config, step) * (copy + 1);
            machine.record_if(config.framework_ops, HostKind::FrameworkOp, "aten::copy_", |machine| {
                machine.work(config.framework_ns / 2);
                machine.copy(Direction::HostToDevice, bytes, MAIN, None, false);
            });
        }
        machine.memset(4 * sequences(config, step), MAIN);
    });
    for task in forward::prepare(machine.seat, step) {
        machine.launch(&task);
    }
    machine.at(place::FAULT);
    let bytes = config.dose(FaultKind::PageableCopy, 8 * 300_000);
    if bytes > 0 {
        machine.copy(Direction::HostToDevice, bytes, MAIN, None, true);
    }
    let bytes = config.dose(FaultKind::KvTransfer, 24 * 300_000);
    if bytes > 0 {
        machine.copy(Direction::PeerToPeer, bytes, MAIN, None, false);
    }
    let stall = config.dose(FaultKind::AllocStall, 350_000);
    if stall > 0 {
        machine.allocate(stall);
    } else if due(step.index, config.allocate_every) {
        machine.allocate(60_000);
    }
    if config.streams > COPIES {
        machine.at(place::BACKGROUND);
        let (direction, bytes) =
            if step.index % 2 == 0 { (Direction::DeviceToHost, 600_000) } else { (Direction::DeviceToDevice, 200_000) };
        machine.copy(
            direction,
            machine.seat.own.around(Of::Bytes, [step.index, 0, 0], bytes, 500),
            COPIES,
            Some(MAIN),
            false,
        );
    }
}

/// The forward pass as it is issued.
fn model(machine: &mut Machine<'_>, step: Step) {
    let config = machine.config;
    let tasks = forward::forward(machine.seat, step);
    match step.mode(config) {
        Mode::Eager => eager(machine, &tasks),
        Mode::Full => {
            machine.at(place::GRAPH);
            let frame = "vllm/compilation/cuda_graph.py(121): __call__";
            machine.record_if(config.python_frames, HostKind::PythonFrame, frame, |machine| {
                machine.work(config.framework_ns);
                machine.launch_graph(graph_of(config, step, 1), &tasks);
            });
        }
        Mode::Piecewise { pieces } => {
            let most = machine.seat.layers() + 1;
            piecewise(machine, &tasks, pieces.clamp(1, most), graph_of(config, step, 0));
        }
    }
}

/// Number of a graph; each size that serving captures has its own.
fn graph_of(config: &Config, step: Step, first: i64) -> i64 {
    if config.serving.is_some() { 100 * step.rows + first } else { first }
}

fn eager(machine: &mut Machine<'_>, tasks: &[Task]) {
    let config = machine.config;
    let syncs = config.dose(FaultKind::LayerSync, 1000);
    for layer in tasks.chunk_by(|a, b| a.layer == b.layer) {
        let number = layer.first().map_or(0, |task| task.layer);
        let within = (0..machine.seat.layers()).contains(&number);
        let frame = "vllm/model_executor/models/llama.py(297): forward";
        machine.record_if(config.python_frames && within, HostKind::PythonFrame, frame, |machine| {
            for task in layer {
                machine.launch(task);
                if task.slot == Slot::OutProj && number % 4 == 0 {
                    fall_back(machine, number);
                }
                let asked = (syncs >= 1000 && task.slot == Slot::Down)
                    || (syncs >= 2000 && task.slot == Slot::OutProj)
                    || (syncs > 0 && number % 3 == 0 && task.slot == Slot::Down);
                if asked && within {
                    machine.record_if(config.framework_ops, HostKind::FrameworkOp, "aten::item", |machine| {
                        machine.sync(SyncOn::Stream, MAIN, None);
                    });
                }
            }
        });
    }
}

/// An operator that only the host has: its input comes from the device, its output goes back.
fn fall_back(machine: &mut Machine<'_>, layer: i64) {
    let config = machine.config;
    let ns = config.dose(FaultKind::CpuFallback, 120_000);
    if ns == 0 {
        return;
    }
    machine.at(place::FALLBACK + layer);
    let op = |machine: &mut Machine<'_>, name: &'static str, inside: &dyn Fn(&mut Machine<'_>)| {
        machine.record_if(config.framework_ops, HostKind::FrameworkOp, name, |machine| inside(machine));
    };
    let bytes = 8 * config.batch * 64;
    op(machine, "aten::to", &|machine| machine.copy(Direction::DeviceToHost, bytes, MAIN, None, true));
    op(machine, "aten::index_put_", &|machine| machine.pause(ns));
    op(machine, "aten::to", &|machine| machine.copy(Direction::HostToDevice, bytes, MAIN, None, true));
}

/// The draft model proposes tokens for the next step; one pass after the other.
fn draft(machine: &mut Machine<'_>, step: Step) {
    let drafted = machine.config.dose(FaultKind::LowAcceptance, 4);
    if !step.prefill && machine.config.has(FaultKind::LowAcceptance) {
        engine::count_drafts(machine, step, drafted);
        for nth in 0..drafted {
            for task in forward::draft(machine.seat, step, nth) {
                machine.launch(&task);
            }
        }
    }
}

/// Cuts the pass at the attention of evenly spread layers and issues the attention there by itself.
fn piecewise(machine: &mut Machine<'_>, tasks: &[Task], pieces: i64, first: i64) {
    let layers = machine.seat.layers().max(1);
    let (mut graph, mut from) = (first, 0);
    for (at, task) in tasks.iter().enumerate() {
        let crosses = task.layer * (pieces - 1) / layers != (task.layer + 1) * (pieces - 1) / layers;
        if task.slot == Slot::Attention && crosses {
            graph += 1;
            piece(machine, graph, &tasks[from..at]);
            machine.launch(task);
            from = at + 1;
        }
    }
    piece(machine, graph + 1, &tasks[from..]);
}

fn piece(machine: &mut Machine<'_>, graph: i64, tasks: &[Task]) {
    let config = machine.config;
    machine.at(place::GRAPH + graph);
    machine.work(config.framework_ns * 2);
    if let (true, Mode::Piecewise { pieces }) = (config.has(FaultKind::ManyPieces), config.issued()) {
        // Between pieces the host must be slower than the device is within them, or pieces would cost nothing.
        let piece = config.estimate() / pieces;
        machine.pause(piece + config.dose(FaultKind::ManyPieces, piece / 3));
    }
    machine.launch_graph(graph, tasks);
}

/// Brings all logits to the host, by a copy that blocks.
fn return_logits(machine: &mut Machine<'_>, step: Step) {
    let config = machine.config;
    let vocabulary = config.serving.map_or(128_256, |serving| serving.model.vocab);
    let bytes = config.dose(FaultKind::LogitsCopy, 4 * vocabulary * step.batch.max(1));
    if bytes > 0 {
        machine.at(place::LOGITS);
        machine.record_if(config.framework_ops, HostKind::FrameworkOp, "aten::to", |machine| {
            machine.copy(Direction::DeviceToHost, bytes, MAIN, None, true);
        });
    }
}

/// Brings the token back. Asynchronous scheduling waits for the token of the step before instead.
fn return_token(machine: &mut Machine<'_>, step: Step, awaited: Option<i64>) -> Option<i64> {
    let config = machine.config;
    if !stage::returns_tokens(&machine.seat) {
        return None;
    }
    machine.at(place::RETURN);
    machine.work(config.framework_ns);
    let blocking = config.token_return == TokenReturn::BlockingCopy && !config.async_scheduling;
    machine.copy(Direction::DeviceToHost, 8 * sequences(config, step), MAIN, None, blocking);
    if config.async_scheduling {
        if let Some(end) = awaited {
            machine.sync(SyncOn::Event, MAIN, Some(end));
        }
        return Some(machine.tail(MAIN));
    }
    match config.token_return {
        TokenReturn::BlockingCopy => {}
        TokenReturn::StreamSync => machine.sync(SyncOn::Stream, MAIN, None),
        TokenReturn::EventSync => machine.sync(SyncOn::Event, MAIN, Some(machine.tail(MAIN))),
    }
    machine.at(place::IDLE);
    for _ in 0..config.idle_syncs {
        machine.sync(SyncOn::Stream, MAIN, None);
    }
    None
}
