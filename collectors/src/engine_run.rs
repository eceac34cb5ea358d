//! A run of the reference engine as a capture: one host thread, one queue for the device, a track per worker beside it, one
//! range per step.
//!
//! The queue holds each operator once, from when all workers have begun to the last one's end, by the workers' own stamps. What
//! a worker did of it lies on the worker's track, where the gaps are its waits for the others.
//!
//! Where CUPTI recorded the device, its records are the queues and its calls those of the host, and the engine has neither of its
//! own: nothing is told twice.

use engine::{
    record::{Kind, Log, Record, Span},
    run::{Engine, Mode},
};
use model::{
    Beside, Category, Clock, CollectiveCall, CopyDetail, Detail, Device, KernelDetail, Ns, ProcessId, Provenance,
    Severity, Slice, StringId, SyncKind, TraceSink, TrackId, TrackKey, TrackKind,
};

use crate::{
    cupti::{Place, launches::launched},
    host::Host,
    telemetry::Telemetry,
};

mod calls;
mod cupti;
mod manifest;
mod names;

use calls::Calls;
pub use cupti::Cupti;
use manifest::manifest;
pub use manifest::{TRUTH, asked};
use names::Names;

/// Which model a run is of.
#[derive(Clone, Copy, Debug)]
pub struct Model<'m> {
    /// A named shape or the directory of a checkpoint.
    pub name: &'m str,
    /// What weights were made from beside their names; `None` for those of a checkpoint.
    pub weights_seed: Option<u64>,
}

/// What is not in the log: which model was run, and what is known of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The model.
    pub model: Model<'f>,
    /// What the ranks of the run are, `threads` or `processes`; only meant where there are several.
    pub ranks: &'f str,
    /// The machine.
    pub host: &'f Host,
    /// What the machine did meanwhile, by the run's clock; absent where nobody looked.
    pub telemetry: Option<&'f Telemetry>,
    /// What CUPTI recorded, where it was asked to.
    pub cupti: Cupti<'f>,
}

/// Writes what the engine recorded into `sink`.
pub fn collect(engine: &Engine, log: &Log, facts: Facts<'_>, sink: &mut dyn TraceSink) {
    sink.clock(Clock::AsIs { unix_zero: log.clock.unix_zero });
    manifest(engine, log, facts, sink);
    let process = sink.process(0);
    let shard = engine.shard();
    let rank = u32::try_from(shard.rank).ok().filter(|_| shard.of > 1);
    sink.describe_process(process, Some(i64::from(std::process::id())), Some("strato"), rank);
    let (device, options) = (engine.device(), engine.options());
    let name = device.name.as_ref().or(facts.host.cpu.value()).map(|name| sink.intern(name));
    let vendor = Some(sink.intern(options.target.vendor()));
    let cores = device.units.or(u32::try_from(options.threads).ok());
    let memory_bytes = device.memory_bytes.or(facts.host.memory_bytes.value().copied());
    sink.device(Device { process, ordinal: 0, name, vendor, cores, memory_bytes });
    let track =
        |kind, id| TrackKey { process, kind, device: (kind == TrackKind::DeviceQueue).then_some(0), context: None, id };
    let host = sink.track(track(TrackKind::HostThread, 0));
    sink.name_track(host, "engine");
    let seen = facts.cupti.seen();
    // CUPTI has queues of its own.
    let queue = seen.is_none().then(|| {
        let queue = sink.track(track(TrackKind::DeviceQueue, 0));
        sink.name_track(queue, device.queue);
        queue
    });
    let workers = (0..options.workers()).zip(0i64..).map(|(number, id)| {
        let kind = TrackKind::DeviceAnnotation;
        let worker = sink.track(TrackKey { process, kind, device: Some(0), context: Some(id), id: 0 });
        sink.name_track(worker, &format!("worker {number}"));
        worker
    });
    let workers = workers.collect();
    // Somebody else may have told a replay's operators one by one, where the device's own stamps do not.
    let told = log.records().iter().any(|record| matches!(record.kind, Kind::ReplayedOp(_)));
    let stamps = (options.workers() > 0 || told) && options.observer.sees_device();
    let operators = (options.mode == Mode::Graph && stamps).then(|| {
        sink.manifest(Beside::MATCH, "every operator, by the engine's own program", Provenance::Observed);
        let queue = track(TrackKind::DeviceQueue, 0);
        let operators = sink.track(Beside::Operators.key(queue));
        sink.name_track(operators, "operators of the replay");
        operators
    });
    let names = engine.programs().map(|program| Names::of(program, engine, sink));
    let mut writer = Writer {
        sink,
        process,
        host,
        queue,
        workers,
        operators,
        engine,
        calls: calls::of(&options.target),
        sees_device: log.sees_device(),
        has_calls: seen.is_none_or(|seen| !seen.sees_calls),
        is_tied: seen.is_none(),
        names,
        correlation: 0,
        collectives: 0,
    };
    let mut steps = log.records();
    while let Some(first) = steps.first() {
        let (step, rest) = steps.split_at(steps.iter().take_while(|record| record.step == first.step).count());
        writer.step(log, step);
        steps = rest;
    }
    if let Some(seen) = seen {
        let Writer { names, sink, .. } = writer;
        let operator = |id| {
            let (step, op) = launched(id);
            let (names, op) = (&names[usize::from(step > 0)], usize::try_from(op).ok()?);
            Some((*names.plain.get(op)?, names.shapes.get(op).cloned()))
        };
        let thread = Some((cupti::thread(), host));
        seen.write(Place { process, thread, operator: &operator }, sink);
    }
    let kept = log.records().len() as u64;
    let time = log.records().iter().filter(|r| r.kind == Kind::Step).map(|r| r.host.end - r.host.start).sum();
    let lost = log.dropped + log.unread;
    sink.ledger("engine record", kept + lost, kept, time, "steps, operators and calls of the run");
    if let Some(telemetry) = facts.telemetry {
        telemetry.write(process, sink);
    }
    facts.cupti.stat(sink);
    if facts.telemetry.is_none() && shard.rank > 0 && options.observer.sees_host() && options.workers() == 0 {
        let why = format!(
            "ranks are threads of one process, of which rank 0 samples its own device and not that of rank {}",
            shard.rank
        );
        sink.stat("telemetry.device_unavailable", Severity::Info, 1, Some(&why));
    }
    for (name, count) in [("record_full", log.dropped), ("commands_without_stamps", log.unread)] {
        if count > 0 {
            sink.stat(name, Severity::DataLoss, count, None);
        }
    }
}

