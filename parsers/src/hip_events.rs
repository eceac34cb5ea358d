//! Chrome-trace events as the profilers that descend from roctracer write them: a lane per kind of activity, in the place
//! where others have the process, and the process itself among the arguments.

use std::path::Path;

use model::{Category, Clock, CopyDetail, Detail, KernelDetail, Ns, Severity, Slice, TraceSink};
use rustc_hash::FxHashMap;
use serde_json::Value;

mod flows;

use flows::Flows;

use crate::{
    Place, Progress, ReadError,
    chrome_event::{Event, int, ordinal},
    hip,
    json_walk::{List, walk},
    lanes::{Account, Lanes},
    simulated,
};

/// Most lanes whose name is remembered; a machine has some twenty.
const MAX_LANES: usize = 1 << 12;

/// Contexts of tracks whose numbers are not those of the kernels' hardware queues.
const COPIES: i64 = 1;
const STREAMS: i64 = 2;

/// What the events of a lane are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Api,
    Markers,
    Copy,
    Gpu(i32),
    Barriers,
    Other,
}

impl Lane {
    /// The lane with this name, such as `CPU HIP API`, `COPY` or `GPU0`.
    fn named(name: &str) -> Self {
        let gpu = name.split_once("GPU").map(|(_, number)| number.trim());
        if name.contains("Barrier") {
            Self::Barriers
        } else if name.contains("Marker") || name.contains("ROCTX") {
            Self::Markers
        } else if name.contains("API") {
            Self::Api
        } else if name.contains("COPY") || name.contains("Copy") {
            Self::Copy
        } else if let Some(number) = gpu {
            let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
            Self::Gpu(digits.parse().unwrap_or(0))
        } else {
            Self::Other
        }
    }

    /// The lane with this number, where it has no name. Source: roctracer's `tblextr.py`.
    fn numbered(pid: i64) -> Self {
        match pid {
            0 => Self::Markers,
            1 => Self::Copy,
            2 | 3 => Self::Api,
            6..=517 => i32::try_from(pid - 6).map_or(Self::Other, Self::Gpu),
            518.. => Self::Barriers,
            _ => Self::Other,
        }
    }

    /// The lane of a category, where the writer has categories. Source: files of hipprof 25.10.
    fn of_category(cat: &str) -> Option<Self> {
        Some(match cat {
            "HIP" | "HSA" => Self::Api,
            "HIPOPS" | "HSAOPS" => Self::Gpu(0),
            "HIPCOPY" | "HSACOPY" => Self::Copy,
            "ROCTX" | "roctx" => Self::Markers,
            _ => return None,
        })
    }

    fn account(self) -> (&'static str, &'static str) {
        match self {
            Self::Api => ("API", "host_api"),
            Self::Markers => ("markers", "user_range"),
            Self::Copy => ("COPY", "memcpy; memset by name"),
            Self::Gpu(_) => ("GPU", "kernel; memcpy and memset by name"),
            Self::Barriers => ("GPU barriers", "not kept: waits of queues, no work"),
            Self::Other => ("other lanes", "not kept: unknown to this version"),
        }
    }
}

/// The number that links an event to another one, where it has any.
fn numbered(event: &Event<'_>) -> Option<i64> {
    event.arg(&["Index", "correlation_id", "CorrelationId"])
}

struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    flows: Flows,
    lanes: Lanes,
    owners: hip::Owners,
    names: FxHashMap<i64, Lane>,
    accounts: std::collections::BTreeMap<&'static str, (Account, &'static str)>,
    unreadable: u64,
}

/// What tells one profiler's file from another's.
pub(crate) struct Profiler {
    /// Id of the format, which its statistics begin with.
    pub format: &'static str,
    /// Vendor of the devices.
    pub vendor: &'static str,
    /// Whether arrows may link events that have no number.
    pub arrows: bool,
}

/// Reads the file.
///
/// # Errors
/// [`ReadError`] when no event of a known lane is in it.
pub(crate) fn read(
    path: &Path,
    profiler: &Profiler,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let flows = if profiler.arrows { Flows::of(path, progress)? } else { Flows::default() };
    let mut import = Import {
        sink,
        flows,
        lanes: Lanes::default(),
        owners: hip::Owners::default(),
        names: FxHashMap::default(),
        accounts: std::collections::BTreeMap::new(),
        unreadable: 0,
    };
    let list = |place: &str| if place.is_empty() || place == "traceEvents" { List::Give } else { List::Skip };
    let take = &mut |_: usize, place: &str, raw: &str| {
        if list(place) == List::Give && raw.starts_with('{') {
            import.take(raw);
        } else if place == "otherData.stratoSimulated" && raw == "true" {
            simulated::tell(&mut *import.sink);
        }
    };
    let broken = walk(path, progress, &list, take)?;
    if import.accounts.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("events of {} ({})", profiler.format, broken.unwrap_or_else(|| "none".to_owned())),
            next: "check that the profiler wrote it to the end".to_owned(),
        });
    }
    for (name, (account, becomes)) in &import.accounts {
        account.tell(&mut *import.sink, profiler.format, name, becomes);
    }
    let stat = |name: &str| format!("{}.{name}", profiler.format);
    for (name, count) in [("unreadable_event", import.unreadable), ("too_many_tracks", import.lanes.crowded)] {
        if count > 0 {
            import.sink.stat(&stat(name), Severity::DataLoss, count, None);
        }
    }
    import.owners.tell(&mut *import.sink, profiler.format);
    if let Some(why) = broken {
        import.sink.stat(&stat("damaged_file"), Severity::DataLoss, 1, Some(&why));
    }
    import.lanes.describe(&mut *import.sink, profiler.vendor);
    hip::manifest(&mut *import.sink, profiler.vendor, profiler.format);
    import.sink.clock(Clock::FromFirstSlice { unix_offset: None });
    Ok(())
}

