//! What both forms write to the sink: host slices, device tasks, collectives and the tasks inside them, each with its row
//! in the ledger.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Beside, Category, CollectiveCall, CopyDetail, Detail, Device, KernelDetail, Manifest, Ns, ProcessId, Provenance,
    Severity, Slice, StringId, SyncKind, TraceSink, TrackId, TrackKey, TrackKind,
};
use rustc_hash::FxHashMap;

use super::{
    collective::{Name, element_bytes},
    inside::Inside,
    task::Task,
    times::{Recorded, Times},
    told::Told,
};

/// Most tracks that are told apart; a track costs more memory than the event that asks for it.
const MAX_TRACKS: usize = 1 << 16;
/// Most communicators whose number and name are kept; a rank is in a handful.
const MAX_COMMUNICATORS: usize = 256;
/// "None" in fields of 32 bits: no peer, no model, no connection.
pub(super) const NONE: i64 = 4_294_967_295;
/// Ranks beyond this are damage; the largest jobs known have some ten thousand.
const MAX_RANK: i64 = 1 << 20;

/// Where device work lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub process: ProcessId,
    pub device: i32,
    pub stream: i64,
}

/// A task of the device as either form gives it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceTask<'t> {
    pub place: Place,
    pub start: Ns,
    pub end: Ns,
    pub name: &'t str,
    pub task_type: &'t str,
    pub task: Task,
    /// Id of the call that caused it.
    pub connection: Option<i64>,
    /// Graph that replays it.
    pub model: Option<i64>,
    /// Cores it ran on.
    pub blocks: Option<u32>,
    /// What a table says of a kernel's operator.
    pub told: Option<Told>,
    /// Bytes of a copy.
    pub bytes: Option<i64>,
    /// Direction of a copy as the source spells it.
    pub direction: Option<&'t str>,
}

/// A collective as either form gives it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collective<'t> {
    pub process: ProcessId,
    pub device: i32,
    /// Name of the group; from the collective's own name where the source says none.
    pub group: Option<&'t str>,
    pub start: Ns,
    pub end: Ns,
    pub name: &'t str,
    pub connection: Option<i64>,
    pub dtype: Option<&'t str>,
    pub count: Option<i64>,
    pub group_size: Option<u32>,
}

/// A task inside a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'t> {
    pub process: ProcessId,
    pub device: i32,
    pub plane: i64,
    pub start: Ns,
    pub end: Ns,
    pub name: &'t str,
    /// Rank at the other end.
    pub peer: Option<i64>,
    pub own: Option<i64>,
}

/// An import under way.
pub(super) struct Import<'a> {
    pub sink: &'a mut dyn TraceSink,
    tracks: FxHashMap<TrackKey, TrackId>,
    devices: BTreeSet<(ProcessId, i32)>,
    /// Largest rank seen at either end of a transfer or wait.
    last_peer: Option<i64>,
    /// First start of all.
    pub first: Option<Ns>,
    /// What the profiler summed of each collective.
    pub times: Times,
    /// Collectives of which it did.
    summed: Vec<Recorded>,
    /// Devices whose tasks inside collectives were recorded.
    inside: BTreeSet<(ProcessId, i32)>,
    /// Tasks of which only time tells that they lie inside a collective.
    loose: Inside,
    /// Communicators by the number that the analysis of the profiler gives them, with their names.
    communicators: BTreeMap<String, String>,
    /// Kernels whose operator a table types, and those of which it tells shapes.
    told: (u64, u64),
}

impl<'a> Import<'a> {
    pub fn new(sink: &'a mut dyn TraceSink) -> Self {
        Self {
            sink,
            tracks: FxHashMap::default(),
            devices: BTreeSet::new(),
            last_peer: None,
            first: None,
            times: Times::default(),
            summed: Vec::new(),
            inside: BTreeSet::new(),
            loose: Inside::default(),
            communicators: BTreeMap::new(),
            told: (0, 0),
        }
    }

    /// The first device that did anything, 0 before.
    #[cfg(feature = "sqlite")]
    pub fn only_device(&self) -> i32 {
        self.devices.first().map_or(0, |(_, device)| *device)
    }

    /// Adds to a statistic of this format.
    pub fn stat(&mut self, name: &str, severity: Severity, count: u64, example: Option<&str>) {
        if count > 0 {
            self.sink.stat(&format!("ascend.{name}"), severity, count, example);
        }
    }

