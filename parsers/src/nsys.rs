//! Nsight Systems: the SQLite export, and the report that `nsys` itself makes one of.
//!
//! Exports drift: tables exist only when they have rows, columns come and go with the version of the exporter, and
//! third parties trim and extend them. So the reader takes whatever tables it knows, with whatever columns they have, and
//! says in the ledger what became of each. One table is one line in `tables`.

use std::path::Path;

use model::{Severity, TraceSink};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions,
    sqlite::{
        self,
        database::{Database, tell_loss, tell_taken_out},
        page,
        scan::Item,
        source::TableInfo,
    },
};

mod counters;
mod device;
mod facts;
mod global_id;
mod host;
mod import;
mod names;
mod nvtx;
mod report;
mod settle;
mod tables;
#[cfg(test)]
mod tests;

use import::{Import, Kept};
use tables::{NOT_READ, TABLES, Table, UNKNOWN};

pub use report::REPORT_FORMAT;

/// The SQLite export of Nsight Systems.
pub const FORMAT: Format =
    Format { id: "nsys", name: "Nsight Systems SQLite export", matches, read, lead: crate::alone };

/// Reads the file's table names, because many formats are SQLite files.
fn matches(head: &Head<'_>) -> Match {
    if !head.bytes.starts_with(sqlite::SIGNATURE) {
        return Match::No;
    }
    match Database::open(head.path, malformed) {
        Ok(database) if TABLES.iter().any(|table| database.tables.has(table.name)) => Match::Certain,
        Ok(_) => Match::No,
        Err(_) => Match::Possible,
    }
}

/// The error of a file that is no usable export.
fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("an SQLite database exported by Nsight Systems ({why})"),
        next: "export it again with 'nsys export -t sqlite REPORT.nsys-rep'".to_owned(),
    }
}

/// Whether the table is read.
fn is_known(table: &TableInfo) -> bool {
    TABLES.iter().any(|known| known.name.eq_ignore_ascii_case(&table.name))
}

/// Whether the table holds events that are counted and not read.
fn is_other(table: &TableInfo) -> bool {
    let timed = table
        .columns
        .iter()
        .any(|column| column.eq_ignore_ascii_case("start") || column.eq_ignore_ascii_case("timestamp"));
    !is_known(table) && (timed || NOT_READ.iter().any(|(name, _)| name.eq_ignore_ascii_case(&table.name)))
}

/// Reads an export. Runs its own runtime, so it must not be called from inside an asynchronous task.
fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut database = Database::open(path, malformed)?;
    let mut import = Import::new(sink, database.bytes);
    if database.is_whole() && !TABLES.iter().any(|table| database.tables.has(table.name)) {
        return Err(malformed(path, &"none of its tables is there, such as StringIds or CUPTI_ACTIVITY_KIND_KERNEL"));
    }
    let wanted = TABLES.iter().map(|table| (table, table.name.to_owned(), table.columns));
    let plan = database.plan(wanted, "nsys", &mut *import.sink);
    database.warn("nsys", &mut *import.sink);
    plan.read(options.progress, |table, item| {
        import.table = table.name;
        take(&mut import, table, item)
    });
    settle::settle(&mut import);
    for (name, rows) in database.count(is_other) {
        let why = NOT_READ.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)).map_or(UNKNOWN, |(_, why)| why);
        match rows {
            Some(rows) => import.sink.ledger(&name, rows, 0, 0, why),
            None => import.stat("unreadable_table", Severity::DataLoss, 1, Some(&name)),
        }
    }
    let rest = database.count(|table| !is_known(table) && !is_other(table));
    let rest = rest.into_iter().filter_map(|(_, rows)| rows).fold(0, u64::saturating_add);
    if rest > 0 {
        import.sink.ledger("other tables", rest, 0, 0, "not read: labels and descriptions, no events");
    }
    Ok(())
}

/// Takes what one range of rowids gave; the rows it stood for.
fn take(import: &mut Import<'_>, table: &Table, item: Item) -> u64 {
    match item {
        Item::Page(page) => {
            let Kept { rows, time, incomplete, refused } = (table.take)(import, &page);
            import.sink.ledger(table.name, page.rows as u64, rows, time, table.becomes);
            import.stat("incomplete_row", Severity::DataLoss, incomplete, Some(table.name));
            import.stat("text_beyond_file", Severity::DataLoss, refused, Some(table.name));
            page.rows as u64
        }
        Item::Loss(loss) => {
            tell_taken_out(&loss, "nsys", table.name, table.becomes, &mut *import.sink);
            tell_loss(&loss, "nsys", table.name, &mut *import.sink)
        }
    }
}
