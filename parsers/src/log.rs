//! Logs: the minimal log of steps and of the runtime as line-wise JSON, CSV or text, and the server logs of engines.
//!
//! A log times steps and samples the scheduler; it shows no device operation. So it becomes steps (ranges on a track of
//! their own), compilations, graph captures, counters and facts, and whatever asks for more has to abstain.
//!
//! | module | owns |
//! | --- | --- |
//! | `field` | the words: what a column, key or named group holds |
//! | `pattern` | regular expressions over lines, built in (`packs/*.toml`) and the user's |
//! | `stamp` | the time at which a line says it was written |
//! | `row` | one line in each of the three forms |
//! | `settle` | rows into steps, with what the runtime said of them |

use std::path::Path;

use model::{Severity, TraceSink};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions, container,
    lines::{Lines, plain},
};

mod field;
mod pattern;
mod row;
mod settle;
mod stamp;
#[cfg(test)]
mod tests;

pub use pattern::{PatternError, Patterns};

use row::Form;
use settle::Import;

/// The format.
pub const FORMAT: Format =
    Format { id: "log", name: "step log (JSON lines, CSV, text) or server log", matches, read, lead: crate::alone };

/// Longest line that is read whole, bytes.
const LINE: usize = 64 << 10;
/// Bytes of the content that tell its form.
const HEAD: usize = 64 << 10;

fn matches(head: &Head<'_>) -> Match {
    Form::of(head.bytes, head.patterns).map_or(Match::No, |(_, sure)| sure)
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let patterns = options.patterns;
    let form = Form::of(&container::head(path, HEAD)?, patterns).map_or(Form::Text, |(form, _)| form);
    let mut lines = Lines::open(path, LINE)?;
    let mut import = Import::new(sink);
    let mut header = matches!(form, Form::Table(_));
    while let Some(line) = lines.next()? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if std::mem::take(&mut header) {
            import.ledger("header", 1, 0, "names of the columns");
            continue;
        }
        let text = plain(line);
        match form.record(&text, patterns) {
            Some(row) => import.take(row),
            None => import.other(&text, matches!(form, Form::JsonLines)),
        }
        let (done, total) = lines.progress();
        (options.progress)(done, total);
    }
    import.stat("line_cut", Severity::DataLoss, lines.cut, Some("a line longer than 64 KiB"));
    if let Some(damage) = lines.damage() {
        import.stat("damaged_file", Severity::DataLoss, 1, Some(damage));
    }
    if import.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "lines with latency_ms, graph_mode or another field of a step log, or lines of a known engine"
                .into(),
            next: "name the fields as the documentation of logs does, or give a pattern in a pack (--pack DIR)".into(),
        });
    }
    import.settle();
    Ok(())
}
