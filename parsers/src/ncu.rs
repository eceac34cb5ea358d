//! Nsight Compute, as `ncu --csv` prints it: the `raw` page with a row per kernel and a column per metric, or the `details`
//! page with a row per metric, which it prints as text where it is not asked for CSV. Each kernel was run alone, mostly with cold caches and fixed clocks, so what it says of a
//! kernel is a measurement and no part of a timeline. Source: files of ncu 2024.2 and its manual.

use std::path::{Path, PathBuf};

use model::{Conditions, KernelSummary, Metric, Ns, Provenance, Severity, StringId, TraceSink};
use rustc_hash::FxHashMap;

use crate::{
    Format, Head, Match, Progress, ReadError, ReadOptions,
    csv_table::{self, Row, Table},
    lanes::Account,
};

mod directory;
mod metrics;
mod printed;
#[cfg(test)]
mod tests;
mod value;

use metrics::{CYCLES, DURATION, LABELS, METRICS, STALL, cycles_label, duration_label};

/// The CSV pages of Nsight Compute.
pub const FORMAT: Format =
    Format { id: "ncu", name: "Nsight Compute CSV or text (details or raw page)", matches, read, lead };

/// Columns that both pages begin with.
const MARKS: &[&str] = &["id", "kernel name"];
/// A column that only the details page has.
const SECTION: &str = "section name";
/// Further columns of the raw page that say which kernel a row is about.
const NO_METRIC: [&str; 6] = ["process name", "host name", "context", "stream", "device", "cc"];
/// Columns that say which kernel a row is about.
const IDENTITY: [&str; 5] = ["id", "process id", "kernel name", "block size", "grid size"];

/// Section of metrics that were asked for one by one, which stand there by their ids.
const SINGLE: &str = "Command line profiler metrics";
/// Most further metrics that are kept of a kernel; whole sets have some thousand.
const MOST: usize = 4096;

fn is_header(cells: &[String]) -> bool {
    cells.first().is_some_and(|cell| cell == "id") && csv_table::has_all(cells, MARKS)
}

/// What the program and the profiler print may stand before the header.
fn matches(head: &Head<'_>) -> Match {
    let found = match head.path.is_dir() {
        true => directory::pages(head.path, is_page).is_some(),
        false => is_page(head.bytes) || head.is_text() && printed::matches(head.bytes),
    };
    if found { Match::Certain } else { Match::No }
}

fn is_page(bytes: &[u8]) -> bool {
    let lines = bytes.split(|b| *b == b'\n');
    lines.filter(|line| line.starts_with(b"\"ID\"")).any(|line| is_header(&csv_table::first_header(line)))
}

