//! The builder that every source writes into: it collects in order of arrival and settles the whole at the end.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Columns, CounterTrack, NO_CORRELATION, NONE, Trace};
use crate::{
    ceiling::{Ceiling, Meter, POINT, ROW, SLICE, TEXT, TRACK},
    job_sums::JobSums,
    manifest::Provenance,
    probe::ProbeRow,
    secret,
    sink::{Clock, TraceSink},
    slice::{Category, Detail, Flow, Slice},
    stat::{ImportStat, LedgerRow, Severity},
    stated::StatedSum,
    strings::StringId,
    summary::KernelSummary,
    time::{LONGEST, MOST_TIME, Ns, RANGE, Span},
    track::{Device, Process, ProcessId, Track, TrackId, TrackKey, TrackKind},
};

/// Deepest nesting that is told apart; what lies deeper shares this depth, so that a hostile file cannot make the search
/// for a free depth quadratic.
const MAX_DEPTH: usize = 1024;
/// Categories of a ledger that have a row of their own; all further ones share [`FURTHER`], so that a hostile file cannot
/// make the report as long as itself.
const MAX_CATEGORIES: usize = 256;
/// Most summaries kept: kernels times launch shapes, ranks times steps, pairs of ranks, of which real runs have some
/// thousands.
const MAX_SUMMARIES: usize = 1 << 20;
/// The row of the ledger for categories beyond [`MAX_CATEGORIES`].
const FURTHER: &str = "further categories";

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
    device_ids: FxHashMap<(ProcessId, i32), usize>,
    counter_ids: FxHashMap<(ProcessId, Option<i32>, StringId), usize>,
    stat_ids: FxHashMap<String, usize>,
    ledger_ids: FxHashMap<String, usize>,
    arrivals: Vec<Arrivals>,
    slices: u32,
    meter: Meter,
    /// Durations of all slices, ns.
    time: Ns,
    /// From the source's clock to the Unix epoch, where whoever recorded the source knows it.
    unix_offset: Option<Ns>,
}

impl TraceBuilder {
    /// A builder for the source at `path`, read as `format`.
    pub fn new(source: impl Into<String>, format: impl Into<String>) -> Self {
        let mut builder = Self::default();
        builder.trace.source = source.into();
        builder.trace.format = format.into();
        builder
    }

    /// Says what is to be added to a time of the source to have Unix nanoseconds, for sources that do not say it themselves.
    pub fn assume_unix_offset(&mut self, offset: Option<Ns>) {
        self.unix_offset = offset;
    }

    /// Keeps what fits below a ceiling and nothing beyond it. A capture that has come to it is a part of what the source holds,
    /// so whoever set the ceiling asks whether it [was reached](Ceiling::is_reached).
    pub fn limit(&mut self, ceiling: Ceiling) {
        self.meter = Meter::new(ceiling);
    }

    /// Slices kept so far.
    pub fn kept(&self) -> u32 {
        self.slices
    }

