//! A whole capture as columns, and the builder that every source writes into.
//!
//! Slices of one track lie together, sorted by start; a slice's id is its position in that order over all tracks, so the
//! id tells the track and the row, and no index is needed to go from one to the other.

use rustc_hash::FxHashMap;

use crate::{
    manifest::{Manifest, Provenance},
    sink::{Clock, TraceSink},
    slice::{Category, Detail, Flow, Slice},
    stat::{ImportStat, LedgerRow, Severity},
    strings::{StringId, Strings},
    time::{Ns, Span},
    track::{Device, Process, ProcessId, Track, TrackId, TrackKey, TrackKind},
};

/// Position of a slice in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceId(pub u32);

/// Deepest nesting that is told apart; what lies deeper shares this depth, so that a hostile file cannot make the search
/// for a free depth quadratic.
const MAX_DEPTH: usize = 1024;
/// No link, no detail.
const NONE: u32 = u32::MAX;
/// No correlation id.
pub const NO_CORRELATION: i64 = i64::MIN;

/// The slices of one track, column by column, sorted by (start, longest first, order of arrival).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Id of the first slice.
    pub first: u32,
    /// Start, ns from the capture's zero.
    pub start: Vec<Ns>,
    /// Duration, ns, never negative.
    pub dur: Vec<Ns>,
    /// Name.
    pub name: Vec<StringId>,
    /// Category.
    pub category: Vec<Category>,
    /// Nesting depth; slices of one depth never overlap.
    pub depth: Vec<u16>,
    /// Correlation id or [`NO_CORRELATION`].
    pub correlation: Vec<i64>,
    /// Slice id of the launch call of device work, or `u32::MAX`.
    pub link: Vec<u32>,
    /// Index into [`Trace::details`], or `u32::MAX`.
    pub detail: Vec<u32>,
}

impl Columns {
    /// Number of slices.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether the track is empty.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// End of slice `i` of this track.
    pub fn end(&self, i: usize) -> Ns {
        self.start[i].saturating_add(self.dur[i])
    }

    /// Id of slice `i` of this track.
    pub fn id(&self, i: usize) -> SliceId {
        SliceId(self.first + i as u32)
    }

    /// Launch call of slice `i`.
    pub fn link(&self, i: usize) -> Option<SliceId> {
        (self.link[i] != NONE).then_some(SliceId(self.link[i]))
    }
}

/// Samples of one counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterTrack {
    /// Owning process.
    pub process: ProcessId,
    /// Device ordinal, if it belongs to one.
    pub device: Option<i32>,
    /// Counter name.
    pub name: StringId,
    /// Unit of the values (`%`, `B`, `MHz`, `W`, …; empty for a plain count).
    pub unit: String,
    /// Times, ns.
    pub t: Vec<Ns>,
    /// Values.
    pub value: Vec<f64>,
}

/// A whole capture in memory.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Path or description of the source.
    pub source: String,
    /// Id of the format it was read as (`kineto`, `nsys`).
    pub format: String,
    /// Whether the source is simulated rather than measured.
    pub simulated: bool,
    /// Interned text.
    pub strings: Strings,
    /// Processes.
    pub processes: Vec<Process>,
    /// Devices.
    pub devices: Vec<Device>,
    /// Tracks.
    pub tracks: Vec<Track>,
    /// Slices of each track, same index as `tracks`.
    pub lanes: Vec<Columns>,
    /// Details that slices refer to.
    pub details: Vec<Detail>,
    /// Counters.
    pub counters: Vec<CounterTrack>,
    /// Recorded links.
    pub flows: Vec<Flow>,
    /// What the run says of itself.
    pub manifest: Manifest,
    /// Import statistics.
    pub stats: Vec<ImportStat>,
    /// Import ledger.
    pub ledger: Vec<LedgerRow>,
    /// Wall clock of the capture's zero, Unix ns.
    pub start_unix_ns: Option<Ns>,
    /// From when to when the source recorded; from the first slice to the end of the last when it does not say.
    pub window: Option<Span>,
}

impl Trace {
    /// Number of slices.
    pub fn slice_count(&self) -> usize {
        self.lanes.iter().map(Columns::len).sum()
    }

    /// Track and row of a slice.
    pub fn locate(&self, id: SliceId) -> Option<(TrackId, usize)> {
        // Empty lanes share their `first` with the next lane; the last lane that starts at or before the id holds it.
        let lane = self.lanes.partition_point(|lane| lane.first <= id.0).checked_sub(1)?;
        let row = (id.0 - self.lanes[lane].first) as usize;
        (row < self.lanes[lane].len()).then_some((TrackId(lane as u32), row))
    }

