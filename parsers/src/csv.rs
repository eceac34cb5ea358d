//! Tables of comma-separated values as profilers write them: columns are found by name, because they come and go; cells
//! end with tabs and stand in quotes within quotes, so that spreadsheets keep their digits.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use model::{Ns, Severity, TraceSink};

use crate::ReadError;

/// Longest cell that is read whole by the callers, bytes.
const MAX_CELL: usize = 64 << 10;
/// Longest line, bytes; a longer one is cut and counted.
const MAX_LINE: usize = 1 << 20;

/// What reading a table gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Columns by name.
    pub columns: Vec<String>,
    /// Rows read.
    pub read: u64,
    /// Rows that the caller could use.
    pub kept: u64,
    /// Rows that were no rows: too long, or unreadable.
    pub broken: u64,
}

/// A row.
pub(crate) struct Row<'r> {
    columns: &'r [String],
    record: &'r csv::ByteRecord,
}

impl Row<'_> {
    /// The cell of the first of these columns that the table has, without blanks and quotes; `None` where it is empty or says that
    /// there is no value.
    pub fn text(&self, names: &[&str]) -> Option<String> {
        let column = names.iter().find_map(|name| self.columns.iter().position(|column| column == name))?;
        let cell = self.record.get(column)?;
        let cell = String::from_utf8_lossy(cell.get(..cell.len().min(MAX_CELL))?);
        let cell = cell.trim().trim_matches('"').trim();
        (!cell.is_empty() && cell != "N/A" && cell != "NA").then(|| cell.to_owned())
    }

    /// A decimal number in `10^unit_exp` ns as ns.
    pub fn decimal(&self, names: &[&str], unit_exp: i32) -> Option<Ns> {
        model::time::parse_decimal(self.text(names)?.as_bytes(), unit_exp).ok().map(|(ns, _)| ns)
    }

    /// An integer.
    pub fn int(&self, names: &[&str]) -> Option<i64> {
        self.text(names)?.parse().ok()
    }
}

impl Table {
    /// Reads every row of a table; `take` says whether it could use the row.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the file cannot be read.
    pub fn read(path: &Path, take: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        Self::read_from(file, take).map_err(io)
    }

    /// Reads every row of a table in memory or a file.
    pub fn read_from(source: impl Read, take: &mut dyn FnMut(&Row<'_>) -> bool) -> std::io::Result<Self> {
        let lines = Lines { source: BufReader::new(source), ready: Vec::new(), given: 0, cut: 0 };
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(lines);
        let mut table = Self::default();
        let headers = match reader.byte_headers() {
            Ok(headers) => headers.clone(),
            Err(error) => return into_io(error).map_or(Ok(table), Err),
        };
        let name = |cell: &[u8]| String::from_utf8_lossy(cell).trim().trim_start_matches('\u{feff}').to_owned();
        table.columns = headers.iter().map(name).collect();
        let mut record = csv::ByteRecord::new();
        loop {
            match reader.read_byte_record(&mut record) {
                Ok(false) => {
                    table.broken += reader.get_ref().cut;
                    return Ok(table);
                }
                Ok(true) => {
                    table.read += 1;
                    table.kept += u64::from(take(&Row { columns: &table.columns, record: &record }));
                }
                Err(error) => match into_io(error) {
                    Some(error) => return Err(error),
                    None => table.broken += 1,
                },
            }
        }
    }
}

/// The content line by line, for tables whose cells have no line breaks: a quote that was lost ends with its line, and a
/// line without end is cut, so that damage costs rows and no memory.
struct Lines<R> {
    source: BufReader<R>,
    /// The line being given, and how much of it was.
    ready: Vec<u8>,
    given: usize,
    /// Lines that were cut.
    cut: u64,
}

impl<R: Read> Lines<R> {
    /// Makes the next line ready; nothing at the end.
    fn next_line(&mut self) -> std::io::Result<()> {
        self.given = 0;
        self.ready.clear();
        (&mut self.source).take(MAX_LINE as u64).read_until(b'\n', &mut self.ready)?;
        if self.ready.len() == MAX_LINE && self.ready.last() != Some(&b'\n') {
            self.cut += 1;
            self.source.skip_until(b'\n')?;
            self.ready.push(b'\n');
        }
        let quotes = self.ready.iter().filter(|b| **b == b'"').count();
        if quotes % 2 == 1 {
            while self.ready.last().is_some_and(u8::is_ascii_whitespace) {
                self.ready.pop();
            }
            self.ready.extend_from_slice(b"\"\n");
        }
        Ok(())
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.given == self.ready.len() {
            self.next_line()?;
        }
        let mut rest = self.ready.get(self.given..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.given += read;
        Ok(read)
    }
}

/// The error of the operating system, if it was one.
fn into_io(error: csv::Error) -> Option<std::io::Error> {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Some(error),
        _ => None,
    }
}

/// Writes what reading a table beside the capture gave to the ledger and the statistics of `format`.
pub(crate) fn account(
    sink: &mut dyn TraceSink,
    format: &str,
    path: &Path,
    read: &Result<Table, ReadError>,
    becomes: &str,
) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match read {
        Ok(table) => {
            sink.ledger(&name, table.read, table.kept, 0, becomes);
            let lost = table.broken + table.read - table.kept;
            if lost > 0 {
                sink.stat(&format!("{format}.incomplete_row"), Severity::DataLoss, lost, Some(&name));
            }
        }
        Err(error) => sink.stat(&format!("{format}.unreadable_file"), Severity::DataLoss, 1, Some(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn cells_lose_tabs_quotes_and_words_for_nothing() {
        let text = "\u{feff}Step Id,Start Time(us),Input Shapes,Block Dim\n\
                    50,\"1736413971558972.912\t\",\"\"\"32,3;1\"\"\",N/A\n\
                    51,1736413971558972.913\t,,8\n\
                    52\n";
        let mut rows = Vec::new();
        let table = Table::read_from(text.as_bytes(), &mut |row| {
            rows.push((
                row.decimal(&["Start Time(us)"], 3),
                row.text(&["Input Shapes"]),
                row.int(&["Block Num", "Block Dim"]),
            ));
            row.int(&["Step Id"]).is_some()
        })
        .unwrap();
        let first = 1_736_413_971_558_972_912;
        assert_eq!(rows[0], (Some(first), Some("32,3;1".to_owned()), None));
        assert_eq!(rows[1], (Some(first + 1), None, Some(8)));
        assert_eq!(rows[2], (None, None, None));
        assert_eq!((table.read, table.kept, table.broken), (3, 3, 0));
    }

    #[test]
    fn a_lost_quote_and_a_line_without_end_cost_their_own_rows() {
        let text = "a,b\n1,2\n3,\"4\n5,6\n";
        let mut seen = Vec::new();
        let table = Table::read_from(text.as_bytes(), &mut |row| {
            seen.push(row.int(&["a"]));
            row.int(&["b"]).is_some()
        });
        assert_eq!(seen, [Some(1), Some(3), Some(5)]);
        assert_eq!(table.unwrap().kept, 3);
        let long = format!("a,b\n1,{}\n5,6\n", "x".repeat(3 * MAX_LINE));
        let mut seen = Vec::new();
        let table = Table::read_from(long.as_bytes(), &mut |row| {
            seen.push(row.int(&["a"]));
            true
        });
        assert_eq!((seen, table.unwrap().broken), (vec![Some(1), Some(5)], 1));
    }
}
