//! The queue of a step: the host publishes operators, the workers run them in order and meet after each.
//!
//! Launching is a store, so the host runs ahead of the workers as it does of any device, and waits only where it asks to.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering},
    thread::Thread,
};

use super::pool::{Barrier, wait_until};

/// Nobody waits.
const NOBODY: usize = usize::MAX;

/// Operators of one step on their way from the host to the workers.
pub(super) struct Queue {
    ops: usize,
    /// Operators that the workers may run.
    published: AtomicUsize,
    /// Operators for which the host waits to be finished.
    awaited: AtomicUsize,
    /// Where workers meet after each operator; its rounds are the operators that have finished.
    finished: Barrier,
    host: Thread,
}

impl Queue {
    /// A queue of `ops` operators between the calling thread and so many workers.
    pub(super) fn new(ops: usize, workers: usize) -> Self {
        Self {
            ops,
            published: AtomicUsize::new(0),
            awaited: AtomicUsize::new(NOBODY),
            finished: Barrier::new(workers),
            host: std::thread::current(),
        }
    }

    /// A worker's part: calls `run` with the number of each operator, in order, once the host has published it. A worker
    /// that panics still meets the others, and goes on panicking when the step is over.
    pub(super) fn work(&self, run: impl Fn(usize)) {
        let mut panic = None;
        for op in 0..self.ops {
            wait_until(|| self.published.load(Ordering::Acquire) > op, std::thread::park);
            if panic.is_none() {
                panic = catch_unwind(AssertUnwindSafe(|| run(op))).err();
            }
            // Either this sees that the host waits, or the host sees that the round is over: both are in one order.
            let met = self.finished.wait();
            if met.is_some_and(|rounds| rounds >= self.awaited.load(Ordering::SeqCst)) {
                self.host.unpark();
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// The host's part; what it has not published when it ends is published then, so that no worker waits for ever.
    pub(super) fn host<'q>(&'q self, workers: &'q [Thread]) -> Host<'q> {
        Host { queue: self, workers }
    }
}

/// The host's end of a queue.
pub(super) struct Host<'q> {
    queue: &'q Queue,
    workers: &'q [Thread],
}

impl Host<'_> {
    /// Lets the workers run the first `count` operators.
    #[inline]
    pub(super) fn publish(&self, count: usize) {
        self.queue.published.store(count, Ordering::Release);
        self.workers.iter().for_each(Thread::unpark);
    }

    /// Sleeps until the first `count` operators, which must have been published, have finished.
    pub(super) fn wait(&self, count: usize) {
        self.queue.awaited.store(count, Ordering::SeqCst);
        while self.queue.finished.rounds() < count {
            std::thread::park();
        }
        self.queue.awaited.store(NOBODY, Ordering::Relaxed);
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.publish(self.queue.ops);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{super::pool::Pool, *};

    #[test]
    fn operators_run_in_order_after_they_are_published_and_waits_end_when_they_have() {
        for workers in [1, 3] {
            let mut pool = Pool::new(workers).unwrap();
            for ahead in [true, false] {
                let (queue, ran) = (Queue::new(200, workers), AtomicUsize::new(0));
                let job = |_| {
                    queue.work(|op| {
                        let before = ran.fetch_add(1, Ordering::Relaxed);
                        assert!((op * workers..(op + 1) * workers).contains(&before));
                    });
                };
                pool.run_beside(&job, |wake| {
                    let host = queue.host(wake);
                    for op in 0..200 {
                        assert!(ran.load(Ordering::Relaxed) <= op * workers, "ran before it was published");
                        host.publish(op + 1);
                        if !ahead || op == 199 {
                            host.wait(op + 1);
                            assert_eq!(ran.load(Ordering::Relaxed), (op + 1) * workers);
                        }
                    }
                });
            }
        }
    }

    #[test]
    fn a_panic_of_one_worker_reaches_the_host_and_stops_no_other() {
        let mut pool = Pool::new(2).unwrap();
        let queue = Queue::new(10, 2);
        let job = |number| queue.work(|op| assert!(number == 0 || op != 3, "worker"));
        let run = std::panic::AssertUnwindSafe(|| pool.run_beside(&job, |wake| queue.host(wake).publish(10)));
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn a_host_that_gives_up_leaves_no_worker_waiting() {
        let mut pool = Pool::new(2).unwrap();
        let queue = Queue::new(10, 2);
        let run = std::panic::AssertUnwindSafe(|| {
            pool.run_beside(&|_| queue.work(|_| ()), |wake| {
                let _host = queue.host(wake);
                assert!(queue.ops == 0, "gives up");
            });
        });
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
