//! A capture file back into memory. Everything in the file is checked against the rest of it, since analysis follows
//! indices without a look; memory is bounded by what the file really holds, never by a count that it states.

use std::path::Path;

use futures_util::TryStreamExt;
use model::{
    Columns, CounterTrack, Device, Flow, ImportStat, LedgerRow, Process, ProcessId, Provenance, Severity, Span, Trace,
    Track, TrackId, TrackKey, TrackKind,
};
use rustc_hash::FxHashMap;
use sqlx::SqliteConnection;

use super::{
    Error,
    chunk::{self, Bounds},
    detail, job_sums,
    open::Session,
    probe, rows, save,
    source::Source,
    stated, summary,
};

/// All captures of a file, in the order they were saved.
///
/// # Errors
/// [`Error::NotACapture`], [`Error::Version`], [`Error::Damaged`] or [`Error::Sqlite`], which name the file and, where
/// there is one, the table and row.
pub fn load(path: &Path) -> Result<Vec<Trace>, Error> {
    load_form(path, Form::Columns)
}

/// Where slices are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The columns, and the rows where these are absent.
    Columns,
    /// The rows.
    Rows,
}

/// All captures of a file, their slices from one of the two forms.
pub(super) fn load_form(path: &Path, form: Form) -> Result<Vec<Trace>, Error> {
    let mut session = Session::read(path)?;
    let loaded = load_from(&mut session, form)?;
    session.tell_checked();
    Ok(loaded)
}

/// All captures of an open file.
pub(super) fn load_from(session: &mut Session, form: Form) -> Result<Vec<Trace>, Error> {
    let version = session.version;
    session.run(async |connection, path| Loader::new(connection, path).load(version, form).await)
}

/// First row of each table that belongs to a capture; its indices count from there.
#[derive(Default)]
struct Firsts {
    string: Option<i64>,
    process: Option<i64>,
    track: Option<i64>,
    detail: Option<i64>,
    counter_track: Option<i64>,
    summary: Option<i64>,
}

/// A capture in the making.
pub(super) struct Partial {
    pub(super) trace: Trace,
    firsts: Firsts,
    pub(super) first_slice: i64,
    slice_count: i64,
    /// Slices of each track, as the table `track` says.
    pub(super) counts: Vec<usize>,
    /// Slices of all tracks up to here.
    numbered: i64,
    samples: Vec<i64>,
}

impl Partial {
    pub(super) fn bounds(&self) -> Bounds {
        let slices = usize::try_from(self.slice_count).unwrap_or(0);
        Bounds { strings: self.trace.strings.len(), details: self.trace.details.len(), slices }
    }

    /// Row of the first string, and their number.
    pub(super) fn strings(&self) -> (i64, usize) {
        (self.firsts.string.unwrap_or(0), self.trace.strings.len())
    }

    pub(super) fn first_detail(&self) -> i64 {
        self.firsts.detail.unwrap_or(0)
    }

    fn process(&self, row: &Source<'_>, column: usize) -> Result<ProcessId, Error> {
        let first = self.firsts.process.unwrap_or(0);
        let index = row.index(column, first, self.trace.processes.len(), "process")?;
        row.some(index, column).map(ProcessId)
    }

    fn track(&self, row: &Source<'_>, column: usize) -> Result<TrackId, Error> {
        let first = self.firsts.track.unwrap_or(0);
        let index = row.index(column, first, self.trace.tracks.len(), "track")?;
        row.some(index, column).map(TrackId)
    }
}

/// The next row of a table must have the next id, so that ids are indices.
fn follow(row: &Source<'_>, first: &mut Option<i64>, n: usize) -> Result<(), Error> {
    let id = row.need(0)?;
    let expected = i64::try_from(n).ok().and_then(|n| first.get_or_insert(id).checked_add(n));
    if expected == Some(id) { Ok(()) } else { Err(row.damaged("the ids of a capture are not contiguous")) }
}

struct Loader<'a> {
    connection: &'a mut SqliteConnection,
    path: &'a Path,
    captures: Vec<Partial>,
    by_id: FxHashMap<i64, usize>,
}

