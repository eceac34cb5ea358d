//! What holds up the host of a run and what goes on beside it, as its faults say: delays, waits, allocations, copies, threads.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    Buffer, Error,
    faults::{HostFaults, MachineFaults, Stall},
    program::OpCall,
    record::{Kind, Log, Span},
};

mod beside;

use beside::Beside;

/// A sleep may last so much longer than was asked for: the slack of Linux timers is 50 µs.
const WAKE_UP: Duration = Duration::from_micros(100);

/// Longest time that a thread beside the run sleeps without looking whether the run is over.
const NOTICED: Duration = Duration::from_millis(10);

/// Steps of a run before its first decode step.
const PREFILL: u32 = 1;

/// The host's faults while a run lasts.
pub(crate) struct HostHook {
    faults: HostFaults,
    copied: Option<[Buffer; 2]>,
    random: u64,
    holder: Option<Holder>,
    steps: u32,
}

impl HostHook {
    /// What the host goes through; `None` where nothing holds it up.
    ///
    /// # Errors
    /// [`Error::Request`] when there is no memory to copy or to allocate, or no thread to hold the lock.
    pub(crate) fn new(faults: &HostFaults) -> Result<Option<Self>, Error> {
        if *faults == HostFaults::default() {
            return Ok(None);
        }
        let copied = match faults.copy {
            Some(bytes) => Some([Buffer::zeroed(bytes)?, Buffer::zeroed(bytes)?]),
            None => None,
        };
        // Asked for once before the run: what no launch can have would make it a run without the fault.
        faults.alloc.map(Buffer::zeroed).transpose()?;
        let holder = faults.stall.map(Holder::start).transpose()?;
        Ok(Some(Self { faults: faults.clone(), copied, random: 1, holder, steps: 0 }))
    }

    /// Before a step.
    pub(crate) fn before_step(&mut self, log: &mut Log) {
        self.steps = self.steps.saturating_add(1);
        if self.steps > PREFILL
            && let Some(holder) = &self.holder
        {
            holder.begin();
        }
        if let Some([from, to]) = &mut self.copied {
            let start = log.now();
            to.bytes_mut().copy_from_slice(from.bytes());
            log.push(Kind::Copy(to.bytes().len()), Span { start, end: log.now() });
        }
    }

    /// Before the launch of an operator.
    pub(crate) fn before(&mut self, op: &OpCall, log: &mut Log) {
        if let Some(bytes) = self.faults.alloc {
            let start = log.now();
            // A call that fails because memory ran out since the run began is a call all the same.
            let mut buffer = Buffer::zeroed(bytes);
            if let Ok(buffer) = &mut buffer {
                buffer.bytes_mut().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
                std::hint::black_box(buffer);
            }
            let end = log.now();
            log.push(Kind::Alloc, Span { start, end });
            drop(buffer);
            log.push(Kind::Free, Span { start: end, end: log.now() });
        }
        if let Some(holder) = &self.holder {
            drop(holder.lock.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if let Some(delay) = self.faults.delay.filter(|delay| delay.op.is_none_or(|name| name == op.name)) {
            // A linear congruential generator (Knuth's MMIX) is random enough for jitter.
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let share = (self.random >> 40) as f64 / (1u64 << 24) as f64;
            pass(delay.time + delay.jitter.mul_f64(share));
        }
    }

    /// Whether the host computes an operator itself.
    pub(crate) fn computes(&self, op: &OpCall) -> bool {
        self.faults.fallback == Some(op.name)
    }
}

/// Works for nothing.
pub(crate) fn busy(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A time passes. A host that worked through it would take from the operators what it shares with them, where the device is
/// the processor itself: on a server CPU a delay that spun made those that read memory 15 % slower. Only what is too
/// short to sleep is spun.
fn pass(time: Duration) {
    let began = Instant::now();
    std::thread::sleep(time.saturating_sub(WAKE_UP));
    busy(time.saturating_sub(began.elapsed()));
}

/// A time passes, or less where something is over.
fn pass_unless(time: Duration, is_over: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_over() && began.elapsed() < time {
        pass(time.saturating_sub(began.elapsed()).min(NOTICED));
    }
}

/// A thread that holds a lock now and then until it is dropped.
struct Holder {
    lock: Arc<Mutex<()>>,
    began: Arc<AtomicBool>,
    held: Arc<AtomicBool>,
    _thread: Beside,
}

impl Holder {
    fn start(stall: Stall) -> Result<Self, Error> {
        let lock = Arc::new(Mutex::new(()));
        let [began, held] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (its, may_begin, holds) = (Arc::clone(&lock), Arc::clone(&began), Arc::clone(&held));
        let thread = Beside::start("gil_like_stall", move |stop| {
            let is_over = || stop.load(Ordering::Relaxed);
            while !is_over() && !may_begin.load(Ordering::Acquire) {
                std::thread::sleep(WAKE_UP);
            }
            while !is_over() {
                let guard = its.lock().unwrap_or_else(PoisonError::into_inner);
                holds.store(true, Ordering::Release);
                pass_unless(stall.hold, is_over);
                drop(guard);
                pass_unless(stall.period.saturating_sub(stall.hold), is_over);
            }
            // Nobody waits for a thread that is over.
            holds.store(true, Ordering::Release);
        })?;
        Ok(Self { lock, began, held, _thread: thread })
    }

    /// Begins, if it has not yet, and waits until the lock is held: a run that is over before the first period is must meet it
    /// too, or it would be written down as what it was not.
    fn begin(&self) {
        if !self.began.swap(true, Ordering::AcqRel) {
            while !self.held.load(Ordering::Acquire) {
                std::thread::sleep(WAKE_UP);
            }
        }
    }
}

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
