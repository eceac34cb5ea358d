//! The text form: a timeline of events, in one file or in one per iteration. It is read twice, because the names that
//! tell whose an event is stand anywhere in it.

use std::path::Path;

use model::{Category, Clock, Detail, Ns, OpDetail, Provenance, Severity, TraceSink, TrackKey, TrackKind};

use rustc_hash::FxHashSet;

use super::{
    arrows::{self, Arrows, Calls, Moment},
    facts::Facts,
    import::{self, Collective, DeviceTask, Import, Part, Place},
    kernels::Kernels,
    layer::{Event, Layer, Names},
    layout::{self, Layout},
    task::Task,
    times::Times,
};
use crate::{
    Place as Where, Progress, ReadError,
    json::{
        Fault, Text, Value,
        events::{self, Damage},
    },
};

/// Times beyond this (the year 2001 in Unix ns) are absolute; before 2024 times were those of the host's monotonic clock.
const ABSOLUTE: Ns = 1_000_000_000_000_000_000;
/// What a launch of which only the moment is known is called where it launched tasks of a graph: the call that replays one.
const GRAPH_LAUNCH: &str = "aclmdlRIExecuteAsync";
/// Longest text of shapes or dtypes that is kept, bytes.
const MAX_SHAPES: usize = 8 << 10;

/// Reads the timelines of a layout.
pub(super) fn read(layout: &Layout, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let mut facts = Facts::read(layout, sink);
    let kernels = layout.kernels.as_deref().map(|path| Kernels::read(path, sink)).unwrap_or_default();
    let files = layout.timelines.len().max(1) as u64;
    let times = Times::beside(layout, sink);
    let mut reader = Reader {
        import: Import::new(sink),
        names: Names::default(),
        kernels,
        parts: FxHashSet::default(),
        calls: Calls::default(),
        file: String::new(),
    };
    reader.import.times = times;
    let mut arrays = 0;
    for (number, path) in layout.timelines.iter().enumerate() {
        // Two passes over each file are two parts of the whole.
        let part = |pass: u64, done: u64, total: u64| {
            let whole = total.saturating_mul(2 * files);
            progress(total.saturating_mul(2 * number as u64 + pass).saturating_add(done).min(whole), whole);
        };
        reader.file = layout::name(path);
        reader.names = Names { directory: layout::device_of(path), ..Names::default() };
        reader.parts = FxHashSet::default();
        let mut arrows = Arrows::default();
        let named = events::scan(path, &|done, total| part(0, done, total), &mut |cursor| {
            let event = Event::read(cursor)?;
            arrows.take(&event);
            if event.phase == b'M' {
                reader.names.take(&event);
            } else if event.is_part()
                && let Some((start, _)) = event.span()
            {
                reader.parts.insert(start);
            }
            Ok(())
        })?;
        if !named.is_array {
            continue;
        }
        arrays += 1;
        reader.calls = arrows.settle(&reader.names);
        facts.simulated |= reader.names.simulated;
        reader.describe(&facts);
        reader.moments();
        let damage = events::scan(path, &|done, total| part(1, done, total), &mut |cursor| {
            let event = Event::read(cursor)?;
            reader.event(&event);
            Ok::<(), Fault>(())
        })?;
        reader.tell(&damage);
    }
    if arrays == 0 {
        let path = layout.timelines.first().map_or(layout.root.as_path(), |path| path.as_path());
        return Err(malformed(path));
    }
    reader.finish(&facts);
    Ok(())
}

fn malformed(path: &Path) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Where::Byte(0),
        expected: "an array of events as 'msprof --export=on' writes it".to_owned(),
        next: "export the profile again".to_owned(),
    }
}

struct Reader<'s> {
    import: Import<'s>,
    names: Names,
    kernels: Kernels,
    /// When the tasks inside collectives start. The device shows them a second time, copies as if they were any copy.
    parts: FxHashSet<Ns>,
    /// Connections of the calls of tasks whose own calls were left out.
    calls: Calls,
    file: String,
}

