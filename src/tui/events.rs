//! What the terminal tells, read beside the loop that draws. Once a terminal has hung up, as it does when a connection is lost,
//! crossterm 0.29 takes the end of its input for nothing new and looks again at once: whoever waits for a key keeps a core busy
//! for ever. So the terminal is asked between its waits whether it is still there.

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

/// How long is waited for a key before the terminal is asked whether it is still there.
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
    while heard.strong_count() > 0 {
        let told = match terminal.is_gone() {
            Ok(true) => Ok(Told::Gone),
            Ok(false) => match event::poll(LOOK) {
                Ok(false) => continue,
                Ok(true) => event::read().map(Told::Event),
                // It may have gone meanwhile.
                Err(error) => terminal.is_gone().and_then(|gone| if gone { Ok(Told::Gone) } else { Err(error) }),
            },
            Err(error) => Err(error),
        };
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

    /// Whether nothing will ever come from it again.
    fn is_gone(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = io::stdin();
        let mut asked = [match &self.other {
            Some(file) => PollFd::new(file, PollFlags::IN),
            None => PollFd::new(&stdin, PollFlags::IN),
        }];
        match poll(&mut asked, Some(&Timespec::default())) {
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

    fn is_gone(&self) -> io::Result<bool> {
        Ok(false)
    }
}
