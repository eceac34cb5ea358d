//! What is known while a database is read.

use model::{Clock, Ns, ProcessId, Provenance, Severity, Span, StringId, TraceSink};
use rustc_hash::FxHashMap;

use super::{
    super::{counters::Counted, facts::Facts, import::Import, layout::Layout, told::Told},
    infos::{Infos, Numbered},
};

/// Times beyond this (the year 2001 in Unix ns) are absolute.
const ABSOLUTE: Ns = 1_000_000_000_000_000_000;

/// What became of the rows of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    pub rows: u64,
    /// Sum of the durations kept.
    pub time: Ns,
    /// Rows that lack what they cannot be placed without.
    pub incomplete: u64,
}

impl Kept {
    /// Counts a row that lasted from `start` to `end`.
    pub fn add(&mut self, start: Ns, end: Ns) {
        self.rows += 1;
        self.time = self.time.saturating_add(end.saturating_sub(start).max(0));
    }
}

/// A process that is told by rows of a kind, as long as they tell of one.
#[derive(Clone, Copy, Debug, Default)]
struct Only {
    first: Option<i64>,
    many: bool,
}

impl Only {
    fn note(&mut self, pid: i64) {
        self.many |= *self.first.get_or_insert(pid) != pid;
    }

    fn get(self) -> Option<i64> {
        self.first.filter(|_| !self.many)
    }
}

/// An import under way.
pub(super) struct State<'a> {
    pub import: Import<'a>,
    pub strings: FxHashMap<i64, Box<str>>,
    interned: FxHashMap<i64, StringId>,
    pub levels: FxHashMap<i64, String>,
    pub data_types: FxHashMap<i64, String>,
    pub infos: Infos,
    /// Rows of collectives that were kept.
    pub collectives: u64,
    /// First start and last end of the tasks of each collective, by device, name and number.
    pub framed: FxHashMap<(i32, Numbered), (Ns, Ns)>,
    pub counted: Counted,
    pub facts: Facts,
    /// Product names by device.
    pub products: FxHashMap<i64, String>,
    /// Ranks by device.
    pub ranks: FxHashMap<i64, u32>,
    pub schema: Option<String>,
    /// Start and end of the session.
    pub session: Option<(Ns, Ns)>,
    /// Unix time of the zero of early databases' clock.
    pub base: Option<Ns>,
    /// The process that called CANN.
    host: Only,
    /// That whose tasks ran; all that tells of it where no call was recorded.
    worker: Only,
    /// Whether a range of the program marks the steps.
    pub marked: bool,
    processes: FxHashMap<i64, ProcessId>,
    text_left: u64,
    missing: u64,
}

impl<'a> State<'a> {
    pub fn new(sink: &'a mut dyn TraceSink, layout: &Layout, bytes: u64) -> Self {
        let facts = Facts::read(layout, sink);
        Self {
            import: Import::new(sink),
            strings: FxHashMap::default(),
            interned: FxHashMap::default(),
            levels: FxHashMap::default(),
            data_types: FxHashMap::default(),
            infos: Infos::default(),
            collectives: 0,
            framed: FxHashMap::default(),
            counted: Counted::default(),
            facts,
            products: FxHashMap::default(),
            ranks: FxHashMap::default(),
            schema: None,
            session: None,
            base: None,
            host: Only::default(),
            worker: Only::default(),
            marked: false,
            processes: FxHashMap::default(),
            // A text is stored once; in UTF-16 files it grows by half when it becomes UTF-8.
            text_left: bytes.saturating_mul(2),
            missing: 0,
        }
    }

    /// Whether this much more text can honestly come from the file: damage can let many rows share one long text.
    pub fn within_file(&mut self, bytes: usize) -> bool {
        let left = self.text_left.checked_sub(bytes as u64);
        self.text_left = left.unwrap_or(self.text_left);
        left.is_some()
    }

    /// The string with this id; `#<id>` where it is missing.
    pub fn text(&mut self, id: Option<i64>) -> String {
        let Some(id) = id else { return "#".to_owned() };
        match self.strings.get(&id) {
            Some(text) => text.to_string(),
            None => {
                self.missing += 1;
                format!("#{id}")
            }
        }
    }

    /// The name with this id in the sink.
    pub fn name(&mut self, id: Option<i64>) -> StringId {
        if let Some(known) = id.and_then(|id| self.interned.get(&id)) {
            return *known;
        }
        let text = self.text(id);
        let name = self.import.sink.intern(&text);
        if let Some(id) = id {
            self.interned.insert(id, name);
        }
        name
    }

    /// What the strings with these ids say of a kernel's operator. A name that no string has says nothing.
    pub fn told(&mut self, ids: [Option<i64>; 4]) -> Option<Told> {
        let [op, shapes, dtypes, formats] = ids.map(|id| self.strings.get(&id?).map(AsRef::as_ref));
        Told::of(self.import.sink, op, [shapes, dtypes, formats])
    }

    /// The process with this number; where it is 0 that of the host, or without its calls that of the tasks.
    pub fn process(&mut self, pid: i64) -> ProcessId {
        let pid = match pid {
            0 => self.host.get().or(self.worker.get()).unwrap_or(0),
            pid => pid,
        };
        let sink = &mut *self.import.sink;
        *self.processes.entry(pid).or_insert_with(|| {
            let process = sink.process(pid.cast_unsigned());
            sink.describe_process(process, Some(pid).filter(|pid| *pid != 0), None, None);
            process
        })
    }

    /// Process and thread of a `globalTid`: 32 bits each; before 2024 it held the thread only.
    pub fn thread(&mut self, global_tid: i64) -> (ProcessId, i64) {
        let (pid, tid) = (global_tid >> 32, global_tid & 0xFFFF_FFFF);
        (self.process(pid), tid)
    }

    /// Notes that the process of this `globalTid` called CANN.
    pub fn note_host(&mut self, global_tid: i64) {
        self.host.note(global_tid >> 32);
    }

    /// Notes that a task of this process ran; 0 says none.
    pub fn note_worker(&mut self, pid: i64) {
        if pid != 0 {
            self.worker.note(pid);
        }
    }

    /// Tells what is told once everything was read.
    pub fn finish(mut self) {
        let early = self.import.first.is_some_and(|first| first < ABSOLUTE);
        let unix_offset = if early { self.base } else { Some(0) };
        self.import.sink.clock(Clock::FromFirstSlice { unix_offset });
        if let Some((start, end)) = self.session.filter(|_| !early)
            && self.import.first.is_some_and(|first| start <= first && first < end)
        {
            self.import.sink.window(Span::new(start, end));
        }
        let only = match self.ranks.len() {
            1 => self.ranks.values().next().copied(),
            _ => None,
        };
        let rank = only.or(self.facts.rank);
        let processes: Vec<ProcessId> = self.processes.values().copied().collect();
        if let [process] = processes.as_slice() {
            self.import.sink.describe_process(*process, None, None, rank);
        } else if let Some(host) = self.host.first.or(self.worker.first) {
            let process = self.process(host);
            self.import.sink.describe_process(process, None, None, rank);
        }
        let products = std::mem::take(&mut self.products);
        self.import.settle(&|device| products.get(&i64::from(device)).cloned(), self.facts.world);
        self.facts.tell(self.import.sink);
        self.counted.tell(self.import.sink);
        let sink = &mut *self.import.sink;
        sink.manifest("ascend.form", "database", Provenance::Observed);
        if let Some(schema) = &self.schema {
            sink.manifest("ascend.schema", schema, Provenance::Observed);
        }
        let missing = self.missing;
        self.import.stat("missing_string", Severity::Notice, missing, None);
    }
}
