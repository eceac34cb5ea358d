//! What ran on the devices: kernels, copies, fills, whole graphs, and the waits and event records on their queues.

use model::{
    Category, CopyDetail, Detail, ImportStat, KernelDetail, ProcessId, Severity, StringId, SyncKind, TrackId, TrackKey,
    TrackKind, slice::MANAGED,
};
use rustc_hash::FxHashMap;

use super::{
    import::{Import, Kept, MAX_TRACKS},
    page::{
        Column::{self, Int},
        Page,
    },
};

/// `deviceId` and `contextId` of work that ran on no device, as in graphs of host nodes only.
const NO_DEVICE: i64 = 2_147_483_647;
/// `streamId` of a wait for no particular stream.
const NO_STREAM: i64 = 0xFFFF_FFFF;

/// Most (process, device) pairs that are described.
const MAX_DEVICES: usize = 4096;

/// A queue that ran work.
pub(super) struct WorkQueue {
    /// Process key.
    pub process: u64,
    /// Context in the process.
    pub context: Option<i64>,
    /// Stream in the context.
    pub stream: i64,
    /// Its track.
    pub track: TrackId,
}

/// Device queues seen so far.
#[derive(Default)]
pub(super) struct Queues {
    tracks: FxHashMap<Queue, TrackId>,
    /// Device of each context of each process, from the work that ran there.
    devices: FxHashMap<(u64, i64), i64>,
    /// Work queues.
    pub streams: Vec<WorkQueue>,
    /// Devices that processes used, by process key and ordinal.
    pub used: Vec<(u64, ProcessId, i32)>,
}

impl Queues {
    /// Says on which device a context lives; what the work itself said holds.
    pub fn context(&mut self, process: u64, context: i64, device: i64) {
        if self.devices.len() < MAX_TRACKS {
            self.devices.entry((process, context)).or_insert(device);
        }
    }
}

/// What tells a track of a device apart.
#[derive(PartialEq, Eq, Hash)]
struct Queue {
    work: bool,
    process: u64,
    device: Option<i64>,
    context: Option<i64>,
    stream: Option<i64>,
}

/// Where a row of a device table happened, as its columns say.
struct Place {
    device: Option<i64>,
    context: Option<i64>,
    stream: Option<i64>,
    global_pid: Option<i64>,
}

impl Import<'_> {
    /// The track of device work, or of the waits and event records beside it.
    fn queue(&mut self, place: &Place, work: bool) -> TrackId {
        let (key, process) = self.process_of_row(place.global_pid);
        let context = place.context.filter(|context| *context != NO_DEVICE);
        let mut device = place.device.filter(|device| *device != NO_DEVICE);
        match (context, device) {
            (Some(context), Some(device)) if work => self.queues.context(key, context, device),
            // Waits name device 0 whatever device their context lives on.
            (Some(context), _) => device = self.queues.devices.get(&(key, context)).copied().or(device),
            _ => {}
        }
        let stream = place.stream.filter(|stream| *stream != NO_STREAM);
        let known = Queue { work, process: key, device, context, stream };
        if let Some(track) = self.queues.tracks.get(&known) {
            return *track;
        }
        if self.queues.tracks.len() >= MAX_TRACKS {
            self.stat("too_many_queues", Severity::DataLoss, 1, None);
            return self.queues.tracks.values().next().copied().unwrap_or(TrackId(u32::MAX));
        }
        let ordinal = device.and_then(|device| i32::try_from(device).ok());
        let kind = if work { TrackKind::DeviceQueue } else { TrackKind::DeviceSync };
        let id = stream.unwrap_or(-1);
        let track = self.sink.track(TrackKey { kind, process, device: ordinal, context, id });
        self.queues.tracks.insert(known, track);
        if work {
            self.queues.streams.push(WorkQueue { process: key, context, stream: id, track });
        }
        if let Some(ordinal) = ordinal
            && !self.queues.used.contains(&(key, process, ordinal))
            && self.queues.used.len() < MAX_DEVICES
        {
            self.queues.used.push((key, process, ordinal));
        }
        track
    }
}

