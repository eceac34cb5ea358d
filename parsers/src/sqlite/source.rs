//! The database as a source: opened read-only and immutable, its real tables and columns probed, never trusted.
//!
//! All queries go through [`Cursor`]: sqlx asks for the names of a result's columns, which are those of the file, and its
//! thread ends where one of them is not UTF-8; who waits for its answer then waits for ever.

use std::path::Path;

use rustc_hash::FxHashMap;
use sqlx::{
    ConnectOptions, Connection, SqliteConnection,
    sqlite::{LockedSqliteHandle, SqliteConnectOptions},
};

use super::{
    SIGNATURE,
    cursor::{Cell, Cursor},
};

/// Most columns of a table that are looked at; real tables have fewer than fifty.
const MAX_COLUMNS: usize = 256;
/// Most tables that are looked at; real exports have fewer than two hundred.
const MAX_TABLES: i64 = 4096;
/// Most bytes of a column's name: SQLite's own limit is the length of a statement.
const MAX_NAME: usize = 1024;

/// A real table of the database.
#[derive(Clone, Debug)]
pub(crate) struct TableInfo {
    /// Name as the database spells it.
    pub name: String,
    /// Its columns; generated ones are left out, because reading them would run SQL of the file's author.
    pub columns: Vec<String>,
    /// First and last rowid; `None` when the table is empty.
    pub rows: Option<(i64, i64)>,
    /// Whether there are rows after the last that damage keeps out of reach.
    pub end_unreadable: bool,
    /// Name by which the rowid can be reached, `None` when the table has none.
    pub rowid: Option<&'static str>,
    /// Whether SQLite itself numbered the rows, one after the other: a number that is absent is a row that was taken out.
    pub numbered: bool,
}

impl TableInfo {
    /// The column that `name` means, as the table spells it. SQLite compares names without case; profilers of one family
    /// write `dev-id`, `dev_id` and `devId` for the same column.
    pub fn column(&self, name: &str) -> Option<&str> {
        let letters = |name: &str| {
            name.bytes().filter(|b| !matches!(b, b'-' | b'_')).map(|b| b.to_ascii_lowercase()).collect::<Vec<_>>()
        };
        let exact = self.columns.iter().find(|column| column.eq_ignore_ascii_case(name));
        exact
            .or_else(|| {
                let wanted = letters(name);
                self.columns.iter().find(|column| !wanted.is_empty() && letters(column) == wanted)
            })
            .map(String::as_str)
    }
}

/// The real tables of a database. As in SQLite, upper and lower case are the same name.
#[derive(Debug, Default)]
pub(crate) struct Tables(FxHashMap<String, TableInfo>);

impl Tables {
    /// The table with this name.
    pub fn get(&self, name: &str) -> Option<&TableInfo> {
        self.0.get(&name.to_ascii_lowercase())
    }

    /// Whether there is a table with this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All tables, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &TableInfo> {
        self.0.values()
    }
}

/// Opens the file without ever changing it or its directory.
///
/// `writable_schema` lets SQLite read a file that is shorter than its header says or whose schema has a damaged entry;
/// on an immutable connection nothing can be written with it.
pub(crate) async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(true)
        .pragma("trusted_schema", "OFF")
        .pragma("cell_size_check", "ON")
        .pragma("writable_schema", "ON")
        .disable_statement_logging();
    SqliteConnection::connect_with(&options).await
}

/// An identifier in double quotes.
pub(crate) fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// First texts of a query's rows, at most `most` of them.
fn texts(db: &mut LockedSqliteHandle<'_>, sql: &str, column: usize, most: usize) -> Result<Vec<String>, String> {
    let mut cursor = Cursor::open(db, sql, &[])?;
    let mut texts = Vec::new();
    while texts.len() < most && cursor.next()? {
        if let Cell::Bytes(bytes) = cursor.cell(column, MAX_NAME) {
            texts.push(String::from_utf8_lossy(bytes).into_owned());
        }
    }
    Ok(texts)
}

/// The real tables by name, views and virtual tables left out. The second value names what could not be probed.
pub(crate) fn tables(db: &mut LockedSqliteHandle<'_>, file_bytes: u64) -> Result<(Tables, Vec<String>), String> {
    let sql = format!(
        "SELECT CAST(substr(name, 1, 200) AS TEXT) FROM sqlite_master WHERE type = 'table' AND rootpage > 0 LIMIT {MAX_TABLES}"
    );
    let (mut tables, mut failed) = (Tables::default(), Vec::new());
    for name in texts(db, &sql, 0, usize::MAX)? {
        match probe(db, &name, file_bytes) {
            Ok(table) => {
                tables.0.insert(name.to_ascii_lowercase(), table);
            }
            Err(_) => failed.push(name),
        }
    }
    Ok((tables, failed))
}

/// Names under which the database has no real table but a view or a virtual table: what it gives is made by the SQL of the file's
/// author, so nothing is read of it.
pub(crate) fn made_up(db: &mut LockedSqliteHandle<'_>) -> Result<Vec<String>, String> {
    let sql = format!(
        "SELECT CAST(substr(name, 1, 200) AS TEXT) FROM sqlite_master WHERE type = 'view' OR type = 'table' AND rootpage = 0 LIMIT {MAX_TABLES}"
    );
    texts(db, &sql, 0, usize::MAX)
}