impl<'a> Loader<'a> {
    fn new(connection: &'a mut SqliteConnection, path: &'a Path) -> Self {
        Self { connection, path, captures: Vec::new(), by_id: FxHashMap::default() }
    }

    async fn load(mut self, version: u32, form: Form) -> Result<Vec<Trace>, Error> {
        self.captures().await?;
        self.places().await?;
        self.each("detail", detail::SELECT, |c, row| {
            follow(row, &mut c.firsts.detail, c.trace.details.len())?;
            c.trace.details.push(detail::decode(row)?);
            Ok(())
        })
        .await?;
        if form == Form::Columns {
            self.chunks().await?;
        }
        for capture in &mut self.captures {
            rows::fill(self.connection, self.path, capture).await?;
        }
        self.counters().await?;
        if version >= summary::SINCE {
            self.summaries().await?;
        }
        if version >= job_sums::SINCE {
            self.job_sums().await?;
        }
        if version >= stated::SINCE {
            self.stated().await?;
        }
        if version >= probe::SINCE {
            self.probes().await?;
        }
        self.account().await?;
        Ok(self.captures.into_iter().map(|c| c.trace).collect())
    }

    /// Reads the rows of a table whose first column is the row's id and whose second is its capture.
    async fn each(
        &mut self,
        table: &'static str,
        sql: &'static str,
        mut read: impl FnMut(&mut Partial, &Source<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let failed = |e| Error::sqlite(self.path, "read")(e);
        let mut rows = sqlx::query(sql).fetch(&mut *self.connection);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let mut source = Source::of(&row, self.path, table, (0, 0));
            let id = source.need(1)?;
            let capture = self.by_id.get(&id).and_then(|i| self.captures.get_mut(*i));
            let capture = capture.ok_or_else(|| source.damaged(format!("there is no capture {id}")))?;
            source.strings = capture.strings();
            read(capture, &source)?;
        }
        Ok(())
    }

    async fn captures(&mut self) -> Result<(), Error> {
        let sql = "SELECT id, source, format, simulated, start_unix_ns, window_start_ns, window_end_ns, first_slice, \
                   slice_count FROM capture ORDER BY id";
        let found =
            sqlx::query(sql).fetch_all(&mut *self.connection).await.map_err(Error::sqlite(self.path, "read"))?;
        for row in &found {
            let row = Source::of(row, self.path, "capture", (0, 0));
            let slice_count = row.need(8)?;
            if !(0..i64::from(u32::MAX)).contains(&slice_count) {
                return Err(row.damaged(format!("slice_count is {slice_count}")));
            }
            let window = row.integer(5)?.zip(row.integer(6)?).map(|(start, end)| Span::new(start, end));
            let trace = Trace {
                source: row.text(1)?.to_owned(),
                format: row.text(2)?.to_owned(),
                simulated: row.need(3)? != 0,
                start_unix_ns: row.integer(4)?,
                window,
                ..Trace::default()
            };
            self.by_id.insert(row.need(0)?, self.captures.len());
            self.captures.push(Partial {
                trace,
                firsts: Firsts::default(),
                first_slice: row.need(7)?,
                slice_count,
                counts: Vec::new(),
                numbered: 0,
                samples: Vec::new(),
            });
        }
        Ok(())
    }

