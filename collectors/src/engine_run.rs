//! A run of the reference engine as a capture: one host thread, one queue for the device, a track per worker beside it, one
//! range per step.
//!
//! The queue holds each operator once, from the first worker's start to the last one's end, by the workers' own stamps. What
//! a worker did of it lies on the worker's track, where the gaps are its waits for the others.

use engine::{
    program::{OpCall, Program},
    record::{Kind, Log, Record, Span},
    run::{Engine, Mode},
};
use model::{
    Beside, Category, Clock, CollectiveCall, CopyDetail, Detail, Device, KernelDetail, Ns, OpDetail, ProcessId,
    Provenance, Severity, Slice, StringId, SyncKind, TraceSink, TrackId, TrackKey, TrackKind,
};

use crate::{host::Host, op_shapes, telemetry::Telemetry};

mod manifest;

pub use manifest::TRUTH;
use manifest::manifest;

/// What is not in the log: which model was run, and what is known of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// Name of the model: a named shape or the directory of a checkpoint.
    pub model: &'f str,
    /// Whether the weights were made from their names.
    pub synthetic: bool,
    /// What the ranks of the run are, `threads` or `processes`; only meant where there are several.
    pub ranks: &'f str,
    /// The machine.
    pub host: &'f Host,
    /// What the machine did meanwhile, by the run's clock; absent where nobody looked.
    pub telemetry: Option<&'f Telemetry>,
}

/// Writes what the engine recorded into `sink`.
pub fn collect(engine: &Engine, log: &Log, facts: Facts<'_>, sink: &mut dyn TraceSink) {
    sink.clock(Clock::AsIs { unix_zero: log.clock.unix_zero });
    manifest(engine, log, facts, sink);
    let process = sink.process(0);
    let shard = engine.shard();
    let rank = u32::try_from(shard.rank).ok().filter(|_| shard.of > 1);
    sink.describe_process(process, Some(i64::from(std::process::id())), Some("strato"), rank);
    let name = facts.host.cpu.value().map(|name| sink.intern(name));
    let vendor = Some(sink.intern("cpu"));
    let cores = u32::try_from(engine.options().threads).ok();
    let memory_bytes = facts.host.memory_bytes.value().copied();
    sink.device(Device { process, ordinal: 0, name, vendor, cores, memory_bytes });
    let track =
        |kind, id| TrackKey { process, kind, device: (kind == TrackKind::DeviceQueue).then_some(0), context: None, id };
    let host = sink.track(track(TrackKind::HostThread, 0));
    sink.name_track(host, "engine");
    let queue = sink.track(track(TrackKind::DeviceQueue, 0));
    sink.name_track(queue, "worker pool");
    let workers = (0..engine.options().threads).zip(0i64..).map(|(number, id)| {
        let kind = TrackKind::DeviceAnnotation;
        let worker = sink.track(TrackKey { process, kind, device: Some(0), context: Some(id), id: 0 });
        sink.name_track(worker, &format!("worker {number}"));
        worker
    });
    let workers = workers.collect();
    let operators = (engine.options().mode == Mode::Graph).then(|| {
        sink.manifest(Beside::MATCH, "every operator, by the engine's own program", Provenance::Observed);
        let queue = track(TrackKind::DeviceQueue, 0);
        let operators = sink.track(Beside::Operators.key(queue));
        sink.name_track(operators, "operators of the replay");
        operators
    });
    let names = engine.programs().map(|program| Names::of(program, engine, sink));
    let mut writer =
        Writer { sink, process, host, queue, workers, operators, engine, names, correlation: 0, collectives: 0 };
    let mut steps = log.records();
    while let Some(first) = steps.first() {
        let (step, rest) = steps.split_at(steps.iter().take_while(|record| record.step == first.step).count());
        writer.step(log, step);
        steps = rest;
    }
    let kept = log.records().len() as u64;
    let time = log.records().iter().filter(|r| r.kind == Kind::Step).map(|r| r.host.end - r.host.start).sum();
    sink.ledger("engine record", kept + log.dropped, kept, time, "steps, operators and calls of the run");
    if let Some(telemetry) = facts.telemetry {
        telemetry.write(process, sink);
    }
    if log.dropped > 0 {
        sink.stat("record_full", Severity::DataLoss, log.dropped, None);
    }
}

/// Names of the operators of a program, in its order.
struct Names {
    /// As the host calls them, with their layer.
    ops: Vec<StringId>,
    /// The same without their layer.
    plain: Vec<StringId>,
    /// As the device runs them, with type and instruction set.
    kernels: Vec<StringId>,
    shapes: Vec<Detail>,
    /// What a collective is, without its number.
    collectives: Vec<Option<CollectiveCall>>,
}

