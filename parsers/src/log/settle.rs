//! Rows of a log into steps: what the runtime says of a step joins what times it, and everything gets its place in time.

use model::Provenance::Observed;
use model::{Category, Clock, Ns, ProcessId, Severity, Slice, StringId, TraceSink, TrackId, TrackKey, TrackKind};
use rustc_hash::FxHashMap;

use super::{
    field::{Counter, GraphMode, Record, Stage},
    row::Row,
    stamp,
};

/// A row that is kept until its step is known.
struct Kept {
    end: Option<Ns>,
    rank: Option<u32>,
    step: Option<i64>,
    batch: Option<u32>,
    prompt_len: Option<u64>,
    context: Option<u64>,
    stage: Option<Stage>,
    part: Option<StringId>,
    latency: Ns,
    graph: Option<GraphMode>,
    compile_hit: Option<bool>,
    compile: Option<Ns>,
    counters: Vec<(&'static Counter, f64)>,
}

/// What a category of lines came to.
#[derive(Default)]
struct Tally {
    read: u64,
    kept: u64,
    time: Ns,
}

/// Takes the rows of one log.
pub struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    timed: Vec<Kept>,
    runtime: Vec<Kept>,
    tallies: FxHashMap<String, Tally>,
    /// Stamp of the last line that had one: of the lines that follow without.
    last: Option<Ns>,
    /// Samples of lines without a time before the first that has one: their place in that order is their time.
    untimed: Ns,
    /// Whether stamps with and without a zone were met.
    clocks: (bool, bool),
    kept: bool,
    /// Stamp of the first line, and when the engine was ready for requests, ns.
    first: Option<Ns>,
    ready: Option<Ns>,
    /// That the engine ended by itself, until it is started again.
    failed: Vec<(&'static str, String)>,
}

/// Facts of which the order matters.
const FAILURE: &str = "log.failure";
const ERROR: &str = "log.error";
const READY: &str = "log.ready";

/// The steps of a rank, the parts of steps, and what happened beside steps.
const STEPS: i64 = 0;
const PARTS: i64 = 1;
const EVENTS: i64 = 2;

impl<'a> Import<'a> {
    /// An import into `sink`.
    pub fn new(sink: &'a mut dyn TraceSink) -> Self {
        let (timed, runtime, tallies) = (Vec::new(), Vec::new(), FxHashMap::default());
        Self {
            sink,
            timed,
            runtime,
            tallies,
            last: None,
            untimed: 0,
            clocks: (false, false),
            kept: false,
            first: None,
            ready: None,
            failed: Vec::new(),
        }
    }

    /// Whether no line said anything.
    pub fn is_empty(&self) -> bool {
        !self.kept
    }

    /// Counts under `log.<what>` if there is something to count.
    pub fn stat(&mut self, what: &str, severity: Severity, count: u64, example: Option<&str>) {
        if count > 0 {
            self.sink.stat(&format!("log.{what}"), severity, count, example);
        }
    }

    /// Adds to the ledger.
    pub fn ledger(&mut self, category: &str, read: u64, kept: u64, note: &str) {
        self.sink.ledger(category, read, kept, 0, note);
    }

    /// A line of which nothing is known; in a log of JSON lines, an object that cannot be read is lost.
    pub fn other(&mut self, line: &str, json: bool) {
        self.ledger("other lines", 1, 0, "not read: no field and no known line of an engine");
        if !json && let Some(stamp) = stamp::find(line) {
            self.first.get_or_insert(stamp.ns);
            self.last = Some(stamp.ns);
        }
        if json && line.trim_start().starts_with('{') {
            self.stat("malformed_line", Severity::DataLoss, 1, Some(line));
        }
    }

