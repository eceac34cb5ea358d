//! rocmProfileData as the Chrome trace that its `rpd2tracing.py` writes of a database: a process per GPU named `GPU2`, threads
//! named `Hip 71`, an arrow from each call to the work it caused. Times are whole µs since boot, in quotes. Source:
//! `tools/rpd2tracing.py` of the project, and a file of 2024.

use std::path::Path;

use model::{
    Category, Clock, CollectiveCall, CopyDetail, Detail, KernelDetail, Ns, Provenance, Severity, Slice, TraceSink,
    TrackId, TrackKey, TrackKind,
};
use serde_json::Value;

mod arrows;
#[cfg(test)]
mod tests;

use arrows::Arrows;

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions,
    chrome_event::{Event, micros},
    hip,
    json::member,
    json_walk::{List, walk},
    lanes::{Account, Lanes},
    nccl, simulated,
};

/// The Chrome trace of rocmProfileData.
pub const FORMAT: Format =
    Format { id: "rpd-json", name: "rocmProfileData trace, JSON (rpd2tracing.py)", matches, read, lead: crate::alone };

/// What the operations of a device are called, and what their names begin with.
const KINDS: [&str; 6] = ["KernelExecution", "Task", "Copy", "Fill", "Barrier", "Marker"];
/// What the program calls the ranges of the host that it drew beside the operations.
const FRAME: &str = "UserMarker frame";
/// Tables of the ledger.
const OPERATIONS: (&str, &str) = ("device operations", "kernel; memcpy and memset by kind");
const FRAMES: (&str, &str) = ("frames of operations", "device_range: graphs and markers over their operations");
const CALLS: (&str, &str) =
    ("calls", "host_api; user_range of markers, collective_call of RCCL, overhead of the tracer");
const COUNTERS: (&str, &str) = ("monitors", "counters");

/// Where the events lie: a list, or the member of an object.
fn events(place: &str) -> List {
    if place.is_empty() || place == "traceEvents" { List::Give } else { List::Skip }
}

fn matches(head: &Head<'_>) -> Match {
    let json = head.bytes.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'[' | b'{'));
    let numbered = |name: &[u8], word: &[u8]| {
        name.strip_prefix(word).is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    };
    let named = |word: &[u8]| member::texts(head.bytes, "name").any(|name| numbered(name, word));
    let kind = |text: &[u8]| KINDS.iter().any(|kind| text.starts_with(kind.as_bytes()));
    let own = || {
        member::has_key(head.bytes, "ph")
            && named(b"GPU")
            && (named(b"Hip ") || named(b"HSA "))
            && member::texts(head.bytes, "desc").any(kind)
    };
    if json && own() { Match::Certain } else { Match::No }
}

struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    arrows: Arrows,
    lanes: Lanes,
    accounts: std::collections::BTreeMap<(&'static str, &'static str), Account>,
    unreadable: u64,
    unlinked: u64,
    /// Values that the program derived, which are not kept.
    derived: u64,
    instants: u64,
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let arrows = Arrows::of(path, options.progress)?;
    let mut import = Import {
        sink,
        arrows,
        lanes: Lanes::default(),
        accounts: std::collections::BTreeMap::new(),
        unreadable: 0,
        unlinked: 0,
        derived: 0,
        instants: 0,
    };
    let take = &mut |_: usize, place: &str, raw: &str| {
        if events(place) == List::Give && raw.starts_with('{') {
            match serde_json::from_str::<Event<'_>>(raw) {
                Ok(event) => import.take(&event),
                Err(_) => import.unreadable += 1,
            }
        } else if place == "otherData.stratoSimulated" && raw == "true" {
            simulated::tell(&mut *import.sink);
        }
    };
    let broken = walk(path, options.progress, &events, take)?;
    if import.accounts.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("events of rocmProfileData ({})", broken.unwrap_or_else(|| "none".to_owned())),
            next: "give the database (.rpd) itself, or run 'rpd2tracing.py trace.rpd trace.json' again".to_owned(),
        });
    }
    import.settle(broken);
    Ok(())
}

