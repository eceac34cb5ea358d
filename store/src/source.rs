//! One row of a capture file, with what is needed to judge it against the rest of the file.

use std::path::Path;

use model::StringId;
use sqlx::{Row, sqlite::SqliteRow};

use super::Error;

/// One row of a table, with what is needed to judge it.
pub(super) struct Source<'a> {
    row: &'a SqliteRow,
    path: &'a Path,
    table: &'static str,
    /// Row of the capture's first string, and their number.
    pub(super) strings: (i64, usize),
}

impl<'a> Source<'a> {
    pub(super) fn of(row: &'a SqliteRow, path: &'a Path, table: &'static str, strings: (i64, usize)) -> Self {
        Self { row, path, table, strings }
    }

    /// The row contradicts the rest of the file.
    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        let row = self.row.try_get(0).unwrap_or(0);
        Error::Damaged { path: self.path.to_owned(), table: self.table, row, what: what.into() }
    }

    pub(super) fn get<'r, T>(&'r self, column: usize) -> Result<T, Error>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        self.row.try_get(column).map_err(|e| self.damaged(format!("column {}: {e}", column + 1)))
    }

    /// An integer or NULL.
    pub(super) fn integer(&self, column: usize) -> Result<Option<i64>, Error> {
        self.get(column)
    }

    /// An integer.
    pub(super) fn need(&self, column: usize) -> Result<i64, Error> {
        self.get(column)
    }

    /// A real number.
    pub(super) fn real(&self, column: usize) -> Result<f64, Error> {
        self.get(column)
    }

    /// Text.
    pub(super) fn text(&self, column: usize) -> Result<&str, Error> {
        self.get(column)
    }

    /// An integer of a narrower type, or NULL.
    pub(super) fn narrow<T: TryFrom<i64>>(&self, column: usize) -> Result<Option<T>, Error> {
        let convert =
            |v: i64| T::try_from(v).map_err(|_| self.damaged(format!("{v} in column {} is out of range", column + 1)));
        self.integer(column)?.map(convert).transpose()
    }

    /// Reference to a string of the capture, or NULL.
    pub(super) fn string(&self, column: usize) -> Result<Option<StringId>, Error> {
        let (first, n) = self.strings;
        self.index(column, first, n, "string").map(|index| index.map(StringId))
    }

    /// Reference to one of `n` rows from `first` on of a table, as an index, or NULL.
    pub(super) fn index(&self, column: usize, first: i64, n: usize, what: &str) -> Result<Option<u32>, Error> {
        let Some(id) = self.integer(column)? else { return Ok(None) };
        let index = id.checked_sub(first).and_then(|i| u32::try_from(i).ok()).filter(|i| (*i as usize) < n);
        index.map(Some).ok_or_else(|| self.damaged(format!("there is no {what} {id} in this capture")))
    }

    pub(super) fn some<T>(&self, value: Option<T>, column: usize) -> Result<T, Error> {
        value.ok_or_else(|| self.damaged(format!("column {} is empty", column + 1)))
    }
}
