//! Lines and their events: streams of devices, threads of the host, and what the profiler derived of both.

use model::{
    Category, CopyDetail, Detail, Device, KernelDetail, Ns, Provenance, Severity, Slice, TraceSink, TrackKey, TrackKind,
};
use rustc_hash::FxHashMap;

use super::{
    Accounts,
    plane::{Fact, Plane},
    tell_source,
    tpu::{self, Row},
    wire::{Fields, Value},
};
use crate::{
    hip,
    lanes::{Account, Lanes},
};

/// The one process: a profile names none.
pub(super) const PROCESS: u64 = 0;
/// Most lines that are drawn of what the profiler derived (steps, modules, scopes of names).
const MAX_DERIVED: usize = 1 << 12;
/// Lines of a device: what goes on beside the operations of a TPU, steps, and runs of programs.
const BESIDE: &str = "Async XLA Ops";
const STEPS: &str = "Steps";
const MODULES: &str = "XLA Modules";
/// Picoseconds of a nanosecond.
const PS: i128 = 1000;

/// What the events of a line are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// A stream of a GPU.
    Queue(i32),
    /// The operations of a TPU, which has no streams.
    Operations(i32),
    /// What goes on beside them.
    Beside(i32),
    /// What the profiler derived of a device's operations, or a program's names of them.
    Derived(i32),
    /// Calls of the driver, as the device's tracer saw them on a thread.
    Calls,
    /// What a thread of the program annotated.
    Thread,
    /// Of a plane that shows neither.
    Other,
}

impl Line {
    fn of(plane: &str, line: &str) -> Self {
        if plane.starts_with("/host:CPU") {
            return if line.starts_with("Host Threads/") { Self::Calls } else { Self::Thread };
        }
        let Some(ordinal) = ordinal(plane) else { return Self::Other };
        match line {
            "XLA Ops" if plane.contains("TPU") => Self::Operations(ordinal),
            BESIDE if plane.contains("TPU") => Self::Beside(ordinal),
            _ if line.starts_with("Stream #") => Self::Queue(ordinal),
            _ => Self::Derived(ordinal),
        }
    }

    fn account(self) -> (&'static str, &'static str) {
        match self {
            Self::Queue(_) => ("device operations", "kernel; memcpy and memset by name"),
            Self::Operations(_) => (
                "device operations",
                "kernel; memcpy and memset by name, device_sync of waits for asynchronous operations",
            ),
            Self::Beside(_) => ("asynchronous operations", "memcpy and kernel, from start to done"),
            Self::Derived(_) => {
                ("derived device lines", "device_range: steps, modules and names, no work of their own")
            }
            Self::Calls => ("driver calls", "host_api"),
            Self::Thread => {
                ("host annotations", "framework_op; user_range of steps, python_frame, gc, host_api of launches")
            }
            Self::Other => ("other planes", "not kept: unknown to this version"),
        }
    }
}

/// The number of the device in `/device:GPU:3`.
fn ordinal(plane: &str) -> Option<i32> {
    let device = plane.strip_prefix("/device:")?;
    ["GPU:", "TPU:"].iter().find_map(|kind| device.strip_prefix(kind))?.split([' ', '/']).next()?.parse().ok()
}

/// What else a plane has.
#[derive(Clone, Copy, Default)]
struct Has {
    /// A line of what goes on beside the operations.
    beside: bool,
    /// A line of steps.
    steps: bool,
}

impl Has {
    fn of(plane: &Plane<'_>) -> Self {
        let mut has = Self::default();
        for line in &plane.lines {
            let rows = || Fields::of(line).any(|(field, value)| field == 4 && value.bytes().is_some());
            let mut names = Fields::of(line).filter(|(field, _)| *field == 2).filter_map(|(_, value)| value.text());
            match names.next() {
                Some(BESIDE) => has.beside |= rows(),
                Some(STEPS) => has.steps |= rows(),
                _ => {}
            }
        }
        has
    }
}

