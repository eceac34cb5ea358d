//! What the terminal tells, read beside the loop that draws. Once a terminal has hung up, as it does when a connection is lost,
//! crossterm 0.29 takes the end of its input for nothing new and reads on for ever: whoever reads would see no signal any
//! more, and keep a core busy. So the terminal is asked first whether it is still there.

use std::{
    io,
    sync::{
        Arc, Weak,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use crossterm::event::{self, Event};

/// How long another size of the terminal may wait to be seen: it comes with a signal, which wakes nobody here.
const LOOK: Duration = Duration::from_millis(50);

/// One thing that the terminal tells.
#[derive(Debug)]
pub enum Told {
    /// A key, the mouse, or another size.
    Event(Event),
    /// There is no terminal any more.
    Gone,
}

/// What is told, in its order.
#[derive(Debug)]
pub struct Events {
    told: Receiver<io::Result<Told>>,
    /// The thread that reads ends with it.
    _open: Arc<()>,
}

impl Events {
    /// Begins to read.
    ///
    /// # Errors
    /// When there is no terminal, or no thread to read it.
    pub fn read() -> io::Result<Self> {
        let (sender, told) = mpsc::channel();
        let open = Arc::new(());
        let (terminal, heard) = (Terminal::find()?, Arc::downgrade(&open));
        thread::Builder::new().name("keys".to_owned()).spawn(move || pass_on(&terminal, &heard, &sender))?;
        Ok(Self { told, _open: open })
    }

    /// The next thing, if it comes within `patience`.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn next(&self, patience: Duration) -> io::Result<Option<Told>> {
        match self.told.recv_timeout(patience) {
            Ok(told) => told.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Ok(Some(Told::Gone)),
        }
    }
}

/// Passes on what is told, until nobody listens or there is nothing more to tell.
fn pass_on(terminal: &Terminal, heard: &Weak<()>, to: &Sender<io::Result<Told>>) {
    let mut patience = LOOK;
    while heard.strong_count() > 0 {
        let told = match terminal.is_gone(patience) {
            Ok(true) => Ok(Told::Gone),
            Ok(false) => match event::poll(Duration::ZERO) {
                Ok(true) => event::read().map(Told::Event),
                Ok(false) => {
                    patience = LOOK;
                    continue;
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        // More may have been read already than was told.
        patience = Duration::ZERO;
        let is_last = !matches!(told, Ok(Told::Event(_)));
        if to.send(told).is_err() || is_last {
            return;
        }
    }
}

/// The terminal that keys come from.
struct Terminal {
    /// None where the program's own input is it.
    #[cfg(unix)]
    other: Option<std::fs::File>,
}

#[cfg(unix)]
impl Terminal {
    /// The one that crossterm reads.
    fn find() -> io::Result<Self> {
        let own = io::IsTerminal::is_terminal(&io::stdin());
        Ok(Self { other: (!own).then(|| std::fs::File::open("/dev/tty")).transpose()? })
    }

    /// Waits for something to read, and says whether there never will be any again.
    fn is_gone(&self, patience: Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = io::stdin();
        let mut asked = [match &self.other {
            Some(file) => PollFd::new(file, PollFlags::IN),
            None => PollFd::new(&stdin, PollFlags::IN),
        }];
        let patience = Timespec::try_from(patience).ok();
        match poll(&mut asked, patience.as_ref()) {
            Ok(_) => {
                Ok(asked.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)))
            }
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(not(unix))]
impl Terminal {
    fn find() -> io::Result<Self> {
        Ok(Self {})
    }

    fn is_gone(&self, patience: Duration) -> io::Result<bool> {
        event::poll(patience).map(|_| false)
    }
}
