//! Threads of our own, each on a core of its own where the system lets them, that begin together.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

/// Looks before a waiting thread gives its core to another, which matters where there are more threads than cores.
const LOOKS: u32 = 20_000;

/// A barrier of threads that are all awake: it spins, since the wait is shorter than going to sleep takes.
#[derive(Debug)]
pub struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
}

impl Meeting {
    /// A barrier of `threads`.
    pub fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), arrived: AtomicUsize::new(0) }
    }

    /// Returns when all threads have called it as often as this one: `round` counts from 1.
    pub fn wait(&self, round: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = round.saturating_mul(self.threads);
        let mut looks = 0;
        while self.arrived.load(Ordering::Acquire) < all {
            looks += 1;
            if looks % LOOKS == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// Runs `work` once on each of `threads` new threads, which get their number and begin together; how long it took from the
/// common start to the end of the last, ns.
pub fn together(threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    let start = Meeting::new(threads);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads)
            .map(|number| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    pin(number);
                    start.wait(1);
                    let began = Instant::now();
                    work(number);
                    (began, Instant::now())
                })
            })
            .collect();
        spawned.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let began = spans.iter().map(|(began, _)| *began).min();
    let ended = spans.iter().map(|(_, ended)| *ended).max();
    began.zip(ended).map_or(f64::NAN, |(began, ended)| ended.duration_since(began).as_nanos() as f64)
}

/// Puts the calling thread on one of the cores that the process may use. Where that is refused it stays where it is.
#[cfg(target_os = "linux")]
fn pin(number: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    if let Some(core) = cores.get(number % cores.len().max(1)) {
        let mut one = CpuSet::new();
        one.set(*core);
        let _ = sched_setaffinity(None, &one);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_works_and_none_leaves_a_meeting_early() {
        // Counted and judged at the end: a thread that panicked would leave the others waiting.
        let (meeting, count, early) = (Meeting::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        let ns = together(3, |_| {
            for round in 1..=50 {
                count.fetch_add(1, Ordering::Relaxed);
                meeting.wait(2 * round - 1);
                early.fetch_add(usize::from(count.load(Ordering::Relaxed) != 3 * round), Ordering::Relaxed);
                meeting.wait(2 * round);
            }
        });
        assert_eq!((count.into_inner(), early.into_inner()), (150, 0));
        assert!(ns > 0.0);
    }
}
