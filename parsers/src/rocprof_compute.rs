//! The table of the kernels with the most time that `rocprof-compute analyze` prints: how often each ran and how long in all.
//! Nothing in it has a place in time, so rows are summaries. Beside a second workload each column stands twice, and the first
//! one is that of the first workload. Source: texts of rocprof-compute 3.

use std::path::Path;

use model::{Conditions, KernelSummary, Ns, Severity, TraceSink};

use crate::{Format, Head, Match, Place, ReadError, ReadOptions, hip, lanes::Account, lines::Lines};

/// The format.
pub const FORMAT: Format = Format {
    id: "rocprof-compute",
    name: "rocprof-compute analyze text (sums per kernel)",
    matches,
    read,
    lead: crate::alone,
};

/// Longest line that is read whole.
const LINE: usize = 64 << 10;
/// Longest name of a kernel, put together from its lines.
const NAME: usize = 64 << 10;
/// Units of the column of sums with their power of ten in ns.
const UNITS: [(&str, i32); 4] = [("Sum(ns)", 0), ("Sum(us)", 3), ("Sum(ms)", 6), ("Sum(s)", 9)];

/// The places of the columns that are read.
#[derive(Clone, Copy)]
struct Columns {
    index: usize,
    name: usize,
    count: usize,
    total: usize,
    exponent: i32,
}

/// The cells of a drawn line.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.trim().strip_prefix('│')?.strip_suffix('│')?;
    Some(inside.split('│').map(str::trim).collect())
}

impl Columns {
    fn of(line: &str) -> Option<Self> {
        let names = cells(line)?;
        let place = |name: &str| names.iter().position(|column| *column == name);
        let (total, exponent) = UNITS.iter().find_map(|(name, exponent)| Some((place(name)?, *exponent)))?;
        Some(Self { index: place("index")?, name: place("Kernel_Name")?, count: place("Count")?, total, exponent })
    }
}

fn matches(head: &Head<'_>) -> Match {
    let known = head.is_text() && String::from_utf8_lossy(head.bytes).lines().any(|line| Columns::of(line).is_some());
    if known { Match::Named } else { Match::No }
}

/// A row under way: the name so far, and count and sum as they are written.
struct Row {
    name: String,
    count: String,
    total: String,
}

impl Row {
    /// Adds the row to the capture; its time, ns.
    fn tell(&self, columns: Columns, sink: &mut dyn TraceSink) -> Option<Ns> {
        let total = model::time::parse_decimal(self.total.as_bytes(), columns.exponent).ok()?.0;
        // Counts are means over the passes of the profiler, with two decimals.
        let (count, _) = model::time::parse_decimal(self.count.as_bytes(), 0).ok()?;
        let (count, total) = (u64::try_from(count).ok()?, Some(total).filter(|total| *total >= 0)?);
        if self.name.is_empty() {
            return None;
        }
        let known = KernelSummary::of(sink.intern(hip::kernel_name(&self.name)), Conditions::Run);
        sink.summary(KernelSummary { count, total: Some(total), ..known });
        Some(total)
    }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut lines = Lines::open(path, LINE)?;
    let (mut columns, mut row, mut account) = (None::<Columns>, None::<Row>, Account::default());
    loop {
        let line = lines.next()?.map(|line| String::from_utf8_lossy(line).trim().to_owned());
        let drawn = line.as_deref().and_then(cells);
        let at = columns.and_then(|columns| Some((columns, drawn.as_ref()?)));
        let goes_on = at.filter(|(columns, cells)| cells.get(columns.index).is_some_and(|index| index.is_empty()));
        match (goes_on, &mut row) {
            // A long name goes on in the lines below it.
            (Some((columns, cells)), Some(row)) if row.name.len() < NAME => {
                row.name += cells.get(columns.name).copied().unwrap_or_default();
            }
            _ => {
                if let Some((row, columns)) = row.take().zip(columns) {
                    account.read += 1;
                    match row.tell(columns, sink) {
                        Some(time) => account.keep(0, time),
                        None => account.incomplete += 1,
                    }
                }
                row = at.filter(|_| goes_on.is_none()).map(|(columns, cells)| {
                    let cell = |place: usize| cells.get(place).copied().unwrap_or_default().to_owned();
                    Row { name: cell(columns.name), count: cell(columns.count), total: cell(columns.total) }
                });
            }
        }
        let Some(line) = line.as_deref() else { break };
        // Lines between rows are drawn with other characters; anything else ends the table.
        if let Some(found) = Columns::of(line) {
            (columns, row) = (Some(found), None);
        } else if drawn.is_none() && !line.starts_with(['├', '╞']) {
            columns = None;
        }
        let (done, total) = lines.progress();
        (options.progress)(done, total);
    }
    if account.kept == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "a row of the table 'Top Kernels' of rocprof-compute".to_owned(),
            next: "give the directory of the workload, or its pmc_kernel_top.csv".to_owned(),
        });
    }
    account.tell(sink, FORMAT.id, "kernels", "sums of kernels");
    if let Some(why) = lines.damage() {
        sink.stat("rocprof-compute.damaged_file", Severity::DataLoss, 1, Some(why));
    }
    hip::manifest(sink, "amd", "rocprof-compute, sums only");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::TraceBuilder;

    /// What rocprof-compute prints was a text of no known format.
    #[test]
    fn the_table_of_the_top_kernels_is_one_of_sums() {
        let text = "\
0.1 Top Kernels
╒═════════╤═════════════╤═════════╤══════════════╤═════════╤═════════╕
│   index │ Kernel_Name │   Count │ Count        │ Sum(us) │ Sum(us) │
╞═════════╪═════════════╪═════════╪══════════════╪═════════╪═════════╡
│       0 │ void gemm<i │  150.00 │ 150 (0.0%)   │  288.12 │   99.00 │
│         │ nt, 4>(int) │         │              │         │         │
├─────────┼─────────────┼─────────┼──────────────┼─────────┼─────────┤
│       1 │ fill        │    2.00 │ 2 (0.0%)     │    8.00 │    8.00 │
├─────────┼─────────────┼─────────┼──────────────┼─────────┼─────────┤
│       2 │ broken      │     two │ 2 (0.0%)     │    8.00 │    8.00 │
╘═════════╧═════════════╧═════════╧══════════════╧═════════╧═════════╛
0.2 Dispatch List
│       0 │ fill        │       1 │
";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output.txt");
        std::fs::write(&path, text).unwrap();
        let mut builder = TraceBuilder::new("t", "");
        assert_eq!(crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap().id, FORMAT.id);
        let trace = builder.finish();
        let sums: Vec<_> = trace.summaries.iter().map(|s| (trace.strings.get(s.kernel), s.count, s.total)).collect();
        assert_eq!(sums, [("void gemm<int, 4>(int)", 150, Some(288_120)), ("fill", 2, Some(8_000))]);
        assert_eq!(trace.stat("rocprof-compute.incomplete_row"), 1);
    }
}
