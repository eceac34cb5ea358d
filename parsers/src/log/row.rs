//! One line of a log, in each of the forms that logs have.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{
    field::{Field, Record},
    pattern::Patterns,
    stamp,
};
use crate::{Match, bare_json::quoted, lines::plain};

/// How a log is written.
pub enum Form {
    /// An object per line.
    JsonLines,
    /// Comma-separated, with the fields of its columns.
    Table(Vec<Column>),
    /// Anything else: lines that patterns know, and lines with `name=value` pairs.
    Text,
}

/// A column: its field, or the name of what is none.
pub type Column = Result<Field, String>;

/// A record with where it comes from.
pub struct Row {
    /// Category in the ledger.
    pub kind: String,
    /// What the line says.
    pub record: Record,
    /// A field that the log has and we do not know.
    pub unknown: Option<String>,
    /// Fields whose value could not be read.
    pub unreadable: u64,
}

/// Whether fields make a step log: it times something or says how a step ran.
fn tells(fields: impl Iterator<Item = Field>) -> bool {
    let mut step = false;
    let (mut graph, mut compile) = (false, false);
    for field in fields {
        step |= matches!(field, Field::Latency(_));
        graph |= field == Field::GraphMode;
        compile |= field == Field::CompileHit;
    }
    step || (graph && compile)
}

impl Form {
    /// The form of a log that begins with `head`, and how sure that is; `None` for what is no log. Any text may hold a pair
    /// `latency_ms=3`; a line that a pattern knows, and the names of columns and keys, are a log's own.
    pub fn of(head: &[u8], patterns: &Patterns) -> Option<(Self, Match)> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let lines =
            || head.split(|b| matches!(b, b'\n' | b'\r')).map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let first = plain(lines().next()?);
        if first.starts_with('{') {
            // One object over the whole file is a document, not a log.
            let row = |line: &[u8]| json(&plain(line)).is_some_and(|row| says_something(&row.record));
            return lines().take(16).any(row).then_some((Self::JsonLines, Match::Certain));
        }
        let columns: Vec<Column> = cells(&first).into_iter().map(|name| Field::named(&name).ok_or(name)).collect();
        if columns.len() > 1 && tells(columns.iter().filter_map(|c| c.as_ref().ok()).copied()) {
            return Some((Self::Table(columns), Match::Certain));
        }
        // Binary content has no lines that could be text.
        let text = head.get(..head.len().min(4096)).is_none_or(|start| !start.contains(&0));
        let says = |line: &[u8]| pairs(&plain(line)).is_some_and(|row| says_something(&row.record));
        let sure = match text {
            true if lines().any(|line| patterns.know(line)) => Match::Certain,
            true if lines().any(says) => Match::Possible,
            _ => return None,
        };
        Some((Self::Text, sure))
    }

    /// What a line says; `None` when nothing in it is known.
    pub fn record(&self, line: &str, patterns: &Patterns) -> Option<Row> {
        match self {
            Self::JsonLines => json(line),
            Self::Table(columns) => Some(table(line, columns)),
            Self::Text => match patterns.read(line) {
                Some((engine, mut record, unreadable)) => {
                    record.time = record.time.or(stamp::find(line));
                    // A version says nothing without the engine that it is of.
                    for (key, value) in &mut record.facts {
                        if *key == VERSION && !value.contains(engine) {
                            *value = format!("{engine} {value}");
                        }
                    }
                    Some(Row { kind: format!("{engine} lines"), record, unknown: None, unreadable })
                }
                None => pairs(line).filter(|row| says_something(&row.record)),
            },
        }
    }
}

/// The fact that holds the engine's version.
const VERSION: &str = "software.engine";

fn says_something(record: &Record) -> bool {
    record.times || record.is_runtime()
}

fn empty(kind: &str) -> Row {
    Row { kind: kind.to_owned(), record: Record::default(), unknown: None, unreadable: 0 }
}

impl Row {
    fn set(&mut self, column: Result<Field, &str>, value: &str) {
        match column {
            Ok(field) => self.unreadable += u64::from(!self.record.set(field, value)),
            Err(name) => {
                self.unknown.get_or_insert_with(|| name.to_owned());
            }
        }
    }
}

/// An object of one line; `None` for what is none.
fn json(line: &str) -> Option<Row> {
    let (text, _) = quoted(line.as_bytes());
    let object: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&text).ok()?;
    let mut row = empty("JSON lines");
    for (name, value) in &object {
        row.set(Field::named(name).ok_or(name), value.get());
    }
    Some(row)
}

fn table(line: &str, columns: &[Column]) -> Row {
    let mut row = empty("CSV rows");
    let cells = cells(line);
    row.unreadable += cells.len().saturating_sub(columns.len()) as u64;
    for (column, cell) in columns.iter().zip(&cells) {
        row.set(column.as_ref().map(|field| *field).map_err(String::as_str), cell);
    }
    row
}

fn cells(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(line.len().max(64))
        .from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => record.iter().map(|cell| cell.trim().to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// `name=value` pairs such as `log(platform=x, batch_size=8, latency_ms=3.2)`; `None` without any known name.
fn pairs(line: &str) -> Option<Row> {
    let mut row = empty("text lines");
    let mut found = false;
    let separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '|');
    // Spaces around the sign are common; the name is the last word before it and the value the first one after it.
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('=') {
        let name = before.trim_end().rsplit(separator).next().unwrap_or("");
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
        let end = match quote {
            Some(quote) => after.get(1..).and_then(|text| text.find(quote)).map_or(after.len(), |end| end + 2),
            None => after.find(separator).unwrap_or(after.len()),
        };
        let (value, next) = after.split_at(end);
        if let Some(field) = Field::named(name) {
            found = true;
            row.set(Ok(field), value);
        }
        rest = next;
    }
    row.record.time = row.record.time.or_else(|| stamp::find(line));
    found.then_some(row)
}
