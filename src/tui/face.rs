//! What fills the screen: captures, a dashboard, or how far something is. It takes keys and draws cells, and knows no
//! terminal; what it cannot do itself it asks for.

use ratatui::buffer::Buffer;

use super::{app::Request, key::Key, view::Point};
use diagnosis::i18n::Lang;

/// What has become of a face since it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// It looks as before.
    Same,
    /// It looks different.
    New,
    /// There is nothing more to see: what it waited for has come.
    Done,
}

/// Something that fills the screen.
pub trait Face {
    /// Takes a key.
    fn key(&mut self, key: Key) -> Option<Request>;

    /// Takes what the mouse did.
    fn point(&mut self, point: Point) -> Option<Request>;

    /// Takes a movement with the button held, or its end.
    fn drag(&mut self, to: Option<(u16, u16)>) -> Option<Request>;

    /// Draws a frame into all of a buffer.
    fn draw(&mut self, buf: &mut Buffer);

    /// The language that it is in.
    fn lang(&self) -> Lang;

    /// Says something until the next key.
    fn say(&mut self, message: String);

    /// Takes in what has arrived. Asked about ten times a second.
    fn tick(&mut self) -> Tick {
        Tick::Same
    }
}