/// What an event says.
#[derive(Default)]
struct Event<'a> {
    id: i64,
    name: Option<&'a str>,
    offset: i64,
    duration: i64,
    /// How often it ran, where it stands for several without a place in time.
    occurrences: Option<i64>,
    correlation: Option<i64>,
    kernel: Option<&'a str>,
    copy: Option<&'a str>,
    step: bool,
}

impl<'a> Event<'a> {
    /// The event in these bytes, and whether it was cut.
    fn of(plane: &Plane<'a>, bytes: &'a [u8]) -> (Self, bool) {
        let mut event = Self::default();
        let mut fields = Fields::of(bytes);
        for (field, value) in fields.by_ref() {
            match (field, value) {
                (1, Value::Int(_)) => {
                    event.id = value.int().unwrap_or_default();
                    event.name = plane.events.get(&event.id).copied();
                }
                (2, Value::Int(_)) => event.offset = value.int().unwrap_or_default(),
                (3, Value::Int(_)) => event.duration = value.int().unwrap_or_default(),
                (5, Value::Int(_)) => event.occurrences = value.int(),
                (4, Value::Bytes(stat)) => event.take(plane.fact(stat)),
                _ => {}
            }
        }
        (event, fields.broken)
    }

    fn take(&mut self, fact: Option<(&'a str, Fact<'a>)>) {
        match fact {
            Some(("correlation_id", fact)) => self.correlation = fact.number(),
            Some(("kernel_details", fact)) => self.kernel = fact.text(),
            Some(("memcpy_details" | "memset_details", fact)) => self.copy = fact.text(),
            Some(("step_num", _)) => self.step = true,
            _ => {}
        }
    }
}

/// The value behind `key:` in a text of such values.
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.split_whitespace().find_map(|part| part.strip_prefix(key)?.strip_prefix(':'))
}

fn sides(text: Option<&str>) -> Option<[u32; 3]> {
    let mut sides = text?.split(',').map(|side| side.parse::<i64>().ok());
    hip::sides([sides.next()?, sides.next()?, sides.next()?]).filter(|sides| sides.iter().all(|n| *n > 0))
}

/// The direction in `MemcpyH2D`, or in `kind:HostToDevice` of its details.
fn direction(name: &str, details: Option<&str>) -> Option<&'static str> {
    let known = [("H2D", "HtoD"), ("D2H", "DtoH"), ("D2D", "DtoD"), ("P2P", "PtoP"), ("H2H", "HtoH")];
    let named = known.iter().find(|(mark, _)| name.contains(mark)).map(|(_, short)| *short);
    named.or_else(|| hip::direction(value(details?, "kind")?))
}

/// An import under way.
pub(super) struct Import<'a> {
    pub sink: &'a mut dyn TraceSink,
    pub lanes: Lanes,
    accounts: Accounts,
    derived: FxHashMap<(i32, i64), model::TrackId>,
    vendor: Option<String>,
    start: Option<Ns>,
    pub first: Option<Ns>,
    summed: u64,
    pub unnamed: u64,
    pub broken: bool,
}

impl<'a> Import<'a> {
    pub fn new(sink: &'a mut dyn TraceSink) -> Self {
        Self {
            sink,
            lanes: Lanes::default(),
            accounts: Accounts::default(),
            derived: FxHashMap::default(),
            vendor: None,
            start: None,
            first: None,
            summed: 0,
            unnamed: 0,
            broken: false,
        }
    }

    /// Takes a plane.
    pub fn plane(&mut self, plane: &Plane<'_>) {
        self.broken |= plane.broken;
        self.start = self.start.or_else(|| plane.own("profile_start_time")?.number());
        let mut worked = false;
        let has = Has::of(plane);
        for bytes in &plane.lines {
            worked |= self.line(plane, has, bytes);
        }
        if let Some(ordinal) = ordinal(plane.name).filter(|_| worked) {
            self.device(plane, ordinal);
        }
    }

