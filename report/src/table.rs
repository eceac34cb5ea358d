//! Markdown tables that are also readable as plain text: columns are padded to the width a terminal gives their characters.

use unicode_width::UnicodeWidthStr;

/// Side on which a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let (names, align) = columns.into_iter().map(|(name, align)| (cell(name), align)).unzip();
        Self { align, rows: vec![names] }
    }

    /// Adds a row. The text is markdown; only what would end a cell is escaped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|text| cell(&text)).collect());
    }

    /// Whether it has no rows under its header.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// The table as markdown, each line ended.
    pub fn markdown(&self) -> String {
        let widths: Vec<usize> = (0..self.align.len())
            .map(|i| self.rows.iter().filter_map(|row| row.get(i)).map(|c| c.width()).max().unwrap_or(0).max(3))
            .collect();
        let mut out = String::new();
        for (n, row) in self.rows.iter().enumerate() {
            out.push('|');
            for (i, width) in widths.iter().enumerate() {
                let text = row.get(i).map_or("", String::as_str);
                let fill = " ".repeat(width - text.width());
                match self.align.get(i) {
                    Some(Align::Right) => out.extend([" ", &fill, text, " |"]),
                    _ => out.extend([" ", text, &fill, " |"]),
                }
            }
            out.push('\n');
            if n == 0 {
                out.push('|');
                for (width, align) in widths.iter().zip(&self.align) {
                    let dashes = "-".repeat(width - 1);
                    match align {
                        Align::Left => out.extend([" ", &dashes, "- |"]),
                        Align::Right => out.extend([" ", &dashes, ": |"]),
                    }
                }
                out.push('\n');
            }
        }
        out
    }
}

/// A pipe ends a cell even inside a code span, and a line break ends the row.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_wide_characters() {
        let mut table = Table::new([("名", Align::Left), ("ns", Align::Right)]);
        table.row(["算子".into(), "1".into()]);
        table.row(["a|b\nc".into(), "12345".into()]);
        table.row(["short row".into()]);
        let text = table.markdown();
        assert_eq!(
            text,
            "| 名        |    ns |\n| --------- | ----: |\n| 算子      |     1 |\n| a\\|b c    | 12345 |\n| short row |       |\n"
        );
        assert!(text.lines().all(|l| l.width() == text.lines().next().map_or(0, |l| l.width())));
    }
}
