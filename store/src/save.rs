//! Captures, and what a diagnosis found in them, into a new file.

use std::path::Path;

use model::{Category, Provenance, StringId, Trace, trace::NO_CORRELATION};
use sqlx::SqliteConnection;

use super::{
    Error,
    batch::{Batch, Failure, Table},
    chunk, detail, job_sums,
    open::Session,
    probe,
    replace::Replacement,
    results::{self, Results},
    stated, summary,
};

/// Writes captures to a new file, which replaces a capture file of that name once it is whole.
///
/// # Errors
/// [`Error::Occupied`] when `path` is taken by something else than a capture file, [`Error::Io`] or [`Error::Sqlite`]
/// when it cannot be written; `path` is untouched then.
pub fn save(path: &Path, traces: &[Trace]) -> Result<(), Error> {
    let none = Results::default();
    save_results(path, &traces.iter().map(|trace| (trace, &none)).collect::<Vec<_>>())
}

/// Writes captures and what a diagnosis said of each, like [`save`].
///
/// # Errors
/// Those of [`save`].
pub fn save_results(path: &Path, captures: &[(&Trace, &Results)]) -> Result<(), Error> {
    let file = Replacement::begin(path)?;
    let mut session = Session::create(file.path())?;
    session.run(|connection, _| write_all(connection, captures)).map_err(Error::sqlite(path, "write"))?;
    session.finish()?;
    file.commit()
}

/// Rows of the file before a capture, table by table: its indices count from there.
#[derive(Clone, Copy, Default)]
struct Bases {
    string: i64,
    process: i64,
    device: i64,
    track: i64,
    slice: i64,
    detail: i64,
    flow: i64,
    counter_track: i64,
    counter: i64,
    summary: i64,
    step: i64,
    finding: i64,
}

