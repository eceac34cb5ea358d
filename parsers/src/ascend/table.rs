//! Tables of tasks on their own: `op_summary_*.csv` and `task_time_*.csv` of `msprof`, `kernel_details.csv` of the
//! framework's profilers. They hold the device's side only: no calls, no links, waits of collectives within their rows.
//! What the tool says a task waited (`Wait Time(us)`) compares rows of different streams and is not read.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{Category, Clock, Ns, ProcessId, Provenance, Severity, TraceSink, TrackKey, TrackKind};

use super::{
    counters::Counted,
    facts::{self, Facts},
    import::{Collective, DeviceTask, Import, Place},
    layout::{self, Layout},
    sums,
    task::Task,
    times::Times,
    told::{self, Told},
};
use crate::{
    Format, Head, Match, Place as Where, Progress, ReadError, ReadOptions,
    csv_table::{self, Row, Table},
};

/// The format.
pub const FORMAT: Format = Format {
    id: "op-summary",
    name: "Ascend table of tasks (op_summary, task_time, kernel_details)",
    matches,
    read,
    lead,
};

/// Columns of the start of a task, old spelling and new.
pub(super) const STARTS: &str = "task start time(us)|start time(us)|task_start(us)";
/// Columns of its duration.
pub(super) const DURATIONS: &str = "task duration(us)|duration(us)|task_time(us)";
/// Columns of its name.
pub(super) const NAMES: &str = "op name|name|kernel_name";
/// Columns of its type.
const TYPES: &str = "task type|accelerator core|kernel_type";
/// The columns that are read, in the order in which [`take`] counts them.
const COLUMNS: [&str; 9] =
    [STARTS, DURATIONS, NAMES, TYPES, "device_id", "step id", "stream id|stream_id", "model id", "block num|block dim"];
/// What is said of operators stands after those in a row, then the counters.
const TOLD: usize = COLUMNS.len();
/// Most steps that are told apart.
const MAX_STEPS: usize = 1 << 16;

/// Whether one of these columns is there.
fn has(header: &[String], names: &str) -> bool {
    names.split('|').any(|name| header.iter().any(|column| column == name))
}

fn is_header(header: &[String]) -> bool {
    // Tables of other profilers have a name, a start and a duration too.
    let own = has(header, TYPES) || has(header, "step id|device_id");
    own && [NAMES, STARTS, DURATIONS].iter().all(|names| has(header, names))
}

fn matches(head: &Head<'_>) -> Match {
    if is_header(&csv_table::first_header(head.bytes)) { Match::Certain } else { Match::No }
}

/// The table of operators of the same export, which says more of the tasks than that of all tasks.
fn lead(path: &Path) -> Option<PathBuf> {
    let rest = layout::name(path).strip_prefix("task_time")?.to_owned();
    let lead = path.with_file_name(format!("op_summary{rest}"));
    lead.is_file().then_some(lead)
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let beside = Layout::of_file(path);
    let layout = Layout {
        tables: vec![path.to_owned()],
        communication: beside.communication,
        facts: beside.facts,
        root: beside.root,
        ..Layout::default()
    };
    read_layout(&layout, sink, options.progress)?;
    let name = layout::name(path);
    let tasks = name.strip_prefix("op_summary").map(|rest| path.with_file_name(format!("task_time{rest}")));
    if let Some(tasks) = tasks.filter(|tasks| tasks.is_file()) {
        sums::read(&tasks, sums::Held::Rows, sink);
    }
    Ok(())
}

