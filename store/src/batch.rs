//! Bulk inserts: constant statements of many rows each, in transactions of bounded size.

use std::{borrow::Cow, error::Error};

use sqlx::SqliteConnection;

use super::statement::{Database, Refused, Statement};

/// Rows of a statement. A few fixed sizes need few texts whatever the number of rows.
const SIZES: [usize; 4] = [512, 64, 8, 1];
/// Rows of a transaction; bounds what SQLite keeps in memory.
const TRANSACTION: usize = 1 << 20;

/// Rows of a table to be inserted.
#[derive(Clone, Debug)]
pub(super) struct Table<'t> {
    /// The table, with its columns in brackets where not all of them are given.
    into: &'static str,
    /// One row in SQL, with a question mark for every value that is bound.
    row: Cow<'t, str>,
    /// Most rows of a statement; less than usual where rows are large.
    most: usize,
}

impl<'t> Table<'t> {
    /// Rows of `width` values.
    pub(super) fn new(into: &'static str, width: usize) -> Self {
        Self { row: format!("({})", vec!["?"; width].join(",")).into(), into, most: SIZES[0] }
    }

    /// Rows in which what they share stands in the text of the statement: every value that is not bound is a row that
    /// much faster, but each text has to be prepared, so this is for thousands of rows.
    pub(super) fn long(into: &'static str, row: &'t str) -> Self {
        Self { row: row.into(), into, most: SIZES[0] }
    }

    /// At most `most` rows in a statement.
    pub(super) fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    fn statement(&self, size: usize) -> String {
        format!("INSERT INTO {} VALUES {}", self.into, vec![&*self.row; size].join(","))
    }
}

/// Why rows could not be written.
pub(super) type Failure = Box<dyn Error + Send + Sync>;

/// The values of the rows of a statement.
pub(super) type Cells<'d, 'c> = Statement<'d, 'c>;

/// Inserts rows in transactions of bounded size.
pub(super) struct Batch<'c> {
    database: Database<'c>,
    rows: usize,
}

impl<'c> Batch<'c> {
    /// Takes the connection for itself until the batch is committed or dropped.
    pub(super) async fn begin(connection: &'c mut SqliteConnection) -> Result<Self, Failure> {
        let mut database = Database::lock(connection).await?;
        database.run(c"BEGIN")?;
        Ok(Self { database, rows: 0 })
    }

    pub(super) fn commit(mut self) -> Result<(), Failure> {
        Ok(self.database.run(c"COMMIT")?)
    }

    /// Runs a statement without values.
    pub(super) fn script(&mut self, sql: &'static std::ffi::CStr) -> Result<(), Failure> {
        Ok(self.database.run(sql)?)
    }

    /// Inserts all `rows`; `encode` gives the values of one of them.
    pub(super) fn insert<T>(
        &mut self,
        table: Table<'_>,
        mut rows: impl ExactSizeIterator<Item = T>,
        mut encode: impl FnMut(&mut Cells<'_, '_>, T) -> Result<(), Refused>,
    ) -> Result<(), Failure> {
        for size in SIZES.into_iter().filter(|size| *size <= table.most) {
            if rows.len() < size {
                continue;
            }
            let mut statement = self.database.prepare(&table.statement(size))?;
            while rows.len() >= size {
                if self.rows >= TRANSACTION {
                    drop(statement);
                    self.database.run(c"COMMIT; BEGIN")?;
                    self.rows = 0;
                    statement = self.database.prepare(&table.statement(size))?;
                }
                for row in rows.by_ref().take(size) {
                    encode(&mut statement, row)?;
                }
                statement.run()?;
                self.rows += size;
            }
        }
        Ok(())
    }
}
