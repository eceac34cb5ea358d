//! Worker threads that run one job together, and the barrier between its parts.
//!
//! Operators of a decode step take tens of microseconds, so a worker that has just finished spins for the next one; after
//! [`SPIN`] it sleeps, because a waiter that spins for ever takes the core from a worker that has something to do.

#![allow(unsafe_code)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{JoinHandle, Thread},
    time::{Duration, Instant},
};

/// How long a thread spins before it sleeps or yields. Waking a sleeping virtual core takes tens of microseconds.
const SPIN: Duration = Duration::from_micros(100);
/// Looks at a flag between two looks at the clock.
const LOOKS: u32 = 64;

/// A job: called once on every thread with its number.
type Job<'a> = &'a (dyn Fn(usize) + Sync);

struct Shared {
    /// Number of jobs given out; a worker runs when it changes.
    epoch: AtomicUsize,
    /// The job, valid while workers are running it.
    job: std::cell::UnsafeCell<Option<Job<'static>>>,
    /// Workers that have not finished the job.
    running: AtomicUsize,
    stop: AtomicBool,
    failed: AtomicBool,
}

// SAFETY: `job` is written by the owner of the pool only while no worker runs (`running` is 0) and before `epoch` changes,
// which workers wait for with acquire ordering.
unsafe impl Sync for Shared {}
// SAFETY: as above; the job itself is `Sync`.
unsafe impl Send for Shared {}

/// Threads, of which the caller is number 0.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    wake: Vec<Thread>,
}

impl Pool {
    /// A pool of `threads`, at least one.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            job: std::cell::UnsafeCell::new(None),
            running: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        });
        let workers: Vec<JoinHandle<()>> = (1..threads.max(1))
            .filter_map(|number| {
                let shared = Arc::clone(&shared);
                let builder = std::thread::Builder::new().name(format!("engine-{number}"));
                // With fewer threads the parts are larger; nothing else changes.
                builder.spawn(move || work(&shared, number)).ok()
            })
            .collect();
        let wake = workers.iter().map(|worker| worker.thread().clone()).collect();
        Self { shared, workers, wake }
    }

    /// Threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job` on every thread and returns when all have finished. A panic of a worker is one of the caller.
    pub fn run(&mut self, job: Job<'_>) {
        self.run_from(job, &mut || {});
    }

    /// Like [`Pool::run`]; `begins` is called when the workers have been told and the caller's part begins.
    pub fn run_from(&mut self, job: Job<'_>, begins: &mut dyn FnMut()) {
        // SAFETY: the lifetime ends before this call does: no worker keeps the job once `running` is 0.
        let job: Job<'static> = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        // SAFETY: no worker is running, so nobody reads.
        unsafe { *self.shared.job.get() = Some(job) };
        self.shared.running.store(self.workers.len(), Ordering::Relaxed);
        self.shared.epoch.fetch_add(1, Ordering::Release);
        self.wake.iter().for_each(Thread::unpark);
        let finish = Finish(&self.shared);
        begins();
        job(0);
        drop(finish);
        assert!(!self.shared.failed.load(Ordering::Relaxed), "a worker of the engine panicked");
    }
}

/// Waits for the workers when dropped, also when the caller's part panics.
struct Finish<'s>(&'s Shared);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        wait_until(|| self.0.running.load(Ordering::Acquire) == 0, std::thread::yield_now);
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
        // SAFETY: the job was written before `epoch` changed and stays until `running` is 0.
        if let Some(job) = unsafe { *shared.job.get() } {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(number)));
            if done.is_err() {
                shared.failed.store(true, Ordering::Relaxed);
            }
        }
        shared.running.fetch_sub(1, Ordering::Release);
    }
}

/// Spins until `done`, and from [`SPIN`] on calls `rest` between the looks.
fn wait_until(done: impl Fn() -> bool, rest: impl Fn()) {
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

/// Where threads wait for each other between two operators.
#[derive(Debug)]
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
}

impl Barrier {
    /// A barrier of `threads`.
    pub fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0) }
    }

    /// Returns when all threads have called it.
    pub fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.fetch_add(1, Ordering::Release);
        } else {
            wait_until(|| self.round.load(Ordering::Acquire) != round, std::thread::yield_now);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_thread_runs_every_job_once() {
        for threads in [1, 2, 5] {
            let mut pool = Pool::new(threads);
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
        let mut pool = Pool::new(threads);
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
        let mut pool = Pool::new(2);
        let run = std::panic::AssertUnwindSafe(|| pool.run(&|number| assert!(number == 0, "worker")));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
