//! Sums of a job as rows of `step_sum` and `link_sum`, and back.

use model::{JobSums, LinkSum, StepPart, StepSum};

use super::{
    Error,
    batch::{Batch, Failure, Table},
    source::Source,
};

/// First schema version that has the tables.
pub(super) const SINCE: u32 = 5;
/// What [`step`] reads.
pub(super) const STEPS: &str = "SELECT * FROM step_sum ORDER BY id";
/// What [`link`] reads.
pub(super) const LINKS: &str = "SELECT * FROM link_sum ORDER BY id";

/// Writes the sums of a capture; `strings` is the row of its first string.
pub(super) fn write(batch: &mut Batch<'_>, capture: i64, strings: i64, sums: &JobSums) -> Result<(), Failure> {
    let parts: Vec<_> = sums.steps.iter().flat_map(|sum| sum.parts.iter().map(move |part| (sum, part))).collect();
    let table = Table::new("step_sum(capture_id, step_id, rank, stage, part, ns)", 6);
    batch.insert(table, parts.into_iter(), |cells, (sum, (part, ns))| {
        cells.put(capture)?.put(strings + i64::from(sum.step.0))?.put(i64::from(sum.rank))?;
        cells.put(sum.stage.map(i64::from))?.put(part.name())?.put(*ns)?;
        Ok(())
    })?;
    let table = Table::new("link_sum(capture_id, from_rank, to_rank, transport_id, bytes, ns)", 6);
    batch.insert(table, sums.links.iter(), |cells, sum| {
        cells.put(capture)?.put(i64::from(sum.from))?.put(i64::from(sum.to))?;
        cells.put(strings + i64::from(sum.transport.0))?.put(sum.bytes)?.put(sum.time)?;
        Ok(())
    })
}

/// Adds a row of `step_sum`; the parts of one step of one rank follow each other.
pub(super) fn step(row: &Source<'_>, steps: &mut Vec<StepSum>) -> Result<(), Error> {
    let step = row.some(row.string(2)?, 2)?;
    let rank = row.some(row.narrow(3)?, 3)?;
    let stage = row.narrow(4)?;
    let name = row.text(5)?;
    let part = StepPart::ALL.into_iter().find(|known| known.name() == name);
    let part = (part.ok_or_else(|| row.damaged(format!("unknown part '{name}'")))?, row.need(6)?);
    match steps.last_mut() {
        Some(last) if (last.step, last.rank, last.stage) == (step, rank, stage) => last.parts.push(part),
        _ => steps.push(StepSum { step, rank, stage, parts: vec![part] }),
    }
    Ok(())
}

/// A row of `link_sum`.
pub(super) fn link(row: &Source<'_>) -> Result<LinkSum, Error> {
    Ok(LinkSum {
        from: row.some(row.narrow(2)?, 2)?,
        to: row.some(row.narrow(3)?, 3)?,
        transport: row.some(row.string(4)?, 4)?,
        bytes: row.need(5)?,
        time: row.need(6)?,
    })
}