/// The raw page beside a details page: the same measurements with more digits. Beside a printed page, either page as CSV.
fn lead(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let printed = name.strip_suffix(".details.txt").map(|stem| (stem, &[".raw.csv", ".details.csv"][..]));
    let (stem, pages) = printed.or_else(|| Some((name.strip_suffix(".details.csv")?, &[".raw.csv"][..])))?;
    pages.iter().map(|page| path.with_file_name(format!("{stem}{page}"))).find(|page| page.is_file())
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    match directory::pages(path, is_page).filter(|_| path.is_dir()) {
        Some(pages) => {
            for of_one in pages.into_values() {
                profile(&of_one, sink, options.progress);
            }
        }
        None => {
            let mut kernels = Kernels::default();
            match page(path, &mut kernels, sink, options.progress) {
                Err(ReadError::Malformed { .. }) => printed::read(path, &mut kernels, sink, options.progress)?,
                read => read?,
            }
            kernels.tell(sink);
        }
    }
    for (key, value) in [
        ("hardware.vendor", "nvidia"),
        ("measurement.traced", "ncu"),
        ("software.profiler", "Nsight Compute: kernels alone, clocks and caches as it sets them"),
    ] {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}

/// Reads the pages of one profile: the raw page says what the others do with more digits, and of those each adds to the
/// kernels what the one before it does not have.
fn profile(pages: &[PathBuf], sink: &mut dyn TraceSink, progress: Progress<'_>) {
    let raw = pages.iter().find(|page| page.to_string_lossy().ends_with(".raw.csv"));
    let mut kernels = Kernels::default();
    for path in pages {
        if raw.is_some_and(|raw| raw != path) {
            sink.ledger("pages beside a raw page", 1, 0, 0, "not read: the raw page holds the same");
        } else if let Err(error) = page(path, &mut kernels, sink, progress) {
            sink.stat("ncu.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string()));
        }
    }
    kernels.tell(sink);
}

/// Reads a page.
fn page(path: &Path, kernels: &mut Kernels, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let mut table = Table::open(path, is_header)?;
    let (account, becomes) = if table.header().iter().any(|column| column == SECTION) {
        (details(&mut table, kernels, sink, progress)?, "measurements of kernels; rules of the tool are not kept")
    } else {
        (raw(&mut table, sink, progress)?, "measurements of kernels")
    };
    account.tell(sink, "ncu", "rows", becomes);
    table.tell_damage(sink, "ncu");
    Ok(())
}

/// A kernel of which nothing but its identity is known; `None` where the row does not name one.
fn kernel(sink: &mut dyn TraceSink, row: Row<'_>) -> Option<KernelSummary> {
    let kernel = sink.intern(&row.text(2)?);
    // Launches of whole graphs have shapes of zeros.
    let shape = |cell| value::shape(&row.text(cell)?).filter(|sides| sides.iter().all(|side| *side > 0));
    Some(KernelSummary { grid: shape(4), block: shape(3), ..KernelSummary::of(kernel, Conditions::Isolated) })
}

fn measured(summary: &mut KernelSummary, time: Option<Ns>) {
    summary.total = time;
    summary.range = time.map(|time| (time, time));
}

/// Share of the kernel's cycles in which the mean core had work.
fn cores_busy([active, elapsed]: [Option<f64>; 2]) -> Option<(Metric, f64)> {
    let elapsed = elapsed.filter(|cycles| *cycles > 0.0)?;
    Some((Metric::CoresBusy, 100.0 * active? / elapsed))
}

fn add(sink: &mut dyn TraceSink, mut summary: KernelSummary) -> Ns {
    summary.stalls.sort_by(|a, b| b.1.total_cmp(&a.1));
    let time = summary.total.unwrap_or(0);
    sink.summary(summary);
    time
}

/// The raw page. Its first row holds the unit of each column.
fn raw(table: &mut Table, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<Account, ReadError> {
    let stalls: Vec<(String, StringId)> = table
        .header()
        .iter()
        .filter_map(|column| Some((column.clone(), sink.intern(column.strip_prefix(STALL.0)?.strip_suffix(STALL.1)?))))
        .collect();
    let mut columns: Vec<&str> = IDENTITY.to_vec();
    columns.push(DURATION);
    let first_metric = columns.len();
    columns.extend(METRICS.iter().map(|(_, names)| *names));
    let first_stall = columns.len();
    columns.extend(stalls.iter().map(|(column, _)| column.as_str()));
    let name = columns.len();
    columns.push("device__attribute_display_name");
    let first_cycles = columns.len();
    columns.extend(CYCLES);
    table.select(&columns);
    let read = |column: &String| {
        let named = columns.iter().any(|names| names.split('|').any(|name| name == column));
        column.is_empty() || named || NO_METRIC.contains(&column.as_str()) || column.starts_with("device__attribute")
    };
    let further = table.header().iter().enumerate().filter(|(_, column)| !read(column)).take(MOST);
    let further: Vec<(usize, StringId)> = further.map(|(at, column)| (at, sink.intern(column))).collect();
    let mut further_units: Vec<String> = Vec::new();
    let mut units: Vec<String> = Vec::new();
    let mut account = Account::default();
    while let Some(row) = table.next(progress)? {
        if units.is_empty() && row.text(2).is_none() {
            further_units = further.iter().map(|(at, _)| row.text_in(*at).unwrap_or_default().into_owned()).collect();
            units = (0..columns.len()).map(|cell| row.text(cell).unwrap_or_default().into_owned()).collect();
            continue;
        }
        // Where several processes wrote one file, each wrote its header.
        if row.text(0).is_some_and(|cell| cell == "ID") {
            continue;
        }
        account.read += 1;
        let Some(mut summary) = kernel(sink, row) else {
            account.incomplete += 1;
            continue;
        };
        let unit = |cell: usize| units.get(cell).map_or("", String::as_str);
        measured(&mut summary, row.text(5).and_then(|text| value::time(&text, unit(5))));
        for (cell, (metric, _)) in (first_metric..).zip(METRICS) {
            let value = row.text(cell).and_then(|text| value::number(&text, unit(cell)));
            summary.metrics.extend(value.map(|value| (*metric, value)));
        }
        let cycles = |cell: usize| row.text(cell).and_then(|text| value::number(&text, unit(cell)));
        summary.metrics.extend(cores_busy([cycles(first_cycles), cycles(first_cycles + 1)]));
        for (cell, (_, reason)) in (first_stall..).zip(&stalls) {
            let value = row.text(cell).and_then(|text| value::number(&text, ""));
            summary.stalls.extend(value.map(|value| (*reason, value)));
        }
        for ((at, counter), unit) in further.iter().zip(&further_units) {
            let value = row.text_in(*at).and_then(|text| value::number(&text, unit));
            summary.counters.extend(value.map(|value| (*counter, value)));
        }
        if let Some(name) = row.text(name) {
            sink.manifest("hardware.device", &name, Provenance::Observed);
        }
        account.keep(0, add(sink, summary));
    }
    Ok(account)
}

/// Kernels of details pages: what is known of each, and the cycles of [`CYCLES`].
#[derive(Default)]
struct Kernels {
    known: Vec<(KernelSummary, [Option<f64>; 2])>,
    /// Where a process's kernel with this id stands.
    places: FxHashMap<(String, String), usize>,
}

impl Kernels {
    fn tell(self, sink: &mut dyn TraceSink) {
        for (mut summary, cycles) in self.known {
            summary.metrics.extend(cores_busy(cycles));
            add(sink, summary);
        }
    }
}

/// The details page: the rows of a kernel share its process and id.
fn details(
    table: &mut Table,
    kernels: &mut Kernels,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<Account, ReadError> {
    let [id, process, kernel_name, block, grid] = IDENTITY;
    table.select(&[id, process, kernel_name, block, grid, SECTION, "metric name", "metric unit", "metric value"]);
    let mut account = Account::default();
    while let Some(row) = table.next(progress)? {
        if row.text(0).is_some_and(|cell| cell == "ID") {
            continue;
        }
        account.read += 1;
        let Some(id) = row.text(0) else {
            account.incomplete += 1;
            continue;
        };
        let key = (row.text(1).unwrap_or_default().into_owned(), id.into_owned());
        let place = match kernels.places.get(&key) {
            Some(place) => *place,
            None => {
                let Some(summary) = kernel(sink, row) else {
                    account.incomplete += 1;
                    continue;
                };
                kernels.places.insert(key, kernels.known.len());
                kernels.known.push((summary, [None; 2]));
                kernels.known.len() - 1
            }
        };
        // Rows of the tool's own rules have no metric.
        let (Some(label), Some((summary, cycles))) = (row.text(6), kernels.known.get_mut(place)) else { continue };
        let (section, unit) = (row.text(5).unwrap_or_default(), row.text(7).unwrap_or_default());
        let Some(text) = row.text(8) else { continue };
        if let Some(time) = take(sink, summary, cycles, &[&section, &label, &unit, &text]) {
            account.time = account.time.saturating_add(time);
            account.kept += 1;
        }
    }
    Ok(account)
}

/// Takes a metric, given as its section, label, unit and value: the time that it adds, ns, where it can be read.
fn take(
    sink: &mut dyn TraceSink,
    summary: &mut KernelSummary,
    cycles: &mut [Option<f64>; 2],
    [section, label, unit, text]: &[&str; 4],
) -> Option<Ns> {
    if duration_label(section, label) {
        // A kernel that two pages measure is one, and took as long as the first one says.
        if summary.total.is_some() {
            return Some(0);
        }
        measured(summary, value::time(text, unit));
        return Some(summary.total.unwrap_or(0));
    }
    if let Some(cycles) = cycles_label(section, label).and_then(|which| cycles.get_mut(which)) {
        *cycles = value::number(text, unit);
        return Some(0);
    }
    let value = value::number(text, unit)?;
    if let Some(metric) = labelled(section, label) {
        if summary.metric(metric).is_none() {
            summary.metrics.push((metric, value));
        }
        return Some(0);
    }
    let name = if *section == SINGLE { (*label).to_owned() } else { format!("{section}: {label}") };
    let name = sink.intern(&name);
    if summary.counters.iter().all(|(known, _)| *known != name) && summary.counters.len() < MOST {
        summary.counters.push((name, value));
    }
    Some(0)
}

/// The metric with this label in this section, or with this id where single metrics were asked for.
fn labelled(section: &str, label: &str) -> Option<Metric> {
    let by_label = LABELS.iter().find(|(s, l, _)| *s == section && *l == label).map(|(_, _, metric)| *metric);
    let id = label.to_ascii_lowercase();
    by_label
        .or_else(|| METRICS.iter().find(|(_, ids)| ids.split('|').any(|known| known == id)).map(|(metric, _)| *metric))
}
