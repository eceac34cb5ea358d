//! SQLite's own cursor over the rows of a query.
//!
//! sqlx copies and boxes every cell of every row and sends it through a channel, which is about one million rows a second.
//! Here the cells are read where SQLite holds them. The connection stays sqlx's: it opens the file, and it stands still
//! while it is locked. It must be locked once for many queries, not once for each: a lock is also a message to sqlx's
//! worker, and a queue full of them that the worker cannot read while the lock is held would never move again.

#![allow(unsafe_code)]

use std::{ffi::CStr, ptr::NonNull};

use libsqlite3_sys as sqlite;
use sqlx::sqlite::LockedSqliteHandle;

/// One cell of a row, in the storage class that the file gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'r> {
    Null,
    Int(i64),
    Real(f64),
    /// Text or a blob: its first bytes, at most as many as were asked for.
    Bytes(&'r [u8]),
}

/// Rows of a query, one at a time.
pub(crate) struct Cursor<'c, 'l> {
    connection: &'c mut LockedSqliteHandle<'l>,
    statement: NonNull<sqlite::sqlite3_stmt>,
    columns: i32,
}

impl<'c, 'l> Cursor<'c, 'l> {
    /// Asks `sql`, whose parameters are `bounds`.
    ///
    /// # Errors
    /// What SQLite says of the query.
    pub fn open(connection: &'c mut LockedSqliteHandle<'l>, sql: &str, bounds: &[i64]) -> Result<Self, String> {
        let length = i32::try_from(sql.len()).map_err(|error| error.to_string())?;
        let mut statement = std::ptr::null_mut();
        let database = connection.as_raw_handle().as_ptr();
        // SAFETY: the lock keeps the database open and ours, the text has `length` bytes, and `statement` is written.
        let code = unsafe {
            sqlite::sqlite3_prepare_v2(database, sql.as_ptr().cast(), length, &raw mut statement, std::ptr::null_mut())
        };
        let Some(statement) = NonNull::new(statement).filter(|_| code == sqlite::SQLITE_OK) else {
            return Err(said(connection));
        };
        // SAFETY: the statement was just prepared and is not finalized before `drop`.
        let columns = unsafe { sqlite::sqlite3_column_count(statement.as_ptr()) };
        let cursor = Self { connection, statement, columns };
        for (parameter, bound) in (1..).zip(bounds) {
            // SAFETY: as above; a parameter that the query does not have is refused with an error.
            if unsafe { sqlite::sqlite3_bind_int64(statement.as_ptr(), parameter, *bound) } != sqlite::SQLITE_OK {
                return Err(said(cursor.connection));
            }
        }
        Ok(cursor)
    }

    /// Goes to the next row; whether there is one.
    ///
    /// # Errors
    /// What SQLite says, such as that the file is damaged here.
    pub fn next(&mut self) -> Result<bool, String> {
        // SAFETY: the statement lives until `drop`; no cell borrows it, because this takes the cursor for itself.
        match unsafe { sqlite::sqlite3_step(self.statement.as_ptr()) } {
            sqlite::SQLITE_ROW => Ok(true),
            sqlite::SQLITE_DONE => Ok(false),
            _ => Err(said(self.connection)),
        }
    }

    /// A cell of the row, text cut after `most` bytes; one that the query does not have is absent.
    pub fn cell(&self, column: usize, most: usize) -> Cell<'_> {
        let Some(column) = i32::try_from(column).ok().filter(|column| *column < self.columns) else {
            return Cell::Null;
        };
        let statement = self.statement.as_ptr();
        // SAFETY: the column exists. Bytes belong to the statement and stay until the next step or conversion; the
        // class of a cell is asked first, so that none is converted, and a step needs the cursor for itself.
        unsafe {
            let bytes = |start: *const u8| match sqlite::sqlite3_column_bytes(statement, column) {
                length if length > 0 && !start.is_null() => {
                    let length = usize::try_from(length).unwrap_or_default().min(most);
                    Cell::Bytes(std::slice::from_raw_parts(start, length))
                }
                _ => Cell::Bytes(&[]),
            };
            match sqlite::sqlite3_column_type(statement, column) {
                sqlite::SQLITE_INTEGER => Cell::Int(sqlite::sqlite3_column_int64(statement, column)),
                sqlite::SQLITE_FLOAT => Cell::Real(sqlite::sqlite3_column_double(statement, column)),
                sqlite::SQLITE_TEXT => bytes(sqlite::sqlite3_column_text(statement, column)),
                sqlite::SQLITE_BLOB => bytes(sqlite::sqlite3_column_blob(statement, column).cast()),
                _ => Cell::Null,
            }
        }
    }
}

impl Drop for Cursor<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: prepared in `open`, finalized only here, and the connection outlives this.
        unsafe { sqlite::sqlite3_finalize(self.statement.as_ptr()) };
    }
}

/// What SQLite says of the last error.
fn said(connection: &mut LockedSqliteHandle<'_>) -> String {
    // SAFETY: the connection is open and ours; the text is SQLite's, ends with a zero and is copied before the next call.
    let text = unsafe { CStr::from_ptr(sqlite::sqlite3_errmsg(connection.as_raw_handle().as_ptr())) };
    text.to_string_lossy().into_owned()
}
