//! `strato sql`: read-only SQL on a capture file.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    path::PathBuf,
    time::Duration,
};

use super::{exit::Exit, terminal_text::plain};
use report::{columns::Columns, document::Align, text::acts};
use store::{self, Sink, Value};

/// Rows that the widths of the table's columns are taken from; more are written as they come.
const SAMPLE: usize = 1000;

/// Run one read-only SQL statement on a capture file.
///
/// Views with names resolved: kernels, launches, copies, syncs, collectives, ranges, rank. All times are nanoseconds from
/// the capture's start. What is read of a file is held against its seal: a damaged one is refused.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Capture file, made by 'strato import'.
    file: PathBuf,
    /// SQL statement, such as 'SELECT name, sum(dur_ns) FROM kernels GROUP BY name'.
    query: String,
    /// Write CSV.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a JSON array with one object per row.
    #[arg(long)]
    json: bool,
    /// Put ' before every text of the CSV that a spreadsheet would take for a formula.
    ///
    /// These begin with = + - @, a tab or a line break. Not done by default: programs that read CSV get the names as they are.
    #[arg(long, requires = "csv")]
    defuse: bool,
    /// End a statement that is not done after so long, with exit code 2 [default: none; ctrl-c ends it too].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.ok_or_else(|| "give a number of seconds above 0, such as 30 or 0.5".to_owned())
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let Arguments { file, query, csv, json, defuse, timeout } = arguments;
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let mut out = BufWriter::new(stdout.lock());
    if csv {
        let mut sink = Csv { out: csv::Writer::from_writer(&mut out), terminal, defuse };
        store::query(&file, &query, timeout, &mut sink)?;
        sink.out.flush()?;
    } else if json {
        let mut sink = Json { out: &mut out, names: Vec::new(), rows: 0 };
        store::query(&file, &query, timeout, &mut sink)?;
        sink.finish()?;
    } else {
        let mut sink = Table { out: &mut out, titles: Vec::new(), sample: Vec::new(), layout: None };
        store::query(&file, &query, timeout, &mut sink)?;
        sink.lay_out()?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(v) => v.to_string(),
        Value::Real(v) => v.to_string(),
        Value::Text(v) => v.clone(),
        Value::Blob(v) => v.iter().map(|b| format!("{b:02x}")).collect(),
    }
}

struct Table<'a> {
    out: &'a mut dyn Write,
    titles: Vec<String>,
    sample: Vec<Vec<Value>>,
    layout: Option<Columns>,
}

impl Table<'_> {
    fn lay_out(&mut self) -> io::Result<&Columns> {
        let sample = std::mem::take(&mut self.sample);
        let number =
            |row: &Vec<Value>, i: usize| matches!(row.get(i), Some(Value::Integer(_) | Value::Real(_) | Value::Null));
        let align = |i| if sample.iter().all(|row| number(row, i)) { Align::Right } else { Align::Left };
        let aligned: Vec<Align> = (0..self.titles.len()).map(align).collect();
        let cells: Vec<Vec<String>> = sample.iter().map(|row| row.iter().map(short).collect()).collect();
        if self.layout.is_none() && !self.titles.is_empty() {
            let layout = Columns::new(&self.titles, &aligned, &cells);
            layout.row(self.out, &self.titles)?;
            layout.rule(self.out)?;
            cells.iter().try_for_each(|row| layout.row(self.out, row))?;
            self.layout = Some(layout);
        }
        Ok(self.layout.get_or_insert_with(|| Columns::new::<String>(&[], &[], &[])))
    }
}

/// A cell for reading: bytes are named, not shown.
fn short(value: &Value) -> String {
    if let Value::Blob(bytes) = value { format!("<{} bytes>", bytes.len()) } else { cell(value) }
}