impl Reader<'_> {
    fn describe(&mut self, facts: &Facts) {
        let process = self.import.sink.process(0);
        let pid = self.names.host_pid().or(facts.pid);
        self.import.sink.describe_process(process, pid, None, facts.rank);
    }

    /// The connection of the call that an arrow says an event's work was caused by.
    fn arrow(&self, event: &Event<'_>, pid: i64, start: Ns) -> Option<i64> {
        self.calls.of.get(&((pid, event.tid.unwrap_or(0)), start)).copied()
    }

    /// Launches of which only the moment is left.
    fn moments(&mut self) {
        let moments = std::mem::take(&mut self.calls.moments);
        let process = self.import.sink.process(0);
        for Moment { thread, start, connection, of_graph } in &moments {
            let track = self.import.thread(process, *thread);
            let name = self.import.sink.intern(if *of_graph { GRAPH_LAUNCH } else { "launch" });
            self.import.slice(track, (*start, *start), name, Category::HostApi, Some(*connection), None);
        }
        if !moments.is_empty() {
            let note = "host_api without duration: the beginnings of arrows whose calls the profiler left out";
            self.import.sink.ledger("launches", moments.len() as u64, moments.len() as u64, 0, note);
        }
    }

    fn tell(&mut self, damage: &Damage) {
        let at = |offset: u64| format!("{} at byte {offset}", self.file);
        let (broken, cut) = (damage.first_broken.map(at), damage.cut_at.map(at));
        self.import.stat("broken_events", Severity::DataLoss, damage.broken, broken.as_deref());
        self.import.stat("truncated_file", Severity::DataLoss, u64::from(cut.is_some()), cut.as_deref());
        let after = format!("{} bytes after the end of {}", damage.after_end, self.file);
        self.import.stat("bytes_after_the_end", Severity::DataLoss, u64::from(damage.after_end > 0), Some(&after));
        let compression = damage.compression.as_deref();
        self.import.stat("damaged_compression", Severity::DataLoss, u64::from(compression.is_some()), compression);
    }

    fn event(&mut self, event: &Event<'_>) {
        let pid = event.pid.unwrap_or(-1);
        let layer = self.names.layer(pid);
        match event.phase {
            b'X' => {
                let name = event.name.map(|name| name.decode().0.into_owned());
                let (Some(span), Some(name)) = (event.span(), name) else {
                    return self.incomplete(layer);
                };
                match layer {
                    Layer::Framework => self.framework(event, span, &name),
                    Layer::Cann => self.call(event, span, &name),
                    Layer::Hardware => self.task(event, pid, span, &name),
                    Layer::Communication => self.communication(event, pid, span, &name),
                    Layer::Gc => self.host(event, span, &name, Category::Gc, "Python GC", None),
                    Layer::Derived => self.count("Overlap Analysis", "not kept: derived from the other layers"),
                    Layer::Other => self.other(pid, "events", "not kept: of a layer that this version does not know"),
                }
            }
            b'C' => self.counter(event, pid),
            b'M' => self.count("metadata", "names"),
            b's' | b'f' if event.category() == arrows::CATEGORY && !self.calls.of.is_empty() => {
                self.import.sink.ledger("flow HostToDevice", 1, 1, 0, "links of tasks whose own calls were left out");
            }
            b's' | b't' | b'f' => {
                let name = format!("flow {}", String::from_utf8_lossy(event.category()));
                self.count(&name, "not kept: the same links as connection ids, or within the framework");
            }
            _ => self.other(pid, "events", "not kept: of a phase that this version does not know"),
        }
    }

    fn count(&mut self, name: &str, note: &str) {
        self.import.sink.ledger(name, 1, 0, 0, note);
    }

    fn other(&mut self, pid: i64, what: &str, note: &str) {
        let name = self.names.processes.get(&pid).map_or("unnamed process", |process| process.name.as_str());
        self.import.sink.ledger(&format!("{name} {what}"), 1, 0, 0, note);
    }

    fn incomplete(&mut self, layer: Layer) {
        let file = self.file.clone();
        self.import.sink.ledger(&format!("{layer:?} events without time or name"), 1, 0, 0, "not kept: incomplete");
        self.import.stat("incomplete_event", Severity::DataLoss, 1, Some(&file));
    }

    fn host(
        &mut self,
        event: &Event<'_>,
        (start, end): (Ns, Ns),
        name: &str,
        category: Category,
        row: &str,
        facts: Option<(Option<i64>, Option<Detail>)>,
    ) {
        let process = self.import.sink.process(0);
        let track = self.import.thread(process, event.tid.unwrap_or(0));
        let id = self.import.sink.intern(name);
        let (correlation, detail) = facts.unwrap_or_default();
        self.import.slice(track, (start, end), id, category, correlation, detail.as_ref());
        self.import.sink.ledger(row, 1, 1, end.saturating_sub(start).max(0), category.name());
    }

    fn framework(&mut self, event: &Event<'_>, span: (Ns, Ns), name: &str) {
        let (category, row) = match event.category() {
            b"cpu_op" => (import::framework_category(name), "Python/cpu_op"),
            b"python_function" => (Category::PythonFrame, "Python/python_function"),
            b"user_annotation" => (Category::UserRange, "Python/user_annotation"),
            b"enqueue" => (Category::HostOther, "Python/enqueue"),
            b"dequeue" => (Category::HostOther, "Python/dequeue"),
            _ => (Category::HostOther, "Python/other"),
        };
        let mut op = OpDetail::default();
        if category == Category::FrameworkOp {
            let sink = &mut *self.import.sink;
            event.each_arg(|key, value| {
                let text = value.text().filter(|text| text.raw.len() <= MAX_SHAPES && !text.raw.is_empty());
                let Some(text) = text.map(|text| text.decode().0) else { return };
                match key {
                    b"Input Dims" => op.shapes = Some(sink.intern(&import::shapes_json(&text))),
                    b"Input type" => op.dtypes = Some(sink.intern(&import::words_json(&text))),
                    _ => {}
                }
            });
        }
        let detail = (op != OpDetail::default()).then_some(Detail::Op(op));
        self.host(event, span, name, category, row, Some((None, detail)));
    }

    fn call(&mut self, event: &Event<'_>, span: (Ns, Ns), name: &str) {
        let (mut connection, mut level) = (None, None);
        event.each_arg(|key, value| match key {
            b"connection_id" => connection = value.int(),
            b"level" => level = value.text(),
            _ => {}
        });
        let level = level.map(|level: Text<'_>| level.decode().0.into_owned());
        // `AscendCL@aclrtMemcpyAsync`: the layer stands in the level as well.
        let (prefix, bare) = name.split_once('@').unwrap_or(("", name));
        let level = level.unwrap_or_else(|| prefix.to_ascii_lowercase());
        let category = import::call_category(&level);
        let connection = connection.filter(|id| *id != import::NONE);
        self.host(event, span, bare, category, &format!("CANN/{level}"), Some((connection, None)));
    }

    fn task(&mut self, event: &Event<'_>, pid: i64, span: (Ns, Ns), name: &str) {
        let thread = self.names.threads.get(&(pid, event.tid.unwrap_or(0)));
        if thread.is_some_and(|thread| thread.starts_with("Step Trace")) {
            return self.iteration(event, pid, span, name);
        }
        let process = self.import.sink.process(0);
        let stream = thread.and_then(|thread| thread.strip_prefix("Stream ")?.trim().parse().ok()).or(event.tid);
        let place = Place { process, device: self.names.device(pid), stream: stream.unwrap_or(0) };
        let (mut task_type, mut direction) = (None, None);
        let (mut connection, mut model, mut bytes) = (None, None, None);
        event.each_arg(|key, value: Value<'_>| match key {
            b"Task Type" => task_type = value.text(),
            b"connection_id" => connection = value.int(),
            b"Model Id" => model = value.int(),
            b"size(B)" | b"data size(Byte)" => bytes = value.int(),
            b"operation" | b"memcpy direction" => direction = value.text(),
            _ => {}
        });
        let model = model.or_else(|| self.names.sunk.get(&pid).copied().flatten());
        let connection = self.arrow(event, pid, span.0).or(connection);
        let text = |text: Option<Text<'_>>| text.map(|text| text.decode().0.into_owned());
        let (task_type, direction) = (text(task_type).unwrap_or_else(|| "no type".to_owned()), text(direction));
        let task = DeviceTask {
            place,
            start: span.0,
            end: span.1,
            name,
            task: match Task::of(&task_type, name) {
                Task::Copy if self.parts.contains(&span.0) => Task::Pseudo,
                task => task,
            },
            task_type: &task_type,
            connection,
            model,
            blocks: self.kernels.blocks(span.0),
            told: self.kernels.told(span.0),
            bytes,
            direction: direction.as_deref(),
        };
        self.import.task("Ascend Hardware", &task);
    }

    /// Iterations of a graph, drawn beside the device's streams.
    fn iteration(&mut self, event: &Event<'_>, pid: i64, (start, end): (Ns, Ns), name: &str) {
        let process = self.import.sink.process(0);
        let device = Some(self.names.device(pid));
        let id = event.tid.unwrap_or(0);
        let key = TrackKey { kind: TrackKind::DeviceAnnotation, process, device, context: Some(2), id };
        let track = self.import.track(key, Some("step trace"));
        let id = self.import.sink.intern(name);
        self.import.slice(track, (start, end), id, Category::DeviceRange, None, None);
        let dur = end.saturating_sub(start).max(0);
        self.import.sink.ledger("Step Trace", 1, 1, dur, "ranges beside the queue; not device work");
    }

    fn communication(&mut self, event: &Event<'_>, pid: i64, (start, end): (Ns, Ns), name: &str) {
        let thread = self.names.threads.get(&(pid, event.tid.unwrap_or(0))).map_or("", String::as_str);
        let (process, device) = (self.import.sink.process(0), self.names.device(pid));
        if thread.starts_with("Plane") {
            let (mut peer, mut own) = (None, None);
            event.each_arg(|key, value| match key {
                b"dst rank" => peer = value.int(),
                b"src rank" => own = value.int(),
                _ => {}
            });
            let plane = event.tid.unwrap_or(0);
            return self.import.part("HCCL", &Part { process, device, plane, start, end, name, peer, own });
        }
        let (mut connection, mut count, mut size, mut dtype) = (None, None, None, None);
        event.each_arg(|key, value| match key {
            b"connection_id" => connection = value.int(),
            b"count" => count = value.int(),
            b"rank_size" => size = value.int(),
            b"data_type" => dtype = value.text(),
            _ => {}
        });
        let connection = self.arrow(event, pid, start).or(connection);
        let dtype = dtype.map(|dtype: Text<'_>| dtype.decode().0.into_owned());
        let group_size = size.and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0);
        let dtype = dtype.as_deref();
        let call = Collective { process, device, group: None, start, end, name, connection, dtype, count, group_size };
        self.import.collective("HCCL/collective", &call);
    }

    fn counter(&mut self, event: &Event<'_>, pid: i64) {
        let layer = self.names.processes.get(&pid).map_or("", |process| process.name.as_str());
        let time = event.ts.and_then(|ts| model::time::parse_decimal(ts.number()?, 3).ok());
        let mut sample = None;
        event.each_arg(|key, value| {
            let number = value.number().and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<f64>().ok());
            sample = sample.or(number.filter(|number| number.is_finite()).map(|number| (unit(key), number)));
        });
        let wanted = ["AI Core Freq", "HBM", "LLC", "DDR", "NPU MEM"].contains(&layer);
        let (Some((t, _)), Some((unit, value)), Some(name)) = (time, sample.filter(|_| wanted), event.name) else {
            return self.other(pid, "samples", "not kept: levels and latencies of buses");
        };
        let process = self.import.sink.process(0);
        let name =
            if layer == "NPU MEM" { format!("memory {}", name.decode().0) } else { name.decode().0.into_owned() };
        let name = self.import.sink.intern(&name);
        let device = Some(self.names.device(pid));
        self.import.sink.counter(process, device, name, unit, t, value);
        let row = format!("{layer} samples");
        self.import.sink.ledger(&row, 1, 1, 0, "counters");
    }

    fn finish(mut self, facts: &Facts) {
        let absolute = self.import.first.is_some_and(|first| first > ABSOLUTE);
        let unix_offset = if absolute { Some(0) } else { facts.unix_offset };
        self.import.sink.clock(Clock::FromFirstSlice { unix_offset });
        self.import.settle(&|_| None, facts.world);
        facts.tell(self.import.sink);
        self.import.sink.manifest("ascend.form", "timeline", Provenance::Observed);
    }
}

/// Unit of a sample by the name of its value.
fn unit(key: &[u8]) -> &'static str {
    match key {
        b"MHz" => "MHz",
        b"KB" => "KB",
        key if key.ends_with(b"(MB/s)") => "MB/s",
        key if key.ends_with(b"(%)") => "%",
        _ => "",
    }
}
