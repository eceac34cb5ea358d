//! What goes on beside the run on the same machine.

use std::sync::atomic::Ordering;

use super::{Injection, beside::Beside};
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
    _threads: Vec<Beside>,
}

impl Thieves {
    /// As many as asked for.
    ///
    /// # Errors
    /// [`Error::Request`] when there is no memory for them to read, or there are no threads.
    pub(crate) fn start(faults: &MachineFaults) -> Result<Self, Error> {
        let thief = |_| {
            let mut loot = Buffer::zeroed(LOOT)?;
            // Pages that were never written are all one page.
            loot.bytes_mut().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            Beside::start("bandwidth_thief", move |stop| {
                while !stop.load(Ordering::Relaxed) {
                    for part in loot.as_slice::<u32>().chunks(1 << 18) {
                        std::hint::black_box(part.iter().fold(0u32, |sum, word| sum.wrapping_add(*word)));
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                }
            })
        };
        Ok(Self { _threads: (0..faults.thieves).map(thief).collect::<Result<_, _>>()? })
    }
}
