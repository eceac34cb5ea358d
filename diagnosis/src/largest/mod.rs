//! The tables that are read first: what takes the most time, by name, before anybody asks why. Every kind of evidence has
//! them: a timeline over all steps that were recorded, a window without steps, a host without a device, sums of a profiler,
//! kernels that ran alone.
//!
//! | module | owns |
//! | --- | --- |
//! | [`row`] | a row, and how rows of one name are added up |
//! | `cover` | sets of time, and how much of a stretch lies in one |
//! | `device` | kernels and copies |
//! | `collectives` | collectives by kind and payload |
//! | `calls` | calls of the runtime, the driver and the operating system |
//! | `own` | own time of ranges, framework operators and frames |
//! | `gaps` | idle time by what the host did meanwhile |
//! | `sums` | what a capture of sums holds |
//! | [`samples`] | clocks, power and other counters |
//!
//! No share of one table may be added to one of another: the tables speak of the same time.

mod calls;
mod collectives;
mod cover;
mod device;
mod gaps;
mod own;
pub mod row;
pub mod samples;
mod sums;

use model::{Category, ImportStat, Ns, ProcessId, Span, Trace, TrackId, TrackKind};

use self::{cover::Cover, device::Work};
pub use self::{
    gaps::LongGap,
    row::{Kind, Row},
    samples::Samples,
};
use crate::analysis::{Analysis, AnchorKind, Rank, Selection, Step, touched};

/// Rows of a table.
pub const ROWS: usize = 5;
/// Share of all time above which a row that no finding names needs a sentence (decided form of the first screen).
pub const NOTABLE: f64 = 0.20;

/// One part in so many of a window that a call outside of it takes at least to be told; heuristic.
const OUTSIDE: Ns = 2;

/// What the time of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// All steps that were recorded, whether or not they count for the verdict.
    Steps,
    /// The one window of a capture in which nothing marks steps.
    Window,
    /// The busiest thread of a host whose device was not recorded.
    Host,
    /// What a profiler summed of a run: the time of its kernels.
    Sums,
    /// Kernels that were run alone: no time of a run.
    Alone,
}

impl Over {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Window => "window",
            Self::Host => "host",
            Self::Sums => "sums",
            Self::Alone => "alone",
        }
    }
}

/// The tables of one rank, or of a capture that has none.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Tables {
    /// Rank; absent where the evidence has none.
    pub rank: Option<u32>,
    /// What the time is.
    pub over: Over,
    /// Steps in it, 0 where nothing marks any.
    pub steps: usize,
    /// All time, ns: what every share refers to.
    pub time: Ns,
    /// The largest rows of each table, five at most, the longest first.
    pub rows: Vec<Row>,
    /// Time in which collectives ran and nothing computed, ns; absent where no collective was recorded.
    pub exposed_communication: Option<Ns>,
    /// Time in which copies ran and no kernel, ns; absent where no copy was recorded.
    pub exposed_copies: Option<Ns>,
    /// The longest pauses of the device, five at most.
    pub gaps: Vec<LongGap>,
    /// Calls of the host outside of this time that take more than half as long as it: the device starts up there. Only of a window.
    pub outside: Vec<Row>,
}

impl Tables {
    /// Tables of so much time without a row.
    fn empty(rank: Option<u32>, over: Over, steps: usize, time: Ns) -> Self {
        let (rows, gaps, outside) = (Vec::new(), Vec::new(), Vec::new());
        Self { rank, over, steps, time, rows, exposed_communication: None, exposed_copies: None, gaps, outside }
    }

    /// The rows of one table, the longest first.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.kind == kind)
    }

    /// `part` as a share of all time.
    pub fn share(&self, part: Ns) -> f64 {
        part as f64 / self.time.max(1) as f64
    }

    /// Share of all time that a row costs: of host work, copies and collectives what no kernel hides.
    pub fn cost(&self, row: &Row) -> f64 {
        self.share(row.exposed.unwrap_or(row.total))
    }

    /// The rows that cost more than [`NOTABLE`] of all time and that no finding names, the costliest first. Each wants a
    /// sentence. Kernels that ran alone have no share of a run; what a host alone does is the headline.
    pub fn unnamed(&self) -> Vec<&Row> {
        let told = matches!(self.over, Over::Alone | Over::Host);
        let wants = |row: &&Row| !row.named && !told && self.cost(row) > NOTABLE;
        let mut rows: Vec<&Row> = self.rows.iter().filter(wants).collect();
        rows.sort_by(|a, b| self.cost(b).total_cmp(&self.cost(a)));
        // Idle time is told once: the record that owns it stands among the host's records too.
        let idle: Vec<&str> = rows.iter().filter(|row| row.kind == Kind::Idle).map(|row| row.name.as_str()).collect();
        let told = |row: &&Row| matches!(row.kind, Kind::Host | Kind::Call) && idle.contains(&row.name.as_str());
        rows.retain(|row| !told(row));
        rows
    }
}

/// The tables of a capture.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Largest {
    /// One per rank, in the order of the analysis; then those of sums.
    pub tables: Vec<Tables>,
    /// Counters of devices that were sampled.
    pub samples: Vec<Samples>,
}

impl Largest {
    /// The tables that are shown beside what is said of `rank`: its own, else the first.
    pub fn of(&self, rank: Option<u32>) -> Option<&Tables> {
        self.tables.iter().find(|tables| tables.rank == rank && rank.is_some()).or(self.tables.first())
    }
}

