//! Bulk inserts. Each statement costs a round trip to SQLite's thread, so a statement carries hundreds of rows, and the
//! next is encoded while SQLite executes the present one.

use std::{borrow::Cow, sync::Arc};

use sqlx::{Arguments, AssertSqlSafe, SqliteConnection, error::BoxDynError, sqlite::SqliteArguments};

/// Rows of a statement. A few fixed sizes keep every text in the statement cache whatever the number of rows.
const SIZES: [usize; 5] = [2048, 512, 64, 8, 1];
/// Rows of a transaction; bounds what SQLite keeps in memory.
const TRANSACTION: usize = 1 << 20;

/// Rows of a table to be inserted.
#[derive(Clone, Debug)]
pub(super) struct Table<'t> {
    /// The table, with its columns in brackets where not all of them are given.
    into: &'static str,
    /// One row in SQL, with a question mark for every value that is bound.
    row: Cow<'t, str>,
    /// Number of question marks.
    width: usize,
    /// Most rows of a statement; less than usual where rows are large.
    most: usize,
}

impl<'t> Table<'t> {
    /// Rows of `width` values.
    pub(super) fn new(into: &'static str, width: usize) -> Self {
        Self { row: format!("({})", vec!["?"; width].join(",")).into(), into, width, most: 512 }
    }

    /// Rows in which what they share stands in the text of the statement: every value that is not bound is a row that
    /// much faster, but each text has to be prepared, so this is for thousands of rows.
    pub(super) fn long(into: &'static str, row: &'t str) -> Self {
        Self { width: row.matches('?').count(), row: row.into(), into, most: SIZES[0] }
    }

    /// At most `most` rows in a statement.
    pub(super) fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    fn statement(&self, size: usize) -> Arc<str> {
        format!("INSERT INTO {} VALUES {}", self.into, vec![&*self.row; size].join(",")).into()
    }
}

/// The values of the rows of a statement.
pub(super) struct Cells(SqliteArguments);

impl Cells {
    /// Adds an integer, text, real, blob, or `None` for NULL.
    pub(super) fn put<'t, T>(&mut self, value: T) -> Result<&mut Self, BoxDynError>
    where
        T: sqlx::Encode<'t, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        self.0.add(value)?;
        Ok(self)
    }
}

/// Inserts rows in transactions of bounded size.
pub(super) struct Batch<'c> {
    connection: &'c mut SqliteConnection,
    rows: usize,
}

impl<'c> Batch<'c> {
    pub(super) async fn begin(connection: &'c mut SqliteConnection) -> Result<Self, sqlx::Error> {
        sqlx::raw_sql("BEGIN").execute(&mut *connection).await?;
        Ok(Self { connection, rows: 0 })
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("COMMIT").execute(self.connection).await.map(|_| ())
    }

    /// Runs a statement without values.
    pub(super) async fn script(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sql).execute(&mut *self.connection).await.map(|_| ())
    }

    /// Inserts all `rows`; `encode` adds the values of one of them.
    pub(super) async fn insert<T>(
        &mut self,
        table: Table<'_>,
        mut rows: impl ExactSizeIterator<Item = T>,
        mut encode: impl FnMut(&mut Cells, T) -> Result<(), BoxDynError>,
    ) -> Result<(), sqlx::Error> {
        let mut left = rows.len();
        let mut next = |left: usize| -> Result<(usize, SqliteArguments), sqlx::Error> {
            let size = SIZES.into_iter().find(|size| *size <= left.min(table.most)).unwrap_or(0);
            let mut cells = Cells(SqliteArguments::default());
            cells.0.reserve(size * table.width, 0);
            for row in rows.by_ref().take(size) {
                encode(&mut cells, row).map_err(sqlx::Error::Encode)?;
            }
            Ok((size, cells.0))
        };
        let mut statement = (0, Arc::from(""));
        let (mut size, mut arguments) = next(left)?;
        while size > 0 {
            left -= size;
            if statement.0 != size {
                statement = (size, table.statement(size));
            }
            let text = AssertSqlSafe(Arc::clone(&statement.1));
            let execute = sqlx::query_with(text, arguments).execute(&mut *self.connection);
            let (executed, encoded) = tokio::join!(execute, async { next(left) });
            executed?;
            self.count(size).await?;
            (size, arguments) = encoded?;
        }
        Ok(())
    }

    async fn count(&mut self, rows: usize) -> Result<(), sqlx::Error> {
        self.rows += rows;
        if self.rows >= TRANSACTION {
            self.rows = 0;
            sqlx::raw_sql("COMMIT; BEGIN").execute(&mut *self.connection).await?;
        }
        Ok(())
    }
}