    /// Takes one row.
    pub fn take(&mut self, row: Row) {
        let Row { kind, record, unknown, unreadable } = row;
        self.kept = true;
        self.stat("unreadable_value", Severity::DataLoss, unreadable, Some(&kind));
        if let Some(name) = unknown {
            self.stat("unknown_field", Severity::Info, 1, Some(&name));
        }
        let tally = self.tallies.entry(kind).or_default();
        tally.read += 1;
        tally.kept += u64::from(!record.times || record.latency.is_some());
        tally.time = tally.time.saturating_add(record.latency.or(record.compile).or(record.capture).unwrap_or(0));
        if let Some(stamp) = record.time {
            self.first.get_or_insert(stamp.ns);
            self.last = Some(stamp.ns);
            if stamp.zoned { self.clocks.0 = true } else { self.clocks.1 = true }
        }
        for (key, value) in &record.facts {
            match *key {
                FAILURE | ERROR if self.failed.iter().any(|(known, _)| known == key) => {}
                FAILURE | ERROR => {
                    self.failed.push((key, value.clone()));
                    // Another start begins after it.
                    if *key == FAILURE {
                        (self.first, self.ready) = (None, None);
                    }
                }
                // A start that failed before this one is no failure of the run.
                READY => {
                    self.failed.clear();
                    self.ready = self.ready.or(self.last);
                }
                _ => self.sink.manifest(key, value, Observed),
            }
        }
        if let Some(platform) = &record.platform {
            self.sink.manifest("log.platform", platform, Observed);
        }
        match (record.latency, record.is_runtime()) {
            (Some(latency), _) => {
                let kept = self.kept_row(record, latency);
                self.timed.push(kept);
            }
            (None, true) => {
                let kept = self.kept_row(record, 0);
                self.runtime.push(kept);
            }
            (None, false) if record.times => {
                self.stat(
                    "step_without_latency",
                    Severity::DataLoss,
                    1,
                    Some("the time of a step is missing or unreadable"),
                );
            }
            (None, false) => self.event(&record),
        }
    }

    fn kept_row(&mut self, r: Record, latency: Ns) -> Kept {
        let part = r.part.as_deref().map(|part| self.sink.intern(part));
        let end = r.time.map(|stamp| stamp.ns);
        Kept {
            end,
            rank: r.rank,
            step: r.step,
            batch: r.batch,
            prompt_len: r.prompt_len,
            context: r.context,
            stage: r.stage,
            part,
            latency,
            graph: r.graph,
            compile_hit: r.compile_hit,
            compile: r.compile,
            counters: r.counters,
        }
    }

    /// What happened beside steps, at the line's time: it was written when it was over.
    fn event(&mut self, r: &Record) {
        let Some(end) = r.time.map(|stamp| stamp.ns).or(self.last) else {
            let nothing = r.compile.is_none() && r.capture.is_none();
            self.stat("line_without_time", Severity::DataLoss, u64::from(!nothing), None);
            if !r.counters.is_empty() {
                self.stat(
                    "sample_without_time",
                    Severity::Notice,
                    1,
                    Some("samples keep their order and have no time"),
                );
                self.count(r.rank, self.untimed, &r.counters);
                self.untimed += 1;
            }
            return;
        };
        for (name, span) in [("log compile", r.compile), ("log graph capture", r.capture)] {
            if let Some(span) = span {
                self.slice(r.rank, EVENTS, name, end.saturating_sub(span), span);
            }
        }
        self.count(r.rank, end, &r.counters);
    }

    fn process(&mut self, rank: Option<u32>) -> ProcessId {
        let process = self.sink.process(u64::from(rank.unwrap_or(0)));
        self.sink.describe_process(process, None, None, rank);
        process
    }

