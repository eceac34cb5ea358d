//! The summary that nvprof prints, as text or with `--csv`: how often each kernel, copy and call ran and how long in all. Nothing in
//! it has a place in time, so rows are summaries. Source: the user's guide of nvprof in CUDA 8 to 12, "Summary Mode".

use std::path::Path;

use model::{Conditions, KernelSummary, Ns, Provenance, Severity, TraceSink};

use crate::{Format, Head, Match, Place, ReadError, ReadOptions, lanes::Account, lines::Lines};

/// The format.
pub const FORMAT: Format = Format {
    id: "nvprof",
    name: "nvprof summary, text or CSV (sums per kernel, copy and call)",
    matches,
    read,
    lead: crate::alone,
};

/// Longest line that is read whole: names of kernels have some KiB.
const LINE: usize = 64 << 10;
/// The columns of a summary; before CUDA 9 the kind of a row was told by the section that it stands in.
const COLUMNS: [&str; 7] = ["Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"];
const KIND: &str = "Type";

/// The form of a table under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Csv,
}

/// The header of a summary: its form, and whether the kind of a row stands in it.
fn header(line: &str) -> Option<(Form, bool)> {
    let is = |names: &[&str]| -> Option<bool> {
        let typed = names.first() == Some(&KIND);
        (names.get(usize::from(typed)..)? == COLUMNS).then_some(typed)
    };
    let text: Vec<&str> = line.split_whitespace().collect();
    let csv: Vec<&str> = line.split(',').map(|name| name.trim().trim_matches('"')).collect();
    is(&text).map(|typed| (Form::Text, typed)).or_else(|| is(&csv).map(|typed| (Form::Csv, typed)))
}

fn matches(head: &Head<'_>) -> Match {
    let known = head.is_text() && String::from_utf8_lossy(head.bytes).lines().any(|line| header(line).is_some());
    if known { Match::Named } else { Match::No }
}

/// What a row is about, by the name of its kind or of the section that it stands in; `None` where the text says neither.
fn kind(text: &str) -> Option<Conditions> {
    match text.trim().trim_end_matches(':') {
        "GPU activities" | "Profiling result" => Some(Conditions::Run),
        "API calls" => Some(Conditions::Host),
        _ => None,
    }
}

/// Power of ten of a unit, in ns.
fn exponent(unit: &str) -> Option<i32> {
    Some(match unit {
        "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return None,
    })
}

fn time(digits: &str, unit: &str) -> Option<Ns> {
    model::time::parse_decimal(digits.as_bytes(), exponent(unit)?).ok().map(|(ns, _)| ns).filter(|ns| *ns >= 0)
}

/// A time with its unit, ns: `1.5us`.
fn with_unit(text: &str) -> Option<Ns> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    time(digits, text.get(digits.len()..)?)
}

/// A row: name, calls, total, shortest and longest, ns.
struct Row {
    name: String,
    calls: u64,
    total: Ns,
    range: Option<(Ns, Ns)>,
}

/// The next word of `text` and what stands behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A row of a printed table, behind the kind: `71.80%  2.0664ms  1  2.0664ms  2.0664ms  2.0664ms  name`.
fn printed(text: &str) -> Option<Row> {
    let (_, rest) = word(text).filter(|(share, _)| share.ends_with('%'))?;
    let (total, rest) = word(rest)?;
    let (calls, rest) = word(rest)?;
    let (_, rest) = word(rest)?;
    let (shortest, rest) = word(rest)?;
    let (longest, name) = word(rest)?;
    let name = name.trim();
    let range = with_unit(shortest).zip(with_unit(longest));
    let row = Row { name: name.to_owned(), calls: calls.parse().ok()?, total: with_unit(total)?, range };
    (!name.is_empty()).then_some(row)
}

