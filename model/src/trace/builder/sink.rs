//! What sources hand to the builder.

use super::{
    super::{CounterTrack, NO_CORRELATION, NONE},
    Arrivals, TraceBuilder,
};
use crate::{
    ceiling::{POINT, ROW, TEXT, TRACK},
    job_sums::JobSums,
    manifest::Provenance,
    probe::ProbeRow,
    secret,
    sink::{Clock, TraceSink},
    slice::{Flow, Slice},
    stat::{ImportStat, LedgerRow, Severity},
    stated::StatedSum,
    strings::StringId,
    summary::KernelSummary,
    time::{LONGEST, MOST_TIME, Ns, RANGE, Span},
    track::{Device, Process, ProcessId, Track, TrackId, TrackKey},
};

/// Categories of a ledger that have a row of their own; all further ones share [`FURTHER`], so that a hostile file cannot
/// make the report as long as itself.
const MAX_CATEGORIES: usize = 256;
/// Most summaries kept: kernels times launch shapes, ranks times steps, pairs of ranks, of which real runs have some
/// thousands.
const MAX_SUMMARIES: usize = 1 << 20;
/// Most values of counters kept of kernels: a profiler that counts a thousand things of a thousand kernels has a million.
const MAX_COUNTERS: usize = 1 << 21;
/// Bytes that a value of a counter of a kernel takes.
const COUNTER: usize = size_of::<(StringId, f64)>();
/// The row of the ledger for categories beyond [`MAX_CATEGORIES`].
const FURTHER: &str = "further categories";

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
        // Frameworks name threads after what they were started with.
        let name = self.intern(&secret::kept(name));
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
        self.meter.take_slice(slice.category);
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

    fn summary(&mut self, mut summary: KernelSummary) {
        if self.meter.is_full() {
            return;
        }
        if self.trace.summaries.len() < MAX_SUMMARIES {
            let counters = summary.counters.len();
            summary.counters.truncate(MAX_COUNTERS.saturating_sub(self.counters_of_kernels));
            self.counters_of_kernels += summary.counters.len();
            if let beyond @ 1.. = counters - summary.counters.len() {
                let why = "values of counters beside kernels, more than are kept";
                self.stat("trace.too_many_kernel_counters", Severity::DataLoss, beyond as u64, Some(why));
            }
            self.meter.take(ROW + (summary.counters.len() * COUNTER) as u64);
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

    fn hold(&mut self, bytes: u64) {
        self.meter.take(bytes);
    }

    fn let_go(&mut self, bytes: u64) {
        self.meter.give(bytes);
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
