//! The terminal while the interface has it, and its return: whatever ends or stops the program (leaving, a panic, a signal),
//! the shell finds its screen, its cursor and its modes as they were.

use std::{
    io::{self, Write, stdout},
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crossterm::{
    cursor::{Hide, Show},
    event::{DisableMouseCapture, EnableMouseCapture},
    execute, queue,
    style::force_color_output,
    terminal::{
        BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
        enable_raw_mode,
    },
};
use ratatui::{Frame, Terminal};

use super::backend::Output;

/// Whether the terminal is ours; asked by the panic hook, which cannot be handed anything.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, taken over until this is dropped.
pub struct Screen {
    terminal: Terminal<Output>,
    mouse: bool,
}

/// Whether the interface has the terminal, so that nobody else may write to it.
pub fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn take(mouse: bool) -> io::Result<Self> {
        // With NO_COLOR crossterm writes empty styles, which take reverse and bold away again.
        force_color_output(true);
        hook();
        let mut screen = Self { terminal: Terminal::new(Output::new())?, mouse };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        TAKEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        self.capture_mouse(self.mouse)?;
        self.terminal.clear()
    }

    /// Begins or ends to take mouse events, which the terminal's own selection of text then lacks.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn capture_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        if on { execute!(stdout(), EnableMouseCapture) } else { execute!(stdout(), DisableMouseCapture) }
    }

    /// Draws a frame, which the terminal shows at once and not line by line.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(paint).map(|_| ());
        execute!(stdout(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Forgets what the terminal shows: the next frame is drawn whole.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn forget(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    /// Gives the terminal to the shell and stops; returns when the program is continued, with the terminal taken again.
    ///
    /// # Errors
    /// Those of the terminal and of stopping.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        stop()?;
        self.enter()
    }

    /// Takes the terminal again, after something else stopped and continued the program.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn retake(&mut self) -> io::Result<()> {
        self.enter()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

#[cfg(unix)]
fn stop() -> io::Result<()> {
    signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)
}

#[cfg(not(unix))]
fn stop() -> io::Result<()> {
    Ok(())
}

/// Gives the terminal back. A terminal that is gone needs nothing.
pub fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), EndSynchronizedUpdate, DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = stdout().flush();
    }
}

/// Before anything is said of a panic, the terminal is given back: the message would stand on a screen that vanishes.
fn hook() {
    static HOOKED: AtomicBool = AtomicBool::new(false);
    if !HOOKED.swap(true, Ordering::SeqCst) {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            restore();
            before(what);
        }));
    }
}

/// Signals that were received since they were last asked for.
#[derive(Debug)]
pub struct Signals {
    ends: Vec<(i32, Arc<AtomicBool>)>,
    stop: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
}

impl Signals {
    /// Begins to receive what ends, stops and continues the program.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn receive() -> io::Result<Self> {
        let mut signals = Self { ends: Vec::new(), stop: Arc::default(), go_on: Arc::default() };
        #[cfg(unix)]
        {
            use signal_hook::{consts::*, flag::register};
            for signal in [SIGTERM, SIGHUP, SIGINT] {
                let flag = Arc::default();
                register(signal, Arc::clone(&flag))?;
                signals.ends.push((signal, flag));
            }
            register(SIGTSTP, Arc::clone(&signals.stop))?;
            register(SIGCONT, Arc::clone(&signals.go_on))?;
        }
        Ok(signals)
    }

    /// The signal that is to end the program, if one came.
    pub fn end(&self) -> Option<i32> {
        self.ends.iter().find(|(_, flag)| flag.load(Ordering::SeqCst)).map(|(signal, _)| *signal)
    }

    /// Forgets the signals that came so far, so that [`Signals::end`] tells of a later one.
    pub fn forget(&self) {
        self.ends.iter().for_each(|(_, flag)| flag.store(false, Ordering::SeqCst));
    }

    /// Whether the program was asked to stop.
    pub fn stop(&self) -> bool {
        self.stop.swap(false, Ordering::SeqCst)
    }

    /// Whether it was continued.
    pub fn go_on(&self) -> bool {
        self.go_on.swap(false, Ordering::SeqCst)
    }
}

/// Ends as the signal would have ended the program, so that its parent learns why.
pub fn end_by(signal: i32) {
    restore();
    #[cfg(unix)]
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    #[cfg(not(unix))]
    let _ = signal;
}
