//! Lines over a view: to be read, or one of them to be taken.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Look, Outcome, frame};
use crate::tui::{
    action::Action,
    glyph, text,
    theme::Role,
    widget::{
        prose::{self, Line},
        rows::Rows,
    },
};

/// Cells around the lines: the frame and a margin.
const AROUND: u16 = 4;

/// Lines under a title.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lines: Vec<Line>,
    rows: Rows,
    /// Whether a line can be taken.
    choose: bool,
}

impl Page {
    /// A page at its beginning.
    pub fn new(title: String, lines: Vec<Line>, choose: bool) -> Self {
        Self { title, lines, rows: Rows::default(), choose }
    }

    /// Takes what a key means; what moves nothing closes the page.
    pub fn key(&mut self, action: Option<Action>) -> Outcome {
        match action {
            Some(Action::Open) if self.choose && !self.lines.is_empty() => Outcome::Chosen(self.rows.at),
            Some(
                action @ (Action::Up | Action::Down | Action::PageUp | Action::PageDown | Action::Top | Action::Bottom),
            ) => {
                self.turn(action);
                Outcome::Stay
            }
            _ => Outcome::Close,
        }
    }

    /// Moves in it.
    pub fn turn(&mut self, action: Action) {
        match self.choose {
            true => self.rows.act(action, self.lines.len()),
            false => self.rows.scroll(action, self.lines.len()),
        }
    }

    /// Draws it in the middle of an area.
    pub fn draw(&mut self, look: &Look<'_>, area: Rect, buf: &mut Buffer) {
        let width = |line: &Line| line.iter().map(|piece| text::width(&piece.text)).sum::<usize>() as u16;
        let widest = self.lines.iter().map(width).chain([text::width(&self.title) as u16 + 2]).max().unwrap_or(0);
        let size = (widest.saturating_add(AROUND + 2), (self.lines.len() as u16).saturating_add(2));
        let inner = frame(&self.title, (size.0, size.1.min(area.height.saturating_sub(2))), look, area, buf);
        let (len, height) = (self.lines.len(), usize::from(inner.height));
        let top = if self.choose { self.rows.seen(len, height) } else { self.rows.scrolled(len, height) };
        let text = Rect { x: inner.x + 2, width: inner.width.saturating_sub(2), ..inner };
        prose::draw(&self.lines, top, look.theme, text, buf);
        if let Some(y) = self.rows.at.checked_sub(top).filter(|y| self.choose && *y < height) {
            let line = Rect { y: inner.y + y as u16, height: 1, ..inner };
            text::put(buf, (line.x, line.y), glyph::POINTER, 1, look.theme.style(Role::Strong));
            buf.set_style(line, look.theme.style(Role::Selected));
        }
        let hidden = len.saturating_sub(top + height);
        if hidden > 0 {
            let note = format!(" ↓ {hidden} ");
            text::put_right(buf, (inner.x, inner.right(), inner.bottom()), &note, look.theme.style(Role::Dim));
        }
    }
}
