//! The text form's timeline: a bare array of events whose times are text, because they are beyond what a float holds.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

use super::{
    NONE, Recorded,
    device::{Collective, Task, What},
    host::{self, Layer, Level},
    overlap::Overlap,
};
use crate::{
    clock::{EPOCH, micros},
    record::{Direction, HostEvent},
};

/// Layers and how the processes that stand for them are numbered.
const CANN: i64 = 1;
const HARDWARE: i64 = 7;
const COMMUNICATION: i64 = 9;
const OVERLAP: i64 = 17;
/// The "device" of a layer of the host.
const HOST: i64 = 31;
/// First track of the planes of collectives; the collectives themselves lie on the one before.
const PLANES: i64 = 1;

struct Rows<W: Write> {
    out: W,
    first: bool,
}

impl<W: Write> Rows<W> {
    fn row(&mut self, row: &str) -> io::Result<()> {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.out, "{comma}\n{row}")
    }

    /// A complete event; `kind` is what stands between its name and its place.
    fn span(&mut self, name: &str, kind: &str, at: (i64, i64), time: (i64, i64), args: &Value) -> io::Result<()> {
        let (name, (pid, tid)) = (json!(name), at);
        let (ts, dur) = (micros(EPOCH + time.0), micros(time.1 - time.0));
        self.row(&format!(
            r#"{{"ph": "X", "name": {name}, "pid": {pid}, "tid": {tid}, "ts": "{ts}", "dur": {dur}{kind}, "args": {args}}}"#
        ))
    }

    /// An arrow from a call to what it caused.
    fn arrow(&mut self, connection: i64, from: (i64, i64, i64), to: (i64, i64, i64)) -> io::Result<()> {
        let id = connection << 32;
        for (phase, bind, (pid, tid, at)) in [("s", "", from), ("f", r#", "bp": "e""#, to)] {
            let ts = micros(EPOCH + at);
            self.row(&format!(
                r#"{{"name": "HostToDevice{id}", "ph": "{phase}", "cat": "HostToDevice", "id": "{id}", "pid": {pid}, "tid": {tid}, "ts": "{ts}"{bind}}}"#
            ))?;
        }
        Ok(())
    }

    /// An arrow from the operator to the same, known by the time at which the device began.
    fn operator_arrow(&mut self, from: (i64, i64, i64), to: (i64, i64, i64)) -> io::Result<()> {
        let id = EPOCH + to.2;
        for (phase, (pid, tid, at)) in [("s", from), ("f", to)] {
            let ts = micros(EPOCH + at);
            self.row(&format!(
                r#"{{"ph": "{phase}", "bp": "e", "name": "torch_to_npu", "id": {id}, "pid": {pid}, "tid": {tid}, "ts": "{ts}", "cat": "async_npu"}}"#
            ))?;
        }
        Ok(())
    }

    fn metadata(&mut self, kind: &str, at: (i64, i64), args: &Value) -> io::Result<()> {
        let (pid, tid) = at;
        self.row(&format!(r#"{{"name": "{kind}", "pid": {pid}, "tid": {tid}, "args": {args}, "ph": "M"}}"#))
    }

    fn process(&mut self, name: &str, pid: i64, labels: &str) -> io::Result<()> {
        self.metadata("process_name", (pid, 0), &json!({"name": name}))?;
        self.metadata("process_labels", (pid, 0), &json!({"labels": labels}))
    }

    fn thread(&mut self, name: &str, at: (i64, i64)) -> io::Result<()> {
        self.metadata("thread_name", at, &json!({"name": name}))
    }
}

impl Recorded {
    fn device_pid(&self, layer: i64) -> i64 {
        self.layer_pid(layer, self.run.device())
    }

    fn cann_pid(&self) -> i64 {
        self.layer_pid(CANN, HOST)
    }

    /// Process of the interpreter's collections, beside that of the framework.
    fn collections_pid(&self) -> i64 {
        self.run.pid() + 1_000_000
    }

    /// Writes `trace_view.json`.
    pub(super) fn timeline(&self, path: &Path) -> io::Result<()> {
        let mut rows = Rows { out: BufWriter::new(File::create(path)?), first: true };
        write!(rows.out, "[")?;
        self.names(&mut rows)?;
        for (index, event) in self.run.host.iter().enumerate() {
            self.show_host(&mut rows, index, event)?;
        }
        for (index, event) in (self.run.host.len()..).zip(&self.run.other) {
            let at = (self.run.pid(), self.run.pid() + 1);
            rows.span(&event.name, FUNCTION, at, (event.start, event.end), &json!({"Python id": index}))?;
        }
        for (number, task) in self.device.tasks.iter().enumerate() {
            self.show_task(&mut rows, number, task)?;
        }
        for collective in &self.device.collectives {
            self.show_collective(&mut rows, collective)?;
        }
        self.derived(&mut rows)?;
        writeln!(rows.out, "\n]")?;
        rows.out.flush()
    }

    fn names(&self, rows: &mut Rows<impl Write>) -> io::Result<()> {
        let (pid, npu) = (self.run.pid(), format!("NPU {}", self.run.rank));
        // An event of metadata that viewers do not know and leave alone.
        rows.metadata("strato_simulated", (pid, 0), &json!({"name": "true"}))?;
        rows.process("Python", pid, "CPU")?;
        rows.thread(&format!("Thread {pid}"), (pid, pid))?;
        rows.process("Python GC", self.collections_pid(), "CPU")?;
        if self.is_detailed() {
            rows.process("CANN", self.cann_pid(), "CPU")?;
        }
        rows.thread(&format!("Thread {pid}"), (self.cann_pid(), pid))?;
        let hardware = self.device_pid(HARDWARE);
        rows.process("Ascend Hardware", hardware, &npu)?;
        let mut streams: Vec<i64> = self.device.tasks.iter().map(|task| task.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        for stream in streams {
            rows.thread(&format!("Stream {stream}"), (hardware, stream))?;
        }
        let communication = self.device_pid(COMMUNICATION);
        rows.process("Communication", communication, &npu)?;
        rows.thread("Group 0 Communication", (communication, 0))?;
        for plane in 0..if self.is_detailed() { (self.world - 1).max(0) } else { 0 } {
            rows.thread(&format!("Plane {plane}"), (communication, PLANES + plane))?;
        }
        rows.process("Overlap Analysis", self.device_pid(OVERLAP), &npu)
    }

    fn show_host(&self, rows: &mut Rows<impl Write>, index: usize, event: &HostEvent) -> io::Result<()> {
        let (pid, time) = (self.run.pid(), (event.start, event.end));
        match host::layer(event) {
            None => Ok(()),
            Some(Layer::Operator) => {
                let mut args = json!({"Sequence number": -1, "Fwd thread id": 0});
                if let Some((shapes, types)) = host::inputs(event) {
                    args["Input Dims"] = json!(shapes);
                    args["Input type"] = json!(types);
                }
                rows.span(&event.name, r#", "cat": "cpu_op""#, (pid, pid), time, &args)
            }
            Some(Layer::Function) => rows.span(&event.name, FUNCTION, (pid, pid), time, &json!({"Python id": index})),
            Some(Layer::Collection) => rows.span("GC", "", (self.collections_pid(), pid), time, &json!({})),
            Some(Layer::Call(_)) if !self.is_detailed() => Ok(()),
            Some(Layer::Call(level)) => {
                for call in self.calls_of(index, event, level) {
                    let node = call.level == Level::Node;
                    let (prefix, mode) = if node { ("Node", "launch") } else { ("AscendCL", "ACL_RTS") };
                    let args = json!({
                        "Thread Id": pid, "Mode": mode, "level": call.level.known().0, "id": call.name, "item_id": "0",
                        "connection_id": call.connection,
                    });
                    let name = format!("{prefix}@{}", call.name);
                    rows.span(&name, "", (self.cann_pid(), pid), (call.start, call.end), &args)?;
                }
                Ok(())
            }
        }
    }

    fn show_task(&self, rows: &mut Rows<impl Write>, number: usize, task: &Task) -> io::Result<()> {
        let mut args = json!({
            "Model Id": task.model, "Task Type": task.kind(), "Physic Stream Id": task.stream,
            "Task Id": number % 65_536, "Batch Id": number / 65_536, "Subtask Id": NONE, "connection_id": task.connection,
        });
        if let (What::Copy { direction, bytes }, true) = (task.what, self.is_detailed()) {
            args["size(B)"] = json!(bytes);
            args["operation"] = json!(operation(direction));
        }
        let at = (self.device_pid(HARDWARE), task.stream);
        rows.span(task.name(), "", at, (task.start, task.end), &args)?;
        let What::Part { part, plane, peer, bytes, .. } = task.what else {
            return self.arrow(rows, task.connection, (at.0, at.1, task.start));
        };
        if !self.is_detailed() {
            return Ok(());
        }
        let args = json!({
            "notify_id": number.to_string(), "duration estimated(us)": 0.02, "stream id": task.stream,
            "task id": number % 65_536, "context id": 0, "task type": part.name(), "src rank": self.run.rank,
            "dst rank": peer, "transport type": "SDMA", "size(Byte)": bytes, "data type": "BFP16", "link type": "HCCS",
            "bandwidth(GB/s)": 0.0, "model id": task.model,
        });
        let at = (self.device_pid(COMMUNICATION), PLANES + plane);
        rows.span(part.name(), "", at, (task.start, task.end), &args)
    }

    fn show_collective(&self, rows: &mut Rows<impl Write>, collective: &Collective) -> io::Result<()> {
        let mut args = json!({
            "connection_id": collective.connection, "model id": collective.model, "data_type": "BFP16",
            "alg_type": "MESH", "count": collective.count, "relay": "no", "retry": "no",
        });
        if self.is_detailed() {
            args["rank_size"] = json!(collective.group.ranks.len());
        }
        let at = (self.device_pid(COMMUNICATION), 0);
        rows.span(&collective.name, "", at, (collective.start, collective.end), &args)?;
        self.arrow(rows, collective.connection, (at.0, at.1, collective.start))
    }

    /// The arrows from a call, if it happened while the profiler ran, and from the operator around it to what they caused.
    fn arrow(&self, rows: &mut Rows<impl Write>, connection: i64, to: (i64, i64, i64)) -> io::Result<()> {
        let Some(call) = self.calls.get(&connection) else { return Ok(()) };
        let pid = self.run.pid();
        rows.arrow(connection, (self.cann_pid(), pid, call.start), to)?;
        match call.operator {
            Some(start) => rows.operator_arrow((pid, pid, start), to),
            None => Ok(()),
        }
    }

    fn derived(&self, rows: &mut Rows<impl Write>) -> io::Result<()> {
        let overlap = Overlap::of(&self.device);
        let pid = self.device_pid(OVERLAP);
        let lanes = [
            ("Computing", &overlap.computing),
            ("Communication", &overlap.communication),
            ("Communication(Not Overlapped)", &overlap.exposed),
            ("Free", &overlap.free),
        ];
        for (tid, (name, intervals)) in (0..).zip(lanes) {
            rows.thread(name, (pid, tid))?;
            for time in intervals {
                rows.span(name, "", (pid, tid), *time, &json!({}))?;
            }
        }
        Ok(())
    }
}

const FUNCTION: &str = r#", "cat": "python_function""#;

/// Direction of a copy in words. Copies to a peer are copies from device to device.
fn operation(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "host to device",
        Direction::DeviceToHost => "device to host",
        Direction::DeviceToDevice | Direction::PeerToPeer => "device to device",
    }
}
