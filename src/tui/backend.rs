//! What frames are written to: the terminal, without ever asking it anything.
//!
//! ratatui asks where the cursor is before it clears the screen, to put it back. A whole-screen interface has no use for the
//! answer; over a slow line it costs a round trip each time, the answer comes between the keys, and a terminal that gives
//! none ends the program.

use std::io::{self, BufWriter, Stdout, stdout};

use ratatui::{
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
};

/// Bytes that are kept before they are written: most of a frame. Standard output itself keeps a kilobyte, and a frame that
/// changes every cell would take more than a hundred calls of the system.
const KEPT: usize = 64 * 1024;

/// The terminal on standard output.
pub struct Output {
    inner: CrosstermBackend<BufWriter<Stdout>>,
    /// Where the cursor was put last.
    cursor: Position,
}

impl Output {
    /// The terminal on standard output.
    pub fn new() -> Self {
        Self { inner: CrosstermBackend::new(BufWriter::with_capacity(KEPT, stdout())), cursor: Position::ORIGIN }
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for Output {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        self.inner.draw(content)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        self.inner.set_cursor_position(self.cursor)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        self.inner.clear_region(clear_type)
    }

    fn size(&self) -> io::Result<Size> {
        Ok(seen(self.inner.size()?, |name| std::env::var(name).ok()?.parse().ok()))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

/// The size of a terminal that says it has none, as some lines and containers do: what COLUMNS and LINES say, else 80×24.
fn seen(size: Size, variable: impl Fn(&str) -> Option<u16>) -> Size {
    if size.width > 0 && size.height > 0 {
        return size;
    }
    let said = |name, usual| variable(name).filter(|cells| *cells > 0).unwrap_or(usual);
    Size::new(said("COLUMNS", 80), said("LINES", 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_size_has_the_one_that_the_environment_says() {
        let none = |_: &str| None;
        assert_eq!(seen(Size::new(0, 0), none), Size::new(80, 24));
        assert_eq!(seen(Size::new(3, 1), |_| Some(9)), Size::new(3, 1));
        assert_eq!(seen(Size::new(0, 5), |name| (name == "COLUMNS").then_some(132)), Size::new(132, 24));
        assert_eq!(seen(Size::new(0, 0), |_| Some(0)), Size::new(80, 24));
    }
}