fn probe(db: &mut LockedSqliteHandle<'_>, name: &str, file_bytes: u64) -> Result<TableInfo, String> {
    let table = quote(name);
    let columns = texts(db, &format!("PRAGMA table_info({table})"), 1, MAX_COLUMNS)?;
    let free = |alias: &&str| !columns.iter().any(|column| column.eq_ignore_ascii_case(alias));
    let rowid = ["rowid", "_rowid_", "oid"].into_iter().find(free);
    let mut info =
        TableInfo { name: name.to_owned(), columns, rows: None, end_unreadable: false, rowid, numbered: false };
    let Some(rowid) = rowid else { return Ok(info) };
    if Cursor::open(db, &format!("SELECT {rowid} FROM {table} LIMIT 0"), &[]).is_err() {
        info.rowid = None;
        return Ok(info);
    }
    // Where damage hides the first row, the rows are looked for from the usual first one on.
    let first = one(db, &format!("SELECT min({rowid}) FROM {table}")).unwrap_or(Some(1));
    let last = match one(db, &format!("SELECT max({rowid}) FROM {table}")) {
        Ok(last) => last,
        Err(_) => {
            info.end_unreadable = true;
            last_readable(db, &table, rowid, first.unwrap_or(1), file_bytes)
        }
    };
    info.rows = first.zip(last);
    info.numbered = !info.end_unreadable && is_numbered(db, name).unwrap_or(false);
    Ok(info)
}

/// Whether no column is the number of its row, or SQLite counts that on by itself.
fn is_numbered(db: &mut LockedSqliteHandle<'_>, name: &str) -> Result<bool, String> {
    let mut cursor = Cursor::open(db, &format!("PRAGMA table_info({})", quote(name)), &[])?;
    let mut own = false;
    while cursor.next()? {
        let integer = matches!(cursor.cell(2, MAX_NAME), Cell::Bytes(kind) if kind.eq_ignore_ascii_case(b"INTEGER"));
        own |= integer && matches!(cursor.cell(5, 0), Cell::Int(place) if place > 0);
    }
    drop(cursor);
    let literal = name.replace('\'', "''");
    let counted = format!("SELECT count(*) FROM sqlite_master WHERE name = '{literal}' AND sql LIKE '%AUTOINCREMENT%'");
    Ok(!own || one(db, &counted)? == Some(1))
}

/// The last row that can be reached when the end of the table cannot, as in a file that was cut off. Assumes that what
/// is missing is the end, which is how tables are written; damage further ahead makes it find too few rows.
fn last_readable(
    db: &mut LockedSqliteHandle<'_>,
    table: &str,
    rowid: &str,
    first: i64,
    file_bytes: u64,
) -> Option<i64> {
    // A table has no more rows than the file has bytes.
    let (mut good, mut bad, mut last) = (first, first.saturating_add_unsigned(file_bytes), None);
    while bad.saturating_sub(good) > 1 {
        let middle = good.midpoint(bad);
        let sql = format!("SELECT max({rowid}) FROM {table} WHERE {rowid} <= {middle}");
        match one(db, &sql) {
            Ok(found) => (good, last) = (middle, found),
            Err(_) => bad = middle,
        }
    }
    last
}

/// The number that a query gives.
fn one(db: &mut LockedSqliteHandle<'_>, sql: &str) -> Result<Option<i64>, String> {
    let mut cursor = Cursor::open(db, sql, &[])?;
    Ok(match cursor.next()?.then(|| cursor.cell(0, 0)) {
        Some(Cell::Int(number)) => Some(number),
        _ => None,
    })
}

/// Rows of a table, `None` when damage keeps them from being counted.
pub(crate) fn count(db: &mut LockedSqliteHandle<'_>, table: &str) -> Option<u64> {
    let count = one(db, &format!("SELECT count(*) FROM {}", quote(table))).ok().flatten()?;
    u64::try_from(count).ok()
}

/// Size in bytes that the file's header promises: page size times pages (bytes 16 and 28 of the header).
pub(crate) fn expected_bytes(path: &Path) -> Option<u64> {
    let mut header = [0; 32];
    input::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut header)).ok()?;
    let [.., p0, p1, _, _, _, _, _, _, _, _, _, _, n0, n1, n2, n3] = header;
    let page = match u16::from_be_bytes([p0, p1]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    Some(page * u64::from(u32::from_be_bytes([n0, n1, n2, n3])))
}

/// Whether another database begins at a byte of the file: two that were joined to one file, of which SQLite reads the first.
pub(crate) fn is_followed(path: &Path, at: u64) -> bool {
    let mut magic = [0; SIGNATURE.len()];
    let read = input::open(path).and_then(|mut file| {
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(at))?;
        std::io::Read::read_exact(&mut file, &mut magic)
    });
    at > 0 && read.is_ok() && magic == SIGNATURE
}
