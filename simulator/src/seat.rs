//! A rank's place in its job: which one it is, and the random numbers it has for itself and in common with all.

use crate::{config::Config, fault::FaultKind, random::Dice};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat<'c> {
    pub(crate) config: &'c Config,
    pub(crate) rank: usize,
    /// Numbers of this rank alone.
    pub(crate) own: Dice,
    /// Numbers that all ranks of the job see.
    pub(crate) common: Dice,
}

impl<'c> Seat<'c> {
    pub(crate) fn new(config: &'c Config, rank: usize) -> Self {
        let common = Dice::new(config.seed);
        Self { config, rank, own: common.of_rank(rank), common }
    }

    /// Stages of the pipeline; 1 for none.
    pub(crate) fn stages(&self) -> usize {
        self.config.serving.map_or(1, |serving| serving.stages)
    }

    /// Whether it has the first layers.
    pub(crate) fn is_first(&self) -> bool {
        self.stages() < 2 || self.rank == 0
    }

    /// Whether it has the last layers.
    pub(crate) fn is_last(&self) -> bool {
        self.stages() < 2 || self.rank + 1 == self.stages()
    }

    /// `size` scaled by the magnitude if the run has the fault `kind` and this rank suffers from it; 0 otherwise.
    pub(crate) fn dose(&self, kind: FaultKind, size: i64) -> i64 {
        let suffers = self.config.culprit(kind).is_none_or(|culprit| culprit == self.rank);
        if suffers { self.config.dose(kind, size) } else { 0 }
    }
}
