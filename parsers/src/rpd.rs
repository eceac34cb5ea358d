//! rocmProfileData (`runTracer.sh`, `rpd_tracer`), as a database, plain or compressed. vLLM and SGLang on ROCm are often
//! recorded with it.
//!
//! Its tables are called as those of rocprofv3 were called later (`rocpd_…`), without the id of a capture, and say something
//! else: `rocpd_op` is what the device did, `rocpd_api` what the host called, `rocpd_api_ops` which call caused what. Times are
//! ns of the machine's clock since boot. Source: the project's `tableSchema.cmd` of schema 2 and 3, its `rpd_tracer` sources, and
//! the traces it comes with (`examples/rocm-profile-data/results`, `raptor/tests`).

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use model::{Severity, TraceSink};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions, container,
    lanes::Account,
    sqlite::{
        SIGNATURE,
        database::{Database, tell_loss},
        scan::Item,
    },
};

mod tables;
#[cfg(test)]
mod tests;

use tables::{State, TABLES, Table};

/// The database of rocmProfileData.
pub const FORMAT: Format =
    Format { id: "rpd", name: "rocmProfileData database (.rpd, .rpd.gz)", matches, read, lead: crate::alone };

/// Tables that only this program's databases have.
const MARKS: [&str; 3] = ["rocpd_op", "rocpd_api", "rocpd_api_ops"];
/// Bytes that a compressed database may inflate to for each of its own, and beside them. Real ones inflate to the fourfold.
const INFLATED: (u64, u64) = (64, 64 << 20);

fn matches(head: &Head<'_>) -> Match {
    if !head.bytes.starts_with(SIGNATURE) {
        return Match::No;
    }
    match Database::open(head.path, malformed) {
        Ok(database) if is_own(&database) => Match::Certain,
        Ok(_) => Match::No,
        // Compressed: its first pages hold the statements that made the tables, and no other format reads such a file.
        Err(_) => {
            // As SQLite keeps it: the text of the statement, with the name quoted or not.
            let made = |table: &str| {
                let statements = [format!("TABLE \"{table}\""), format!("table {table}("), format!("TABLE {table}(")];
                statements.iter().any(|made| memchr::memmem::find(head.bytes, made.as_bytes()).is_some())
            };
            if MARKS.iter().all(|table| made(table)) { Match::Named } else { Match::No }
        }
    }
}

fn is_own(database: &Database) -> bool {
    MARKS.iter().all(|table| database.tables.has(table))
}

fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database of rocmProfileData ({why})"),
        next: "record again with 'runTracer.sh -o trace.rpd COMMAND'".to_owned(),
    }
}

/// A compressed database as a file that SQLite can open, and whether it was longer than it may be.
fn inflated(path: &Path) -> Result<(tempfile::NamedTempFile, bool), ReadError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ReadError::Io { path, source }
    };
    let most = std::fs::metadata(path).map_err(io(path))?.len().saturating_mul(INFLATED.0).saturating_add(INFLATED.1);
    let temporary = std::env::temp_dir();
    let mut file = tempfile::NamedTempFile::new().map_err(io(&temporary))?;
    let mut source = container::Source::open(path)?;
    let (mut block, mut written) = (Vec::new(), 0u64);
    while source.append_to(&mut block)? {
        written = written.saturating_add(block.len() as u64);
        if written > most {
            return Ok((file, true));
        }
        file.write_all(&block).map_err(io(&temporary))?;
        block.clear();
    }
    Ok((file, false))
}

/// Reads the database. Runs its own runtime, so it must not be called from inside an asynchronous task.
fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut start = [0u8; SIGNATURE.len()];
    let plain = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    // The copy lives until the database is read.
    let copy = if plain.is_ok() && start == *SIGNATURE { None } else { Some(inflated(path)?) };
    if let Some((_, true)) = copy {
        sink.stat("rpd.inflates_too_much", Severity::DataLoss, 1, Some("the rest of the compressed file is not read"));
    }
    let database_path: PathBuf = copy.as_ref().map_or_else(|| path.to_owned(), |(file, _)| file.path().to_owned());
    let mut database = Database::open(&database_path, |_, why| malformed(path, why))?;
    if !is_own(&database) {
        return Err(malformed(path, &"it lacks rocpd_op, rocpd_api or rocpd_api_ops"));
    }
    database.warn("rpd", sink);
    let wanted = TABLES.iter().map(|table| (table, table.name.to_owned(), table.columns));
    let plan = database.plan(wanted, "rpd", sink);
    let mut state = State::new(sink, database.bytes);
    plan.read(options.progress, |table, item| take(&mut state, table, item));
    state.settle();
    let is_read = |name: &str| TABLES.iter().any(|table| table.name.eq_ignore_ascii_case(name));
    for (name, rows) in database.count(|table| table.name.contains('_') && !is_read(&table.name)) {
        match rows {
            Some(_) if name.starts_with("sqlite_") => {}
            Some(rows) => sink.ledger(&name, rows, 0, 0, "not read: no event that another table lacks"),
            None => sink.stat("rpd.unreadable_table", Severity::DataLoss, 1, Some(&name)),
        }
    }
    Ok(())
}

/// Takes what one range of rowids gave; the rows it stood for.
fn take(state: &mut State<'_>, table: &Table, item: Item) -> u64 {
    match item {
        Item::Page(page) => {
            let mut account = Account { read: page.rows as u64, ..Account::default() };
            for row in 0..page.rows {
                match (table.take)(state, &page, row) {
                    Some((start, end)) => account.keep(start, end),
                    None => account.incomplete += 1,
                }
            }
            account.tell(&mut *state.sink, "rpd", table.name, table.becomes);
            account.read
        }
        Item::Loss(loss) => tell_loss(&loss, "rpd", table.name, &mut *state.sink),
    }
}