    fn device(&mut self, plane: &Plane<'_>, ordinal: i32) {
        let said = plane.own("device_vendor").and_then(Fact::text).map(str::to_ascii_lowercase);
        let vendor = said.or_else(|| plane.name.contains("TPU").then(|| "google".to_owned()));
        let number = |name: &str| plane.own(name).and_then(Fact::number).filter(|n| *n > 0);
        let name = plane.own("device_type_string").and_then(Fact::text).map(|name| self.sink.intern(name));
        let process = self.lanes.process(&mut *self.sink, PROCESS);
        let key = vendor.as_deref().map(|vendor| self.sink.intern(vendor));
        let cores = number("core_count").and_then(|n| u32::try_from(n).ok());
        let memory_bytes = number("memory_size");
        self.sink.device(Device { process, ordinal, name, vendor: key, cores, memory_bytes });
        self.vendor = self.vendor.take().or(vendor);
    }

    /// Takes a line; whether a device worked on it.
    fn line(&mut self, plane: &Plane<'_>, has: Has, bytes: &[u8]) -> bool {
        let (mut id, mut name, mut display, mut begins, mut events) = (0, "", "", 0, Vec::new());
        let mut fields = Fields::of(bytes);
        for (field, value) in fields.by_ref() {
            match (field, value) {
                (1, Value::Int(_)) => id = value.int().unwrap_or_default(),
                (2, Value::Bytes(_)) => name = value.text().unwrap_or_default(),
                (11, Value::Bytes(_)) => display = value.text().unwrap_or_default(),
                (3, Value::Int(_)) => begins = value.int().unwrap_or_default(),
                (4, Value::Bytes(event)) => events.push(event),
                _ => {}
            }
        }
        self.broken |= fields.broken;
        let name = if name.is_empty() { display } else { name };
        let line = Line::of(plane.name, name);
        let (row, becomes) = line.account();
        let mut account = self.accounts.get(row).map_or_else(Account::default, |(account, _)| *account);
        account.read += events.len() as u64;
        let Some(track) = self.track(line, id, name).filter(|_| !events.is_empty()) else {
            self.accounts.insert(row, (account, becomes));
            return false;
        };
        let last = events.len().saturating_sub(1);
        let mut rows = Vec::new();
        let drawn = match line {
            Line::Operations(_) | Line::Beside(_) => true,
            Line::Derived(_) => name == STEPS,
            _ => false,
        };
        for (place, bytes) in events.into_iter().enumerate() {
            let (event, cut) = Event::of(plane, bytes);
            // A line that was cut ends in an event that may lack its duration and looks whole.
            let cut = cut || (fields.broken && place == last);
            self.broken |= cut;
            // What is counted only, and what a cut left without its duration, has no place in time.
            if event.occurrences.is_some_and(|n| n > 0) {
                self.summed += 1;
            } else if cut {
                account.incomplete += 1;
            } else {
                let start = (i128::from(begins) * PS + i128::from(event.offset)).div_euclid(PS);
                let end =
                    (i128::from(begins) * PS + i128::from(event.offset) + i128::from(event.duration)).div_euclid(PS);
                match (Ns::try_from(start), Ns::try_from(end)) {
                    (Ok(start), Ok(end)) => {
                        account.keep(start, end);
                        if drawn || name == MODULES {
                            rows.push(Row { start, end, id: event.id, name: event.name.unwrap_or_default() });
                        }
                        if !drawn {
                            self.event(track, line, &event, (start, end));
                        }
                    }
                    _ => account.incomplete += 1,
                }
            }
        }
        self.accounts.insert(row, (account, becomes));
        match line {
            Line::Operations(device) => self.operations(plane, (device, id), rows, has.beside),
            Line::Beside(device) => self.beside(plane, device, rows),
            Line::Derived(_) if name == STEPS => self.steps(track, &rows),
            Line::Derived(device) if name == MODULES && !has.steps => self.steps_of_modules((device, id), &rows),
            _ => {}
        }
        matches!(line, Line::Queue(_) | Line::Operations(_))
    }

