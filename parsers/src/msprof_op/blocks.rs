//! The tables of one operator. Rows are blocks and their parts (`cube0`, `vector0`, …); a cell that does not apply to a part
//! says `NA`. Of each quantity the mean over the blocks counts, and of the pipes of one kind the busiest.

use std::path::{Path, PathBuf};

use model::{Conditions, KernelSummary, Metric, Severity, TraceSink};

use super::{BLOCK, is_basic, name};
use crate::{
    Progress, ReadError,
    csv_table::{self, Row, Table},
    lanes::Account,
};

/// Tables with a row per block, by how their names begin, the one that is believed first.
const TABLES: [&str; 5] = ["PipeUtilization", "ArithmeticUtilization", "Memory", "L2Cache", "ResourceConflictRatio"];
/// Columns of the operator's row.
const OPERATOR: [&str; 4] = ["op name", "task duration(us)", "block dim|block num", "pid"];

/// How the values of several columns and blocks are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    /// Shares of the cycles, 0 to 1, of pipes that work side by side: the busiest.
    Busiest,
    /// Percentages: their mean.
    Mean,
    /// GB/s of each core: their sum.
    Sum,
}

/// What the columns are measurements of. Ratios of a pipe are cycles in which it worked over all cycles of its core.
const COLUMNS: [(Metric, Merge, &[&str]); 5] = [
    (Metric::Compute, Merge::Busiest, &["aic_cube_ratio|aic_mac_ratio|mac_ratio", "aiv_vec_ratio|vec_ratio"]),
    (
        Metric::Memory,
        Merge::Busiest,
        &[
            "aic_mte1_ratio|mte1_ratio",
            "aic_mte2_ratio|mte2_ratio",
            "aic_mte3_ratio|mte3_ratio",
            "aic_fixpipe_ratio",
            "aiv_mte2_ratio",
            "aiv_mte3_ratio",
        ],
    ),
    (Metric::Scalar, Merge::Busiest, &["aic_scalar_ratio|scalar_ratio", "aiv_scalar_ratio"]),
    (Metric::L2Hit, Merge::Mean, &["aic_total_hit_rate(%)", "aiv_total_hit_rate(%)"]),
    (
        Metric::DramBytesPerSecond,
        Merge::Sum,
        &[
            "aic_main_mem_read_bw(gb/s)",
            "aic_main_mem_write_bw(gb/s)",
            "aiv_main_mem_read_bw(gb/s)",
            "aiv_main_mem_write_bw(gb/s)",
        ],
    ),
];

/// Sum and number of the values of a column.
type Column = (f64, u64);

/// Values of every column of [`COLUMNS`], in their order.
#[derive(Default)]
struct Values(Vec<Column>);

impl Values {
    fn add(&mut self, row: Row<'_>) -> bool {
        let mut any = false;
        for (cell, (sum, count)) in self.0.iter_mut().enumerate() {
            if let Some(value) = row.number(cell).filter(|value| *value >= 0.0) {
                (*sum, *count, any) = (*sum + value, *count + 1, true);
            }
        }
        any
    }

    /// Adds the columns that another table has and this one does not: several tables repeat some.
    fn take(&mut self, other: Self) {
        self.0.resize(other.0.len().max(self.0.len()), (0.0, 0));
        for (own, other) in self.0.iter_mut().zip(other.0) {
            if own.1 == 0 {
                *own = other;
            }
        }
    }

    fn metrics(&self) -> Vec<(Metric, f64)> {
        let mut first = 0;
        let mut found = Vec::new();
        for (metric, merge, columns) in COLUMNS {
            let values = self.0.get(first..first + columns.len()).unwrap_or_default();
            first += columns.len();
            let means = values.iter().filter(|(_, count)| *count > 0).map(|(sum, count)| sum / *count as f64);
            let (sum, count) = values.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            let value = match merge {
                Merge::Busiest => means.reduce(f64::max).map(|share| 100.0 * share),
                Merge::Mean => (count > 0).then(|| sum / count as f64),
                Merge::Sum => (count > 0).then_some(sum * 1e9),
            };
            found.extend(value.map(|value| (metric, value)));
        }
        found
    }
}

/// Reads the operator named in `basic` and what the other tables measured of it.
pub(super) fn read(
    basic: &Path,
    tables: &[PathBuf],
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let mut operators = operators(basic, sink, progress)?;
    let mut values = Values::default();
    let found = TABLES.iter().flat_map(|table| tables.iter().filter(move |path| name(path).starts_with(*table)));
    for path in found {
        match blocks(path, sink, progress) {
            Ok(found) => values.take(found),
            Err(error) => sink.stat("msprof-op.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string())),
        }
    }
    match operators.as_mut_slice() {
        [only] => only.metrics = values.metrics(),
        several if !values.metrics().is_empty() => {
            let example = Some("one directory, several operators");
            sink.stat("msprof-op.operator_unknown", Severity::DataLoss, several.len() as u64, example);
        }
        _ => {}
    }
    operators.into_iter().for_each(|operator| sink.summary(operator));
    Ok(())
}

/// The rows of the operator's table.
fn operators(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<Vec<KernelSummary>, ReadError> {
    let mut table = Table::open_lines(path, is_basic)?;
    table.select(&OPERATOR);
    let (mut account, mut found) = (Account::default(), Vec::new());
    while let Some(row) = table.next(progress)? {
        account.read += 1;
        let (Some(operator), Some(time)) = (row.text(0), row.decimal(1, 3).filter(|time| *time >= 0)) else {
            account.incomplete += 1;
            continue;
        };
        let blocks = row.int(2).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        account.keep(0, time);
        found.push(KernelSummary {
            total: Some(time),
            range: Some((time, time)),
            grid: blocks.map(|n| [n, 1, 1]),
            ..KernelSummary::of(sink.intern(&operator), Conditions::Isolated)
        });
    }
    account.tell(sink, "msprof-op", &name(path), "the operator and its duration");
    Ok(found)
}

/// What a table with a row per block says.
fn blocks(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<Values, ReadError> {
    let mut table = Table::open_lines(path, |header| csv_table::has_all(header, &BLOCK) || header.len() > 2)?;
    let columns: Vec<&str> = COLUMNS.iter().flat_map(|(.., columns)| *columns).copied().collect();
    table.select(&columns);
    let mut values = Values(vec![(0.0, 0); columns.len()]);
    let (mut read, mut kept) = (0, 0);
    while let Some(row) = table.next(progress)? {
        read += 1;
        kept += u64::from(values.add(row));
    }
    sink.ledger(&name(path), read, kept, 0, "measurements of the operator, mean over its blocks");
    Ok(values)
}
