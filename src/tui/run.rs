//! From events to frames: everything that has arrived is taken before anything is drawn, and no more frames are drawn than a
//! person sees. A source of live readings would be asked in the same place as the terminal.

use std::{
    io::{self, stdout},
    time::{Duration, Instant},
};

use crossterm::event::{self, Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};

use super::{
    app::{App, Request, Settings},
    clipboard,
    key::Key,
    opened::Opened,
    terminal::{self, Screen, Signals},
    view::Point,
};

/// Between two frames at least: what a local terminal can show, and what a connection can carry.
const FRAME: Duration = Duration::from_millis(16);
const REMOTE_FRAME: Duration = Duration::from_millis(33);
/// How long a signal may wait to be seen.
const PULSE: Duration = Duration::from_millis(100);

/// Shows the captures until the person leaves.
///
/// # Errors
/// Those of the terminal.
pub fn run(opened: Opened, settings: Settings) -> io::Result<()> {
    let mouse = settings.mouse;
    let mut app = App::new(opened, settings);
    let signals = Signals::receive()?;
    let mut screen = Screen::take(mouse)?;
    let left = turn(&mut app, &mut screen, &signals);
    drop(screen);
    match signals.end() {
        // A terminal that is gone is an error as well, and its signal the reason.
        Some(signal) => {
            terminal::end_by(signal);
            Ok(())
        }
        None => left,
    }
}

/// Takes events and draws frames until the person leaves or a signal comes.
fn turn(app: &mut App, screen: &mut Screen, signals: &Signals) -> io::Result<()> {
    let remote = std::env::var_os("SSH_CONNECTION").is_some();
    let apart = if remote { REMOTE_FRAME } else { FRAME };
    let mut drawn: Option<Instant> = None;
    let mut stale = true;
    while signals.end().is_none() {
        if signals.stop() {
            screen.suspend()?;
            stale = true;
        }
        if signals.go_on() {
            screen.retake()?;
            stale = true;
        }
        let due = drawn.map_or(Duration::ZERO, |drawn| apart.saturating_sub(drawn.elapsed()));
        if stale && due.is_zero() {
            screen.draw(|frame| app.draw(frame.buffer_mut()))?;
            (stale, drawn) = (false, Some(Instant::now()));
        }
        let mut patience = if stale { due } else { PULSE };
        while event::poll(patience)? {
            let request = take(app, event::read()?);
            (stale, patience) = (true, Duration::ZERO);
            match request {
                Some(Request::Quit) => return Ok(()),
                Some(request) => carry_out(screen, request)?,
                None => {}
            }
        }
    }
    Ok(())
}

fn carry_out(screen: &mut Screen, request: Request) -> io::Result<()> {
    match request {
        Request::Quit => Ok(()),
        Request::Suspend => screen.suspend(),
        Request::Redraw => screen.forget(),
        Request::Mouse(on) => screen.capture_mouse(on),
        Request::Copy(text) => clipboard::copy(&mut stdout(), &text),
    }
}

/// Hands an event to the interface. A key counts when it goes down; some terminals also tell when it comes up.
fn take(app: &mut App, event: Event) -> Option<Request> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => app.key(Key::of(key)),
        Event::Mouse(mouse) => point(app, mouse),
        _ => None,
    }
}

fn point(app: &mut App, mouse: MouseEvent) -> Option<Request> {
    let (x, y) = (mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => {
            app.drag(None);
            app.drag(Some((x, y)));
            app.point(Point::Click(x, y))
        }
        MouseEventKind::Drag(MouseButton::Left) => app.drag(Some((x, y))),
        MouseEventKind::Up(_) => app.drag(None),
        MouseEventKind::ScrollUp => app.point(Point::Wheel(x, y, true)),
        MouseEventKind::ScrollDown => app.point(Point::Wheel(x, y, false)),
        _ => None,
    }
}
