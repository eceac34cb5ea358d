//! Which process and thread of the file each track is: a process is a rank, a thread is a track. What belongs to no rank lies
//! in a process of its own.

use std::io;

use model::{Ns, ProcessId, Span, TrackId, TrackKind};

use super::{
    File, Source,
    event::{Events, Place, Slice},
    nest::{Nest, Row},
};
use crate::{text, timeline::aligned, track_name};
use diagnosis::{analysis::Rank, i18n::Text};

/// Thread ids begin here: one that is its process's own id would be that process's main thread.
const FIRST_TID: u32 = 1_000_000;

/// Processes and threads that were given away.
#[derive(Clone, Debug, Default)]
pub struct Places {
    processes: u32,
    threads: u32,
}

impl Places {
    fn process(&mut self) -> u32 {
        self.processes += 1;
        self.processes
    }

    fn thread(&mut self, pid: u32) -> Place {
        self.threads += 1;
        Place { pid, tid: FIRST_TID + self.threads }
    }
}

/// Order of the threads of a rank: what is read first stands first.
pub mod order {
    /// Steps.
    pub const STEPS: u32 = 1;
    /// Findings.
    pub const FINDINGS: u32 = 2;
    /// Idle time by cause.
    pub const IDLE: u32 = 3;
    /// The stretches that findings are about.
    pub const EVIDENCE: u32 = 4;
    /// Queues of the device, one after the other.
    pub const QUEUES: u32 = 10;
    /// Collectives of all queues.
    pub const COLLECTIVES: u32 = 100_000;
    /// Copies of all queues.
    pub const COPIES: u32 = 100_001;
    /// Replays of graphs.
    pub const REPLAYS: u32 = 100_002;
    /// Host threads, annotations and waits.
    pub const OTHERS: u32 = 200_000;
}

/// A thread of the file, with rows beside it for what does not nest.
pub struct Thread {
    pid: u32,
    name: String,
    order: u32,
    nest: Nest,
    rows: Vec<Place>,
}

impl Thread {
    /// A thread of a process; it is in the file from its first slice on.
    pub fn new(pid: u32, name: String, order: u32) -> Self {
        Self { pid, name, order, nest: Nest::default(), rows: Vec::new() }
    }

    /// Writes a slice where it nests, and says where that is. Slices come in order of their start, the longest first.
    pub fn put(&mut self, slice: &Slice<'_>, file: &mut File<'_, '_>) -> io::Result<Row> {
        let row = self.nest.place(slice.span);
        match row {
            Row::Nested(row) => {
                let place = self.row(row, file)?;
                file.events.slice(place, slice)?;
            }
            Row::Alone => {
                let place = self.row(0, file)?;
                file.events.asynchronous(place, slice)?;
            }
        }
        Ok(row)
    }

    /// The row with the innermost slice at `t`.
    pub fn at(&self, t: Ns) -> Option<Place> {
        self.rows.get(self.nest.at(t)?).copied()
    }

    fn row(&mut self, row: usize, file: &mut File<'_, '_>) -> io::Result<Place> {
        while self.rows.len() <= row {
            let place = file.places.thread(self.pid);
            let name = match self.rows.len() {
                0 => self.name.clone(),
                beside => format!("{} +{beside}", self.name),
            };
            file.events.thread(place, &name, self.order)?;
            self.rows.push(place);
        }
        Ok(self.rows.get(row).copied().unwrap_or(Place { pid: self.pid, tid: FIRST_TID }))
    }
}

/// Processes and tracks of one capture.
pub struct Layout {
    /// Process of each rank of the analysis.
    pub ranks: Vec<u32>,
    /// Process and place in its order of each track.
    pub tracks: Vec<(u32, u32)>,
    /// Process of each process of the capture, for what belongs to no device.
    pub processes: Vec<u32>,
}

