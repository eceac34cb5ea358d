//! rocpd, the SQLite form of rocprofv3 and its default since ROCm 7.
//!
//! Every table carries the id of its capture (`rocpd_region_00003fdc_92cb_…`), so that databases of several processes can
//! be merged into one; the views without that id may be stale or missing and are not read. Source: files of ROCm 7.1
//! (schema 3), sources of rocprofiler-sdk up to schema 4.1.

use std::{collections::BTreeSet, path::Path};

use model::{Severity, TraceSink};

use super::import::Import;
use crate::{
    Format, Head, Match, Place, Progress, ReadError, ReadOptions,
    lanes::Account,
    sqlite::{
        SIGNATURE,
        database::{Database, tell_loss, tell_taken_out},
        scan::Item,
    },
};

mod state;
mod tables;

use state::State;
use tables::{TABLES, Table};

/// The database of rocprofv3.
pub const FORMAT: Format =
    Format { id: "rocpd", name: "rocprofv3 database (rocpd)", matches, read, lead: crate::alone };

fn matches(head: &Head<'_>) -> Match {
    if !head.bytes.starts_with(SIGNATURE) {
        return Match::No;
    }
    match Database::open(head.path, malformed) {
        Ok(database) if !captures(&database).is_empty() => Match::Certain,
        _ => Match::No,
    }
}

/// What the names of tables end with, which is the id of a capture each.
fn captures(database: &Database) -> BTreeSet<String> {
    database.tables.iter().filter_map(|table| Some(after(&table.name, "rocpd_string")?.to_owned())).collect()
}

/// What follows the beginning of a name, in whatever case.
fn after<'n>(name: &'n str, start: &str) -> Option<&'n str> {
    let (head, rest) = name.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database of rocprofv3 ({why})"),
        next: "record again with 'rocprofv3 --runtime-trace --output-format rocpd -- COMMAND'".to_owned(),
    }
}

/// Reads the database. Runs its own runtime, so it must not be called from inside an asynchronous task.
fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut database = Database::open(path, malformed)?;
    let captures = captures(&database);
    if captures.is_empty() {
        return Err(malformed(path, &"it has no table rocpd_string"));
    }
    let mut import = Import::new(sink);
    database.warn("rocprofv3", &mut *import.sink);
    for id in &captures {
        capture(&database, id, &mut import, options.progress);
    }
    let is_read = |name: &str| captures.iter().any(|id| TABLES.iter().any(|t| after(name, t.name) == Some(id)));
    for (name, rows) in database.count(|table| after(&table.name, "rocpd_").is_some() && !is_read(&table.name)) {
        match rows {
            Some(rows) => import.sink.ledger(&name, rows, 0, 0, "not read: no event that another table lacks"),
            None => import.sink.stat("rocprofv3.unreadable_table", Severity::DataLoss, 1, Some(&name)),
        }
    }
    import.settle();
    Ok(())
}

/// Reads the tables of one capture of the database.
fn capture(database: &Database, id: &str, import: &mut Import<'_>, progress: Progress<'_>) {
    let wanted = TABLES.iter().map(|table| (table, format!("{}{id}", table.name), table.columns));
    let plan = database.plan(wanted, "rocprofv3", &mut *import.sink);
    import.process = None;
    let mut state = State::new(import, database.bytes);
    plan.read(progress, |table, item| take(&mut state, table, item));
    state.settle();
}

/// Takes what one range of rowids gave; the rows it stood for.
fn take(state: &mut State<'_, '_>, table: &Table, item: Item) -> u64 {
    match item {
        Item::Page(page) => {
            let mut account = Account { read: page.rows as u64, ..Account::default() };
            for row in 0..page.rows {
                match (table.take)(state, &page, row) {
                    Some((start, end)) => account.keep(start, end),
                    None => account.incomplete += 1,
                }
            }
            account.tell(&mut *state.import.sink, "rocprofv3", table.name, table.becomes);
            account.read
        }
        Item::Loss(loss) => {
            tell_taken_out(&loss, "rocprofv3", table.name, table.becomes, &mut *state.import.sink);
            tell_loss(&loss, "rocprofv3", table.name, &mut *state.import.sink)
        }
    }
}

#[cfg(test)]
mod tests;
