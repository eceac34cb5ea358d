//! `op_statistic_*.csv`: sums over all tasks of a type. It has no times of single tasks, so nothing can be said of steps,
//! gaps or overlap, and the sums must not be compared with elapsed time: tasks run side by side.

use std::path::Path;

use model::{Conditions, KernelSummary, Provenance, Severity, TraceSink};

use crate::{Format, Head, Match, Place, Progress, ReadError, csv::Table};

/// The format.
pub const FORMAT: Format =
    Format { id: "op-statistic", name: "Ascend sums by operator (op_statistic)", matches, read, lead: crate::alone };

fn matches(head: &Head<'_>) -> Match {
    let line = head.bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let columns: Vec<&str> = line.trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
    let all = ["OP Type", "Core Type", "Count", "Total Time(us)"].iter().all(|name| columns.contains(name));
    if all { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let total = std::fs::metadata(path).map(|meta| meta.len()).unwrap_or(0);
    let table = Table::read(path, &mut |row| {
        let kind = row.text(&["OP Type"]);
        let (count, time) = (row.int(&["Count"]), row.decimal(&["Total Time(us)"], 3));
        let (Some(kind), Some(count), Some(time)) = (kind, count.and_then(|n| u64::try_from(n).ok()), time) else {
            return false;
        };
        let core = row.text(&["Core Type"]).unwrap_or_else(|| "no type".to_owned());
        sink.ledger(&format!("{core}/{kind}"), count, 0, time, "a sum: no times of single tasks");
        let range = row.decimal(&["Min Time(us)"], 3).zip(row.decimal(&["Max Time(us)"], 3));
        let kernel = sink.intern(&kind);
        sink.summary(KernelSummary {
            kernel,
            conditions: Conditions::Run,
            count,
            total: Some(time),
            range,
            grid: None,
            block: None,
            metrics: Vec::new(),
            stalls: Vec::new(),
        });
        true
    })?;
    progress(total, total);
    if table.kept == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "rows with an operator's count and total time".to_owned(),
            next: "give the timeline, the database or op_summary of the same profile instead".to_owned(),
        });
    }
    let lost = table.broken + table.read - table.kept;
    if lost > 0 {
        sink.stat("ascend.incomplete_row", Severity::DataLoss, lost, None);
    }
    sink.manifest("evidence.grade", "totals", Provenance::Observed);
    sink.manifest("hardware.vendor", "ascend", Provenance::Observed);
    sink.manifest("ascend.form", "sums by operator", Provenance::Observed);
    Ok(())
}