fn rows(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

async fn write_all(connection: &mut SqliteConnection, captures: &[(&Trace, &Results)]) -> Result<(), Failure> {
    let mut batch = Batch::begin(connection).await?;
    batch.insert(Table::new("category", 2), Category::ALL.into_iter(), |cells, category| {
        cells.put(category as i64)?.put(category.name())?;
        Ok(())
    })?;
    // SQLite numbers the slices, each one more than the last, and ours begin with 0.
    batch.script(c"INSERT INTO slice VALUES (-1, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL)")?;
    let mut bases = Bases::default();
    for ((trace, results), capture) in captures.iter().zip(1..) {
        Writer { batch: &mut batch, trace, capture, bases }.write()?;
        let firsts =
            results::Firsts { string: bases.string, slice: bases.slice, step: bases.step, finding: bases.finding };
        results::write(&mut batch, capture, firsts, results)?;
        bases.string += rows(trace.strings.len());
        bases.process += rows(trace.processes.len());
        bases.device += rows(trace.devices.len());
        bases.track += rows(trace.tracks.len());
        bases.slice += rows(trace.slice_count());
        bases.detail += rows(trace.details.len());
        bases.flow += rows(trace.flows.len());
        bases.counter_track += rows(trace.counters.len());
        bases.counter += rows(trace.counters.iter().map(|c| c.t.len()).sum());
        bases.summary += rows(trace.summaries.len());
        bases.step += rows(results.steps.len());
        bases.finding += rows(results.findings.len());
    }
    batch.script(c"DELETE FROM slice WHERE id = -1")?;
    batch.commit()
}

/// Columns of the slices but for the id: rows come in the order of their ids, and where SQLite counts them itself it need
/// not search whether there is such a row yet.
const SLICE: &str =
    "slice(capture_id, track_id, start_ns, dur_ns, name_id, category, depth, correlation, link_id, detail_id)";
/// Slices of a track from which on its rows are worth a statement of their own.
const LONG_TRACK: usize = 16 * 1024;

struct Writer<'a, 'c> {
    batch: &'a mut Batch<'c>,
    trace: &'a Trace,
    capture: i64,
    bases: Bases,
}

impl Writer<'_, '_> {
    fn write(&mut self) -> Result<(), Failure> {
        self.capture()?;
        self.places()?;
        self.details()?;
        self.slices()?;
        self.collectives()?;
        self.chunks()?;
        self.counters()?;
        let Self { batch, trace, capture, bases } = self;
        summary::write(batch, *capture, (bases.summary, bases.string), &trace.summaries)?;
        job_sums::write(batch, *capture, bases.string, &trace.job_sums)?;
        stated::write(batch, *capture, bases.string, &trace.stated)?;
        probe::write(batch, *capture, &trace.probes)?;
        self.account()
    }

    fn capture(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, bases } = self;
        batch.insert(Table::new("capture", 9), std::iter::once(*trace), |cells, trace| {
            cells.put(*capture)?.put(&*trace.source)?.put(&*trace.format)?.put(trace.simulated)?;
            cells.put(trace.start_unix_ns)?.put(trace.window.map(|w| w.start))?.put(trace.window.map(|w| w.end))?;
            cells.put(bases.slice)?.put(rows(trace.slice_count()))?;
            Ok(())
        })?;
        let texts: Vec<_> = trace.strings.iter().collect();
        batch.insert(Table::new("string", 3), texts.into_iter(), |cells, (id, text)| {
            cells.put(bases.string + i64::from(id.0))?.put(*capture)?.put(text)?;
            Ok(())
        })
    }

    fn places(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, bases } = self;
        let text = |id: Option<StringId>| id.map(|id| bases.string + i64::from(id.0));
        batch.insert(Table::new("process", 5), trace.processes.iter().enumerate(), |cells, (i, p)| {
            cells.put(bases.process + rows(i))?.put(*capture)?.put(p.pid)?.put(text(p.name))?;
            cells.put(p.rank.map(i64::from))?;
            Ok(())
        })?;
        batch.insert(Table::new("device", 8), trace.devices.iter().enumerate(), |cells, (i, d)| {
            cells.put(bases.device + rows(i))?.put(*capture)?.put(bases.process + i64::from(d.process.0))?;
            cells.put(d.ordinal)?.put(text(d.name))?.put(text(d.vendor))?;
            cells.put(d.cores.map(i64::from))?.put(d.memory_bytes)?;
            Ok(())
        })?;
        let tracks = trace.tracks.iter().zip(&trace.lanes).collect::<Vec<_>>().into_iter().enumerate();
        batch.insert(Table::new("track", 10), tracks, |cells, (i, (track, lane))| {
            let key = &track.key;
            cells.put(bases.track + rows(i))?.put(*capture)?.put(bases.process + i64::from(key.process.0))?;
            cells.put(key.kind.name())?.put(key.device)?.put(key.context)?.put(key.id)?.put(text(track.name))?;
            cells.put(bases.slice + i64::from(lane.first))?.put(rows(lane.len()))?;
            Ok(())
        })?;
        batch.insert(Table::new("flow", 9), trace.flows.iter().enumerate(), |cells, (i, f)| {
            cells.put(bases.flow + rows(i))?.put(*capture)?.put(bases.process + i64::from(f.process.0))?;
            cells.put(f.id)?.put(text(Some(f.kind)))?;
            for (track, t) in [f.from, f.to] {
                cells.put(bases.track + i64::from(track.0))?.put(t)?;
            }
            Ok(())
        })
    }

    fn details(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, bases } = self;
        batch.insert(detail::table(), trace.details.iter().enumerate(), |cells, (i, d)| {
            detail::encode(cells, bases.detail + rows(i), *capture, bases.string, d)
        })
    }

    /// Slices: by far the most rows.
    fn slices(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, bases } = self;
        for (lane, track) in trace.lanes.iter().zip(bases.track..) {
            let long = lane.len() >= LONG_TRACK;
            let is_none = |column: &[u32]| column.iter().all(|index| *index == chunk::NONE);
            let (no_link, no_detail) = (long && is_none(&lane.link), long && is_none(&lane.detail));
            let or_null = |none: bool| if none { "NULL" } else { "?" };
            let row = format!("({capture},{track},?,?,?,?,?,?,{},{})", or_null(no_link), or_null(no_detail));
            let table = if long { Table::long(SLICE, &row) } else { Table::new(SLICE, 10) };
            let index = |base: i64, index: u32| (index != chunk::NONE).then(|| base + i64::from(index));
            batch.insert(table, 0..lane.len(), |cells, i| {
                if !long {
                    cells.put(*capture)?.put(track)?;
                }
                cells.put(lane.start[i])?.put(lane.dur[i])?.put(bases.string + i64::from(lane.name[i].0))?;
                cells.put(lane.category[i] as i64)?.put(i64::from(lane.depth[i]))?;
                cells.put((lane.correlation[i] != NO_CORRELATION).then_some(lane.correlation[i]))?;
                if !no_link {
                    cells.put(index(bases.slice, lane.link[i]))?;
                }
                if !no_detail {
                    cells.put(index(bases.detail, lane.detail[i]))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn collectives(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, bases } = self;
        let describes: Vec<bool> = trace.details.iter().map(|d| detail::collective(d).is_some()).collect();
        let is_collective = |detail: u32| describes.get(detail as usize).copied().unwrap_or(false);
        for lane in &trace.lanes {
            let found: Vec<usize> = (0..lane.len()).filter(|i| is_collective(lane.detail[*i])).collect();
            batch.insert(Table::new("collective", 3), found.into_iter(), |cells, i| {
                cells.put(bases.slice + i64::from(lane.id(i).0))?.put(*capture)?;
                cells.put(bases.detail + i64::from(lane.detail[i]))?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn chunks(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, bases } = self;
        // One blob of a chunk is some 2.5 MB: as many as rows of other tables would not fit.
        for (lane, track) in trace.lanes.iter().zip(bases.track..) {
            let starts: Vec<usize> = (0..lane.len()).step_by(chunk::SLICES).collect();
            batch.insert(Table::new("lane_chunk", 8).at_most(1), starts.into_iter(), |cells, start| {
                let range = start..lane.len().min(start + chunk::SLICES);
                let end = range.clone().map(|i| lane.end(i)).max();
                cells.put(None::<i64>)?.put(*capture)?.put(track)?.put(chunk::VERSION)?.put(rows(range.len()))?;
                cells.put(lane.start[start])?.put(end)?.put(&*chunk::encode(lane, range))?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, bases } = self;
        batch.insert(Table::new("counter_track", 7), trace.counters.iter().enumerate(), |cells, (i, c)| {
            cells.put(bases.counter_track + rows(i))?.put(*capture)?;
            cells.put(bases.process + i64::from(c.process.0))?.put(c.device)?;
            cells.put(bases.string + i64::from(c.name.0))?.put(&*c.unit)?.put(rows(c.t.len()))?;
            Ok(())
        })?;
        let mut first = bases.counter;
        for (counter, track) in trace.counters.iter().zip(bases.counter_track..) {
            batch.insert(Table::new("counter", 5), 0..counter.t.len(), |cells, i| {
                cells.put(first + rows(i))?.put(*capture)?.put(track)?;
                cells.put(counter.t[i])?.put(counter.value[i])?;
                Ok(())
            })?;
            first += rows(counter.t.len());
        }
        Ok(())
    }

    fn account(&mut self) -> Result<(), Failure> {
        let Self { batch, trace, capture, .. } = self;
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let entries: Vec<_> = trace.manifest.iter().collect();
        batch.insert(Table::new("manifest", 4), entries.into_iter(), |cells, (key, entry)| {
            cells.put(*capture)?.put(key)?.put(&*entry.value)?.put(provenance_name(entry.provenance))?;
            Ok(())
        })?;
        batch.insert(Table::new("import_stat", 6), trace.stats.iter(), |cells, stat| {
            cells.put(None::<i64>)?.put(*capture)?.put(&*stat.name)?.put(stat.severity.name())?;
            cells.put(count(stat.count))?.put(stat.example.as_deref())?;
            Ok(())
        })?;
        batch.insert(Table::new("import_ledger", 7), trace.ledger.iter(), |cells, row| {
            cells.put(None::<i64>)?.put(*capture)?.put(&*row.category)?.put(count(row.read))?;
            cells.put(count(row.kept))?.put(row.time_ns)?.put(&*row.note)?;
            Ok(())
        })
    }
}

/// Name of a provenance in the table `manifest`.
pub(super) fn provenance_name(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Observed => "observed",
        Provenance::Declared => "declared",
        Provenance::Simulated => "simulated",
    }
}
