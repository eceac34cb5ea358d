//! The tables that `nsys stats` prints unless it is asked for CSV: a title, the names of the columns, a line of dashes that says
//! how wide each is, and the rows. Several tables follow each other; those of ranges are not kept.

use std::path::Path;

use model::{Conditions, KernelSummary, Ns, Severity, TraceSink};

use super::{is_device, is_ranges, report};
use crate::{
    Place, Progress, ReadError,
    lanes::Account,
    lines::Lines,
    printed_table::{cell, dashes},
};

/// Longest line that is read whole: names of kernels have some KiB.
const LINE: usize = 64 << 10;

/// A table under way: its columns' names with the characters from which to which each reaches.
struct Columns {
    names: Vec<String>,
    spans: Vec<(usize, usize)>,
    exponent: i32,
    device: bool,
    ranges: bool,
}

impl Columns {
    /// The columns under these names, if it is a table of sums.
    fn of(names: &str, spans: Vec<(usize, usize)>) -> Option<Self> {
        let last = spans.len() - 1;
        let names: Vec<String> =
            spans.iter().enumerate().map(|(i, span)| cell(names, *span, i == last).to_ascii_lowercase()).collect();
        let (_, exponent) = report(&names)?;
        let (device, ranges) = (is_device(&names), is_ranges(&names));
        Some(Self { names, spans, exponent, device, ranges })
    }

    fn get(&self, line: &str, wanted: &[&str]) -> Option<String> {
        // `Operations` is a count, `Operation` a name.
        let exact = self.names.iter().position(|name| wanted.contains(&name.as_str()));
        let begins = || self.names.iter().position(|name| wanted.iter().any(|start| name.starts_with(start)));
        let place = exact.or_else(begins)?;
        let text = cell(line, *self.spans.get(place)?, place + 1 == self.spans.len());
        (!text.is_empty()).then_some(text)
    }

    /// A number without what groups its digits. Where the language writes `52,0` for a share, dots group and commas divide.
    fn number(&self, line: &str, wanted: &[&str]) -> Option<String> {
        let text = self.get(line, wanted)?;
        let share = self.get(line, &["time"]).unwrap_or_default();
        Some(match share.contains(',') && !share.contains('.') {
            true => text.replace('.', "").replace(',', "."),
            false => text.replace(',', ""),
        })
    }

    fn time(&self, line: &str, wanted: &[&str]) -> Option<Ns> {
        let digits = self.number(line, wanted)?;
        model::time::parse_decimal(digits.as_bytes(), self.exponent).ok().map(|(ns, _)| ns)
    }
}

/// Whether the first bytes of a file hold such a table.
pub(super) fn matches(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut before = "";
    text.lines().any(|line| {
        let found = dashes(line).is_some_and(|spans| Columns::of(before, spans).is_some());
        before = line;
        found
    })
}

/// Reads every table of the file.
pub(super) fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let mut lines = Lines::open(path, LINE)?;
    let (mut before, mut columns): (String, Option<Columns>) = (String::new(), None);
    let (mut kernels, mut calls) = (Account::default(), Account::default());
    let (mut ranges, mut tables) = (0u64, 0u64);
    while let Some(line) = lines.next()? {
        let line = String::from_utf8_lossy(line).trim_end().to_owned();
        if let Some(found) = dashes(&line).and_then(|spans| Columns::of(&before, spans)) {
            columns = Some(found);
            tables += 1;
        } else if line.is_empty() {
            // A table ends with an empty line.
            columns = None;
        } else if let Some(columns) = &columns {
            if columns.ranges {
                ranges += 1;
            } else {
                let of = if columns.device { Conditions::Run } else { Conditions::Host };
                let account = if columns.device { &mut kernels } else { &mut calls };
                account.read += 1;
                match summary(sink, of, columns, &line) {
                    Some(time) => account.keep(0, time),
                    None => account.incomplete += 1,
                }
            }
        }
        before = line;
        let (done, total) = lines.progress();
        progress(done, total);
    }
    if tables == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "a table of 'nsys stats' with the total time of each row".to_owned(),
            next: "print it again with 'nsys stats --format csv REPORT'".to_owned(),
        });
    }
    if kernels.read > 0 || calls.read + ranges == 0 {
        kernels.tell(sink, super::FORMAT.id, "kernels", "sums of kernels, copies and fills");
    }
    if calls.read > 0 {
        calls.tell(sink, super::FORMAT.id, "calls", "sums of host calls");
    }
    if ranges > 0 {
        sink.ledger("ranges", ranges, 0, 0, super::OF_RANGES);
    }
    if let Some(why) = lines.damage() {
        sink.stat("nsys-stats.damaged_file", Severity::DataLoss, 1, Some(why));
    }
    Ok(())
}

/// Adds the summary of a row; its total time.
fn summary(sink: &mut dyn TraceSink, of: Conditions, columns: &Columns, line: &str) -> Option<Ns> {
    let total = columns.time(line, &["total time"]).filter(|total| *total >= 0)?;
    let count = columns.number(line, &["instances", "operations", "count", "num calls", "calls"])?.parse().ok()?;
    let range = columns.time(line, &["min"]).zip(columns.time(line, &["max"]));
    let name = columns.get(line, &["name", "operation"])?;
    let known = KernelSummary::of(sink.intern(&name), of);
    sink.summary(KernelSummary { count, total: Some(total), range, ..known });
    Some(total)
}
