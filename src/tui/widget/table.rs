//! Rows under the names of their columns. Only the rows that are seen are made.

use ratatui::{buffer::Buffer, layout::Rect};

use super::rows::Rows;
use crate::tui::{
    glyph, text,
    theme::{Role, Theme},
};
use report::document::Align;

/// A column. The first column that may grow takes the room that is left.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub title: String,
    /// Side on which its text stands.
    pub align: Align,
    /// Cells that it takes; 0 for what is left.
    pub width: u16,
}

/// One cell's text and what it means.
pub type Cell = (String, Role);

/// Cells between two columns.
const GUTTER: u16 = 2;
/// Cells before the first column, for the mark of the selected row.
const MARK: u16 = 2;

/// Columns that have room, each with the cells that it takes.
struct Laid<'a> {
    columns: &'a [Column],
    widths: Vec<u16>,
    theme: &'a Theme,
    area: Rect,
}

impl<'a> Laid<'a> {
    /// Columns from the right that have no room are left out.
    fn new(columns: &'a [Column], theme: &'a Theme, area: Rect) -> Self {
        let room = area.width.saturating_sub(MARK);
        let fixed = |count: usize| -> u16 {
            let taken = columns.iter().take(count).map(|c| if c.width == 0 { 12 } else { c.width } + GUTTER);
            taken.fold(0, u16::saturating_add).saturating_sub(GUTTER)
        };
        let count = (1..=columns.len()).rev().find(|count| fixed(*count) <= room).unwrap_or(1).min(columns.len());
        let spare = room.saturating_sub(fixed(count)).saturating_add(12);
        let width = |c: &Column| if c.width == 0 { spare.min(room) } else { c.width };
        Self { columns, widths: columns.iter().take(count).map(width).collect(), theme, area }
    }

    /// Where the rows are: below the names of the columns.
    fn body(&self) -> Rect {
        Rect { y: self.area.y.saturating_add(1), height: self.area.height.saturating_sub(1), ..self.area }
    }

    fn line(&self, y: u16, cells: &[Cell], buf: &mut Buffer) {
        let mut x = self.area.left() + MARK;
        for ((column, width), (shown, role)) in self.columns.iter().zip(&self.widths).zip(cells) {
            let style = self.theme.style(*role);
            let right = x.saturating_add(*width).min(self.area.right());
            match column.align {
                Align::Left => {
                    text::put(buf, (x, y), shown, right.saturating_sub(x), style);
                }
                Align::Right => text::put_right(buf, (x, right, y), shown, style),
            }
            x = right.saturating_add(GUTTER);
        }
    }

    fn head(&self, buf: &mut Buffer) {
        if self.area.height > 0 {
            let titles: Vec<Cell> = self.columns.iter().map(|c| (c.title.clone(), Role::Title)).collect();
            self.line(self.area.y, &titles, buf);
        }
    }
}

/// Draws a table of `len` rows, of which `row` makes one, with the selected one marked. Returns where the rows are.
pub fn draw(
    columns: &[Column],
    (rows, len): (&mut Rows, usize),
    row: impl Fn(usize) -> Vec<Cell>,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> Rect {
    let laid = Laid::new(columns, theme, area);
    laid.head(buf);
    let body = laid.body();
    let top = rows.seen(len, usize::from(body.height));
    for (index, y) in (top..len).zip(body.top()..body.bottom()) {
        laid.line(y, &row(index), buf);
        if index == rows.at {
            text::put(buf, (area.left(), y), glyph::POINTER, 1, theme.style(Role::Strong));
            buf.set_style(Rect { x: area.x, y, width: area.width, height: 1 }, theme.style(Role::Selected));
        }
    }
    body
}

/// Draws rows of which none is selected.
pub fn still(columns: &[Column], rows: &[Vec<Cell>], theme: &Theme, area: Rect, buf: &mut Buffer) {
    let laid = Laid::new(columns, theme, area);
    laid.head(buf);
    let body = laid.body();
    for (row, y) in rows.iter().zip(body.top()..body.bottom()) {
        laid.line(y, row, buf);
    }
}
