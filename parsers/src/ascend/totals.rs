//! Sums by operator, on their own: `op_statistic_*.csv`, and tables of operators exported without the times at which they
//! started (`op_summary_*.csv` of an older export). Nothing can be said of steps, gaps or overlap, and a sum must not be
//! compared with elapsed time: tasks run side by side.

use std::path::Path;

use model::{Conditions, KernelSummary, Ns, Provenance, TraceSink};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions,
    csv_table::{self, Row, Table},
    lanes::Account,
};

/// The format.
pub const FORMAT: Format = Format {
    id: "op-statistic",
    name: "Ascend sums by operator (op_statistic, op_summary without start times)",
    matches,
    read,
    lead: crate::alone,
};

/// Columns of a table with a row per type of operator.
const BY_TYPE: [&str; 3] = ["op type", "count", "total time(us)"];
/// Columns of a table with a row per task.
const BY_TASK: [&str; 3] = ["op name", "op type", "task duration(us)"];
/// The columns that are read, in the order in which [`take`] counts them: of one table or of the other.
const COLUMNS: [&str; 6] = [
    "op name|op type",
    "count",
    "total time(us)|task duration(us)",
    "min time(us)",
    "max time(us)",
    "core type|task type",
];

fn is_header(header: &[String]) -> bool {
    csv_table::has_all(header, &BY_TYPE) || csv_table::has_all(header, &BY_TASK)
}

fn matches(head: &Head<'_>) -> Match {
    // A table that also says when its tasks started is a timeline, and certainly so.
    if is_header(&csv_table::first_header(head.bytes)) { Match::Possible } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut table = Table::open_lines(path, is_header)?;
    let counted = table.header().iter().any(|column| column == "count");
    table.select(&COLUMNS);
    let mut rows = Account::default();
    while let Some(row) = table.next(options.progress)? {
        rows.read += 1;
        match take(sink, row, counted) {
            Some(time) => rows.keep(0, time),
            None => rows.incomplete += 1,
        }
    }
    rows.incomplete += table.cut();
    if rows.kept == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "rows with an operator's count and total time".to_owned(),
            next: "give the timeline, the database or op_summary of the same profile instead".to_owned(),
        });
    }
    rows.tell(sink, "ascend", "rows", "sums of operators");
    table.tell_damage(sink, "ascend");
    for (key, value) in [
        ("evidence.grade", "totals"),
        ("hardware.vendor", "ascend"),
        ("measurement.traced", "ascend"),
        ("ascend.form", "sums by operator"),
    ] {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}

/// Adds the sum of a row; its total time.
fn take(sink: &mut dyn TraceSink, row: Row<'_>, counted: bool) -> Option<Ns> {
    let (name, total) = (row.text(0)?, row.decimal(2, 3).filter(|total| *total >= 0)?);
    let count = if counted { u64::try_from(row.int(1)?).ok()? } else { 1 };
    let range = if counted { row.decimal(3, 3).zip(row.decimal(4, 3)) } else { Some((total, total)) };
    let kernel = sink.intern(&name);
    let summary = KernelSummary { count, total: Some(total), range, ..KernelSummary::of(kernel, Conditions::Run) };
    sink.summary(summary);
    sink.ledger(row.text(5).as_deref().unwrap_or("no core type"), count, count, total, "part of the sums, by core");
    Some(total)
}
