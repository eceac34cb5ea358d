//! A CSV file as a profiler writes it: columns found by name whatever their order and case, rows of any length, cells as
//! text or integers.
//!
//! Damage stays where it is: a row that is cut off lacks its last cells, and a quote that is never closed ends the table
//! with what was read before instead of filling memory.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use csv::{ByteRecord, ReaderBuilder};
use model::Ns;

use crate::{
    Place, Progress, ReadError,
    content::{BYTE_ORDER_MARK, Content, Meter},
};

/// A CSV file being read.
pub(crate) struct Table {
    reader: csv::Reader<Content>,
    header: Vec<String>,
    selected: Vec<Option<usize>>,
    record: ByteRecord,
    meter: Meter,
    path: PathBuf,
}

impl Table {
    /// Opens `path` and reads its header: the first row of which `is_header` says so, given its cells in lower case.
    /// What stands before it, such as the words of a tool or of the profiled program, is passed over.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot be read or no row is the header.
    pub fn open(path: &Path, is_header: impl Fn(&[String]) -> bool) -> Result<Self, ReadError> {
        let (content, meter) = Content::open(path)?;
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(content);
        let record = ByteRecord::new();
        let (header, selected, path) = (Vec::new(), Vec::new(), path.to_owned());
        let mut table = Self { reader, header, selected, record, meter, path };
        while table.advance()? {
            let cells: Vec<String> = table.record.iter().map(|cell| text(cell).trim().to_ascii_lowercase()).collect();
            if is_header(&cells) {
                table.header = cells;
                return Ok(table);
            }
        }
        Err(ReadError::Malformed {
            path: table.path,
            place: Place::File,
            expected: "a row with the names of the columns".to_owned(),
            next: "export the table again with its header".to_owned(),
        })
    }

    /// The names of the columns, in lower case.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Chooses the columns that rows are read by, named in lower case: cell `i` of a row is then that of the column
    /// `names[i]`. Where its name has changed over time, the spellings stand side by side: `lds_block_size|lds`.
    pub fn select(&mut self, names: &[&str]) {
        let place = |name: &str| self.header.iter().position(|column| column == name);
        self.selected = names.iter().map(|names| names.split('|').find_map(place)).collect();
    }

    /// The next row, `None` after the last.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the operating system fails to read.
    pub fn next(&mut self, progress: Progress<'_>) -> Result<Option<Row<'_>>, ReadError> {
        if !self.advance()? {
            return Ok(None);
        }
        self.meter.report(progress);
        Ok(Some(Row { record: &self.record, selected: &self.selected }))
    }

    /// What was wrong with the file, once its rows have ended: the compression was damaged, or a row was longer than rows
    /// are.
    pub fn damage(&self) -> Option<String> {
        self.meter.damage()
    }

    fn advance(&mut self) -> Result<bool, ReadError> {
        self.meter.next_piece();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(more) => Ok(more),
            Err(error) => match error.into_kind() {
                csv::ErrorKind::Io(_) if self.meter.exceeded() => Ok(false),
                csv::ErrorKind::Io(source) => Err(ReadError::Io { path: self.path.clone(), source }),
                // Rows of any length and bytes of any kind are allowed, so there is nothing else to be wrong.
                _ => Ok(false),
            },
        }
    }
}

/// One row of a table.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    record: &'a ByteRecord,
    selected: &'a [Option<usize>],
}

impl<'a> Row<'a> {
    /// The text of a selected cell; `None` when the table has no such column or the cell is empty.
    pub fn text(&self, cell: usize) -> Option<Cow<'a, str>> {
        self.bytes(cell).filter(|bytes| !bytes.is_empty()).map(text)
    }

    /// The integer in a selected cell; `None` when it holds none.
    pub fn int(&self, cell: usize) -> Option<i64> {
        std::str::from_utf8(self.bytes(cell)?).ok()?.parse().ok()
    }

    /// `N` selected cells from `first` on, as integers.
    pub fn ints<const N: usize>(&self, first: usize) -> [Option<i64>; N] {
        std::array::from_fn(|cell| self.int(first + cell))
    }

    /// The finite number in a selected cell.
    pub fn number(&self, cell: usize) -> Option<f64> {
        let text = std::str::from_utf8(self.bytes(cell)?).ok()?;
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The decimal number of `10^unit_exp` ns in a selected cell, as ns.
    pub fn decimal(&self, cell: usize, unit_exp: i32) -> Option<Ns> {
        model::time::parse_decimal(self.bytes(cell)?, unit_exp).ok().map(|(ns, _)| ns)
    }

    fn bytes(&self, cell: usize) -> Option<&'a [u8]> {
        Some(self.record.get((*self.selected.get(cell)?)?)?.trim_ascii())
    }
}

fn text(cell: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(cell)
}

/// The names of the columns in the first line of `head` that has several, in lower case: what detection goes by.
pub(crate) fn first_header(head: &[u8]) -> Vec<String> {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    let mut record = ByteRecord::new();
    match reader.read_byte_record(&mut record) {
        Ok(true) => record.iter().map(|cell| text(cell).trim().to_ascii_lowercase()).collect(),
        _ => Vec::new(),
    }
}

/// Whether a header has all these columns.
pub(crate) fn has_all(header: &[String], names: &[&str]) -> bool {
    names.iter().all(|name| header.iter().any(|column| column == name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Write;

    fn table(content: &[u8]) -> (tempfile::NamedTempFile, Result<Table, ReadError>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let table = Table::open(file.path(), |cells| has_all(cells, &["name", "ns"]));
        (file, table)
    }

    fn rows(table: &mut Table) -> Vec<(Option<String>, Option<i64>)> {
        table.select(&["title|name", "ns"]);
        let mut rows = Vec::new();
        while let Some(row) = table.next(&|_, _| {}).unwrap() {
            rows.push((row.text(0).map(Into::into), row.int(1)));
        }
        rows
    }

    #[test]
    fn columns_are_found_by_name_after_what_a_tool_says_first() {
        let (_file, opened) = table(b"\xef\xbb\xbf==PROF== hello, world\nNs,\"Name\"\r\n 5 ,\"a,\"\"b\"\nx,\n7\n");
        let mut table = opened.unwrap();
        let expected = [(Some("a,\"b".to_owned()), Some(5)), (None, None), (None, Some(7))];
        assert_eq!(rows(&mut table), expected);
        assert_eq!(table.damage(), None);
    }

    #[test]
    fn a_quote_that_is_never_closed_ends_the_table_and_is_told() {
        let mut content = b"name,ns\na,1\n\"b,2\n".to_vec();
        content.resize(3 * crate::content::MAX_PIECE, b'x');
        let (_file, opened) = table(&content);
        let mut table = opened.unwrap();
        assert_eq!(rows(&mut table), [(Some("a".to_owned()), Some(1))]);
        assert!(table.damage().unwrap().contains("no end"));
    }

    #[test]
    fn a_file_without_the_header_is_refused() {
        let error = table(b"a,b\n1,2\n").1.err().unwrap();
        assert!(error.to_string().contains("names of the columns"), "{error}");
    }
}
