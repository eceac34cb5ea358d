//! What the profiler summed of each collective: how long it took, how long it transferred, how long it waited
//! (`communication.json`, and `CommAnalyzerTime` of `analysis.db`). The sums are over the tasks of one plane. They stand in
//! for the tasks inside collectives where the capture does not hold those: at level 0, in a table of kernels on its own.

use std::path::Path;

use model::{Ns, ProcessId, Severity, Stated, StatedSum, TraceSink};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::layout::Layout;
#[cfg(feature = "sqlite")]
use crate::sqlite::{
    database::{Database, tell_loss},
    page::{
        Column::{self, Real, Text},
        Page,
    },
    scan::Item,
};
use crate::{json_walk, sqlite::SIGNATURE};

/// Largest file of sums that is read, bytes; a step of a large model has some thousand collectives of a kilobyte each.
const MAX_BYTES: u64 = 256 << 20;
/// Most collectives that are kept in mind.
const MAX_COLLECTIVES: usize = 1 << 20;
/// The files hold times as floats of µs since 1970, which are exact to a quarter of a microsecond, ns.
pub(super) const ROUNDING: Ns = 1_000;
/// How far the start of the sums may lie from that of the collective, ns: they begin with the first task inside it, some µs
/// later. Names are numbered, so only instances of groups whose numbers end alike could be taken for each other.
const NEAR: u64 = 1_000_000;
/// Table of the sums of collectives in `analysis.db`.
#[cfg(feature = "sqlite")]
const TABLE: &str = "CommAnalyzerTime";
/// Key of the sum over all collectives of a step.
const TOTAL: &str = "Total Op Info";

/// Sums of one collective, ns. What of the elapsed time is neither transfer nor wait was not recorded: the work of units
/// that the profiler does not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    pub start: Ns,
    pub elapse: Ns,
    pub transit: Ns,
    pub wait: Ns,
    /// The group's whole name.
    pub group: Option<Box<str>>,
}

/// A collective of the capture and what was summed of it.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub process: ProcessId,
    pub device: i32,
    pub start: Ns,
    pub end: Ns,
    pub sums: Sums,
}

/// Sums of the collectives of a capture by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    by_name: FxHashMap<String, Vec<Sums>>,
    file: Option<String>,
    read: u64,
    /// Collectives without a name or without times that can be, and those beyond the most that are kept.
    lost: u64,
    /// What was wrong with the file.
    damage: Option<String>,
}

impl Times {
    /// Reads what a capture has of them: `communication.json`, or where that is damaged `analysis.db`, which holds the same.
    /// What cannot be read is counted.
    pub fn beside(layout: &Layout, sink: &mut dyn TraceSink) -> Self {
        let (times, rest) = Self::first(layout, sink);
        let why = format!("not read: {} holds the same", times.file.as_deref().unwrap_or_default());
        rest.iter().for_each(|path| sink.ledger(&super::layout::name(path), 0, 0, 0, &why));
        times
    }

    /// The same of a capture that has nothing else: what the other files say is told too, so that it can be held against what was
    /// read. They sum the same collectives.
    pub fn alone(layout: &Layout, sink: &mut dyn TraceSink) -> Self {
        let (times, rest) = Self::first(layout, sink);
        times.tell(sink);
        for path in rest {
            let other = Self::read(path, sink);
            if let Some(damage) = &other.damage {
                sink.stat("ascend.damaged_file", Severity::DataLoss, 1, Some(damage));
            }
            other.tell(sink);
            let why = "a sum that the profiler made, for comparison";
            sink.ledger(&super::layout::name(path), other.read, 0, other.elapsed(), why);
        }
        times
    }

    /// Tells how long all collectives took together, where there are any.
    fn tell(&self, sink: &mut dyn TraceSink) {
        if self.is_empty() {
            return;
        }
        let (source, time) = (sink.intern(self.file.as_deref().unwrap_or_default()), self.elapsed());
        let what = Stated::Collectives;
        sink.stated(StatedSum { process: None, source, what, name: None, count: Some(self.read), time });
    }

