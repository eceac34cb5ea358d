//! Collectives between the ranks of a run, in memory that they share: each rank shows its part in its slot, raises its
//! flag, waits for the flags of the others and reads their slots ("one-shot").
//!
//! Worker `w` of a rank exchanges its share of the elements with worker `w` of the others, so the workers of a rank need not
//! meet in between. Slots alternate: a worker that has seen everybody's flag of a collective knows that nobody reads the
//! slots of the one before any more.

#![allow(unsafe_code)]

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    Kernels, futex,
    memory::{Rows, share},
    ops::Part,
    pool::SPIN,
};
use crate::{Error, Shard};

mod region;

pub use region::Region;

/// Looks at a flag between two looks at the clock.
const LOOKS: u32 = 64;
/// How long a worker that has spun gives way instead of sleeping, where all workers of all ranks have a core: who sleeps comes tens
/// of microseconds after the rank that it waited for, and a host that needs the core has it meanwhile. Workers that share cores
/// would take them from each other by turns, which halved their speed.
const YIELD: Duration = Duration::from_millis(2);
/// Longest sleep before looking whether a rank was lost.
const NAP: Duration = Duration::from_millis(20);
/// How long a rank is waited for in a step: far above any step, far below the patience of a person.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long ranks wait for each other at the start, where each loads its weights.
pub const LOADING: Duration = Duration::from_secs(900);

/// Who takes part, and how much a collective may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// Ranks.
    pub ranks: usize,
    /// Workers of each rank.
    pub workers: usize,
    /// Elements of the largest part that a rank shows.
    pub slot: usize,
}

/// A rank's way to the others. One that is dropped before [`Communicator::leave`] counts as lost, and nobody waits for it.
pub struct Communicator {
    region: Arc<Region>,
    shard: Shard,
    /// Collectives so far.
    pub(super) count: u32,
    patience: Duration,
    /// How long a worker waits awake.
    awake: Duration,
    left: bool,
}

/// A rank did not arrive.
pub(super) struct Lost;

impl Communicator {
    /// The way of `rank`. Other ranks are waited for as long as `patience` in each collective.
    ///
    /// # Errors
    /// [`Error::Request`] when there is no such rank.
    pub fn new(region: Arc<Region>, rank: usize, patience: Duration) -> Result<Self, Error> {
        let of = region.world().ranks;
        if rank >= of {
            return Err(Error::Request(format!("there is no rank {rank} of {of}")));
        }
        let workers = of.saturating_mul(region.world().workers);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let awake = if workers <= cores { YIELD } else { SPIN };
        Ok(Self { region, shard: Shard { rank, of }, count: 0, patience, awake, left: false })
    }

    /// Which rank of how many.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// What the ranks of one process have in common, as a number.
    pub(crate) fn place(&self) -> usize {
        Arc::as_ptr(&self.region).addr()
    }

    pub(crate) fn world(&self) -> World {
        self.region.world()
    }

    /// Waits until all ranks are here, as long as `patience`.
    ///
    /// # Errors
    /// [`Error::Lost`] when a rank does not come.
    pub fn meet(&mut self, patience: Duration) -> Result<(), Error> {
        self.count = self.count.wrapping_add(1);
        self.arrive(self.count, 0);
        let waits = self.shard.ranks().try_for_each(|other| self.wait(other.rank, 0, self.count, patience));
        waits.or_else(|Lost| self.check())
    }

    /// Whether the run ends after `step`. No other rank can finish the next step without the first, which decided before it
    /// began that step: all see the decision there.
    pub(crate) fn ends(&self, step: u32, goes_on: bool) -> bool {
        if !goes_on && self.shard.rank == 0 {
            self.region.end_after(step.saturating_add(1));
        }
        self.region.last_step().is_some_and(|last| step >= last)
    }

    /// Says that this rank is done, so that nobody takes its absence for a loss.
    pub fn leave(&mut self) {
        self.left = true;
    }

