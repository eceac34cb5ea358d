//! A page of a table as columns.

use super::cursor::Cell;

/// What a column of the page is read from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// An integer: the first of these columns that the table has and that is not NULL.
    Int(&'static str, &'static [&'static str]),
    /// An integer that some writers store as decimal text.
    Decimal(&'static str, &'static [&'static str]),
    /// A number that may have a fraction.
    Real(&'static str),
    /// Text, or where the text is NULL the string id in the second column.
    Text(&'static str, Option<&'static str>),
}

/// The cells of one column of a page.
#[derive(Debug)]
pub(crate) enum Lane {
    /// Integers; what is NULL or no integer is absent.
    Ints(Vec<Option<i64>>),
    /// Numbers.
    Reals(Vec<Option<f64>>),
    /// Text: the characters of all cells, and where each cell lies in them.
    Texts(String, Vec<TextCell>),
    /// The table has no such column.
    Missing,
}

/// One cell of a text column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextCell {
    Null,
    Id(i64),
    Range(usize, usize),
}

/// Text of a cell, or the id of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    /// The text itself.
    Inline(&'a str),
    /// Its id in `StringIds`.
    Id(i64),
}

/// Some rows of a table.
#[derive(Debug)]
pub(crate) struct Page {
    pub rows: usize,
    pub lanes: Vec<Lane>,
}

impl Page {
    /// The first `N` columns of a row, which are integers.
    pub fn ints<const N: usize>(&self, row: usize) -> [Option<i64>; N] {
        std::array::from_fn(|lane| self.int(lane, row))
    }

    /// An integer.
    pub fn int(&self, lane: usize, row: usize) -> Option<i64> {
        match self.lanes.get(lane) {
            Some(Lane::Ints(cells)) => cells.get(row).copied().flatten(),
            _ => None,
        }
    }

    /// A number.
    pub fn real(&self, lane: usize, row: usize) -> Option<f64> {
        match self.lanes.get(lane) {
            Some(Lane::Reals(cells)) => cells.get(row).copied().flatten(),
            _ => None,
        }
    }

    /// Text or its id.
    pub fn text(&self, lane: usize, row: usize) -> Option<Text<'_>> {
        let Some(Lane::Texts(characters, cells)) = self.lanes.get(lane) else { return None };
        match cells.get(row)? {
            TextCell::Null => None,
            TextCell::Id(id) => Some(Text::Id(*id)),
            TextCell::Range(start, end) => characters.get(*start..*end).map(Text::Inline),
        }
    }

    /// Text of a column that has no ids.
    pub fn inline(&self, lane: usize, row: usize) -> Option<&str> {
        match self.text(lane, row)? {
            Text::Inline(text) => Some(text),
            Text::Id(_) => None,
        }
    }
}

/// Where the cells of a lane come from: columns of the query.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The first of these that is not NULL.
    Int(Vec<usize>),
    /// The same, also of decimal text.
    Decimal(Vec<usize>),
    Real(usize),
    /// Text, and the id that stands for it where it is NULL.
    Text(Option<usize>, Option<usize>),
    Missing,
}

impl Origin {
    /// An empty lane for its cells.
    pub fn lane(&self) -> Lane {
        match self {
            Self::Int(_) | Self::Decimal(_) => Lane::Ints(Vec::new()),
            Self::Real(_) => Lane::Reals(Vec::new()),
            Self::Text(..) => Lane::Texts(String::new(), Vec::new()),
            Self::Missing => Lane::Missing,
        }
    }
}

/// The class of a cell is not that of its column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongType;

impl Lane {
    /// Takes the next cell, which becomes absent where it is of a wrong type. `cell` gives the columns of the row.
    pub fn push<'r>(&mut self, origin: &Origin, cell: impl Fn(usize) -> Cell<'r>) -> Result<(), WrongType> {
        match (self, origin) {
            (Self::Ints(cells), Origin::Int(columns) | Origin::Decimal(columns)) => {
                let found = columns.iter().map(|column| cell(*column)).find(|cell| *cell != Cell::Null);
                let read = match (found.unwrap_or(Cell::Null), origin) {
                    (Cell::Bytes(text), Origin::Decimal(_)) => decimal(text),
                    (cell, _) => int(cell),
                };
                cells.push(read.as_ref().ok().copied().flatten());
                read.map(|_| ())
            }
            (Self::Reals(cells), Origin::Real(column)) => {
                let read = match cell(*column) {
                    Cell::Null => Ok(None),
                    Cell::Int(value) => Ok(Some(value as f64)),
                    Cell::Real(value) if value.is_finite() => Ok(Some(value)),
                    Cell::Real(_) | Cell::Bytes(_) => Err(WrongType),
                };
                cells.push(read.as_ref().ok().copied().flatten());
                read.map(|_| ())
            }
            (Self::Texts(characters, cells), Origin::Text(text, id)) => {
                let start = characters.len();
                match text.map_or(Cell::Null, &cell) {
                    Cell::Null => {
                        let read = int(id.map_or(Cell::Null, &cell));
                        cells.push(read.as_ref().ok().copied().flatten().map_or(TextCell::Null, TextCell::Id));
                        return read.map(|_| ());
                    }
                    Cell::Int(value) => characters.push_str(&value.to_string()),
                    Cell::Real(value) => characters.push_str(&value.to_string()),
                    Cell::Bytes(bytes) => characters.push_str(&String::from_utf8_lossy(bytes)),
                }
                cells.push(TextCell::Range(start, characters.len()));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// An integer from decimal text, empty where it says nothing.
fn decimal(text: &[u8]) -> Result<Option<i64>, WrongType> {
    match model::time::parse_decimal(text, 0) {
        Ok((value, _)) => Ok(Some(value)),
        Err(_) if text.trim_ascii().is_empty() => Ok(None),
        Err(_) => Err(WrongType),
    }
}

/// An integer, also where SQLite stored it as a float without a fraction.
fn int(cell: Cell<'_>) -> Result<Option<i64>, WrongType> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Int(value) => Ok(Some(value)),
        // Beyond 2^53 a float no longer says which integer was meant.
        Cell::Real(value) if value.fract() == 0.0 && value.abs() <= (1i64 << 53) as f64 => Ok(Some(value as i64)),
        Cell::Real(_) | Cell::Bytes(_) => Err(WrongType),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn lane(origin: &Origin, rows: &[&[Cell<'_>]]) -> (Page, usize) {
        let mut lane = origin.lane();
        let wrong = rows.iter().filter(|row| lane.push(origin, |column| row[column]).is_err()).count();
        (Page { rows: rows.len(), lanes: vec![lane] }, wrong)
    }

    #[test]
    fn integers_keep_every_digit_and_wrong_types_are_counted() {
        let cells = [Cell::Int(i64::MAX), Cell::Int(i64::MIN), Cell::Null, Cell::Real(5.0), Cell::Real(5.5)];
        let mut rows: Vec<&[Cell<'_>]> = cells.iter().map(std::slice::from_ref).collect();
        rows.extend([&[Cell::Bytes(b"7")][..], &[Cell::Real(1e300)]]);
        let (page, wrong) = lane(&Origin::Int(vec![0]), &rows);
        let read: Vec<Option<i64>> = (0..page.rows).map(|row| page.int(0, row)).collect();
        assert_eq!(read, [Some(i64::MAX), Some(i64::MIN), None, Some(5), None, None, None]);
        assert_eq!(wrong, 3);
    }

    #[test]
    fn the_first_column_that_is_not_null_counts() {
        let rows: [&[Cell<'_>]; 3] =
            [&[Cell::Null, Cell::Int(2)], &[Cell::Int(1), Cell::Int(2)], &[Cell::Bytes(b"x"), Cell::Int(2)]];
        let (page, wrong) = lane(&Origin::Int(vec![0, 1]), &rows);
        assert_eq!((page.int(0, 0), page.int(0, 1), page.int(0, 2), wrong), (Some(2), Some(1), None, 1));
    }

    #[test]
    fn text_comes_before_its_id_and_bytes_that_are_no_text_are_replaced() {
        let rows: [&[Cell<'_>]; 5] = [
            &[Cell::Bytes(b"a,\"b"), Cell::Int(17)],
            &[Cell::Null, Cell::Int(17)],
            &[Cell::Null, Cell::Null],
            &[Cell::Bytes(b"\xff"), Cell::Null],
            &[Cell::Null, Cell::Bytes(b"17")],
        ];
        let (page, wrong) = lane(&Origin::Text(Some(0), Some(1)), &rows);
        let read: Vec<Option<Text<'_>>> = (0..6).map(|row| page.text(0, row)).collect();
        let expected =
            [Some(Text::Inline("a,\"b")), Some(Text::Id(17)), None, Some(Text::Inline("\u{fffd}")), None, None];
        assert_eq!((read, wrong), (expected.to_vec(), 1));
    }
}
