//! The Chrome trace that TensorFlow's `timeline.py` makes of `RunMetadata`: a process per device, named by it. Times are whole µs
//! since the epoch.
//!
//! `/device:GPU:0/stream:14 Compute` is what the device's tracer saw on a stream, `stream:all` its kernels again, `memcpy` its
//! copies again. `/job:…/device:GPU:0 Compute` (`…/gpu:0` before 2017) is when the executor ran the operations that it placed on
//! the device: times of the host, over which a kernel is launched and not awaited; `Shape` and `Const`, which run on the host
//! wherever they are placed, are among them. A run that was not traced in full has only these. Source:
//! `tensorflow/python/client/timeline.py`, `core/platform/default/device_tracer.cc` and `core/common_runtime/executor.cc`, and a
//! file of 2016.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use model::{
    Category, Clock, CopyDetail, Detail, Device, KernelDetail, Ns, Provenance, Severity, Slice, TraceSink, TrackId,
};
use rustc_hash::FxHashMap;

#[cfg(test)]
mod tests;

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions,
    chrome_event::{Event, micros},
    json::member,
    json_walk::{List, walk},
    lanes::{Account, Lanes},
    simulated,
};

/// A timeline of TensorFlow.
pub const FORMAT: Format =
    Format { id: "tf-timeline", name: "TensorFlow timeline of RunMetadata, JSON", matches, read, lead: crate::alone };

/// The one process: the file names none.
const PROCESS: u64 = 0;
/// Most processes of the file that are told apart; a run has some per device.
const MAX_NAMES: usize = 1 << 12;
/// Contexts of rows that are no stream's.
const ALL: i64 = 1;
const COPIES: i64 = 2;
/// How the names of processes with operations end.
const COMPUTE: &str = " Compute";

/// What the operations of a process are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// What ran on a stream of a device.
    Stream(i32, i64),
    /// What ran on any stream of a device.
    All(i32),
    /// Copies of a device.
    Copies(i32),
    /// What the executor ran for a device, or on the host.
    Placed(Option<i32>),
    /// Tensors and allocators.
    Other,
}

impl Lane {
    /// The lane of a process with this name.
    fn named(name: &str) -> Self {
        let Some(device) = name.strip_suffix(COMPUTE).filter(|device| device.starts_with('/')) else {
            return Self::Other;
        };
        let lower = device.to_ascii_lowercase();
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        let ordinal = lower.rsplit_once("gpu:").and_then(|(_, rest)| digits(rest).parse::<i32>().ok());
        match (ordinal, lower.rsplit_once("/stream:")) {
            (Some(ordinal), Some((_, stream))) => {
                digits(stream).parse().map_or(Self::All(ordinal), |stream| Self::Stream(ordinal, stream))
            }
            (Some(ordinal), None) if lower.ends_with("/memcpy") => Self::Copies(ordinal),
            _ => Self::Placed(ordinal),
        }
    }

    fn account(self) -> (&'static str, &'static str) {
        match self {
            Self::Stream(..) | Self::All(_) | Self::Copies(_) => {
                ("device operations", "kernel; memcpy and memset by name")
            }
            Self::Placed(Some(_)) => ("operations placed on a device", "framework_op: times of the host"),
            Self::Placed(None) => ("operations placed on the host", "framework_op"),
            Self::Other => ("tensors and allocators", "not kept: no work"),
        }
    }
}

/// Where the events lie.
fn events(place: &str) -> List {
    if place == "traceEvents" { List::Give } else { List::Skip }
}

fn matches(head: &Head<'_>) -> Match {
    let device = |name: &[u8]| {
        let Some(name) = name.strip_suffix(COMPUTE.as_bytes()).filter(|name| name.starts_with(b"/")) else {
            return false;
        };
        let name = name.to_ascii_lowercase();
        [&b"gpu:"[..], b"cpu:"].iter().any(|kind| memchr::memmem::find(&name, kind).is_some())
    };
    let object = head.bytes.trim_ascii_start().starts_with(b"{") && member::has_key(head.bytes, "traceEvents");
    if object && member::texts(head.bytes, "name").any(device) { Match::Certain } else { Match::No }
}

struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    lanes: Lanes,
    names: FxHashMap<i64, (Lane, String)>,
    /// Devices whose streams are told apart, so that what is told of them together is told twice.
    streamed: BTreeSet<i32>,
    accounts: BTreeMap<(&'static str, &'static str), Account>,
    placed: u64,
    worked: u64,
    unreadable: u64,
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut names: FxHashMap<i64, (Lane, String)> = FxHashMap::default();
    let name = &mut |_: usize, place: &str, raw: &str| {
        if events(place) != List::Give || names.len() >= MAX_NAMES {
            return;
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(raw) else { return };
        if let Some(name) = event.text("name").filter(|_| event.ph == "M" && event.name == "process_name") {
            let shown = name.strip_suffix(COMPUTE).unwrap_or(name).chars().take(256).collect();
            names.insert(event.place().0, (Lane::named(name), shown));
        }
    };
    walk(path, &|_, _| {}, &events, name)?;
    let stream = |lane: &Lane| if let Lane::Stream(device, _) = lane { Some(*device) } else { None };
    let streamed = names.values().filter_map(|(lane, _)| stream(lane)).collect();
    let mut import = Import {
        sink,
        lanes: Lanes::default(),
        names,
        streamed,
        accounts: BTreeMap::new(),
        placed: 0,
        worked: 0,
        unreadable: 0,
    };
    let take = &mut |_: usize, place: &str, raw: &str| {
        if events(place) == List::Give {
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
            expected: format!("events of a timeline of TensorFlow ({})", broken.unwrap_or_else(|| "none".to_owned())),
            next: "write it again with Timeline(run_metadata.step_stats).generate_chrome_trace_format()".to_owned(),
        });
    }
    import.settle(broken);
    Ok(())
}

