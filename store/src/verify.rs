//! Everything that can be wrong with a capture file: bytes that are not those that were written, a database that SQLite
//! finds broken, rows that contradict each other or the columns beside them.

use std::path::Path;

use futures_util::TryStreamExt;
use sqlx::AssertSqlSafe;

use super::{
    Error,
    load::{self, Form},
    open::Session,
    reader::{Outcome, Reader},
};

/// What a look at a whole file gave.
#[derive(Debug, Default)]
pub struct Verification {
    /// Schema version; `None` where the file could not be opened.
    pub version: Option<u32>,
    /// Whether the file has a seal, which is what its bytes can be held against.
    pub sealed: bool,
    /// Pages of the file, and bytes of a page; 0 without a seal.
    pub pages: (u64, u64),
    /// Captures that could be read.
    pub captures: u64,
    /// Slices of these.
    pub slices: u64,
    /// What is wrong; nothing of a file that is sound as far as can be said.
    pub faults: Vec<Fault>,
}

impl Verification {
    /// Whether every byte is known to be what was written, and nothing contradicts anything.
    pub fn is_sound(&self) -> bool {
        self.sealed && self.faults.is_empty()
    }
}

/// Something that is wrong with a file.
#[derive(Debug)]
pub enum Fault {
    /// It cannot be opened.
    Closed(Error),
    /// Pages that are not what was written.
    Pages {
        /// How many.
        count: u64,
        /// Number of the first, from 1 as SQLite counts.
        first: u64,
    },
    /// A table lies on such pages.
    Table(String),
    /// Such pages belong to no table: what they held is read by nothing.
    Unused,
    /// SQLite finds the database broken, and says how.
    Structure(String),
    /// The captures cannot be read.
    Unreadable(Error),
    /// The slices of a capture are not the same in rows, for SQL, and in columns, for reports.
    Differs {
        /// The capture, from 1.
        capture: u64,
        /// Row of the track.
        track: u64,
    },
    /// Rows of slices that belong to no track.
    Stray(u64),
}

/// Looks at a whole file.
///
/// # Errors
/// [`Error::NotACapture`], [`Error::Version`] and [`Error::Io`]: what is wrong with a capture file of a schema version
/// that this program knows is told in the result.
pub fn verify(path: &Path) -> Result<Verification, Error> {
    let mut found = Verification::default();
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(e @ Error::Altered { .. }) => {
            found.faults.push(Fault::Closed(e));
            return Ok(found);
        }
        Err(e) => return Err(e),
    };
    found.version = Some(reader.version);
    if let Some(seal) = &reader.seal {
        found.sealed = true;
        found.pages = (seal.pages() as u64, seal.page as u64);
    }
    let altered = altered_pages(&mut reader, path)?;
    if let Some(first) = altered.first() {
        found.faults.push(Fault::Pages { count: altered.len() as u64, first: *first });
        let tables = Session::over(path, reader).and_then(|mut session| altered_tables(&mut session, &altered));
        match tables {
            Ok(tables) if tables.is_empty() => found.faults.push(Fault::Unused),
            Ok(tables) => found.faults.extend(tables.into_iter().map(Fault::Table)),
            Err(_) => found.faults.push(Fault::Table("sqlite_schema".to_owned())),
        }
        return Ok(found);
    }
    agree(path, &mut found)?;
    Ok(found)
}

/// Pages, from 1 as SQLite counts, that are not what was sealed.
fn altered_pages(reader: &mut Reader, path: &Path) -> Result<Vec<u64>, Error> {
    let pages = reader.seal.as_ref().map_or(0, super::seal::Seal::pages);
    let mut altered = Vec::new();
    for page in 0..pages {
        match reader.check(page) {
            Outcome::Whole | Outcome::Short => {}
            Outcome::Altered => altered.push(page as u64 + 1),
            Outcome::Failed => return Err(Error::io(path, "read")(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
    Ok(altered)
}

/// Tables that lie on altered pages: a walk through the pages of one meets them.
fn altered_tables(session: &mut Session, altered: &[u64]) -> Result<Vec<String>, Error> {
    let is_altered = |page: i64| u64::try_from(page).is_ok_and(|page| altered.binary_search(&page).is_ok());
    let mut tables = Vec::new();
    for table in ["sqlite_schema".to_owned()].into_iter().chain(session.table_names()?) {
        let meets = session.run(async |connection, _| {
            let sql = "SELECT pageno FROM dbstat WHERE name = ?";
            let mut pages = sqlx::query_scalar::<_, i64>(sql).bind(&table).fetch(connection);
            loop {
                match pages.try_next().await {
                    Ok(Some(page)) if is_altered(page) => break true,
                    Ok(Some(_)) => {}
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            }
        });
        if meets {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// What in a file whose bytes are as they were written contradicts the rest of it.
fn agree(path: &Path, found: &mut Verification) -> Result<(), Error> {
    match Session::read(path).and_then(|mut session| said_of_structure(&mut session)) {
        Ok(Some(said)) => found.faults.push(Fault::Structure(said)),
        Ok(None) => {}
        Err(e @ Error::Io { .. }) => return Err(e),
        Err(e) => {
            found.faults.push(Fault::Unreadable(e));
            return Ok(());
        }
    }
    let by = |form| load::load_form(path, form);
    let (columns, rows) = match by(Form::Columns).and_then(|columns| Ok((columns, by(Form::Rows)?))) {
        Ok(both) => both,
        Err(e @ Error::Io { .. }) => return Err(e),
        Err(e) => {
            found.faults.push(Fault::Unreadable(e));
            return Ok(());
        }
    };
    found.captures = columns.len() as u64;
    found.slices = columns.iter().map(|trace| trace.slice_count() as u64).sum();
    let mut track = 0;
    for ((a, b), capture) in columns.iter().zip(&rows).zip(1..) {
        for (a, b) in a.lanes.iter().zip(&b.lanes) {
            if a != b {
                found.faults.push(Fault::Differs { capture, track });
            }
            track += 1;
        }
    }
    let sql = "SELECT count(*) FROM slice";
    let all = Session::read(path)?.run(async |connection, path| {
        let count = sqlx::query_scalar::<_, i64>(sql).fetch_one(connection).await;
        count.map_err(Error::sqlite(path, "read"))
    })?;
    match u64::try_from(all).unwrap_or(0).saturating_sub(found.slices) {
        0 => {}
        stray => found.faults.push(Fault::Stray(stray)),
    }
    Ok(())
}

/// The first that SQLite finds broken.
fn said_of_structure(session: &mut Session) -> Result<Option<String>, Error> {
    let said = session.run(async |connection, path| {
        let sql = AssertSqlSafe("PRAGMA integrity_check(1)");
        sqlx::query_scalar::<_, String>(sql).fetch_one(connection).await.map_err(Error::sqlite(path, "read"))
    })?;
    Ok(Some(said).filter(|said| said != "ok"))
}