impl Sink for Table<'_> {
    fn columns(&mut self, names: &[&str]) -> io::Result<()> {
        self.titles = names.iter().map(|n| (*n).to_owned()).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> io::Result<()> {
        if self.layout.is_none() && self.sample.len() < SAMPLE {
            self.sample.push(values);
            return Ok(());
        }
        self.lay_out()?;
        let cells: Vec<String> = values.iter().map(short).collect();
        match &self.layout {
            Some(layout) => layout.row(self.out, &cells),
            None => Ok(()),
        }
    }
}

struct Csv<W: Write> {
    out: csv::Writer<W>,
    terminal: bool,
    /// Whether no text may be taken for a formula.
    defuse: bool,
}

/// A text that no spreadsheet takes for a formula: <https://owasp.org/www-community/attacks/CSV_Injection>.
fn defused(text: &str) -> String {
    // Spreadsheets pass over blanks, and some take the full-width forms of the signs for the signs.
    let first = text.trim_start().chars().next();
    let is_formula = text.starts_with(['\t', '\r', '\n']) || first.is_some_and(|first| "=+-@＝＋－＠".contains(first));
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

impl<W: Write> Csv<W> {
    fn record(&mut self, cells: impl Iterator<Item = String>) -> io::Result<()> {
        let terminal = self.terminal;
        let shown = cells.map(|cell| if terminal { plain(&cell).into_owned() } else { cell });
        self.out.write_record(shown).map_err(|e| match e.into_kind() {
            csv::ErrorKind::Io(e) => e,
            other => io::Error::other(format!("{other:?}")),
        })
    }
}

impl<W: Write> Sink for Csv<W> {
    fn columns(&mut self, names: &[&str]) -> io::Result<()> {
        let defuse = self.defuse;
        self.record(names.iter().map(|name| if defuse { defused(name) } else { (*name).to_owned() }))
    }

    fn row(&mut self, values: Vec<Value>) -> io::Result<()> {
        let defuse = self.defuse;
        self.record(values.iter().map(|value| match value {
            Value::Text(text) if defuse => defused(text),
            value => cell(value),
        }))
    }
}

struct Json<'a> {
    out: &'a mut dyn Write,
    names: Vec<String>,
    rows: u64,
}

impl Json<'_> {
    fn finish(self) -> io::Result<()> {
        writeln!(self.out, "{}", if self.rows == 0 { "[]" } else { "\n]" })
    }
}

/// JSON text of a string. Beyond what JSON demands, everything that a terminal acts on is escaped too.
fn quoted(text: &str) -> io::Result<String> {
    let quoted = serde_json::to_string(text)?;
    if !quoted.chars().any(acts) {
        return Ok(quoted);
    }
    let escape = |c: char| {
        if !acts(c) {
            return c.to_string();
        }
        // JSON writes what lies beyond sixteen bits as two.
        c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    };
    Ok(quoted.chars().map(escape).collect())
}

