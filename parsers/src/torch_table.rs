//! The table that `prof.key_averages().table()` of PyTorch's profiler prints, as it is pasted into a log or a report: a row per
//! name with the time of the host and of the device that it took itself. Nothing in it has a place in time, so rows are
//! summaries. A file may hold the table several times, sorted differently and each cut after some rows. Source:
//! `torch/autograd/profiler_util.py`, `_build_table`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use model::{Conditions, KernelSummary, Ns, Provenance, Severity, TraceSink};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions, hip,
    lanes::Account,
    lines::{Lines, plain, unquoted},
    printed_table::{cell, dashes},
};

/// The format.
pub const FORMAT: Format = Format {
    id: "torch-table",
    name: "table of PyTorch's profiler as text (key_averages)",
    matches,
    read,
    lead: crate::alone,
};

/// Longest line that is read whole.
const LINE: usize = 64 << 10;
/// Most rows that are kept; a table is cut after a hundred unless asked otherwise.
const MAX_ROWS: usize = 1 << 16;
/// Statistic of tables that are of other runs than the one that was read.
const OTHER_RUNS: &str = "torch-table.other_runs";
/// Names of columns.
const SELF_HOST: &str = "self cpu";
const CALLS: &str = "# of calls";
/// What the names of ranges begin with that the profiler draws onto the device by itself.
const RANGES: [&str; 4] = ["## Call CompiledFxGraph", "execute_new_", "execute_context_", STEP];
/// What the range of a step of the profiler's schedule is called; its count is that of the recorded steps.
const STEP: &str = "ProfilerStep";
/// Words for a step's time by a clock in the lines around the tables: `12.3 ms/step`, `12.3 ms per iteration`.
const PER_STEP: [&str; 5] = ["/step", "/iter", " per step", " per iteration", " per iter"];
/// What the names of calls of the runtimes begin with, before a capital letter: no operator, although work that they launch outside
/// of every operator is theirs in the table.
const RUNTIMES: [&str; 6] = ["cuda", "cu", "hip", "musa", "mu", "aclrt"];

/// The columns that are read.
struct Columns {
    spans: Vec<(usize, usize)>,
    host: usize,
    device: Option<usize>,
    calls: usize,
}

impl Columns {
    fn of(names: &str, spans: Vec<(usize, usize)>) -> Option<Self> {
        let last = spans.len() - 1;
        let names: Vec<String> =
            spans.iter().enumerate().map(|(i, span)| cell(names, *span, i == last).to_ascii_lowercase()).collect();
        let place = |is: &dyn Fn(&str) -> bool| names.iter().position(|name| is(name));
        // `Self CUDA`, `Self XPU`, `Self NPU`, `Self PrivateUse1`; shares end with `%`, sizes with `Mem`.
        let of_device = |name: &str| {
            name.strip_prefix("self ")
                .is_some_and(|rest| !rest.ends_with('%') && !rest.ends_with("mem") && rest != "cpu")
        };
        let (host, calls) = (place(&|name| name == SELF_HOST)?, place(&|name| name == CALLS)?);
        names.first().filter(|name| *name == "name")?;
        Some(Self { device: place(&of_device), spans, host, calls })
    }

    fn get(&self, line: &str, place: usize) -> Option<String> {
        self.spans.get(place).map(|span| cell(line, *span, place + 1 == self.spans.len()))
    }
}

/// One run of the profiler: the tables that it printed, sorted differently or cut differently, end with the same totals.
#[derive(Default)]
struct Run {
    rows: BTreeSet<Row>,
    /// What the host and the device took in all, ns, where a table says it.
    host: Option<Ns>,
    device: Option<Ns>,
}

impl Run {
    fn time(&self) -> Ns {
        self.host.unwrap_or(0).saturating_add(self.device.unwrap_or(0))
    }
}

/// The longest of several runs in one file, such as a page that quotes them: their sums added up are sums of nothing.
#[derive(Default)]
struct Longest {
    run: Option<Run>,
    /// Tables of other runs.
    others: u64,
}

impl Longest {
    /// Takes a table.
    fn take(&mut self, table: Run) {
        match &mut self.run {
            _ if table.rows.is_empty() => {}
            Some(run) if (run.host, run.device) == (table.host, table.device) => run.rows.extend(table.rows),
            Some(run) if run.time() >= table.time() => self.others += 1,
            known => {
                self.others += u64::from(known.is_some());
                *known = Some(table);
            }
        }
    }
}