    /// The track of a line; none of a line that is not kept.
    fn track(&mut self, line: Line, id: i64, name: &str) -> Option<model::TrackId> {
        let track = match line {
            Line::Other => return None,
            Line::Queue(device) | Line::Operations(device) => {
                self.lanes.queue(&mut *self.sink, PROCESS, Some(device), None, id)
            }
            Line::Calls | Line::Thread => self.lanes.thread(&mut *self.sink, PROCESS, id),
            // The first of its queues.
            Line::Beside(device) => self.lanes.queue(&mut *self.sink, PROCESS, Some(device), Some(tpu::BESIDE), 0),
            Line::Derived(device) => {
                if self.derived.len() >= MAX_DERIVED {
                    return None;
                }
                let process = self.lanes.process(&mut *self.sink, PROCESS);
                let kind = TrackKind::DeviceAnnotation;
                let key = TrackKey { kind, process, device: Some(device), context: None, id };
                *self.derived.entry((device, id)).or_insert_with(|| self.sink.track(key))
            }
        };
        if !name.is_empty() {
            self.sink.name_track(track, name);
        }
        Some(track)
    }

    fn event(&mut self, track: model::TrackId, line: Line, event: &Event<'_>, (start, end): (Ns, Ns)) {
        let name = event.name.filter(|name| !name.is_empty());
        self.unnamed += u64::from(name.is_none());
        let name = name.unwrap_or("(unnamed)");
        let category = match line {
            Line::Derived(_) | Line::Other => Category::DeviceRange,
            Line::Queue(_) if name.starts_with("Memset") => Category::Memset,
            Line::Queue(_) if name.starts_with("Memcpy") || event.copy.is_some() => Category::Memcpy,
            Line::Queue(_) | Line::Operations(_) | Line::Beside(_) => Category::Kernel,
            Line::Calls => Category::HostApi,
            // Profilers of before 2024 drew launches among the annotations of their thread, under the name of the kernel.
            Line::Thread if event.correlation.is_some_and(|id| id != 0) => Category::HostApi,
            Line::Thread if event.step => Category::UserRange,
            // The Python tracer begins the name of a function with a dollar.
            Line::Thread if name.starts_with('$') => Category::PythonFrame,
            Line::Thread if name.ends_with("CollectGarbage") => Category::Gc,
            Line::Thread => Category::FrameworkOp,
        };
        let detail = match category {
            Category::Kernel => {
                let side = |key: &str| sides(event.kernel.and_then(|text| value(text, key)));
                let (grid, block) = (side("grid"), side("block"));
                Some(Detail::Kernel(KernelDetail { grid, block, ..KernelDetail::default() }))
            }
            Category::Memcpy | Category::Memset => {
                let direction = direction(name, event.copy).map(|direction| self.sink.intern(direction));
                let bytes = event.copy.and_then(|text| value(text, "size")?.parse().ok()).filter(|n: &i64| *n > 0);
                Some(Detail::Copy(CopyDetail { direction, bytes, ..CopyDetail::default() }))
            }
            Category::HostApi if line == Line::Thread && !name.starts_with("Mem") => {
                Some(Detail::Launch(self.sink.intern(hip::kernel_name(name))))
            }
            _ => None,
        };
        let name = self.sink.intern(hip::kernel_name(name));
        let correlation = event.correlation.filter(|id| *id != 0 && !matches!(line, Line::Derived(_)));
        let dur = end.saturating_sub(start);
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        self.sink.slice(Slice { track, start, dur, name, category, correlation, detail: detail.as_ref() });
    }

    /// Tells what is known at the end.
    pub fn settle(self) {
        let mut accounts: Vec<_> = self.accounts.into_iter().collect();
        accounts.sort_unstable_by_key(|(row, _)| *row);
        for (row, (account, becomes)) in accounts {
            account.tell(&mut *self.sink, "xplane", row, becomes);
        }
        let devices: std::collections::BTreeSet<i32> = self.lanes.devices.iter().map(|(_, device)| *device).collect();
        if !devices.is_empty() {
            self.sink.manifest("hardware.count", &devices.len().to_string(), Provenance::Observed);
        }
        tell_source(&mut *self.sink, self.vendor.as_deref(), self.start, self.first);
        for (name, severity, count) in [
            ("xplane.too_many_tracks", Severity::DataLoss, self.lanes.crowded),
            ("xplane.events_without_time", Severity::Notice, self.summed),
            ("xplane.missing_name", Severity::Notice, self.unnamed),
        ] {
            if count > 0 {
                self.sink.stat(name, severity, count, None);
            }
        }
    }
}