    /// The detail of row `i` of a lane.
    pub fn detail(&self, lane: &Columns, i: usize) -> Option<&Detail> {
        self.details.get(lane.detail[i] as usize)
    }

    /// The count of an import statistic, 0 when it never occurred.
    pub fn stat(&self, name: &str) -> u64 {
        self.stats.iter().filter(|s| s.name == name).map(|s| s.count).sum()
    }

    /// Gives every lane the id of its first slice; must follow any change in the number of slices.
    pub fn number_slices(&mut self) {
        let mut first = 0u32;
        for lane in &mut self.lanes {
            lane.first = first;
            first = first.saturating_add(lane.len() as u32);
        }
    }
}

/// Slices of one track in order of arrival.
#[derive(Default)]
struct Arrivals {
    start: Vec<Ns>,
    dur: Vec<Ns>,
    name: Vec<StringId>,
    category: Vec<Category>,
    correlation: Vec<i64>,
    detail: Vec<u32>,
}

/// Collects what a source says and settles it into a [`Trace`].
#[derive(Default)]
pub struct TraceBuilder {
    trace: Trace,
    clock: Option<Clock>,
    process_ids: FxHashMap<u64, ProcessId>,
    track_ids: FxHashMap<TrackKey, TrackId>,
    detail_ids: FxHashMap<Detail, u32>,
    counter_ids: FxHashMap<(ProcessId, Option<i32>, StringId), usize>,
    stat_ids: FxHashMap<String, usize>,
    ledger_ids: FxHashMap<String, usize>,
    arrivals: Vec<Arrivals>,
    slices: u32,
}

impl TraceBuilder {
    /// A builder for the source at `path`, read as `format`.
    pub fn new(source: impl Into<String>, format: impl Into<String>) -> Self {
        let mut builder = Self::default();
        builder.trace.source = source.into();
        builder.trace.format = format.into();
        builder
    }

    /// Settles everything: one clock, sorted tracks, nesting depths, launch links and the statistics of all that.
    pub fn finish(mut self) -> Trace {
        let earliest = self.arrivals.iter().flat_map(|a| &a.start).min().copied();
        let (zero, unix) = match self.clock.unwrap_or(Clock::FromFirstSlice { unix_offset: None }) {
            Clock::FromFirstSlice { unix_offset } => {
                let zero = earliest.unwrap_or(0);
                (zero, unix_offset.and_then(|offset| offset.checked_add(zero)))
            }
            Clock::AsIs { unix_zero } => (0, unix_zero),
        };
        self.trace.start_unix_ns = unix;
        let mut overlapping = 0;
        for (track, arrivals) in std::mem::take(&mut self.arrivals).into_iter().enumerate() {
            let lane = settle_lane(arrivals, zero);
            if self.trace.tracks[track].key.kind == TrackKind::DeviceQueue {
                overlapping += lane.depth.iter().filter(|d| **d > 0).count() as u64;
            }
            self.trace.lanes.push(lane);
        }
        self.trace.number_slices();
        self.settle_times(zero);
        if overlapping > 0 {
            self.stat("trace.overlapping_device_slices", Severity::Info, overlapping, None);
        }
        self.link_launches();
        let cut = self.trace.strings.cut;
        if cut > 0 {
            self.stat("trace.long_text_cut", Severity::Notice, cut, None);
        }
        self.trace.simulated |= self.trace.manifest.get("simulated").is_some_and(|e| e.value == "true");
        self.trace.ledger.sort_by(|a, b| a.category.cmp(&b.category));
        self.trace
    }

    fn settle_times(&mut self, zero: Ns) {
        for counter in &mut self.trace.counters {
            let mut order: Vec<usize> = (0..counter.t.len()).collect();
            order.sort_by_key(|i| counter.t[*i]);
            counter.value = order.iter().map(|i| counter.value[*i]).collect();
            counter.t = order.iter().map(|i| counter.t[*i].saturating_sub(zero)).collect();
        }
        for flow in &mut self.trace.flows {
            flow.from.1 = flow.from.1.saturating_sub(zero);
            flow.to.1 = flow.to.1.saturating_sub(zero);
        }
        let extent =
            self.trace.lanes.iter().filter(|lane| !lane.is_empty()).fold(None, |extent: Option<Span>, lane| {
                let end = (0..lane.len()).map(|i| lane.end(i)).max().unwrap_or(lane.start[0]);
                let (s, e) = extent.map_or((lane.start[0], end), |x| (x.start.min(lane.start[0]), x.end.max(end)));
                Some(Span::new(s, e))
            });
        self.trace.window = match self.trace.window {
            Some(w) => Some(Span::new(w.start.saturating_sub(zero), w.end.saturating_sub(zero))),
            None => extent,
        };
    }