/// Reads the tables of a capture that has neither timeline nor database.
pub(super) fn read_layout(layout: &Layout, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    // The framework's table says the step of each kernel; otherwise it is that of the tool below.
    let tables: Vec<&PathBuf> = match &layout.kernels {
        Some(kernels) => vec![kernels],
        None => layout.tables.iter().collect(),
    };
    let said = Facts::read(layout, sink);
    let times = Times::beside(layout, sink);
    let mut import = Import::new(sink);
    import.times = times;
    let process = import.sink.process(0);
    let around = tables.iter().find_map(|path| facts::rank_around(path));
    import.sink.describe_process(process, said.pid, None, said.rank.or(around));
    let mut steps: BTreeMap<(i32, String), (Ns, Ns)> = BTreeMap::new();
    let (mut lost, mut broken, mut kept, mut short) = (0u64, 0u64, 0u64, 0u64);
    let mut counted = Counted::default();
    for path in &tables {
        let mut table = Table::open_lines(path, is_header)?;
        let columns: Vec<&str> = COLUMNS.iter().chain(&told::COLUMNS).copied().collect();
        table.select(&columns);
        counted.head(&table);
        let mut widest = 0;
        while let Some(row) = table.next(progress)? {
            // A row that lacks a cell has the next column's value where another's should stand, and nobody knows from which
            // on. Tables all of whose rows end early lack empty cells at the end.
            widest = widest.max(row.width());
            if row.width() < widest {
                short += 1;
                continue;
            }
            let Some((device, start, end)) = take(&mut import, process, row) else {
                lost += 1;
                continue;
            };
            kept += 1;
            if let Some(name) = row.text(2) {
                counted.add_row(&name, row.int(8), end - start, row);
            }
            if let Some(step) = row.text(5).map(Cow::into_owned)
                && (steps.len() < MAX_STEPS || steps.contains_key(&(device, step.clone())))
            {
                let span = steps.entry((device, step)).or_insert((start, end));
                *span = (span.0.min(start), span.1.max(end));
            }
        }
        broken += table.cut();
        table.tell_damage(import.sink, "ascend");
    }
    if kept == 0 {
        return Err(ReadError::Malformed {
            path: tables.first().map_or_else(|| layout.root.clone(), |path| path.to_path_buf()),
            place: Where::File,
            expected: "rows with the start and the duration of a task".to_owned(),
            next: "export the profile again with 'msprof --export=on'".to_owned(),
        });
    }
    for ((device, step), (start, end)) in steps {
        let key =
            TrackKey { kind: TrackKind::DeviceAnnotation, process, device: Some(device), context: Some(2), id: 0 };
        let track = import.track(key, Some("steps"));
        let name = import.sink.intern(&format!("step {step}"));
        import.slice(track, (start, end), name, Category::DeviceRange, None, None);
    }
    if lost > 0 {
        import.sink.ledger("rows without start or duration", lost, 0, 0, "not kept: incomplete");
    }
    counted.tell(import.sink);
    if short > 0 {
        import.sink.ledger("rows that lack a cell", short, 0, 0, "not kept: their cells stand under other columns");
    }
    import.stat("short_row", Severity::DataLoss, short, None);
    import.stat("incomplete_row", Severity::DataLoss, lost, None);
    import.stat("broken_rows", Severity::DataLoss, broken, None);
    import.sink.clock(Clock::FromFirstSlice { unix_offset: Some(0) });
    import.settle(&|_| None, said.world);
    said.tell(import.sink);
    import.sink.manifest("ascend.form", "table of tasks", Provenance::Observed);
    Ok(())
}

/// Takes a row: its device, start and end.
fn take(import: &mut Import<'_>, process: ProcessId, row: Row<'_>) -> Option<(i32, Ns, Ns)> {
    let (start, dur) = (row.decimal(0, 3)?, row.decimal(1, 3)?);
    let end = start.checked_add(dur)?;
    let device = row.int(4).and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
    let task_type = row.text(3);
    // Tasks that are no operator have a type and no name.
    let name = row.text(2).or_else(|| task_type.clone())?;
    let is_collective = matches!(task_type.as_deref(), Some("HCCL" | "COMMUNICATION")) || name.starts_with("hcom_");
    if is_collective {
        let call = Collective {
            process,
            device,
            group: None,
            start,
            end,
            name: &name,
            connection: None,
            dtype: None,
            count: None,
            group_size: None,
        };
        import.collective("collective", &call);
        return Some((device, start, end));
    }
    // At level 0 the type is not recorded; only operators are listed then.
    let task = task_type.as_deref().map_or(Task::Kernel, |task_type| Task::of(task_type, &name));
    let [op, shapes, dtypes, formats] = [0, 1, 2, 3].map(|cell| row.text(TOLD + cell));
    let inputs = [shapes.as_deref(), dtypes.as_deref(), formats.as_deref()];
    let told = Told::of(import.sink, op.as_deref(), inputs);
    let task = DeviceTask {
        place: Place { process, device, stream: row.int(6).unwrap_or(0) },
        start,
        end,
        name: &name,
        task_type: task_type.as_deref().unwrap_or("no type"),
        task,
        connection: None,
        model: row.int(7),
        blocks: row.int(8).and_then(|blocks| u32::try_from(blocks).ok()),
        told,
        bytes: None,
        direction: None,
    };
    import.task("task", &task);
    Some((device, start, end))
}
