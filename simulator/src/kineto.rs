//! Kineto's JSON as current PyTorch writes it: microseconds with three decimals relative to `baseTimeNanoseconds`, so
//! that each nanosecond is kept.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::{
    clock::{EPOCH, micros},
    forward::shape,
    kernel::Vendor,
    record::{DeviceOp, Direction, HostEvent, HostKind, SyncOn, Work},
    run::{Run, WriteError},
};

/// Process of the first rank; the others' follow.
const PID: i64 = 4711;
/// Stream ids as CUDA numbers them: the legacy default stream is 7.
pub(crate) const STREAM_IDS: [i64; 3] = [7, 20, 23];

struct Rows<W: Write> {
    out: W,
    first: bool,
}

impl<W: Write> Rows<W> {
    fn row(&mut self, text: &str) -> io::Result<()> {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.out, "{comma}\n  {text}")
    }

    /// A complete event from `start` to `end`.
    fn span(&mut self, cat: &str, name: &str, at: (Value, Value), time: (i64, i64), args: &Value) -> io::Result<()> {
        let (ts, dur) = (micros(time.0), micros(time.1 - time.0));
        let (pid, tid) = at;
        let (cat, name) = (json!(cat), json!(name));
        self.row(&format!(
            r#"{{"ph": "X", "cat": {cat}, "name": {name}, "pid": {pid}, "tid": {tid}, "ts": {ts}, "dur": {dur}, "args": {args}}}"#
        ))
    }

    fn flow(&mut self, start: bool, id: i64, at: (i64, i64), ns: i64) -> io::Result<()> {
        let (ph, bind) = if start { ("s", "") } else { ("f", r#", "bp": "e""#) };
        let ((pid, tid), ts) = (at, micros(ns));
        self.row(&format!(
            r#"{{"ph": "{ph}", "id": {id}, "pid": {pid}, "tid": {tid}, "ts": {ts}, "cat": "ac2g", "name": "ac2g"{bind}}}"#
        ))
    }

    fn metadata(&mut self, name: &str, pid: i64, tid: i64, args: &Value) -> io::Result<()> {
        self.row(&format!(
            r#"{{"name": "{name}", "ph": "M", "ts": 0.000, "pid": {pid}, "tid": {tid}, "args": {args}}}"#
        ))
    }
}

impl Run {
    /// Writes the run as Kineto JSON by its rank's own clock, compressed if the name ends in `.gz`.
    pub fn write_kineto(&self, path: &Path) -> Result<(), WriteError> {
        self.expect_vendor("Kineto", &[Vendor::Cuda, Vendor::Rocm], path)?;
        let run = self.by_own_clock();
        let write = || {
            let file = BufWriter::new(File::create(path)?);
            if path.extension().is_some_and(|extension| extension == "gz") {
                let mut encoder = GzEncoder::new(file, Compression::best());
                run.kineto(&mut encoder)?;
                encoder.finish()?.flush()
            } else {
                let mut file = file;
                run.kineto(&mut file)?;
                file.flush()
            }
        };
        write().map_err(|source| WriteError::Io { path: path.display().to_string(), source })
    }

    fn kineto(&self, out: &mut impl Write) -> io::Result<()> {
        let cuda = self.config.vendor == Vendor::Cuda;
        let (name, warp) = (self.device_name(), if cuda { 32 } else { 64 });
        let (major, minor) = self.config.serving.map_or((9, 0), |serving| serving.accelerator.ability().capability);
        let device = json!({
            "id": self.rank, "name": name, "totalGlobalMem": 85_899_345_920_i64, "computeMajor": major, "computeMinor": minor,
            "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": warp,
            "sharedMemPerBlock": 49152, "numSms": shape::cores(&self.config),
        });
        write!(out, "{{\n\"schemaVersion\": 1,\n\"stratoSimulated\": true,\n\"deviceProperties\": [{device}],\n")?;
        let (world, group) = self.group();
        if world > 1 {
            let ranks: Vec<i64> = (0..world).collect();
            let info = json!({
                "backend": "nccl", "rank": self.rank, "world_size": world, "pg_count": 1,
                "pg_config": [{"pg_name": format!("{group}:0"), "pg_desc": group, "backend_config": "cuda:nccl",
                    "pg_size": world, "ranks": ranks}],
            });
            writeln!(out, "\"distributedInfo\": {info},")?;
        }
        let version = if cuda { r#""cuda_runtime_version": 12080"# } else { r#""hip_runtime_version": 60400000"# };
        write!(out, "{version},\n\"with_stack\": {},\n", u8::from(self.config.python_frames))?;
        write!(out, "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": {EPOCH},\n\"traceEvents\": [")?;
        let mut rows = Rows { out: &mut *out, first: true };
        self.kineto_host(&mut rows)?;
        self.kineto_device(&mut rows)?;
        self.kineto_rest(&mut rows)?;
        self.kineto_frame(&mut rows)?;
        writeln!(out, "\n],\n\"traceName\": \"simulated.pt.trace.json\"\n}}")
    }

    fn kineto_host(&self, rows: &mut Rows<impl Write>) -> io::Result<()> {
        // Ends and ids of the frames that are open.
        let mut frames: Vec<(i64, usize)> = Vec::new();
        for (index, event) in self.host.iter().enumerate() {
            let (time, mut at) = ((event.start, event.end), (json!(self.pid()), json!(self.pid())));
            let (cat, args) = match event.kind {
                HostKind::Overhead => {
                    at = (json!(-1), json!(0));
                    ("overhead", json!({}))
                }
                HostKind::FrameworkOp => ("cpu_op", operator_args(event, index)),
                HostKind::UserRange => ("user_annotation", json!({"External id": event.external, "Ev Idx": index})),
                HostKind::Compile => ("user_annotation", json!({"Ev Idx": index})),
                HostKind::PythonFrame | HostKind::Gc => {
                    frames.retain(|(end, _)| *end > event.start);
                    let parent = frames.last().map(|(_, id)| *id);
                    frames.push((event.end, index));
                    ("python_function", json!({"Python id": index, "Python parent id": parent, "Ev Idx": index}))
                }
                HostKind::ModuleLoad if self.config.vendor == Vendor::Cuda => ("cuda_driver", api_args(event)),
                _ => ("cuda_runtime", api_args(event)),
            };
            rows.span(cat, &event.name, at, time, &args)?;
            let launches = matches!(
                event.kind,
                HostKind::Launch | HostKind::GraphLaunch | HostKind::Copy | HostKind::BlockingCopy
            );
            if let Some(id) = event.correlation.filter(|_| launches) {
                rows.flow(true, id, (self.pid(), self.pid()), event.start)?;
            }
            if let (HostKind::Sync(on), Vendor::Cuda) = (event.kind, self.config.vendor) {
                let stream = STREAM_IDS[event.stream.unwrap_or(0)];
                let kind = if on == SyncOn::Stream { "Stream Sync" } else { "Event Sync" };
                let args = json!({"cuda_sync_kind": kind, "stream": stream, "correlation": event.correlation, "device": self.rank, "context": 1});
                rows.span("cuda_sync", kind, (json!(self.rank), json!(stream)), time, &args)?;
            }
        }
        Ok(())
    }

    fn kineto_device(&self, rows: &mut Rows<impl Write>) -> io::Result<()> {
        for op in self.kept() {
            let (cat, name) = match op.work {
                Work::Compute(_) | Work::Collective { .. } => ("kernel", op.kernel(self.config.vendor).to_owned()),
                Work::Copy { direction, pageable } => ("gpu_memcpy", self.copy_name(direction, pageable)),
                Work::Memset => ("gpu_memset", "Memset (Device)".to_owned()),
            };
            let stream = STREAM_IDS[op.stream];
            rows.span(cat, &name, (json!(self.rank), json!(stream)), (op.start, op.end), &self.device_args(op))?;
            if let Some(id) = self.host[op.call].correlation {
                rows.flow(false, id, (self.device(), stream), op.start)?;
            }
        }
        Ok(())
    }

    fn copy_name(&self, direction: Direction, pageable: bool) -> String {
        let host = match (self.config.vendor, pageable) {
            (Vendor::Cuda, true) => "Pageable",
            (Vendor::Cuda, false) => "Pinned",
            _ => "Host",
        };
        match direction {
            Direction::HostToDevice => format!("Memcpy HtoD ({host} -> Device)"),
            Direction::DeviceToHost => format!("Memcpy DtoH (Device -> {host})"),
            Direction::DeviceToDevice => "Memcpy DtoD (Device -> Device)".to_owned(),
            Direction::PeerToPeer => "Memcpy PtoP (Device -> Device)".to_owned(),
        }
    }

    fn device_args(&self, op: &DeviceOp) -> Value {
        let call = &self.host[op.call];
        let mut args = json!({"device": self.rank, "stream": STREAM_IDS[op.stream], "correlation": call.correlation});
        let mut set = |key: &str, value: Value| args[key] = value;
        if self.config.vendor == Vendor::Cuda {
            set("context", json!(1));
        }
        match op.node {
            Some((graph, node)) if self.config.vendor == Vendor::Cuda => {
                set("graph id", json!(graph));
                set("graph node id", json!(node));
            }
            Some(_) => {}
            None => {
                if let Some(external) = call.external {
                    set("External id", json!(external));
                }
            }
        }
        match op.work {
            Work::Compute(_) | Work::Collective { .. } => {
                let class = op.slot.and_then(|slot| slot.card().class);
                set("grid", json!([op.blocks, 1, 1]));
                set("block", json!([shape::threads(class), 1, 1]));
                if self.config.vendor == Vendor::Cuda {
                    set("shared memory", json!(shape::shared_memory(class)));
                }
                if self.config.vendor == Vendor::Rocm {
                    set("kind", json!("Dispatch Kernel"));
                }
            }
            Work::Copy { .. } | Work::Memset => set("bytes", json!(op.bytes)),
        }
        if let Work::Collective { seq, .. } = op.work
            && op.node.is_none()
        {
            let operator = op.slot.map_or("", |slot| slot.card().operator);
            let name = match operator {
                "c10d::_allgather_base_" => "_allgather_base",
                "c10d::alltoall_base_" => "all_to_all",
                "c10d::send" => "send",
                "c10d::recv_" => "recv",
                _ => "allreduce",
            };
            set("Collective name", json!(name));
            set("dtype", json!("BFloat16"));
            set("In msg nelems", json!(op.bytes / 2));
            set("Out msg nelems", json!(op.bytes / 2));
            let (world, group) = self.group();
            set("Group size", json!(world));
            set("Process Group Name", json!(format!("{group}:0")));
            set("Process Group Description", json!(group));
            set("Process Group Ranks", json!(format!("{:?}", (0..world).collect::<Vec<_>>())));
            set("Rank", json!(self.rank));
            set("Seq", json!(seq));
        }
        args
    }

    /// What the profiled program did on another thread, and what it counted.
    fn kineto_rest(&self, rows: &mut Rows<impl Write>) -> io::Result<()> {
        let thread = self.pid() + 1;
        for (index, event) in (self.host.len()..).zip(&self.other) {
            let args = json!({"Python id": index, "Python parent id": null, "Ev Idx": index});
            let at = (json!(self.pid()), json!(thread));
            rows.span("python_function", &event.name, at, (event.start, event.end), &args)?;
        }
        if !self.other.is_empty() {
            let name = json!({"name": format!("thread {thread} (detokenizer)")});
            rows.metadata("thread_name", self.pid(), thread, &name)?;
        }
        for counter in &self.counters {
            let (name, ts, pid) = (counter.name, micros(counter.at), self.pid());
            rows.row(&format!(
                r#"{{"ph": "C", "cat": "scheduler", "name": "{name}", "pid": {pid}, "tid": {pid}, "ts": {ts}, "args": {{"{name}": {}}}}}"#,
                counter.value
            ))?;
        }
        Ok(())
    }

    /// Projections of ranges, the recorded window and the names of tracks.
    fn kineto_frame(&self, rows: &mut Rows<impl Write>) -> io::Result<()> {
        for range in self.host.iter().filter(|event| event.kind == HostKind::UserRange) {
            let inside = |op: &&DeviceOp| {
                let call = &self.host[op.call];
                op.step == range.step
                    && op.stream == 0
                    && op.node.is_none()
                    && call.start >= range.start
                    && call.end <= range.end
            };
            let mut ops = self.ops.iter().filter(inside);
            let Some(first) = ops.next() else { continue };
            let end = ops.map(|op| op.end).fold(first.end, i64::max);
            let args = json!({"External id": range.external});
            // Kineto widens projections so that they nest.
            let time = (first.start - 1, end + 2);
            rows.span("gpu_user_annotation", &range.name, (json!(self.rank), json!(STREAM_IDS[0])), time, &args)?;
        }
        let (start, end) = self.extent();
        let at = (json!("Spans"), json!("PyTorch Profiler"));
        rows.span("Trace", "PyTorch Profiler (0)", at, (start, end), &json!({"Op count": 0}))?;
        rows.metadata("process_name", self.pid(), 0, &json!({"name": "VLLM::EngineCore (simulated)"}))?;
        rows.metadata("process_labels", self.pid(), 0, &json!({"labels": "CPU"}))?;
        rows.metadata(
            "thread_name",
            self.pid(),
            self.pid(),
            &json!({"name": format!("thread {} (python)", self.pid())}),
        )?;
        rows.metadata("process_name", self.device(), 0, &json!({"name": "VLLM::EngineCore (simulated)"}))?;
        rows.metadata("process_labels", self.device(), 0, &json!({"labels": format!("GPU {}", self.rank)}))?;
        for id in STREAM_IDS.iter().take(self.config.streams) {
            rows.metadata("thread_name", self.device(), *id, &json!({"name": format!("stream {id} ")}))?;
        }
        rows.row(&format!(
            r#"{{"ph": "i", "cat": "", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": {}}}"#,
            micros(end)
        ))
    }

    /// Ranks that it works with, and what for.
    fn group(&self) -> (i64, &'static str) {
        let stages = self.config.serving.map_or(1, |serving| serving.stages);
        if stages > 1 { (i64::try_from(stages).unwrap_or(1), "pp") } else { (self.config.tensor_parallel, "tp") }
    }

    /// Name of its device.
    pub(crate) fn device_name(&self) -> &'static str {
        match (self.config.serving, self.config.vendor) {
            (Some(serving), _) => serving.accelerator.ability().name,
            (None, Vendor::Cuda) => "SIMULATED GPU (CUDA)",
            (None, _) => "SIMULATED GPU (ROCm)",
        }
    }

    /// Number of its device.
    pub(crate) fn device(&self) -> i64 {
        i64::try_from(self.rank).unwrap_or(0)
    }

    /// Its process, and the thread that does everything.
    pub(crate) fn pid(&self) -> i64 {
        PID + self.device()
    }

    /// When the profiler recorded: a little before the first event until a little after the last.
    pub(crate) fn extent(&self) -> (i64, i64) {
        let times = || {
            self.host.iter().map(|event| (event.start, event.end)).chain(self.ops.iter().map(|op| (op.start, op.end)))
        };
        let start = times().map(|time| time.0).min().unwrap_or(0);
        let end = times().map(|time| time.1).max().unwrap_or(0);
        (start - 50_000, end + 50_000)
    }
}

fn operator_args(event: &HostEvent, index: usize) -> Value {
    let mut args = json!({"External id": event.external, "Ev Idx": index});
    if let Some(inputs) = &event.inputs {
        args["Input Dims"] = json!(inputs.shapes);
        args["Input type"] = json!(vec![inputs.dtype; inputs.shapes.len()]);
    }
    args
}

fn api_args(event: &HostEvent) -> Value {
    let mut args = json!({"correlation": event.correlation});
    if let Some(external) = event.external {
        args["External id"] = json!(external);
    }
    args
}
