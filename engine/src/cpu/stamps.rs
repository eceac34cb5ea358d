//! When each worker began and ended its share of each operator of a step, stamped by the workers themselves.
//!
//! A worker writes only its own places, with plain stores and no lock; the host reads them when the step is over.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::record::{Clock, Ns, Span};

/// A place for the stamps of every worker and operator.
#[derive(Debug)]
pub(super) struct Stamps {
    ops: usize,
    /// Start and end, (workers, ops): a worker's places lie together, so that workers do not share cache lines.
    places: Vec<[AtomicI64; 2]>,
}

impl Stamps {
    pub(super) fn new(ops: usize, workers: usize) -> Self {
        let places = (0..ops.saturating_mul(workers)).map(|_| Default::default()).collect();
        Self { ops, places }
    }

    /// Runs a worker's share of an operator and stamps it.
    #[inline]
    pub(super) fn around(&self, clock: &Clock, worker: usize, op: usize, run: impl FnOnce()) {
        let start = clock.now();
        run();
        if let Some([begun, ended]) = self.places.get(worker * self.ops + op) {
            begun.store(start, Ordering::Relaxed);
            ended.store(clock.now(), Ordering::Relaxed);
        }
    }

    /// The shares of an operator, worker by worker.
    pub(super) fn of(&self, op: usize) -> impl ExactSizeIterator<Item = Span> {
        let workers = self.places.len().checked_div(self.ops).unwrap_or(0);
        (0..workers).map(move |worker| {
            let stamp = |which: usize| -> Ns {
                let place = self.places.get(worker * self.ops + op);
                place.and_then(|place| place.get(which)).map_or(0, |stamp| stamp.load(Ordering::Relaxed))
            };
            Span { start: stamp(0), end: stamp(1) }
        })
    }
}
