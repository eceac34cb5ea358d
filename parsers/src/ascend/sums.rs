//! Tables of sums that the profiler made of a capture: `step_trace_time.csv`, `api_statistic_*.csv`, `op_statistic_*.csv`,
//! `communication_statistic_*.csv`. The capture beside them gives every one of these sums itself; they go to the ledger,
//! where a reader can hold them against what was read.

use std::path::Path;

use model::TraceSink;

use crate::csv::Table;

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
    const NOTE: &str = "a sum that the profiler made, for comparison";
    let name = super::layout::name(path);
    let Some(sum) = of(&name) else { return };
    let table = Table::read(path, &mut |row| {
        let count = sum.count.and_then(|column| row.int(&[column])).and_then(|n| u64::try_from(n).ok());
        let mut any = false;
        for column in sum.times {
            let Some(time) = row.decimal(&[column], 3) else { continue };
            let group = match sum.by {
                Some(by) => row.text(&[by]).unwrap_or_else(|| "N/A".to_owned()),
                None => (*column).to_owned(),
            };
            sink.ledger(&format!("{}/{group}", sum.prefix), count.unwrap_or(1), 0, time, NOTE);
            any = true;
        }
        any
    });
    let lost = match &table {
        Ok(table) => table.broken + table.read - table.kept,
        Err(_) => 1,
    };
    if lost > 0 {
        sink.stat("ascend.incomplete_row", model::Severity::DataLoss, lost, Some(&name));
    }
}
