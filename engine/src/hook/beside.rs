//! A thread beside the run that lasts until it is dropped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use crate::Error;

/// A thread that is told to stop, and waited for, when this is dropped.
pub(super) struct Beside {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Starts `work`, which is to return soon after what it is given becomes true.
    ///
    /// # Errors
    /// [`Error::Request`] when the system gives no more threads.
    pub(super) fn start(name: &str, work: impl FnOnce(&AtomicBool) + Send + 'static) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&stop);
        let refused = |error| {
            Error::Request(format!("cannot start the thread of '{name}': {error}; inject less, or end other programs"))
        };
        let thread = Builder::new().name(name.to_owned()).spawn(move || work(&its)).map_err(refused)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_thread_beside_the_run_ends_when_it_is_dropped() {
        let ended = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&ended);
        let beside = Beside::start("test", move |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            its.store(true, Ordering::Relaxed);
        });
        let beside = beside.unwrap();
        assert!(!ended.load(Ordering::Relaxed));
        drop(beside);
        assert!(ended.load(Ordering::Relaxed));
    }
}
