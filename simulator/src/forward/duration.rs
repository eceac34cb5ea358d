//! How long each kernel takes.

use super::Builder;
use crate::{
    fault::FaultKind,
    kernel::{Class, Slot},
    random::{Dice, Of},
    serving::cost,
};

/// Steps that share one value of the drift.
const DRIFT_STEPS: i64 = 5;
/// The most that a tail can cost, in parts per thousand: the 1.05 waves that a kernel is launched with take no longer than
/// two whole ones.
const TAIL_PERMILLE: i64 = 900;

impl Builder<'_> {
    /// What all durations of the step share, in parts per thousand.
    fn pace(&self, dice: Dice) -> i64 {
        let config = self.config;
        let drift = dice.around(Of::Drift, [self.step.index / DRIFT_STEPS, 0, 0], 1000, config.drift_permille);
        let settling = config.steps / 3;
        let measured = (self.step.index - config.warmup_steps).max(0);
        let slower = config.dose(FaultKind::ShortWarmup, 400) * (settling - measured).max(0) / settling.max(1);
        drift + slower
    }

    /// How much longer all compute of this step on this rank takes, in parts per thousand.
    fn slowed(&self) -> i64 {
        let (config, step) = (self.config, self.step);
        let half = config.warmup_steps + config.steps / 2;
        let clock = if step.index >= half { config.dose(FaultKind::LowClock, 300) } else { 0 };
        let heat = config.heat_permille * step.index / (config.warmup_steps + config.steps).max(1);
        let batch = self.seat.dose(FaultKind::BatchMismatch, 500);
        let again = if step.recompute { 1000 } else { 0 };
        heat + clock + batch + again + self.seat.dose(FaultKind::ThrottledRank, 200)
    }

    /// How much longer a slot's kernels take, in parts per thousand.
    fn worse(&self, slot: Slot, layer: i64) -> i64 {
        let (config, dose) = (self.config, |kind, permille| self.config.dose(kind, permille));
        match slot {
            Slot::Qkv | Slot::OutProj | Slot::GateUp | Slot::Down | Slot::LmHead => {
                let wave = matches!(slot, Slot::GateUp | Slot::Down);
                let tile = slot != Slot::LmHead;
                dose(FaultKind::SlowGemm, 600)
                    + if slot == Slot::Down { dose(FaultKind::FewBlocks, 1500) } else { 0 }
                    + if wave { dose(FaultKind::WaveTail, 600).min(TAIL_PERMILLE) } else { 0 }
                    + if tile { dose(FaultKind::PrefillTile, 1000) + self.padding() } else { 0 }
            }
            Slot::Attention => dose(FaultKind::NoSplitKv, 2500) + self.padding(),
            Slot::KvWrite => dose(FaultKind::SlowScatter, 9000) + self.padding(),
            Slot::ExpertUp | Slot::ExpertDown => dose(FaultKind::MoePadding, 900) + self.tokens_permille(layer) - 1000,
            Slot::LogitsCast | Slot::Softmax | Slot::Argmax | Slot::Sort => 0,
            _ if slot.card().class.is_some() => self.padding(),
            _ => {
                let key = [self.step.index, layer, slot as i64];
                if matches!(slot, Slot::Send | Slot::Recv) {
                    return dose(FaultKind::SlowPeer, 4000);
                }
                let bad = self.seat.common.chance(Of::BadLink, key, 300);
                dose(FaultKind::WrongAlgorithm, 700)
                    + dose(FaultKind::LowBandwidth, 3000)
                    + if bad { config.dose(FaultKind::SlowLink, 4000) } else { 0 }
            }
        }
    }

    /// What padded rows cost.
    fn padding(&self) -> i64 {
        if self.step.rows > self.step.batch && !self.step.prefill {
            self.config.dose(FaultKind::PaddedGraph, 250)
        } else {
            0
        }
    }

    /// Tokens that this rank's experts get, in parts per thousand of the mean.
    pub(super) fn tokens_permille(&self, layer: i64) -> i64 {
        let key = [self.step.index, layer, 0];
        let own = self.seat.own.around(Of::Tokens, key, 1000, 50);
        let skew = self.config.dose(FaultKind::MoeImbalance, 600);
        let skew = if skew > 0 { self.seat.common.around(Of::Skew, key, skew, 500) } else { 0 };
        let others = i64::try_from(self.config.ranks).unwrap_or(1) - 1;
        // Nobody can lose more tokens than there are.
        let skew = skew.min(900 * others.max(1));
        match self.config.culprit(FaultKind::MoeImbalance) {
            Some(culprit) if culprit == self.seat.rank => own + skew,
            _ => own - skew / others.max(1),
        }
    }

    pub(super) fn duration(&self, slot: Slot, layer: i64, nth: i64) -> i64 {
        // What is sent takes as long as what is received.
        let slot = if slot == Slot::Recv { Slot::Send } else { slot };
        let collective = slot.card().class.is_none();
        // A transfer takes as long on every rank.
        let (dice, slowed) = if collective { (self.seat.common, 0) } else { (self.seat.own, self.slowed()) };
        let pace = self.pace(dice) + slowed;
        let base = match self.config.serving {
            Some(serving) => cost::ns(self.config, &serving, &self.step, slot) * pace / 1000,
            None if self.step.prefill => self.config.kernel(slot) * pace / 1000 * prefill_factor(slot),
            None => self.config.kernel(slot) * pace / 1000,
        };
        let base = base * (1000 + self.worse(slot, layer)) / 1000;
        let late = if collective { self.config.dose(FaultKind::SlowCollective, 35_000) } else { 0 };
        if let Some(serving) = self.config.serving {
            let key = self.key(slot, layer, nth);
            return dice.lognormal(Of::Duration, key, base, serving.sigma_permille) + late;
        }
        dice.around(Of::Duration, self.key(slot, layer, nth), base, self.config.jitter_permille) + late
    }
}

/// How many times longer prefill takes.
fn prefill_factor(slot: Slot) -> i64 {
    match slot {
        Slot::LmHead | Slot::Argmax | Slot::Softmax | Slot::LogitsCast | Slot::Sort => 1,
        Slot::Attention => 4,
        _ if slot.card().class == Some(Class::Gemm) => 6,
        _ => 3,
    }
}
