//! Nsight Systems: the SQLite export, and the report that `nsys` itself makes one of.
//!
//! Exports drift: tables exist only when they have rows, columns come and go with the version of the exporter, and
//! third parties trim and extend them. So the reader takes whatever tables it knows, with whatever columns they have, and
//! says in the ledger what became of each. One table is one line in `tables`.

use std::path::Path;

use model::{Severity, TraceSink};

use crate::{
    Format, Head, Match, Place, Progress, ReadError,
    sqlite::{self, page, scan, source},
};

mod counters;
mod device;
mod facts;
mod global_id;
mod host;
mod import;
mod names;
mod nvtx;
mod report;
mod settle;
mod tables;
#[cfg(test)]
mod tests;

use import::{Import, Kept};
use scan::{Item, Job};
use source::TableInfo;
use tables::{NOT_READ, TABLES, Table, UNKNOWN};

pub use report::REPORT_FORMAT;

/// The SQLite export of Nsight Systems.
pub const FORMAT: Format =
    Format { id: "nsys", name: "Nsight Systems SQLite export", matches, read, lead: crate::alone };

/// Reads the file's table names, because many formats are SQLite files.
fn matches(head: &Head<'_>) -> Match {
    if !head.bytes.starts_with(sqlite::SIGNATURE) {
        return Match::No;
    }
    match probe(head.path) {
        Ok(source) if source.tables.keys().any(|name| TABLES.iter().any(|table| table.name == name)) => Match::Certain,
        Ok(_) => Match::No,
        Err(_) => Match::Possible,
    }
}

/// The error of a file that is no usable export.
fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("an SQLite database exported by Nsight Systems ({why})"),
        next: "export it again with 'nsys export -t sqlite REPORT.nsys-rep'".to_owned(),
    }
}

/// What is known of a file before its rows are read.
struct Source {
    bytes: u64,
    tables: rustc_hash::FxHashMap<String, TableInfo>,
    /// Tables that could not be probed.
    failed: Vec<String>,
    /// Rows of the tables in [`NOT_READ`] and of unknown tables with times.
    others: Vec<(String, Option<u64>)>,
    /// Rows of all other tables, which hold no events.
    rest: u64,
}

fn probe(path: &Path) -> Result<Source, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(io)?.len();
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(io)?;
    let found = runtime.block_on(async {
        let mut db = source::connect(path).await?;
        let (tables, failed) = source::tables(&mut db, bytes).await?;
        let mut others = Vec::new();
        let mut rest = 0u64;
        for table in tables.values().filter(|table| !is_known(table) && !is_other(table)) {
            rest = rest.saturating_add(source::count(&mut db, &table.name).await.unwrap_or(0));
        }
        let mut names: Vec<&TableInfo> = tables.values().filter(|table| is_other(table)).collect();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        for table in names {
            others.push((table.name.clone(), source::count(&mut db, &table.name).await));
        }
        Ok::<_, sqlx::Error>(Source { bytes, tables, failed, others, rest })
    });
    found.map_err(|error| malformed(path, &error))
}

/// Whether the table is read.
fn is_known(table: &TableInfo) -> bool {
    TABLES.iter().any(|known| known.name == table.name)
}

/// Whether the table holds events that are counted and not read.
fn is_other(table: &TableInfo) -> bool {
    let timed = table.columns.iter().any(|column| column == "start" || column == "timestamp");
    !is_known(table) && (timed || NOT_READ.iter().any(|(name, _)| *name == table.name))
}

/// Reads an export. Runs its own runtime, so it must not be called from inside an asynchronous task.
fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let source = probe(path)?;
    let mut import = Import::new(sink, source.bytes);
    let (mut jobs, mut job_tables): (Vec<Job>, Vec<&Table>) = (Vec::new(), Vec::new());
    let mut known = false;
    for table in TABLES {
        let Some(info) = source.tables.get(table.name) else { continue };
        known = true;
        if info.end_unreadable {
            let after = info.rows.map_or("all rows".to_owned(), |(_, last)| format!("rows after {last}"));
            let example = format!("table {}, {after}", table.name);
            import.stat("unreadable_end_of_table", Severity::DataLoss, 1, Some(&example));
        }
        match Job::new(info, table.columns) {
            Some(job) => {
                jobs.push(job);
                job_tables.push(table);
            }
            None if info.rowid.is_none() => import.stat("unreadable_table", Severity::DataLoss, 1, Some(table.name)),
            None => import.sink.ledger(table.name, 0, 0, 0, "empty"),
        }
    }
    if !known && source.failed.is_empty() {
        return Err(malformed(path, &"none of its tables is there, such as StringIds or CUPTI_ACTIVITY_KIND_KERNEL"));
    }
    warn_of_damage(&mut import, path, &source);
    let total = jobs.iter().map(Job::extent).fold(0, u64::saturating_add);
    let mut done = 0u64;
    scan::scan(path, &jobs, |job, item| {
        let Some(table) = job_tables.get(job) else { return };
        import.table = table.name;
        done = done.saturating_add(take(&mut import, table, item));
        progress(done, total.max(done));
    });
    settle::settle(&mut import);
    for (name, rows) in &source.others {
        let why = NOT_READ.iter().find(|(known, _)| known == name).map_or(UNKNOWN, |(_, why)| why);
        match rows {
            Some(rows) => import.sink.ledger(name, *rows, 0, 0, why),
            None => import.stat("unreadable_table", Severity::DataLoss, 1, Some(name)),
        }
    }
    if source.rest > 0 {
        import.sink.ledger("other tables", source.rest, 0, 0, "not read: labels and descriptions, no events");
    }
    Ok(())
}

/// Takes what one range of rowids gave; the rows it stood for.
fn take(import: &mut Import<'_>, table: &Table, item: Item) -> u64 {
    match item {
        Item::Page(page) => {
            let Kept { rows, time, incomplete, refused } = (table.take)(import, &page);
            import.sink.ledger(table.name, page.rows as u64, rows, time, table.becomes);
            import.stat("incomplete_row", Severity::DataLoss, incomplete, Some(table.name));
            import.stat("text_beyond_file", Severity::DataLoss, refused, Some(table.name));
            page.rows as u64
        }
        Item::WrongTypes(count, rowid) => {
            let example = format!("table {}, row {rowid}", table.name);
            import.stat("wrong_type", Severity::DataLoss, count, Some(&example));
            0
        }
        Item::Lost(first, last, why) => {
            let example = format!("table {}, rows {first} to {last}: {why}", table.name);
            let lost = last.abs_diff(first).saturating_add(1);
            import.stat("unreadable_rows", Severity::DataLoss, lost, Some(&example));
            lost
        }
    }
}

/// Counts what is visible from outside: a file shorter than it says, tables whose description is damaged, and a
/// write-ahead log that reading without any change to the file cannot take into account.
fn warn_of_damage(import: &mut Import<'_>, path: &Path, source: &Source) {
    for name in &source.failed {
        import.stat("unreadable_table", Severity::DataLoss, 1, Some(name));
    }
    if let Some(expected) = source::expected_bytes(path).filter(|expected| *expected > source.bytes) {
        let example = format!("{} bytes of {expected}", source.bytes);
        import.stat("truncated_file", Severity::DataLoss, 1, Some(&example));
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        let example = "run 'sqlite3 FILE \"pragma wal_checkpoint(truncate)\"' on a copy and read that";
        import.stat("write_ahead_log_not_read", Severity::DataLoss, 1, Some(example));
    }
}
