//! Connections to a capture file, its schema, and the check that a file has it.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use sqlx::{
    ConnectOptions, Connection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use tracing::{info, warn};

use super::{
    APPLICATION_ID, Error, SCHEMA_VERSION,
    reader::{self, Checked, Reader},
    seal,
    statement::Database,
    vfs,
};

/// What each schema version adds to the one before.
const MIGRATIONS: [&[&str]; SCHEMA_VERSION as usize] = [
    &[include_str!("migrations/0001_tables.sql"), include_str!("migrations/0001_views.sql")],
    &[include_str!("migrations/0002_waits.sql")],
    &[include_str!("migrations/0003_summaries.sql")],
    &[include_str!("migrations/0004_probes.sql")],
    &[include_str!("migrations/0005_job_sums.sql")],
    // From here on files are sealed too (`seal`).
    &[include_str!("migrations/0006_stated_sums.sql")],
];

/// Target of what a person should know although the work goes on.
const NOTE: &str = "strato::note";

/// A connection and the runtime that awaits it.
pub(super) struct Session {
    runtime: tokio::runtime::Runtime,
    pub(super) connection: SqliteConnection,
    pub(super) path: PathBuf,
    /// Schema version of the file.
    pub(super) version: u32,
    /// What was held against the seal, of a file that is read and has one.
    checked: Option<Arc<Checked>>,
}