    fn count(&mut self, rank: Option<u32>, t: Ns, counters: &[(&'static Counter, f64)]) {
        let process = self.process(rank);
        for (counter, value) in counters {
            let name = self.sink.intern(counter.name);
            self.sink.counter(process, None, name, counter.unit, t, *value);
        }
    }

    fn track(&mut self, rank: Option<u32>, id: i64) -> TrackId {
        let process = self.process(rank);
        let track = self.sink.track(TrackKey { kind: TrackKind::Global, process, device: None, context: None, id });
        self.sink.name_track(
            track,
            match id {
                STEPS => "steps of the log",
                PARTS => "parts of steps",
                _ => "events of the log",
            },
        );
        track
    }

    fn slice(&mut self, rank: Option<u32>, id: i64, name: &str, start: Ns, dur: Ns) {
        let track = self.track(rank, id);
        let name = self.sink.intern(name);
        let category = Category::UserRange;
        self.sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
    }

    /// Joins, lays out and hands over what was kept.
    pub fn settle(mut self) {
        for (key, value) in std::mem::take(&mut self.failed) {
            self.sink.manifest(key, &value, Observed);
        }
        if let Some(start) = self.first.zip(self.ready).map(|(first, ready)| ready.saturating_sub(first)) {
            self.sink.manifest("log.ready_ns", &start.max(0).to_string(), Observed);
        }
        let untimed = self.timed.iter().filter(|row| row.end.is_none()).count() as u64;
        let example = "the steps were laid end to end in the order of the log";
        self.stat("step_without_time", Severity::Notice, untimed, Some(example));
        if self.clocks == (true, true) {
            let example = "times with and without a zone stand in one log: they may lie hours apart";
            self.stat("mixed_clocks", Severity::Notice, 1, Some(example));
        }
        // Times of a known zone are Unix times; of any others nobody knows the distance to those.
        let unix_offset = (self.clocks == (true, false) && untimed == 0).then_some(0);
        self.sink.clock(Clock::FromFirstSlice { unix_offset });
        let (timed, runtime) = (std::mem::take(&mut self.timed), std::mem::take(&mut self.runtime));
        let (mut steps, mut parts) = (Vec::new(), Vec::new());
        for row in timed {
            if row.stage == Some(Stage::Part) { parts.push(row) } else { steps.push(row) }
        }
        let steps = self.merged(steps);
        let steps = self.joined(steps, runtime);
        let mut cursors: FxHashMap<(Option<u32>, i64), Ns> = FxHashMap::default();
        for (id, rows) in [(STEPS, steps), (PARTS, parts)] {
            for row in rows {
                let cursor = cursors.entry((row.rank, id)).or_insert(0);
                let start = row.end.map_or(*cursor, |end| end.saturating_sub(row.latency));
                *cursor = start.saturating_add(row.latency);
                self.place(id, &row, start);
            }
        }
        let mut tallies: Vec<(String, Tally)> = std::mem::take(&mut self.tallies).into_iter().collect();
        tallies.sort_by(|a, b| a.0.cmp(&b.0));
        for (kind, tally) in tallies {
            self.sink.ledger(&kind, tally.read, tally.kept, tally.time, "steps, events, counters and facts");
        }
    }

    fn place(&mut self, id: i64, row: &Kept, start: Ns) {
        let track = self.track(row.rank, id);
        let name = match row.part {
            Some(part) => part,
            None => self.sink.intern(&label(row)),
        };
        let (dur, category) = (row.latency, Category::UserRange);
        self.sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
        if let Some(compile) = row.compile.filter(|ns| *ns > 0) {
            self.slice(row.rank, EVENTS, "log compile", start, compile.min(dur));
            let beyond = u64::from(compile > dur);
            self.stat("compile_longer_than_step", Severity::Notice, beyond, Some("it is cut to its step"));
        }
        self.count(row.rank, start, &row.counters);
    }

    /// Rows that time the same step of a rank are one step: the first one's time, with what the others add.
    fn merged(&mut self, rows: Vec<Kept>) -> Vec<Kept> {
        let mut seen: FxHashMap<(Option<u32>, i64), usize> = FxHashMap::default();
        let mut steps: Vec<Kept> = Vec::with_capacity(rows.len());
        let mut again = 0;
        for row in rows {
            let known = row.step.and_then(|step| seen.get(&(row.rank, step)).copied());
            match known.and_then(|i| steps.get_mut(i)) {
                Some(first) => {
                    again += 1;
                    let whole = first.stage.is_none_or(|stage| stage == Stage::Whole);
                    if whole && row.stage.is_some() {
                        first.stage = row.stage;
                    }
                    first.tell(row);
                }
                None => {
                    if let Some(step) = row.step {
                        seen.insert((row.rank, step), steps.len());
                    }
                    steps.push(row);
                }
            }
        }
        self.stat("step_timed_again", Severity::Notice, again, Some("the first time of a step holds"));
        steps
    }

    /// Gives each step what the runtime said of it: by number, else one by one where there are as many, else what was
    /// said last before the step ended.
    fn joined(&mut self, mut steps: Vec<Kept>, runtime: Vec<Kept>) -> Vec<Kept> {
        let mut by_number: FxHashMap<(Option<u32>, i64), usize> = FxHashMap::default();
        for (i, step) in steps.iter().enumerate() {
            if let Some(number) = step.step {
                by_number.insert((step.rank, number), i);
            }
        }
        let (numbered, rest): (Vec<Kept>, Vec<Kept>) = runtime.into_iter().partition(|row| row.step.is_some());
        let mut lost = 0;
        for row in numbered {
            let place = row.step.and_then(|step| by_number.get(&(row.rank, step)));
            match place.and_then(|i| steps.get_mut(*i)) {
                Some(step) => step.tell(row),
                None => lost += 1,
            }
        }
        if rest.len() == steps.len() {
            steps.iter_mut().zip(rest).for_each(|(step, row)| step.tell(row));
        } else if rest.iter().chain(&steps).all(|row| row.end.is_some()) {
            let mut order: Vec<usize> = (0..steps.len()).collect();
            order.sort_by_key(|i| steps.get(*i).and_then(|step| step.end));
            let mut rest = rest;
            rest.sort_by_key(|row| row.end);
            let mut rows = rest.into_iter().peekable();
            for i in order {
                let Some(step) = steps.get_mut(i) else { continue };
                while let Some(row) = rows.next_if(|row| row.end <= step.end) {
                    lost += u64::from(step.graph.is_some() && step.compile_hit.is_some());
                    step.tell(row);
                }
            }
            lost += rows.count() as u64;
        } else {
            lost += rest.len() as u64;
        }
        let example = "its step is not known: give both lines the number of the step";
        self.stat("runtime_line_without_step", Severity::DataLoss, lost, Some(example));
        steps
    }
}

impl Kept {
    /// Takes from another row of the same step what this one does not know.
    fn tell(&mut self, other: Kept) {
        self.batch = self.batch.or(other.batch);
        self.prompt_len = self.prompt_len.or(other.prompt_len);
        self.context = self.context.or(other.context);
        self.graph = self.graph.or(other.graph);
        self.compile_hit = self.compile_hit.or(other.compile_hit);
        self.compile = self.compile.or(other.compile);
        self.counters.extend(other.counters);
    }
}

/// The name of a step: what is known of it, in the words that the pack `logs` reads.
fn label(row: &Kept) -> String {
    let mut name = "log step".to_owned();
    let tokens = |each: Option<u64>| each.zip(row.batch).map(|(n, batch)| n.saturating_mul(u64::from(batch)));
    let facts = match row.stage {
        Some(Stage::Prefill) => [("prefill", row.batch.map(u64::from)), ("tokens", tokens(row.prompt_len))],
        Some(Stage::Decode) => {
            [("decode", row.batch.map(u64::from)), ("context", tokens(row.context.or(row.prompt_len)))]
        }
        _ => [("requests", row.batch.map(u64::from)), ("", None)],
    };
    if row.batch.is_none() {
        name += match row.stage {
            Some(Stage::Prefill) => " prefill",
            Some(Stage::Decode) => " decode",
            _ => "",
        };
    }
    for (key, value) in facts {
        if let Some(value) = value {
            name += &format!(" {key}={value}");
        }
    }
    if let Some(graph) = row.graph {
        name += &format!(" graph={}", graph.name());
    }
    if let Some(hit) = row.compile_hit {
        name += if hit { " compile=hit" } else { " compile=miss" };
    }
    name
}