struct Writer<'w> {
    sink: &'w mut dyn TraceSink,
    process: ProcessId,
    host: TrackId,
    /// None where a library of the vendor tells of the queues.
    queue: Option<TrackId>,
    workers: Vec<TrackId>,
    /// Where the operators of replays are told, which no call of the host shows.
    operators: Option<TrackId>,
    engine: &'w Engine,
    calls: Calls,
    /// Whether the device's stamps are in the log.
    sees_device: bool,
    /// Whether the driver's calls are told by the log; otherwise a library of the vendor tells them.
    has_calls: bool,
    /// Whether calls are tied to what the log says of the device: numbers of a library are others.
    is_tied: bool,
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
            let begun = log.shares(record).iter().map(|share| share.start).min();
            for (wait, share) in waits.iter_mut().zip(log.shares(record)) {
                *wait += (record.device.end - begun.unwrap_or(share.start)) - (share.end - share.start);
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
            Kind::Capture => self.of_driver(self.calls.capture, record.host, None, None),
            Kind::Alloc => self.on_host("strato_malloc", Category::HostApi, record.host, None, None),
            Kind::Free => self.on_host("strato_free", Category::HostApi, record.host, None, None),
            Kind::Sample => self.on_host("strato_sample", Category::FrameworkOp, record.host, None, None),
            Kind::Fallback(op) => {
                let names = &self.names[usize::from(record.step > 0)];
                // The operator, and in it the kernel that computes it here.
                let both = [&names.ops, &names.kernels].map(|names| names.get(op as usize).copied());
                for name in both.into_iter().flatten() {
                    self.put(self.host, name, Category::FrameworkOp, record.host, None, None);
                }
            }
            Kind::Compile(family) | Kind::Load(family) => {
                let is_load = matches!(record.kind, Kind::Load(_));
                let name = format!("{} {family}", if is_load { self.calls.load } else { self.calls.compile });
                match record.kind {
                    Kind::Load(_) => self.of_driver(&name, record.host, None, None),
                    _ => self.on_host(&name, Category::HostApi, record.host, None, None),
                }
            }
            // The host copies itself: what it calls and what is copied are one.
            Kind::Copy(bytes) => self.copy("strato_memcpy", ["HtoD", "pageable", "device"], bytes, record, record.host),
            Kind::Write(bytes) => {
                let memory = self.engine.device().host_memory;
                self.copy(self.calls.write, ["HtoD", memory, "device"], bytes, record, record.device);
            }
            Kind::Read(bytes) => {
                let memory = self.engine.device().host_memory;
                self.copy(self.calls.read, ["DtoH", "device", memory], bytes, record, record.device);
            }
            Kind::Advance => self.on_host("strato_advance", Category::FrameworkOp, record.host, None, None),
            Kind::Observe => self.on_host("strato_record", Category::Overhead, record.host, None, None),
            Kind::Sync => {
                let detail = Some(&Detail::Sync(SyncKind::Stream));
                self.of_driver(self.calls.synchronize, record.host, None, detail);
            }
            Kind::Op(op) => {
                self.correlation += 1;
                let (op, correlation) = (op as usize, self.correlation);
                let names = &self.names[usize::from(record.step > 0)];
                let (Some(name), shapes) = (names.ops.get(op).copied(), names.shapes.get(op).cloned()) else { return };
                let is_collective = names.collectives.get(op).is_some_and(Option::is_some);
                self.put(self.host, name, Category::FrameworkOp, record.host, None, shapes.as_ref());
                let call = if is_collective { self.calls.exchange } else { self.calls.launch };
                self.of_driver(call, record.host, Some(correlation), None);
                self.kernel(record, shares, op, correlation, KernelDetail::default());
            }
            Kind::Replay => {
                self.of_driver(self.calls.graph_launch, record.host, Some(replay), None);
                // Where the operators are told one by one, nothing is said of the whole.
                if record.device != Span::default() {
                    let name = self.sink.intern("strato_step");
                    self.on_queue(name, Category::GraphExec, record.device, Some(replay), None);
                }
            }
            Kind::Piece { first, .. } => {
                self.correlation += 1;
                let correlation = Some(self.correlation);
                self.of_driver(self.calls.graph_launch, record.host, correlation, None);
                if record.device != Span::default() {
                    let program = self.engine.programs()[usize::from(record.step > 0)];
                    let from = program.ops.get(first as usize).map_or("", |op| op.name.text());
                    let name = self.sink.intern(&format!("strato_piece from {from}"));
                    self.on_queue(name, Category::GraphExec, record.device, correlation, None);
                }
            }
            Kind::Update(_) => self.of_driver(self.calls.update, record.host, None, None),
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

    /// A copy between host and device; `[direction, source, destination]`.
    fn copy(&mut self, call: &str, [direction, src, dst]: [&str; 3], bytes: usize, record: &Record, device: Span) {
        self.correlation += 1;
        let correlation = Some(self.correlation);
        // What the host copies itself is no call of a driver.
        if matches!(record.kind, Kind::Copy(_)) {
            self.on_host(call, Category::HostApi, record.host, correlation.filter(|_| self.is_tied), None);
        } else {
            self.of_driver(call, record.host, correlation, None);
        }
        if !self.sees_device {
            return;
        }
        let mut word = |text| Some(self.sink.intern(text));
        let copy = Detail::Copy(CopyDetail {
            direction: word(direction),
            src: word(src),
            dst: word(dst),
            bytes: i64::try_from(bytes).ok(),
            graph_node: None,
        });
        let name = self.sink.intern(call);
        self.on_queue(name, Category::Memcpy, device, correlation, Some(&copy));
        self.submit(record);
    }

    /// How long a command was with the driver, and then with the device before it began.
    fn submit(&mut self, record: &Record) {
        let Some(submit) = record.submit else { return };
        let start = record.device.start;
        for (name, wait) in
            [("queued_to_submitted", submit.end - submit.start), ("submitted_to_started", start - submit.end)]
        {
            let name = self.sink.intern(name);
            self.sink.counter(self.process, Some(0), name, "ns", start, wait as f64);
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
        if !self.sees_device || record.device == Span::default() {
            return;
        }
        let names = &self.names[usize::from(record.step > 0)];
        if let Some(call) = names.collectives.get(op).and_then(Option::as_ref) {
            self.collectives += 1;
            detail.collective = Some(Box::new(CollectiveCall { seq: Some(self.collectives), ..call.clone() }));
        }
        let detail = (detail != KernelDetail::default()).then_some(Detail::Kernel(detail));
        let (Some(kernel), Some(share)) = (names.kernels.get(op).copied(), names.ops.get(op).copied()) else { return };
        self.on_queue(kernel, Category::Kernel, record.device, Some(correlation), detail.as_ref());
        self.submit(record);
        for (worker, span) in shares.iter().enumerate() {
            if let Some(track) = self.workers.get(worker).copied() {
                self.put(track, share, Category::DeviceRange, *span, None, None);
            }
        }
    }

    /// A call of the driver, which a library of the vendor may have told already.
    fn of_driver(&mut self, name: &str, span: Span, correlation: Option<i64>, detail: Option<&Detail>) {
        if self.has_calls {
            let correlation = correlation.filter(|_| self.is_tied);
            self.on_host(name, Category::HostApi, span, correlation, detail);
        }
    }

    fn on_queue(
        &mut self,
        name: StringId,
        category: Category,
        span: Span,
        correlation: Option<i64>,
        detail: Option<&Detail>,
    ) {
        if let Some(queue) = self.queue {
            self.put(queue, name, category, span, correlation, detail);
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
mod tests;