    /// The track with this key, named when it is new.
    pub fn track(&mut self, key: TrackKey, name: Option<&str>) -> TrackId {
        if let Some(track) = self.tracks.get(&key) {
            return *track;
        }
        if self.tracks.len() >= MAX_TRACKS {
            self.stat("too_many_tracks", Severity::DataLoss, 1, None);
            return self.tracks.values().next().copied().unwrap_or(TrackId(u32::MAX));
        }
        let track = self.sink.track(key);
        if let Some(name) = name {
            self.sink.name_track(track, name);
        }
        self.tracks.insert(key, track);
        track
    }

    /// The track of a host thread.
    pub fn thread(&mut self, process: ProcessId, tid: i64) -> TrackId {
        self.track(TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: tid }, None)
    }

    fn queue(&mut self, kind: TrackKind, place: Place) -> TrackId {
        let Place { process, device, stream } = place;
        self.devices.insert((process, device));
        let name = format!("stream {stream}");
        self.track(TrackKey { kind, process, device: Some(device), context: None, id: stream }, Some(&name))
    }

    /// Adds a slice.
    pub fn slice(
        &mut self,
        track: TrackId,
        (start, end): (Ns, Ns),
        name: StringId,
        category: Category,
        correlation: Option<i64>,
        detail: Option<&Detail>,
    ) {
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        let dur = end.saturating_sub(start);
        self.sink.slice(Slice { track, start, dur, name, category, correlation, detail });
    }

    /// Adds a task of the device; `table` is where it stands.
    pub fn task(&mut self, table: &str, task: &DeviceTask<'_>) {
        self.loose.note(task);
        let DeviceTask { place, start, end, connection, .. } = *task;
        let category = task.task.category();
        let kind = match category {
            Category::DeviceOther => TrackKind::DeviceAnnotation,
            Category::DeviceSync | Category::DeviceEvent => TrackKind::DeviceSync,
            _ => TrackKind::DeviceQueue,
        };
        let track = self.queue(kind, place);
        let model = task.model.filter(|model| *model != NONE);
        let detail = match task.task {
            Task::Kernel => Some(Detail::Kernel(KernelDetail {
                graph: model,
                // Replayed tasks carry the model; a node of its own has none.
                graph_node: None,
                grid: task.blocks.filter(|blocks| *blocks > 0).map(|blocks| [blocks, 1, 1]),
                ..KernelDetail::default()
            })),
            Task::Copy => {
                let direction = task.direction.and_then(direction).map(|direction| self.sink.intern(direction));
                Some(Detail::Copy(CopyDetail { direction, bytes: task.bytes, ..CopyDetail::default() }))
            }
            Task::EventWait => Some(Detail::Sync(SyncKind::StreamWaitEvent)),
            _ => None,
        };
        let name = self.sink.intern(task.name);
        let connection = connection.filter(|id| *id != NONE);
        self.slice(track, (start, end), name, category, connection, detail.as_ref());
        if let Some(told) = task.told.filter(|_| task.task == Task::Kernel) {
            self.operator(place, (start, end), &told);
        }
        let dur = end.saturating_sub(start).max(0);
        // What is no operator is called by its kind; operators have names of their own.
        let kind = match task.task {
            Task::Kernel => task.task_type.to_owned(),
            Task::Pseudo if task.name.starts_with("MEMCPY") => format!("{} of a collective", task.name),
            _ => task.name.to_owned(),
        };
        self.sink.ledger(&format!("{table}/{kind}"), 1, 1, dur, task.task.note());
    }

    /// Adds what a table says of a kernel's operator, beside the kernel's queue.
    fn operator(&mut self, place: Place, span: (Ns, Ns), told: &Told) {
        let Place { process, device, stream } = place;
        let queue = TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(device), context: None, id: stream };
        let track = self.track(Beside::Operators.key(queue), Some("operators, as the profiler types them"));
        self.slice(track, span, told.op, Category::DeviceRange, None, told.detail().as_ref());
        self.told = (self.told.0 + 1, self.told.1 + u64::from(told.has_shapes()));
    }

    /// Adds a collective, which is one piece of work: its waits and transfers lie inside it.
    pub fn collective(&mut self, table: &str, call: &Collective<'_>) {
        let Collective { process, device, start, end, .. } = *call;
        self.devices.insert((process, device));
        let name = Name::parse(call.name);
        let sums = self.times.of(call.name, start).cloned();
        if let Some((name, number)) = call.group.zip(sums.as_ref().and_then(|sums| sums.group.as_deref()))
            && name != number
            && self.communicators.len() < MAX_COMMUNICATORS
        {
            self.communicators.entry(number.to_owned()).or_insert_with(|| name.to_owned());
        }
        let group = call.group.map(str::to_owned).or_else(|| sums.as_ref()?.group.as_deref().map(str::to_owned));
        self.summed.extend(sums.map(|sums| Recorded { process, device, start, end, sums }));
        self.loose.collective(process, device, (start, end));
        let track = self.group(process, device);
        let bytes = call.dtype.and_then(element_bytes).zip(call.count).and_then(|(b, n)| b.checked_mul(n));
        let text = |sink: &mut dyn TraceSink, text: Option<&str>| text.map(|text| sink.intern(text));
        let described = CollectiveCall {
            op: Some(self.sink.intern(name.op)),
            group: text(self.sink, group.as_deref().or(name.group)),
            group_size: call.group_size,
            seq: name.seq,
            bytes: bytes.filter(|bytes| *bytes > 0),
            dtype: text(self.sink, call.dtype),
        };
        let detail = KernelDetail { collective: Some(Box::new(described)), ..KernelDetail::default() };
        let id = self.sink.intern(name.op);
        let connection = call.connection.filter(|id| *id != NONE);
        self.slice(track, (start, end), id, Category::Kernel, connection, Some(&Detail::Kernel(detail)));
        self.sink.ledger(table, 1, 1, end.saturating_sub(start).max(0), "kernel: a collective with its waits");
    }

    /// Adds a task inside a collective: waits and transfers on the collective's own queue, where they say what its time
    /// went to.
    pub fn part(&mut self, table: &str, part: &Part<'_>) {
        let Part { process, device, start, end, .. } = *part;
        for rank in [part.peer, part.own].into_iter().flatten().filter(|rank| (0..MAX_RANK).contains(rank)) {
            self.last_peer = self.last_peer.max(Some(rank));
        }
        self.inside.insert((process, device));
        let (track, category, note) = match Task::of(part.name, part.name) {
            Task::NotifyWait => {
                (self.group(process, device), Category::DeviceSync, "wait inside a collective; not device work")
            }
            Task::Record => {
                let name = format!("plane {}", part.plane);
                let (kind, device) = (TrackKind::DeviceSync, Some(device));
                let key = TrackKey { kind, process, device, context: Some(1), id: part.plane };
                (self.track(key, Some(&name)), Category::DeviceEvent, "inside a collective; not device work")
            }
            _ => (self.group(process, device), Category::DeviceOther, "transfer inside a collective; not device work"),
        };
        let peer = part.peer.filter(|_| category == Category::DeviceSync).filter(|peer| (0..MAX_RANK).contains(peer));
        let detail = peer.and_then(|peer| u32::try_from(peer).ok()).map(Detail::Peer);
        let name = self.sink.intern(part.name);
        self.slice(track, (start, end), name, category, None, detail.as_ref());
        self.sink.ledger(&format!("{table}/{}", part.name), 1, 1, end.saturating_sub(start).max(0), note);
    }

    /// The queue of a device's collectives.
    fn group(&mut self, process: ProcessId, device: i32) -> TrackId {
        let (kind, device) = (TrackKind::DeviceQueue, Some(device));
        self.track(TrackKey { kind, process, device, context: Some(0), id: 0 }, Some("communication"))
    }

    /// What the profiler summed of collectives takes the place of the tasks inside them where those were not recorded, and
    /// is compared with them where they were.
    fn settle_collectives(&mut self) {
        let summed = std::mem::take(&mut self.summed);
        let (mut time, mut placed): (Ns, u64) = (0, 0);
        for Recorded { process, device, start, end, sums } in &summed {
            time = time.saturating_add(sums.elapse);
            let differs = end.saturating_sub(*start).abs_diff(sums.elapse) > super::times::ROUNDING.unsigned_abs();
            self.stat("collective_times_differ", Severity::Notice, u64::from(differs), None);
            if self.inside.contains(&(*process, *device)) {
                continue;
            }
            placed += 1;
            // Data move once the last rank has come: the wait lies first (as with waits that ranks tell of each other). What
            // lies between the two was not recorded.
            let (waited, moves) = (start.saturating_add(sums.wait), end.saturating_sub(sums.transit));
            let moves = moves.clamp(*start, *end);
            let track = self.group(*process, *device);
            for (name, category, span) in [
                ("Notify_Wait", Category::DeviceSync, (*start, waited.clamp(*start, moves))),
                ("Memcpy", Category::DeviceOther, (moves, *end)),
            ] {
                if span.0 == span.1 {
                    continue;
                }
                let name = self.sink.intern(name);
                self.slice(track, span, name, category, None, None);
            }
        }
        if let Some((file, read)) = self.times.source() {
            let note = match placed {
                0 => "sums over the tasks inside collectives, compared with the collectives",
                _ => "sums over the tasks inside collectives, placed in them: the wait first, then the transfer",
            };
            let file = file.to_owned();
            self.sink.ledger(&file, read, summed.len() as u64, time, note);
        }
    }

    /// Tells the devices, whose names `product` gives, and what the transfers say of the size of the job.
    pub fn settle(&mut self, product: &dyn Fn(i32) -> Option<String>, world: Option<i64>) {
        let known = self.inside.clone();
        std::mem::take(&mut self.loose).settle(&known, |part| self.part("inside a collective by time", part));
        self.settle_collectives();
        let vendor = self.sink.intern("ascend");
        for (process, ordinal) in std::mem::take(&mut self.devices) {
            let name = product(ordinal).map(|name| self.sink.intern(&name));
            if let Some(name) = product(ordinal) {
                self.sink.manifest("hardware.device", &name, Provenance::Observed);
            }
            let vendor = Some(vendor);
            self.sink.device(Device { process, ordinal, name, vendor, cores: None, memory_bytes: None });
        }
        if self.told.0 > 0 {
            let said = format!("types of {} kernels, input shapes of {}", self.told.0, self.told.1);
            self.sink.manifest(Beside::TOLD, &said, Provenance::Observed);
        }
        self.sink.manifest("hardware.vendor", "ascend", Provenance::Observed);
        for (number, name) in std::mem::take(&mut self.communicators) {
            self.sink.manifest(&format!("{}{number}", Manifest::COMMUNICATOR), &name, Provenance::Observed);
        }
        // Ranks number the peers of every transfer, so the largest of them tells how many there are at least, and no more: a rank
        // that talks to its neighbours does not see the others.
        let least = self.last_peer.map(|last| last + 1);
        for (key, ranks) in
            [("parallel.world_size", world), (Manifest::RANKS_AT_LEAST, least.filter(|_| world.is_none()))]
        {
            if let Some(ranks) = ranks.filter(|ranks| *ranks > 0) {
                self.sink.manifest(key, &ranks.to_string(), Provenance::Observed);
            }
        }
    }
}

