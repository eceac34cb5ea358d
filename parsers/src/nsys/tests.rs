//! Small exports written as SQL, and what they become.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use model::{Category, Columns, Detail, Trace, TraceBuilder, TrackKind};
use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};

use super::FORMAT;
use crate::ReadError;

mod eras;
mod hostile;
mod reports;
mod rows;

/// Process 111 of virtual machine 1, and its first thread.
pub(super) const PID: i64 = 281_476_838_981_632;
pub(super) const TID: i64 = PID + 111;

/// A directory with an export made of these statements.
pub(super) struct Export {
    directory: tempfile::TempDir,
}

impl Export {
    pub fn new(sql: &str) -> Self {
        let export = Self { directory: tempfile::tempdir().unwrap() };
        let options = SqliteConnectOptions::new().filename(export.path()).create_if_missing(true);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut db = SqliteConnection::connect_with(&options).await.unwrap();
            db.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.unwrap();
            db.close().await.unwrap();
        });
        export
    }

    /// A name that would be options, escapes or a fragment if it were pasted into a URI.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("an export?mode=rwc#%41.sqlite")
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn read(&self) -> Trace {
        read(&self.path()).unwrap()
    }
}

pub(super) fn read(path: &Path) -> Result<Trace, ReadError> {
    let mut builder = TraceBuilder::new(path.display().to_string(), "nsys");
    (FORMAT.read)(path, &mut builder, &crate::ReadOptions::default()).map(|()| builder.finish())
}

/// Strings with ids 1, 2, 3, …
pub(super) fn strings(texts: &[&str]) -> String {
    let rows: Vec<String> = texts.iter().enumerate().map(|(i, text)| format!("({}, '{text}')", i + 1)).collect();
    format!(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES {};",
        rows.join(",")
    )
}

pub(super) const RUNTIME: &str = "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, \
     globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);";
pub(super) const KERNEL: &str = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, \
     contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, \
     shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, \
     graphNodeId INTEGER);";
pub(super) const NVTX: &str = "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, \
     endGlobalTid INTEGER, text TEXT, textId INTEGER, domainId INTEGER, jsonText TEXT);";

/// One slice as (name, start, duration, category).
pub(super) type Row = (String, i64, i64, Category);

/// All slices of tracks of a kind, by track in order of appearance.
pub(super) fn rows(trace: &Trace, kind: TrackKind) -> Vec<Row> {
    let lanes = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == kind);
    lanes.flat_map(|(_, lane)| (0..lane.len()).map(|i| row(trace, lane, i))).collect()
}

fn row(trace: &Trace, lane: &Columns, i: usize) -> Row {
    (trace.strings.get(lane.name[i]).to_owned(), lane.start[i], lane.dur[i], lane.category[i])
}

/// The detail of the only slice with this name.
pub(super) fn detail<'a>(trace: &'a Trace, name: &str) -> Option<&'a Detail> {
    let mut found = trace.lanes.iter().flat_map(|lane| (0..lane.len()).map(move |i| (lane, i)));
    let (lane, i) = found.find(|(lane, i)| trace.strings.get(lane.name[*i]) == name).expect("no such slice");
    trace.detail(lane, i)
}

pub(super) fn expected(rows: &[(&str, i64, i64, Category)]) -> Vec<Row> {
    rows.iter().map(|(name, start, dur, category)| ((*name).to_owned(), *start, *dur, *category)).collect()
}

/// Kept and read rows of a table in the ledger.
pub(super) fn ledger(trace: &Trace, table: &str) -> (u64, u64) {
    trace.ledger.iter().find(|row| row.category == table).map(|row| (row.kept, row.read)).expect("no ledger row")
}
