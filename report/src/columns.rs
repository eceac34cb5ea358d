//! Columns that line up. Widths are those of a terminal's cells, so that Chinese names align.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::{document::Align, text::line};

/// Widths and sides of the columns of a table.
#[derive(Debug)]
pub struct Columns(Vec<(usize, Align)>);

/// What stands before the cells of a line, between them and after them.
pub type Frame = [&'static str; 3];

/// Lines without borders.
const OPEN: Frame = ["", "  ", ""];

impl Columns {
    /// Columns wide enough for their titles and for every row of `sample`; of a column without a side the text stands left.
    pub fn new<S: AsRef<str>>(titles: &[S], align: &[Align], sample: &[Vec<String>]) -> Self {
        let title = titles.iter().map(|title| line(title.as_ref()).width()).collect();
        let rows = sample.iter().map(|row| row.iter().map(|cell| line(cell).width()).collect());
        let sides = (0..titles.len()).map(|i| align.get(i).copied().unwrap_or(Align::Left));
        Self::fit(&sides.collect::<Vec<_>>(), std::iter::once(title).chain(rows), 0)
    }

    /// Columns of these sides, wide enough for cells of these widths and for `least`.
    pub fn fit(align: &[Align], rows: impl Iterator<Item = Vec<usize>>, least: usize) -> Self {
        let mut columns: Vec<(usize, Align)> = align.iter().map(|align| (least, *align)).collect();
        for row in rows {
            columns.iter_mut().zip(row).for_each(|((width, _), own)| *width = own.max(*width));
        }
        Self(columns)
    }

    /// One line: cells with the widths they take, each filled up to that of its column. A cell that is wider than its column
    /// pushes the rest of its line to the right.
    pub fn line<S: AsRef<str>>(&self, cells: &[(S, usize)], [before, between, after]: Frame) -> String {
        let mut out = String::from(before);
        for (i, (width, align)) in self.0.iter().enumerate() {
            let (text, own) = cells.get(i).map_or(("", 0), |(text, own)| (text.as_ref(), *own));
            let fill = " ".repeat(width.saturating_sub(own));
            out.push_str(if i > 0 { between } else { "" });
            match align {
                Align::Left => out.extend([text, &fill]),
                Align::Right => out.extend([&fill, text]),
            }
        }
        out.push_str(after);
        out
    }

    /// The line between titles and rows; `side` makes the dashes of a column.
    pub fn dashes(&self, side: impl Fn(usize, Align) -> String, frame: Frame) -> String {
        let cells: Vec<_> = self.0.iter().map(|(width, align)| (side(*width, *align), *width)).collect();
        self.line(&cells, frame)
    }

    /// Writes one row of plain text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn row<S: AsRef<str>>(&self, out: &mut dyn Write, cells: &[S]) -> io::Result<()> {
        let cells = cells.iter().map(|cell| line(cell.as_ref()));
        let cells: Vec<_> = cells.map(|cell| (cell.width(), cell)).map(|(width, cell)| (cell, width)).collect();
        writeln!(out, "{}", self.line(&cells, OPEN).trim_end())
    }

    /// Writes the line between titles and rows of plain text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn rule(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.dashes(|width, _| "-".repeat(width), OPEN))
    }
}

/// Writes a whole table of plain text.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, titles: &[&str], align: &[Align], rows: &[Vec<String>]) -> io::Result<()> {
    let columns = Columns::new(titles, align, rows);
    columns.row(out, titles)?;
    columns.rule(out)?;
    rows.iter().try_for_each(|row| columns.row(out, row))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn chinese_and_hostile_cells_align() {
        let mut out = Vec::new();
        let rows = [vec!["矩阵".to_owned(), "7".to_owned()], vec!["a\u{1b}[2J".to_owned(), "1234".to_owned()]];
        write(&mut out, &["name", "count"], &[Align::Left, Align::Right], &rows).unwrap();
        let expected = "name        count\n----------  -----\n矩阵            7\na\\u{1b}[2J   1234\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_short_row_is_filled_and_a_wide_cell_pushes() {
        let columns = Columns::fit(&[Align::Left, Align::Right], [vec![2, 1]].into_iter(), 0);
        assert_eq!(columns.line::<&str>(&[], ["|", "|", "|"]), "|  | |");
        assert_eq!(columns.line(&[("abc", 3), ("1", 1)], OPEN), "abc  1");
    }
}
