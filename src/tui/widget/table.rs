//! Rows under the names of their columns. Only the rows that are seen are made.

use ratatui::{buffer::Buffer, layout::Rect};

use super::rows::Rows;
use crate::{
    report::table::Align,
    tui::{
        glyph, text,
        theme::{Role, Theme},
    },
};

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

/// Draws a table of `len` rows, of which `row` makes one, with the selected one marked. Columns from the right that have no
/// room are left out. Returns where the rows are.
pub fn draw(
    columns: &[Column],
    (rows, len): (&mut Rows, usize),
    row: impl Fn(usize) -> Vec<Cell>,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> Rect {
    let room = area.width.saturating_sub(MARK);
    let fixed = |count: usize| -> u16 {
        let taken = columns.iter().take(count).map(|c| if c.width == 0 { 12 } else { c.width } + GUTTER);
        taken.fold(0, u16::saturating_add).saturating_sub(GUTTER)
    };
    let count = (1..=columns.len()).rev().find(|count| fixed(*count) <= room).unwrap_or(1).min(columns.len());
    let spare = room.saturating_sub(fixed(count)).saturating_add(12);
    let widths: Vec<u16> =
        columns.iter().take(count).map(|c| if c.width == 0 { spare.min(room) } else { c.width }).collect();
    let body = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area };
    let mut line = |y: u16, cells: &[Cell], selected: bool| {
        let mut x = area.left() + MARK;
        for ((column, width), (shown, role)) in columns.iter().zip(&widths).zip(cells) {
            let style = theme.style(*role);
            let right = x.saturating_add(*width).min(area.right());
            match column.align {
                Align::Left => {
                    text::put(buf, (x, y), shown, right.saturating_sub(x), style);
                }
                Align::Right => text::put_right(buf, (x, right, y), shown, style),
            }
            x = right.saturating_add(GUTTER);
        }
        if selected {
            text::put(buf, (area.left(), y), glyph::POINTER, 1, theme.style(Role::Strong));
            buf.set_style(Rect { x: area.x, y, width: area.width, height: 1 }, theme.style(Role::Selected));
        }
    };
    if area.height > 0 {
        let titles: Vec<Cell> = columns.iter().map(|c| (c.title.clone(), Role::Title)).collect();
        line(area.y, &titles, false);
    }
    let top = rows.seen(len, usize::from(body.height));
    for (index, y) in (top..len).zip(body.top()..body.bottom()) {
        line(y, &row(index), index == rows.at);
    }
    body
}
