//! Connections to a capture file, its schema, and the check that a file has it.

use std::{future::Future, io::Read, path::Path, path::PathBuf};

use sqlx::{
    ConnectOptions, Connection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use super::{APPLICATION_ID, Error, SCHEMA_VERSION};

/// What each schema version adds to the one before.
const MIGRATIONS: [&[&str]; SCHEMA_VERSION as usize] = [
    &[include_str!("migrations/0001_tables.sql"), include_str!("migrations/0001_views.sql")],
    &[include_str!("migrations/0002_waits.sql")],
    &[include_str!("migrations/0003_summaries.sql")],
    &[include_str!("migrations/0004_probes.sql")],
    &[include_str!("migrations/0005_job_sums.sql")],
];

/// Length of the header of an SQLite file, which holds both numbers that we look at.
const HEADER: usize = 100;

/// Whether the content of the file is that of a capture file, of whatever schema version.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read.
pub fn is_capture(path: &Path) -> Result<bool, Error> {
    Ok(version(path)?.is_some())
}

/// The schema version of a capture file; `None` for any other file.
fn version(path: &Path) -> Result<Option<u32>, Error> {
    let mut header = Vec::with_capacity(HEADER);
    // Asked before opening: to open a pipe waits for its writer.
    if !std::fs::metadata(path).map_err(Error::io(path, "read"))?.is_file() {
        return Ok(None);
    }
    let file = input::open(path).map_err(Error::io(path, "read"))?;
    file.take(HEADER as u64).read_to_end(&mut header).map_err(Error::io(path, "read"))?;
    // Offsets from https://www.sqlite.org/fileformat.html#the_database_header.
    let number = |at: usize| header.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
    let ours = header.starts_with(b"SQLite format 3\0") && number(68) == Some(APPLICATION_ID);
    Ok(if ours { number(60) } else { None })
}

/// A connection and the runtime that awaits it.
pub(super) struct Session {
    runtime: tokio::runtime::Runtime,
    pub(super) connection: SqliteConnection,
    pub(super) path: PathBuf,
    /// Schema version of the file.
    pub(super) version: u32,
}

impl Session {
    /// Opens a capture file for reading.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let version = match version(path)? {
            None => return Err(Error::NotACapture { path: path.to_owned() }),
            Some(version @ 1..=SCHEMA_VERSION) => version,
            Some(found) => return Err(Error::Version { path: path.to_owned(), found, known: SCHEMA_VERSION }),
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .read_only(true)
            .pragma("query_only", "ON")
            .row_buffer_size(1024);
        let mut session = Self::connect(path, options, version)?;
        session.check_schema()?;
        Ok(session)
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
    pub(super) fn edit(path: &Path) -> Result<Self, Error> {
        let version = version(path)?.ok_or_else(|| Error::NotACapture { path: path.to_owned() })?;
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

    /// Closes the connection, so that every page is with the operating system.
    pub(super) fn close(self) -> Result<(), Error> {
        self.runtime.block_on(self.connection.close()).map_err(Error::sqlite(&self.path, "finish"))
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
        Ok(Self { runtime, connection, path: path.to_owned(), version })
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
