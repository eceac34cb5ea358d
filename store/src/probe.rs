//! Ceilings of the machine as rows of `probe_result` and `probe_provenance`, and back.

use model::{ProbeRow, ProbeRun, ProbeUnit, Reading, Setting, Statistic};

use super::{
    Error,
    batch::{Batch, Failure, Table},
    source::Source,
};

/// First schema version that has rows of probes.
pub(super) const SINCE: u32 = 4;
/// What [`row`] reads.
pub(super) const ROWS: &str = "SELECT id, capture_id, probe, metric, unit, value, low, high, reason, setting, mad, repeats \
                               FROM probe_result ORDER BY id";
/// What [`fact`] reads.
pub(super) const FACTS: &str = "SELECT id, capture_id, key, value, reason FROM probe_provenance ORDER BY id";

/// Writes the probes of a capture.
pub(super) fn write(batch: &mut Batch<'_>, capture: i64, run: &ProbeRun) -> Result<(), Failure> {
    const COLUMNS: &str =
        "probe_result(capture_id, probe, metric, unit, setting, value, low, high, mad, repeats, reason)";
    batch.insert(Table::new(COLUMNS, 11), run.rows.iter(), |cells, row| {
        cells.put(capture)?.put(&*row.probe)?.put(&*row.metric)?.put(row.unit.name())?;
        cells.put(&*row.setting.to_string())?;
        let s = row.statistic();
        cells.put(s.map(|s| s.median))?.put(s.map(|s| s.min))?.put(s.map(|s| s.max))?.put(s.map(|s| s.mad))?;
        cells.put(s.map(|s| i64::from(s.repeats)))?.put(reason(&row.value))?;
        Ok(())
    })?;
    let table = Table::new("probe_provenance(capture_id, key, value, reason)", 4);
    batch.insert(table, run.provenance.iter(), |cells, (key, value)| {
        cells.put(capture)?.put(&**key)?.put(value.value().map(String::as_str))?.put(reason(value))?;
        Ok(())
    })
}

fn reason<T>(reading: &Reading<T>) -> Option<&str> {
    match reading {
        Reading::Value(_) => None,
        Reading::Unavailable(reason) => Some(reason),
    }
}

/// A row of `probe_result`.
pub(super) fn row(row: &Source<'_>) -> Result<ProbeRow, Error> {
    let name = row.text(4)?;
    let unit = ProbeUnit::ALL.into_iter().find(|known| known.name() == name);
    let real = |column: usize| row.get::<Option<f64>>(column);
    let value = match real(5)? {
        Some(median) => Reading::Value(Statistic {
            median,
            min: row.some(real(6)?, 6)?,
            max: row.some(real(7)?, 7)?,
            mad: row.some(real(10)?, 10)?,
            repeats: row.some(row.narrow(11)?, 11)?,
        }),
        None => Reading::Unavailable(row.get::<Option<String>>(8)?.unwrap_or_default()),
    };
    Ok(ProbeRow {
        probe: row.text(2)?.to_owned(),
        metric: row.text(3)?.to_owned(),
        unit: unit.ok_or_else(|| row.damaged(format!("unknown unit '{name}'")))?,
        setting: Setting::parse(row.text(9)?),
        value,
    })
}

/// A row of `probe_provenance`.
pub(super) fn fact(row: &Source<'_>) -> Result<(String, Reading<String>), Error> {
    let value = match row.get::<Option<String>>(3)? {
        Some(value) => Reading::Value(value),
        None => Reading::Unavailable(row.get::<Option<String>>(4)?.unwrap_or_default()),
    };
    Ok((row.text(2)?.to_owned(), value))
}
