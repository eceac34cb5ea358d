//! What the steps of one side do, as its trace shows it.

use model::Ns;

use super::kernels::Kernels;
use crate::{
    analysis::{AnchorKind, Bucket, Rank, Selection, Step},
    compare::chosen::{self, Chosen},
    platform::{CanonicalOp, OpClass, Stage},
};

/// Share of the kernels' time whose operators must be known before it is said that some operator is not there; own value.
const KNOWN: f64 = 0.9;
/// Bytes from which on a copy to the host may be logits: those of a small vocabulary of 16 384 tokens in half precision. A copy of
/// chosen tokens is far smaller.
const LOGITS: u64 = 32 << 10;
/// Activity of a host that waits for requests, as the packs name it.
const AWAITS: &str = "await_request";
/// What a profiler records besides times, by which the host becomes slower by a multiple (PyTorch's documentation of
/// `with_stack` and `profile_memory`).
const SLOWING: [&str; 2] = ["with_stack", "profile_memory"];

/// The work of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Stage of its steps.
    pub stage: Stage,
    /// Whether no steps were found and the whole capture stands for one.
    pub whole: bool,
    /// Fewest and most sequences of a step.
    pub sequences: Option<(u32, u32)>,
    /// Rows that the kernels of a step work on.
    pub rows: Option<u64>,
    /// Device, as it calls itself.
    pub device: Option<String>,
    /// Kernels of the step that stands for all.
    pub kernels: Kernels,
    /// Share of the time of the steps in which the host waits for requests.
    pub awaits: f64,
    /// Share of the time of the steps in which the device waits for the host.
    pub host: f64,
    /// What slows the host and was recorded beside times; `None` where the capture does not say.
    pub switches: Option<Vec<&'static str>>,
}

impl Profile {
    /// Of the steps of a side.
    pub fn of(side: &Chosen<'_>) -> Option<Self> {
        let far = |step: &&Step| (step.window.len().abs_diff(side.class.p50), step.index);
        let step = side.steps().min_by_key(far)?;
        let kernels = Kernels::of(side, step);
        let said = |name: &str| side.trace.manifest.value(&format!("kineto.{name}"));
        let on = |name: &&&str| matches!(said(name), Some("1" | "true" | "True"));
        let told = SLOWING.iter().any(|name| said(name).is_some());
        Some(Self {
            stage: side.class.stage,
            whole: side.rank.anchor.kind == AnchorKind::WholeCapture,
            sequences: side.class.batches,
            rows: kernels.rows().or(step.rows),
            device: chosen::device(side.trace),
            kernels,
            awaits: awaits(side),
            host: side.class.share(Bucket::is_host_side),
            switches: told.then(|| SLOWING.iter().filter(on).copied().collect()),
        })
    }

    /// Of the steps that a capture is about.
    pub fn of_capture((trace, analysis): chosen::Captured<'_>) -> Option<Self> {
        let (index, rank) = analysis.ranks.iter().enumerate().min_by_key(|(_, rank)| rank.rank)?;
        let class = rank.main_class().filter(|class| class.steady > 0)?;
        Self::of(&Chosen { trace, analysis, index, rank, class })
    }

    /// Whether so much is known of the kernels that what is not seen is not there.
    pub fn is_known(&self) -> bool {
        self.kernels.known() >= KNOWN
    }

    /// Layers: as often as most of what every layer has once is called, where at least two of these agree.
    pub fn layers(&self) -> Option<u64> {
        let calls = |pick: fn(CanonicalOp) -> bool| self.kernels.calls(pick);
        let votes = [
            calls(attends),
            calls(|op| op == CanonicalOp::KvWrite),
            calls(|op| op == CanonicalOp::Act),
            calls(|op| op == CanonicalOp::Rope),
            // Two norms in each and one after the last.
            calls(|op| op.class() == OpClass::Norm).saturating_sub(1) / 2,
        ];
        let agree = |n: u64| votes.iter().filter(|own| **own == n).count();
        let best = votes.into_iter().filter(|n| *n > 1).max_by_key(|n| (agree(*n), *n))?;
        (agree(best) > 1).then_some(best)
    }

    /// Whether a step of a model that attends chooses tokens; `None` where it may do so elsewhere, or by kernels whose names do
    /// not say it: a reduction may be an argmax, and the host may choose from logits that it is given.
    pub fn samples(&self) -> Option<bool> {
        let may = |op| matches!(op, CanonicalOp::Reduce | CanonicalOp::Softmax | CanonicalOp::Other);
        let attends = self.kernels.calls(attends) > 0 && !self.whole;
        let lacks = || self.is_known() && self.kernels.calls(may) == 0 && self.kernels.read_back < LOGITS;
        match self.kernels.calls(|op| op == CanonicalOp::Sample) > 0 {
            true => attends.then_some(true),
            false => (attends && lacks()).then_some(false),
        }
    }

    /// Attentions of a step; `None` where they may be hidden.
    pub fn attentions(&self) -> Option<u64> {
        let calls = self.kernels.calls(attends);
        (calls > 0 || self.is_known()).then_some(calls)
    }
}

/// Whether an operator is an attention, and not the second half of one.
pub fn attends(op: CanonicalOp) -> bool {
    op.class() == OpClass::Attention && op != CanonicalOp::AttnCombine
}

/// Share of the time of the steps that count in which the host waits for requests.
fn awaits(side: &Chosen<'_>) -> f64 {
    let rank: &Rank = side.rank;
    let labels = &side.analysis.host_labels;
    let waits = |label: &crate::analysis::HostLabel| labels.get(usize::from(label.0)).is_some_and(|own| own == AWAITS);
    let ns: Ns = rank.owners.groups.iter().filter(|g| g.activity.as_ref().is_some_and(waits)).map(|g| g.ns).sum();
    let all: Ns = rank.steps.iter().filter(|s| s.selection == Selection::Steady).map(|s| s.window.len()).sum();
    ns as f64 / all.max(1) as f64
}
