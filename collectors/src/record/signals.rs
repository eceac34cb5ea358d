//! Signals that end a program, on their way to the command that is to be ended instead.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Signals that end a program, received until this is dropped. Those that whoever started the program has ignored, as `nohup`
/// does with SIGHUP, stay ignored.
#[derive(Debug, Default)]
pub struct Signals {
    flags: Vec<(i32, Arc<AtomicBool>)>,
    #[cfg(unix)]
    actions: Vec<signal_hook::SigId>,
}

impl Signals {
    /// Begins to receive them.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn receive() -> io::Result<Self> {
        let mut signals = Self::default();
        #[cfg(unix)]
        for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
            let received = Arc::default();
            signals.actions.push(signal_hook::flag::register(signal, Arc::clone(&received))?);
            signals.flags.push((signal, received));
        }
        Ok(signals)
    }

    /// Those that came since this was last asked for.
    pub fn taken(&self) -> Vec<i32> {
        let came = self.flags.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        came.map(|(signal, _)| *signal).collect()
    }
}

#[cfg(unix)]
impl Drop for Signals {
    fn drop(&mut self) {
        for action in self.actions.drain(..) {
            signal_hook::low_level::unregister(action);
        }
    }
}

/// Signals that end a program and can be received.
#[cfg(unix)]
pub const ENDING: [i32; 3] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];

/// Whether a signal does nothing to this process: `nohup` and shells that start a program in the background ask for that, and
/// it is theirs to ask. Where the system does not say (`SigIgn` of proc(5)), no.
#[cfg(unix)]
pub fn is_ignored(signal: i32) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, signal))
}

#[cfg(unix)]
fn ignores(status: &str, signal: i32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal - 1).ok().and_then(|bit| mask.checked_shr(bit)).is_some_and(|mask| mask & 1 == 1)
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_mask() {
        // As nohup leaves it: SIGHUP is signal 1.
        let status = "Name:\tstrato\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000004002\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores(status, 15) && !ignores("", 1) && !ignores(status, 0));
    }
}
