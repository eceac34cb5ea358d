//! Whose an event of the timeline is. Processes of the timeline are layers of the stack; their numbers mean different
//! things in different years, so their names tell.

use model::Ns;
use rustc_hash::FxHashMap;

use crate::{
    json::{Cursor, Fault, Text, Value},
    simulated,
};

/// Most processes and threads whose names are kept; real timelines have some dozens.
const MAX_NAMES: usize = 1 << 16;

/// One event as it stands in the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// First letter of the phase, 0 when there is none.
    pub phase: u8,
    pub name: Option<Text<'a>>,
    pub cat: Option<Text<'a>>,
    pub pid: Option<i64>,
    pub tid: Option<i64>,
    /// Timestamp, µs, as text or as number.
    pub ts: Option<Value<'a>>,
    pub dur: Option<Value<'a>>,
    /// Which arrow it begins or ends.
    pub id: Option<Value<'a>>,
    /// Arguments with their braces.
    pub args: Option<&'a [u8]>,
}

impl<'a> Event<'a> {
    /// Reads the event that the cursor stands on.
    pub fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let mut event = Self::default();
        cursor.object(|key, cursor| {
            let value = cursor.value()?;
            match key.raw {
                b"ph" => event.phase = value.text().and_then(|t| t.raw.first().copied()).unwrap_or(0),
                b"name" => event.name = value.text(),
                b"cat" => event.cat = value.text(),
                b"pid" => event.pid = value.int(),
                b"tid" => event.tid = value.int(),
                b"ts" => event.ts = Some(value),
                b"dur" => event.dur = Some(value),
                b"id" => event.id = Some(value),
                b"args" => {
                    if let Value::Container(raw) = value {
                        event.args = Some(raw);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(event)
    }

    /// When it is or starts, ns.
    pub fn time(&self) -> Option<Ns> {
        micros(self.ts)
    }

    /// Start and end, ns; `None` where one of them cannot be read.
    pub fn span(&self) -> Option<(Ns, Ns)> {
        let start = self.time()?;
        Some((start, start.checked_add(micros(self.dur)?)?))
    }

    /// Gives each argument to `take`.
    pub fn each_arg(&self, mut take: impl FnMut(&'a [u8], Value<'a>)) {
        let Some(raw) = self.args else { return };
        // The braces were seen to match when the event was read.
        let _ = Cursor::new(raw, 0).object(|key, cursor| {
            take(key.raw, cursor.value()?);
            Ok(())
        });
    }

    /// Whether this is a task inside a collective: no other event speaks of notifies.
    pub fn is_part(&self) -> bool {
        self.phase == b'X' && self.args.is_some_and(|args| memchr::memmem::find(args, b"\"notify_id\"").is_some())
    }

    /// The category's bytes, empty where there is none.
    pub fn category(&self) -> &'a [u8] {
        self.cat.map_or(&[], |cat| cat.raw)
    }
}

/// A number of µs as ns.
fn micros(value: Option<Value<'_>>) -> Option<Ns> {
    model::time::parse_decimal(value?.number()?, 3).ok().map(|(ns, _)| ns)
}

/// A layer of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Layer {
    /// The framework's own threads.
    Framework,
    /// Calls of CANN.
    Cann,
    /// Tasks of the device.
    Hardware,
    /// Collectives and what they are made of.
    Communication,
    /// Intervals that the exporter derived from the others.
    Derived,
    /// Garbage collection of the interpreter.
    Gc,
    /// Samples or anything else, by the name of the process.
    Other,
}

impl Layer {
    fn named(name: &str) -> Self {
        match name {
            "Python" | "MindSpore" => Self::Framework,
            "CANN" => Self::Cann,
            "Ascend Hardware" => Self::Hardware,
            "HCCL" | "Communication" => Self::Communication,
            "Overlap Analysis" => Self::Derived,
            "Python GC" => Self::Gc,
            _ => Self::Other,
        }
    }
}

/// A process of the timeline.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub layer: Layer,
    pub name: String,
    /// Ordinal of the device where the labels say it (`NPU 3`).
    pub device: Option<i32>,
}

/// Names of processes and threads, which stand anywhere in the file.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub processes: FxHashMap<i64, Process>,
    pub threads: FxHashMap<(i64, i64), String>,
    /// The graph whose iterations a process's tasks make up, where there is one: a graph that the device runs as a whole
    /// (whole-graph sink). Only such a run has a trace of its iterations, named after the model.
    pub sunk: FxHashMap<i64, Option<i64>>,
    /// Whether an event of metadata says that no device was measured.
    pub simulated: bool,
    /// Device in whose directory the file lies, which every process of the device in it is then of.
    pub directory: Option<i32>,
}

impl Names {
    /// Takes in a metadata event.
    pub fn take(&mut self, event: &Event<'_>) {
        let (Some(pid), Some(kind)) = (event.pid, event.name) else { return };
        let mut text = None;
        event.each_arg(|key, value| {
            if matches!(key, b"name" | b"labels") {
                text = value.text();
            }
        });
        let Some(text) = text.map(|text| text.decode().0.into_owned()) else { return };
        if self.processes.len() + self.threads.len() >= MAX_NAMES {
            return;
        }
        match kind.raw {
            b"process_name" => {
                let layer = Layer::named(&text);
                let device = self.processes.remove(&pid).and_then(|known| known.device);
                self.processes.insert(pid, Process { layer, name: text, device });
            }
            b"process_labels" => {
                let device = text.strip_prefix("NPU ").and_then(|ordinal| ordinal.trim().parse().ok());
                if let Some(device) = device {
                    let unnamed = || Process { layer: Layer::Other, name: String::new(), device: None };
                    self.processes.entry(pid).or_insert_with(unnamed).device = Some(device);
                }
            }
            kind if kind == simulated::LABEL.as_bytes() => self.simulated = text == "true",
            b"thread_name" => {
                let model = text.strip_prefix("Step Trace(Model ID:").and_then(|rest| rest.strip_suffix(')'));
                if let Some(model) = model.and_then(|model| model.trim().parse().ok()) {
                    let known = self.sunk.entry(pid).or_insert(Some(model));
                    *known = known.filter(|known| *known == model);
                }
                self.threads.insert((pid, event.tid.unwrap_or(0)), text);
            }
            _ => {}
        }
    }

    /// The layer of a process; one without a name is unknown.
    pub fn layer(&self, pid: i64) -> Layer {
        self.processes.get(&pid).map_or(Layer::Other, |process| process.layer)
    }

    /// The host's process id: that of the framework, else the one that CANN's number holds in its upper bits.
    pub fn host_pid(&self) -> Option<i64> {
        let of = |layer| self.processes.iter().filter(|(_, p)| p.layer == layer).map(|(pid, _)| *pid).min();
        of(Layer::Framework).or_else(|| of(Layer::Cann).map(|pid| pid >> 10).filter(|pid| *pid > 0))
    }

    /// Ordinal of the device of a process: by its labels, else by the directory of the file (before 2024, when numbers of
    /// processes were counted up from the host's), else by the lower five bits of its number where the upper ones are the
    /// host's process id.
    pub fn device(&self, pid: i64) -> i32 {
        let labelled = self.processes.get(&pid).and_then(|process| process.device);
        let packed = || (Some(pid >> 10) == self.host_pid() && pid & 31 != 31).then_some((pid & 31) as i32);
        labelled.or(self.directory).or_else(packed).unwrap_or(0)
    }
}