const START: Column = Int("start", &[]);
const END: Column = Int("end", &[]);
const DEVICE: Column = Int("deviceId", &[]);
const CONTEXT: Column = Int("contextId", &[]);
const STREAM: Column = Int("streamId", &[]);
const CORRELATION: Column = Int("correlationId", &[]);
const PROCESS: Column = Int("globalPid", &[]);

/// Columns of [`kernels`]. Short names merge different kernels, so they only stand in.
pub(super) const KERNEL: &[Column] = &[
    START,
    END,
    DEVICE,
    CONTEXT,
    STREAM,
    CORRELATION,
    PROCESS,
    Int("demangledName", &["shortName", "mangledName"]),
    Int("graphId", &[]),
    Int("graphNodeId", &[]),
    Int("gridX", &[]),
    Int("gridY", &[]),
    Int("gridZ", &[]),
    Int("blockX", &[]),
    Int("blockY", &[]),
    Int("blockZ", &[]),
];

/// `CUPTI_ACTIVITY_KIND_KERNEL`.
pub(super) fn kernels(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [start, end, device, context, stream, correlation, global_pid, name, graph, node] = page.ints(row);
        let (Some(start), Some(end)) = (start, end) else {
            kept.incomplete += 1;
            continue;
        };
        let track = import.queue(&Place { device, context, stream, global_pid }, true);
        let name = import.names.name(&mut *import.sink, name);
        let shape = |first: usize| {
            let side = |lane| page.int(lane, row).and_then(|n| u32::try_from(n).ok());
            Some([side(first)?, side(first + 1)?, side(first + 2)?])
        };
        let node = node.filter(|node| *node != 0);
        let graph = graph.filter(|graph| *graph != 0);
        let detail = Detail::Kernel(KernelDetail {
            graph,
            graph_node: node,
            grid: shape(10),
            block: shape(13),
            collective: None,
        });
        import.slice(&mut kept, track, (start, end), name, Category::Kernel, correlation, Some(&detail));
    }
    kept
}

/// Columns of [`copies`].
pub(super) const MEMCPY: &[Column] = &[
    START,
    END,
    DEVICE,
    CONTEXT,
    STREAM,
    CORRELATION,
    PROCESS,
    Int("bytes", &[]),
    Int("copyKind", &[]),
    Int("srcKind", &[]),
    Int("dstKind", &[]),
    Int("graphNodeId", &[]),
];

/// Labels and short forms of `copyKind`, for exports without `ENUM_CUDA_MEMCPY_OPER`. Source: that table of schema 3.25.
const COPY_KINDS: &[(&str, &str)] = &[
    ("Unknown", ""),
    ("Host-to-Device", "HtoD"),
    ("Device-to-Host", "DtoH"),
    ("Host-to-Array", "HtoA"),
    ("Array-to-Host", "AtoH"),
    ("Array-to-Array", "AtoA"),
    ("Array-to-Device", "AtoD"),
    ("Device-to-Array", "DtoA"),
    ("Device-to-Device", "DtoD"),
    ("Host-to-Host", "HtoH"),
    ("Peer-to-Peer", "PtoP"),
    ("Unified Host-to-Device", "HtoD"),
    ("Unified Device-to-Host", "DtoH"),
    ("Unified Device-to-Device", "DtoD"),
];

/// Labels of memory kinds, for exports without `ENUM_CUDA_MEM_KIND`. Source: that table of schema 3.25.
const MEMORY_KINDS: &[&str] =
    &["pageable", "pinned", "device", "array", "managed", "device static", "managed static", "unknown"];

fn built_in<T: Copy>(list: &[T], value: i64) -> Option<T> {
    usize::try_from(value).ok().and_then(|index| list.get(index).copied())
}

