//! What of a run its capture lacks, as far as anything in it shows that: records that could not be read, a source that ends
//! before its end, ranks that are not there. Counted once, so that headline, gates, findings and exit codes agree.

use std::collections::BTreeSet;

use model::{Category, ImportStat, LedgerRow, Manifest, Severity, Trace, TrackKind};

use super::model::{Integrity, Place};

/// Share of the records from which a loss can change the answer: the least gain that a finding has is 1 % of a step.
const MATTERS: f64 = 0.01;

/// Endings of statistics that count places from which on a source could not be read.
const CUT: [&str; 9] = [
    ".truncated",
    ".truncated_file",
    ".damaged_compression",
    ".damaged_file",
    ".unreadable_end_of_table",
    ".unreadable_export",
    ".unreadable_table",
    ".view_not_read",
    ".write_ahead_log_not_read",
];

/// Ending of statistics that count files of a capture of many files.
const FILE: &str = ".unreadable_file";

/// Words in the names of statistics that count something else than operations and calls.
const NO_RECORDS: [&str; 8] =
    ["counter", "environment", "links", "metadata", "metric", "summar", "text_", "wrong_result"];

/// What of the host explains why a device waits. Times off the processor are paired from two rows each, and not every row has
/// its partner.
const HOST: [Category; 6] = [
    Category::HostApi,
    Category::FrameworkOp,
    Category::UserRange,
    Category::PythonFrame,
    Category::CollectiveCall,
    Category::HostOther,
];

/// The format whose files hold the host's rows first and the device's last.
const DEVICE_LAST: &str = "kineto";

/// How many of what there was are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Lost.
    pub lost: u64,
    /// Lost and kept.
    pub all: u64,
}

impl Part {
    fn of(lost: u64, kept: u64) -> Self {
        Self { lost, all: lost.saturating_add(kept) }
    }

    /// Share of what is lost, in 0..=1.
    pub fn share(self) -> f64 {
        self.lost as f64 / self.all.max(1) as f64
    }
}

/// A source that ends, or cannot be read, before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where, in the words of the reader: `byte 342566`, `1024 bytes of 4096`.
    pub at: Option<String>,
    /// Whether the format holds the device's rows last, so that these are what the rest held.
    pub device_last: bool,
    /// How much of the time that the host was recorded for has device rows, in thousandths; `None` without host rows.
    pub covered: Option<u32>,
}

/// Ranks of a job, and those that are not in the capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Captured.
    pub captured: u64,
    /// Ranks of the job.
    pub all: u64,
    /// Whether it has these at least, and may have more.
    pub at_least: bool,
    /// Numbers of those that are not there; empty where nothing says which these are.
    pub absent: Vec<u32>,
}

/// What a capture lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Device operations.
    pub device: Part,
    /// Whether all lost ones are kernels.
    pub only_kernels: bool,
    /// Calls, operators or ranges of the host: of these kinds the one that lost the largest share.
    pub host: Part,
    /// Records of which nothing says what they were.
    pub unknown: Part,
    /// Launches, and those whose work has no record.
    pub unrecorded: Part,
    /// Device operations, and those whose launch was recorded and lost.
    pub links: Part,
    /// Rows that stand twice in the source and were counted once.
    pub doubled: u64,
    /// Files of the capture that could not be read.
    pub files: u64,
    /// Of these, files that whoever opened the capture has named already.
    pub named_files: u64,
    /// Where the source ends early.
    pub cut: Option<Cut>,
    /// The ranks of the job, where some are absent.
    pub ranks: Option<Ranks>,
    /// Ranks in the capture, any of which all of the loss may be of.
    places: u64,
}

