//! Rows that wait to be written to a database, many by one statement: a statement for each row would take most of the
//! time of an examination.

use sqlx::{AssertSqlSafe, SqliteConnection};

/// Rows of one statement.
const ROWS: usize = 400;

/// A value of a row.
pub(crate) enum Cell {
    Int(Option<i64>),
    Text(String),
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Cell {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// Rows by the statement that writes them, in the order of their arrival. A statement ends with the one row that it would
/// write: `INSERT INTO t VALUES (?, NULL)`. `@` in it stands for what the names of all tables end with.
#[derive(Default)]
pub(crate) struct Inserts(Vec<(&'static str, Vec<Vec<Cell>>)>);

impl Inserts {
    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, statement: &'static str, cells: [Cell; N]) {
        let rows = match self.0.iter_mut().position(|(known, _)| *known == statement) {
            Some(at) => &mut self.0[at].1,
            None => {
                self.0.push((statement, Vec::new()));
                let last = self.0.len() - 1;
                &mut self.0[last].1
            }
        };
        rows.push(cells.into());
    }

    /// Writes all rows, into tables whose names end with `suffix` where a statement says so.
    pub(crate) async fn write(self, db: &mut SqliteConnection, suffix: &str) -> sqlx::Result<()> {
        for (statement, rows) in self.0 {
            let statement = statement.replace('@', suffix);
            let (head, row) = statement.rsplit_once(" VALUES ").unwrap_or((&statement, ""));
            let mut rows = rows.into_iter().peekable();
            while rows.peek().is_some() {
                let some: Vec<Vec<Cell>> = rows.by_ref().take(ROWS).collect();
                let sql = format!("{head} VALUES {}", vec![row; some.len()].join(","));
                let bind = |query: sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>, cell| {
                    match cell {
                        Cell::Int(value) => query.bind(value),
                        Cell::Text(value) => query.bind(value),
                    }
                };
                some.into_iter().flatten().fold(sqlx::query(AssertSqlSafe(sql)), bind).execute(&mut *db).await?;
            }
        }
        Ok(())
    }
}
