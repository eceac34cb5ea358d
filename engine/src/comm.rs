//! A rank's way to the others of its run: memory that they share, with a flag for every worker of a rank and two slots for what
//! the rank shows. What is exchanged through it, and by which kernels it is added up, is the devices' business
//! (`cpu/collectives.rs`); those with collectives of a vendor's meet, end and are lost through it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crate::{
    Error, Shard,
    futex::{self, SPIN},
};

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
    pub(crate) count: u32,
    patience: Duration,
    /// How long a worker waits awake.
    awake: Duration,
    left: bool,
}

/// A rank did not arrive.
pub(crate) struct Lost;

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
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.region.lost() {
            Some(rank) => Err(Error::Lost { rank, own: self.shard.rank }),
            None => Ok(()),
        }
    }

    /// Where `rank` shows its part of a collective.
    pub(crate) fn slot(&self, rank: usize, seq: u32) -> *mut f32 {
        self.region.slot(rank, seq % 2 == 1)
    }

    /// Shows that this worker has written its share, and waits until its peers have.
    pub(crate) fn exchange(&self, seq: u32, worker: usize) -> Result<(), Lost> {
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