    async fn places(&mut self) -> Result<(), Error> {
        let mut next: FxHashMap<i64, usize> = FxHashMap::default();
        self.each("string", "SELECT id, capture_id, value FROM string ORDER BY id", |c, row| {
            // The empty string is there from the start, so the number of rows is not that of the table in memory.
            let read = next.entry(row.need(1)?).or_default();
            follow(row, &mut c.firsts.string, *read)?;
            let id = c.trace.strings.intern(row.text(2)?);
            if id.0 as usize != *read {
                return Err(row.damaged("the same text has two ids"));
            }
            *read += 1;
            Ok(())
        })
        .await?;
        self.each("process", "SELECT * FROM process ORDER BY id", |c, row| {
            follow(row, &mut c.firsts.process, c.trace.processes.len())?;
            c.trace.processes.push(Process { pid: row.integer(2)?, name: row.string(3)?, rank: row.narrow(4)? });
            Ok(())
        })
        .await?;
        self.each("device", "SELECT * FROM device ORDER BY id", |c, row| {
            c.trace.devices.push(Device {
                process: c.process(row, 2)?,
                ordinal: row.some(row.narrow(3)?, 3)?,
                name: row.string(4)?,
                vendor: row.string(5)?,
                cores: row.narrow(6)?,
                memory_bytes: row.integer(7)?,
            });
            Ok(())
        })
        .await?;
        self.each("track", "SELECT * FROM track ORDER BY id", read_track).await?;
        self.each("flow", "SELECT * FROM flow ORDER BY id", |c, row| {
            let flow = Flow {
                process: c.process(row, 2)?,
                id: row.need(3)?,
                kind: row.some(row.string(4)?, 4)?,
                from: (c.track(row, 5)?, row.need(6)?),
                to: (c.track(row, 7)?, row.need(8)?),
            };
            c.trace.flows.push(flow);
            Ok(())
        })
        .await
    }

    async fn chunks(&mut self) -> Result<(), Error> {
        const { assert!(chunk::VERSION == 2) };
        let sql = "SELECT id, capture_id, track_id, n, columns FROM lane_chunk WHERE version = 2 ORDER BY id";
        self.each("lane_chunk", sql, |c, row| {
            let track = c.track(row, 2)?.0 as usize;
            let bounds = c.bounds();
            let (Some(lane), Some(count)) = (c.trace.lanes.get_mut(track), c.counts.get(track)) else {
                return Err(row.damaged("there is no such track"));
            };
            let before = lane.len();
            chunk::decode(row.get(4)?, row.need(3)?, lane)
                .and_then(|()| bounds.check(lane, before))
                .map_err(|what| row.damaged(what))?;
            if lane.len() > *count { Err(row.damaged("the track has fewer slices")) } else { Ok(()) }
        })
        .await
    }

    async fn counters(&mut self) -> Result<(), Error> {
        self.each("counter_track", "SELECT * FROM counter_track ORDER BY id", |c, row| {
            follow(row, &mut c.firsts.counter_track, c.trace.counters.len())?;
            let name = row.some(row.string(4)?, 4)?;
            c.samples.push(row.need(6)?);
            let counter = CounterTrack {
                process: c.process(row, 2)?,
                device: row.narrow(3)?,
                name,
                unit: row.text(5)?.to_owned(),
                t: Vec::new(),
                value: Vec::new(),
            };
            c.trace.counters.push(counter);
            Ok(())
        })
        .await?;
        self.each("counter", "SELECT * FROM counter ORDER BY id", |c, row| {
            let index = row.index(2, c.firsts.counter_track.unwrap_or(0), c.trace.counters.len(), "counter track")?;
            let Some(counter) = index.and_then(|i| c.trace.counters.get_mut(i as usize)) else {
                return Err(row.damaged("the sample belongs to no counter"));
            };
            counter.t.push(row.need(3)?);
            // SQLite has no NaN and keeps NULL in its place.
            counter.value.push(row.get::<Option<f64>>(4)?.unwrap_or(f64::NAN));
            Ok(())
        })
        .await?;
        for capture in &self.captures {
            for ((i, counter), samples) in capture.trace.counters.iter().enumerate().zip(&capture.samples) {
                if i64::try_from(counter.t.len()) != Ok(*samples) {
                    let what = format!("{samples} samples are announced, {} are there", counter.t.len());
                    let row = capture.firsts.counter_track.unwrap_or(0).saturating_add_unsigned(i as u64);
                    return Err(Error::Damaged { path: self.path.to_owned(), table: "counter_track", row, what });
                }
            }
        }
        Ok(())
    }