impl Loss {
    /// What a trace lacks whose devices are `places`.
    pub fn of(trace: &Trace, places: &[Place], integrity: &Integrity) -> Self {
        let lost_of = |rows: &[&LedgerRow]| rows.iter().map(|row| row.read.saturating_sub(row.kept)).sum::<u64>();
        let of = |kind: fn(&LedgerRow) -> bool| trace.ledger.iter().filter(|row| kind(row)).collect::<Vec<_>>();
        let (device, host) = (of(is_device), of(is_host));
        let missing = trace.stat(ImportStat::MISSING_KERNELS);
        let lost = lost_of(&device);
        let told = lost.saturating_add(lost_of(&host));
        let linked_to = trace.stat(ImportStat::WORK_WITHOUT_ROW);
        let lossy: Vec<&LedgerRow> = device.into_iter().filter(|row| row.read > row.kept).collect();
        let only_kernels = linked_to <= lost
            && !lossy.is_empty()
            && lossy.iter().all(|row| row.category == "kernel" || row.note == "kernel");
        // Of kernels alone it is said how many kernels there are; of several kinds, how many operations.
        let kept = match only_kernels {
            true => lossy.iter().map(|row| row.kept).sum(),
            false => device_rows(trace),
        };
        let damage = trace.stats.iter().filter(|stat| stat.severity >= Severity::DataLoss && is_of_records(&stat.name));
        let damaged = damage.map(|stat| stat.count).max().unwrap_or(0);
        let files = trace.stats.iter().filter(|stat| stat.name.ends_with(FILE)).map(|stat| stat.count).sum();
        let links = integrity.unlinked.saturating_sub(integrity.before_recording);
        let linked = integrity.unlinked < integrity.device_ops;
        Self {
            device: Part::of(lost.max(linked_to).saturating_add(missing), kept),
            only_kernels,
            host: of_host(trace, &host),
            unknown: Part::of(damaged.saturating_sub(told), trace.slice_count() as u64),
            unrecorded: Part::of(if linked { integrity.unrecorded } else { 0 }, integrity.device_ops),
            links: Part { lost: if linked { links } else { 0 }, all: integrity.device_ops },
            doubled: trace.stat(ImportStat::DOUBLED_ROWS),
            files,
            named_files: trace.stat("import.unreadable_file"),
            cut: cut(trace),
            ranks: absent(trace, places),
            places: places.len() as u64,
        }
    }

    /// Whether more than [`MATTERS`] of a part is lost, if all of it is of one rank.
    pub fn matters(&self, part: Part) -> bool {
        part.lost.saturating_mul(self.places.max(1)) as f64 > MATTERS * part.all as f64
    }

    /// Whether so much of what ran on the devices is lost that no share of busy or idle time is known, and nothing that rests on
    /// one may be said.
    pub fn forbids_shares(&self) -> bool {
        self.is_cut() || self.matters(self.device) || self.matters(self.unknown) || self.is_silent()
    }

    /// Whether so much of what ran anywhere is lost that nothing is known of why a device waited.
    pub fn forbids_causes(&self) -> bool {
        self.forbids_shares() || self.matters(self.host)
    }

    /// Whether anything that was recorded is lost, however little.
    pub fn is_any(&self) -> bool {
        let parts = [self.device, self.host, self.unknown];
        parts.iter().any(|part| part.lost > 0) || self.files > 0 || self.cut.is_some() || self.is_silent()
    }

    /// Whether the host launched more than [`Integrity::LOST`] that has no record.
    pub fn is_silent(&self) -> bool {
        self.unrecorded.share() > Integrity::LOST
    }

    /// A source that ends early, and holds a device's rows or would.
    fn is_cut(&self) -> bool {
        self.cut.is_some() && self.places > 0
    }
}

/// Whether rows of a category of the source become device work.
fn is_device(row: &LedgerRow) -> bool {
    row.note == "device work" || becomes(row).is_some_and(Category::is_device_work)
}

/// Whether they become what the host did.
fn is_host(row: &LedgerRow) -> bool {
    row.note == "host slices" || becomes(row).is_some_and(|category| HOST.contains(&category))
}