impl Import<'_> {
    fn take(&mut self, event: &Event<'_>) {
        let on_device = self.arrows.gpus.contains(&event.place().0);
        let becomes = match event.ph.as_str() {
            "X" if on_device && is_operation(event) => OPERATIONS,
            "X" if on_device && is_frame(event) => FRAMES,
            // A process of the host may have the number of a GPU.
            "X" => CALLS,
            "C" => return self.counter(event),
            "i" => {
                self.instants += 1;
                return;
            }
            // Names, arrows, and the empty object that begins the list.
            _ => return,
        };
        let mut account = self.accounts.get(&becomes).copied().unwrap_or_default();
        account.read += 1;
        match event.times() {
            Some(times) => {
                account.keep(times.0, times.1);
                match becomes {
                    OPERATIONS => self.operation(event, times),
                    FRAMES => self.frame(event, times),
                    _ => self.call(event, times),
                }
            }
            None => account.incomplete += 1,
        }
        self.accounts.insert(becomes, account);
    }

    /// What a device did. Its kind stands among the arguments, and instead of a name where it has none.
    fn operation(&mut self, event: &Event<'_>, (start, end): (Ns, Ns)) {
        let (gpu, queue) = event.place();
        let kind = event.text("desc").unwrap_or_default();
        let cause = self.arrows.cause((gpu, queue, start));
        self.unlinked += u64::from(cause.is_none());
        let category = match kind {
            _ if kind.starts_with("Copy") => Category::Memcpy,
            _ if kind.starts_with("Fill") => Category::Memset,
            _ if kind.contains("Barrier") || kind.contains("Marker") => Category::DeviceSync,
            _ => Category::Kernel,
        };
        let detail = match category {
            Category::Kernel => Some(Detail::Kernel(KernelDetail::default())),
            Category::Memcpy => {
                let direction = hip::direction(kind).map(|direction| self.sink.intern(direction));
                Some(Detail::Copy(CopyDetail { direction, ..CopyDetail::default() }))
            }
            _ => None,
        };
        let process = cause.map(|(pid, _)| pid).or(self.arrows.only_process()).map_or(0, i64::cast_unsigned);
        let device = i32::try_from(gpu).ok();
        let track = self.lanes.queue(&mut *self.sink, process, device, None, queue);
        self.slice(track, event, (start, end), category, cause.map(|(_, number)| number), detail.as_ref());
    }

    /// What the program drew over operations: the whole of a graph, or the marker under which they were launched.
    fn frame(&mut self, event: &Event<'_>, times: (Ns, Ns)) {
        let (gpu, queue) = event.place();
        let process = self.arrows.only_process().map_or(0, i64::cast_unsigned);
        let process = self.lanes.process(&mut *self.sink, process);
        let key = TrackKey {
            kind: TrackKind::DeviceAnnotation,
            process,
            device: i32::try_from(gpu).ok(),
            context: None,
            id: queue,
        };
        let track = self.lanes.track(&mut *self.sink, key);
        self.slice(track, event, times, Category::DeviceRange, None, None);
    }

    fn call(&mut self, event: &Event<'_>, (start, end): (Ns, Ns)) {
        let (pid, tid) = event.place();
        let name = event.name.as_str();
        let collective = nccl::collective(name);
        let category = match name {
            _ if hip::is_rpd_tracer(name) => Category::Overhead,
            _ if ["hip", "hsa_", "cu", "__hip"].iter().any(|prefix| name.starts_with(prefix)) => Category::HostApi,
            _ if collective.is_some() => Category::CollectiveCall,
            // Of a marker the program writes the text twice.
            _ if event.text("desc") == Some(name) => Category::UserRange,
            _ => Category::HostOther,
        };
        let detail = match (category, collective, hip::asked(name)) {
            (Category::CollectiveCall, Some(op), _) => {
                let call = CollectiveCall { op: Some(self.sink.intern(op)), ..CollectiveCall::default() };
                Some(Detail::Collective(Box::new(call)))
            }
            (Category::HostApi, _, Some(direction)) => {
                let direction = Some(self.sink.intern(direction));
                Some(Detail::Copy(CopyDetail { direction, ..CopyDetail::default() }))
            }
            _ => None,
        };
        let number = self.arrows.number((pid, tid, start, end)).filter(|_| category == Category::HostApi);
        let process = self.lanes.process(&mut *self.sink, pid.cast_unsigned());
        self.sink.describe_process(process, Some(pid), None, None);
        let track = self.lanes.thread(&mut *self.sink, pid.cast_unsigned(), tid);
        self.slice(track, event, (start, end), category, number, detail.as_ref());
    }

    fn slice(
        &mut self,
        track: TrackId,
        event: &Event<'_>,
        (start, end): (Ns, Ns),
        category: Category,
        correlation: Option<i64>,
        detail: Option<&Detail>,
    ) {
        let name = if event.name.is_empty() { "(unnamed)" } else { hip::kernel_name(&event.name) };
        let name = self.sink.intern(name);
        self.sink.slice(Slice { track, start, dur: end.saturating_sub(start), name, category, correlation, detail });
    }

    /// What a monitor saw, by the name that stands among the arguments. Idle, queue depth and allocated memory are sums of the
    /// calls and operations that the file holds.
    fn counter(&mut self, event: &Event<'_>) {
        let value = event.args.iter().find_map(|(name, value)| Some((name.as_str(), value.as_f64()?)));
        if value.is_some_and(|(name, _)| matches!(name, "idle" | "depth")) {
            self.derived += 1;
            return;
        }
        let mut account = self.accounts.get(&COUNTERS).copied().unwrap_or_default();
        account.read += 1;
        match (micros(event.ts), value) {
            (Some(at), Some((kind, value))) => {
                account.keep(at, at);
                let unit = if matches!(kind, "sclk" | "mclk") { "MHz" } else { "" };
                let name = self.sink.intern(kind);
                let process = self.arrows.first_process().map_or(0, i64::cast_unsigned);
                let process = self.lanes.process(&mut *self.sink, process);
                // The place of a monitor is the number of its device, whether anything ran there or not.
                let device = i32::try_from(event.place().0).ok().filter(|device| *device >= 0);
                self.sink.counter(process, device, name, unit, at, value);
            }
            _ => account.incomplete += 1,
        }
        self.accounts.insert(COUNTERS, account);
    }

    fn settle(mut self, broken: Option<String>) {
        for ((table, becomes), account) in &self.accounts {
            account.tell(&mut *self.sink, "rpd-json", table, becomes);
        }
        for (row, count, why) in [
            ("derived counters", self.derived, "not kept: sums of what the file holds"),
            ("instants", self.instants, "not kept: instants mark no work"),
        ] {
            if count > 0 {
                self.sink.ledger(row, count, 0, 0, why);
            }
        }
        for (name, severity, count) in [
            ("unreadable_event", Severity::DataLoss, self.unreadable),
            ("too_many_tracks", Severity::DataLoss, self.lanes.crowded),
            ("operations_without_call", Severity::Notice, self.unlinked),
            ("arrows_without_call", Severity::Notice, self.arrows.lost),
        ] {
            if count > 0 {
                self.sink.stat(&format!("rpd-json.{name}"), severity, count, None);
            }
        }
        if let Some(why) = broken {
            self.sink.stat("rpd-json.damaged_file", Severity::DataLoss, 1, Some(&why));
        }
        self.sink.stat("rpd-json.times_in_us", Severity::Info, 1, Some("rpd2tracing.py cuts times to whole µs"));
        self.lanes.describe(&mut *self.sink, "amd");
        self.sink.manifest("hardware.vendor", "amd", Provenance::Observed);
        self.sink.manifest("measurement.traced", "rpd", Provenance::Observed);
        self.sink.manifest("software.profiler", "rocmProfileData", Provenance::Observed);
        self.sink.clock(Clock::FromFirstSlice { unix_offset: None });
    }
}

/// Whether a row of a device is one of its operations. Rows over several of them count these, or say that they are frames.
fn is_operation(event: &Event<'_>) -> bool {
    described(event).is_some_and(|kind| KINDS.iter().any(|known| kind.starts_with(known)))
}

/// Whether a row of a GPU's process says where the program was.
fn is_frame(event: &Event<'_>) -> bool {
    described(event).is_none_or(|kind| kind.starts_with(FRAME))
}

/// The description of a row, if it is a text.
fn described<'a>(event: &'a Event<'_>) -> Option<&'a str> {
    match event.args.get("desc") {
        Some(Value::String(kind)) => Some(kind),
        _ => None,
    }
}