    fn link_launches(&mut self) {
        let mut launches: FxHashMap<(ProcessId, i64), u32> = FxHashMap::default();
        for (track, lane) in self.trace.tracks.iter().zip(&self.trace.lanes) {
            for i in 0..lane.len() {
                if lane.category[i].can_launch() && lane.correlation[i] != NO_CORRELATION {
                    // A driver call nested in a runtime call may share its id: the outer one came first.
                    launches.entry((track.key.process, lane.correlation[i])).or_insert(lane.first + i as u32);
                }
            }
        }
        let (mut without_id, mut orphans) = (0, 0);
        for (track, lane) in self.trace.tracks.iter().zip(&mut self.trace.lanes) {
            for i in 0..lane.len() {
                if !lane.category[i].is_device_work() {
                    continue;
                }
                if lane.correlation[i] == NO_CORRELATION {
                    without_id += 1;
                } else if let Some(launch) = launches.get(&(track.key.process, lane.correlation[i])) {
                    lane.link[i] = *launch;
                } else {
                    orphans += 1;
                }
            }
        }
        if without_id > 0 {
            self.stat("trace.device_work_without_correlation", Severity::Notice, without_id, None);
        }
        if orphans > 0 {
            self.stat("trace.device_work_without_launch", Severity::Notice, orphans, None);
        }
    }
}

/// Sorts a track and assigns depths: the lowest depth that is free, which for properly nested slices is their nesting.
fn settle_lane(a: Arrivals, zero: Ns) -> Columns {
    let n = a.start.len();
    let key = |i: usize| (a.start[i], std::cmp::Reverse(a.dur[i]), i);
    // Sources mostly write in order: then the columns are taken as they are.
    let order: Option<Vec<u32>> = (!(1..n).all(|i| key(i - 1) < key(i))).then(|| {
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_unstable_by_key(|i| key(*i as usize));
        order
    });
    let mut start = pick(a.start, order.as_deref());
    start.iter_mut().for_each(|s| *s = s.saturating_sub(zero));
    let dur = pick(a.dur, order.as_deref());
    Columns {
        first: 0,
        depth: depths(&start, &dur),
        start,
        dur,
        name: pick(a.name, order.as_deref()),
        category: pick(a.category, order.as_deref()),
        correlation: pick(a.correlation, order.as_deref()),
        detail: pick(a.detail, order.as_deref()),
        link: vec![NONE; n],
    }
}

/// A column in the given order.
fn pick<T: Copy>(column: Vec<T>, order: Option<&[u32]>) -> Vec<T> {
    match order {
        None => column,
        Some(order) => order.iter().map(|i| column[*i as usize]).collect(),
    }
}

fn depths(start: &[Ns], dur: &[Ns]) -> Vec<u16> {
    let mut ends: Vec<Ns> = Vec::new();
    let depth = |(start, dur): (&Ns, &Ns)| {
        let end = start.saturating_add(*dur);
        let free = ends.iter().position(|e| *e <= *start).unwrap_or(ends.len()).min(MAX_DEPTH);
        match ends.get_mut(free) {
            Some(slot) => *slot = end.max(if free == MAX_DEPTH { *slot } else { end }),
            None => ends.push(end),
        }
        free as u16
    };
    start.iter().zip(dur).map(depth).collect()
}

impl TraceSink for TraceBuilder {
    fn intern(&mut self, text: &str) -> StringId {
        self.trace.strings.intern(text)
    }

    fn process(&mut self, key: u64) -> ProcessId {
        let processes = &mut self.trace.processes;
        *self.process_ids.entry(key).or_insert_with(|| {
            processes.push(Process { pid: None, name: None, rank: None });
            ProcessId((processes.len() - 1) as u32)
        })
    }

    fn describe_process(&mut self, process: ProcessId, pid: Option<i64>, name: Option<&str>, rank: Option<u32>) {
        let name = name.map(|name| self.trace.strings.intern(name));
        if let Some(p) = self.trace.processes.get_mut(process.0 as usize) {
            p.pid = p.pid.or(pid);
            p.name = p.name.or(name);
            p.rank = p.rank.or(rank);
        }
    }

