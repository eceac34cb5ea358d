//! What goes on beside the run on the same machine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use super::Injection;
use crate::{Buffer, Error};

/// Faults of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFaults {
    /// Threads that read memory as fast as they can.
    pub thieves: usize,
}

pub(super) const BANDWIDTH_THIEF: Injection = Injection {
    name: "bandwidth_thief",
    arguments: "threads=1",
    what: "other threads read memory while the run does",
    apply: |options, arguments| {
        let threads: u8 = arguments.take("threads")?.unwrap_or(1);
        options.faults.machine.thieves = usize::from(threads);
        Ok(())
    },
};

/// Bytes that a thief reads over and over: more than caches hold.
const LOOT: usize = 256 << 20;

/// Threads that take bandwidth until they are dropped.
pub(crate) struct Thieves {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Thieves {
    /// As many as asked for.
    ///
    /// # Errors
    /// [`Error::Request`] when there is no memory for them to read.
    pub(crate) fn start(faults: &MachineFaults) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut thieves = Self { stop: Arc::clone(&stop), threads: Vec::new() };
        for _ in 0..faults.thieves {
            let mut loot = Buffer::zeroed(LOOT)?;
            // Pages that were never written are all one page.
            loot.bytes_mut().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            let stop = Arc::clone(&stop);
            thieves.threads.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    for part in loot.as_slice::<u32>().chunks(1 << 18) {
                        std::hint::black_box(part.iter().fold(0u32, |sum, word| sum.wrapping_add(*word)));
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                }
            }));
        }
        Ok(thieves)
    }
}

impl Drop for Thieves {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
