//! Batches into the sink, in the order of the file: texts, tracks and details get their final ids, and what only the
//! whole file tells (names, links between distant events, devices used, the clock) is settled at the end.

use std::path::Path;

use model::{
    Category, Clock, CollectiveCall, Detail, Device, Flow, ImportStat, Ns, ProcessId, Provenance, Severity, Slice,
    Span, StringId, TraceSink, TrackId, TrackKey, TrackKind,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    batch::{Arrows, Batch, FlowEnd, Id, NONE, TrackRef},
    builder::HALVES,
    facts::{self, DeviceProperties, Facts},
    halves::{Halves, Open},
    run::Run,
};
use crate::ReadOptions;

/// Timestamps beyond this are Unix times (2001 and later), smaller ones count from `baseTimeNanoseconds`, ns.
const UNIX_ERA: Ns = 1_000_000_000_000_000_000;
/// Arrows that may end elsewhere for each that ends behind its slice; own value.
const SORTED: u64 = 3;
/// Ids of tracks that have no number of their own count down from here, away from any thread id.
const UNNUMBERED: i64 = -(1 << 40);

/// Process or thread with its words as ids of the sink.
pub(super) type Owner = (Option<i64>, Option<StringId>);

/// What is known of a slice when it begins, beside its time and its name.
#[derive(Clone, Debug)]
struct Begun {
    track: TrackId,
    category: Category,
    correlation: Option<i64>,
    detail: Option<Detail>,
}

/// Merges batches into a sink.
pub(super) struct Merger<'s> {
    sink: &'s mut dyn TraceSink,
    process: ProcessId,
    track_numbers: FxHashMap<(TrackKind, Owner, Owner), i64>,
    taken: FxHashSet<(TrackKind, i64)>,
    tracks: FxHashMap<TrackId, (TrackKind, Owner, Owner)>,
    thread_names: FxHashMap<(Owner, Owner), StringId>,
    process_names: FxHashMap<Owner, StringId>,
    texts_of_names: FxHashMap<StringId, String>,
    open_flows: FxHashMap<(i64, bool), (TrackId, Ns)>,
    halves: Halves<Begun>,
    /// Events of which nothing says what they are.
    unknown: u64,
    arrows: Arrows,
    devices: FxHashSet<i32>,
    vendor: Option<&'static str>,
    host_pid: Option<i64>,
    first_time: Option<Ns>,
    /// Documents of the file before the one that is read.
    document: i64,
    /// The document that is read, and the one before it of the same rank.
    run: Run,
    run_before: Option<Run>,
    /// Documents of another run than the one before them.
    other_runs: u64,
    /// From the clock of this document to that of the first, ns.
    shift: Ns,
    /// Slices, samples and flows handed over so far.
    pub kept: u64,
}

/// Correlation ids of a document lie this far from those of the document before it: each run of the profiler counts anew.
const DOCUMENT: i64 = 1 << 40;

impl<'s> Merger<'s> {
    /// A merger into `sink`; the file is one process.
    pub fn new(sink: &'s mut dyn TraceSink) -> Self {
        let process = sink.process(0);
        Self {
            sink,
            process,
            track_numbers: FxHashMap::default(),
            taken: FxHashSet::default(),
            tracks: FxHashMap::default(),
            thread_names: FxHashMap::default(),
            process_names: FxHashMap::default(),
            texts_of_names: FxHashMap::default(),
            open_flows: FxHashMap::default(),
            halves: Halves::default(),
            unknown: 0,
            arrows: Arrows::default(),
            devices: FxHashSet::default(),
            vendor: None,
            host_pid: None,
            first_time: None,
            document: 0,
            run: Run::default(),
            run_before: None,
            other_runs: 0,
            shift: 0,
            kept: 0,
        }
    }

    /// Counts something out of the ordinary that lies between the events.
    pub fn odd(&mut self, name: &str, severity: Severity, example: &str) {
        self.sink.stat(name, severity, 1, Some(example));
    }

    /// Counts rows that the file holds once more.
    pub fn doubled(&mut self, rows: u64, what: &str) {
        self.sink.stat(ImportStat::DOUBLED_ROWS, Severity::Notice, rows, Some(what));
    }

