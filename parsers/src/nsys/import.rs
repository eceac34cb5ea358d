//! What is known while an export is read: names, processes, tracks, and what the rows of each table became.

use model::{Category, Detail, Ns, ProcessId, Severity, Slice, StringId, TraceSink, TrackId, TrackKey, TrackKind};
use rustc_hash::FxHashMap;

use super::{
    counters::Counters, device::Queues, facts::Facts, global_id::GlobalId, host::OffCpu, names::Names, nvtx::Ranges,
    page::Text,
};

/// Key of the process that rows belong to which do not say theirs.
pub(super) const NO_PROCESS: u64 = 0;
/// Key of the process that stands for the machine as a whole.
pub(super) const MACHINE: u64 = u64::MAX;

/// Most host threads, and most device queues, that are told apart; a track costs more memory than the row that asks for
/// it, and real captures have a few thousand.
pub(super) const MAX_TRACKS: usize = 1 << 16;

/// What became of the rows of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    /// Rows kept as slices, counters or facts.
    pub rows: u64,
    /// Sum of the durations kept.
    pub time: Ns,
    /// Rows that lack what they cannot be placed without.
    pub incomplete: u64,
    /// Rows refused because the table repeats more text than the file holds.
    pub refused: u64,
}

impl Kept {
    /// Counts a row that lasted from `start` to `end`.
    pub fn add(&mut self, start: Ns, end: Ns) {
        self.rows += 1;
        self.time = self.time.saturating_add(end.saturating_sub(start).max(0));
    }
}

/// An import under way.
pub(super) struct Import<'a> {
    pub sink: &'a mut dyn TraceSink,
    /// Table whose rows are being read.
    pub table: &'static str,
    pub names: Names,
    pub facts: Facts,
    pub queues: Queues,
    pub counters: Counters,
    pub ranges: Ranges,
    pub off_cpu: OffCpu,
    /// First start and last end of what was kept.
    pub extent: Option<(Ns, Ns)>,
    /// Rows that did not say their process.
    pub without_process: u64,
    processes: FxHashMap<u64, ProcessId>,
    host_process: Option<u64>,
    many_host_processes: bool,
    threads: FxHashMap<i64, TrackId>,
    text_left: u64,
}

impl<'a> Import<'a> {
    pub fn new(sink: &'a mut dyn TraceSink, file_bytes: u64) -> Self {
        Self {
            sink,
            table: "",
            names: Names::default(),
            facts: Facts::default(),
            queues: Queues::default(),
            counters: Counters::default(),
            ranges: Ranges::default(),
            off_cpu: OffCpu::default(),
            extent: None,
            without_process: 0,
            processes: FxHashMap::default(),
            host_process: None,
            many_host_processes: false,
            threads: FxHashMap::default(),
            // A text is stored once; in UTF-16 files it grows by half when it becomes UTF-8.
            text_left: file_bytes.saturating_mul(2),
        }
    }

    /// Whether this much more text can honestly come from the file: a damaged file can let many rows share one long
    /// text, and the copies would fill memory.
    pub fn within_file(&mut self, bytes: usize) -> bool {
        match self.text_left.checked_sub(bytes as u64) {
            Some(left) => {
                self.text_left = left;
                true
            }
            None => false,
        }
    }

    /// The process with this key.
    pub fn process(&mut self, key: u64) -> ProcessId {
        let sink = &mut *self.sink;
        *self.processes.entry(key).or_insert_with(|| sink.process(key))
    }

    /// The process of a device row. Rows that do not say theirs belong to the only process that called the runtime, if
    /// there is only one.
    pub fn process_of_row(&mut self, global_pid: Option<i64>) -> (u64, ProcessId) {
        let key = match (global_pid, self.host_process) {
            (Some(id), _) => GlobalId::new(id).process(),
            (None, Some(only)) if !self.many_host_processes => only,
            (None, _) => {
                self.without_process += 1;
                NO_PROCESS
            }
        };
        (key, self.process(key))
    }

    /// The track of a host thread.
    pub fn thread(&mut self, global_tid: Option<i64>) -> TrackId {
        let raw = global_tid.unwrap_or_else(|| {
            self.without_process += 1;
            0
        });
        if let Some(track) = self.threads.get(&raw) {
            return *track;
        }
        if self.threads.len() >= MAX_TRACKS {
            self.stat("too_many_threads", Severity::DataLoss, 1, None);
            return self.threads.values().next().copied().unwrap_or(TrackId(u32::MAX));
        }
        let id = GlobalId::new(raw);
        let only = *self.host_process.get_or_insert(id.process());
        self.many_host_processes |= only != id.process();
        let process = self.process(id.process());
        let key = TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: id.tid() };
        let track = self.sink.track(key);
        self.threads.insert(raw, track);
        track
    }

    /// Adds a slice and counts it.
    #[expect(clippy::too_many_arguments, reason = "a slice has this many columns")]
    pub fn slice(
        &mut self,
        kept: &mut Kept,
        track: TrackId,
        (start, end): (Ns, Ns),
        name: StringId,
        category: Category,
        correlation: Option<i64>,
        detail: Option<&Detail>,
    ) {
        kept.add(start, end);
        self.extent = Some(self.extent.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        let dur = end.saturating_sub(start);
        self.sink.slice(Slice { track, start, dur, name, category, correlation, detail });
    }

    /// The name that a text cell gives, `None` where it is NULL or repeats more text than the file holds.
    pub fn text(&mut self, text: Option<Text<'_>>) -> Option<StringId> {
        match text? {
            Text::Id(id) => Some(self.names.name(&mut *self.sink, Some(id))),
            Text::Inline(text) => self.within_file(text.len()).then(|| self.sink.intern(text)),
        }
    }

    /// Adds to a statistic of this format.
    pub fn stat(&mut self, name: &str, severity: Severity, count: u64, example: Option<&str>) {
        if count > 0 {
            self.sink.stat(&format!("nsys.{name}"), severity, count, example);
        }
    }

    /// Threads that have a track, by their global id.
    pub fn threads(&self) -> impl Iterator<Item = (i64, TrackId)> {
        self.threads.iter().map(|(id, track)| (*id, *track))
    }

    /// Processes that own anything, by their key.
    pub fn processes(&self) -> impl Iterator<Item = (u64, ProcessId)> {
        self.processes.iter().map(|(key, process)| (*key, *process))
    }
}