    /// Settles everything: one clock, sorted tracks, nesting depths, launch links and the statistics of all that.
    pub fn finish(mut self) -> Trace {
        let earliest = self.arrivals.iter().flat_map(|a| &a.start).min().copied();
        let (zero, unix) = match self.clock.unwrap_or(Clock::FromFirstSlice { unix_offset: None }) {
            Clock::FromFirstSlice { unix_offset } => {
                let zero = earliest.unwrap_or(0);
                (zero, unix_offset.or(self.unix_offset).and_then(|offset| offset.checked_add(zero)))
            }
            Clock::AsIs { unix_zero } => (0, unix_zero),
        };
        self.trace.start_unix_ns = unix;
        let mut overlapping = 0;
        let arrivals = std::mem::take(&mut self.arrivals);
        self.trace.lanes = arrivals.into_par_iter().map(|a| settle_lane(a, zero)).collect::<Vec<Columns>>().into();
        for (track, lane) in self.trace.tracks.iter().zip(&self.trace.lanes) {
            if track.key.kind == TrackKind::DeviceQueue {
                overlapping += lane.depth.iter().filter(|d| **d > 0).count() as u64;
            }
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
    let key = |i: usize| (a.start[i], std::cmp::Reverse(a.dur[i]));
    // Sources mostly write in order: then the columns are taken as they are.
    let order: Option<Vec<u32>> = (!(1..n).all(|i| key(i - 1) <= key(i))).then(|| {
        let mut order: Vec<u32> = (0..n as u32).collect();
        // A thread's slices come from a few tables, each in order: a stable sort merges such runs in one pass.
        order.sort_by_key(|i| key(*i as usize));
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
        if let Some(id) = self.trace.strings.find(text) {
            return id;
        }
        if self.meter.is_full() {
            return StringId::default();
        }
        let known = self.trace.strings.len();
        let id = self.trace.strings.intern(text);
        if self.trace.strings.len() > known {
            self.meter.take(2 * self.trace.strings.get(id).len() as u64 + TEXT);
        }
        id
    }

    fn process(&mut self, key: u64) -> ProcessId {
        if let Some(id) = self.process_ids.get(&key) {
            return *id;
        }
        if self.meter.is_full() {
            return ProcessId(0);
        }
        self.meter.take(TRACK);
        let id = ProcessId(self.trace.processes.len() as u32);
        self.trace.processes.push(Process { pid: None, name: None, rank: None });
        self.process_ids.insert(key, id);
        id
    }

    fn describe_process(&mut self, process: ProcessId, pid: Option<i64>, name: Option<&str>, rank: Option<u32>) {
        // Some sources give the command line for a name.
        let name = name.map(|name| self.intern(&secret::kept(name)));
        if let Some(p) = self.trace.processes.get_mut(process.0 as usize) {
            p.pid = p.pid.or(pid);
            p.name = p.name.or(name);
            p.rank = p.rank.or(rank);
        }
    }

    fn device(&mut self, device: Device) {
        if self.meter.is_full() {
            return;
        }
        self.meter.take(if self.device_ids.contains_key(&(device.process, device.ordinal)) { 0 } else { TRACK });
        let devices = &mut self.trace.devices;
        let index = *self.device_ids.entry((device.process, device.ordinal)).or_insert(devices.len());
        match devices.get_mut(index) {
            None => devices.push(device),
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
        if self.meter.is_full() {
            return TrackId(0);
        }
        self.meter.take(TRACK);
        let id = TrackId(self.trace.tracks.len() as u32);
        self.trace.tracks.push(Track { key, name: None });
        self.arrivals.push(Arrivals::default());
        self.track_ids.insert(key, id);
        id
    }

    fn name_track(&mut self, track: TrackId, name: &str) {
        let name = self.intern(name);
        if let Some(t) = self.trace.tracks.get_mut(track.0 as usize) {
            t.name = Some(name);
        }
    }

    fn slice(&mut self, slice: Slice<'_>) {
        if self.meter.is_full() {
            return;
        }
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
                    self.meter.take(ROW);
                    id
                }
            },
        };
        if slice.dur < 0 {
            self.stat("trace.negative_duration", Severity::Error, 1, None);
        }
        let dur = slice.dur.max(0);
        let time = self.time.saturating_add(dur);
        let end = slice.start.saturating_add(dur);
        if slice.start < RANGE.start || end > RANGE.end || dur > LONGEST || time > MOST_TIME {
            self.stat("trace.time_out_of_range", Severity::DataLoss, 1, None);
            return;
        }
        let Some(a) = self.arrivals.get_mut(slice.track.0 as usize) else {
            self.stat("trace.unknown_track", Severity::DataLoss, 1, None);
            return;
        };
        self.slices += 1;
        self.meter.take(SLICE);
        self.time = time;
        a.start.push(slice.start);
        a.dur.push(dur);
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
        if self.meter.is_full() {
            return;
        }
        let is_new = !self.counter_ids.contains_key(&(process, device, name));
        self.meter.take(if is_new { TRACK } else { POINT });
        let counters = &mut self.trace.counters;
        let index = *self.counter_ids.entry((process, device, name)).or_insert_with(|| {
            let unit = unit.to_owned();
            counters.push(CounterTrack { process, device, name, unit, t: Vec::new(), value: Vec::new() });
            counters.len() - 1
        });
        counters[index].t.push(t);
        counters[index].value.push(value);
    }

    fn probe(&mut self, row: ProbeRow) {
        self.trace.probes.rows.push(row);
    }

    fn summary(&mut self, summary: KernelSummary) {
        if self.meter.is_full() {
            return;
        }
        if self.trace.summaries.len() < MAX_SUMMARIES {
            self.meter.take(ROW);
            self.trace.summaries.push(summary);
        } else {
            self.stat("trace.too_many_summaries", Severity::DataLoss, 1, None);
        }
    }

    fn job_sums(&mut self, mut sums: JobSums) {
        if self.meter.is_full() {
            return;
        }
        self.meter.take(ROW * (sums.steps.len() + sums.links.len()) as u64);
        let known = &mut self.trace.job_sums;
        known.steps.append(&mut sums.steps);
        known.links.append(&mut sums.links);
        let most = [known.steps.len(), known.links.len()];
        known.steps.truncate(MAX_SUMMARIES);
        known.links.truncate(MAX_SUMMARIES);
        let beyond: usize = most.into_iter().map(|n| n.saturating_sub(MAX_SUMMARIES)).sum();
        if beyond > 0 {
            self.stat("trace.too_many_summaries", Severity::DataLoss, beyond as u64, None);
        }
    }

    fn stated(&mut self, sum: StatedSum) {
        if self.trace.stated.len() < MAX_SUMMARIES {
            self.trace.stated.push(sum);
        } else {
            self.stat("trace.too_many_summaries", Severity::DataLoss, 1, None);
        }
    }

    fn flow(&mut self, flow: Flow) {
        if !self.meter.is_full() {
            self.meter.take(POINT);
            self.trace.flows.push(flow);
        }
    }

    fn manifest(&mut self, key: &str, value: &str, provenance: Provenance) {
        if !self.meter.is_full() {
            self.meter.take(POINT + (key.len() + value.len()) as u64);
            self.trace.manifest.set(key, value, provenance);
        }
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
        let full = self.trace.ledger.len() >= MAX_CATEGORIES && !self.ledger_ids.contains_key(category);
        let category = if full { FURTHER } else { category };
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
        row.read = row.read.saturating_add(read);
        row.kept = row.kept.saturating_add(kept);
        row.time_ns = row.time_ns.saturating_add(time_ns);
        if row.note.is_empty() {
            row.note = note.to_owned();
        }
    }

    fn clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    fn window(&mut self, window: Span) {
        let window = window.clip(RANGE);
        let merged = self.trace.window.map_or(window, |w| Span::new(w.start.min(window.start), w.end.max(window.end)));
        self.trace.window = Some(merged);
    }
}
