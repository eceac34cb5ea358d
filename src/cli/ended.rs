//! Signals that end the program while it holds something that would outlive it: a tool in a process group of its own, a file
//! under a temporary name.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// How soon a signal is noticed between two looks.
const NOTICED: Duration = Duration::from_millis(50);

/// Signals that end the program, from when they are received on: what was begun is ended first.
pub struct Ended {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Ended {
    /// Where there is nothing to end, signals do what they always do.
    pub fn never() -> Self {
        Self { flag: Arc::default(), signal: Arc::default() }
    }

    /// Begins to receive them; a second one ends the program at once.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn receive() -> io::Result<Self> {
        let ended = Self::never();
        #[cfg(unix)]
        {
            use signal_hook::{consts::*, flag};
            for signal in [SIGTERM, SIGHUP, SIGINT] {
                flag::register_conditional_default(signal, Arc::clone(&ended.flag))?;
                flag::register_usize(signal, Arc::clone(&ended.signal), usize::try_from(signal).unwrap_or(0))?;
                flag::register(signal, Arc::clone(&ended.flag))?;
            }
        }
        Ok(ended)
    }

    /// As if one had come.
    #[cfg(test)]
    pub fn pretend(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// What is set when one comes.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Whether one came.
    pub fn is(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Waits, unless the program is to end.
    pub fn wait(&self, time: Duration) {
        let began = Instant::now();
        while !self.is() && began.elapsed() < time {
            std::thread::sleep(time.saturating_sub(began.elapsed()).min(NOTICED));
        }
    }

    /// Ends the program as the signal would have, if one came.
    pub fn follow(&self) {
        #[cfg(unix)]
        if self.is() {
            let signal = i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(signal_hook::consts::SIGTERM);
            // It does not return unless the system refuses, and then the program ends by itself.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}