impl Session {
    /// Opens a capture file for reading. What is read is what was written, or an error; of what other programs left beside
    /// the file nothing is read, and that is told.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let reader = Reader::open(path)?;
        for file in reader::beside(path) {
            let (file, path) = (file.display(), path.display());
            warn!(
                target: NOTE,
                "'{file}' lies beside the capture file: another program changed '{path}' or was about to; it is not read"
            );
        }
        let mut session = Self::over(path, reader)?;
        session.check_schema()?;
        Ok(session)
    }

    /// A connection that reads through a reader.
    pub(super) fn over(path: &Path, reader: Reader) -> Result<Self, Error> {
        let version = reader.version;
        let checked = reader.seal.is_some().then(|| Arc::clone(&reader.checked));
        let no_room = || std::io::Error::other("SQLite takes no other file system");
        let name = vfs::offer(reader).ok_or_else(no_room).map_err(Error::io(path, "open"))?;
        let options = SqliteConnectOptions::new()
            .filename(&name)
            .vfs(vfs::NAME)
            .create_if_missing(false)
            .read_only(true)
            .pragma("query_only", "ON")
            .row_buffer_size(1024);
        let session = Self::connect(path, options, version);
        drop(vfs::take(&name));
        let mut session = Self { checked, ..session? };
        let alone = session.run(async |connection, _| Database::lock(connection).await.map(|mut all| all.keep_alone()));
        alone.map_err(Error::sqlite(path, "open"))?;
        Ok(session)
    }

    /// Says what checking cost.
    pub(super) fn tell_checked(&self) {
        let path = self.path.display();
        match &self.checked {
            Some(checked) => {
                let (pages, time) = (checked.pages.load(Ordering::Relaxed), checked.time.load(Ordering::Relaxed));
                let us = time / 1000;
                info!(target: "strato", "{pages} of {} pages of '{path}' held against its seal in {us} us", checked.of);
            }
            None => info!(target: "strato", "'{path}' was written before capture files were sealed"),
        }
    }

    /// Opens an empty file to be filled and then renamed. Nothing here survives a crash, and need not: the file has no
    /// name that anyone would open before it is whole.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .page_size(16 * 1024)
            .journal_mode(SqliteJournalMode::Off)
            .synchronous(SqliteSynchronous::Off)
            .pragma("locking_mode", "EXCLUSIVE")
            .pragma("cache_size", "-65536")
            .pragma("temp_store", "MEMORY");
        let mut session = Self::connect(path, options, SCHEMA_VERSION)?;
        let mark = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};");
        session.script(mark)?;
        session.migrate()?;
        Ok(session)
    }

    /// Opens a copy of a capture file to be changed and then renamed, like [`Session::create`].
    pub(super) fn edit(path: &Path, version: u32) -> Result<Self, Error> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Off)
            .synchronous(SqliteSynchronous::Off);
        let mut session = Self::connect(path, options, version)?;
        session.check_schema()?;
        session.check_triggers()?;
        Ok(session)
    }

    /// Refuses a file with triggers, of which ours has none: they would run as soon as anything is written.
    fn check_triggers(&mut self) -> Result<(), Error> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'";
        let count = self.runtime.block_on(sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut self.connection));
        match count.map_err(Error::sqlite(&self.path, "read the schema of"))? {
            0 => Ok(()),
            count => Err(Error::Damaged {
                path: self.path.clone(),
                table: "sqlite_schema",
                row: 0,
                what: format!("a capture file has no triggers, this one has {count}"),
            }),
        }
    }

    /// Closes the connection to a file that was written, so that every page is with the operating system, and seals it
    /// where its schema version says that it is.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.runtime.block_on(self.connection.close()).map_err(Error::sqlite(&self.path, "finish"))?;
        if self.version >= seal::SINCE { seal::Seal::put_on(&self.path) } else { Ok(()) }
    }

    fn connect(path: &Path, options: SqliteConnectOptions, version: u32) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(Error::io(path, "start a runtime for"))?;
        // What a foreign file says of its own schema is not to be run.
        let options = options.pragma("trusted_schema", "OFF").disable_statement_logging();
        let connection =
            runtime.block_on(SqliteConnection::connect_with(&options)).map_err(Error::sqlite(path, "open"))?;
        Ok(Self { runtime, connection, path: path.to_owned(), version, checked: None })
    }

    fn script(&mut self, sql: impl Into<std::borrow::Cow<'static, str>>) -> Result<(), Error> {
        let sql = sqlx::AssertSqlSafe(sql.into());
        let run = sqlx::raw_sql(sql).execute(&mut self.connection);
        self.runtime.block_on(run).map(|_| ()).map_err(Error::sqlite(&self.path, "write"))
    }

    /// Makes the tables and views of the schema version in an empty file.
    fn migrate(&mut self) -> Result<(), Error> {
        MIGRATIONS.iter().take(self.version as usize).copied().flatten().try_for_each(|script| self.script(*script))
    }

    /// Refuses a file whose tables are not literally those of its schema version: a view in the place of a table could
    /// run for ever.
    fn check_schema(&mut self) -> Result<(), Error> {
        let memory = SqliteConnectOptions::new().in_memory(true);
        let mut model = Self::connect(Path::new(":memory:"), memory, self.version)?;
        model.migrate()?;
        let expected = model.schema()?;
        let found = self.schema()?;
        let alien = expected.iter().find(|object| !found.contains(object));
        match alien {
            None => Ok(()),
            Some((name, _)) => Err(Error::Damaged {
                path: self.path.clone(),
                table: "sqlite_schema",
                row: 0,
                what: format!("'{name}' is not what a capture file has under that name"),
            }),
        }
    }

    fn schema(&mut self) -> Result<Vec<(String, String)>, Error> {
        let sql = "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND sql IS NOT NULL LIMIT 1000";
        let rows = self.runtime.block_on(sqlx::query(sql).fetch_all(&mut self.connection));
        let read = |row: &sqlx::sqlite::SqliteRow| Ok((row.try_get(0)?, row.try_get(1)?));
        rows.and_then(|rows| rows.iter().map(read).collect()).map_err(Error::sqlite(&self.path, "read the schema of"))
    }

    /// Names of the tables.
    pub(super) fn table_names(&mut self) -> Result<Vec<String>, Error> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT 1000";
        let names = self.runtime.block_on(sqlx::query_scalar(sql).fetch_all(&mut self.connection));
        names.map_err(Error::sqlite(&self.path, "read the schema of"))
    }

    /// Names of the tables and views.
    pub(super) fn tables(&mut self) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = self.schema()?.into_iter().map(|(name, _)| name).collect();
        names.sort();
        Ok(names)
    }

    /// Runs a piece of work on the connection to its end.
    pub(super) fn run<'a, T, F>(&'a mut self, work: impl FnOnce(&'a mut SqliteConnection, &'a Path) -> F) -> T
    where
        F: Future<Output = T> + 'a,
    {
        let Self { runtime, connection, path, .. } = self;
        runtime.block_on(work(connection, path))
    }
}
