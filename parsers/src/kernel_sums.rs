//! A table with a row per kernel that says how often it ran and how long in all, as `nsys stats` and `rocprof --stats` write
//! it. No row has a place in time, so rows become summaries and never slices.

use model::{Conditions, KernelSummary, Ns, TraceSink};

use crate::{
    Progress, ReadError,
    csv_table::{Row, Table},
    lanes::Account,
};

/// The columns of such a table by their names in it; one that it does not have is told by a name that no column has.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub name: &'a str,
    pub count: &'a str,
    pub total: &'a str,
    pub shortest: &'a str,
    pub longest: &'a str,
    pub grid: &'a str,
    pub block: &'a str,
}

/// What a format says of its tables.
pub(crate) struct Sums<'a> {
    /// Id of the format.
    pub format: &'a str,
    /// What its rows become, for the ledger.
    pub becomes: &'a str,
    /// Exponent of the unit of times, in ns.
    pub unit: i32,
    /// The kernel that a name is of; `None` for a host call.
    pub kernel: fn(&str) -> Option<&str>,
}

/// Reads the rows of `table` and tells what became of them.
///
/// # Errors
/// [`ReadError::Io`] when the operating system fails to read.
pub(crate) fn read(
    table: &mut Table,
    sums: &Sums<'_>,
    columns: Columns<'_>,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let Columns { name, count, total, shortest, longest, grid, block } = columns;
    table.select(&[total, count, name, shortest, longest, grid, block]);
    let (mut kernels, mut calls) = (Account::default(), 0);
    while let Some(row) = table.next(progress)? {
        let name = row.text(2);
        let kernel = name.as_deref().map(sums.kernel);
        if kernel == Some(None) {
            calls += 1;
            continue;
        }
        kernels.read += 1;
        match kernel.flatten().and_then(|kernel| summary(sink, kernel, row, sums.unit)) {
            Some(time) => kernels.keep(0, time),
            None => kernels.incomplete += 1,
        }
    }
    if calls > 0 {
        sink.ledger("calls", calls, 0, 0, "not kept: sums of host calls");
    }
    if kernels.read > 0 || calls == 0 {
        kernels.tell(sink, sums.format, "kernels", sums.becomes);
    }
    table.tell_damage(sink, sums.format);
    Ok(())
}

/// Adds the summary of a row; its total time.
fn summary(sink: &mut dyn TraceSink, kernel: &str, row: Row<'_>, unit: i32) -> Option<Ns> {
    let total = row.decimal(0, unit).filter(|total| *total >= 0)?;
    let count = u64::try_from(row.int(1)?).ok()?;
    let range = row.decimal(3, unit).zip(row.decimal(4, unit));
    let sides = |cell| {
        let text = row.text(cell)?;
        let mut sides = text.split_whitespace().map(|side| side.parse().ok());
        Some([sides.next()??, sides.next()??, sides.next()??])
    };
    let (grid, block) = (sides(5), sides(6));
    let kernel = sink.intern(kernel);
    let known = KernelSummary::of(kernel, Conditions::Run);
    sink.summary(KernelSummary { count, total: Some(total), range, grid, block, ..known });
    Some(total)
}