impl Sink for Json<'_> {
    fn columns(&mut self, names: &[&str]) -> io::Result<()> {
        // An object has one value for a key: a name that came before gets the number of its column.
        for (i, name) in names.iter().enumerate() {
            let seen = names[..i].contains(name);
            self.names.push(quoted(&if seen { format!("{name}:{}", i + 1) } else { (*name).to_owned() })?);
        }
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> io::Result<()> {
        let cells = self.names.iter().zip(&values).map(|(name, value)| {
            Ok(format!(
                "{name}: {}",
                match value {
                    Value::Null => "null".to_owned(),
                    Value::Integer(v) => v.to_string(),
                    Value::Real(v) if v.is_finite() => serde_json::to_string(v)?,
                    // JSON has no number for it, and null is what is not known.
                    Value::Real(v) => format!("\"{v}\""),
                    Value::Text(_) | Value::Blob(_) => quoted(&cell(value))?,
                }
            ))
        });
        let cells = cells.collect::<io::Result<Vec<_>>>()?;
        let before = if self.rows == 0 { "[\n" } else { ",\n" };
        self.rows += 1;
        write!(self.out, "{before}  {{{}}}", cells.join(", "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn feed(sink: &mut dyn Sink, rows: usize) {
        sink.columns(&["name", "n", "n"]).unwrap();
        for i in 0..rows {
            let name = Value::Text(format!("k\u{9b}\u{e0041}{i}"));
            sink.row(vec![name, Value::Integer(i as i64), Value::Null]).unwrap();
        }
    }

    #[test]
    fn json_is_valid_whatever_the_names() {
        for rows in [0, 1, 3] {
            let mut out = Vec::new();
            let mut sink = Json { out: &mut out, names: Vec::new(), rows: 0 };
            feed(&mut sink, rows);
            sink.finish().unwrap();
            assert!(!out.contains(&0x9b));
            let parsed: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
            assert_eq!(parsed.len(), rows);
            for (i, row) in parsed.iter().enumerate() {
                let expected = serde_json::json!({"name": format!("k\u{9b}\u{e0041}{i}"), "n": i, "n:3": null});
                assert_eq!(row, &expected);
            }
        }
    }

    #[test]
    fn l13_infinity_is_no_null() {
        let mut out = Vec::new();
        let mut sink = Json { out: &mut out, names: Vec::new(), rows: 0 };
        sink.columns(&["a", "b", "c"]).unwrap();
        sink.row(vec![Value::Real(f64::INFINITY), Value::Real(f64::NEG_INFINITY), Value::Real(1.5)]).unwrap();
        sink.finish().unwrap();
        let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(parsed, serde_json::json!([{"a": "inf", "b": "-inf", "c": 1.5}]));
    }

    #[test]
    fn formulas_are_known_behind_blanks_and_in_full_width() {
        for text in ["=1", " =1", "\u{a0}+1", "＝1", "＠x", "\tx", "-1"] {
            assert_eq!(defused(text), format!("'{text}"));
        }
        for text in ["a=1", " a", "", "1", "（=1）"] {
            assert_eq!(defused(text), text);
        }
    }

    #[test]
    fn a_table_longer_than_its_sample_loses_no_row() {
        let mut out = Vec::new();
        let mut sink = Table { out: &mut out, titles: Vec::new(), sample: Vec::new(), layout: None };
        feed(&mut sink, SAMPLE + 5);
        sink.lay_out().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), SAMPLE + 5 + 2);
        assert!(text.lines().nth(SAMPLE + 6).unwrap().starts_with("k\\u{9b}\\u{e0041}1004"));
        assert!(!text.contains('\u{9b}'));
    }

    #[test]
    fn a_result_without_rows_still_has_its_titles() {
        let mut out = Vec::new();
        let mut sink = Table { out: &mut out, titles: Vec::new(), sample: Vec::new(), layout: None };
        feed(&mut sink, 0);
        sink.lay_out().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name  n  n\n----  -  -\n");
    }

    #[test]
    fn csv_on_a_terminal_is_neutralised_and_in_a_pipe_exact() {
        for (terminal, expected) in [(true, "k\\u{9b}\\u{e0041}0,0,\n"), (false, "k\u{9b}\u{e0041}0,0,\n")] {
            let mut out = Vec::new();
            feed(&mut Csv { out: csv::Writer::from_writer(&mut out), terminal, defuse: false }, 1);
            assert_eq!(String::from_utf8(out).unwrap(), format!("name,n,n\n{expected}"));
        }
    }

    #[test]
    fn texts_are_no_formulas_where_that_is_asked_and_numbers_stay() {
        for (defuse, expected) in [(true, "n,'@sum\n-5,'=1+1\n"), (false, "n,@sum\n-5,=1+1\n")] {
            let mut out = Vec::new();
            let mut sink = Csv { out: csv::Writer::from_writer(&mut out), terminal: false, defuse };
            sink.columns(&["n", "@sum"]).unwrap();
            sink.row(vec![Value::Integer(-5), Value::Text("=1+1".to_owned())]).unwrap();
            drop(sink);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
