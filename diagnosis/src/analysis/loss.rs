//! What of a run its capture lacks, as far as anything in it shows that: records that could not be read, a source that ends
//! before its end, ranks that are not there. Counted once, so that headline, gates, findings and exit codes agree.

use std::collections::BTreeSet;

use model::{Category, ImportStat, LedgerRow, Manifest, Severity, Trace, TrackKind};

use super::{integrity::Integrity, places::Place};

/// Share of the records from which a loss can change the answer: the least gain that a finding has is 1 % of a step.
const MATTERS: f64 = 0.01;

/// Endings of statistics that count places from which on a source could not be read.
const CUT: [&str; 12] = [
    ".unreadable_rest",
    ".second_database",
    ".second_table",
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
    /// Lost device operations that have no row at all: only their numbers are left out.
    pub missing: u64,
    /// Whether all lost ones are kernels.
    pub only_kernels: bool,
    /// Calls, operators or ranges of the host: of these kinds the one that lost the largest share.
    pub host: Part,
    /// Records of which nothing says what they were.
    pub unknown: Part,
    /// Launches, and those whose work has no record.
    pub unrecorded: Part,
    /// Device operations whose call of the host has no record, where those of the others have one.
    pub links: Part,
    /// Rows that stand twice in the source and were counted once.
    pub doubled: u64,
    /// Further runs in one file, which are no part of the first.
    pub other_runs: u64,
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
        let damage = || {
            let counts = |stat: &&ImportStat| stat.severity >= Severity::DataLoss && is_of_records(&stat.name);
            trace.stats.iter().filter(counts).map(|stat| stat.count)
        };
        // Where the reader met no damage, what it did not keep it left out on purpose.
        let most = damage().fold(0, u64::saturating_add);
        let lost = lost_of(&device).min(most);
        let told = lost.saturating_add(lost_of(&host).min(most));
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
        let damaged = damage().max().unwrap_or(0);
        // A kernel that could not be read leaves its place in the replay too.
        let holes = few_are_none(integrity.graph_holes.saturating_sub(lost.max(linked_to)));
        let files = trace.stats.iter().filter(|stat| stat.name.ends_with(FILE)).map(|stat| stat.count).sum();
        Self {
            device: Part::of(lost.max(linked_to).saturating_add(missing), kept),
            missing,
            only_kernels,
            host: of_host(trace, &host, most),
            unknown: Part::of(damaged.saturating_sub(told), (trace.slice_count() + trace.summaries.len()) as u64),
            unrecorded: Part::of(few_are_none(integrity.unrecorded).saturating_add(holes), integrity.device_ops),
            links: Part { lost: few_are_none(integrity.lost_links), all: integrity.device_ops },
            doubled: trace.stat(ImportStat::DOUBLED_ROWS),
            other_runs: trace.stat(ImportStat::OTHER_RUNS),
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
        self.is_cut()
            || self.other_runs > 0
            || [self.device, self.unknown, self.unrecorded].iter().any(|part| self.matters(*part))
    }

    /// Whether so much of what ran anywhere is lost that nothing is known of why a device waited.
    pub fn forbids_causes(&self) -> bool {
        self.forbids_shares() || self.matters(self.host) || self.matters(self.links)
    }

    /// Whether anything that was recorded is lost, however little.
    pub fn is_any(&self) -> bool {
        let parts = [self.device, self.host, self.unknown, self.unrecorded, self.links];
        parts.iter().any(|part| part.lost > 0) || self.files > 0 || self.other_runs > 0 || self.cut.is_some()
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
fn of_host(trace: &Trace, rows: &[&LedgerRow], most: u64) -> Part {
    let calls = trace.lanes.iter().flat_map(|lane| &lane.category).filter(|kind| **kind == Category::HostApi).count();
    let linked_from = Part::of(trace.stat(ImportStat::CALLS_WITHOUT_ROW), calls as u64);
    let kinds = rows.iter().map(|row| Part { lost: row.read.saturating_sub(row.kept).min(most), all: row.read });
    kinds.chain([linked_from]).max_by(|a, b| a.share().total_cmp(&b.share())).unwrap_or_default()
}

fn is_of_records(name: &str) -> bool {
    const OWN: [&str; 5] = [
        ImportStat::OTHER_RUNS,
        ImportStat::RUN_ALONE,
        ImportStat::MISSING_KERNELS,
        ImportStat::WORK_WITHOUT_ROW,
        ImportStat::CALLS_WITHOUT_ROW,
    ];
    let elsewhere = name.starts_with("import.") || OWN.contains(&name) || name.ends_with(FILE);
    !elsewhere && !CUT.iter().any(|end| name.ends_with(end)) && !NO_RECORDS.iter().any(|word| name.contains(word))
}

fn device_rows(trace: &Trace) -> u64 {
    let lanes = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == TrackKind::DeviceQueue);
    lanes.map(|(_, lane)| lane.category.iter().filter(|category| category.is_device_work()).count() as u64).sum()
}

fn cut(trace: &Trace) -> Option<Cut> {
    let ends =
        |stat: &&ImportStat| stat.severity >= Severity::DataLoss && CUT.iter().any(|end| stat.name.ends_with(end));
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
    let absent = (0..u32::try_from(all).unwrap_or(u32::MAX))
        .filter(|rank| numbered && !here.contains(rank))
        .take(NAMED)
        .collect();
    Some(Ranks { captured, all, at_least: world.is_none(), absent })
}

/// Fewer launches without work may be calls that had nothing to do, and fewer pieces of work without a launch another's.
fn few_are_none(count: u64) -> u64 {
    if count < FEWEST { 0 } else { count }
}

/// Launches without work, or work without launches, that tell of a loss. Own value.
const FEWEST: u64 = 3;
/// Absent ranks that are kept by number.
const NAMED: usize = 64;

#[cfg(test)]
mod tests {
    use model::{Provenance, Trace, TraceSink};

    use super::*;
    use crate::analysis::{places, script::Script};

    /// Ten launches on each of `ranks` ranks.
    fn run(ranks: u32) -> Script {
        let mut script = Script::default();
        for rank in 0..ranks {
            script.rank(rank);
            for at in (0..10).map(|i| 1_000 * i) {
                script.launch((at, at + 10), "gemm", (at + 20, at + 90));
            }
        }
        script
    }

    fn loss(script: Script) -> Loss {
        let trace: Trace = script.builder.finish();
        Loss::of(&trace, &places(&trace), &Integrity::default())
    }

    #[test]
    fn kernels_that_were_read_and_not_kept_are_lost() {
        let mut script = run(1);
        script.builder.ledger("kernel", 425, 225, 0, "device work");
        script.builder.ledger("gpu_memcpy", 9, 9, 0, "device work");
        script.builder.stat("kineto.events_without_time", Severity::DataLoss, 200, None);
        let loss = loss(script);
        assert_eq!((loss.device, loss.only_kernels, loss.unknown.lost), (Part { lost: 200, all: 425 }, true, 0));
        assert!(loss.forbids_shares() && loss.is_any());
    }

    /// Of a job of a hundred ranks all of a small loss may be of one rank.
    #[test]
    fn a_loss_matters_from_one_percent_of_a_rank() {
        let of = |ranks: u32, lost: u64| {
            let mut script = run(ranks);
            script.builder.ledger("KERNELS", 1_000 * u64::from(ranks), 1_000 * u64::from(ranks) - lost, 0, "kernel");
            script.builder.stat("nsys.incomplete_row", Severity::DataLoss, lost, None);
            loss(script)
        };
        assert!(!of(1, 9).forbids_causes() && of(1, 9).is_any());
        assert!(of(1, 11).forbids_shares() && of(4, 11).forbids_shares());
        assert!(!of(4, 9).forbids_shares());
    }

    #[test]
    fn what_the_host_lost_forbids_causes_and_no_shares() {
        let mut script = run(1);
        script.builder.ledger("RUNTIME", 100, 90, 0, "host_api");
        script.builder.stat("nsys.incomplete_row", Severity::DataLoss, 10, None);
        let loss = loss(script);
        assert_eq!(loss.host, Part { lost: 10, all: 100 });
        assert!(loss.forbids_causes() && !loss.forbids_shares());
    }

    /// What is left out on purpose, rows of a thread's times off the processor that have no partner, and notes of a reader are no
    /// loss.
    #[test]
    fn what_is_not_kept_on_purpose_is_not_lost() {
        let mut script = run(1);
        script.builder.ledger("flow ac2g", 454, 0, 0, "not kept: each complete pair repeats a correlation id");
        script.builder.ledger("SCHED_EVENTS", 100, 90, 0, "os_api: times off the processor");
        script.builder.ledger(
            "NVTX_EVENTS",
            3,
            2,
            0,
            "user_range; framework_op and collective_call where a range names one",
        );
        script.builder.ledger("metadata events", 58, 20, 0, "names of processes and threads");
        script.builder.stat("kineto.unknown_category", Severity::Notice, 7, None);
        let loss = loss(script);
        assert!(!loss.is_any(), "{loss:?}");
    }

    /// Half of the calls, or of the work of calls, was taken out, and nothing told of it but a remark at the end.
    #[test]
    fn work_without_its_launch_and_launches_without_work_are_lost() {
        let of = |integrity: Integrity| {
            let trace = run(1).builder.finish();
            Loss::of(&trace, &places(&trace), &integrity)
        };
        let seen = Integrity { device_ops: 1_000, ..Integrity::default() };
        let unlinked = |lost_links| of(Integrity { lost_links, ..seen.clone() });
        assert_eq!(unlinked(5).links, Part { lost: 5, all: 1_000 });
        assert!(unlinked(5).is_any() && !unlinked(5).forbids_causes());
        assert!(unlinked(500).forbids_causes() && !unlinked(500).forbids_shares());
        assert!(!unlinked(2).is_any());
        let unrecorded = |unrecorded| of(Integrity { unrecorded, ..seen.clone() });
        assert!(unrecorded(12).forbids_shares() && unrecorded(3).is_any() && !unrecorded(3).forbids_causes());
        assert!(!unrecorded(2).is_any());
    }

    #[test]
    fn a_file_that_ends_early_forbids_shares_where_a_device_worked() {
        let cut = |mut script: Script| {
            script.builder.stat("kineto.truncated", Severity::DataLoss, 1, Some("byte 77"));
            loss(script)
        };
        let ended = cut(run(1));
        let told = ended.cut.as_ref().map(|cut| (cut.at.as_deref(), cut.device_last, cut.covered));
        assert_eq!(told, Some((Some("byte 77"), true, Some(1000))));
        assert!(ended.forbids_shares() && !cut(run(0)).forbids_shares() && cut(run(0)).is_any());
    }

    #[test]
    fn the_size_of_the_job_tells_who_is_absent() {
        let of = |key: &str, world: &str| {
            let mut script = run(2);
            script.builder.manifest(key, world, Provenance::Observed);
            loss(script).ranks
        };
        let ranks = |all, at_least, absent: &[u32]| Some(Ranks { captured: 2, all, at_least, absent: absent.to_vec() });
        assert_eq!(of("parallel.world_size", "4"), ranks(4, false, &[2, 3]));
        assert_eq!(of(Manifest::RANKS_AT_LEAST, "3"), ranks(3, true, &[2]));
        assert_eq!(of("parallel.world_size", "2"), None);
        assert_eq!(of("parallel.world_size", "many"), None);
    }
}