impl Import<'_> {
    /// Name and short direction of a copy.
    fn copy_kind(&mut self, kind: Option<i64>) -> (StringId, Option<StringId>) {
        let known = kind.and_then(|kind| built_in(COPY_KINDS, kind));
        let label = kind.and_then(|kind| self.names.label(COPY_LABELS, kind)).or(known.map(|(label, _)| label));
        let name = match (label, kind) {
            (Some(label), _) => format!("[CUDA memcpy {label}]"),
            (None, Some(kind)) => format!("[CUDA memcpy kind {kind}]"),
            (None, None) => "[CUDA memcpy]".to_owned(),
        };
        let direction = known.filter(|(_, short)| !short.is_empty()).map(|(_, short)| self.sink.intern(short));
        (self.sink.intern(&name), direction)
    }

    /// Name of a memory kind.
    fn memory_kind(&mut self, kind: Option<i64>) -> Option<StringId> {
        let label = self.memory_kind_label(kind)?;
        Some(self.sink.intern(&label))
    }

    /// Text of a memory kind.
    pub(super) fn memory_kind_label(&self, kind: Option<i64>) -> Option<String> {
        let label = self.names.label(MEMORY_LABELS, kind?).map(str::to_lowercase);
        label.or(built_in(MEMORY_KINDS, kind?).map(str::to_owned))
    }
}

/// Table of the labels of `copyKind`.
pub(super) const COPY_LABELS: &str = "ENUM_CUDA_MEMCPY_OPER";
/// Table of the labels of memory kinds.
pub(super) const MEMORY_LABELS: &str = "ENUM_CUDA_MEM_KIND";

/// `copyKind` of what the driver moves of managed memory by itself: no call asked for it. Source: `ENUM_CUDA_MEMCPY_OPER`.
const UNIFIED: std::ops::RangeInclusive<i64> = 11..=13;

/// `CUPTI_ACTIVITY_KIND_MEMCPY`.
pub(super) fn copies(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [start, end, device, context, stream, correlation, global_pid, bytes, kind, src, dst, graph_node] =
            page.ints(row);
        let (Some(start), Some(end)) = (start, end) else {
            kept.incomplete += 1;
            continue;
        };
        let migrates = kind.is_some_and(|kind| UNIFIED.contains(&kind));
        // Migrations have the number of a stream on which the program may have put nothing.
        let track = import.queue(&Place { device, context, stream, global_pid }, !migrates);
        let (name, direction) = import.copy_kind(kind);
        if migrates {
            let managed = Some(import.sink.intern(MANAGED));
            let detail =
                Detail::Copy(CopyDetail { direction, bytes, src: managed, dst: managed, ..CopyDetail::default() });
            import.slice(&mut kept, track, (start, end), name, Category::DeviceOther, None, Some(&detail));
            continue;
        }
        let (src, dst) = (import.memory_kind(src), import.memory_kind(dst));
        let detail =
            Detail::Copy(CopyDetail { direction, src, dst, bytes, graph_node: graph_node.filter(|n| *n != 0) });
        import.slice(&mut kept, track, (start, end), name, Category::Memcpy, correlation, Some(&detail));
    }
    kept
}

/// Columns of [`faults`].
pub(super) const FAULT: &[Column] = &[START, Int("numberOfPageFaults", &[])];

/// `CUDA_UM_CPU_PAGE_FAULT_EVENTS`, a row per fault, and `CUDA_UM_GPU_PAGE_FAULT_EVENTS`, a row per group of faults.
pub(super) fn faults(import: &mut Import<'_>, page: &Page) -> Kept {
    let count = |row| page.int(1, row).and_then(|n| u64::try_from(n).ok()).unwrap_or(1);
    let faults = (0..page.rows).map(count).fold(0, u64::saturating_add);
    if faults > 0 {
        import.sink.stat(ImportStat::PAGE_FAULTS, Severity::Info, faults, None);
    }
    Kept { rows: page.rows as u64, ..Kept::default() }
}

/// Columns of [`fills`].
pub(super) const MEMSET: &[Column] = &[
    START,
    END,
    DEVICE,
    CONTEXT,
    STREAM,
    CORRELATION,
    PROCESS,
    Int("bytes", &[]),
    Int("memKind", &[]),
    Int("graphNodeId", &[]),
];

