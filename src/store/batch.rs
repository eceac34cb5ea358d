//! Bulk inserts. Each statement costs a round trip to SQLite's thread, so a statement carries hundreds of rows, and the
//! next is encoded while SQLite executes the present one.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sqlx::{Arguments, AssertSqlSafe, SqliteConnection, error::BoxDynError, sqlite::SqliteArguments};

/// Rows of a statement. A few fixed sizes keep every text in the statement cache whatever the number of rows.
const SIZES: [usize; 4] = [512, 64, 8, 1];
/// Rows of a transaction; bounds what SQLite keeps in memory.
const TRANSACTION: usize = 1 << 20;

/// A table to insert into.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Number of columns.
    pub(super) width: usize,
    /// Most rows of a statement; less than usual where rows are large.
    pub(super) most: usize,
    /// Columns made in SQL of fewer bound values: every value that is bound costs about as much as a column that is
    /// computed saves, several times over.
    pub(super) packed: Option<Packed>,
}

/// How a row is made of fewer values than it has columns.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    /// The columns, made of the row's values `c1`, `c2`, … and those that all rows share, `$1`, `$2`, …
    pub(super) columns: &'static str,
}

impl Table {
    pub(super) const fn new(name: &'static str, width: usize) -> Self {
        Self { name, width, most: SIZES[0], packed: None }
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
    texts: FxHashMap<(&'static str, usize), Arc<str>>,
    rows: usize,
}

impl<'c> Batch<'c> {
    pub(super) async fn begin(connection: &'c mut SqliteConnection) -> Result<Self, sqlx::Error> {
        sqlx::raw_sql("BEGIN").execute(&mut *connection).await?;
        Ok(Self { connection, texts: FxHashMap::default(), rows: 0 })
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("COMMIT").execute(self.connection).await.map(|_| ())
    }

    /// Inserts all `rows`; `encode` adds the `table.width` values of one of them.
    pub(super) async fn insert<T>(
        &mut self,
        table: Table,
        rows: impl ExactSizeIterator<Item = T>,
        encode: impl FnMut(&mut Cells, T) -> Result<(), BoxDynError>,
    ) -> Result<(), sqlx::Error> {
        self.insert_with(table, &[], rows, encode).await
    }

    /// Like [`insert`](Self::insert) into a table whose rows are packed; `shared` are the values that all rows share.
    pub(super) async fn insert_with<T>(
        &mut self,
        table: Table,
        shared: &[i64],
        mut rows: impl ExactSizeIterator<Item = T>,
        mut encode: impl FnMut(&mut Cells, T) -> Result<(), BoxDynError>,
    ) -> Result<(), sqlx::Error> {
        let mut left = rows.len();
        let mut next = |left: usize| -> Result<(usize, SqliteArguments), sqlx::Error> {
            let size = SIZES.into_iter().find(|size| *size <= left.min(table.most)).unwrap_or(0);
            let mut cells = Cells(SqliteArguments::default());
            cells.0.reserve(shared.len() + size * table.width, 0);
            for row in rows.by_ref().take(size) {
                encode(&mut cells, row).map_err(sqlx::Error::Encode)?;
            }
            for value in shared {
                cells.0.add(*value).map_err(sqlx::Error::Encode)?;
            }
            Ok((size, cells.0))
        };
        let (mut size, mut arguments) = next(left)?;
        while size > 0 {
            left -= size;
            let text = self.text(table, shared.len(), size);
            let execute = sqlx::query_with(AssertSqlSafe(text), arguments).execute(&mut *self.connection);
            let (executed, encoded) = tokio::join!(execute, async { next(left) });
            executed?;
            self.count(size).await?;
            (size, arguments) = encoded?;
        }
        Ok(())
    }

    fn text(&mut self, table: Table, shared: usize, size: usize) -> Arc<str> {
        let text = self.texts.entry((table.name, size)).or_insert_with(|| {
            let rows = vec![format!("({})", vec!["?"; table.width].join(",")); size].join(",");
            match table.packed {
                None => format!("INSERT INTO {} VALUES {rows}", table.name).into(),
                // Shared values are numbered after those of the rows, which stay unnumbered: SQLite searches the list of
                // numbered ones for each value that sqlx binds.
                Some(Packed { columns }) => {
                    let first = size * table.width;
                    let columns = (1..=shared).rev().fold(columns.to_owned(), |columns, i| {
                        columns.replace(&format!("${i}"), &format!("?{}", first + i))
                    });
                    let names = (1..=table.width).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
                    format!(
                        "WITH packed({names}) AS (VALUES {rows}) INSERT INTO {} SELECT {columns} FROM packed",
                        table.name
                    )
                    .into()
                }
            }
        });
        Arc::clone(text)
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
