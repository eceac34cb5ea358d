//! Statements that write rows, on SQLite's own interface.
//!
//! sqlx boxes every value and sends it to another thread, which for millions of rows costs more than the insert. Values
//! are bound here where the rows are. The connection stays sqlx's: it stands still while it is locked.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_int},
    ptr::{self, NonNull},
    time::Instant,
};

use libsqlite3_sys as sqlite;
use sqlx::{SqliteConnection, sqlite::LockedSqliteHandle};

/// Steps of SQLite's machine between two looks at the clock: some tenths of a millisecond.
const STEPS: c_int = 10_000;

/// What SQLite says of a statement that it does not run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// A value of a row.
pub(super) enum Value<'t> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'t str),
    Blob(&'t [u8]),
}

macro_rules! value_from {
    ($($type:ty => |$value:ident| $into:expr;)*) => {
        $(impl<'t> From<$type> for Value<'t> {
            #[inline]
            fn from($value: $type) -> Self {
                $into
            }
        })*
    };
}

value_from! {
    i64 => |value| Self::Int(value);
    i32 => |value| Self::Int(value.into());
    u32 => |value| Self::Int(value.into());
    bool => |value| Self::Int(value.into());
    f64 => |value| Self::Real(value);
    &'t str => |value| Self::Text(value);
    &'t [u8] => |value| Self::Blob(value);
}

impl<'t, T: Into<Self>> From<Option<T>> for Value<'t> {
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A connection that is ours alone until it is dropped.
pub(super) struct Database<'c>(LockedSqliteHandle<'c>);

impl<'c> Database<'c> {
    pub(super) async fn lock(connection: &'c mut SqliteConnection) -> Result<Self, sqlx::Error> {
        connection.lock_handle().await.map(Self)
    }

    /// Runs statements that have no values and give no rows.
    pub(super) fn run(&mut self, sql: &CStr) -> Result<(), Refused> {
        // SAFETY: the lock keeps the database open and ours, the text ends with a zero, and no callback is given.
        let code = unsafe {
            sqlite::sqlite3_exec(self.0.as_raw_handle().as_ptr(), sql.as_ptr(), None, ptr::null_mut(), ptr::null_mut())
        };
        if code == sqlite::SQLITE_OK { Ok(()) } else { Err(self.refused()) }
    }

    /// Refuses every other file from here on: neither `ATTACH` nor `VACUUM INTO` opens or makes one.
    pub(super) fn keep_alone(&mut self) {
        // SAFETY: the lock keeps the database open and ours.
        unsafe { sqlite::sqlite3_limit(self.0.as_raw_handle().as_ptr(), sqlite::SQLITE_LIMIT_ATTACHED, 0) };
    }

    /// Ends whatever runs at this moment.
    pub(super) fn end_at(&mut self, moment: Instant) {
        self.0.set_progress_handler(STEPS, move || Instant::now() < moment);
    }

    pub(super) fn prepare(&mut self, sql: &str) -> Result<Statement<'_, 'c>, Refused> {
        let length = c_int::try_from(sql.len()).map_err(|_| Refused("the statement is too long".to_owned()))?;
        let mut statement = ptr::null_mut();
        // SAFETY: as above; the text has `length` bytes, and `statement` is written.
        let code = unsafe {
            sqlite::sqlite3_prepare_v2(
                self.0.as_raw_handle().as_ptr(),
                sql.as_ptr().cast(),
                length,
                &raw mut statement,
                ptr::null_mut(),
            )
        };
        match NonNull::new(statement) {
            Some(statement) if code == sqlite::SQLITE_OK => Ok(Statement { database: self, statement, bound: 0 }),
            _ => Err(self.refused()),
        }
    }

    #[cold]
    fn refused(&mut self) -> Refused {
        // SAFETY: the connection is open and ours; the text is SQLite's, ends with a zero and is copied before the next
        // call.
        let text = unsafe { CStr::from_ptr(sqlite::sqlite3_errmsg(self.0.as_raw_handle().as_ptr())) };
        Refused(text.to_string_lossy().into_owned())
    }
}

/// A statement whose values are given one after the other, and which is run as often as they are.
pub(super) struct Statement<'d, 'c> {
    database: &'d mut Database<'c>,
    statement: NonNull<sqlite::sqlite3_stmt>,
    /// Values given since the last run.
    bound: c_int,
}

