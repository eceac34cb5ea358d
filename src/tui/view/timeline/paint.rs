//! How lanes look. A cell that one slice fills is solid, one that several share is shaded by how busy it is: many small slices
//! never look like a long one. Without colour the kind's letter stands in the cell, small where several slices share it.

use model::Span;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::tui::{
    glyph,
    lane::{Column, CounterIndex, Kind, LaneIndex},
    text,
    theme::{Role, Theme},
};

/// Cells from which a slice carries its name.
const NAMED: u16 = 6;

/// What a lane is drawn with.
pub struct Brush<'a> {
    /// Colours.
    pub theme: &'a Theme,
    /// What is seen.
    pub window: Span,
    /// The slot that is selected on this lane.
    pub selected: Option<usize>,
}

impl Brush<'_> {
    /// Draws the slices of a lane into a row of cells.
    pub fn slices(&self, lane: &LaneIndex, name: impl Fn(usize) -> String, row: Rect, buf: &mut Buffer) {
        let mut columns = Vec::new();
        lane.columns(self.window, row.width, &mut columns);
        let mut x = 0;
        while let Some(column) = columns.get(usize::from(x)) {
            let run = if full(column) { self.run(&columns, x) } else { 1 };
            if run >= NAMED {
                self.block(lane, &name, column, Rect { x: row.x + x, width: run, ..row }, buf);
            } else {
                for at in x..x + run {
                    let before = at.checked_sub(1).and_then(|before| columns.get(usize::from(before)));
                    if let Some(column) = columns.get(usize::from(at)) {
                        self.cell(column, before, (row.x + at, row.y), buf);
                    }
                }
            }
            x += run;
        }
        if let Some(span) = self.selected.and_then(|slot| lane.span(slot)) {
            self.select(span, row, buf);
        }
    }

    /// Cells from `x` on that the same slice fills.
    fn run(&self, columns: &[Column], x: u16) -> u16 {
        let first = columns.get(usize::from(x)).map(|c| c.slot);
        let rest = columns.iter().skip(usize::from(x));
        rest.take_while(|c| full(c) && Some(c.slot) == first).count() as u16
    }

    /// A slice that is wide enough for its name.
    fn block(&self, lane: &LaneIndex, name: &impl Fn(usize) -> String, column: &Column, row: Rect, buf: &mut Buffer) {
        let style = self.theme.style(Role::Block(column.kind));
        let slot = column.slot as usize;
        let begins = lane.span(slot).is_some_and(|span| span.start >= self.window.start);
        text::fill(buf, (row.x, row.y), row.width, " ", style);
        let open = if begins { glyph::BAR } else { " " };
        text::put(buf, (row.x, row.y), open, 1, style);
        text::put(buf, (row.x + 1, row.y), &text::safe(&name(slot)), row.width - 1, style);
    }

    fn cell(&self, column: &Column, before: Option<&Column>, at: (u16, u16), buf: &mut Buffer) {
        if column.count == 0 {
            return;
        }
        let style = self.theme.style(Role::Kind(column.kind));
        let other = before.is_some_and(|b| full(b) && b.slot != column.slot);
        if self.theme.is_mono() {
            let letter = column.kind.letter();
            let letter = if column.count > 1 || !full(column) { letter.to_ascii_lowercase() } else { letter };
            text::fill(buf, at, 1, letter.encode_utf8(&mut [0; 4]), style);
            return;
        }
        let mark = match column {
            column if column.count > 1 => glyph::shade(column.busy, column.len),
            column if full(column) && other => glyph::EDGE,
            column if full(column) => glyph::SOLID,
            // An instant takes no time and is there.
            column => glyph::eighth(column.busy.max(1), column.len.max(2)),
        };
        text::fill(buf, at, 1, mark, style);
    }

    /// Marks where a selected slice lies.
    pub fn select(&self, span: Span, row: Rect, buf: &mut Buffer) {
        let column = |t: i64| {
            let part = i128::from(t.saturating_sub(self.window.start)) * i128::from(row.width);
            (part / i128::from(self.window.len().max(1))).clamp(0, i128::from(row.width)) as u16
        };
        let seen = span.end > self.window.start && span.start < self.window.end;
        let (from, to) = (column(span.start), column(span.end.saturating_sub(1)));
        if seen && from < row.width {
            let width = (to.min(row.width - 1) - from.min(to)) + 1;
            let style = self.theme.style(Role::Chosen);
            buf.set_style(Rect { x: row.x + from, width, ..row }, style);
        }
    }

    /// Draws the samples of a counter into a row of cells: their most in each column.
    pub fn samples(&self, counter: &CounterIndex, row: Rect, buf: &mut Buffer) {
        let Some(range) = counter.range() else { return };
        let mut columns = Vec::new();
        counter.columns(self.window, row.width, &mut columns);
        let style = self.theme.style(Role::Kind(Kind::Device));
        let least = range.least.min(0.0);
        let height = (range.most - least).max(f64::MIN_POSITIVE);
        for (x, column) in (row.x..).zip(&columns) {
            if let Some(column) = column {
                let part = ((column.most - least) / height * 1e6) as i64;
                text::fill(buf, (x, row.y), 1, glyph::eighth(part.max(1), 1_000_000), style);
            }
        }
    }
}

/// Whether one slice fills the column.
fn full(column: &Column) -> bool {
    column.count == 1 && column.busy == column.len && column.len > 0
}