impl Names {
    fn of(program: &Program, engine: &Engine, sink: &mut dyn TraceSink) -> Self {
        let (dtype, isa) = (engine.options().dtype.name(), engine.options().isa.name());
        let on_host = |op: &OpCall| match op.id.layer {
            Some(layer) => format!("layers.{layer}.{}", op.name.text()),
            None => op.name.text().to_owned(),
        };
        Self {
            ops: program.ops.iter().map(|op| sink.intern(&on_host(op))).collect(),
            plain: program.ops.iter().map(|op| sink.intern(op.name.text())).collect(),
            kernels: program
                .ops
                .iter()
                .map(|op| sink.intern(&format!("strato_{}_{dtype}_{isa}", op.name.text())))
                .collect(),
            shapes: program
                .ops
                .iter()
                .map(|op| {
                    let (shapes, dtypes) = op_shapes::inputs(program, engine.config(), op, dtype);
                    Detail::Op(OpDetail { shapes: Some(sink.intern(&shapes)), dtypes: Some(sink.intern(&dtypes)) })
                })
                .collect(),
            collectives: program.ops.iter().map(|op| collective(program, op, sink)).collect(),
        }
    }
}

/// What an operator exchanges between ranks, in the words of the field.
fn collective(program: &Program, op: &OpCall, sink: &mut dyn TraceSink) -> Option<CollectiveCall> {
    let result = program.buffer(op.kind.exchanged()?.1)?;
    let name = op.name.text().replace('_', "");
    Some(CollectiveCall {
        op: Some(sink.intern(&name)),
        group: Some(sink.intern("tp")),
        group_size: u32::try_from(program.shard.of).ok(),
        seq: None,
        bytes: i64::try_from(result.rows * result.width * 4).ok(),
        dtype: Some(sink.intern("f32")),
    })
}

struct Writer<'w> {
    sink: &'w mut dyn TraceSink,
    process: ProcessId,
    host: TrackId,
    queue: TrackId,
    workers: Vec<TrackId>,
    /// Where the operators of replays are told, which no call of the host shows.
    operators: Option<TrackId>,
    engine: &'w Engine,
    /// Of the prompt and of a decode step.
    names: [Names; 2],
    /// Correlation of the last launch.
    correlation: i64,
    /// Collectives so far: every rank runs the same ones in the same order, so this numbers them alike.
    collectives: i64,
}