    fn device(&mut self, device: Device) {
        let known = |d: &&mut Device| d.process == device.process && d.ordinal == device.ordinal;
        match self.trace.devices.iter_mut().find(known) {
            None => self.trace.devices.push(device),
            Some(d) => {
                d.name = d.name.or(device.name);
                d.vendor = d.vendor.or(device.vendor);
                d.cores = d.cores.or(device.cores);
                d.memory_bytes = d.memory_bytes.or(device.memory_bytes);
            }
        }
    }

    fn track(&mut self, key: TrackKey) -> TrackId {
        if let Some(id) = self.track_ids.get(&key) {
            return *id;
        }
        let id = TrackId(self.trace.tracks.len() as u32);
        self.trace.tracks.push(Track { key, name: None });
        self.arrivals.push(Arrivals::default());
        self.track_ids.insert(key, id);
        id
    }

    fn name_track(&mut self, track: TrackId, name: &str) {
        let name = self.trace.strings.intern(name);
        if let Some(t) = self.trace.tracks.get_mut(track.0 as usize) {
            t.name = Some(name);
        }
    }

    fn slice(&mut self, slice: Slice<'_>) {
        // Ids are 32 bits wide; a capture beyond that is counted, not wrapped.
        if self.slices >= NONE - 1 {
            self.stat("trace.too_many_slices", Severity::DataLoss, 1, None);
            return;
        }
        let detail = match slice.detail {
            None => NONE,
            Some(detail) => match self.detail_ids.get(detail) {
                Some(id) => *id,
                None => {
                    let id = self.trace.details.len() as u32;
                    self.trace.details.push(detail.clone());
                    self.detail_ids.insert(detail.clone(), id);
                    id
                }
            },
        };
        if slice.dur < 0 {
            self.stat("trace.negative_duration", Severity::Error, 1, None);
        }
        let Some(a) = self.arrivals.get_mut(slice.track.0 as usize) else {
            self.stat("trace.unknown_track", Severity::DataLoss, 1, None);
            return;
        };
        self.slices += 1;
        a.start.push(slice.start);
        a.dur.push(slice.dur.max(0));
        a.name.push(slice.name);
        a.category.push(slice.category);
        a.correlation.push(slice.correlation.unwrap_or(NO_CORRELATION));
        a.detail.push(detail);
    }

    fn counter(
        &mut self,
        process: ProcessId,
        device: Option<i32>,
        name: StringId,
        unit: &'static str,
        t: Ns,
        value: f64,
    ) {
        let counters = &mut self.trace.counters;
        let index = *self.counter_ids.entry((process, device, name)).or_insert_with(|| {
            let unit = unit.to_owned();
            counters.push(CounterTrack { process, device, name, unit, t: Vec::new(), value: Vec::new() });
            counters.len() - 1
        });
        counters[index].t.push(t);
        counters[index].value.push(value);
    }

    fn flow(&mut self, flow: Flow) {
        self.trace.flows.push(flow);
    }

    fn manifest(&mut self, key: &str, value: &str, provenance: Provenance) {
        self.trace.manifest.set(key, value, provenance);
    }

    fn stat(&mut self, name: &str, severity: Severity, count: u64, example: Option<&str>) {
        if let Some(i) = self.stat_ids.get(name) {
            let stat = &mut self.trace.stats[*i];
            stat.count = stat.count.saturating_add(count);
            stat.severity = stat.severity.max(severity);
            return;
        }
        self.stat_ids.insert(name.to_owned(), self.trace.stats.len());
        let example = example.map(|e| e[..e.floor_char_boundary(200)].to_owned());
        self.trace.stats.push(ImportStat { name: name.to_owned(), severity, count, example });
    }

    fn ledger(&mut self, category: &str, read: u64, kept: u64, time_ns: Ns, note: &str) {
        let i = match self.ledger_ids.get(category) {
            Some(i) => *i,
            None => {
                let category = category[..category.floor_char_boundary(200)].to_owned();
                self.ledger_ids.insert(category.clone(), self.trace.ledger.len());
                self.trace.ledger.push(LedgerRow { category, ..LedgerRow::default() });
                self.trace.ledger.len() - 1
            }
        };
        let row = &mut self.trace.ledger[i];
        row.read += read;
        row.kept += kept;
        row.time_ns = row.time_ns.saturating_add(time_ns);
        if row.note.is_empty() {
            row.note = note.to_owned();
        }
    }

    fn clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    fn window(&mut self, window: Span) {
        let merged = self.trace.window.map_or(window, |w| Span::new(w.start.min(window.start), w.end.max(window.end)));
        self.trace.window = Some(merged);
    }
}

#[cfg(test)]
mod tests;
