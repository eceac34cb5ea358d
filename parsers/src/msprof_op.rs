//! `msprof op`: one operator of an Ascend device run alone and measured, as a directory of tables with a row per block
//! (`OpBasicInfo.csv`, `PipeUtilization.csv`, …) or as `visualize_data.bin`. It has no timeline; what it says is a
//! measurement of the operator, like those of Nsight Compute. Source: the tool's documentation of CANN 8.0 and 8.5, and
//! `visualize_data.bin` of msinsight's tests.

use std::path::{Path, PathBuf};

use model::{Provenance, Severity, TraceSink};

use crate::{Format, Head, Match, Place, ReadError, ReadOptions, csv_table};

mod blocks;
#[cfg(test)]
mod tests;
mod visual;

/// The format.
pub const FORMAT: Format =
    Format { id: "msprof-op", name: "msprof op (tables of one operator, visualize_data.bin)", matches, read, lead };

/// Columns of the table with a row per operator; tables of tasks have no process.
const MARKS: [&str; 3] = ["op name", "task duration(us)", "pid"];
/// Columns that the tables with a row per block begin with.
const BLOCK: [&str; 2] = ["block_id", "sub_block_id"];
/// What the table with a row per operator is called; older versions add a time.
const BASIC: &str = "OpBasicInfo";
/// What a viewer reads instead of the tables.
const VISUAL: &str = "visualize_data.bin";
/// Bytes that tell which of the two a file is.
const HEAD: usize = 4096;
/// Most entries of a directory that are looked at; real ones have a dozen.
const MAX_ENTRIES: usize = 4096;

fn is_basic(header: &[String]) -> bool {
    csv_table::has_all(header, &MARKS)
}

fn matches(head: &Head<'_>) -> Match {
    if head.path.is_dir() {
        let own = basic_in(head.path).is_some() || visuals_in(head.path).len() > 1;
        return if own { Match::Certain } else { Match::No };
    }
    let header = csv_table::first_header(head.bytes);
    let own = is_basic(&header) || csv_table::has_all(&header, &BLOCK) || visual::matches(head.bytes);
    if own { Match::Certain } else { Match::No }
}

/// The viewer's files of a directory that holds nothing else: parts of one profile.
fn visuals_in(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten().take(MAX_ENTRIES);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let is_visual = |path: &PathBuf| {
        path.is_file()
            && name(path).ends_with(".bin")
            && crate::container::head(path, HEAD).is_ok_and(|h| visual::matches(&h))
    };
    if !found.iter().all(is_visual) {
        return Vec::new();
    }
    found.sort();
    found
}

/// The table with a row per operator in a directory.
fn basic_in(directory: &Path) -> Option<PathBuf> {
    tables_in(directory).into_iter().find(|path| name(path).starts_with(BASIC))
}

/// The tables of a directory, by name.
fn tables_in(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten().take(MAX_ENTRIES);
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| name(path).ends_with(".csv") && path.is_file()).collect();
    found.sort();
    found
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn lead(path: &Path) -> Option<PathBuf> {
    let basic = basic_in(path.parent()?)?;
    (name(path) != name(&basic) && !path.is_dir()).then_some(basic)
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let head = if path.is_file() { crate::container::head(path, HEAD)? } else { Vec::new() };
    if visual::matches(&head) {
        visual::read(path, sink, options.progress)?;
    } else if path.is_dir() && basic_in(path).is_none() && !visuals_in(path).is_empty() {
        for file in visuals_in(path) {
            if let Err(error) = visual::read(&file, sink, options.progress) {
                sink.stat("msprof-op.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string()));
            }
        }
    } else {
        let directory = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        let own = is_basic(&csv_table::first_header(&head)).then(|| path.to_owned());
        // Without its name an operator is what its blocks did.
        let basic = own.or_else(|| basic_in(directory));
        if basic.is_none() && !csv_table::has_all(&csv_table::first_header(&head), &BLOCK) {
            return Err(ReadError::Malformed {
                path: path.to_owned(),
                place: Place::File,
                expected: format!("{BASIC}.csv in the same directory, or a table with a row per block"),
                next: "give the whole directory that msprof op wrote (OPPROF_*)".to_owned(),
            });
        }
        let tables = if basic.is_some() || path.is_dir() { tables_in(directory) } else { vec![path.to_owned()] };
        blocks::read(basic.as_deref(), &tables, sink, options.progress)?;
        if directory.join(VISUAL).is_file() {
            sink.ledger(VISUAL, 0, 0, 0, "not read: the tables hold the same");
        }
    }
    for (key, value) in [
        ("hardware.vendor", "ascend"),
        ("measurement.traced", "msprof-op"),
        ("software.profiler", "msprof op: one operator alone"),
    ] {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}
