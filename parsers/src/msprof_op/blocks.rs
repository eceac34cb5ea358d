//! The tables of one operator. Rows are blocks and their parts (`cube0`, `vector0`, …); a cell that does not apply to a part
//! says `NA`. Of each part the mean over the blocks counts, and of the pipes and parts of one kind the busiest.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{Conditions, KernelSummary, Metric, Ns, Severity, StringId, TraceSink};

use super::{BLOCK, is_basic, name};
use crate::{
    Progress, ReadError,
    csv_table::{self, Table},
    lanes::Account,
};

/// Tables with a row per block, by how their names begin, the one that is believed first.
const TABLES: [&str; 5] = ["PipeUtilization", "ArithmeticUtilization", "Memory", "L2Cache", "ResourceConflictRatio"];
/// Columns of the operator's row.
const OPERATOR: [&str; 4] = ["op name", "task duration(us)", "block dim|block num", "pid"];

/// What an operator is called whose name is not there.
const UNNAMED: &str = "(operator without a name)";
/// Columns of how long a core ran, µs.
const TIMES: [&str; 3] = ["aic_time(us)", "aiv_time(us)", "aicore_time(us)"];

/// Most columns of parts that are kept; a core has three parts and some hundred columns.
const MOST: usize = 1 << 14;

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

/// What was counted of the blocks' parts: by part (`cube0`, `vector1`) and column, the name of the column, and the sum and the
/// number of its values.
#[derive(Default)]
struct Values(BTreeMap<(String, String), Column>);

/// A column of one part.
#[derive(Clone, Debug, Default)]
struct Column {
    title: String,
    sum: f64,
    count: u64,
}

impl Column {
    fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

impl Values {
    /// Adds what another table counted and this one did not: several tables repeat some columns.
    fn take(&mut self, other: Self) {
        for (key, column) in other.0 {
            self.0.entry(key).or_insert(column);
        }
    }

    /// The metrics. Parts of one kind do not work alike: the vector core that others wait for is what a kernel is bound by, so
    /// that of shares the busiest part counts, each with the mean of its blocks.
    fn metrics(&self) -> Vec<(Metric, f64)> {
        let of = |columns: &[&str]| -> Vec<&Column> {
            let known = |column: &str| columns.iter().any(|names| names.split('|').any(|name| name == column));
            self.0.iter().filter(|((_, column), _)| known(column)).map(|(_, value)| value).collect()
        };
        let merged = COLUMNS.iter().map(|(metric, merge, columns)| {
            let values = of(columns);
            let (sum, count) = values.iter().fold((0.0, 0), |all, one| (all.0 + one.sum, all.1 + one.count));
            let value = match merge {
                Merge::Busiest => values.iter().map(|value| value.mean()).reduce(f64::max).map(|share| 100.0 * share),
                Merge::Mean => (count > 0).then(|| sum / count as f64),
                Merge::Sum => (count > 0).then_some(sum * 1e9),
            };
            Some((*metric, value?))
        });
        merged.flatten().collect()
    }

    /// How long the part that took longest ran, ns, over the mean of its blocks.
    fn longest(&self) -> Option<Ns> {
        let times = self.0.iter().filter(|((_, column), _)| TIMES.contains(&column.as_str()));
        let longest = times.map(|(_, value)| value.mean()).reduce(f64::max)?;
        (longest.is_finite() && longest < 9e15).then_some((longest * 1e3) as Ns)
    }

    /// Every column of every part, as `vector0.aiv_scalar_ratio`.
    fn counters(&self, sink: &mut dyn TraceSink) -> Vec<(StringId, f64)> {
        let named = self.0.iter().map(|((part, _), column)| {
            let name = if part.is_empty() { column.title.clone() } else { format!("{part}.{}", column.title) };
            (sink.intern(&name), column.mean())
        });
        named.collect()
    }
}

/// Reads the operator named in `basic`, if there is such a table, and what the other tables measured of it.
pub(super) fn read(
    basic: Option<&Path>,
    tables: &[PathBuf],
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let mut operators = match basic {
        Some(basic) => operators(basic, sink, progress)?,
        None => Vec::new(),
    };
    let mut values = Values::default();
    let found = TABLES.iter().flat_map(|table| tables.iter().filter(move |path| name(path).starts_with(*table)));
    for path in found {
        match blocks(path, sink, progress) {
            Ok(found) => values.take(found),
            Err(error) => sink.stat("msprof-op.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string())),
        }
    }
    if basic.is_none() {
        let why = format!("{}.csv is not there, which names the operator: give the directory OPPROF_*", super::BASIC);
        sink.stat("msprof-op.operator_without_name", Severity::Notice, 1, Some(&why));
        let longest = values.longest();
        let range = longest.map(|longest| (longest, longest));
        let unnamed = KernelSummary::of(sink.intern(UNNAMED), Conditions::Isolated);
        operators.push(KernelSummary { total: longest, range, ..unnamed });
    }
    match operators.as_mut_slice() {
        [only] => (only.metrics, only.counters) = (values.metrics(), values.counters(sink)),
        several if !values.0.is_empty() => {
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
    table.select(&[BLOCK[1]]);
    let names: Vec<(usize, String, String)> = (0..)
        .zip(table.header().iter().zip(table.titles()))
        .filter(|(_, (column, _))| !column.is_empty() && !BLOCK.contains(&column.as_str()))
        .map(|(at, (column, title))| (at, column.clone(), title.clone()))
        .collect();
    let mut values = Values::default();
    let (mut read, mut kept, mut beyond) = (0, 0, 0);
    while let Some(row) = table.next(progress)? {
        read += 1;
        let part = row.text(0).unwrap_or_default().into_owned();
        let mut any = false;
        for (at, column, title) in &names {
            let Some(value) = row.number_in(*at).filter(|value| *value >= 0.0) else { continue };
            let key = (part.clone(), column.clone());
            if values.0.len() >= MOST && !values.0.contains_key(&key) {
                beyond += 1;
                continue;
            }
            let own = values.0.entry(key).or_insert_with(|| Column { title: title.clone(), ..Column::default() });
            (own.sum, own.count, any) = (own.sum + value, own.count + 1, true);
        }
        kept += u64::from(any);
    }
    sink.ledger(&name(path), read, kept, 0, "measurements of the operator, mean over its blocks");
    if beyond > 0 {
        sink.stat("msprof-op.counters_beyond_limit", Severity::DataLoss, beyond, Some(&name(path)));
    }
    Ok(values)
}
