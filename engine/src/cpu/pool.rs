//! Worker threads that run one job together while the host does something else, and the barrier between the job's parts.
//!
//! Operators of a decode step take tens of microseconds, so a worker that has just finished spins for the next one; after
//! [`SPIN`] it sleeps, because a waiter that spins for ever takes the core from a worker that has something to do. The host
//! never spins: there may be as many workers as cores.

#![allow(unsafe_code)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    thread::{JoinHandle, Thread},
    time::{Duration, Instant},
};

use crate::Error;
use crate::futex::{self, SPIN};

/// Longest sleep before a thread looks again by itself, should it have missed its call.
const NAP: Duration = Duration::from_millis(20);
/// Looks at a flag between two looks at the clock.
const LOOKS: u32 = 64;

/// A job: called once on every worker with its number.
type Job<'a> = &'a (dyn Fn(usize) + Sync);

/// What workers need to know of a job, valid while they run it.
struct Given {
    job: Job<'static>,
    /// The thread that waits for its end.
    host: Thread,
}

struct Shared {
    /// Number of jobs given out; a worker runs when it changes.
    epoch: AtomicUsize,
    given: std::cell::UnsafeCell<Option<Given>>,
    /// Workers that have not finished the job.
    running: AtomicUsize,
    stop: AtomicBool,
    failed: AtomicBool,
}

// SAFETY: `given` is written by the owner of the pool only while no worker runs (`running` is 0) and before `epoch` changes,
// which workers wait for with acquire ordering.
unsafe impl Sync for Shared {}
// SAFETY: as above; the job itself is `Sync`.
unsafe impl Send for Shared {}

/// Worker threads; the caller is none of them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    wake: Vec<Thread>,
}

impl Pool {
    /// A pool of `workers`, at least one.
    ///
    /// # Errors
    /// [`Error::Request`] when the system gives no more threads.
    pub fn new(workers: usize) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            given: std::cell::UnsafeCell::new(None),
            running: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        });
        let mut pool = Self { shared, workers: Vec::new(), wake: Vec::new() };
        for number in 0..workers.max(1) {
            let shared = Arc::clone(&pool.shared);
            let builder = std::thread::Builder::new().name(format!("worker-{number}"));
            let worker = builder.spawn(move || work(&shared, number)).map_err(|error| {
                Error::Request(format!("cannot start worker {number} of {workers}: {error}; ask for fewer threads"))
            })?;
            pool.wake.push(worker.thread().clone());
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Runs `job` on every worker and returns when all have finished. A panic of a worker is one of the caller.
    #[cfg(test)]
    pub fn run(&mut self, job: Job<'_>) {
        self.run_beside(job, |_| ());
    }

    /// Runs `job` on every worker, and `host` on the calling thread meanwhile, which gets what wakes sleeping workers;
    /// returns when all have finished. A panic of a worker is one of the caller.
    pub fn run_beside<R>(&mut self, job: Job<'_>, host: impl FnOnce(&[Thread]) -> R) -> R {
        // SAFETY: the lifetime ends before this call does: no worker keeps the job once `running` is 0.
        let job: Job<'static> = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        // SAFETY: no worker is running, so nobody reads.
        unsafe { *self.shared.given.get() = Some(Given { job, host: std::thread::current() }) };
        self.shared.running.store(self.workers.len(), Ordering::Relaxed);
        self.shared.epoch.fetch_add(1, Ordering::Release);
        self.wake.iter().for_each(Thread::unpark);
        let finish = Finish(&self.shared);
        let result = host(&self.wake);
        drop(finish);
        assert!(!self.shared.failed.load(Ordering::Relaxed), "a worker of the engine panicked");
        result
    }
}

/// Waits for the workers when dropped, also when the host's part panics.
struct Finish<'s>(&'s Shared);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        while self.0.running.load(Ordering::Acquire) != 0 {
            std::thread::park();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.wake.iter().for_each(Thread::unpark);
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so.
            let _ = worker.join();
        }
    }
}

fn work(shared: &Shared, number: usize) {
    let mut seen = 0;
    loop {
        let stop = || shared.stop.load(Ordering::Acquire);
        wait_until(|| shared.epoch.load(Ordering::Acquire) != seen || stop(), std::thread::park);
        if stop() {
            return;
        }
        seen = shared.epoch.load(Ordering::Acquire);
        // SAFETY: written before `epoch` changed, and it stays until `running` is 0.
        let host = unsafe { &*shared.given.get() }.as_ref().map(|given| {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (given.job)(number)));
            if done.is_err() {
                shared.failed.store(true, Ordering::Relaxed);
            }
            given.host.clone()
        });
        if shared.running.fetch_sub(1, Ordering::Release) == 1 {
            host.iter().for_each(Thread::unpark);
        }
    }
}

/// Spins until `done`, and from [`SPIN`] on calls `rest` between the looks.
pub(super) fn wait_until(done: impl Fn() -> bool, rest: impl Fn()) {
    let mut began = None;
    loop {
        for _ in 0..LOOKS {
            if done() {
                return;
            }
            std::hint::spin_loop();
        }
        if began.get_or_insert_with(Instant::now).elapsed() > SPIN {
            rest();
        }
    }
}

/// Where threads wait for each other between two operators. Who waits long sleeps: on a busy machine the thread that is
/// waited for may need the very core.
#[derive(Debug)]
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicU32,
    sleepers: AtomicU32,
}

impl Barrier {
    /// A barrier of `threads`.
    pub fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), round: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// Returns when all threads have called it; to the last of them with the number of times that this has happened.
    pub fn wait(&self) -> Option<usize> {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            // Either this sees the sleeper, or the sleeper sees the new round: both are in one order.
            let rounds = self.round.fetch_add(1, Ordering::SeqCst) + 1;
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                futex::wake(&self.round);
            }
            Some(rounds as usize)
        } else {
            wait_until(
                || self.round.load(Ordering::Acquire) != round,
                || {
                    self.sleepers.fetch_add(1, Ordering::SeqCst);
                    if self.round.load(Ordering::SeqCst) == round {
                        futex::wait(&self.round, round, NAP);
                    }
                    self.sleepers.fetch_sub(1, Ordering::SeqCst);
                },
            );
            None
        }
    }

    /// How often all threads have met.
    pub fn rounds(&self) -> usize {
        self.round.load(Ordering::SeqCst) as usize
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_thread_runs_every_job_once() {
        for threads in [1, 2, 5] {
            let mut pool = Pool::new(threads).unwrap();
            let counts: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for round in 1..200 {
                pool.run(&|number| {
                    counts[number].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
            }
            std::thread::sleep(SPIN * 3);
            pool.run(&|number| {
                counts[number].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 200), "sleepers wake");
        }
    }

    #[test]
    fn no_thread_passes_a_barrier_before_the_last_arrives() {
        let (threads, rounds) = (3, 300);
        let mut pool = Pool::new(threads).unwrap();
        let (barrier, count) = (Barrier::new(threads), AtomicUsize::new(0));
        pool.run(&|_| {
            for round in 1..=rounds {
                count.fetch_add(1, Ordering::Relaxed);
                barrier.wait();
                assert_eq!(count.load(Ordering::Relaxed), round * threads);
                barrier.wait();
            }
        });
        assert_eq!(count.into_inner(), rounds * threads);
    }

    #[test]
    fn a_panic_of_a_worker_reaches_the_caller() {
        let mut pool = Pool::new(2).unwrap();
        let run = std::panic::AssertUnwindSafe(|| pool.run(&|number| assert!(number == 0, "worker")));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
