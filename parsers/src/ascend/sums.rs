//! Tables of sums that the profiler made of a capture: `step_trace_time.csv`, `api_statistic_*.csv`, `op_statistic_*.csv`,
//! `communication_statistic_*.csv`. The capture beside them gives every one of these sums itself; they go to the ledger,
//! where a reader can hold them against what was read, and to the capture, whose rows are held against them.

use std::{collections::BTreeMap, path::Path};

use model::{Ns, Stated, StatedSum, TraceSink};

use super::task::Task;
use crate::{ReadError, csv_table::Table};

/// No column has this name.
const NONE: &str = "\0";

/// A kind of such a table.
struct Sum {
    /// What its file's name begins with.
    prefix: &'static str,
    /// Column that rows are grouped by; without it the columns of times are the groups.
    by: Option<&'static str>,
    /// Column of how often.
    count: Option<&'static str>,
    /// Columns of times, µs.
    times: &'static [&'static str],
    /// What they sum, where the rows of a capture give the same.
    what: What,
}

/// What the columns of a table are to the rows of a capture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Parts of the step, by their columns.
    Parts,
    /// Calls of the host, in the column of that name.
    Calls(&'static str),
    /// Kernels; collectives among them are told by their group. A row without a name, where there are names, is no kernel.
    Kernels(Option<&'static str>),
    /// Nothing that could be held against rows: sums of what may run side by side.
    Nothing,
}

/// What the sums of a capture can be held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The rows of the capture.
    Rows,
    /// Its other sums, and the collectives that these place in time: it has no rows.
    Sums,
}

/// Sums of the parts of a step: torch_npu's `step_trace_time.csv`.
const PARTS: &[&str] = &[
    "Computing",
    "Communication(Not Overlapped)",
    "Overlapped",
    "Communication",
    "Free",
    "Stage",
    "Bubble",
    "Preparing",
];

const SUMS: [Sum; 5] = [
    Sum { prefix: "step_trace_time", by: None, count: None, times: PARTS, what: What::Parts },
    Sum {
        prefix: "api_statistic",
        by: Some("Level"),
        count: Some("Count"),
        times: &["Time(us)"],
        what: What::Calls("API Name"),
    },
    Sum {
        prefix: "op_statistic",
        by: Some("Core Type"),
        count: Some("Count"),
        times: &["Total Time(us)"],
        what: What::Kernels(None),
    },
    Sum {
        prefix: "communication_statistic",
        by: Some("OP Type"),
        count: Some("Count"),
        times: &["Total Time(us)"],
        what: What::Nothing,
    },
    Sum {
        prefix: "task_time",
        by: Some("kernel_type"),
        count: None,
        times: &["task_time(us)"],
        what: What::Kernels(Some("kernel_name")),
    },
];

fn of(name: &str) -> Option<&'static Sum> {
    SUMS.iter().find(|sum| name.starts_with(sum.prefix) && name.ends_with(".csv"))
}

/// Whether a file of this name is such a table.
pub(super) fn is_known(name: &str) -> bool {
    of(name).is_some()
}

/// Tells the sums of a table: the ledger, and the capture, for what they can be held against.
pub(super) fn read(path: &Path, held: Held, sink: &mut dyn TraceSink) {
    let name = super::layout::name(path);
    let Some(sum) = of(&name) else { return };
    // A table of sums that cannot be read costs nothing that the capture beside it does not hold.
    let lost = rows(path, sum, held, sink).unwrap_or(1);
    if lost > 0 {
        sink.stat("ascend.incomplete_row", model::Severity::DataLoss, lost, Some(&name));
    }
}

/// Reads a table; how many of its rows say nothing.
fn rows(path: &Path, sum: &Sum, held: Held, sink: &mut dyn TraceSink) -> Result<u64, ReadError> {
    const NOTE: &str = "a sum that the profiler made, for comparison";
    let named = match sum.what {
        What::Calls(column) | What::Kernels(Some(column)) => column,
        _ => NONE,
    };
    let grouping = [sum.by.unwrap_or(NONE), sum.count.unwrap_or(NONE), named];
    let names: Vec<String> = grouping.iter().chain(sum.times).map(|name| name.to_lowercase()).collect();
    let columns: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::open_lines(path, |header| columns[3..].iter().any(|c| header.iter().any(|h| h == c)))?;
    table.select(&columns);
    let mut silent = 0;
    let mut stated: BTreeMap<(Stated, Option<String>), (Option<u64>, Ns)> = BTreeMap::new();
    while let Some(row) = table.next(&|_, _| {})? {
        let count = row.int(1).and_then(|n| u64::try_from(n).ok());
        let mut any = false;
        for (column, cell) in sum.times.iter().zip(3..) {
            let Some(time) = row.decimal(cell, 3) else { continue };
            let group = match sum.by {
                Some(_) => row.text(0).map_or_else(|| "N/A".to_owned(), |text| text.into_owned()),
                None => (*column).to_owned(),
            };
            let name = row.text(2);
            let summed = match sum.what {
                What::Parts => part(column, held).map(|part| (part, None)),
                What::Calls(_) => name.map(|name| (Stated::HostCalls, Some(name.into_owned()))),
                What::Kernels(names) => {
                    let is_kernel =
                        if names.is_some() { name.is_some() && is_kernel(&group) } else { is_kernel(&group) };
                    is_kernel.then_some((Stated::Kernels, None))
                }
                What::Nothing => None,
            };
            if let Some((what, name)) = summed
                && (stated.len() < MAX_STATED || stated.contains_key(&(what, name.clone())))
            {
                // A table without counts has a row for each task.
                let count = if what_has_count(sum.what) { count.or(Some(1)) } else { None };
                let known = stated.entry((what, name)).or_insert((count.map(|_| 0), 0));
                known.0 = known.0.zip(count).map(|(known, count)| known.saturating_add(count));
                known.1 = known.1.saturating_add(time);
            }
            sink.ledger(&format!("{}/{group}", sum.prefix), count.unwrap_or(1), 0, time, NOTE);
            any = true;
        }
        silent += u64::from(!any);
    }
    let source = sink.intern(&super::layout::name(path));
    for ((what, name), (count, time)) in stated {
        let name = name.map(|name| sink.intern(&name));
        sink.stated(StatedSum { process: None, source, what, name, count, time });
    }
    Ok(silent + table.cut())
}

