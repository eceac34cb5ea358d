//! A CSV file as a profiler writes it: columns found by name whatever their order and case, rows of any length, cells as
//! text or numbers. Some writers end cells with tabs and put quotes within quotes, so that spreadsheets keep their digits;
//! neither is part of a cell.
//!
//! Damage stays where it is: a row that is cut off lacks its last cells. A quote that is never closed costs its row where
//! cells have no line breaks, and else ends the table with what was read before; neither fills memory.

use std::{
    borrow::Cow,
    cell::Cell,
    io::Read,
    path::{Path, PathBuf},
    rc::Rc,
};

use csv::{ByteRecord, ReaderBuilder};
use model::{Ns, Severity, TraceSink};

use crate::{
    Place, Progress, ReadError,
    content::{BYTE_ORDER_MARK, Content, Meter},
};

mod quotes;

/// What writers put into a cell that has no value.
const NOTHING: [&[u8]; 3] = [b"", b"N/A", b"NA"];

/// Formats whose writers end every line, the last one too: where a file of them ends otherwise, it was cut, be it between two
/// digits of a number that still looks like one.
const ENDED: [&str; 2] = ["rocprof", "rocprofv3"];

/// Columns that a table has at least, and bytes of a column's name at most, where another table is looked for. Own values.
const COLUMNS: usize = 6;
const NAME: usize = 64;

/// A CSV file being read.
pub(crate) struct Table {
    reader: csv::Reader<Box<dyn Read>>,
    header: Vec<String>,
    titles: Vec<String>,
    selected: Vec<Option<usize>>,
    record: ByteRecord,
    /// Column whose cells may hold commas although no quotes stand around them.
    open_column: Option<usize>,
    /// Cells of the row that was read last.
    width: usize,
    /// Whether the names of another table's columns end this one, and the byte where they stand.
    is_single: bool,
    second: Option<u64>,
    /// Bytes of the last cell of the row before, and of this one.
    last_cells: (usize, usize),
    meter: Meter,
    cut: Rc<Cell<u64>>,
    path: PathBuf,
}

impl Table {
    /// Opens `path` and reads its header: the first row of which `is_header` says so, given its cells in lower case.
    /// What stands before it, such as the words of a tool or of the profiled program, is passed over. Cells may hold line
    /// breaks.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot be read or no row is the header.
    pub fn open(path: &Path, is_header: impl Fn(&[String]) -> bool) -> Result<Self, ReadError> {
        let (content, meter) = Content::open(path)?;
        Self::new(path, Box::new(content), meter, Rc::default(), is_header)
    }

    /// The same of a table whose cells have no line breaks.
    ///
    /// # Errors
    /// Those of [`Table::open`].
    pub fn open_lines(path: &Path, is_header: impl Fn(&[String]) -> bool) -> Result<Self, ReadError> {
        let ((content, meter), cut) = (Content::open(path)?, Rc::default());
        let lines = quotes::Closed::new(content, meter.clone(), Rc::clone(&cut));
        Self::new(path, Box::new(lines), meter, cut, is_header)
    }

