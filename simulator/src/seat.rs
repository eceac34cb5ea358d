//! A rank's place in its job: which one it is, and the random numbers it has for itself and in common with all.

use crate::{
    config::Config,
    fault::FaultKind,
    random::{Dice, Of},
};

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

    /// Layers that it has: those of a pipeline lie evenly on all stages, or one stage has some of each other one's.
    pub(crate) fn layers(&self) -> i64 {
        let (layers, others) = (self.config.layers, i64::try_from(self.stages()).unwrap_or(1) - 1);
        let moved = self.config.dose(FaultKind::UnevenStages, layers / 4).clamp(0, (layers - 1).max(0));
        let full = self.common.uniform(Of::Culprit, [FaultKind::UnevenStages as i64, 0, 0], 0, others.max(0));
        match usize::try_from(full).is_ok_and(|full| full == self.rank) {
            _ if others < 1 => layers,
            true => layers + others * moved,
            false => layers - moved,
        }
    }

    /// `size` scaled by the magnitude if the run has the fault `kind` and this rank suffers from it; 0 otherwise.
    pub(crate) fn dose(&self, kind: FaultKind, size: i64) -> i64 {
        let suffers = self.config.culprit(kind).is_none_or(|culprit| culprit == self.rank);
        if suffers { self.config.dose(kind, size) } else { 0 }
    }
}
