//! What holds up the host thread: delays, waits, allocations, copies, work that belongs to the device.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Arguments, Injection, beside::Beside};
use crate::{
    Buffer, Error,
    program::{OpCall, OpName},
    record::{Kind, Log, Span},
    run::{RunOptions, Sync},
};

/// Faults of the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFaults {
    /// Busy time before launches.
    pub delay: Option<Delay>,
    /// Bytes allocated, touched and freed before every launch.
    pub alloc: Option<usize>,
    /// Bytes copied before every step.
    pub copy: Option<usize>,
    /// Operator that the host computes itself.
    pub fallback: Option<OpName>,
    /// Another thread that holds what the host needs for every launch.
    pub stall: Option<Stall>,
}

/// Busy time before launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Of this operator only.
    pub op: Option<OpName>,
    /// For how long.
    pub time: Duration,
    /// At most so much more, evenly spread.
    pub jitter: Duration,
}

/// A thread that takes a lock again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From one time to the next.
    pub period: Duration,
    /// For how long.
    pub hold: Duration,
}

pub(super) const HOST_DELAY: Injection = Injection {
    name: "host_delay",
    arguments: "op=all,us=50,jitter_us=0",
    what: "the host is busy before it launches an operator",
    apply: |options, arguments| {
        let op = arguments.op()?;
        let time = Duration::from_micros(arguments.take("us")?.unwrap_or(50));
        let jitter = Duration::from_micros(arguments.take("jitter_us")?.unwrap_or(0));
        options.faults.host.delay = Some(Delay { op, time, jitter });
        Ok(())
    },
};

pub(super) const EXTRA_SYNC: Injection = Injection {
    name: "extra_sync",
    arguments: "every=op|layer",
    what: "the host waits for the device after every operator or layer",
    apply: |options, arguments| {
        options.sync = match arguments.take::<String>("every")?.as_deref() {
            None | Some("op") => Sync::PerOp,
            Some("layer") => Sync::PerLayer,
            Some(other) => return Err(arguments.refuse(&format!("every={other}"))),
        };
        Ok(())
    },
};

pub(super) const ALLOC_PER_OP: Injection = Injection {
    name: "alloc_per_op",
    arguments: "kib=1024",
    what: "the host allocates, touches and frees memory before every launch",
    apply: |options, arguments| {
        let kib: u32 = arguments.take("kib")?.unwrap_or(1024);
        options.faults.host.alloc = Some((kib as usize) << 10);
        Ok(())
    },
};

pub(super) const BLOCKING_COPY: Injection = Injection {
    name: "blocking_copy",
    arguments: "mib=16",
    what: "the host copies memory before every step and waits for it",
    apply: |options: &mut RunOptions, arguments: &mut Arguments| {
        let mib: u16 = arguments.take("mib")?.unwrap_or(16);
        options.faults.host.copy = Some(usize::from(mib) << 20);
        Ok(())
    },
};

pub(super) const CPU_FALLBACK: Injection = Injection {
    name: "cpu_fallback",
    arguments: "op=silu_mul",
    what: "the host waits for the device and computes an operator itself",
    apply: |options, arguments| {
        options.faults.host.fallback = Some(arguments.op()?.unwrap_or(OpName::SiluMul));
        Ok(())
    },
};

pub(super) const GIL_LIKE_STALL: Injection = Injection {
    name: "gil_like_stall",
    arguments: "period_ms=20,hold_ms=5",
    what: "another thread holds a lock that every launch needs",
    apply: |options, arguments| {
        let period = Duration::from_millis(arguments.take("period_ms")?.unwrap_or(20));
        let hold = Duration::from_millis(arguments.take("hold_ms")?.unwrap_or(5));
        options.faults.host.stall = Some(Stall { period, hold });
        Ok(())
    },
};

/// A sleep may last so much longer than was asked for: the slack of Linux timers is 50 µs.
const WAKE_UP: Duration = Duration::from_micros(100);

/// The host's faults while a run lasts.
pub(crate) struct HostHook {
    faults: HostFaults,
    copied: Option<[Buffer; 2]>,
    random: u64,
    holder: Option<Holder>,
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
        Ok(Some(Self { faults: faults.clone(), copied, random: 1, holder }))
    }

    /// Before a step.
    pub(crate) fn before_step(&mut self, log: &mut Log) {
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

/// A thread that holds a lock now and then until it is dropped.
struct Holder {
    lock: Arc<Mutex<()>>,
    _thread: Beside,
}

impl Holder {
    fn start(stall: Stall) -> Result<Self, Error> {
        let lock = Arc::new(Mutex::new(()));
        let its = Arc::clone(&lock);
        let thread = Beside::start("gil_like_stall", move |stop| {
            while !stop.load(Ordering::Relaxed) {
                let held = its.lock().unwrap_or_else(PoisonError::into_inner);
                pass(stall.hold);
                drop(held);
                std::thread::sleep(stall.period.saturating_sub(stall.hold));
            }
        })?;
        Ok(Self { lock, _thread: thread })
    }
}
