//! A profiler's database as a whole: which tables it has, which of them are read, and what of it is damaged. Every format
//! that is a database reads through here, so that all of them count the same losses.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use model::{Severity, TraceSink};
use sqlx::SqliteConnection;
use tokio::runtime::Runtime;

use super::{
    page::Column,
    scan::{self, Item, Job},
    source::{self, TableInfo, Tables},
};
use crate::{Progress, ReadError};

/// A database before its rows are read.
pub(crate) struct Database {
    path: PathBuf,
    /// Size of the file.
    pub bytes: u64,
    /// Its real tables.
    pub tables: Tables,
    /// Names of views and virtual tables.
    made_up: Vec<String>,
    /// Tables that could not be probed.
    failed: Vec<String>,
    connection: SqliteConnection,
    runtime: Runtime,
}

impl Database {
    /// Opens a database and looks at its tables; `malformed` makes the error of a file that is none of the format's. Runs its
    /// own runtime, so it must not be called from inside an asynchronous task.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the operating system refuses, and what `malformed` makes of the words of SQLite.
    pub fn open(path: &Path, malformed: impl Fn(&Path, &dyn Display) -> ReadError) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        let bytes = std::fs::metadata(path).map_err(io)?.len();
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(io)?;
        let found = runtime.block_on(async {
            let mut connection = source::connect(path).await.map_err(|error| error.to_string())?;
            let mut handle = connection.lock_handle().await.map_err(|error| error.to_string())?;
            let found = source::tables(&mut handle, bytes)?;
            let made_up = source::made_up(&mut handle)?;
            drop(handle);
            Ok((connection, found, made_up))
        });
        let (connection, (tables, failed), made_up) = found.map_err(|error: String| malformed(path, &error))?;
        Ok(Self { path: path.to_owned(), bytes, tables, made_up, failed, connection, runtime })
    }

    /// Rows of the tables that `chosen` says, in the order of their names; `None` where they cannot be counted.
    pub fn count(&mut self, chosen: impl Fn(&TableInfo) -> bool) -> Vec<(String, Option<u64>)> {
        let mut names: Vec<String> =
            self.tables.iter().filter(|table| chosen(table)).map(|table| table.name.clone()).collect();
        names.sort_unstable();
        let mut handle = self.runtime.block_on(self.connection.lock_handle()).ok();
        let count = |name: String| {
            let rows = handle.as_mut().and_then(|handle| source::count(handle, &name));
            (name, rows)
        };
        names.into_iter().map(count).collect()
    }

    /// Tells what is visible from outside: tables whose description is damaged, a file shorter than it says, and a
    /// write-ahead log that reading without any change to the file cannot take into account.
    pub fn warn(&self, format: &str, sink: &mut dyn TraceSink) {
        let mut stat = |name: &str, example: &str| {
            sink.stat(&format!("{format}.{name}"), Severity::DataLoss, 1, Some(example));
        };
        for name in &self.failed {
            stat("unreadable_table", name);
        }
        match source::expected_bytes(&self.path) {
            Some(expected) if expected > self.bytes => {
                stat("truncated_file", &format!("{} bytes of {expected}", self.bytes));
            }
            Some(expected) if source::is_followed(&self.path, expected) => {
                let rest = self.bytes.saturating_sub(expected);
                stat("second_database", &format!("{rest} bytes after byte {expected}; split the file there"));
            }
            _ => {}
        }
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
            let advice = "run 'sqlite3 FILE \"pragma wal_checkpoint(truncate)\"' on a copy and read that";
            stat("write_ahead_log_not_read", advice);
        }
    }

    /// Whether the descriptions of all tables could be read.
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty()
    }

    /// Which of the `wanted` tables, each with its name in the file and the columns to read, can be read; what cannot is told.
    pub fn plan<'t, T>(
        &self,
        wanted: impl IntoIterator<Item = (&'t T, String, &'static [Column])>,
        format: &str,
        sink: &mut dyn TraceSink,
    ) -> Plan<'t, T> {
        let mut plan = Plan { path: self.path.clone(), jobs: Vec::new(), tables: Vec::new() };
        for (table, name, columns) in wanted {
            let Some(info) = self.tables.get(&name) else {
                if self.made_up.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                    let example = format!("{name} is a view; make a table of it and read that");
                    sink.stat(&format!("{format}.view_not_read"), Severity::DataLoss, 1, Some(&example));
                }
                continue;
            };
            if info.end_unreadable {
                let after = info.rows.map_or("all rows".to_owned(), |(_, last)| format!("rows after {last}"));
                let example = format!("table {name}, {after}");
                let stat = format!("{format}.unreadable_end_of_table");
                sink.stat(&stat, Severity::DataLoss, 1, Some(&example));
            }
            match Job::new(info, columns) {
                Some(job) => {
                    plan.jobs.push(job);
                    plan.tables.push(table);
                }
                None if info.rowid.is_none() => {
                    sink.stat(&format!("{format}.unreadable_table"), Severity::DataLoss, 1, Some(&name));
                }
                None => sink.ledger(&name, 0, 0, 0, "empty"),
            }
        }
        plan
    }
}

/// Tables to be read, in order.
pub(crate) struct Plan<'t, T> {
    path: PathBuf,
    jobs: Vec<Job>,
    tables: Vec<&'t T>,
}

impl<T> Plan<'_, T> {
    /// Reads them; `take` gets what each range of rowids gave and says how many rows it stood for.
    pub fn read(&self, progress: Progress<'_>, mut take: impl FnMut(&T, Item) -> u64) {
        let total = self.jobs.iter().map(Job::extent).fold(0, u64::saturating_add);
        let mut done = 0u64;
        scan::scan(&self.path, &self.jobs, |job, item| {
            let Some(table) = self.tables.get(job) else { return };
            done = done.saturating_add(take(table, item));
            progress(done, total.max(done));
        });
    }
}

/// Tells what a range of rowids lost; the rows that it stood for.
pub(crate) fn tell_loss(loss: &scan::Loss, format: &str, table: &str, sink: &mut dyn TraceSink) -> u64 {
    match loss {
        scan::Loss::WrongTypes(count, rowid) => {
            let example = format!("table {table}, row {rowid}");
            sink.stat(&format!("{format}.wrong_type"), Severity::DataLoss, *count, Some(&example));
            0
        }
        scan::Loss::Rows(first, last, why, lost) => {
            let example = format!("table {table}, rows {first} to {last}: {why}");
            sink.stat(&format!("{format}.unreadable_rows"), Severity::DataLoss, *lost, Some(&example));
            *lost
        }
        // Whether a profiler numbers rows without a gap is known of few: those tell it with [`tell_taken_out`].
        scan::Loss::TakenOut(rows) => *rows,
    }
}

/// Tells of rows that were taken out of a table whose writer numbers them one after the other, and that would have become
/// `becomes`.
pub(crate) fn tell_taken_out(loss: &scan::Loss, format: &str, table: &str, becomes: &str, sink: &mut dyn TraceSink) {
    let scan::Loss::TakenOut(rows) = loss else { return };
    sink.ledger(table, *rows, 0, 0, becomes);
    let example = format!("table {table}: no row has their numbers, between the first and the last");
    sink.stat(&format!("{format}.rows_taken_out"), Severity::DataLoss, *rows, Some(&example));
}
