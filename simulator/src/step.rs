//! What kind of step each step of a run is.

use crate::{
    config::{Config, Mode},
    fault::FaultKind,
    seat::Seat,
};

/// What a step does on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) index: i64,
    pub(crate) prefill: bool,
    /// Whether it computes preempted requests again beside its decode.
    pub(crate) recompute: bool,
    /// Whether its batch was not captured.
    pub(crate) off_grid: bool,
    /// Sequences.
    pub(crate) batch: i64,
    /// Rows that the kernels of its forward pass work on, padding included.
    pub(crate) rows: i64,
}

/// Tokens of the prompt that a prefill step works on: vLLM's usual chunk.
pub(crate) const PROMPT_TOKENS: i64 = 2_048;

impl Step {
    pub(crate) fn of(seat: &Seat<'_>, index: i64) -> Self {
        let config = seat.config;
        let prefill = is_prefill(config, index);
        let steady = index >= config.warmup_steps && !prefill;
        // A share of the steps, spread evenly over them.
        let chosen = |every: i64, kind, permille| {
            let (share, at) = (config.dose(kind, permille).min(900), index / every);
            steady && (at * share) / 1000 != ((at + 1) * share) / 1000
        };
        let off_grid = chosen(2, FaultKind::OffGrid, 300);
        let own = config.batch + seat.dose(FaultKind::BatchMismatch, config.batch) + 3 * i64::from(off_grid);
        let padding = if steady { config.dose(FaultKind::PaddedGraph, config.batch) } else { 0 };
        Self {
            index,
            prefill,
            recompute: chosen(1, FaultKind::Preemption, 150),
            off_grid,
            batch: own,
            rows: if prefill { PROMPT_TOKENS } else { own + padding },
        }
    }

    /// How its forward pass is issued.
    pub(crate) fn mode(&self, config: &Config) -> Mode {
        if self.prefill || self.off_grid { Mode::Eager } else { config.issued() }
    }

    /// `decode`, `prefill` or `mixed`.
    pub(crate) fn class(&self) -> &'static str {
        match (self.prefill, self.recompute) {
            (true, _) => "prefill",
            (_, true) => "mixed",
            _ => "decode",
        }
    }
}

/// Whether a step is a prefill step.
pub(crate) fn is_prefill(config: &Config, index: i64) -> bool {
    config.prefill_every > 0 && (index + 1) % config.prefill_every == 0
}