/// A line without terminal colours, without the quotes of a notebook's output, and without the processes that an engine's log names
/// before each line; and these processes: `(EngineCore_DP0 pid=1) (Worker_TP0 pid=2) `.
fn bare(line: &[u8]) -> (String, String) {
    let line = unquoted(plain(line));
    let mut rest = line.as_ref();
    while let Some((_, after)) =
        rest.strip_prefix('(').and_then(|inner| inner.split_once(") ")).filter(|(who, _)| who.contains(" pid="))
    {
        rest = after;
    }
    let (who, rest) = line.split_at(line.len() - rest.len());
    (who.to_owned(), rest.trim_end().to_owned())
}

/// A time with its unit, ns.
fn time(text: &str) -> Option<Ns> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let exponent = match text.get(digits.len()..)? {
        "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return None,
    };
    model::time::parse_decimal(digits.as_bytes(), exponent).ok().map(|(ns, _)| ns)
}

/// The time of a step by a clock, ns, where a line says one: a time with a unit before a word of [`PER_STEP`], or the first time of a
/// line that begins with the wall time of a step (`full_step_wall  mean=7161.9 ms`).
fn step(line: &str) -> Option<Ns> {
    let line = line.to_ascii_lowercase();
    let spaced = |text: &str| {
        let mut words = text
            .split(|c: char| c.is_whitespace() || matches!(c, '=' | ':' | '(' | '~'))
            .rev()
            .filter(|word| !word.is_empty());
        let last = words.next()?;
        time(last).or_else(|| time(&format!("{}{last}", words.next()?)))
    };
    // Steps that warm up are not those of the table.
    if line.contains("warm") {
        return None;
    }
    let before = PER_STEP.iter().find_map(|word| spaced(line.split_once(word)?.0));
    let of_wall = || {
        let name = line.split_whitespace().next().filter(|name| name.contains("step") && name.contains("wall"))?;
        let (value, _) = line.strip_prefix(name).unwrap_or(&line).trim_start().split_once("ms")?;
        spaced(&format!("{value}ms"))
    };
    before.or_else(of_wall).filter(|ns| *ns > 0)
}

fn is_call(name: &str) -> bool {
    let capital = |rest: &str| rest.chars().next().is_some_and(char::is_uppercase);
    RUNTIMES.iter().any(|begin| name.strip_prefix(begin).is_some_and(capital))
}

/// A row: name, calls, and what the host and the device took, ns.
type Row = (String, u64, Ns, Ns);

fn row(columns: &Columns, line: &str) -> Option<Row> {
    let name = columns.get(line, 0).filter(|name| !name.is_empty())?;
    let calls = columns.get(line, columns.calls)?.parse().ok()?;
    let host = time(&columns.get(line, columns.host)?)?;
    let device = columns.device.map_or(Some(0), |place| time(&columns.get(line, place)?))?;
    Some((name, calls, host.max(0), device.max(0)))
}