    /// Whether everybody has arrived so far.
    ///
    /// # Errors
    /// [`Error::Lost`] with the rank that has not.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.region.lost() {
            Some(rank) => Err(Error::Lost { rank, own: self.shard.rank }),
            None => Ok(()),
        }
    }

    /// x = sum of x of all ranks, added in the order of the ranks, so that all get the same bits.
    pub(super) fn all_reduce(&self, seq: u32, part: Part, kernels: &Kernels, x: Rows) -> Result<(), Lost> {
        let mine = part.of(x.rows * x.width, 16);
        // SAFETY: this worker alone has its share of `x`, and of its rank's slot (see the module), which is large enough:
        // programs are checked against the world before they run.
        let (x, slot) = unsafe {
            let slot = self.region.slot(self.shard.rank, seq % 2 == 1).add(mine.start);
            (x.elements_mut(mine.clone()), std::slice::from_raw_parts_mut(slot, mine.len()))
        };
        slot.copy_from_slice(x);
        self.exchange(seq, part.number)?;
        for other in self.shard.ranks() {
            // SAFETY: everybody has written this share, and nobody does until all have seen the next collective's flags.
            let theirs = unsafe {
                let slot = self.region.slot(other.rank, seq % 2 == 1).add(mine.start);
                std::slice::from_raw_parts(slot, mine.len())
            };
            if other.rank == 0 { x.copy_from_slice(theirs) } else { kernels.axpy(1.0, theirs, x) }
        }
        Ok(())
    }

    /// out\[.., columns of a rank\] = piece of that rank, for all ranks.
    pub(super) fn all_gather(&self, seq: u32, part: Part, piece: Rows, out: Rows) -> Result<(), Lost> {
        let share_of = |width: usize| share(width, 16, part.number, part.of);
        let mine = share_of(piece.width);
        for row in 0..piece.rows {
            // SAFETY: as in `all_reduce`; `piece` was written by the operator before.
            unsafe {
                let slot = self.region.slot(self.shard.rank, seq % 2 == 1).add(row * piece.width + mine.start);
                std::slice::from_raw_parts_mut(slot, mine.len()).copy_from_slice(piece.part(row, mine.clone()));
            }
        }
        self.exchange(seq, part.number)?;
        for other in self.shard.ranks() {
            let columns = other.range(out.width);
            let share = share_of(columns.len());
            for row in 0..out.rows {
                // SAFETY: as in `all_reduce`; this worker alone writes its share of the rank's columns.
                unsafe {
                    let slot = self.region.slot(other.rank, seq % 2 == 1).add(row * columns.len() + share.start);
                    let to = columns.start + share.start..columns.start + share.end;
                    out.part_mut(row, to).copy_from_slice(std::slice::from_raw_parts(slot, share.len()));
                }
            }
        }
        Ok(())
    }

    /// x = sum of x of all ranks, of ranks of one worker each whose parts lie anywhere in memory of the host.
    ///
    /// # Errors
    /// [`Error::Lost`] when another rank does not take part any more.
    pub(crate) fn sum(&mut self, kernels: &Kernels, x: &mut [f32]) -> Result<(), Error> {
        self.count = self.count.wrapping_add(1);
        let rows = Rows::new(x, x.len());
        let done = self.all_reduce(self.count, Part { number: 0, of: 1 }, kernels, rows);
        done.or_else(|Lost| self.check())
    }

    /// out\[.., columns of a rank\] = piece of that rank, of ranks as in [`Communicator::sum`]; `widths` are those of both.
    ///
    /// # Errors
    /// Those of [`Communicator::sum`].
    pub(crate) fn gather(&mut self, piece: &mut [f32], out: &mut [f32], widths: [usize; 2]) -> Result<(), Error> {
        self.count = self.count.wrapping_add(1);
        let (piece, out) = (Rows::new(piece, widths[0]), Rows::new(out, widths[1]));
        let done = self.all_gather(self.count, Part { number: 0, of: 1 }, piece, out);
        done.or_else(|Lost| self.check())
    }

    /// Shows that this worker has written its share, and waits until its peers have.
    fn exchange(&self, seq: u32, worker: usize) -> Result<(), Lost> {
        self.arrive(seq, worker);
        self.shard.ranks().try_for_each(|other| self.wait(other.rank, worker, seq, self.patience))
    }

    fn arrive(&self, seq: u32, worker: usize) {
        let flag = self.region.flag(self.shard.rank, worker);
        // Either this sees the sleeper, or the sleeper sees the flag: both are in one order.
        flag.seq.store(seq, Ordering::SeqCst);
        if flag.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake(&flag.seq);
        }
    }

    fn wait(&self, rank: usize, worker: usize, seq: u32, patience: Duration) -> Result<(), Lost> {
        let flag = self.region.flag(rank, worker);
        // Numbers wrap; a rank is never more than two collectives ahead.
        let is_there = |value: u32| value.wrapping_sub(seq).cast_signed() >= 0;
        let mut began = None;
        loop {
            for _ in 0..LOOKS {
                if is_there(flag.seq.load(Ordering::Acquire)) {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if self.region.lost().is_some() {
                return Err(Lost);
            }
            let waited = began.get_or_insert_with(Instant::now).elapsed();
            if waited > patience {
                self.region.lose(rank);
                return Err(Lost);
            }
            if waited <= self.awake {
                if waited > SPIN {
                    std::thread::yield_now();
                }
            } else {
                flag.sleepers.fetch_add(1, Ordering::SeqCst);
                let value = flag.seq.load(Ordering::SeqCst);
                if !is_there(value) {
                    futex::wait(&flag.seq, value, NAP);
                }
                flag.sleepers.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if !self.left {
            self.region.lose(self.shard.rank);
        }
    }
}

#[cfg(test)]
mod tests;