/// `CUPTI_ACTIVITY_KIND_MEMSET`.
pub(super) fn fills(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let name = import.sink.intern("[CUDA memset]");
    for row in 0..page.rows {
        let [start, end, device, context, stream, correlation, global_pid, bytes, kind, graph_node] = page.ints(row);
        let (Some(start), Some(end)) = (start, end) else {
            kept.incomplete += 1;
            continue;
        };
        let track = import.queue(&Place { device, context, stream, global_pid }, true);
        let dst = import.memory_kind(kind);
        let graph_node = graph_node.filter(|node| *node != 0);
        let detail = Detail::Copy(CopyDetail { direction: None, src: None, dst, bytes, graph_node });
        import.slice(&mut kept, track, (start, end), name, Category::Memset, correlation, Some(&detail));
    }
    kept
}

/// Columns of [`graphs`].
pub(super) const GRAPH: &[Column] =
    &[START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, Int("graphId", &["graphExecId"])];

/// `CUPTI_ACTIVITY_KIND_GRAPH_TRACE`: one row per execution of a whole graph, its nodes unknown.
pub(super) fn graphs(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let mut without_end = 0;
    for row in 0..page.rows {
        let [start, end, device, context, stream, correlation, global_pid, graph] = page.ints(row);
        let Some(start) = start else {
            kept.incomplete += 1;
            continue;
        };
        let end = end.filter(|end| *end != 0).unwrap_or_else(|| {
            without_end += 1;
            start
        });
        let track = import.queue(&Place { device, context, stream, global_pid }, true);
        let name = graph.map_or_else(|| "CUDA graph".to_owned(), |graph| format!("CUDA graph {graph}"));
        let name = import.sink.intern(&name);
        let detail = Detail::Kernel(KernelDetail { graph, ..KernelDetail::default() });
        import.slice(&mut kept, track, (start, end), name, Category::GraphExec, correlation, Some(&detail));
    }
    import.stat("graph_without_end", Severity::Notice, without_end, None);
    kept
}

/// Columns of [`waits`].
pub(super) const SYNCHRONIZATION: &[Column] =
    &[START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, Int("syncType", &["deprecatedSyncType"])];

/// `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`. The call that waited is a row of its own among the host calls; here is what it
/// waited for.
pub(super) fn waits(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [start, end, device, context, stream, correlation, global_pid, kind] = page.ints(row);
        let (Some(start), Some(end)) = (start, end) else {
            kept.incomplete += 1;
            continue;
        };
        let track = import.queue(&Place { device, context, stream, global_pid }, false);
        let (name, kind) = match kind {
            Some(1) => ("event synchronize", Some(SyncKind::Event)),
            Some(2) => ("stream wait event", Some(SyncKind::StreamWaitEvent)),
            Some(3) => ("stream synchronize", Some(SyncKind::Stream)),
            Some(4) => ("context synchronize", Some(SyncKind::Context)),
            _ => ("synchronize", None),
        };
        let name = import.sink.intern(name);
        let detail = kind.map(Detail::Sync);
        import.slice(&mut kept, track, (start, end), name, Category::DeviceSync, correlation, detail.as_ref());
    }
    kept
}

/// Columns of [`events`].
pub(super) const CUDA_EVENT: &[Column] = &[Int("timestamp", &[]), DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS];

/// `CUPTI_ACTIVITY_KIND_CUDA_EVENT`. Before schema 3.25 event records had no time, and where the device did not report
/// one it is 0: those cannot be placed.
pub(super) fn events(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let name = import.sink.intern("event record");
    let mut without_time = 0;
    for row in 0..page.rows {
        let [time, device, context, stream, correlation, global_pid] = page.ints(row);
        let Some(time) = time.filter(|time| *time != 0) else {
            without_time += 1;
            continue;
        };
        let track = import.queue(&Place { device, context, stream, global_pid }, false);
        import.slice(&mut kept, track, (time, time), name, Category::DeviceEvent, correlation, None);
    }
    import.stat("event_record_without_time", Severity::Info, without_time, None);
    kept
}
