//! Signals that end a program, on their way to the command that is to be ended instead.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Signals that end a program, received until they are given back.
#[derive(Debug)]
pub struct Signals {
    flags: Vec<(i32, Arc<AtomicBool>)>,
    over: Arc<AtomicBool>,
}

impl Signals {
    /// Begins to receive them.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn receive() -> io::Result<Self> {
        let mut signals = Self { flags: Vec::new(), over: Arc::default() };
        #[cfg(unix)]
        {
            use signal_hook::{consts::*, flag};
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                let received = Arc::default();
                flag::register_conditional_default(signal, Arc::clone(&signals.over))?;
                flag::register(signal, Arc::clone(&received))?;
                signals.flags.push((signal, received));
            }
        }
        Ok(signals)
    }

    /// Those that came since this was last asked for.
    pub fn taken(&self) -> Vec<i32> {
        let came = self.flags.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        came.map(|(signal, _)| *signal).collect()
    }

    /// From now on they do what they always do.
    pub fn give_back(&self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// Whether a terminal has sent a signal, which then went to the command too: ctrl-c goes to every process in the foreground.
#[cfg(unix)]
pub fn is_of_terminal(signal: i32) -> bool {
    let is_foreground = |terminal| {
        rustix::termios::tcgetpgrp(&terminal).is_ok_and(|foreground| foreground == rustix::process::getpgrp())
    };
    signal == signal_hook::consts::SIGINT && File::open("/dev/tty").is_ok_and(is_foreground)
}

/// Sends a signal; a process that is gone needs none.
#[cfg(unix)]
pub fn send(process: i32, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let (Some(process), Some(signal)) = (Pid::from_raw(process), Signal::from_named_raw(signal)) {
        let _ = kill_process(process, signal);
    }
}

/// Whether a terminal has sent a signal.
#[cfg(not(unix))]
pub fn is_of_terminal(_: i32) -> bool {
    false
}

/// Sends a signal, where there are any.
#[cfg(not(unix))]
pub fn send(_: i32, _: i32) {}
