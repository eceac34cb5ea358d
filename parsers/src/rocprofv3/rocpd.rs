//! rocpd, the SQLite form of rocprofv3 and its default since ROCm 7.
//!
//! Every table carries the id of its capture (`rocpd_region_00003fdc_92cb_…`), so that databases of several processes can
//! be merged into one; the views without that id may be stale or missing and are not read. Source: files of ROCm 7.1
//! (schema 3), sources of rocprofiler-sdk up to schema 4.1.

use std::{collections::BTreeSet, path::Path};

use model::{Severity, TraceSink};
use rustc_hash::FxHashMap;

use super::import::Import;
use crate::{
    Format, Head, Match, Place, Progress, ReadError,
    lanes::Account,
    sqlite::{
        SIGNATURE,
        scan::{self, Item, Job},
        source::{self, TableInfo},
    },
};

mod state;
mod tables;

use state::State;
use tables::{TABLES, Table};

/// The database of rocprofv3.
pub const FORMAT: Format =
    Format { id: "rocpd", name: "rocprofv3 database (rocpd)", matches, read, lead: crate::alone };

fn matches(head: &Head<'_>) -> Match {
    if !head.bytes.starts_with(SIGNATURE) {
        return Match::No;
    }
    match probe(head.path) {
        Ok(source) if !source.captures().is_empty() => Match::Certain,
        _ => Match::No,
    }
}

struct Source {
    bytes: u64,
    tables: FxHashMap<String, TableInfo>,
    failed: Vec<String>,
    /// Rows of tables of this family that are not read.
    others: Vec<(String, Option<u64>)>,
}

impl Source {
    /// What the names of tables end with, which is the id of a capture each.
    fn captures(&self) -> BTreeSet<String> {
        self.tables.keys().filter_map(|name| Some(name.strip_prefix("rocpd_string")?.to_owned())).collect()
    }
}

fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database of rocprofv3 ({why})"),
        next: "record again with 'rocprofv3 --runtime-trace --output-format rocpd -- COMMAND'".to_owned(),
    }
}

fn probe(path: &Path) -> Result<Source, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(io)?.len();
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(io)?;
    let found = runtime.block_on(async {
        let mut db = source::connect(path).await?;
        let (tables, failed) = source::tables(&mut db, bytes).await?;
        let mut source = Source { bytes, tables, failed, others: Vec::new() };
        let captures = source.captures();
        let is_read = |name: &str| {
            captures.iter().any(|id| name.strip_suffix(id).is_some_and(|base| TABLES.iter().any(|t| t.name == base)))
        };
        let mut names: Vec<String> =
            source.tables.keys().filter(|name| name.starts_with("rocpd_") && !is_read(name)).cloned().collect();
        names.sort();
        for name in names {
            let rows = source::count(&mut db, &name).await;
            source.others.push((name, rows));
        }
        Ok::<_, sqlx::Error>(source)
    });
    found.map_err(|error| malformed(path, &error))
}

/// Reads the database. Runs its own runtime, so it must not be called from inside an asynchronous task.
fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let source = probe(path)?;
    let captures = source.captures();
    if captures.is_empty() {
        return Err(malformed(path, &"it has no table rocpd_string"));
    }
    let mut import = Import::new(sink);
    for name in &source.failed {
        import.sink.stat("rocprofv3.unreadable_table", Severity::DataLoss, 1, Some(name));
    }
    if let Some(expected) = source::expected_bytes(path).filter(|expected| *expected > source.bytes) {
        let example = format!("{} bytes of {expected}", source.bytes);
        import.sink.stat("rocprofv3.truncated_file", Severity::DataLoss, 1, Some(&example));
    }
    for id in &captures {
        capture(path, &source, id, &mut import, progress);
    }
    for (name, rows) in &source.others {
        match rows {
            Some(rows) => import.sink.ledger(name, *rows, 0, 0, "not read: no event that another table lacks"),
            None => import.sink.stat("rocprofv3.unreadable_table", Severity::DataLoss, 1, Some(name)),
        }
    }
    import.settle();
    Ok(())
}

/// Reads the tables of one capture of the database.
fn capture(path: &Path, source: &Source, id: &str, import: &mut Import<'_>, progress: Progress<'_>) {
    let (mut jobs, mut job_tables): (Vec<Job>, Vec<&Table>) = (Vec::new(), Vec::new());
    for table in TABLES {
        let Some(info) = source.tables.get(&format!("{}{id}", table.name)) else { continue };
        if info.end_unreadable {
            import.sink.stat("rocprofv3.unreadable_end_of_table", Severity::DataLoss, 1, Some(table.name));
        }
        match Job::new(info, table.columns) {
            Some(job) => {
                jobs.push(job);
                job_tables.push(table);
            }
            None if info.rowid.is_none() => {
                import.sink.stat("rocprofv3.unreadable_table", Severity::DataLoss, 1, Some(table.name));
            }
            None => import.sink.ledger(table.name, 0, 0, 0, "empty"),
        }
    }
    import.process = None;
    let mut state = State::new(import, source.bytes);
    let total = jobs.iter().map(Job::extent).fold(0, u64::saturating_add);
    let mut done = 0u64;
    scan::scan(path, &jobs, |job, item| {
        let Some(table) = job_tables.get(job) else { return };
        done = done.saturating_add(take(&mut state, table, item));
        progress(done, total.max(done));
    });
    state.settle();
}

/// Takes what one range of rowids gave; the rows it stood for.
fn take(state: &mut State<'_, '_>, table: &Table, item: Item) -> u64 {
    match item {
        Item::Page(page) => {
            let mut account = Account { read: page.rows as u64, ..Account::default() };
            for row in 0..page.rows {
                match (table.take)(state, &page, row) {
                    Some((start, end)) => account.keep(start, end),
                    None => account.incomplete += 1,
                }
            }
            account.tell(&mut *state.import.sink, "rocprofv3", table.name, table.becomes);
            account.read
        }
        Item::WrongTypes(count, rowid) => {
            let example = format!("table {}, row {rowid}", table.name);
            state.import.sink.stat("rocprofv3.wrong_type", Severity::DataLoss, count, Some(&example));
            0
        }
        Item::Lost(first, last, why) => {
            let example = format!("table {}, rows {first} to {last}: {why}", table.name);
            let lost = last.abs_diff(first).saturating_add(1);
            state.import.sink.stat("rocprofv3.unreadable_rows", Severity::DataLoss, lost, Some(&example));
            lost
        }
    }
}

#[cfg(test)]
mod tests;
