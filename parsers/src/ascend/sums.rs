//! Tables of sums that the profiler made of a capture: `step_trace_time.csv`, `api_statistic_*.csv`, `op_statistic_*.csv`,
//! `communication_statistic_*.csv`. The capture beside them gives every one of these sums itself; they go to the ledger,
//! where a reader can hold them against what was read.

use std::path::Path;

use model::TraceSink;

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
}

/// Sums of the parts of a step: torch_npu's `step_trace_time.csv`.
const PARTS: &[&str] =
    &["Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Bubble", "Preparing"];

const SUMS: [Sum; 4] = [
    Sum { prefix: "step_trace_time", by: None, count: None, times: PARTS },
    Sum { prefix: "api_statistic", by: Some("Level"), count: Some("Count"), times: &["Time(us)"] },
    Sum { prefix: "op_statistic", by: Some("Core Type"), count: Some("Count"), times: &["Total Time(us)"] },
    Sum { prefix: "communication_statistic", by: Some("OP Type"), count: Some("Count"), times: &["Total Time(us)"] },
];

fn of(name: &str) -> Option<&'static Sum> {
    SUMS.iter().find(|sum| name.starts_with(sum.prefix) && name.ends_with(".csv"))
}

/// Whether a file of this name is such a table.
pub(super) fn is_known(name: &str) -> bool {
    of(name).is_some()
}

/// Tells the ledger the sums of a table.
pub(super) fn read(path: &Path, sink: &mut dyn TraceSink) {
    let name = super::layout::name(path);
    let Some(sum) = of(&name) else { return };
    // A table of sums that cannot be read costs nothing that the capture beside it does not hold.
    let lost = rows(path, sum, sink).unwrap_or(1);
    if lost > 0 {
        sink.stat("ascend.incomplete_row", model::Severity::DataLoss, lost, Some(&name));
    }
}

/// Reads a table; how many of its rows say nothing.
fn rows(path: &Path, sum: &Sum, sink: &mut dyn TraceSink) -> Result<u64, ReadError> {
    const NOTE: &str = "a sum that the profiler made, for comparison";
    let grouping = [sum.by.unwrap_or(NONE), sum.count.unwrap_or(NONE)];
    let names: Vec<String> = grouping.iter().chain(sum.times).map(|name| name.to_lowercase()).collect();
    let columns: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::open_lines(path, |header| columns[2..].iter().any(|c| header.iter().any(|h| h == c)))?;
    table.select(&columns);
    let mut silent = 0;
    while let Some(row) = table.next(&|_, _| {})? {
        let count = row.int(1).and_then(|n| u64::try_from(n).ok());
        let mut any = false;
        for (column, cell) in sum.times.iter().zip(2..) {
            let Some(time) = row.decimal(cell, 3) else { continue };
            let group = match sum.by {
                Some(_) => row.text(0).map_or_else(|| "N/A".to_owned(), |text| text.into_owned()),
                None => (*column).to_owned(),
            };
            sink.ledger(&format!("{}/{group}", sum.prefix), count.unwrap_or(1), 0, time, NOTE);
            any = true;
        }
        silent += u64::from(!any);
    }
    Ok(silent + table.cut())
}