    /// Documents that were read before this one.
    pub fn documents(&self) -> i64 {
        self.document
    }

    /// Notes that another document of the file begins.
    pub fn next_document(&mut self) {
        self.document += 1;
        self.open_flows.clear();
        self.end_run();
    }

    /// Notes what the document says of itself whose events begin, and what the one before it said: `other` ranks are processes
    /// of their own.
    pub fn begin_document(&mut self, before: &Facts, facts: &Facts, other: bool, options: &ReadOptions<'_>) {
        let moved = facts.base_ns.zip(before.base_ns).map_or(0, |(own, first)| own.saturating_sub(first));
        self.run.devices.clone_from(&facts.devices);
        if let Some(run) = self.run_before.as_mut().filter(|run| run.devices.is_empty()) {
            run.devices.clone_from(&before.devices);
        }
        if other {
            self.run_before = None;
            self.describe(before, before.rank, options);
            self.process = self.sink.process(self.document.unsigned_abs());
            self.track_numbers.clear();
            self.taken.clear();
            self.devices.clear();
            self.host_pid = None;
            self.shift = self.shift.saturating_add(moved);
        } else {
            self.shift = moved;
        }
    }

    /// Compares a document with the one before it, once both are read.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.span.is_none() {
            return;
        }
        self.other_runs += u64::from(self.run_before.as_ref().is_some_and(|before| run.is_other(before)));
        self.run_before = Some(run);
    }

    /// The time of an event by the clock of the first document.
    fn time(&self, t: Ns) -> Ns {
        if t > UNIX_ERA { t } else { t.saturating_add(self.shift) }
    }

    /// Takes in a batch.
    pub fn add(&mut self, batch: Batch) {
        let strings: Vec<StringId> = batch.texts.iter().map(|text| self.sink.intern(text)).collect();
        let string = |id: u32| strings.get(id as usize).copied().unwrap_or(StringId(0));
        let owner = |id: Id| match id {
            Id::None => (None, None),
            Id::Int(id) => (Some(id), None),
            Id::Text(text) => (None, Some(string(text))),
        };
        let tracks: Vec<TrackId> = batch.tracks.iter().map(|t| self.track(t, owner(t.pid), owner(t.tid))).collect();
        let details: Vec<Detail> = batch.details.into_iter().map(|detail| rename(detail, &strings)).collect();
        for row in &batch.rows {
            let Some(track) = tracks.get(row.track as usize).copied() else { continue };
            let detail = if row.detail == NONE { None } else { details.get(row.detail as usize) };
            self.sink.slice(Slice {
                track,
                start: self.time(row.start),
                dur: row.dur,
                name: string(row.name),
                category: row.category,
                correlation: row.correlation.map(|id| id.saturating_add(self.document.saturating_mul(DOCUMENT))),
                detail,
            });
        }
        for half in &batch.halves {
            let named = batch.texts.get(half.name as usize).is_some_and(|name| !name.is_empty());
            let (thread, name) = ((owner(half.pid), owner(half.tid)), named.then(|| string(half.name)));
            let Some(row) = half.begun else {
                self.end(thread, name, self.time(half.at));
                continue;
            };
            let Some(track) = tracks.get(row.track as usize).copied() else { continue };
            let detail = if row.detail == NONE { None } else { details.get(row.detail as usize).cloned() };
            let correlation = row.correlation.map(|id| id.saturating_add(self.document.saturating_mul(DOCUMENT)));
            let begun = Begun { track, category: row.category, correlation, detail };
            let name = name.unwrap_or_else(|| string(half.name));
            self.halves.begin(thread, Open { start: self.time(half.at), name, row: begun });
        }
        self.unknown += batch.unknown;
        self.arrows.add(batch.arrows);
        self.first_time = self.first_time.or(batch.rows.first().map(|row| row.start));
        let from = batch.rows.iter().map(|row| self.time(row.start)).min();
        let to = batch.rows.iter().map(|row| self.time(row.start).saturating_add(row.dur)).max();
        let all = [from.zip(to).map(|(from, to)| Span::new(from, to)), self.run.span].into_iter().flatten();
        self.run.span = all.reduce(|a, b| Span::new(a.start.min(b.start), a.end.max(b.end)));
        self.run.pid = self.run.pid.or(batch.host_pid);
        for sample in &batch.samples {
            let t = self.time(sample.t);
            self.sink.counter(self.process, sample.device, string(sample.name), sample.unit, t, sample.value);
        }
        for end in &batch.flow_ends {
            if let Some(track) = tracks.get(end.track as usize).copied() {
                self.flow_end(end, track);
            }
        }
        for label in &batch.labels {
            let id = string(label.text);
            let text = batch.texts.get(label.text as usize).map_or("", |text| text.trim());
            self.texts_of_names.entry(id).or_insert_with(|| text.to_owned());
            if label.thread {
                self.thread_names.insert((owner(label.pid), owner(label.tid)), id);
            } else {
                self.process_names.insert(owner(label.pid), id);
            }
        }
        for (category, tally) in &batch.ledger {
            let category = batch.texts.get(*category as usize).map_or("", |text| text);
            self.sink.ledger(category, tally.read, tally.kept, tally.time, tally.note);
        }
        for (name, oddity) in &batch.oddities {
            self.sink.stat(name, oddity.severity, oddity.count, Some(&oddity.example));
        }
        if let Some(window) = batch.window {
            self.sink.window(Span::new(self.time(window.start), self.time(window.end)));
        }
        self.vendor = self.vendor.or(batch.vendor);
        self.host_pid = self.host_pid.or(batch.host_pid);
        self.kept += (batch.rows.len() + batch.samples.len() + batch.flow_ends.len()) as u64;
    }

    fn track(&mut self, track: &TrackRef, pid: Owner, tid: Owner) -> TrackId {
        let on_device =
            matches!(track.kind, TrackKind::DeviceQueue | TrackKind::DeviceAnnotation | TrackKind::DeviceSync);
        let number = match track.number {
            Some(stream) if on_device => stream,
            number => self.number(track.kind, pid, tid, number),
        };
        let key = TrackKey {
            kind: track.kind,
            process: self.process,
            device: track.device,
            context: track.context,
            id: number,
        };
        let id = self.sink.track(key);
        self.tracks.insert(id, (track.kind, pid, tid));
        if track.kind == TrackKind::DeviceQueue {
            self.devices.extend(track.device);
        }
        id
    }

    /// The thread id where it is free; threads of other processes with the same id, and threads that have words for
    /// ids, get numbers of our own.
    fn number(&mut self, kind: TrackKind, pid: Owner, tid: Owner, number: Option<i64>) -> i64 {
        if let Some(known) = self.track_numbers.get(&(kind, pid, tid)) {
            return *known;
        }
        let free = number.filter(|number| self.taken.insert((kind, *number)));
        let number = free.unwrap_or(UNNUMBERED - self.track_numbers.len() as i64);
        self.track_numbers.insert((kind, pid, tid), number);
        number
    }

    fn flow_end(&mut self, end: &FlowEnd, track: TrackId) {
        let here = (track, self.time(end.t));
        let Some(other) = self.open_flows.remove(&(end.id, !end.start)) else {
            self.open_flows.insert((end.id, end.start), here);
            return;
        };
        let (from, to) = if end.start { (here, other) } else { (other, here) };
        let kind = self.sink.intern("fwdbwd");
        self.sink.flow(Flow { process: self.process, id: end.id, from, to, kind });
        self.sink.ledger("flow fwdbwd", 0, 2, 0, "");
    }

    /// Takes the end of a slice that is written as two events.
    fn end(&mut self, thread: (Owner, Owner), name: Option<StringId>, end: Ns) {
        let Some(Open { start, name, row }) = self.halves.end(thread, name, end) else { return };
        let Begun { track, category, correlation, detail } = row;
        let dur = end.saturating_sub(start);
        self.first_time = self.first_time.or(Some(start));
        self.sink.slice(Slice { track, start, dur, name, category, correlation, detail: detail.as_ref() });
        self.sink.ledger(HALVES, 0, 2, dur, "");
        self.kept += 1;
    }

    /// Tells what is left of slices that are two events, and of how much nothing says what it is.
    fn tell_unknown(&mut self) {
        for (name, count) in [
            ("kineto.begins_without_end", self.halves.unended()),
            ("kineto.ends_without_begin", self.halves.ends),
            ("kineto.begins_too_deep", self.halves.crowded),
        ] {
            if count > 0 {
                self.sink.stat(name, Severity::DataLoss, count, None);
            }
        }
        // A file that another program has sorted says nothing by the order of its events.
        for (name, (led, astray)) in
            [(ImportStat::WORK_WITHOUT_ROW, self.arrows.work), (ImportStat::CALLS_WITHOUT_ROW, self.arrows.calls)]
        {
            if astray > 0 && led.saturating_mul(SORTED) >= astray {
                let why = "arrows from calls to work end where no slice begins: its row is missing";
                self.sink.stat(name, Severity::DataLoss, astray, Some(why));
            }
        }
        let worked = self.tracks.values().any(|(kind, ..)| *kind == TrackKind::DeviceQueue);
        if !worked && self.unknown > 0 {
            let why = "no category, phase or name says what they are: work of a device may be among them";
            self.sink.stat("kineto.events_of_unknown_kind", Severity::Notice, self.unknown, Some(why));
        }
    }

    /// Settles what the whole file tells.
    pub fn finish(mut self, facts: &Facts, path: &Path, options: &ReadOptions<'_>) {
        self.name_tracks();
        self.tell_unknown();
        self.end_run();
        if self.other_runs > 0 {
            let why = "documents of other processes or devices at other times: split the file where they begin";
            self.sink.stat(ImportStat::OTHER_RUNS, Severity::DataLoss, self.other_runs, Some(why));
        }
        if !self.open_flows.is_empty() {
            let open = self.open_flows.len() as u64;
            self.sink.stat("kineto.flows_without_partner", Severity::Notice, open, None);
        }
        let absolute = self.first_time.is_some_and(|t| t > UNIX_ERA);
        let unix_offset = if absolute { Some(0) } else { facts.base_ns };
        self.sink.clock(Clock::FromFirstSlice { unix_offset });
        // Of several documents none is the one that the file is named after.
        let rank = facts.rank.or_else(|| facts::rank_of(path).filter(|_| self.document == 0));
        self.describe(facts, rank, options);
        let mut say = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                self.sink.manifest(key, value, Provenance::Observed);
            }
        };
        say("measurement.traced", Some("kineto"));
        say("software.profiler", Some(&profiler(facts)));
        say("software.toolkit", facts.toolkit.as_deref());
        say("software.driver", facts.driver.as_deref());
        let library = if self.vendor.or(facts.vendor) == Some("amd") { "RCCL" } else { "NCCL" };
        say("software.comm_library", facts.comm_version.as_ref().map(|v| format!("{library} {v}")).as_deref());
        say("parallel.world_size", facts.world_size.map(|size| size.to_string()).as_deref());
        say("hardware.host", facts.host.as_deref());
        say("software.env", facts.environment.text().as_deref());
        for (key, value) in &facts.further {
            say(key, Some(value));
        }
        if facts.environment.redacted > 0 {
            self.sink.stat("kineto.redacted_environment", Severity::Info, facts.environment.redacted, None);
        }
        if facts.simulated {
            crate::simulated::tell(self.sink);
        }
    }

    /// Says what the process of a document and its devices are.
    fn describe(&mut self, facts: &Facts, rank: Option<u32>, options: &ReadOptions<'_>) {
        let owner = (self.host_pid, None);
        let name = self.process_names.get(&owner).and_then(|id| self.texts_of_names.get(id));
        self.sink.describe_process(self.process, self.host_pid, name.map(String::as_str), rank);
        self.describe_devices(facts, options);
    }

    fn name_tracks(&mut self) {
        let host = self.tracks.values().filter(|(kind, ..)| *kind == TrackKind::HostThread);
        let several = host.map(|(_, pid, _)| pid).collect::<FxHashSet<_>>().len() > 1;
        for (id, (kind, pid, tid)) in &self.tracks {
            let text = self.thread_names.get(&(*pid, *tid)).and_then(|name| self.texts_of_names.get(name));
            let name = match (kind, text, pid.0) {
                (TrackKind::HostThread, Some(text), Some(pid)) if several => format!("{pid}/{text}"),
                (TrackKind::HostThread, None, Some(pid)) if several => {
                    format!("{pid}/{}", tid.0.map_or_else(|| "?".to_owned(), |tid| tid.to_string()))
                }
                (_, Some(text), _) => text.clone(),
                _ => continue,
            };
            self.sink.name_track(*id, &name);
        }
    }

    /// Says what the devices are on which something ran; the file lists every device that was visible.
    fn describe_devices(&mut self, facts: &Facts, options: &ReadOptions<'_>) {
        let mut used: Vec<i32> = self.devices.iter().copied().collect();
        used.sort_unstable();
        let mut names: Vec<&str> = Vec::new();
        let (mut vendor, mut memory): (Option<&str>, _) = (facts.vendor.or(self.vendor), None);
        for &ordinal in &used {
            let properties = properties(facts, ordinal);
            let name = properties.and_then(|p| p.name.as_deref());
            vendor = name.and_then(|name| options.vendor_of(name)).or(vendor);
            memory = properties.and_then(|p| p.memory).or(memory);
            names.extend(name.filter(|name| !names.contains(name)));
            let device = Device {
                process: self.process,
                ordinal,
                name: name.map(|name| self.sink.intern(name)),
                vendor: vendor.map(|vendor| self.sink.intern(vendor)),
                cores: properties.and_then(|p| p.cores),
                memory_bytes: properties.and_then(|p| p.memory),
            };
            self.sink.device(device);
        }
        let mut say = |key: &str, value: &str| self.sink.manifest(key, value, Provenance::Observed);
        if let (Some(vendor), false) = (vendor, used.is_empty()) {
            say("hardware.vendor", vendor);
        }
        if !names.is_empty() {
            say("hardware.device", &names.join(", "));
        }
        if !used.is_empty() {
            say("hardware.count", &used.len().to_string());
        }
        if !facts.devices.is_empty() {
            say("hardware.visible", &facts.devices.len().to_string());
        }
        if let Some(memory) = memory {
            say("hardware.memory_bytes", &memory.to_string());
        }
    }
}

