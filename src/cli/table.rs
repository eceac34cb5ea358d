//! Aligned columns for a terminal. Widths are those of the terminal's cells, so that Chinese names align.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::terminal_text::plain;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Widths and alignments of the columns of a table.
#[derive(Debug)]
pub struct Layout {
    columns: Vec<(usize, Align)>,
}

impl Layout {
    /// Columns wide enough for their titles and for every row of `sample`.
    pub fn new<S: AsRef<str>>(titles: &[S], align: &[Align], sample: &[Vec<String>]) -> Self {
        let column = |(i, title): (usize, &S)| {
            let cells = sample.iter().filter_map(|row| row.get(i)).map(|cell| plain(cell).width());
            let width = cells.max().unwrap_or(0).max(plain(title.as_ref()).width());
            (width, align.get(i).copied().unwrap_or(Align::Left))
        };
        Self { columns: titles.iter().enumerate().map(column).collect() }
    }

    /// Writes one row; a cell that is wider than its column pushes the rest of its row to the right.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn row<S: AsRef<str>>(&self, out: &mut dyn Write, cells: &[S]) -> io::Result<()> {
        let mut line = String::new();
        for (i, (cell, (width, align))) in cells.iter().zip(&self.columns).enumerate() {
            let cell = plain(cell.as_ref());
            let pad = width.saturating_sub(cell.width());
            line.push_str(if i > 0 { "  " } else { "" });
            match align {
                Align::Left => {
                    line.push_str(&cell);
                    line.extend(std::iter::repeat_n(' ', pad));
                }
                Align::Right => {
                    line.extend(std::iter::repeat_n(' ', pad));
                    line.push_str(&cell);
                }
            }
        }
        writeln!(out, "{}", line.trim_end())
    }

    /// Writes the line between titles and rows.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn rule(&self, out: &mut dyn Write) -> io::Result<()> {
        let dashes: Vec<String> = self.columns.iter().map(|(width, _)| "-".repeat(*width)).collect();
        writeln!(out, "{}", dashes.join("  "))
    }
}

/// Writes a whole table.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, titles: &[&str], align: &[Align], rows: &[Vec<String>]) -> io::Result<()> {
    let layout = Layout::new(titles, align, rows);
    layout.row(out, titles)?;
    layout.rule(out)?;
    rows.iter().try_for_each(|row| layout.row(out, row))
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
}
