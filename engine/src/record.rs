//! What happened when: spans of the host and of the device, written into memory that was there before the run.
//!
//! A record is plain data in a vector of fixed capacity, so that recording an operator costs a few reads of the clock and
//! one write. What no longer fits is counted.

use std::{
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

mod attribute;
mod launches;
mod observer;

pub use attribute::Seen;
pub use launches::Launches;
pub use observer::Observer;

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
    /// The driver compiles the kernels of a family.
    Compile(&'static str),
    /// The driver takes the compiled kernels of a family in, and compiles what is not yet for its device.
    Load(&'static str),
    /// The call that launched an operator; `device` is from when all workers have begun to the last one's end.
    Op(u32),
    /// The kernels of a step are recorded, to be launched at once from then on.
    Capture,
    /// The call that launched a whole step at once; `device` is meant where the operators are not told one by one.
    Replay,
    /// The call that launched `count` captured operators of a step at once, from the operator `first` on; their operators are not
    /// told one by one.
    Piece {
        /// Number of the first operator.
        first: u32,
        /// Operators.
        count: u32,
    },
    /// The host gives an operator of a replay what the replay cannot know, such as lengths.
    Update(u32),
    /// An operator of a step that was launched at once; only `device` is meant.
    ReplayedOp(u32),
    /// The host waits until everything launched so far has finished.
    Sync,
    /// An operator that the host computes itself.
    Fallback(u32),
    /// A call that allocates memory.
    Alloc,
    /// A call that frees memory.
    Free,
    /// A copy of so many bytes that the host waits for.
    Copy(usize),
    /// A command that copies so many bytes to the device; the host goes on.
    Write(usize),
    /// A command that copies so many bytes from the device; the host goes on.
    Read(usize),
    /// The host chooses the next tokens from the logits.
    Sample,
    /// The host's work between steps: the choice of the next token and its bookkeeping.
    Advance,
    /// The host writes down what the device noted of a step: time that a run without a record does not take.
    Observe,
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
    /// When the host turned to it: before a call, the host chooses and prepares what it calls.
    pub from: Ns,
    /// When the driver took the command from the host and when it gave it to the device; only meant of devices that stamp that.
    pub submit: Option<Span>,
    /// On the device.
    pub device: Span,
    /// First of the workers' shares, an index into the log's.
    shares: Option<u32>,
}

impl Record {
    const EMPTY: Self = Self {
        kind: Kind::Step,
        step: 0,
        host: Span { start: 0, end: 0 },
        from: 0,
        submit: None,
        device: Span { start: 0, end: 0 },
        shares: None,
    };
}

/// Most workers' shares of a log: a gigabyte, beyond which the rest of a run is counted and not kept.
const MAX_SHARES: usize = 1 << 26;

/// Elements of a vector that are written once before the run: the system gives memory page by page when it is first used, and
/// would do so in the midst of steps. The rest of a longer run has that to bear, and no run gigabytes that it may never fill.
const WRITTEN: usize = 1 << 19;

/// An empty vector with room for so many elements, in memory that is really there.
fn ready<T: Clone>(capacity: usize, filler: T) -> Vec<T> {
    let mut made = Vec::with_capacity(capacity);
    made.resize(capacity.min(WRITTEN), filler);
    made.clear();
    made
}

/// Records of a run.
#[derive(Debug)]
pub struct Log {
    /// The run's clock.
    pub clock: Clock,
    records: Vec<Record>,
    /// When each worker began and ended its share of each operator, operator by operator.
    shares: Vec<Span>,
    /// Workers of the device.
    workers: usize,
    /// Records that found no room.
    pub dropped: u64,
    /// Commands of which the device gave no stamps.
    pub unread: u64,
    /// How far a stamp of the device may be from the host's clock, the worst of all steps; absent where both are one clock.
    pub uncertainty: Option<Ns>,
    /// Step under way.
    pub step: u32,
    /// Whether anything is recorded.
    on: bool,
    /// What is, where anything is.
    observer: Observer,
    /// Who is told what is launched.
    told: Option<Arc<dyn Launches>>,
}

impl Log {
    /// A log with room for `capacity` records of a device of so many workers.
    pub fn with_capacity(capacity: usize, workers: usize) -> Self {
        let shares = capacity.saturating_mul(workers).min(MAX_SHARES);
        Self {
            clock: Clock::start(),
            records: ready(capacity, Record::EMPTY),
            shares: ready(shares, Span::default()),
            workers,
            dropped: 0,
            unread: 0,
            uncertainty: None,
            step: 0,
            on: true,
            observer: Observer::default(),
            told: None,
        }
    }

    /// The same that records no more than that.
    #[must_use]
    pub fn observed(self, observer: Observer) -> Self {
        Self { observer, ..self }
    }

    /// The same that also tells of every launch; `None` ends that.
    #[must_use]
    pub fn telling(self, told: Option<Arc<dyn Launches>>) -> Self {
        Self { told, ..self }
    }

    /// Makes a call that enqueues what `kind` says, and tells of it where that is an operator.
    pub(crate) fn launch<T>(&self, kind: Kind, call: impl FnOnce() -> T) -> T {
        let (Some(told), Kind::Op(op)) = (&self.told, kind) else { return call() };
        told.enter(self.step, op);
        let answer = call();
        told.leave();
        answer
    }

    /// Whether somebody is told what is launched.
    pub(crate) fn tells(&self) -> bool {
        self.told.is_some()
    }

    /// A log that records nothing, to compare with.
    pub fn off() -> Self {
        Self { on: false, ..Self::with_capacity(0, 0) }
    }

    /// Now, or 0 where nothing is recorded.
    #[inline]
    pub fn now(&self) -> Ns {
        if self.sees_host() { self.clock.now() } else { 0 }
    }

    /// Whether calls of the host are recorded.
    #[inline]
    pub fn sees_host(&self) -> bool {
        self.on && self.observer.sees_host()
    }

    /// Whether what the device stamps is recorded.
    #[inline]
    pub fn sees_device(&self) -> bool {
        self.on && self.observer.sees_device()
    }

    /// Records what the device noted, and that the host did so, if there is anything to record.
    pub(crate) fn observe(&mut self, record: impl FnOnce(&mut Self)) {
        let (before, start) = (self.records.len(), self.now());
        record(self);
        if self.records.len() > before {
            self.push(Kind::Observe, Span { start, end: self.now() });
        }
    }

    /// Adds a record of the host alone.
    #[inline]
    pub fn push(&mut self, kind: Kind, host: Span) {
        self.push_command(kind, host.start, host, None, Span::default());
    }

    /// Adds a record of a command, to which the host turned at `from`, that the device itself stamped; all by the host's clock.
    #[inline]
    pub fn push_command(&mut self, kind: Kind, from: Ns, host: Span, submit: Option<Span>, device: Span) {
        self.add(Record { kind, step: self.step, host, from, submit, device, shares: None });
    }

    /// Adds a record of an operator, to which the host turned at `from`, with the shares of the workers.
    #[inline]
    pub fn push_op(&mut self, kind: Kind, from: Ns, host: Span, shares: impl ExactSizeIterator<Item = Span>) {
        if !self.sees_device() {
            // The host did nothing of its own for an operator of a replay.
            if !matches!(kind, Kind::ReplayedOp(_)) {
                self.push_command(kind, from, host, None, Span::default());
            }
            return;
        }
        if self.shares.len() + shares.len() > self.shares.capacity() {
            self.dropped += 1;
            return;
        }
        let first = self.shares.len();
        self.shares.extend(shares);
        let own = self.shares.get(first..).unwrap_or_default();
        // Until the last worker has begun it is the device that is late, not the operator that takes long: a worker that sleeps, or
        // whose core another thread has, holds up all of them.
        let start = own.iter().map(|share| share.start).max().unwrap_or(0);
        let end = own.iter().map(|share| share.end).max().unwrap_or(0);
        let shares = u32::try_from(first).ok();
        self.add(Record { kind, step: self.step, host, from, submit: None, device: Span { start, end }, shares });
    }

    fn add(&mut self, record: Record) {
        if !self.on || !(self.observer.sees_host() || record.kind == Kind::Step) {
            return;
        }
        if self.records.len() == self.records.capacity() {
            self.dropped += 1;
            return;
        }
        self.records.push(record);
    }

    /// The records; those of one step lie together.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// When each worker began and ended its share of the operator of a record; empty for records of the host alone.
    pub fn shares(&self, record: &Record) -> &[Span] {
        let first = record.shares.and_then(|first| usize::try_from(first).ok());
        first.and_then(|first| self.shares.get(first..first + self.workers)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_full_log_counts_what_it_drops_and_one_that_is_off_nothing() {
        let mut log = Log::with_capacity(2, 1);
        let room = log.records.capacity();
        for _ in 0..room + 3 {
            log.push(Kind::Step, Span::default());
        }
        assert_eq!((log.records().len(), log.dropped), (room, 3));
        log.observe(|log| log.push(Kind::Step, Span::default()));
        assert_eq!((log.records().len(), log.dropped), (room, 4), "nothing was written down");
        let mut off = Log::off();
        off.push(Kind::Step, Span::default());
        off.push_op(Kind::Op(0), 0, Span::default(), [Span::default()].into_iter());
        assert_eq!((off.records().len(), off.dropped, off.now()), (0, 0, 0));
    }

    #[test]
    fn a_log_keeps_what_its_observer_sees() {
        let shares = || [Span { start: 5, end: 9 }].into_iter();
        let kinds = |observer: Observer| {
            let mut log = Log::with_capacity(8, 1).observed(observer);
            log.push_op(Kind::Op(0), 1, Span { start: 2, end: 3 }, shares());
            log.push_op(Kind::ReplayedOp(1), 0, Span::default(), shares());
            log.push(Kind::Sync, Span { start: 3, end: 9 });
            log.push(Kind::Step, Span { start: 1, end: 9 });
            assert_eq!(log.now() > 0, log.sees_host());
            log.records().iter().map(|record| (record.kind, record.device)).collect::<Vec<_>>()
        };
        let (none, ran) = (Span::default(), Span { start: 5, end: 9 });
        assert_eq!(kinds(Observer::Off), [(Kind::Step, none)]);
        assert_eq!(kinds(Observer::Host), [(Kind::Op(0), none), (Kind::Sync, none), (Kind::Step, none)]);
        let all = [(Kind::Op(0), ran), (Kind::ReplayedOp(1), ran), (Kind::Sync, none), (Kind::Step, none)];
        assert_eq!(kinds(Observer::Device), all);
    }

    #[test]
    fn an_operator_lasts_from_when_all_workers_are_at_it_to_the_end_of_the_last() {
        let mut log = Log::with_capacity(2, 2);
        let shares = [Span { start: 5, end: 9 }, Span { start: 3, end: 7 }];
        log.push_op(Kind::Op(4), 0, Span { start: 1, end: 2 }, shares.into_iter());
        let record = log.records()[0];
        assert_eq!((record.device, log.shares(&record)), (Span { start: 5, end: 9 }, &shares[..]));
    }
}
