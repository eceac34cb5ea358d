//! Tables of a document.

use super::Inlines;

/// Side on which a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table. A row may be shorter than the columns are many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    titles: Vec<Inlines>,
    align: Vec<Align>,
    rows: Vec<Vec<Inlines>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<T: Into<Inlines>>(columns: impl IntoIterator<Item = (T, Align)>) -> Self {
        let (titles, align) = columns.into_iter().map(|(title, align)| (title.into(), align)).unzip();
        Self { titles, align, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<T: Into<Inlines>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether it has no rows under its titles.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Titles of the columns.
    pub fn titles(&self) -> &[Inlines] {
        &self.titles
    }

    /// Sides of the columns.
    pub fn align(&self) -> &[Align] {
        &self.align
    }

    /// The rows under the titles.
    pub fn rows(&self) -> &[Vec<Inlines>] {
        &self.rows
    }
}