impl Statement<'_, '_> {
    /// Gives the next value.
    #[inline]
    pub(super) fn put<'t>(&mut self, value: impl Into<Value<'t>>) -> Result<&mut Self, Refused> {
        let (statement, at) = (self.statement.as_ptr(), self.bound + 1);
        // SAFETY: the statement lives until `drop` and is not running between two calls of `run`. SQLite copies texts
        // and blobs before the call returns (`SQLITE_TRANSIENT`) and takes no more bytes than their length; a place that
        // the statement does not have is refused with an error.
        let code = unsafe {
            let copied = sqlite::SQLITE_TRANSIENT();
            match value.into() {
                Value::Null => sqlite::sqlite3_bind_null(statement, at),
                Value::Int(value) => sqlite::sqlite3_bind_int64(statement, at, value),
                Value::Real(value) => sqlite::sqlite3_bind_double(statement, at, value),
                Value::Text(text) => {
                    let utf8 = sqlite::SQLITE_UTF8 as u8;
                    sqlite::sqlite3_bind_text64(statement, at, text.as_ptr().cast(), text.len() as u64, copied, utf8)
                }
                Value::Blob(blob) => {
                    sqlite::sqlite3_bind_blob64(statement, at, blob.as_ptr().cast(), blob.len() as u64, copied)
                }
            }
        };
        if code != sqlite::SQLITE_OK {
            return Err(self.database.refused());
        }
        self.bound = at;
        Ok(self)
    }

    /// Runs the statement with the values given, all of which it must have.
    pub(super) fn run(&mut self) -> Result<(), Refused> {
        // SAFETY: the statement lives until `drop`.
        let wanted = unsafe { sqlite::sqlite3_bind_parameter_count(self.statement.as_ptr()) };
        if self.bound != wanted {
            return Err(Refused(format!("{} values for a statement of {wanted}", self.bound)));
        }
        self.bound = 0;
        // SAFETY: as above; after a step the statement is reset, whose result is that of the step.
        let code = unsafe {
            sqlite::sqlite3_step(self.statement.as_ptr());
            sqlite::sqlite3_reset(self.statement.as_ptr())
        };
        if code == sqlite::SQLITE_OK { Ok(()) } else { Err(self.database.refused()) }
    }
}

impl Drop for Statement<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: prepared in `prepare`, finalized only here, and the connection outlives this.
        unsafe { sqlite::sqlite3_finalize(self.statement.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use sqlx::{Connection, Row};

    use super::*;

    fn with_table(work: impl FnOnce(&mut Database<'_>)) -> Vec<(i64, Option<f64>, String, Vec<u8>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
            let mut database = Database::lock(&mut connection).await.unwrap();
            database.run(c"CREATE TABLE t(a INTEGER PRIMARY KEY, b REAL, c TEXT, d BLOB)").unwrap();
            work(&mut database);
            drop(database);
            let rows = sqlx::query("SELECT * FROM t ORDER BY a").fetch_all(&mut connection).await.unwrap();
            rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect()
        })
    }

    #[test]
    fn values_of_every_class_arrive() {
        let rows = with_table(|database| {
            let mut statement = database.prepare("INSERT INTO t VALUES (?,?,?,?)").unwrap();
            let text = "a\0b\"é".to_owned();
            statement.put(i64::MAX).unwrap().put(0.5).unwrap().put(&*text).unwrap().put(&[0u8, 255][..]).unwrap();
            drop(text);
            statement.run().unwrap();
            statement.put(true).unwrap().put(None::<f64>).unwrap().put("").unwrap().put(&[][..]).unwrap();
            statement.run().unwrap();
        });
        let first = (1, None, String::new(), vec![]);
        assert_eq!(rows, [first, (i64::MAX, Some(0.5), "a\0b\"é".to_owned(), vec![0, 255])]);
    }

    #[test]
    fn a_row_of_too_few_or_too_many_values_is_refused() {
        let rows = with_table(|database| {
            let mut statement = database.prepare("INSERT INTO t VALUES (?,?,'','')").unwrap();
            statement.put(1i64).unwrap();
            assert_eq!(statement.run().unwrap_err().to_string(), "1 values for a statement of 2");
            statement.put(2.0).unwrap();
            assert!(statement.put("third").is_err());
        });
        assert_eq!(rows, []);
    }

    #[test]
    fn what_sqlite_says_is_passed_on() {
        with_table(|database| {
            assert!(database.prepare("INSERT INTO missing VALUES (1)").err().unwrap().to_string().contains("missing"));
            let mut statement = database.prepare("INSERT INTO t VALUES (?,1,'','')").unwrap();
            statement.put(1i64).unwrap().run().unwrap();
            statement.put(1i64).unwrap();
            assert!(statement.run().unwrap_err().to_string().contains("UNIQUE"));
        });
    }
}