/// Properties of a device. ROCm may number the devices of the events by node and those of the list by process; where
/// all of the list are alike, that does not matter.
fn properties(facts: &Facts, ordinal: i32) -> Option<&DeviceProperties> {
    let own = facts.devices.iter().find(|p| p.id == Some(i64::from(ordinal)));
    own.or_else(|| {
        let first = facts.devices.first()?;
        let alike = |p: &DeviceProperties| (&p.name, p.memory, p.cores) == (&first.name, first.memory, first.cores);
        facts.devices.iter().all(alike).then_some(first)
    })
}

fn profiler(facts: &Facts) -> String {
    let backend = [
        ("kineto.cupti_version", "CUPTI"),
        ("kineto.roctracer_version", "roctracer"),
        ("kineto.mupti_version", "MUPTI"),
    ];
    let version = backend.iter().find_map(|(key, name)| {
        facts.further.iter().find(|(known, _)| known == key).map(|(_, version)| format!(" ({name} {version})"))
    });
    format!("PyTorch profiler{}", version.unwrap_or_default())
}

/// A detail with the texts of its batch replaced by those of the sink.
fn rename(detail: Detail, strings: &[StringId]) -> Detail {
    let new = |id: &mut Option<StringId>| *id = id.and_then(|id| strings.get(id.0 as usize).copied());
    let call = |call: &mut CollectiveCall| [&mut call.op, &mut call.group, &mut call.dtype].into_iter().for_each(new);
    let mut detail = detail;
    match &mut detail {
        Detail::Kernel(kernel) => {
            if let Some(collective) = &mut kernel.collective {
                call(collective);
            }
        }
        Detail::Copy(copy) => [&mut copy.direction, &mut copy.src, &mut copy.dst].into_iter().for_each(new),
        Detail::Op(op) => [&mut op.shapes, &mut op.dtypes].into_iter().for_each(new),
        Detail::Collective(collective) => call(collective),
        Detail::Launch(kernel) => {
            let mut id = Some(*kernel);
            new(&mut id);
            *kernel = id.unwrap_or_default();
        }
        Detail::Sync(_) | Detail::Peer(_) | Detail::Failed(_) => {}
    }
    detail
}