/// Most sums that are told of a table; there are some hundred calls.
const MAX_STATED: usize = 1 << 14;

/// Parts of a step by their columns in `step_trace_time.csv` and in `StepTraceTime` of `analysis.db`. torch_npu
/// (`profiler/analysis/prof_view/_trace_step_time_parser.py`, 2025) sums of each step what begins in it: the time in which kernels
/// and collectives run or neither does, each side by side once; `Overlapped` is `Communication` less what is not overlapped,
/// `Bubble` the sum of all `hcom_receive`, and `Stage` the time from the first work to the last less `Bubble`.
const STATED: [(Stated, &str, &str); 7] = [
    (Stated::Computing, "Computing", "computing"),
    (Stated::Communication, "Communication", "communication"),
    (Stated::ExposedCommunication, "Communication(Not Overlapped)", "communication_not_overlapped"),
    (Stated::Free, "Free", "free"),
    (Stated::OverlappedCommunication, "Overlapped", "overlapped"),
    (Stated::Stage, "Stage", "stage"),
    (Stated::Receives, "Bubble", "bubble"),
];
/// How many of them are kept beside rows: those that lie within the steps, whose edges may differ, and the time that is left, which
/// says what the rows do not where they are a sample.
const OF_ROWS: usize = 4;

fn stated(held: Held) -> &'static [(Stated, &'static str, &'static str)] {
    match held {
        Held::Rows => &STATED[..OF_ROWS],
        Held::Sums => &STATED,
    }
}

/// What a column of `step_trace_time` is.
fn part(column: &str, held: Held) -> Option<Stated> {
    stated(held).iter().find(|(_, known, _)| *known == column).map(|(what, ..)| *what)
}

/// Whether a table counts what it sums.
fn what_has_count(what: What) -> bool {
    matches!(what, What::Calls(_) | What::Kernels(_))
}

/// Whether tasks of this type are kernels, collectives left out.
fn is_kernel(task_type: &str) -> bool {
    Task::of(task_type, "operator") == Task::Kernel
}

/// Tells the sums of steps that `analysis.db` holds.
#[cfg(feature = "sqlite")]
pub(super) fn read_database(path: &Path, held: Held, sink: &mut dyn TraceSink) {
    use crate::sqlite::{database::Database, page::Column, scan::Item};
    const TABLE: &str = "StepTraceTime";
    const COLUMNS: &[Column] = &[
        Column::Real(STATED[0].2),
        Column::Real(STATED[1].2),
        Column::Real(STATED[2].2),
        Column::Real(STATED[3].2),
        Column::Real(STATED[4].2),
        Column::Real(STATED[5].2),
        Column::Real(STATED[6].2),
    ];
    let Ok(database) = Database::open(path, super::database::malformed) else { return };
    if !database.tables.has(TABLE) {
        return;
    }
    let mut sums: [Option<Ns>; STATED.len()] = [None; STATED.len()];
    let plan = database.plan([(&TABLE, TABLE.to_owned(), COLUMNS)], "ascend", sink);
    plan.read(&|_, _| {}, |table, item| match item {
        Item::Page(page) => {
            for (lane, sum) in sums.iter_mut().enumerate() {
                for row in 0..page.rows {
                    let ns = page.real(lane, row).map(|us| (us * 1e3).round()).filter(|ns| (0.0..9e17).contains(ns));
                    *sum = ns.map(|ns| sum.unwrap_or(0).saturating_add(ns as Ns)).or(*sum);
                }
            }
            page.rows as u64
        }
        Item::Loss(loss) => crate::sqlite::database::tell_loss(&loss, "ascend", table, sink),
    });
    let source = sink.intern(&format!("{}/{TABLE}", super::layout::name(path)));
    for ((what, ..), time) in stated(held).iter().zip(sums) {
        if let Some(time) = time {
            sink.stated(StatedSum { process: None, source, what: *what, name: None, count: None, time });
        }
    }
}