/// A copy's direction in the words of the model: `host to device`, `H2D`, `acl_memcpy_host_to_device`.
fn direction(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase().replace([' ', '_'], "");
    const SPELLED: [(&str, &str, &str); 4] = [
        ("hosttodevice", "h2d", "HtoD"),
        ("devicetohost", "d2h", "DtoH"),
        ("devicetodevice", "d2d", "DtoD"),
        ("hosttohost", "h2h", "HtoH"),
    ];
    SPELLED.iter().find(|(long, short, _)| text.contains(long) || text.contains(short)).map(|(.., name)| *name)
}

/// Category of an operator of the framework: what the program annotated stands among the operators.
pub(super) fn framework_category(name: &str) -> Category {
    const RANGES: [&str; 8] = [
        "ProfilerStep",
        "Optimizer.",
        "DistributedDataParallel.",
        "enumerate(DataLoader)",
        "execute_",
        "forward",
        "sample_token",
        "draft_token",
    ];
    let annotated = RANGES.iter().any(|range| name.starts_with(range));
    // Operators have no blanks, but for `autograd::engine::evaluate_function: …`.
    if annotated || (name.contains(' ') && !name.contains("::")) { Category::UserRange } else { Category::FrameworkOp }
}

/// Category of a call of CANN by its level.
pub(super) fn call_category(level: &str) -> Category {
    match level {
        "hccl" | "communication" => Category::CollectiveCall,
        _ => Category::HostApi,
    }
}

/// A list that torch_npu joined by `;` and line breaks, as JSON: shapes `32,3;;` become `[[32,3],[],[]]`.
pub(super) fn shapes_json(joined: &str) -> String {
    let lists: Vec<String> = joined.split(';').map(|shape| format!("[{}]", shape.trim())).collect();
    format!("[{}]", lists.join(","))
}

/// A list of words that torch_npu joined by `;`, as JSON.
pub(super) fn words_json(joined: &str) -> String {
    let words: Vec<String> = joined.split(';').map(|word| format!("{:?}", word.trim())).collect();
    format!("[{}]", words.join(","))
}
