//! What kind of step each step of a run is.

use crate::{
    config::{Config, Mode},
    fault::FaultKind,
    seat::Seat,
    serving::{graph_rows, schedule},
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
    /// Tokens in the cache of all sequences that decode, where that is known.
    pub(crate) context: i64,
    /// Tokens of prompts that are computed, where that is known.
    pub(crate) prompt: i64,
}

/// Tokens of the prompt that a prefill step works on: vLLM's usual chunk.
pub(crate) const PROMPT_TOKENS: i64 = 2_048;

impl Step {
    pub(crate) fn of(seat: &Seat<'_>, index: i64) -> Self {
        let config = seat.config;
        let scheduled = config.serving.map(|_| schedule::at(config, index));
        let prefill = is_prefill(config, index);
        let steady = index >= config.warmup_steps && !prefill;
        // A share of the steps, spread evenly over them.
        let chosen = |every: i64, kind, permille| {
            let (share, at) = (config.dose(kind, permille).min(900), index / every);
            steady && (at * share) / 1000 != ((at + 1) * share) / 1000
        };
        let off_grid = chosen(2, FaultKind::OffGrid, 300);
        let sequences = scheduled.map_or(config.batch, |scheduled| scheduled.batch);
        let own = sequences + seat.dose(FaultKind::BatchMismatch, config.batch) + 3 * i64::from(off_grid);
        let padding = if steady { config.dose(FaultKind::PaddedGraph, config.batch) } else { 0 };
        let rows = match scheduled {
            None if prefill => PROMPT_TOKENS,
            None => own + padding,
            Some(scheduled) if scheduled.alone => scheduled.prompt,
            Some(scheduled) if scheduled.prompt > 0 => own + scheduled.prompt,
            Some(_) if off_grid || config.issued() == Mode::Eager => own,
            Some(_) => graph_rows(own) + padding,
        };
        Self {
            index,
            prefill,
            recompute: chosen(1, FaultKind::Preemption, 150),
            off_grid,
            batch: own,
            rows,
            context: scheduled.map_or(0, |scheduled| scheduled.context),
            prompt: scheduled.map_or(0, |scheduled| scheduled.prompt),
        }
    }

    /// How its forward pass is issued.
    pub(crate) fn mode(&self, config: &Config) -> Mode {
        if self.prefill || self.off_grid || self.prompt > 0 { Mode::Eager } else { config.issued() }
    }

    /// `decode`, `prefill` or `mixed`.
    pub(crate) fn class(&self) -> &'static str {
        match (self.prefill, self.recompute || self.prompt > 0) {
            (true, _) => "prefill",
            (_, true) => "mixed",
            _ => "decode",
        }
    }
}

/// Whether a step is a prefill step.
pub(crate) fn is_prefill(config: &Config, index: i64) -> bool {
    if config.serving.is_some() {
        return schedule::at(config, index).alone;
    }
    config.prefill_every > 0 && (index + 1) % config.prefill_every == 0
}

/// Whether a step computes no prompt, neither alone nor beside its decode.
pub(crate) fn is_decode(config: &Config, index: i64) -> bool {
    match config.serving {
        Some(_) => schedule::at(config, index).prompt == 0,
        None => !is_prefill(config, index),
    }
}
