//! The database form: `msprof_*.db`, `ascend_pytorch_profiler_*.db` and their ancestors since 2023.
//!
//! | module | owns |
//! | --- | --- |
//! | `tables` | the tables that are read, and those that are known and not read |
//! | `state` | what is known while a database is read |
//! | `names` | strings, labels and facts of the run |
//! | `infos` | what other tables say of a task |
//! | `host` | calls and operators |
//! | `device` | tasks, collectives and counters |
//!
//! Tables exist only when they have rows; columns came, went and changed their meaning. Viewers write into files that they
//! open, so unknown columns and tables mean nothing.

use std::path::Path;

use model::{Severity, TraceSink};
use rustc_hash::FxHashMap;

use super::{layout::Layout, times::Times};
use crate::{
    Match, Place, Progress, ReadError,
    sqlite::{
        scan::{self, Item, Job},
        source::{self, TableInfo},
    },
};

mod device;
mod host;
mod infos;
mod names;
mod state;
mod tables;

use state::{Kept, State};
use tables::{MARKS, NOT_READ, TABLES, Table};

/// What a database is before its rows are read.
struct Source {
    tables: FxHashMap<String, TableInfo>,
    failed: Vec<String>,
    others: Vec<(String, Option<u64>)>,
}

/// Whether the SQLite file is of an Ascend profiler.
pub(super) fn matches(path: &Path) -> Match {
    match probe(path) {
        Ok(source) => {
            let has = |table: &str| source.tables.contains_key(table);
            let strings = has("STRING_IDS") && MARKS.iter().any(|mark| has(mark));
            if strings { Match::Certain } else { Match::No }
        }
        Err(_) => Match::No,
    }
}

fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database exported by msprof or torch_npu ({why})"),
        next: "export it again with 'msprof --export=on --type=db --output=PROF_DIR'".to_owned(),
    }
}

fn probe(path: &Path) -> Result<Source, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(io)?.len();
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(io)?;
    let found = runtime.block_on(async {
        let mut db = source::connect(path).await?;
        let (tables, failed) = source::tables(&mut db, bytes).await?;
        let is_read = |name: &str| TABLES.iter().any(|table| table.name == name);
        let mut names: Vec<&String> = tables.keys().filter(|name| !is_read(name)).collect();
        names.sort();
        let mut others = Vec::new();
        for name in names {
            others.push((name.clone(), source::count(&mut db, name).await));
        }
        Ok::<_, sqlx::Error>(Source { tables, failed, others })
    });
    found.map_err(|error| malformed(path, &error))
}

/// Reads a database. Runs its own runtime, so it must not be called from inside an asynchronous task.
pub(super) fn read(
    path: &Path,
    layout: &Layout,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let source = probe(path)?;
    if !TABLES.iter().any(|table| source.tables.contains_key(table.name)) {
        return Err(malformed(path, &"it has neither TASK nor CANN_API"));
    }
    let bytes = std::fs::metadata(path).map(|meta| meta.len()).unwrap_or(0);
    let times = layout.communication.as_deref().map(|path| Times::read(path, sink)).unwrap_or_default();
    let mut state = State::new(sink, layout, bytes);
    state.import.times = times;
    let (mut jobs, mut job_tables): (Vec<Job>, Vec<&Table>) = (Vec::new(), Vec::new());
    for table in TABLES {
        let Some(info) = source.tables.get(table.name) else { continue };
        if info.end_unreadable {
            state.import.stat("unreadable_end_of_table", Severity::DataLoss, 1, Some(table.name));
        }
        match Job::new(info, table.columns) {
            Some(job) => {
                jobs.push(job);
                job_tables.push(table);
            }
            None if info.rowid.is_none() => {
                state.import.stat("unreadable_table", Severity::DataLoss, 1, Some(table.name));
            }
            None => state.import.sink.ledger(table.name, 0, 0, 0, "empty"),
        }
    }
    let total = jobs.iter().map(Job::extent).fold(0, u64::saturating_add);
    let mut done = 0u64;
    scan::scan(path, &jobs, |job, item| {
        let Some(table) = job_tables.get(job) else { return };
        done = done.saturating_add(take(&mut state, table, item));
        progress(done, total.max(done));
    });
    warn(&mut state, path, bytes, &source);
    state.finish();
    Ok(())
}

/// Takes what one range of rowids gave; the rows it stood for.
fn take(state: &mut State<'_>, table: &Table, item: Item) -> u64 {
    match item {
        Item::Page(page) => {
            let Kept { rows, time, incomplete } = (table.take)(state, &page);
            // Tasks have a row in the ledger for each of their types.
            if !table.own_rows {
                state.import.sink.ledger(table.name, page.rows as u64, rows, time, table.becomes);
            } else if incomplete > 0 {
                state.import.sink.ledger(table.name, incomplete, 0, 0, "not kept: incomplete");
            }
            state.import.stat("incomplete_row", Severity::DataLoss, incomplete, Some(table.name));
            page.rows as u64
        }
        Item::WrongTypes(count, rowid) => {
            let example = format!("table {}, row {rowid}", table.name);
            state.import.stat("wrong_type", Severity::DataLoss, count, Some(&example));
            0
        }
        Item::Lost(first, last, why) => {
            let example = format!("table {}, rows {first} to {last}: {why}", table.name);
            let lost = last.abs_diff(first).saturating_add(1);
            state.import.stat("unreadable_rows", Severity::DataLoss, lost, Some(&example));
            lost
        }
    }
}

fn warn(state: &mut State<'_>, path: &Path, bytes: u64, source: &Source) {
    for name in &source.failed {
        state.import.stat("unreadable_table", Severity::DataLoss, 1, Some(name));
    }
    if let Some(expected) = source::expected_bytes(path).filter(|expected| *expected > bytes) {
        let example = format!("{bytes} bytes of {expected}");
        state.import.stat("truncated_file", Severity::DataLoss, 1, Some(&example));
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        let example = "run 'sqlite3 FILE \"pragma wal_checkpoint(truncate)\"' on a copy and read that";
        state.import.stat("write_ahead_log_not_read", Severity::DataLoss, 1, Some(example));
    }
    for (name, rows) in &source.others {
        let known = NOT_READ.iter().find(|(known, _)| known == name || known.ends_with('_') && name.starts_with(known));
        let why = known.map_or("not read: unknown to this version", |(_, why)| why);
        match rows {
            Some(rows) => state.import.sink.ledger(name, *rows, 0, 0, why),
            None => state.import.stat("unreadable_table", Severity::DataLoss, 1, Some(name)),
        }
    }
}