impl Import<'_> {
    fn take(&mut self, event: &Event<'_>) {
        let (pid, row) = event.place();
        let lane = self.names.get(&pid).map_or(Lane::Other, |(lane, _)| *lane);
        let becomes = match event.ph.as_str() {
            "X" => lane.account(),
            "C" => return self.counter(event),
            "s" | "t" | "f" => ("arrows", "not kept: which operation needs which"),
            "M" => return,
            _ => Lane::Other.account(),
        };
        let mut account = self.accounts.get(&becomes).copied().unwrap_or_default();
        account.read += 1;
        if event.ph == "X" && lane != Lane::Other {
            match event.times() {
                Some(times) if self.add(lane, (pid, row), event, times) => account.keep(times.0, times.1),
                Some(_) => {}
                None => account.incomplete += 1,
            }
        }
        self.accounts.insert(becomes, account);
    }

    /// Adds an operation, unless another row says the same.
    fn add(&mut self, lane: Lane, (pid, row): (i64, i64), event: &Event<'_>, times: (Ns, Ns)) -> bool {
        let (device, context, queue) = match lane {
            Lane::All(device) | Lane::Copies(device) if self.streamed.contains(&device) => return false,
            Lane::Stream(device, stream) => (device, None, stream),
            Lane::All(device) => (device, Some(ALL), row),
            Lane::Copies(device) => (device, Some(COPIES), row),
            Lane::Placed(device) => {
                self.placed += u64::from(device.is_some());
                // Rows of the file are made so that operations lie side by side; they are no threads, and as good as any.
                let thread = pid.wrapping_shl(20).wrapping_add(row);
                let track = self.lanes.thread(&mut *self.sink, PROCESS, thread);
                if let Some((_, name)) = self.names.get(&pid) {
                    self.sink.name_track(track, &format!("{name} #{row}"));
                }
                self.slice(track, event, times, Category::FrameworkOp, None);
                return true;
            }
            Lane::Other => return false,
        };
        self.worked += 1;
        let track = self.lanes.queue(&mut *self.sink, PROCESS, Some(device), context, queue);
        let (category, direction) = work(&event.name, lane);
        let detail = match category {
            Category::Kernel => Detail::Kernel(KernelDetail::default()),
            _ => {
                let direction = direction.map(|direction| self.sink.intern(direction));
                Detail::Copy(CopyDetail { direction, ..CopyDetail::default() })
            }
        };
        self.slice(track, event, times, category, Some(&detail));
        true
    }

    fn slice(
        &mut self,
        track: TrackId,
        event: &Event<'_>,
        (start, end): (Ns, Ns),
        category: Category,
        detail: Option<&Detail>,
    ) {
        let name = self.sink.intern(if event.name.is_empty() { "(unnamed)" } else { &event.name });
        let dur = end.saturating_sub(start);
        self.sink.slice(Slice { track, start, dur, name, category, correlation: None, detail });
    }

    /// Bytes that an allocator has given out.
    fn counter(&mut self, event: &Event<'_>) {
        let becomes = ("allocators", "counters");
        let mut account = self.accounts.get(&becomes).copied().unwrap_or_default();
        account.read += 1;
        let value = event.args.iter().find_map(|(name, value)| Some((name.as_str(), value.as_f64()?)));
        match (micros(event.ts), value) {
            (Some(at), Some((name, value))) => {
                account.keep(at, at);
                let name = self.sink.intern(name);
                let process = self.lanes.process(&mut *self.sink, PROCESS);
                self.sink.counter(process, None, name, "B", at, value);
            }
            _ => account.incomplete += 1,
        }
        self.accounts.insert(becomes, account);
    }

    fn settle(mut self, broken: Option<String>) {
        for ((table, becomes), account) in &self.accounts {
            account.tell(&mut *self.sink, "tf-timeline", table, becomes);
        }
        let untraced = if self.worked == 0 { self.placed } else { 0 };
        for (name, severity, count, why) in [
            ("unreadable_event", Severity::DataLoss, self.unreadable, None),
            ("too_many_tracks", Severity::DataLoss, self.lanes.crowded, None),
            (
                "operations_without_device_times",
                Severity::Notice,
                untraced,
                Some("the executor's times on the host; run with RunOptions(trace_level=RunOptions.FULL_TRACE)"),
            ),
        ] {
            if count > 0 {
                self.sink.stat(&format!("tf-timeline.{name}"), severity, count, why);
            }
        }
        if let Some(why) = broken {
            self.sink.stat("tf-timeline.damaged_file", Severity::DataLoss, 1, Some(&why));
        }
        let process = self.lanes.process(&mut *self.sink, PROCESS);
        let ordinals: BTreeSet<i32> = self.lanes.devices.iter().map(|(_, ordinal)| *ordinal).collect();
        for ordinal in &ordinals {
            let (name, vendor, cores, memory_bytes) = (None, None, None, None);
            self.sink.device(Device { process, ordinal: *ordinal, name, vendor, cores, memory_bytes });
        }
        if !ordinals.is_empty() {
            self.sink.manifest("hardware.count", &ordinals.len().to_string(), Provenance::Observed);
        }
        self.sink.manifest("measurement.traced", "tensorflow", Provenance::Observed);
        self.sink.manifest("software.profiler", "TensorFlow timeline", Provenance::Observed);
        self.sink.clock(Clock::FromFirstSlice { unix_offset: Some(0) });
    }
}

/// What an operation of a device is, and the direction of a copy: `MEMCPYHtoD` and the like are the tracer's names.
fn work(name: &str, lane: Lane) -> (Category, Option<&'static str>) {
    let upper = name.to_ascii_uppercase();
    let direction = [("HTOD", "HtoD"), ("DTOH", "DtoH"), ("DTOD", "DtoD"), ("PTOP", "PtoP"), ("HTOH", "HtoH")]
        .iter()
        .find(|(mark, _)| upper.contains(mark))
        .map(|(_, short)| *short);
    match lane {
        _ if upper.starts_with("MEMSET") => (Category::Memset, None),
        Lane::Copies(_) => (Category::Memcpy, direction),
        _ if upper.starts_with("MEMCPY") => (Category::Memcpy, direction),
        _ => (Category::Kernel, None),
    }
}