    async fn summaries(&mut self) -> Result<(), Error> {
        self.each("kernel_summary", summary::SUMMARIES, |c, row| {
            follow(row, &mut c.firsts.summary, c.trace.summaries.len())?;
            c.trace.summaries.push(summary::summary(row)?);
            Ok(())
        })
        .await?;
        self.each("kernel_metric", summary::METRICS, |c, row| {
            summary::metric(row, c.firsts.summary.unwrap_or(0), &mut c.trace.summaries)
        })
        .await
    }

    async fn job_sums(&mut self) -> Result<(), Error> {
        self.each("step_sum", job_sums::STEPS, |c, row| job_sums::step(row, &mut c.trace.job_sums.steps)).await?;
        self.each("link_sum", job_sums::LINKS, |c, row| {
            c.trace.job_sums.links.push(job_sums::link(row)?);
            Ok(())
        })
        .await
    }

    async fn stated(&mut self) -> Result<(), Error> {
        self.each("stated_sum", stated::ROWS, |c, row| {
            c.trace.stated.push(stated::row(row)?);
            Ok(())
        })
        .await
    }

    async fn probes(&mut self) -> Result<(), Error> {
        self.each("probe_result", probe::ROWS, |c, row| {
            c.trace.probes.rows.push(probe::row(row)?);
            Ok(())
        })
        .await?;
        self.each("probe_provenance", probe::FACTS, |c, row| {
            c.trace.probes.provenance.push(probe::fact(row)?);
            Ok(())
        })
        .await
    }

    async fn account(&mut self) -> Result<(), Error> {
        let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
        let sql = "SELECT key, capture_id, value, provenance FROM manifest";
        self.each("manifest", sql, |c, row| {
            let all = [Provenance::Observed, Provenance::Declared, Provenance::Simulated];
            let name = row.text(3)?;
            let provenance = all.into_iter().find(|p| save::provenance_name(*p) == name);
            let provenance = provenance.ok_or_else(|| row.damaged(format!("unknown provenance '{name}'")))?;
            c.trace.manifest.set(row.text(0)?, row.text(2)?, provenance);
            Ok(())
        })
        .await?;
        self.each("import_stat", "SELECT * FROM import_stat ORDER BY id", |c, row| {
            let name = row.text(3)?;
            let severity = Severity::parse(name).ok_or_else(|| row.damaged(format!("unknown severity '{name}'")))?;
            let example = row.get::<Option<String>>(5)?;
            let count = unsigned(row.need(4)?);
            c.trace.stats.push(ImportStat { name: row.text(2)?.to_owned(), severity, count, example });
            Ok(())
        })
        .await?;
        self.each("import_ledger", "SELECT * FROM import_ledger ORDER BY id", |c, row| {
            c.trace.ledger.push(LedgerRow {
                category: row.text(2)?.to_owned(),
                read: unsigned(row.need(3)?),
                kept: unsigned(row.need(4)?),
                time_ns: row.need(5)?,
                note: row.text(6)?.to_owned(),
            });
            Ok(())
        })
        .await
    }
}

fn read_track(c: &mut Partial, row: &Source<'_>) -> Result<(), Error> {
    follow(row, &mut c.firsts.track, c.trace.tracks.len())?;
    let kind = row.text(3)?;
    let kind = TrackKind::parse(kind).ok_or_else(|| row.damaged(format!("unknown kind '{kind}'")))?;
    let count = row.need(9)?;
    let expected = c.first_slice.checked_add(c.numbered);
    if expected != Some(row.need(8)?) || !(0..=c.slice_count - c.numbered).contains(&count) {
        return Err(row.damaged("its slices do not follow those of the track before it"));
    }
    let first = u32::try_from(c.numbered).map_err(|_| row.damaged("it has too many slices"))?;
    c.numbered += count;
    c.counts.push(usize::try_from(count).map_err(|_| row.damaged("it has too many slices"))?);
    let key = TrackKey {
        kind,
        process: c.process(row, 2)?,
        device: row.narrow(4)?,
        context: row.integer(5)?,
        id: row.need(6)?,
    };
    c.trace.tracks.push(Track { key, name: row.string(7)? });
    c.trace.lanes.push(Columns { first, ..Columns::default() });
    Ok(())
}