impl Import<'_> {
    fn take(&mut self, raw: &str) {
        let Ok(event) = serde_json::from_str::<Event<'_>>(raw) else {
            self.unreadable += 1;
            return;
        };
        let pid = int(Some(&event.pid)).unwrap_or(-1);
        if event.ph == "M" && event.name == "process_name" {
            if let Some(name) = event.args.get("name").and_then(Value::as_str).filter(|_| self.names.len() < MAX_LANES)
            {
                self.names.insert(pid, Lane::named(name));
            }
            return;
        }
        // Other phases are names, flow arrows, and the empty object that begins the list.
        if event.ph != "X" {
            return;
        }
        let named = || self.names.get(&pid).copied().unwrap_or_else(|| Lane::numbered(pid));
        let lane = Lane::of_category(&event.cat).unwrap_or_else(named);
        let (name, becomes) = lane.account();
        let mut account = self.accounts.get(name).copied().unwrap_or((Account::default(), becomes)).0;
        account.read += 1;
        match event.times() {
            None => account.incomplete += 1,
            Some(times) if self.add(lane, &event, times) => account.keep(times.0, times.1),
            Some(_) => {}
        }
        self.accounts.insert(name, (account, becomes));
    }

    /// Adds an event if its lane is kept.
    fn add(&mut self, lane: Lane, event: &Event<'_>, (start, end): (Ns, Ns)) -> bool {
        let said = event.arg(&["pid"]);
        let by_lane = said.is_some() && said == int(Some(&event.pid));
        let owner = event.arg(&["proc-id", "procId"]);
        let (process, pid) = self.owners.of(by_lane || said.is_none() && owner.is_some(), said, owner);
        let correlation = numbered(event).or_else(|| self.flows.number(event));
        let id = self.lanes.process(&mut *self.sink, process);
        self.sink.describe_process(id, pid, None, None);
        let (track, category) = match lane {
            Lane::Api | Lane::Markers => {
                let thread = event.arg(&["tid"]).or(ordinal(&event.tid)).unwrap_or(-1);
                let category = if lane == Lane::Api { Category::HostApi } else { Category::UserRange };
                (self.lanes.thread(&mut *self.sink, process, thread), category)
            }
            Lane::Copy | Lane::Gpu(_) => {
                let number = if let Lane::Gpu(number) = lane { Some(number) } else { None };
                let device = event.arg(&["dev-id", "devId"]).and_then(|n| i32::try_from(n).ok()).or(number);
                // A stream orders its kernels and copies; a hardware queue has the one or the other.
                let stream = event.arg(&["stream-id", "streamId"]);
                let queue = stream.or(event.arg(&["queue-id", "queueId"])).or(ordinal(&event.tid)).unwrap_or(-1);
                let copies = match (stream, lane) {
                    (Some(_), _) => Some(STREAMS),
                    (None, Lane::Copy) => Some(COPIES),
                    _ => None,
                };
                let otherwise = if lane == Lane::Copy { Category::Memcpy } else { Category::Kernel };
                let category = hip::operation(&event.name, otherwise);
                (self.lanes.queue(&mut *self.sink, process, device, copies, queue), category)
            }
            Lane::Barriers | Lane::Other => return false,
        };
        let name = self.sink.intern(hip::kernel_name(&event.name));
        let detail = match category {
            Category::Kernel => Some(Detail::Kernel(KernelDetail::default())),
            Category::Memcpy | Category::HostApi => {
                // The lane calls a copy from a peer one within the device; the call knows.
                let said =
                    if category == Category::Memcpy { hip::direction(&event.name) } else { hip::asked(&event.name) };
                let bytes = event.arg(&["Bytes", "bytes"]).filter(|_| category == Category::Memcpy);
                let copy = |direction| CopyDetail { direction: Some(direction), bytes, ..CopyDetail::default() };
                said.map(|direction| Detail::Copy(copy(self.sink.intern(direction))))
            }
            _ => None,
        };
        let dur = end.saturating_sub(start);
        self.sink.slice(Slice { track, start, dur, name, category, correlation, detail: detail.as_ref() });
        true
    }
}