/// The tables of a capture. `stated` gives the time of a rank that findings are about.
pub fn of(trace: &Trace, analysis: &Analysis, stated: impl Fn(&Rank) -> Vec<Span>) -> Largest {
    let spreads = collectives::spreads(analysis);
    // Beside a device that was hardly touched the host tells more.
    let ran = !touched::hardly(trace, &analysis.ranks);
    let ranks = analysis.ranks.iter().zip(&spreads).filter(|(rank, _)| ran && !rank.timeline.ops.is_empty());
    let mut tables: Vec<Tables> =
        ranks.map(|(rank, spread)| of_rank(trace, analysis, rank, spread, stated(rank))).collect();
    // What a profiler summed says more of a run than a host without its device.
    let of_sums = sums::of(trace);
    if tables.is_empty() && of_sums.is_empty() {
        tables.extend(of_host(trace));
    }
    tables.extend(of_sums);
    Largest { tables, samples: samples::of(trace, analysis) }
}

fn of_rank(trace: &Trace, analysis: &Analysis, rank: &Rank, spread: &collectives::Spread, stated: Vec<Span>) -> Tables {
    let asked = || rank.steps.iter().filter(|step| step.selection != Selection::NotAsked);
    let windows = Cover::of(asked().map(|step| step.window).collect());
    let marked = rank.anchor.kind != AnchorKind::WholeCapture;
    let alone = trace.stat(ImportStat::RUN_ALONE) > 0;
    let (over, steps) = match marked {
        _ if alone => (Over::Alone, 0),
        true => (Over::Steps, asked().count()),
        false => (Over::Window, 0),
    };
    let work = Work::of(rank, &windows, stated);
    let mut out = Tables::empty(Some(rank.rank), over, steps, windows.len());
    out.rows = device::kernels(trace, &work);
    out.rows.extend(device::copies(trace, &work));
    out.rows.extend(collectives::of(trace, rank, &work, spread));
    let threads = launching(rank);
    let waited = work.idle.and(&work.stated);
    let host = calls::Host {
        process: rank.process,
        threads: &threads,
        windows: &windows,
        idle: &work.idle,
        stated: &waited,
        apart: false,
    };
    // Between collectives of which only these were kept the device may have worked.
    let told = !(alone || rank.timeline.collectives_only);
    let asked: Vec<&Step> = asked().collect();
    let ((calls, own), pauses) = rayon::join(
        || (calls::of(trace, &host), own::of(trace, &host)),
        || told.then(|| gaps::of(trace, analysis, rank, &asked, &work.stated)),
    );
    out.rows.extend(calls);
    out.rows.extend(own);
    if over == Over::Window {
        out.outside = calls::outside(trace, &host);
        out.outside.retain(|row| row.total.saturating_mul(OUTSIDE) > out.time);
    }
    // Between kernels that were run one by one the profiler worked.
    if alone {
        out.time = work.ops.iter().map(|(_, op)| op.dur()).sum();
    }
    let Some((idle, long)) = pauses else { return out };
    out.rows.extend(idle);
    out.gaps = long;
    (out.exposed_communication, out.exposed_copies) = work.exposed();
    out
}

/// The threads that launch a rank's work, and those that hand it to them.
fn launching(rank: &Rank) -> Vec<TrackId> {
    let calls = rank.timeline.calls.iter().filter(|call| call.ops > 0).map(|call| call.track);
    let mut threads: Vec<TrackId> = calls.chain(rank.timeline.tasks.feeders()).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Parts of the names of records in which a thread waits for something to do.
const WAITS: [&str; 9] = ["kqueue", "epoll", "select.", "poll", "sleep", "acquire", "wait", "futex", "Queue.get"];

/// The tables of the busiest thread of a capture without device work: the one that calls the runtime most, else the one that works for
/// longest.
pub(crate) fn of_host(trace: &Trace) -> Option<Tables> {
    let threads = || trace.tracks.iter().zip(&trace.lanes).zip(0u32..).filter(|((track, _), _)| is_thread(track));
    let weight = |lane: &model::Columns| {
        let calls = lane.category.iter().filter(|c| **c == Category::HostApi).count();
        let worked = own::worked(lane, |name| WAITS.iter().any(|part| trace.strings.get(name).contains(part)));
        (calls, worked, lane.category.iter().filter(|c| own::tells(**c)).count())
    };
    let busiest = threads().max_by_key(|((_, lane), at)| (weight(lane), std::cmp::Reverse(*at)));
    let ((track, lane), at) = busiest.filter(|((_, lane), _)| weight(lane) != (0, 0, 0))?;
    let told = |i: &usize| own::tells(lane.category[*i]) || calls::tells(lane.category[*i]);
    let start = (0..lane.len()).find(told).and_then(|i| lane.start.get(i).copied())?;
    let end = (0..lane.len()).filter(told).map(|i| lane.end(i)).max()?;
    let process: ProcessId = track.key.process;
    let windows = Cover::of(vec![Span::new(start, end)]);
    let host = calls::Host {
        process,
        threads: &[TrackId(at)],
        windows: &windows,
        idle: &windows,
        stated: &Cover::default(),
        apart: true,
    };
    let rank = trace.processes.get(process.0 as usize).and_then(|p| p.rank);
    let mut out = Tables::empty(rank, Over::Host, 0, windows.len());
    out.rows = calls::of(trace, &host);
    out.rows.extend(own::of(trace, &host));
    // Without a device nothing is hidden behind its work, and nothing waits for it.
    out.rows.iter_mut().for_each(|row| row.exposed = None);
    (!out.rows.is_empty()).then_some(out)
}

fn is_thread(track: &model::Track) -> bool {
    track.key.kind == TrackKind::HostThread
}

#[cfg(test)]
mod tests;
