//! From events to frames: everything that has arrived is taken before anything is drawn, and no more frames are drawn than a
//! person sees. A face with readings of its own takes them in where the terminal is asked for keys.

use std::{
    io::{self, stdout},
    path::Path,
    time::{Duration, Instant},
};

use crossterm::event::{Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};

use super::{
    app::Request,
    clipboard,
    events::{Events, Told},
    export,
    face::{Face, Tick},
    key::Key,
    terminal::{Screen, Signals},
    view::Point,
};

/// Between two frames at least: what a local terminal can show, and what a connection can carry.
pub const FRAME: Duration = Duration::from_millis(16);
const REMOTE_FRAME: Duration = Duration::from_millis(33);
/// How long a signal may wait to be seen, and between two looks for new readings.
pub const PULSE: Duration = Duration::from_millis(100);

/// How a face was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By a person.
    Quit,
    /// By a person who wants to see the capture.
    Open,
    /// There was nothing more to see.
    Done,
    /// By a signal that is to end the program.
    Signal(i32),
}

/// The terminal, taken over for one face after another.
pub struct Session {
    screen: Screen,
    signals: Signals,
    events: Events,
}

/// The signal that tells of a terminal that is gone (POSIX).
const HANG_UP: i32 = 1;

impl Session {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn take(mouse: bool) -> io::Result<Self> {
        let signals = Signals::receive()?;
        Ok(Self { screen: Screen::take(mouse)?, signals, events: Events::read()? })
    }

    /// Shows a face until it is left.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn show(&mut self, face: &mut dyn Face) -> io::Result<Left> {
        let left = self.turn(face);
        // A terminal that is gone is an error as well, and its signal the reason.
        self.signals.end().map_or(left, |signal| Ok(Left::Signal(signal)))
    }

    /// Gives the terminal back; signals are still received.
    pub fn give_back(self) -> Signals {
        self.signals
    }

    /// Takes events and draws frames until a person leaves or a signal comes.
    fn turn(&mut self, face: &mut dyn Face) -> io::Result<Left> {
        let remote = std::env::var_os("SSH_CONNECTION").is_some();
        let apart = if remote { REMOTE_FRAME } else { FRAME };
        let mut drawn: Option<Instant> = None;
        let mut looked: Option<Instant> = None;
        let mut stale = true;
        while self.signals.end().is_none() {
            if self.signals.stop() {
                self.screen.suspend()?;
                stale = true;
            }
            if self.signals.go_on() {
                self.screen.retake()?;
                stale = true;
            }
            if looked.is_none_or(|looked| looked.elapsed() >= PULSE) {
                looked = Some(Instant::now());
                match face.tick() {
                    Tick::Same => {}
                    Tick::New => stale = true,
                    Tick::Done => return Ok(Left::Done),
                }
            }
            let due = drawn.map_or(Duration::ZERO, |drawn| apart.saturating_sub(drawn.elapsed()));
            if stale && due.is_zero() {
                self.screen.draw(|frame| face.draw(frame.buffer_mut()))?;
                (stale, drawn) = (false, Some(Instant::now()));
            }
            let next = looked.map_or(Duration::ZERO, |looked| PULSE.saturating_sub(looked.elapsed()));
            let mut patience = if stale { due } else { next };
            while let Some(told) = self.events.next(patience)? {
                let Told::Event(event) = told else { return Ok(Left::Signal(HANG_UP)) };
                (stale, patience) = (true, Duration::ZERO);
                match take(face, event) {
                    Some(Request::Quit) => return Ok(Left::Quit),
                    Some(Request::Open) => return Ok(Left::Open),
                    Some(request) => self.carry_out(face, request)?,
                    None => {}
                }
            }
        }
        Ok(Left::Quit)
    }

    fn carry_out(&mut self, face: &mut dyn Face, request: Request) -> io::Result<()> {
        match request {
            Request::Quit | Request::Open => Ok(()),
            Request::Suspend => self.screen.suspend(),
            Request::Redraw => self.screen.forget(),
            Request::Mouse(on) => self.screen.capture_mouse(on),
            Request::Copy(text) => {
                let went = clipboard::copy(&mut stdout(), &text, clipboard::is_in_tmux())?;
                face.say(went.text().get(face.lang()).to_owned());
                Ok(())
            }
            Request::Save(exports) => {
                let written: io::Result<Vec<String>> = exports
                    .iter()
                    .map(|export| export::save(export, Path::new(".")).map(|path| path.display().to_string()))
                    .collect();
                face.say(written.map_or_else(|error| error.to_string(), |paths| paths.join("  ")));
                Ok(())
            }
        }
    }
}

/// Hands an event to the interface. A key counts when it goes down; some terminals also tell when it comes up.
fn take(face: &mut dyn Face, event: Event) -> Option<Request> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => face.key(Key::of(key)),
        Event::Mouse(mouse) => point(face, mouse),
        _ => None,
    }
}

fn point(face: &mut dyn Face, mouse: MouseEvent) -> Option<Request> {
    let (x, y) = (mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => {
            face.drag(None);
            face.drag(Some((x, y)));
            face.point(Point::Click(x, y))
        }
        MouseEventKind::Drag(MouseButton::Left) => face.drag(Some((x, y))),
        MouseEventKind::Up(_) => face.drag(None),
        MouseEventKind::ScrollUp => face.point(Point::Wheel(x, y, true)),
        MouseEventKind::ScrollDown => face.point(Point::Wheel(x, y, false)),
        _ => None,
    }
}
