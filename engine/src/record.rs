//! What happened when: spans of the host and of the device, written into memory that was there before the run.
//!
//! A record is plain data in a vector of fixed capacity, so that recording an operator costs a few reads of the clock and
//! one write. What no longer fits is counted.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the run's zero.
pub type Ns = i64;

/// A clock that never goes back, with the wall time of its zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
    /// Unix time of zero, ns; absent where the system's clock is before 1970.
    pub unix_zero: Option<Ns>,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Self { zero: Instant::now(), unix_zero: unix.and_then(|unix| Ns::try_from(unix.as_nanos()).ok()) }
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> Ns {
        Ns::try_from(self.zero.elapsed().as_nanos()).unwrap_or(Ns::MAX)
    }
}

/// From when to when, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Start.
    pub start: Ns,
    /// End.
    pub end: Ns,
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A step as a whole.
    Step,
    /// Making a program ready: planning and memory.
    Prepare,
    /// The call that started an operator; `device` is when it ran.
    Op(u32),
    /// The call that started a whole step at once.
    Replay,
    /// An operator of a step that was started at once; only `device` is meant.
    ReplayedOp(u32),
    /// The host's work between steps: the choice of the next token and its bookkeeping.
    Advance,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What.
    pub kind: Kind,
    /// Number of the step.
    pub step: u32,
    /// On the host.
    pub host: Span,
    /// On the device.
    pub device: Span,
}

/// Records of a run.
#[derive(Debug)]
pub struct Log {
    /// The run's clock.
    pub clock: Clock,
    records: Vec<Record>,
    /// Records that found no room.
    pub dropped: u64,
    /// Step under way.
    pub step: u32,
    /// Whether anything is recorded.
    on: bool,
}

impl Log {
    /// A log with room for `capacity` records.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { clock: Clock::start(), records: Vec::with_capacity(capacity), dropped: 0, step: 0, on: true }
    }

    /// A log that records nothing, to compare with.
    pub fn off() -> Self {
        Self { on: false, ..Self::with_capacity(0) }
    }

    /// Now, or 0 where nothing is recorded.
    #[inline]
    pub fn now(&self) -> Ns {
        if self.on { self.clock.now() } else { 0 }
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Adds a record.
    #[inline]
    pub fn push(&mut self, kind: Kind, host: Span, device: Span) {
        if !self.on {
            return;
        }
        if self.records.len() == self.records.capacity() {
            self.dropped += 1;
            return;
        }
        self.records.push(Record { kind, step: self.step, host, device });
    }

    /// The records in the order in which they ended.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_counts_what_it_drops_and_one_that_is_off_nothing() {
        let mut log = Log::with_capacity(2);
        let room = log.records.capacity();
        for _ in 0..room + 3 {
            log.push(Kind::Step, Span::default(), Span::default());
        }
        assert_eq!((log.records().len(), log.dropped), (room, 3));
        let mut off = Log::off();
        off.push(Kind::Step, Span::default(), Span::default());
        assert_eq!((off.records().len(), off.dropped, off.now()), (0, 0, 0));
    }
}
