//! `cluster_analysis.db`: the same sums as tables. Times of steps are µs, those of collectives and links ms, sizes MB of 10⁶
//! bytes. SQLite keeps them as floats already.

use std::path::Path;

use model::{Ns, Severity, StepPart, TraceSink};

use super::{
    gathered::{Entry, Gathered},
    steps::{OF_STAGES, PARTS},
};
use crate::{
    Place, Progress, ReadError,
    lanes::Account,
    sqlite::{
        database::{Database, tell_loss},
        page::{
            Column::{self, Decimal, Real, Text},
            Page,
        },
        scan::Item,
    },
};

/// A table that is read, under its names over time.
struct Source {
    names: &'static [&'static str],
    columns: &'static [Column],
    what: &'static str,
    becomes: &'static str,
    take: fn(&mut Gathered, &Page, usize) -> Taken,
}

/// What became of a row.
enum Taken {
    Kept(Ns),
    OfStage,
    Incomplete,
}

/// Columns of a table of steps: the step, whose it is, and its parts.
pub(in crate::ascend) const STEPS: &[Column] = &[
    Text("step", None),
    Text("type", None),
    Text("index", None),
    Real(PARTS[0].2),
    Real(PARTS[1].2),
    Real(PARTS[2].2),
    Real(PARTS[3].2),
    Real(PARTS[4].2),
    Real(PARTS[5].2),
    Real(PARTS[6].2),
    Real(PARTS[7].2),
    Real(PARTS[8].2),
];
const COLLECTIVES: &[Column] = &[
    Text("step", None),
    Text("group_name", None),
    Text("hccl_op_name", None),
    Decimal("rank_id", &[]),
    Real("elapsed_time"),
    Real("transit_time"),
    Real("wait_time"),
    Text("rank_set", None),
    Real("start_timestamp"),
];
const LINKS: &[Column] = &[
    Text("step", None),
    Text("group_name", None),
    Text("hccl_op_name", None),
    Decimal("src_rank", &[]),
    Decimal("dst_rank", &[]),
    Text("transport_type", None),
    Real("transit_size"),
    Real("transit_time"),
    Text("rank_set", None),
];

static SOURCES: [Source; 3] = [
    Source {
        names: &["ClusterStepTraceTime"],
        columns: STEPS,
        what: "steps of ranks",
        becomes: "sums of the parts of steps",
        take: step,
    },
    Source {
        names: &["ClusterCommunicationTime", "ClusterCommAnalyzerTime"],
        columns: COLLECTIVES,
        what: "collectives",
        becomes: "sums of the times in collectives of each rank; a group's own sum counts once",
        take: collective,
    },
    Source {
        names: &["ClusterCommunicationMatrix", "ClusterCommAnalyzerMatrix"],
        columns: LINKS,
        what: "links",
        becomes: "sums over the transfers of each pair of ranks; a group's own sum counts once",
        take: link,
    },
];

fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database of msprof-analyze ({why})"),
        next: "run 'msprof-analyze cluster' again".to_owned(),
    }
}

/// Whether the SQLite file has any of the tables.
pub(super) fn is_known(path: &Path) -> bool {
    let has =
        |database: Database| SOURCES.iter().flat_map(|source| source.names).any(|table| database.tables.has(table));
    Database::open(path, malformed).is_ok_and(has)
}