/// What the rows of a category become: readers name it by the category of slices, first of all.
fn becomes(row: &LedgerRow) -> Option<Category> {
    let word = row.note.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    let whole = row.note.strip_prefix(word)?;
    // `kernel: a collective`, `memcpy; memset by name` and `host_api, collective_call`, but not a sentence.
    let names = whole.is_empty() || whole.starts_with([':', ';', ',']);
    Category::ALL.into_iter().find(|category| category.name() == word).filter(|_| names)
}

/// Of the kinds of rows of the host the one that lost the largest share.
fn of_host(trace: &Trace, rows: &[&LedgerRow]) -> Part {
    let calls = trace.lanes.iter().flat_map(|lane| &lane.category).filter(|kind| **kind == Category::HostApi).count();
    let linked_from = Part::of(trace.stat(ImportStat::CALLS_WITHOUT_ROW), calls as u64);
    let kinds = rows.iter().map(|row| Part { lost: row.read.saturating_sub(row.kept), all: row.read });
    kinds.chain([linked_from]).max_by(|a, b| a.share().total_cmp(&b.share())).unwrap_or_default()
}

fn is_of_records(name: &str) -> bool {
    const OWN: [&str; 3] =
        [ImportStat::MISSING_KERNELS, ImportStat::WORK_WITHOUT_ROW, ImportStat::CALLS_WITHOUT_ROW];
    let elsewhere = name.starts_with("import.") || OWN.contains(&name) || name.ends_with(FILE);
    !elsewhere && !CUT.iter().any(|end| name.ends_with(end)) && !NO_RECORDS.iter().any(|word| name.contains(word))
}

fn device_rows(trace: &Trace) -> u64 {
    let lanes = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == TrackKind::DeviceQueue);
    lanes.map(|(_, lane)| lane.category.iter().filter(|category| category.is_device_work()).count() as u64).sum()
}

fn cut(trace: &Trace) -> Option<Cut> {
    let ends = |stat: &&ImportStat| stat.severity >= Severity::DataLoss && CUT.iter().any(|end| stat.name.ends_with(end));
    let first = trace.stats.iter().find(ends)?;
    let span = |wanted: fn(TrackKind) -> bool| {
        let lanes = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| wanted(track.key.kind));
        let rows = || lanes.clone().flat_map(|(_, lane)| (0..lane.len()).map(|i| (lane.start[i], lane.end(i))));
        rows().map(|(start, _)| start).min().zip(rows().map(|(_, end)| end).max())
    };
    let host = span(|kind| kind == TrackKind::HostThread).filter(|(from, to)| to > from);
    let covered = host.map(|(from, to)| {
        let reached = span(|kind| kind == TrackKind::DeviceQueue).map_or(from, |(_, end)| end.clamp(from, to));
        let [reached, all] = [reached, to].map(|at| i128::from(at.saturating_sub(from)));
        u32::try_from(1000 * reached / all.max(1)).unwrap_or(1000)
    });
    Some(Cut { at: first.example.clone(), device_last: trace.format == DEVICE_LAST, covered })
}

/// The ranks of the job, where it has more than the capture.
fn absent(trace: &Trace, places: &[Place]) -> Option<Ranks> {
    let said = |key| trace.manifest.count(key);
    let world = said("parallel.world_size");
    let all = world.or_else(|| said(Manifest::RANKS_AT_LEAST))?;
    let here: BTreeSet<u32> = places.iter().map(|place| place.rank).collect();
    let captured = here.len() as u64;
    if captured == 0 || captured >= all {
        return None;
    }
    let numbered = places.iter().all(|place| {
        let process = trace.processes.get(place.process.0 as usize);
        process.and_then(|process| process.rank).is_some()
    });
    let absent = (0..u32::try_from(all).unwrap_or(u32::MAX)).filter(|rank| numbered && !here.contains(rank)).take(NAMED).collect();
    Some(Ranks { captured, all, at_least: world.is_none(), absent })
}

/// Absent ranks that are kept by number.
const NAMED: usize = 64;
