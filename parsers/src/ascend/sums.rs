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

/// Sums of the parts of a step: torch_npu's `step_trace_time.csv`.
const PARTS: &[&str] =
    &["Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Bubble", "Preparing"];

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

/// Tells the sums of a table: the ledger, and the capture where `rows` says that it has rows which give the same.
pub(super) fn read(path: &Path, with_rows: bool, sink: &mut dyn TraceSink) {
    let name = super::layout::name(path);
    let Some(sum) = of(&name) else { return };
    // A table of sums that cannot be read costs nothing that the capture beside it does not hold.
    let lost = rows(path, sum, with_rows, sink).unwrap_or(1);
    if lost > 0 {
        sink.stat("ascend.incomplete_row", model::Severity::DataLoss, lost, Some(&name));
    }
}

/// Reads a table; how many of its rows say nothing.
fn rows(path: &Path, sum: &Sum, with_rows: bool, sink: &mut dyn TraceSink) -> Result<u64, ReadError> {
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
                What::Parts => part(column).map(|part| (part, None)),
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
    if with_rows {
        let source = sink.intern(&super::layout::name(path));
        for ((what, name), (count, time)) in stated {
            let name = name.map(|name| sink.intern(&name));
            sink.stated(StatedSum { process: None, source, what, name, count, time });
        }
    }
    Ok(silent + table.cut())
}

/// Most sums that are told of a table; there are some hundred calls.
const MAX_STATED: usize = 1 << 14;

/// What a column of `step_trace_time` is.
fn part(column: &str) -> Option<Stated> {
    match column {
        "Computing" => Some(Stated::Computing),
        "Communication" => Some(Stated::Communication),
        "Communication(Not Overlapped)" => Some(Stated::ExposedCommunication),
        _ => None,
    }
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
pub(super) fn read_database(path: &Path, sink: &mut dyn TraceSink) {
    use crate::sqlite::{database::Database, page::Column, scan::Item};
    const TABLE: &str = "StepTraceTime";
    const COLUMNS: &[Column] =
        &[Column::Real("computing"), Column::Real("communication"), Column::Real("communication_not_overlapped")];
    let Ok(database) = Database::open(path, super::database::malformed) else { return };
    if !database.tables.contains_key(TABLE) {
        return;
    }
    let mut sums: [Option<Ns>; 3] = [None; 3];
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
    let parts = [Stated::Computing, Stated::Communication, Stated::ExposedCommunication];
    for (what, time) in parts.into_iter().zip(sums).filter_map(|(what, sum)| Some((what, sum?))) {
        sink.stated(StatedSum { process: None, source, what, name: None, count: None, time });
    }
}