/// Reads the database. Runs its own runtime, so it must not be called from inside an asynchronous task.
///
/// # Errors
/// [`ReadError`] when it is no database.
pub(super) fn read(
    path: &Path,
    gathered: &mut Gathered,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let mut database = Database::open(path, malformed)?;
    let table = |source: &Source| source.names.iter().find(|name| database.tables.has(name));
    let wanted: Vec<_> = SOURCES.iter().filter_map(|s| Some((s, (*table(s)?).to_owned(), s.columns))).collect();
    let read: Vec<String> = wanted.iter().map(|(_, name, _)| name.clone()).collect();
    database.plan(wanted, "ascend-cluster", sink).read(progress, |source, item| match item {
        Item::Loss(loss) => tell_loss(&loss, "ascend-cluster", source.what, sink),
        Item::Page(page) => {
            let (mut account, mut stages) = (Account::default(), 0);
            for row in 0..page.rows {
                match (source.take)(gathered, &page, row) {
                    Taken::Kept(time) => account.keep(0, time),
                    Taken::OfStage => stages += 1,
                    Taken::Incomplete => account.incomplete += 1,
                }
            }
            account.read = page.rows as u64 - stages;
            account.tell(sink, "ascend-cluster", source.what, source.becomes);
            if stages > 0 {
                sink.ledger("steps of stages", stages, 0, 0, OF_STAGES);
            }
            page.rows as u64
        }
    });
    database.warn("ascend-cluster", sink);
    for (name, rows) in database.count(|table| !read.iter().any(|name| name.eq_ignore_ascii_case(&table.name))) {
        match rows {
            Some(rows) => sink.ledger(&name, rows, 0, 0, "not read: other results of the analysis"),
            None => sink.stat("ascend-cluster.unreadable_table", Severity::DataLoss, 1, Some(&name)),
        }
    }
    Ok(())
}

/// A number that is not negative, in units of `unit`.
fn scaled(page: &Page, lane: usize, row: usize, unit: f64) -> Option<i64> {
    let value = (page.real(lane, row)? * unit).round();
    (0.0..9e18).contains(&value).then_some(value as i64)
}

fn rank(page: &Page, lane: usize, row: usize) -> Option<u32> {
    u32::try_from(page.int(lane, row)?).ok()
}

/// The entry of a row. Sums over all operations have no group of their own: they are those of the ranks in `ranks`, as the
/// operations are.
fn entry<'p>(page: &'p Page, row: usize, ranks: usize) -> Entry<'p> {
    let text = |lane| page.inline(lane, row).unwrap_or_default();
    let set = page.inline(ranks, row).filter(|set| !set.is_empty());
    Entry { step: text(0), set: set.unwrap_or_else(|| text(1)), operation: text(2) }
}

/// The parts of a row of [`STEPS`].
pub(in crate::ascend) fn parts(page: &Page, row: usize) -> Vec<(StepPart, Ns)> {
    (3..).zip(PARTS).filter_map(|(lane, (part, ..))| Some((part, scaled(page, lane, row, 1e3)?))).collect()
}

fn step(gathered: &mut Gathered, page: &Page, row: usize) -> Taken {
    let index = page.inline(2, row).unwrap_or_default();
    if page.inline(1, row) == Some("stage") {
        gathered.stage(index);
        return Taken::OfStage;
    }
    let parts = parts(page, row);
    match index.parse() {
        Ok(rank) if !parts.is_empty() => {
            Taken::Kept(gathered.step(page.inline(0, row).unwrap_or_default(), rank, parts))
        }
        _ => Taken::Incomplete,
    }
}

fn collective(gathered: &mut Gathered, page: &Page, row: usize) -> Taken {
    let ms = |lane| scaled(page, lane, row, 1e6);
    let (Some(rank), Some(elapse), Some(transit), Some(wait)) = (rank(page, 3, row), ms(4), ms(5), ms(6)) else {
        return Taken::Incomplete;
    };
    let group = page.inline(1, row).filter(|group| !group.is_empty());
    gathered.collective(entry(page, row, 7), rank, [elapse, transit, wait], (scaled(page, 8, row, 1e3), group));
    Taken::Kept(elapse)
}

fn link(gathered: &mut Gathered, page: &Page, row: usize) -> Taken {
    let million = |lane| scaled(page, lane, row, 1e6);
    let ranks = rank(page, 3, row).zip(rank(page, 4, row));
    let (Some((from, to)), Some(bytes), Some(time)) = (ranks, million(6), million(7)) else {
        return Taken::Incomplete;
    };
    gathered.link(entry(page, row, 8), from, to, page.inline(5, row).unwrap_or("unknown"), [bytes, time]);
    Taken::Kept(time)
}
