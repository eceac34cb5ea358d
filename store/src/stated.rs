//! Sums that the profiler made of a capture as rows of `stated_sum`, and back.

use model::{ProcessId, Stated, StatedSum};

use super::{
    Error,
    batch::{Batch, Failure, Table},
    source::Source,
};

/// First schema version that has the table.
pub(super) const SINCE: u32 = 6;
/// What [`row`] reads.
pub(super) const ROWS: &str = "SELECT * FROM stated_sum ORDER BY id";

/// Writes the sums of a capture; `strings` is the row of its first string.
pub(super) fn write(batch: &mut Batch<'_>, capture: i64, strings: i64, sums: &[StatedSum]) -> Result<(), Failure> {
    let table = Table::new("stated_sum(capture_id, process, source_id, what, name_id, count, ns)", 7);
    batch.insert(table, sums.iter(), |cells, sum| {
        cells.put(capture)?.put(sum.process.map(|process| i64::from(process.0)))?;
        cells.put(strings + i64::from(sum.source.0))?.put(sum.what.name())?;
        cells.put(sum.name.map(|name| strings + i64::from(name.0)))?;
        cells.put(sum.count.and_then(|count| i64::try_from(count).ok()))?.put(sum.time)?;
        Ok(())
    })
}

/// A row of `stated_sum`.
pub(super) fn row(row: &Source<'_>) -> Result<StatedSum, Error> {
    let name = row.text(4)?;
    let what = Stated::ALL.into_iter().find(|known| known.name() == name);
    Ok(StatedSum {
        process: row.narrow(2)?.map(ProcessId),
        source: row.some(row.string(3)?, 3)?,
        what: what.ok_or_else(|| row.damaged(format!("unknown sum '{name}'")))?,
        name: row.string(5)?,
        count: row.narrow::<u64>(6)?,
        time: row.need(7)?,
    })
}
