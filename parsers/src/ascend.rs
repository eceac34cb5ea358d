//! Huawei Ascend: what `msprof`, the Ascend PyTorch profiler and the MindSpore profiler write, as directory, as timeline
//! (`trace_view.json`, `msprof_*.json`) or as database.
//!
//! | module | owns |
//! | --- | --- |
//! | `layout` | what lies where in a profiler's output directory |
//! | `task` | what the device's task types are to us |
//! | `collective` | names of collectives and sizes of their elements |
//! | `import` | what both forms write to the sink, so that one capture reads the same from either |
//! | `inside` | tasks that lie inside a collective by time alone |
//! | `timeline` | the text form: events of the timeline |
//! | `arrows` | calls of tasks whose own calls were left out |
//! | `layer` | whose an event of the timeline is |
//! | `kernels` | what only the table of kernels says |
//! | `database` | the database form, table by table |
//! | `table` | a table of tasks on its own |
//! | `totals` | sums by operator on their own |
//! | `sums` | sums that the profiler made beside the capture |
//! | `told` | what a table says of each kernel's operator |
//! | `times` | waits and transfers of collectives that the profiler summed |
//! | `rank_sums` | a rank of which only sums were kept |
//! | `cluster` | sums of all ranks of a job, made by a tool after the run |
//! | `declined` | files of sums that say nothing without the capture they were made from |
//! | `facts` | what the files beside them say of the run |
//!
//! Facts of the format: CANN's `msprof` and torch_npu's profiler sources, and files of 2023 to 2026. A collective's
//! duration holds its waits; the tasks it is made of lie beside it and are not counted as work a second time.

use std::path::Path;

use model::TraceSink;

use crate::{Format, Head, Match, Place, ReadError, ReadOptions, json::member, sqlite};

mod arrows;
mod cluster;
mod collective;
mod counters;
#[cfg(feature = "sqlite")]
mod database;
mod declined;
mod facts;
mod import;
mod inside;
mod kernels;
mod layer;
mod layout;
mod matrix;
mod rank_sums;
mod sums;
mod table;
mod task;
#[cfg(all(test, feature = "sqlite"))]
mod tests;
mod timeline;
mod times;
mod told;
mod totals;

use layout::Layout;
use sums::Held;

pub use cluster::FORMAT as CLUSTER_FORMAT;
pub use declined::FORMAT as DECLINED_FORMAT;
pub use table::FORMAT as TABLE_FORMAT;
pub use totals::FORMAT as TOTALS_FORMAT;

/// The format.
pub const FORMAT: Format = Format {
    id: "ascend",
    name: "Ascend profiler output (msprof, torch_npu, MindSpore): directory, timeline or database",
    matches,
    read,
    lead: crate::alone,
};

/// Layers of the timeline and what happens between them, as only its writers name them.
const NAMES: [&[u8]; 5] = [b"Ascend Hardware", b"CANN", b"Overlap Analysis", b"torch_to_npu", b"enqueue_to_dequeue"];
/// What names of calls begin with.
const BEGINNINGS: [&[u8]; 2] = [b"AscendCL@", b"torch_npu/"];
/// Categories of the arrows between layers.
const CATEGORIES: [&[u8]; 2] = [b"async_npu", b"async_task_queue"];

/// Whether the first bytes of a timeline show whose it is.
fn is_timeline(bytes: &[u8]) -> bool {
    let own = |name: &[u8]| NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    let is_time = |text: &[u8]| text.first().is_some_and(u8::is_ascii_digit);
    member::texts(bytes, "name").any(own)
        || member::texts(bytes, "cat").any(|category| CATEGORIES.contains(&category))
        // Timestamps are text, so that no reader takes them for floats.
        || member::has_key(bytes, "ph") && member::texts(bytes, "ts").any(is_time)
}

fn matches(head: &Head<'_>) -> Match {
    if head.path.is_dir() {
        return if Layout::is_output(head.path) { Match::Certain } else { Match::No };
    }
    if head.bytes.starts_with(sqlite::SIGNATURE) {
        #[cfg(feature = "sqlite")]
        return database::matches(head.path);
        #[cfg(not(feature = "sqlite"))]
        return Match::No;
    }
    let bytes = head.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head.bytes).trim_ascii_start();
    if bytes.starts_with(b"[") && is_timeline(bytes) { Match::Certain } else { Match::No }
}

/// Reads an output directory, a timeline or a database. Must not be called from inside an asynchronous task.
fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let layout = if path.is_dir() { Layout::of(path) } else { Layout::of_file(path) };
    #[cfg(feature = "sqlite")]
    if let Some(database) = &layout.database {
        database::read(database, &layout, sink, options.progress)?;
        for timeline in &layout.timelines {
            sink.ledger(&layout::name(timeline), 0, 0, 0, "not read: the database holds the same");
        }
        return beside(&layout, Held::Rows, sink);
    }
    let mut held = Held::Rows;
    if !layout.timelines.is_empty() {
        timeline::read(&layout, sink, options.progress)?;
        for table in &layout.tables {
            sink.ledger(&layout::name(table), 0, 0, 0, "not read: the timeline holds the same tasks");
        }
    } else if !layout.tables.is_empty() || layout.kernels.is_some() {
        table::read_layout(&layout, sink, options.progress)?;
    } else if layout.database.is_some() {
        return Err(ReadError::WithoutSqlite { path: path.to_owned() });
    } else {
        rank_sums::read(&layout, sink).map_err(|damage| without_rows(path, &layout, damage))?;
        held = Held::Sums;
    }
    if let Some(database) = &layout.database {
        sink.ledger(&layout::name(database), 0, 0, 0, "not read: this build reads no SQLite");
    }
    beside(&layout, held, sink)
}

/// Takes what lies beside the capture, and says what its sums can be held against.
fn beside(layout: &Layout, held: Held, sink: &mut dyn TraceSink) -> Result<(), ReadError> {
    for path in &layout.sums {
        sums::read(path, held, sink);
    }
    #[cfg(feature = "sqlite")]
    if let Some(path) = layout.analysis() {
        sums::read_database(path, held, sink);
    }
    matrix::read(layout, sink);
    for (file, why) in &layout.not_read {
        sink.ledger(file, 0, 0, 0, why);
    }
    Ok(())
}

/// The error of a directory in which nothing has a place in time; `damage` is what was wrong with the sums of its collectives.
fn without_rows(path: &Path, layout: &Layout, damage: Option<String>) -> ReadError {
    let wanted = "a timeline, a database or a table of kernels of the Ascend profiler in this directory";
    let sums = layout.sums_only();
    let (found, next) = if let Some(damage) = damage {
        (format!("found sums only, and of those {damage}"), WHOLE)
    } else if layout.is_raw() {
        ("found raw data only".to_owned(), EXPORT)
    } else if sums.is_empty() {
        ("found no file of it".to_owned(), WHOLE)
    } else {
        let named = sums.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if sums.len() > NAMED { ", …" } else { "" };
        (format!("found only {named}{more}, which say no times at which anything ran"), WHOLE)
    };
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("{wanted}, {found}"),
        next: next.to_owned(),
    }
}

/// Files that an error names.
const NAMED: usize = 4;
/// What to do where raw data was not exported.
const EXPORT: &str =
    "run 'msprof --export=on --output=DIR' or torch_npu.profiler.profiler.analyse(DIR) where it was taken";
/// What to do where files of an export are missing.
const WHOLE: &str = "give the directory as the profiler wrote it, with trace_view.json, kernel_details.csv or \
                     ascend_pytorch_profiler*.db, or at least with a whole communication.json or analysis.db";
