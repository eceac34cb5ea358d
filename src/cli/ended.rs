//! Signals that end the program while it holds something that would outlive it: a tool in a process group of its own, a file
//! under a temporary name, a capture that is not written yet. What was begun is ended first; a second signal ends the program
//! at once. A signal that whoever started the program has ignored, as `nohup` does with SIGHUP, stays ignored.

use std::{
    io,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

#[cfg(unix)]
use collectors::record::signals::{ENDING, is_ignored};

/// How soon a signal is noticed between two looks.
const NOTICED: Duration = Duration::from_millis(50);

/// Whether a signal that comes does what it always does: nothing is held, or one has come already.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// How many hold something.
static HOLDING: Mutex<usize> = Mutex::new(0);

/// Signals that end the program, from when they are received until this is dropped.
pub struct Ended {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    #[cfg(unix)]
    actions: Vec<signal_hook::SigId>,
    holds: bool,
}

impl Ended {
    /// Where there is nothing to end, signals do what they always do.
    pub fn never() -> Self {
        Self {
            flag: Arc::default(),
            signal: Arc::default(),
            #[cfg(unix)]
            actions: Vec::new(),
            holds: false,
        }
    }

    /// Begins to receive them; a second one ends the program at once.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn receive() -> io::Result<Self> {
        let mut ended = Self::never();
        #[cfg(unix)]
        {
            // Of several actions of a signal the first that was registered runs first; one is enough for the whole program.
            static FIRST: std::sync::Once = std::sync::Once::new();
            let mut refused = Ok(());
            FIRST.call_once(|| {
                refused = heard().try_for_each(|signal| {
                    signal_hook::flag::register_conditional_default(signal, Arc::clone(&AT_ONCE)).map(drop)
                });
            });
            refused?;
            ended.hold();
            ended.register(true)?;
        }
        Ok(ended)
    }

    /// Begins to receive them, however many come: whoever started this process ends it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn patient() -> io::Result<Self> {
        let mut ended = Self::never();
        #[cfg(unix)]
        ended.register(false)?;
        Ok(ended)
    }

    #[cfg(unix)]
    fn register(&mut self, once: bool) -> io::Result<()> {
        use signal_hook::flag;
        for signal in heard() {
            self.actions.push(flag::register_usize(
                signal,
                Arc::clone(&self.signal),
                usize::try_from(signal).unwrap_or(0),
            )?);
            self.actions.push(flag::register(signal, Arc::clone(&self.flag))?);
            if once {
                self.actions.push(flag::register(signal, Arc::clone(&AT_ONCE))?);
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn hold(&mut self) {
        let mut holding = HOLDING.lock().unwrap_or_else(PoisonError::into_inner);
        if *holding == 0 {
            AT_ONCE.store(false, Ordering::SeqCst);
        }
        *holding += 1;
        self.holds = true;
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

    /// The signal that came last, 0 while there is none.
    pub fn signal(&self) -> i32 {
        i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// The signal that came, by its name.
    pub fn name(&self) -> Option<String> {
        let signal = self.is().then(|| self.signal())?;
        let named = [(1, "SIGHUP"), (2, "SIGINT"), (15, "SIGTERM")];
        let name = named.into_iter().find(|(number, _)| *number == signal);
        Some(name.map_or_else(|| format!("signal {signal}"), |(_, name)| name.to_owned()))
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
            // It does not return unless the system refuses, and then the program ends by itself.
            let _ = signal_hook::low_level::emulate_default_handler(self.signal());
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if self.holds {
            let mut holding = HOLDING.lock().unwrap_or_else(PoisonError::into_inner);
            *holding = holding.saturating_sub(1);
            if *holding == 0 {
                AT_ONCE.store(true, Ordering::SeqCst);
            }
        }
        #[cfg(unix)]
        for action in self.actions.drain(..) {
            signal_hook::low_level::unregister(action);
        }
    }
}

/// Signals that are not ignored.
#[cfg(unix)]
fn heard() -> impl Iterator<Item = i32> {
    ENDING.into_iter().filter(|signal| !is_ignored(*signal))
}

/// Does `work` as a whole: a signal that comes meanwhile ends the program after it.
pub fn whole<T>(work: impl FnOnce() -> T) -> T {
    let ended = Ended::receive().unwrap_or_else(|_| Ended::never());
    let done = work();
    ended.follow();
    done
}