fn matches(head: &Head<'_>) -> Match {
    if !head.is_text() && !head.is_notebook() {
        return Match::No;
    }
    let mut before = String::new();
    let mut known = false;
    for line in head.bytes.split(|byte| *byte == b'\n') {
        let (_, line) = bare(line);
        // The names stand between two lines of dashes.
        known |= dashes(&line).is_some_and(|spans| Columns::of(&before, spans).is_some());
        before = line;
    }
    if known { Match::Named } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut lines = Lines::open(path, LINE)?;
    let (mut before, mut columns): (String, Option<Columns>) = (String::new(), None);
    let (mut longest, mut run, mut account, mut beyond) =
        (Longest::default(), Run::default(), Account::default(), 0u64);
    let mut totals: BTreeMap<&str, Ns> = BTreeMap::new();
    let mut tables = 0u64;
    // Of several processes that print their tables into one log, the one that comes first.
    let mut printed: Option<String> = None;
    while let Some(line) = lines.next()? {
        let (who, line) = bare(line);
        if printed.as_ref().is_some_and(|first| *first != who) {
            continue;
        }
        if let Some((what, total)) =
            line.split_once(" time total: ").and_then(|(what, time)| Some((what, self::time(time)?)))
        {
            let known = if what.ends_with("CPU") { &mut run.host } else { &mut run.device };
            *known = Some(total);
            columns = None;
        } else if let Some(spans) = dashes(&line) {
            // The last line of dashes stands under the rows.
            columns = Columns::of(&before, spans);
            tables += u64::from(columns.is_some());
            if columns.is_some() {
                longest.take(std::mem::take(&mut run));
                printed.get_or_insert(who);
            }
        } else if columns.is_none() {
            if let Some(ns) = step(&line) {
                // Of several measurements the first is the one that a summary begins with.
                totals.entry("totals.step_ns").or_insert(ns);
            }
        } else if let Some(columns) =
            columns.as_ref().filter(|columns| columns.get(&line, 0).is_some_and(|name| !name.is_empty()))
        {
            // With stacks, a row is followed by lines that hold no more than its callers.
            account.read += 1;
            match row(columns, &line) {
                Some(row) if run.rows.len() < MAX_ROWS || run.rows.contains(&row) => {
                    run.rows.insert(row);
                }
                Some(_) => beyond += 1,
                None => account.incomplete += 1,
            }
        }
        before = line;
        let (done, total) = lines.progress();
        (options.progress)(done, total);
    }
    longest.take(run);
    let Some(Run { rows, host, device }) = longest.run else {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("rows of a table of key_averages ({tables} tables, no row that could be read)"),
            next: "export the trace with prof.export_chrome_trace and give that".to_owned(),
        });
    };
    totals.extend(
        [("totals.host_ns", host), ("totals.device_ns", device)].into_iter().filter_map(|(k, ns)| Some((k, ns?))),
    );
    if longest.others > 0 {
        let why = "tables of other runs, which end with other totals; split the file";
        sink.stat(OTHER_RUNS, Severity::Notice, longest.others, Some(why));
    }
    account.kept = rows.len() as u64;
    account.time = tell(sink, &rows);
    account.tell(
        sink,
        FORMAT.id,
        "rows",
        "sums of kernels, operators and calls; a row that stands in several tables once",
    );
    if beyond > 0 {
        sink.stat("torch-table.rows_beyond_limit", Severity::DataLoss, beyond, None);
    }
    if let Some(why) = lines.damage() {
        sink.stat("torch-table.damaged_file", Severity::DataLoss, 1, Some(why));
    }
    let steps = rows.iter().filter(|(name, ..)| name.starts_with(STEP)).map(|(_, count, ..)| *count).max();
    if let Some(steps) = steps.and_then(|steps| Ns::try_from(steps).ok()) {
        totals.insert("totals.steps", steps);
    }
    for (key, total) in totals {
        sink.manifest(key, &total.to_string(), Provenance::Observed);
    }
    for (key, value) in
        [("measurement.traced", "kineto"), ("software.profiler", "PyTorch profiler, table of sums only")]
    {
        sink.manifest(key, value, Provenance::Observed);
    }
    let vendor = |prefix: &str| rows.iter().any(|(name, ..)| name.starts_with(prefix));
    for (prefix, name) in [("cuda", "nvidia"), ("hip", "amd"), ("musa", "mthreads"), ("aclnn", "ascend")] {
        if vendor(prefix) {
            sink.manifest("hardware.vendor", name, Provenance::Observed);
            break;
        }
    }
    Ok(())
}

/// Tells the rows as what they are about; the device's time that was kept.
fn tell(sink: &mut dyn TraceSink, rows: &BTreeSet<Row>) -> Ns {
    // A range of the host stands a second time with the device's time below it.
    let ranges: BTreeSet<&str> =
        rows.iter().filter(|(.., host, _)| *host > 0).map(|(name, ..)| name.as_str()).collect();
    let mut kept: Ns = 0;
    for (name, count, host, device) in rows {
        let drawn = RANGES.iter().any(|begin| name.starts_with(begin));
        let mut add = |of: Conditions, name: &str, total: Ns| {
            let known = KernelSummary::of(sink.intern(name), of);
            sink.summary(KernelSummary { count: *count, total: Some(total), ..known });
        };
        match (*host > 0, *device > 0) {
            (false, true) if !drawn && !ranges.contains(name.as_str()) => {
                kept = kept.saturating_add(*device);
                add(Conditions::Run, hip::kernel_name(name), *device);
            }
            (true, true) if !drawn && !is_call(name) => {
                add(Conditions::Operators, name, *device);
                add(Conditions::Host, name, *host);
            }
            (true, _) => add(Conditions::Host, name, *host),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests;
