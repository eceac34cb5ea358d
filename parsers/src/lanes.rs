//! The processes, threads and queues of a capture as its rows name them, made when the first row asks for one and never
//! more than a real capture has: a track costs more memory than the row that asks for it.

use std::collections::BTreeSet;

use model::{Device, Ns, ProcessId, Provenance, Severity, TraceSink, TrackId, TrackKey, TrackKind};
use rustc_hash::FxHashMap;

/// Most tracks that are told apart; real captures have a few thousand.
const MAX_TRACKS: usize = 1 << 16;
/// Most (process, device) pairs that are described.
const MAX_DEVICES: usize = 4096;

/// What became of the rows of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Rows read.
    pub read: u64,
    /// Rows kept.
    pub kept: u64,
    /// Sum of the durations kept.
    pub time: Ns,
    /// Rows that lack what they cannot be placed without.
    pub incomplete: u64,
}

impl Account {
    /// Counts a row that was kept and lasted from `start` to `end`.
    pub fn keep(&mut self, start: Ns, end: Ns) {
        self.kept += 1;
        self.time = self.time.saturating_add(end.saturating_sub(start).max(0));
    }

    /// Tells the ledger and the statistic `<format>.incomplete_row`.
    pub fn tell(self, sink: &mut dyn TraceSink, format: &str, table: &str, becomes: &str) {
        sink.ledger(table, self.read, self.kept, self.time, becomes);
        if self.incomplete > 0 {
            sink.stat(&format!("{format}.incomplete_row"), Severity::DataLoss, self.incomplete, Some(table));
        }
    }
}

/// Tracks made so far.
#[derive(Default)]
pub(crate) struct Lanes {
    processes: FxHashMap<u64, ProcessId>,
    tracks: FxHashMap<TrackKey, TrackId>,
    /// Devices that queues lie on.
    pub devices: BTreeSet<(u64, i32)>,
    /// Rows whose track would have been one too many; they share the last one.
    pub crowded: u64,
}

impl Lanes {
    /// The process with this key.
    pub fn process(&mut self, sink: &mut dyn TraceSink, key: u64) -> ProcessId {
        *self.processes.entry(key).or_insert_with(|| sink.process(key))
    }

    /// The track of a host thread.
    pub fn thread(&mut self, sink: &mut dyn TraceSink, process: u64, thread: i64) -> TrackId {
        let process = self.process(sink, process);
        self.track(sink, TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: thread })
    }

    /// The track of a device queue. `context` tells apart queues of different kinds that share their numbers.
    pub fn queue(
        &mut self,
        sink: &mut dyn TraceSink,
        process: u64,
        device: Option<i32>,
        context: Option<i64>,
        queue: i64,
    ) -> TrackId {
        if let Some(device) = device.filter(|_| self.devices.len() < MAX_DEVICES) {
            self.devices.insert((process, device));
        }
        let process = self.process(sink, process);
        self.track(sink, TrackKey { kind: TrackKind::DeviceQueue, process, device, context, id: queue })
    }

    /// Tells the vendor and the count of the devices, of which nothing else is known.
    pub fn describe(&mut self, sink: &mut dyn TraceSink, vendor: &str) {
        let vendor = sink.intern(vendor);
        let ordinals: BTreeSet<i32> = self.devices.iter().map(|(_, ordinal)| *ordinal).collect();
        for (key, ordinal) in self.devices.clone() {
            let process = self.process(sink, key);
            let device = Device { process, ordinal, name: None, vendor: Some(vendor), cores: None, memory_bytes: None };
            sink.device(device);
        }
        if !ordinals.is_empty() {
            sink.manifest("hardware.count", &ordinals.len().to_string(), Provenance::Observed);
        }
    }

    /// The track with this key.
    pub fn track(&mut self, sink: &mut dyn TraceSink, key: TrackKey) -> TrackId {
        if let Some(track) = self.tracks.get(&key) {
            return *track;
        }
        if self.tracks.len() >= MAX_TRACKS {
            self.crowded += 1;
            return self.tracks.values().next().copied().unwrap_or(TrackId(u32::MAX));
        }
        let track = sink.track(key);
        self.tracks.insert(key, track);
        track
    }
}
