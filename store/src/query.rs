//! SQL of people on a capture file: one statement, read-only, rows handed over one by one.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, Column, Executor, Row, Statement, TypeInfo, ValueRef, sqlite::SqliteRow};

use super::{Error, error::code, open::Session, statement::Database};

/// A value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// Integer.
    Integer(i64),
    /// Real.
    Real(f64),
    /// Text; what is not UTF-8 is replaced by U+FFFD.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// Where a result goes.
pub trait Sink {
    /// Takes the column names, once, before any row.
    ///
    /// # Errors
    /// Ends the query.
    fn columns(&mut self, names: &[&str]) -> std::io::Result<()>;

    /// Takes a row.
    ///
    /// # Errors
    /// Ends the query.
    fn row(&mut self, values: Vec<Value>) -> std::io::Result<()>;
}

/// Runs one statement on a capture file and hands the result to `sink`. A statement that is not done within `limit` is
/// ended.
///
/// # Errors
/// [`Error::Query`] when the statement cannot be run or takes too long, [`Error::Io`] when the sink fails, and those of
/// reading a file.
pub fn query(path: &Path, sql: &str, limit: Option<Duration>, sink: &mut dyn Sink) -> Result<(), Error> {
    if !is_single_statement(sql) {
        return Err(Error::Query {
            message: "the query is not exactly one SQL statement".to_owned(),
            hint: "run one statement at a time".to_owned(),
        });
    }
    let mut session = Session::read(path)?;
    let outcome = session.run(async |connection, _| -> Result<(), Stop> {
        if let Some(end) = limit.and_then(|limit| Instant::now().checked_add(limit)) {
            Database::lock(connection).await?.end_at(end);
        }
        let sql = sqlx::SqlSafeStr::into_sql_str(AssertSqlSafe(sql));
        let statement = connection.prepare(sql).await?;
        let names: Vec<&str> = statement.columns().iter().map(Column::name).collect();
        sink.columns(&names)?;
        let mut rows = statement.query().fetch(connection);
        while let Some(row) = rows.try_next().await? {
            let values = (0..row.len()).map(|i| value(&row, i)).collect::<Result<_, _>>()?;
            sink.row(values)?;
        }
        Ok(())
    });
    let refused = |message: String, hint: String| Err(Error::Query { message, hint });
    match outcome {
        Ok(()) => {
            session.tell_checked();
            Ok(())
        }
        Err(Stop::Sink(e)) => Err(Error::io(path, "write the result of a query on")(e)),
        Err(Stop::Query(e)) => match code(&e).map(|code| code & 0xff) {
            Some(libsqlite3_sys::SQLITE_INTERRUPT) => {
                let message = format!("the statement was not done after {:?}", limit.unwrap_or_default());
                refused(message, "allow more with --timeout, or ask for less".to_owned())
            }
            Some(libsqlite3_sys::SQLITE_READONLY) => refused(of(&e), READ_ONLY.to_owned()),
            Some(libsqlite3_sys::SQLITE_ERROR) if of(&e).contains("attached databases") => {
                refused("the statement needs another file".to_owned(), READ_ONLY.to_owned())
            }
            Some(libsqlite3_sys::SQLITE_IOERR | libsqlite3_sys::SQLITE_CORRUPT | libsqlite3_sys::SQLITE_NOTADB)
            | None => Err(Error::sqlite(path, "query")(e)),
            Some(_) => refused(of(&e), format!("tables and views: {}", session.tables()?.join(", "))),
        },
    }
}

const READ_ONLY: &str = "a capture file is read-only for queries, and no other file is opened or made";

/// What SQLite says.
fn of(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |e| e.message().to_owned())
}

enum Stop {
    Query(sqlx::Error),
    Sink(std::io::Error),
}

impl From<sqlx::Error> for Stop {
    fn from(e: sqlx::Error) -> Self {
        Self::Query(e)
    }
}

impl From<std::io::Error> for Stop {
    fn from(e: std::io::Error) -> Self {
        Self::Sink(e)
    }
}

fn value(row: &SqliteRow, i: usize) -> Result<Value, sqlx::Error> {
    // The type is that of the value, not of the column: SQLite types values.
    let raw = row.try_get_raw(i)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let name = raw.type_info().name().to_owned();
    Ok(match name.as_str() {
        "REAL" => Value::Real(row.try_get_unchecked(i)?),
        "TEXT" => Value::Text(String::from_utf8_lossy(row.try_get_unchecked::<&[u8], _>(i)?).into_owned()),
        "BLOB" => Value::Blob(row.try_get_unchecked(i)?),
        _ => Value::Integer(row.try_get_unchecked(i)?),
    })
}

/// Whether the text holds one statement: nothing but space and comments follows its `;`, if it has one.
fn is_single_statement(sql: &str) -> bool {
    let mut statements = 0;
    let mut open = false;
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let skip_to = |mark: &str, from: usize| rest[from..].find(mark).map_or(rest.len(), |i| from + i + mark.len());
        let length = match c {
            '-' if rest.starts_with("--") => skip_to("\n", 2),
            '/' if rest.starts_with("/*") => skip_to("*/", 2),
            ';' => {
                open = false;
                1
            }
            c if c.is_whitespace() => c.len_utf8(),
            c => {
                statements += usize::from(!open);
                open = true;
                // A doubled quote within a quoted text ends it and opens the next, which comes to the same.
                match c {
                    '\'' | '"' | '`' => skip_to(c.encode_utf8(&mut [0; 4]), 1),
                    '[' => skip_to("]", 1),
                    c => c.len_utf8(),
                }
            }
        };
        rest = &rest[length..];
    }
    statements == 1
}

#[cfg(test)]
mod tests {
    use super::is_single_statement;

    #[test]
    fn statements_are_counted_outside_quotes_and_comments() {
        for one in
            ["SELECT 1", "SELECT ';' ;  -- ; x", "/* ; */ SELECT \"a;b\", [c;d], 'it''s;' ;;", "select '\u{4e2d};"]
        {
            assert!(is_single_statement(one), "{one}");
        }
        for other in ["", " ; ", "-- SELECT 1", "SELECT 1; SELECT 2", "SELECT 1;/**/x"] {
            assert!(!is_single_statement(other), "{other}");
        }
    }
}