impl Writer<'_> {
    /// Records of one step.
    fn step(&mut self, log: &Log, records: &[Record]) {
        // The operators of a replay belong to the one call that launched them all.
        let replay = records.iter().any(|record| record.kind == Kind::Replay).then(|| {
            self.correlation += 1;
            self.correlation
        });
        let mut waits = vec![0; self.workers.len()];
        for record in records {
            for (wait, share) in waits.iter_mut().zip(log.shares(record)) {
                *wait += (record.device.end - record.device.start) - (share.end - share.start);
            }
            self.record(record, log.shares(record), replay.unwrap_or(self.correlation));
        }
        if let Some(end) = records.iter().filter(|r| !log.shares(r).is_empty()).map(|r| r.device.end).max() {
            let name = self.sink.intern("worker_wait");
            let all: Ns = waits.iter().sum();
            self.sink.counter(self.process, Some(0), name, "ns", end, all as f64);
        }
    }

    fn record(&mut self, record: &Record, shares: &[Span], replay: i64) {
        match record.kind {
            Kind::Step => self.range(record),
            Kind::Prepare => self.on_host("strato_prepare", Category::HostApi, record.host, None, None),
            Kind::Alloc => self.on_host("strato_malloc", Category::HostApi, record.host, None, None),
            Kind::Free => self.on_host("strato_free", Category::HostApi, record.host, None, None),
            Kind::Sample => self.on_host("strato_sample", Category::FrameworkOp, record.host, None, None),
            Kind::Fallback(op) => {
                let names = &self.names[usize::from(record.step > 0)];
                if let Some(name) = names.ops.get(op as usize).copied() {
                    self.put(self.host, name, Category::FrameworkOp, record.host, None, None);
                }
            }
            Kind::Copy(bytes) => {
                self.correlation += 1;
                let correlation = Some(self.correlation);
                self.on_host("strato_memcpy", Category::HostApi, record.host, correlation, None);
                let mut word = |text| Some(self.sink.intern(text));
                let copy = Detail::Copy(CopyDetail {
                    direction: word("HtoD"),
                    src: word("pageable"),
                    dst: word("device"),
                    bytes: i64::try_from(bytes).ok(),
                    graph_node: None,
                });
                let name = self.sink.intern("strato_memcpy");
                self.put(self.queue, name, Category::Memcpy, record.host, correlation, Some(&copy));
            }
            Kind::Advance => self.on_host("strato_advance", Category::FrameworkOp, record.host, None, None),
            Kind::Sync => {
                let detail = Some(&Detail::Sync(SyncKind::Stream));
                self.on_host("strato_synchronize", Category::HostApi, record.host, None, detail);
            }
            Kind::Op(op) => {
                self.correlation += 1;
                let (op, correlation) = (op as usize, self.correlation);
                let names = &self.names[usize::from(record.step > 0)];
                let (Some(name), shapes) = (names.ops.get(op).copied(), names.shapes.get(op).cloned()) else { return };
                self.put(self.host, name, Category::FrameworkOp, record.host, None, shapes.as_ref());
                self.on_host("strato_launch", Category::HostApi, record.host, Some(correlation), None);
                self.kernel(record, shares, op, correlation, KernelDetail::default());
            }
            Kind::Replay => self.on_host("strato_graph_launch", Category::HostApi, record.host, Some(replay), None),
            Kind::ReplayedOp(op) => {
                let node = KernelDetail { graph: Some(1), graph_node: Some(i64::from(op)), ..KernelDetail::default() };
                let names = &self.names[usize::from(record.step > 0)];
                let (op, shapes) = (op as usize, names.shapes.get(op as usize).cloned());
                if let Some((track, name)) = self.operators.zip(names.plain.get(op).copied()) {
                    self.put(track, name, Category::DeviceRange, record.device, None, shapes.as_ref());
                }
                self.kernel(record, shares, op, replay, node);
            }
        }
    }

    fn range(&mut self, record: &Record) {
        let options = self.engine.options();
        let (batch, context) = (options.batch, options.prompt + record.step as usize);
        let name = if record.step == 0 {
            format!("strato prefill bs={batch} toks={}", batch * options.prompt)
        } else {
            format!("strato decode {} bs={batch} ctx={}", record.step, batch * context)
        };
        self.on_host(&name, Category::UserRange, record.host, None, None);
        // What a scheduler would say: every sequence is there from the first step to the last, and none waits.
        let program = self.engine.programs()[usize::from(record.step > 0)];
        let tokens = if record.step == 0 { batch * options.prompt } else { batch };
        for (name, value) in [
            ("num_requests_running", batch),
            ("num_requests_waiting", 0),
            ("num_preemptions", 0),
            ("num_scheduled_tokens", tokens),
            ("num_padded_tokens", program.shape.tokens),
        ] {
            let name = self.sink.intern(name);
            self.sink.counter(self.process, None, name, "", record.host.start, value as f64);
        }
    }

    fn kernel(&mut self, record: &Record, shares: &[Span], op: usize, correlation: i64, mut detail: KernelDetail) {
        let names = &self.names[usize::from(record.step > 0)];
        if let Some(call) = names.collectives.get(op).and_then(Option::as_ref) {
            self.collectives += 1;
            detail.collective = Some(Box::new(CollectiveCall { seq: Some(self.collectives), ..call.clone() }));
        }
        let detail = (detail != KernelDetail::default()).then_some(Detail::Kernel(detail));
        let (Some(kernel), Some(share)) = (names.kernels.get(op).copied(), names.ops.get(op).copied()) else { return };
        self.put(self.queue, kernel, Category::Kernel, record.device, Some(correlation), detail.as_ref());
        for (worker, span) in shares.iter().enumerate() {
            if let Some(track) = self.workers.get(worker).copied() {
                self.put(track, share, Category::DeviceRange, *span, None, None);
            }
        }
    }

    fn on_host(
        &mut self,
        name: &str,
        category: Category,
        span: Span,
        correlation: Option<i64>,
        detail: Option<&Detail>,
    ) {
        let name = self.sink.intern(name);
        self.put(self.host, name, category, span, correlation, detail);
    }

    fn put(
        &mut self,
        track: TrackId,
        name: StringId,
        category: Category,
        span: Span,
        correlation: Option<i64>,
        detail: Option<&Detail>,
    ) {
        let dur = span.end - span.start;
        self.sink.slice(Slice { track, start: span.start, dur, name, category, correlation, detail });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use engine::{Synthetic, preset, run::RunOptions};
    use model::TraceBuilder;

    use super::*;

    fn trace(mode: Mode) -> (model::Trace, usize) {
        let options = RunOptions { prompt: 4, steps: 3, threads: 2, mode, ..RunOptions::default() };
        let mut log = Log::with_capacity(4096, 2);
        let mut engine = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, &mut log).unwrap();
        engine.run(&mut log, |_| true).unwrap();
        let mut builder = TraceBuilder::new("run", "strato");
        let facts = Facts { model: "tiny", synthetic: true, ranks: "threads", host: &Host::read(), telemetry: None };
        collect(&engine, &log, facts, &mut builder);
        (builder.finish(), engine.programs()[1].ops.len())
    }

    #[test]
    fn every_operator_is_a_kernel_with_the_call_that_started_it() {
        for mode in [Mode::Eager, Mode::Graph] {
            let (trace, ops) = trace(mode);
            let queue = trace.tracks.iter().position(|track| track.key.kind == TrackKind::DeviceQueue).unwrap();
            let lane = &trace.lanes[queue];
            assert_eq!(lane.len(), 4 * ops, "{mode:?}");
            assert!((0..lane.len()).all(|i| lane.link(i).is_some()), "{mode:?}");
            assert!(lane.depth.iter().all(|depth| *depth == 0), "kernels do not overlap");
            let is_worker = |key: &TrackKey| {
                key.kind == TrackKind::DeviceAnnotation && key.context.is_some_and(|number| number >= 0)
            };
            let workers: Vec<_> = (0..trace.tracks.len())
                .filter(|track| is_worker(&trace.tracks[*track].key))
                .map(|track| &trace.lanes[track])
                .collect();
            assert_eq!(workers.len(), 2);
            for i in 0..lane.len() {
                let start = workers.iter().map(|worker| worker.start[i]).min();
                let end = workers.iter().map(|worker| worker.end(i)).max();
                assert_eq!((start, end), (Some(lane.start[i]), Some(lane.end(i))), "{mode:?} operator {i}");
            }
            let counted = |name: &str| -> &[f64] {
                &trace.counters.iter().find(|c| trace.strings.get(c.name) == name).unwrap().value
            };
            assert!(counted("worker_wait").len() == 4 && counted("worker_wait").iter().all(|wait| *wait >= 0.0));
            assert_eq!(counted("num_scheduled_tokens"), [4.0, 1.0, 1.0, 1.0]);
            assert_eq!(counted("num_padded_tokens"), [4.0, 1.0, 1.0, 1.0]);
            assert_eq!(counted("num_requests_waiting"), [0.0; 4]);
            let name = trace.strings.get(lane.name[lane.len() - 1]);
            assert!(name.starts_with("strato_argmax_bf16_"), "{name}");
            assert_eq!(
                trace.manifest.value("software.graph_mode"),
                Some(if mode == Mode::Graph { "full graph" } else { "eager" })
            );
        }
    }

    #[test]
    fn every_replayed_operator_is_told_with_its_shapes() {
        let (trace, ops) = trace(Mode::Graph);
        let queue = trace.tracks.iter().find(|track| track.key.kind == TrackKind::DeviceQueue).unwrap().key;
        let beside = trace.tracks.iter().position(|track| track.key == Beside::Operators.key(queue)).unwrap();
        let lane = &trace.lanes[beside];
        // The prompt is launched operator by operator.
        assert_eq!(lane.len(), 3 * ops);
        let down = (0..lane.len()).find(|i| trace.strings.get(lane.name[*i]) == "down_proj").unwrap();
        let Some(Detail::Op(op)) = trace.detail(lane, down) else { panic!("no shapes") };
        assert!(op.shapes.is_some_and(|shapes| trace.strings.get(shapes).starts_with("[[1, ")));
        assert!(trace.manifest.value(Beside::MATCH).is_some());
    }

    #[test]
    fn a_run_that_ended_early_says_so() {
        let options = RunOptions { prompt: 4, steps: 9, threads: 1, ..RunOptions::default() };
        let mut log = Log::with_capacity(4096, 1);
        let mut engine = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, &mut log).unwrap();
        engine.run(&mut log, |step| step.number < 2).unwrap();
        let mut builder = TraceBuilder::new("run", "strato");
        let host = Host::read();
        let facts = Facts { model: "tiny", synthetic: true, ranks: "threads", host: &host, telemetry: None };
        collect(&engine, &log, facts, &mut builder);
        let manifest = builder.finish().manifest;
        assert_eq!(
            (manifest.value("workload.output_len"), manifest.value("workload.stop_rule")),
            (Some("2"), Some("time"))
        );
    }
}