    fn new(
        path: &Path,
        source: Box<dyn Read>,
        meter: Meter,
        cut: Rc<Cell<u64>>,
        is_header: impl Fn(&[String]) -> bool,
    ) -> Result<Self, ReadError> {
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(source);
        let record = ByteRecord::new();
        let (header, titles, selected, path) = (Vec::new(), Vec::new(), Vec::new(), path.to_owned());
        let open_column = None;
        let mut table = Self {
            reader,
            header,
            titles,
            selected,
            record,
            open_column,
            width: 0,
            is_single: false,
            second: None,
            last_cells: (0, 0),
            meter,
            cut,
            path,
        };
        while table.advance()? {
            let cells: Vec<String> = table.record.iter().map(|cell| text(cell).trim().to_ascii_lowercase()).collect();
            if is_header(&cells) {
                table.header = cells;
                table.titles = table.record.iter().map(|cell| text(cell).trim().to_owned()).collect();
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

    /// The names of the columns as the file spells them.
    pub fn titles(&self) -> &[String] {
        &self.titles
    }

    /// Chooses the columns that rows are read by, named in lower case: cell `i` of a row is then that of the column
    /// `names[i]`. Where its name has changed over time, the spellings stand side by side: `lds_block_size|lds`.
    pub fn select(&mut self, names: &[&str]) {
        let place = |name: &str| self.header.iter().position(|column| column == name);
        self.selected = names.iter().map(|names| names.split('|').find_map(place)).collect();
    }

    /// Says that cells of this column, spelled as for [`Table::select`], may hold commas without quotes around them. A row with more cells than
    /// the header then has its surplus there: what follows the column is counted from the right.
    pub fn open_column(&mut self, name: &str) {
        let place = |name: &str| self.header.iter().position(|column| column == name);
        self.open_column = name.split('|').find_map(place);
    }

    /// Says that the file holds one table: where the names of other columns follow, another file was joined to it, and its rows are
    /// no rows of this one.
    pub fn single(&mut self) {
        self.is_single = true;
    }

    /// Whether the row names columns: words alone, each once, and others than this table's columns.
    fn begins_another(&self) -> bool {
        let is_name = |cell: &[u8]| cell.first().is_some_and(u8::is_ascii_alphabetic) && cell.len() < NAME;
        let cells = || self.record.iter().map(bare);
        let mut names: Vec<&[u8]> = cells().collect();
        names.sort_unstable();
        let once = names.iter().zip(names.iter().skip(1)).all(|(a, b)| a != b);
        let is_own = self.record.len() == self.header.len()
            && cells().zip(&self.header).all(|(cell, name)| text(cell).trim().eq_ignore_ascii_case(name));
        self.record.len() >= COLUMNS && !is_own && once && cells().all(is_name)
    }

    /// The next row, `None` after the last.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the operating system fails to read.
    pub fn next(&mut self, progress: Progress<'_>) -> Result<Option<Row<'_>>, ReadError> {
        if self.second.is_some() || !self.advance()? {
            return Ok(None);
        }
        if self.is_single && self.begins_another() {
            self.second = Some(self.record.position().map_or(0, csv::Position::byte));
            return Ok(None);
        }
        self.rejoin();
        self.meter.report(progress);
        Ok(Some(Row { record: &self.record, selected: &self.selected }))
    }

    /// Puts the parts of the cell together that its own commas split.
    fn rejoin(&mut self) {
        let surplus = self.record.len().saturating_sub(self.header.len());
        // An empty cell at the end is the comma with which some writers end a row.
        let ended = self.record.iter().next_back().is_some_and(<[u8]>::is_empty);
        let Some(place) = self.open_column.filter(|_| surplus > 0 && !ended) else { return };
        let mut joined = ByteRecord::with_capacity(self.record.as_slice().len() + surplus, self.header.len());
        let parts: Vec<&[u8]> = self.record.iter().skip(place).take(surplus + 1).collect();
        self.record.iter().take(place).for_each(|cell| joined.push_field(cell));
        joined.push_field(&parts.join(&b','));
        self.record.iter().skip(place + surplus + 1).for_each(|cell| joined.push_field(cell));
        self.record = joined;
    }

    /// What was wrong with the file, once its rows have ended: the compression was damaged, or a row was longer than rows
    /// are.
    fn damage(&self) -> Option<String> {
        self.meter.damage()
    }

    /// Tells the statistic `<format>.damaged_file` what was wrong with the file, once its rows have ended, and
    /// `<format>.truncated` that it ends within a row.
    pub fn tell_damage(&self, sink: &mut dyn TraceSink, format: &str) {
        let name = self.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        if let Some(byte) = self.second {
            let example = format!("{name}, byte {byte}: another table begins; split the file there");
            sink.stat(&format!("{format}.second_table"), Severity::DataLoss, 1, Some(&example));
        }
        if let Some(damage) = self.damage() {
            let example = format!("{name}: {damage}");
            sink.stat(&format!("{format}.damaged_file"), Severity::DataLoss, 1, Some(&example));
        } else if let Some(bytes) = self.ends_within_row(ENDED.contains(&format)) {
            let example = format!("{name}, byte {bytes}: its last line has no end");
            sink.stat(&format!("{format}.truncated"), Severity::DataLoss, 1, Some(&example));
        }
    }

    /// The length of a file whose last line has no end and fewer cells than the header. Where `ended` says that its writer ends every
    /// line, a last cell that is as long as the one above it is whole all the same: an editor took the end away.
    fn ends_within_row(&self, ended: bool) -> Option<u64> {
        let (bytes, last) = self.meter.given();
        let open = last.is_some_and(|byte| !matches!(byte, b'\n' | b'\r' | 0));
        let shorter = self.last_cells.0 == 0 || self.last_cells.1 < self.last_cells.0;
        Some(bytes).filter(|_| open && (self.width < self.header.len() || ended && shorter))
    }

    /// Lines that were longer than lines are and lost their end.
    pub fn cut(&self) -> u64 {
        self.cut.get()
    }

    fn advance(&mut self) -> Result<bool, ReadError> {
        self.meter.next_piece();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(more) => {
                if more {
                    self.width = self.record.len();
                    let last = self.record.iter().next_back().map_or(0, <[u8]>::len);
                    self.last_cells = (self.last_cells.1, last);
                }
                Ok(more)
            }
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
    /// Number of its cells, selected or not.
    pub fn width(&self) -> usize {
        self.record.len()
    }

    /// The text of a selected cell; `None` when the table has no such column, or the cell is empty or says that there is no
    /// value.
    pub fn text(&self, cell: usize) -> Option<Cow<'a, str>> {
        self.bytes(cell).filter(|bytes| !NOTHING.contains(bytes)).map(text)
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
        self.number_in((*self.selected.get(cell)?)?)
    }

    /// The text in the cell of a column, as [`Self::text`] gives that of a selected one.
    pub fn text_in(&self, column: usize) -> Option<Cow<'a, str>> {
        self.record.get(column).map(bare).filter(|bytes| !NOTHING.contains(bytes)).map(text)
    }

    /// The finite number in the cell of a column, counted from the first of the table, selected or not.
    pub fn number_in(&self, column: usize) -> Option<f64> {
        let text = std::str::from_utf8(bare(self.record.get(column)?)).ok()?;
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The decimal number of `10^unit_exp` ns in a selected cell, as ns.
    pub fn decimal(&self, cell: usize, unit_exp: i32) -> Option<Ns> {
        model::time::parse_decimal(self.bytes(cell)?, unit_exp).ok().map(|(ns, _)| ns)
    }

    fn bytes(&self, cell: usize) -> Option<&'a [u8]> {
        Some(bare(self.record.get((*self.selected.get(cell)?)?)?))
    }
}

/// A cell without what writers put around its value.
fn bare(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    cell.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(cell).trim_ascii()
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
        assert!(table.damage().is_some());
    }

    #[test]
    fn a_lost_quote_and_a_line_without_end_cost_their_own_rows() {
        let long = "x".repeat(3 * quotes::MAX_LINE);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "name,ns\n\"b,2\nc,3\n{long}\ne,5\n").unwrap();
        let mut table = Table::open_lines(file.path(), |cells| has_all(cells, &["name", "ns"])).unwrap();
        let read = rows(&mut table);
        assert_eq!((read.len(), read[1].1, read[3].1), (4, Some(3), Some(5)));
        assert_eq!((read[0].0.as_deref(), table.cut(), table.damage()), (Some("b,2"), 1, None));
    }

    #[test]
    fn cells_lose_tabs_quotes_and_words_for_nothing() {
        let text = "\u{feff}Step Id,Start Time(us),Input Shapes,Block Dim\n\
                    50,\"1736413971558972.912\t\",\"\"\"32,3;1\"\"\",N/A\n\
                    51,1736413971558972.913\t,,8\n\
                    52\n";
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut table = Table::open_lines(file.path(), |cells| has_all(cells, &["step id"])).unwrap();
        table.select(&["start time(us)", "input shapes", "block num|block dim", "step id"]);
        let mut rows = Vec::new();
        while let Some(row) = table.next(&|_, _| {}).unwrap() {
            rows.push((row.decimal(0, 3), row.text(1).map(Cow::into_owned), row.int(2), row.int(3)));
        }
        let first = 1_736_413_971_558_972_912;
        assert_eq!(rows[0], (Some(first), Some("32,3;1".to_owned()), None, Some(50)));
        assert_eq!(rows[1], (Some(first + 1), None, Some(8), Some(51)));
        assert_eq!(rows[2], (None, None, None, Some(52)));
    }

    /// A cut table was taken for a whole one, or for one with a single bad row.
    #[test]
    fn a_table_that_ends_within_a_row_is_told_as_cut() {
        let told = |content: &[u8], format: &str| {
            let (_file, opened) = table(content);
            let mut table = opened.unwrap();
            rows(&mut table);
            let mut builder = model::TraceBuilder::new("t", "t");
            table.tell_damage(&mut builder, format);
            builder.finish().stat(&format!("{format}.truncated"))
        };
        assert_eq!(told(b"name,ns\na,1\nb", "x"), 1);
        assert_eq!([b"name,ns\na,1\nb,2\n".as_slice(), b"name,ns\na,1\nb,2\r\n"].map(|text| told(text, "x")), [0, 0]);
        let within = b"name,ns\na,17\nb,2";
        assert_eq!((told(within, "x"), told(within, "rocprof")), (0, 1));
        // Seven whole rows were told as cut, because an editor had taken the last line's end away.
        assert_eq!(told(b"name,ns\na,17\nb,23", "rocprof"), 0);
    }

    #[test]
    fn a_file_without_the_header_is_refused() {
        let error = table(b"a,b\n1,2\n").1.err().unwrap();
        assert!(error.to_string().contains("names of the columns"), "{error}");
    }
}
