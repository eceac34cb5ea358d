//! Kinds of healthy serving, and how a run of each is drawn.

use serde::{Deserialize, Serialize};

use super::{Accelerator, Churn, Model, Prompts, Serving, cost};
use crate::{
    config::{Annotation, Config, Mode, TokenReturn},
    fault::{Fault, FaultKind},
    kernel::{CARDS, Vendor},
    random::{Dice, Of},
    seat::Seat,
    step::Step,
};

macro_rules! loads {
    ($($(#[doc = $text:literal])+ $kind:ident;)*) => {
        /// A kind of healthy serving.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Load { $($(#[doc = $text])+ $kind,)* }

        impl Load {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];
        }
    };
}

loads! {
    /// A dozen sequences or more, scheduled ahead.
    Dozens;
    /// The same, scheduled when the token is there.
    Sync;
    /// One sequence.
    Single;
    /// One sequence, scheduled when the token is there.
    SingleSync;
    /// A few sequences.
    Few;
    /// A batch just above a captured size.
    OddBatch;
    /// A hundred sequences.
    Many;
    /// Requests that come and go every other step.
    FastChurn;
    /// Prompts in chunks beside decode.
    ChunkedPrefill;
    /// Prompts in steps of their own, which no graph runs.
    PrefillSteps;
    /// Contexts of tens of thousands of tokens.
    LongContext;
    /// Contexts of some hundred tokens.
    ShortContext;
    /// Two ranks of a tensor-parallel group.
    TensorTwo;
    /// Four of them.
    TensorFour;
    /// Two whose clocks run apart.
    ClockDrift;
    /// Two stages of a pipeline, one batch under way.
    PipelineTwo;
    /// Two stages that each have a batch to work on.
    PipelineBusy;
    /// Four stages.
    PipelineFour;
    /// Pieces of a graph with attention between them.
    Piecewise;
    /// Large kernels launched one by one, well ahead of the device.
    EagerLarge;
    /// Hosts that stall for some milliseconds now and then.
    Hiccups;
    /// Kernel times that scatter widely.
    NoisyKernels;
    /// A device that grows warm.
    Warm;
    /// Weights of eight bits.
    Quantized;
    /// A mixture of experts.
    Experts;
    /// A mixture of experts on two ranks.
    ExpertsTwo;
    /// A device of an older architecture.
    Ampere;
    /// A device of little computing power.
    LittleCompute;
    /// Another vendor's device.
    Rocm;
    /// Sampling with a temperature from logits of a large vocabulary.
    Sampling;
    /// Ranges in the words of another engine.
    Sglang;
    /// No ranges at all.
    Unmarked;
}

/// Kinds of serving in which a fault shows, for those that are not at home everywhere.
pub const CALL_FOR: [(FaultKind, &[Load]); 15] = {
    use FaultKind as F;
    use Load as L;
    const RANKS: &[Load] = &[L::TensorTwo, L::TensorFour, L::ClockDrift];
    const AWAITED: &[Load] = &[L::Sync, L::Few, L::Dozens, L::OddBatch, L::ShortContext, L::Quantized, L::Hiccups];
    [
        (F::SlowPeer, &[L::PipelineTwo, L::PipelineTwo, L::PipelineFour]),
        (F::UnevenStages, &[L::PipelineBusy]),
        (F::LowBandwidth, RANKS),
        (F::HostStraggler, RANKS),
        (F::RankGc, RANKS),
        (F::ThrottledRank, RANKS),
        (F::RankScheduling, RANKS),
        (F::HostUpdate, AWAITED),
        (F::NoSplitKv, &[L::LongContext, L::Single]),
        (F::Scheduling, AWAITED),
        (F::LogitsCopy, AWAITED),
        (F::FewBlocks, &[L::Dozens, L::Few, L::OddBatch, L::Sync, L::LongContext, L::Ampere, L::Piecewise]),
        (F::Recapture, &[L::Dozens, L::Sync, L::OddBatch, L::Many, L::FastChurn, L::Sampling]),
        (F::Recompile, &[L::Dozens, L::Sync, L::OddBatch, L::Piecewise, L::FastChurn, L::Ampere]),
        (F::Gc, &[L::Dozens, L::Sync, L::Few, L::OddBatch, L::TensorTwo, L::FastChurn, L::Sglang]),
    ]
};

impl Load {
    /// Its name in reports and on the command line; the serialised one.
    pub fn key(self) -> String {
        crate::texts::snake(&format!("{self:?}"))
    }

    /// One in which `fault` shows.
    pub fn suiting(fault: FaultKind, seed: u64) -> Self {
        const USUAL: &[Load] = &[
            Load::Dozens,
            Load::Few,
            Load::OddBatch,
            Load::Sync,
            Load::ShortContext,
            Load::FastChurn,
            Load::Piecewise,
            Load::Ampere,
        ];
        let fit = CALL_FOR.iter().find(|(kind, _)| *kind == fault).map_or(USUAL, |(_, loads)| loads);
        let last = i64::try_from(fit.len()).unwrap_or(1) - 1;
        let at = Dice::new(seed).uniform(Of::Serving, [0, 0, 0], 0, last);
        usize::try_from(at).ok().and_then(|at| fit.get(at)).copied().unwrap_or(Self::Dozens)
    }
}

impl Config {
    /// A run that serves as `load` says, whose batch changes if `churn`, with `faults` in it.
    pub fn serve(seed: u64, load: Load, churn: bool, faults: &[Fault]) -> Self {
        let dice = Dice::new(seed);
        let mut config = Self::draw(seed);
        let mut serving = config.draw_serving(dice, churn);
        config.suit_load(load, &mut serving, dice);
        config.settle(serving);
        config.suit_all(faults);
        // What a fault asked for may have changed the shapes.
        config.settle(serving);
        config
    }

    /// Everyday serving.
    fn draw_serving(&mut self, dice: Dice, churn: bool) -> Serving {
        let pick = |place: i64, lo: i64, hi: i64| dice.uniform(Of::Serving, [place, 0, 0], lo, hi);
        let model = Model::DENSE.get(usize::try_from(pick(1, 0, 3)).unwrap_or(0)).copied().unwrap_or(Model::SPARSE);
        (self.vendor, self.mode, self.batch) = (Vendor::Cuda, Mode::Full, pick(2, 12, 48));
        (self.steps, self.warmup_steps, self.prefill_every) = (pick(3, 34, 48), 0, 0);
        (self.streams, self.tensor_parallel, self.side_work) = (1, 1, false);
        (self.quantized, self.sampling, self.async_scheduling) = (false, pick(4, 0, 1) == 0, true);
        (self.token_return, self.annotation) = (TokenReturn::EventSync, Annotation::Vllm);
        (self.framework_ops, self.python_frames, self.record_shapes) = (true, pick(5, 0, 2) == 0, true);
        (self.allocate_every, self.flush_every, self.counters) = (0, 0, false);
        (self.jitter_permille, self.drift_permille, self.heat_permille) = (0, pick(6, 0, 8), pick(7, 0, 6));
        (self.launch_ns, self.latency_ns, self.framework_ns) =
            (pick(8, 3_200, 5_200), pick(9, 2_500, 6_000), pick(10, 5_000, 11_000));
        (self.gap_ns, self.node_gap_ns) = (pick(11, 600, 1_200), pick(12, 400, 1_000));
        (self.graph_launch_ns, self.graph_launch_node_ns) = (pick(13, 9_000, 18_000), pick(14, 60, 160));
        (self.schedule_ns, self.prepare_ns, self.detokenize_ns) =
            (pick(15, 30_000, 110_000), pick(16, 20_000, 80_000), pick(17, 15_000, 60_000));
        (self.input_copies, self.context_tokens) = (pick(18, 3, 5), pick(19, 800, 4_000));
        (self.host_noise_permille, self.graph_level_trace) = (pick(20, 20, 100), false);
        self.queue_limit = 1024;
        Serving {
            model,
            accelerator: Accelerator::H100,
            inductor: pick(22, 0, 1) == 0,
            churn: churn.then_some(Churn {
                output_tokens: 200,
                prompts: Prompts::Elsewhere,
                prompt_tokens: self.context_tokens,
            }),
            sigma_permille: pick(23, 20, 60),
            hiccup_permille: if pick(24, 0, 2) == 0 { 15 } else { 0 },
            stages: 1,
            in_flight: 1,
            event_every: pick(25, 6, 14),
            weight_bytes: 2,
            named_host: pick(26, 0, 2) == 0,
        }
    }

    fn suit_load(&mut self, load: Load, serving: &mut Serving, dice: Dice) {
        let pick = |place: i64, lo: i64, hi: i64| dice.uniform(Of::Serving, [place, 1, 0], lo, hi);
        let prompts = |serving: &mut Serving, prompts, prompt_tokens, output_tokens| {
            if let Some(churn) = &mut serving.churn {
                *churn = Churn { output_tokens, prompts, prompt_tokens };
            }
        };
        match load {
            Load::Dozens | Load::FastChurn => {}
            Load::Sync => self.async_scheduling = false,
            Load::Single => self.batch = 1,
            Load::SingleSync => (self.batch, self.async_scheduling) = (1, false),
            Load::Few => self.batch = pick(1, 2, 8),
            Load::OddBatch => {
                self.batch =
                    [9, 10, 17, 18, 25, 33].get(usize::try_from(pick(1, 0, 5)).unwrap_or(0)).copied().unwrap_or(9);
            }
            Load::Many => (self.batch, self.context_tokens) = (pick(1, 72, 120), pick(2, 500, 1_500)),
            Load::ChunkedPrefill => prompts(serving, Prompts::Chunked, pick(1, 250, 700), self.batch * 8),
            Load::PrefillSteps => prompts(serving, Prompts::OwnStep, pick(1, 300, 1_200), self.batch * 8),
            Load::LongContext => (self.batch, self.context_tokens) = (pick(1, 4, 16), pick(2, 16_000, 40_000)),
            Load::ShortContext => self.context_tokens = pick(1, 150, 500),
            Load::TensorTwo => *self = self.clone().gathered(2),
            Load::TensorFour => *self = self.clone().gathered(4),
            Load::ClockDrift => {
                *self = self.clone().gathered(2);
                (self.clock_offset_ns, self.clock_drift_ppm) = (20_000_000, 60);
            }
            Load::PipelineTwo | Load::PipelineBusy | Load::PipelineFour => {
                serving.stages = if load == Load::PipelineFour { 4 } else { 2 };
                serving.in_flight = if load == Load::PipelineBusy { 2 } else { 1 };
                *self = self.clone().gathered(serving.stages);
                (self.tensor_parallel, self.async_scheduling) = (1, false);
                // The layers lie on all stages.
                serving.model.layers = serving.model.layers * 3 / 2 / serving.stages as i64;
            }
            Load::Piecewise => self.mode = Mode::Piecewise { pieces: serving.model.layers + 1 },
            Load::EagerLarge => {
                (self.mode, self.batch, self.context_tokens) = (Mode::Eager, pick(1, 96, 160), pick(2, 2_000, 4_000));
                serving.model = Model::DENSE[3];
                (self.framework_ns, self.launch_ns) = (3_500, 3_000);
            }
            Load::Hiccups => serving.hiccup_permille = 60,
            Load::NoisyKernels => serving.sigma_permille = 80,
            Load::Warm => self.heat_permille = 14,
            Load::Quantized => (self.quantized, serving.weight_bytes) = (true, 1),
            Load::Experts => serving.model = Model::SPARSE,
            Load::ExpertsTwo => {
                *self = self.clone().gathered(2);
                serving.model = Model::SPARSE;
            }
            Load::Ampere => serving.accelerator = Accelerator::A100,
            Load::LittleCompute => serving.accelerator = Accelerator::H20,
            Load::Rocm => serving.accelerator = Accelerator::Mi300x,
            Load::Sampling => self.sampling = true,
            Load::Sglang => self.annotation = Annotation::Sglang,
            Load::Unmarked => self.annotation = Annotation::None,
        }
        if let Some(churn) = serving.churn.as_mut().filter(|churn| churn.prompts == Prompts::Elsewhere) {
            // One of the batch leaves every few steps, in fast churn every one or two.
            let every = if load == Load::FastChurn { 1 } else { pick(3, 3, 6) };
            *churn =
                Churn { output_tokens: (self.batch * every).max(12), prompt_tokens: self.context_tokens, ..*churn };
        }
    }

    /// Brings everything that follows from the shapes in line with them.
    fn settle(&mut self, serving: Serving) {
        (self.serving, self.vendor) = (Some(serving), serving.accelerator.vendor());
        (self.layers, self.hidden) = (serving.model.layers, serving.model.hidden);
        self.experts = self.experts.max(serving.model.experts);
        let heads = self.batch * (serving.model.kv_heads / self.tensor_parallel.max(1)).max(1);
        self.split_attention |= 2 * heads <= serving.accelerator.ability().cores && self.context_tokens >= 2_000;
        let step = Step::of(&Seat::new(self, 0), 0);
        self.kernel_ns = CARDS.iter().map(|card| (card.slot, cost::ns(self, &serving, &step, card.slot))).collect();
    }
}