fn cells(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => record.iter().map(|cell| cell.trim().to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// A row of a CSV table behind the kind, with the units of its columns.
fn separated(cells: &[String], units: &[String]) -> Option<Row> {
    let time = |place: usize| time(cells.get(place)?, units.get(place)?);
    let name = cells.get(6).filter(|name| !name.is_empty())?;
    Some(Row { name: name.clone(), calls: cells.get(2)?.parse().ok()?, total: time(1)?, range: time(4).zip(time(5)) })
}

/// A table under way.
struct Table {
    form: Form,
    typed: bool,
    of: Option<Conditions>,
    units: Option<Vec<String>>,
}

impl Table {
    /// The row in a line; `None` where it holds none, and where it is that of the units.
    fn row(&mut self, line: &str) -> Option<Option<Row>> {
        match self.form {
            Form::Text => {
                let percent = line.find('%')?;
                let begin =
                    line.get(..percent)?.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
                let (before, row) = line.split_at_checked(begin)?;
                self.of = if before.trim().is_empty() { self.of } else { kind(before) };
                Some(printed(row))
            }
            Form::Csv => {
                let all = cells(line);
                let (first, row) = all.split_at_checked(usize::from(self.typed))?;
                let Some(units) = &self.units else {
                    self.units = Some(row.to_vec());
                    return None;
                };
                if let Some(named) = first.first().filter(|named| !named.is_empty()) {
                    self.of = kind(named);
                }
                Some(separated(row, units))
            }
        }
    }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut lines = Lines::open(path, LINE)?;
    let (mut section, mut table) = (None, None::<Table>);
    let (mut kernels, mut calls, mut others) = (Account::default(), Account::default(), 0u64);
    while let Some(line) = lines.next()? {
        let line = String::from_utf8_lossy(line).trim_end().to_owned();
        if let Some((form, typed)) = header(&line) {
            table = Some(Table { form, typed, of: section, units: None });
        } else if let Some(said) = line.strip_prefix("==") {
            // `==4095== API calls:` begins a section, and every other word of the tool ends one.
            section = said.split_once("== ").and_then(|(_, said)| kind(said));
            table = None;
        } else if line.is_empty() {
            table = None;
        } else if let Some(table) = &mut table
            && let Some(row) = table.row(&line)
        {
            let account = match table.of {
                Some(Conditions::Run) => &mut kernels,
                Some(_) => &mut calls,
                None => {
                    others += 1;
                    continue;
                }
            };
            account.read += 1;
            match (row, table.of) {
                (Some(row), Some(of)) => {
                    let known = KernelSummary::of(sink.intern(&row.name), of);
                    sink.summary(KernelSummary { count: row.calls, total: Some(row.total), range: row.range, ..known });
                    account.keep(0, row.total);
                }
                _ => account.incomplete += 1,
            }
        }
        let (done, total) = lines.progress();
        (options.progress)(done, total);
    }
    if kernels.kept + calls.kept == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "a row of a summary of nvprof".to_owned(),
            next: "print it again with 'nvprof --log-file FILE COMMAND'".to_owned(),
        });
    }
    for (account, name, becomes) in
        [(kernels, "kernels", "sums of kernels, copies and fills"), (calls, "calls", "sums of host calls")]
    {
        if account.read > 0 {
            account.tell(sink, FORMAT.id, name, becomes);
        }
    }
    if others > 0 {
        sink.ledger("others", others, 0, 0, "not kept: rows of OpenACC and OpenMP, which stand above the calls");
    }
    if let Some(why) = lines.damage() {
        sink.stat("nvprof.damaged_file", Severity::DataLoss, 1, Some(why));
    }
    for (key, value) in
        [("hardware.vendor", "nvidia"), ("measurement.traced", "nvprof"), ("software.profiler", "nvprof, sums only")]
    {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::TraceBuilder;

    /// Kind, name, count, total and range.
    type Sum = (Conditions, String, u64, Option<Ns>, Option<(Ns, Ns)>);

    fn import(text: &str) -> (model::Trace, Vec<Sum>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.txt");
        std::fs::write(&path, text).unwrap();
        let mut builder = TraceBuilder::new("t", "");
        assert_eq!(crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap().id, FORMAT.id);
        let trace = builder.finish();
        let name = |s: &KernelSummary| trace.strings.get(s.kernel).to_owned();
        let sums = trace.summaries.iter().map(|s| (s.conditions, name(s), s.count, s.total, s.range)).collect();
        (trace, sums)
    }

    fn expected() -> Vec<Sum> {
        vec![
            (Conditions::Run, "[CUDA memcpy DtoH]".to_owned(), 1, Some(2_000_000), Some((2_000_000, 2_000_000))),
            (Conditions::Run, "power(float*, float const *)".to_owned(), 4, Some(500_000), Some((500, 900))),
            (Conditions::Host, "cudaMalloc".to_owned(), 2, Some(183_810_000), Some((61_293, 183_750_000))),
        ]
    }

    /// What nvprof prints was a text of no known format.
    #[test]
    fn the_printed_summary_is_read_with_its_kinds() {
        let (trace, sums) = import(
            "==7== NVPROF is profiling process 7, command: ./a\n==7== Profiling result:\n\
             \x20           Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n\
             \x20GPU activities:   80.00%  2.0000ms         1  2.0000ms  2.0000ms  2.0000ms  [CUDA memcpy DtoH]\n\
             \x20                  20.00%  500.00us         4  125.00us     500ns     900ns  power(float*, float const *)\n\
             \x20                  20.00%  500.00us\n\
             \x20     API calls:   96.43%  183.81ms         2  91.904ms  61.293us  183.75ms  cudaMalloc\n\
             \x20OpenACC (excl):   10.00%  1.0000ms         2  1.0000ms  1.0000ms  1.0000ms  acc_enter\n\
             accuracy: 50% of 3 things\n",
        );
        assert_eq!(sums, expected());
        assert_eq!(trace.stat("nvprof.incomplete_row"), 1);
    }

    #[test]
    fn sections_of_older_versions_and_tables_of_commas_are_the_same_sums() {
        let (_, older) = import(
            "==7== Profiling result:\nTime(%)      Time     Calls       Avg       Min       Max  Name\n\
             \x2080.00%  2.0000ms         1  2.0000ms  2.0000ms  2.0000ms  [CUDA memcpy DtoH]\n\
             \x2020.00%  500.00us         4  125.00us     500ns     900ns  power(float*, float const *)\n\n\
             ==7== API calls:\nTime(%)      Time     Calls       Avg       Min       Max  Name\n\
             \x2096.43%  183.81ms         2  91.904ms  61.293us  183.75ms  cudaMalloc\n",
        );
        assert_eq!(older, expected());
        let (_, csv) = import(
            "==7== Profiling result:\n\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n,%,ms,,ms,us,us,\n\
             \"GPU activities\",80.0,2.0,1,2.0,2000.0,2000.0,\"[CUDA memcpy DtoH]\"\n\
             \"GPU activities\",20.0,0.5,4,0.125,0.5,0.9,\"power(float*, float const *)\"\n\
             \"API calls\",96.43,183.81,2,91.9,61.293,183750.0,\"cudaMalloc\"\n",
        );
        assert_eq!(csv, expected());
    }

    #[test]
    fn a_header_without_rows_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.txt");
        std::fs::write(&path, "Time(%)      Time     Calls       Avg       Min       Max  Name\n").unwrap();
        assert!(read(&path, &mut TraceBuilder::new("t", ""), &ReadOptions::default()).is_err());
    }
}