impl Layout {
    /// Gives every track of a capture its place, and names the processes.
    pub fn of(source: &Source<'_>, several: bool, places: &mut Places, events: &mut Events<'_>) -> io::Result<Self> {
        let (trace, analysis) = (source.trace, source.analysis);
        let mut ranks = Vec::with_capacity(analysis.ranks.len());
        for rank in &analysis.ranks {
            let pid = places.process();
            let clock = analysis.job.clocks.get(ranks.len()).copied().flatten();
            let clock = clock.map_or(String::new(), |clock| aligned(&clock, source.lang));
            events.process(pid, &source.process_name(several, &(source.rank_name(rank) + &clock)))?;
            ranks.push(pid);
        }
        let mut processes: Vec<Option<u32>> = (0..trace.processes.len() as u32)
            .map(|process| analysis.ranks.iter().position(|rank| rank.process == ProcessId(process)))
            .map(|rank| ranks.get(rank?).copied())
            .collect();
        let mut tracks = Vec::with_capacity(trace.tracks.len());
        for (id, track) in (0..).zip(&trace.tracks) {
            let owner = analysis.ranks.iter().zip(&ranks).find(|(rank, _)| {
                let device = track.key.device;
                rank.process == track.key.process && device.is_none_or(|device| device == rank.device)
            });
            let process = track.key.process.0 as usize;
            let known = owner.map(|(_, pid)| *pid).or_else(|| processes.get(process).copied().flatten());
            let pid = match known {
                Some(pid) => pid,
                None => {
                    let pid = places.process();
                    events.process(pid, &source.process_name(several, &source.no_rank_name(track.key.process)))?;
                    if let Some(of_process) = processes.get_mut(process) {
                        *of_process = Some(pid);
                    }
                    pid
                }
            };
            let first = if track.key.kind == TrackKind::DeviceQueue { order::QUEUES } else { order::OTHERS };
            tracks.push((pid, first + id));
        }
        for (id, process) in (0..).zip(&mut processes) {
            if process.is_none() && trace.counters.iter().any(|counter| counter.process == ProcessId(id)) {
                let pid = places.process();
                events.process(pid, &source.process_name(several, &source.no_rank_name(ProcessId(id))))?;
                *process = Some(pid);
            }
        }
        let processes = processes.into_iter().map(|pid| pid.unwrap_or(0)).collect();
        Ok(Self { ranks, tracks, processes })
    }
}

impl Source<'_> {
    /// A text in the language of the file.
    pub fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    /// When it is in the file; `by` is what the clock that it was recorded with is moved by.
    pub fn span(&self, span: Span, by: Ns) -> Span {
        Span::new(self.time(span.start, by), self.time(span.end, by))
    }

    /// When it is in the file; `by` is what the clock that it was recorded with is moved by.
    pub fn time(&self, t: Ns, by: Ns) -> Ns {
        t.saturating_add(by).saturating_add(self.shift)
    }

    fn process_name(&self, several: bool, name: &str) -> String {
        let capture = match several {
            true => format!("{} · ", text::plain(&self.trace.source, text::PHRASE)),
            false => String::new(),
        };
        let simulated =
            if self.trace.simulated { self.get(Text::new(" · simulated", " · 模拟数据")) } else { "" };
        format!("{capture}{name}{simulated}")
    }

    fn rank_name(&self, rank: &Rank) -> String {
        let mut devices = self.trace.devices.iter();
        let device = devices.find(|d| d.process == rank.process && d.ordinal == rank.device).and_then(|d| d.name);
        let chip = device.map_or(String::new(), |name| format!(" · {}", self.trace.strings.get(name)));
        let word = self.get(Text::new("device", "设备"));
        format!("rank {} · {word} {}{chip}{}", rank.rank, rank.device, self.pid(rank.process))
    }

    fn no_rank_name(&self, process: ProcessId) -> String {
        format!("{}{}", self.get(Text::new("of no rank", "不属于任何 rank")), self.pid(process))
    }

    fn pid(&self, process: ProcessId) -> String {
        let pid = self.trace.processes.get(process.0 as usize).and_then(|p| p.pid);
        pid.map_or(String::new(), |pid| format!(" · pid {pid}"))
    }

    /// What a track is called.
    pub fn track_name(&self, id: TrackId) -> String {
        let Some(track) = self.trace.tracks.get(id.0 as usize) else { return String::new() };
        let what = self.get(track_name::kind(&track.key));
        if !track_name::has_number(&track.key) {
            return what.to_owned();
        }
        let name = track.name.map_or("", |name| self.trace.strings.get(name));
        let id = track.key.id.to_string();
        let id = if name.contains(&id) { "" } else { &id };
        let words = [what, id, name].into_iter().filter(|word| !word.is_empty() && *word != what);
        let bare = name.starts_with("stream ") || name.starts_with("thread ");
        let words: Vec<&str> = (!bare).then_some(what).into_iter().chain(words).collect();
        words.join(" ")
    }
}
