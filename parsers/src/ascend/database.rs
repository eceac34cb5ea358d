//! The database form: `msprof_*.db`, `ascend_pytorch_profiler_*.db` and their ancestors since 2023.
//!
//! | module | owns |
//! | --- | --- |
//! | `tables` | the tables that are read, and those that are known and not read |
//! | `state` | what is known while a database is read |
//! | `names` | strings, labels and facts of the run |
//! | `infos` | what other tables say of a task |
//! | `host` | calls and operators |
//! | `device` | tasks, collectives and counters |
//!
//! Tables exist only when they have rows; columns came, went and changed their meaning. Viewers write into files that they
//! open, so unknown columns and tables mean nothing.

use std::path::Path;

use model::{Severity, TraceSink};

use super::{layout::Layout, times::Times};
use crate::{
    Match, Place, Progress, ReadError,
    sqlite::{
        database::{Database, tell_loss, tell_taken_out},
        scan::Item,
    },
};

mod device;
mod host;
mod infos;
mod names;
mod state;
mod tables;

use state::{Kept, State};
use tables::{MARKS, NOT_READ, TABLES, Table};

/// Whether the SQLite file is of an Ascend profiler.
pub(super) fn matches(path: &Path) -> Match {
    match Database::open(path, malformed) {
        Ok(database) => {
            let has = |table: &str| database.tables.has(table);
            let strings = has("STRING_IDS") && MARKS.iter().any(|mark| has(mark));
            if strings { Match::Certain } else { Match::No }
        }
        Err(_) => Match::No,
    }
}

pub(super) fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database exported by msprof or torch_npu ({why})"),
        next: "export it again with 'msprof --export=on --type=db --output=PROF_DIR'".to_owned(),
    }
}

/// Reads a database. Runs its own runtime, so it must not be called from inside an asynchronous task.
pub(super) fn read(
    path: &Path,
    layout: &Layout,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let mut database = Database::open(path, malformed)?;
    if !TABLES.iter().any(|table| database.tables.has(table.name)) {
        return Err(malformed(path, &"it has neither TASK nor CANN_API"));
    }
    let times = Times::beside(layout, sink);
    let mut state = State::new(sink, layout, database.bytes);
    state.import.times = times;
    let wanted = TABLES.iter().map(|table| (table, table.name.to_owned(), table.columns));
    let plan = database.plan(wanted, "ascend", &mut *state.import.sink);
    plan.read(progress, |table, item| take(&mut state, table, item));
    device::framed(&mut state);
    database.warn("ascend", &mut *state.import.sink);
    for (name, rows) in database.count(|table| !TABLES.iter().any(|read| read.name.eq_ignore_ascii_case(&table.name))) {
        let known = NOT_READ
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(&name) || known.ends_with('_') && name.starts_with(known));
        let why = known.map_or("not read: unknown to this version", |(_, why)| why);
        match rows {
            Some(rows) => state.import.sink.ledger(&name, rows, 0, 0, why),
            None => state.import.stat("unreadable_table", Severity::DataLoss, 1, Some(&name)),
        }
    }
    state.finish();
    Ok(())
}

/// Tables whose rows SQLite numbers as they are written, in the versions that give them no number of their own.
const NUMBERED: [&str; 2] = ["TASK", "PYTORCH_API"];

/// Takes what one range of rowids gave; the rows it stood for.
fn take(state: &mut State<'_>, table: &Table, item: Item) -> u64 {
    match item {
        Item::Page(page) => {
            let Kept { rows, time, incomplete } = (table.take)(state, &page);
            // Tasks have a row in the ledger for each of their types.
            if !table.own_rows && !table.words {
                state.import.sink.ledger(table.name, page.rows as u64, rows, time, table.becomes);
            } else if table.own_rows && incomplete > 0 {
                state.import.sink.ledger(table.name, incomplete, 0, 0, "not kept: incomplete");
            }
            state.import.stat("incomplete_row", Severity::DataLoss, incomplete, Some(table.name));
            page.rows as u64
        }
        Item::Loss(loss) => {
            let becomes = if table.own_rows { "device work" } else { table.becomes };
            if NUMBERED.contains(&table.name) {
                tell_taken_out(&loss, "ascend", table.name, becomes, &mut *state.import.sink);
            }
            tell_loss(&loss, "ascend", table.name, &mut *state.import.sink)
        }
    }
}
