//! Kernel summaries as rows of `kernel_summary` and `kernel_metric`, and back.

use model::{Conditions, KernelSummary, Metric};

use super::{
    Error,
    batch::{Batch, Failure, Table},
    source::Source,
};

/// First schema version that has the tables.
pub(super) const SINCE: u32 = 3;
/// What [`summary`] reads.
pub(super) const SUMMARIES: &str = "SELECT * FROM kernel_summary ORDER BY id";
/// What [`metric`] reads.
pub(super) const METRICS: &str = "SELECT * FROM kernel_metric ORDER BY id";

/// Name under which the reasons of stalls stand among the metrics.
const STALL: &str = "stall";
/// Name under which counters stand among the metrics, each with the source's name of it as the reason.
const COUNTER: &str = "counter";

/// Writes the summaries of a capture; `first` is the row of its first one, `strings` that of its first string.
pub(super) fn write(
    batch: &mut Batch<'_>,
    capture: i64,
    (first, strings): (i64, i64),
    summaries: &[KernelSummary],
) -> Result<(), Failure> {
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    batch.insert(Table::new("kernel_summary", 14), (first..).zip(summaries).collect::<Vec<_>>().into_iter(), {
        |cells, (id, s)| {
            cells.put(id)?.put(capture)?.put(strings + i64::from(s.kernel.0))?.put(s.conditions.name())?;
            cells.put(count(s.count))?.put(s.total)?.put(s.range.map(|r| r.0))?.put(s.range.map(|r| r.1))?;
            for sides in [s.grid, s.block] {
                let [x, y, z] = sides.map_or([None; 3], |sides| sides.map(|n| Some(i64::from(n))));
                cells.put(x)?.put(y)?.put(z)?;
            }
            Ok(())
        }
    })?;
    let values = (first..).zip(summaries).flat_map(|(id, s)| {
        let metrics = s.metrics.iter().map(move |(metric, value)| (id, metric.name(), None, *value));
        let stalls = s.stalls.iter().map(move |(reason, cycles)| (id, STALL, Some(*reason), *cycles));
        let counters = s.counters.iter().map(move |(counter, value)| (id, COUNTER, Some(*counter), *value));
        // SQLite has no NaN; what is none was never measured.
        metrics.chain(stalls).chain(counters).filter(|(.., value)| value.is_finite())
    });
    batch.insert(Table::new("kernel_metric", 6), values.collect::<Vec<_>>().into_iter(), |cells, value| {
        let (summary, metric, reason, value) = value;
        cells.put(None::<i64>)?.put(capture)?.put(summary)?.put(metric)?;
        cells.put(reason.map(|reason| strings + i64::from(reason.0)))?.put(value)?;
        Ok(())
    })
}

/// A row of `kernel_summary`.
pub(super) fn summary(row: &Source<'_>) -> Result<KernelSummary, Error> {
    let name = row.text(3)?;
    let conditions = Conditions::ALL.into_iter().find(|known| known.name() == name);
    let conditions = conditions.ok_or_else(|| row.damaged(format!("unknown conditions '{name}'")))?;
    let kernel = row.string(2)?.ok_or_else(|| row.damaged("the kernel has no name"))?;
    let sides = |first: usize| -> Result<Option<[u32; 3]>, Error> {
        let [x, y, z] = [row.narrow(first)?, row.narrow(first + 1)?, row.narrow(first + 2)?];
        Ok(x.zip(y).zip(z).map(|((x, y), z)| [x, y, z]))
    };
    Ok(KernelSummary {
        count: u64::try_from(row.need(4)?).unwrap_or(0),
        total: row.integer(5)?,
        range: row.integer(6)?.zip(row.integer(7)?),
        grid: sides(8)?,
        block: sides(11)?,
        ..KernelSummary::of(kernel, conditions)
    })
}

/// Adds a row of `kernel_metric` to its summary; `first` is the row of the capture's first summary.
pub(super) fn metric(row: &Source<'_>, first: i64, summaries: &mut [KernelSummary]) -> Result<(), Error> {
    let index = row.index(2, first, summaries.len(), "kernel summary")?;
    let Some(summary) = index.and_then(|index| summaries.get_mut(index as usize)) else {
        return Err(row.damaged("the value belongs to no summary"));
    };
    let (name, value) = (row.text(3)?, row.real(5)?);
    let named = match name {
        STALL => Some((&mut summary.stalls, "the stall has no reason")),
        COUNTER => Some((&mut summary.counters, "the counter has no name")),
        _ => None,
    };
    if let Some((named, without)) = named {
        named.push((row.string(4)?.ok_or_else(|| row.damaged(without))?, value));
        return Ok(());
    }
    let metric = Metric::ALL.into_iter().find(|known| known.name() == name);
    summary.metrics.push((metric.ok_or_else(|| row.damaged(format!("unknown metric '{name}'")))?, value));
    Ok(())
}