    /// How long all collectives took together, ns.
    fn elapsed(&self) -> Ns {
        self.by_name.values().flatten().fold(0, |sum: Ns, sums| sum.saturating_add(sums.elapse))
    }

    /// What is read of the files, and those that need not be.
    fn first<'l>(layout: &'l Layout, sink: &mut dyn TraceSink) -> (Self, Vec<&'l Path>) {
        let mut files = layout.communication.iter();
        let mut rest = Vec::new();
        let Some(mut times) = files.next().map(|path| Self::read(path, sink)) else { return (Self::default(), rest) };
        for path in files {
            let name = super::layout::name(path);
            let Some(damage) = times.damage.clone() else {
                rest.push(path.as_path());
                continue;
            };
            let other = Self::read(path, sink);
            if other.read > times.read || other.damage.is_none() && other.read > 0 {
                let why = format!("{damage}; {name} was read instead");
                sink.stat("ascend.read_instead", Severity::Notice, 1, Some(&why));
                times = other;
            }
        }
        if let Some(damage) = &times.damage {
            let what = if times.read > 0 { "ascend.damaged_file" } else { "ascend.unreadable_file" };
            sink.stat(what, Severity::DataLoss, 1, Some(damage));
        }
        if times.lost > 0 {
            sink.stat("ascend.incomplete_row", Severity::DataLoss, times.lost, times.file.as_deref());
        }
        (times, rest)
    }

    /// What was wrong with the file that was read.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    fn read(path: &Path, sink: &mut dyn TraceSink) -> Self {
        let name = super::layout::name(path);
        let mut times = Self { file: Some(name.clone()), ..Self::default() };
        let too_large = std::fs::metadata(path).is_ok_and(|meta| meta.len() > MAX_BYTES);
        let read = match too_large {
            true => Err(format!("more than {MAX_BYTES} bytes")),
            false if is_database(path) => times.database(path, sink),
            false => times.json(path),
        };
        times.sort();
        times.damage = read.err().map(|why| format!("{name}: {why}"));
        times
    }

    /// The sums of the collective of this name that started about then.
    pub fn of(&self, name: &str, start: Ns) -> Option<&Sums> {
        let known = self.by_name.get(bare(name))?;
        let after = known.partition_point(|sums| sums.start < start);
        let around = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|at| known.get(at));
        let nearest = around.min_by_key(|sums| sums.start.abs_diff(start))?;
        (nearest.start.abs_diff(start) <= NEAR).then_some(nearest)
    }

    /// The file, and how many collectives it told of.
    pub fn source(&self) -> Option<(&str, u64)> {
        self.file.as_deref().map(|file| (file, self.read))
    }

    /// Every collective that was summed, in order of start.
    pub fn all(&self) -> Vec<(&str, &Sums)> {
        let mut all: Vec<(&str, &Sums)> =
            self.by_name.iter().flat_map(|(name, sums)| sums.iter().map(move |sums| (name.as_str(), sums))).collect();
        all.sort_by_key(|(name, sums)| (sums.start, *name));
        all
    }

    /// Brings collectives of one name into the order of their starts, in which [`Times::of`] looks for them.
    pub fn sort(&mut self) {
        self.by_name.values_mut().for_each(|sums| sums.sort_unstable_by_key(|sums| sums.start));
    }

    /// Whether no collective was told of.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Of collectives that another file tells, which [`Times::add`] takes.
    pub fn told_by(file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..Self::default() }
    }

    /// Takes start, elapsed time, transfer and wait of a collective, ns. Early files do not say how long it waited: then
    /// that is what it did not transfer.
    pub fn add(&mut self, name: &str, group: Option<&str>, [start, elapse, transit, wait]: [Option<Ns>; 4]) {
        if name == TOTAL {
            return;
        }
        let limits = 0..i64::MAX / 4;
        let within = |ns: Option<Ns>| ns.filter(|ns| limits.contains(ns));
        match (within(start), within(elapse), within(transit)) {
            (Some(start), Some(elapse), Some(transit)) if self.read < MAX_COLLECTIVES as u64 => {
                self.read += 1;
                let rest = elapse.saturating_sub(transit).max(0);
                let wait = within(wait).map_or(rest, |wait| wait.min(rest));
                let group = group.or(name.split_once('@').map(|(_, group)| group)).map(Box::from);
                let sums = Sums { start, elapse, transit, wait, group };
                self.by_name.entry(bare(name).to_owned()).or_default().push(sums);
            }
            _ => self.lost += 1,
        }
    }

    fn json(&mut self, path: &Path) -> Result<(), String> {
        let damage = json_walk::leaves(path, DEPTH, &|_, _| {}, &mut |keys, text| {
            let Some(name) = keys.last() else { return };
            let Some(time) = serde_json::from_str::<Op>(text).ok().and_then(|op| op.time) else {
                self.lost += u64::from(name != TOTAL);
                return;
            };
            let ns = |value: Option<Box<RawValue>>, exponent| {
                model::time::parse_decimal(value?.get().as_bytes(), exponent).ok().map(|(ns, _)| ns)
            };
            let times = [ns(time.start, 3), ns(time.elapse, 6), ns(time.transit, 6), ns(time.wait, 6)];
            self.add(name, None, times);
        });
        match damage {
            Ok(None) => Ok(()),
            Ok(Some(damage)) => Err(damage),
            Err(error) => Err(error.to_string()),
        }
    }

    #[cfg(not(feature = "sqlite"))]
    fn database(&mut self, _: &Path, _: &mut dyn TraceSink) -> Result<(), String> {
        Err("this build reads no SQLite: build it with the feature 'sqlite'".to_owned())
    }

    #[cfg(feature = "sqlite")]
    fn database(&mut self, path: &Path, sink: &mut dyn TraceSink) -> Result<(), String> {
        let database = Database::open(path, super::database::malformed).map_err(|error| error.to_string())?;
        // At level 0 the database holds the sums of steps only.
        let plan = database.plan([(&TABLE, TABLE.to_owned(), COLUMNS)], "ascend", sink);
        plan.read(&|_, _| {}, |table, item| match item {
            Item::Page(page) => {
                self.page(&page);
                page.rows as u64
            }
            Item::Loss(loss) => tell_loss(&loss, "ascend", table, sink),
        });
        Ok(())
    }

    #[cfg(feature = "sqlite")]
    fn page(&mut self, page: &Page) {
        // SQLite keeps these numbers as floats already.
        let ns = |lane: usize, row: usize, unit: f64| {
            let ns = (page.real(lane, row)? * unit).round();
            (ns.abs() < 9e18).then_some(ns as Ns)
        };
        for row in 0..page.rows {
            let Some(name) = page.inline(0, row) else {
                self.lost += 1;
                continue;
            };
            let times = [ns(1, row, 1e3), ns(2, row, 1e6), ns(3, row, 1e6), ns(4, row, 1e6)];
            self.add(name, page.inline(5, row).filter(|group| !group.is_empty()), times);
        }
    }
}

/// `CommAnalyzerTime`: µs and ms.
#[cfg(feature = "sqlite")]
const COLUMNS: &[Column] = &[
    Text("hccl_op_name", None),
    Real("start_timestamp"),
    Real("elapse_time"),
    Real("transit_time"),
    Real("wait_time"),
    Text("group_name", None),
];

/// Keys above a collective: step, `p2p` or `collective`, name and group of the collective.
const DEPTH: usize = 3;

#[derive(Deserialize)]
struct Op {
    #[serde(rename = "Communication Time Info")]
    time: Option<TimeInfo>,
}

#[derive(Deserialize)]
struct TimeInfo {
    #[serde(rename = "Start Timestamp(us)")]
    start: Option<Box<RawValue>>,
    #[serde(rename = "Elapse Time(ms)")]
    elapse: Option<Box<RawValue>>,
    #[serde(rename = "Transit Time(ms)")]
    transit: Option<Box<RawValue>>,
    #[serde(rename = "Wait Time(ms)")]
    wait: Option<Box<RawValue>>,
}

/// A collective's name without its group.
fn bare(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

pub(super) fn is_database(path: &Path) -> bool {
    let mut head = [0; SIGNATURE.len()];
    let read = input::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head == *SIGNATURE
}
