//! Every parameter of a simulated run, and how a configuration is drawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    fault::{Fault, FaultKind},
    kernel::{CARDS, Slot, Vendor},
    random::{Dice, Of},
    serving::Serving,
};

/// How the decode forward pass is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One launch per operation.
    Eager,
    /// Graphs with an attention operation launched by itself between two of them.
    Piecewise {
        /// Graphs per step; at most one more than there are layers.
        pieces: i64,
    },
    /// One graph for the whole forward pass.
    Full,
}

/// Which ranges the program annotates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Annotation {
    /// None at all.
    None,
    /// `execute_context_0(0)_generation_8(8)`.
    Vllm,
    /// `step[DECODE bs=8]`.
    Sglang,
}

/// How the host learns of the sampled token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenReturn {
    /// A copy to pageable memory, which blocks.
    BlockingCopy,
    /// An asynchronous copy to pinned memory, then a stream synchronisation.
    StreamSync,
    /// An asynchronous copy to pinned memory, then an event synchronisation.
    EventSync,
}

/// Parameters of one run. Times are nanoseconds; shares are parts per thousand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Source of every random number.
    pub seed: u64,
    /// Whose names are written.
    pub vendor: Vendor,
    /// Decoder layers.
    pub layers: i64,
    /// Sequences decoded together.
    pub batch: i64,
    /// Decode forward pass.
    pub mode: Mode,
    /// Measured steps, prefill included.
    pub steps: i64,
    /// Steps before them that still compile.
    pub warmup_steps: i64,
    /// A prefill step takes the place of every n-th step; 0 for none.
    pub prefill_every: i64,
    /// Device streams: 1 main, 2 adds one for overlapped operations, 3 one for copies.
    pub streams: usize,
    /// Ranks of the tensor-parallel group; 1 for no collectives.
    pub tensor_parallel: i64,
    /// Ranks that are simulated: 1 for the first rank's view, whose waits for the others are drawn, or the whole group,
    /// whose waits come from what each rank does.
    pub ranks: usize,
    /// Furthest that a rank's written clock may be from true time; each rank but the first is off by its own amount.
    pub clock_offset_ns: i64,
    /// Fastest that a rank's written clock may run away from true time, in parts per million.
    pub clock_drift_ppm: i64,
    /// Share of the device records that the profiler loses, in parts per thousand.
    pub dropped_permille: i64,
    /// Whether attention is split and combined by a second kernel.
    pub split_attention: bool,
    /// Whether activations are quantised before matrix products.
    pub quantized: bool,
    /// Whether tokens are sampled, rather than taken greedily.
    pub sampling: bool,
    /// Whether step n + 1 is issued before the token of step n is awaited.
    pub async_scheduling: bool,
    /// How the token comes back.
    pub token_return: TokenReturn,
    /// Ranges of the program.
    pub annotation: Annotation,
    /// Whether framework operators are recorded.
    pub framework_ops: bool,
    /// Whether interpreter frames are recorded.
    pub python_frames: bool,
    /// Decode duration of each slot.
    pub kernel_ns: BTreeMap<Slot, i64>,
    /// Largest random change of a duration.
    pub jitter_permille: i64,
    /// Largest change that all durations of some consecutive steps share (clock, temperature).
    pub drift_permille: i64,
    /// How much longer a kernel takes while another stream computes.
    pub contention_permille: i64,
    /// Mean wait for the other ranks in a collective, where it is drawn.
    pub wait_ns: i64,
    /// Launch call.
    pub launch_ns: i64,
    /// From the beginning of a launch call until the device may start.
    pub latency_ns: i64,
    /// Least gap between two operations of a stream.
    pub gap_ns: i64,
    /// Least gap between two nodes of a graph.
    pub node_gap_ns: i64,
    /// Graph-launch call without its nodes' share.
    pub graph_launch_ns: i64,
    /// Each node's share of a graph-launch call.
    pub graph_launch_node_ns: i64,
    /// From the end of an operation until a stream that waits for its event may go on.
    pub event_ns: i64,
    /// From the end of the device's work until a blocking call returns.
    pub sync_tail_ns: i64,
    /// A synchronisation that has nothing to wait for.
    pub sync_call_ns: i64,
    /// Launches that may be outstanding before a launch call blocks.
    pub queue_limit: usize,
    /// Framework work before each launch.
    pub framework_ns: i64,
    /// Scheduler between steps.
    pub schedule_ns: i64,
    /// Input preparation of a step.
    pub prepare_ns: i64,
    /// Detokenising after a step.
    pub detokenize_ns: i64,
    /// Input copies of a step.
    pub input_copies: i64,
    /// One device allocation every n-th step; 0 for none.
    pub allocate_every: i64,
    /// One flush of the profiler's buffers every n-th step; 0 for none.
    pub flush_every: i64,
    /// Length of such a flush.
    pub flush_ns: i64,
    /// Whether nsys records a graph replay as one row, rather than its nodes.
    pub graph_level_trace: bool,
    /// Whether a part of each layer runs beside the rest on the second stream, where there is one.
    pub side_work: bool,
    /// Whether work of the next block runs on the second stream beside each collective.
    pub overlap: bool,
    /// Experts of each layer; 0 for a dense model.
    pub experts: i64,
    /// Whether the experts lie on all ranks and each rank has its own batch, rather than a part of every layer.
    pub expert_parallel: bool,
    /// Width of the model.
    pub hidden: i64,
    /// Mean tokens in the KV cache of a sequence.
    pub context_tokens: i64,
    /// How much slower the device computes at the end of the run than at the beginning, as it grows warm.
    pub heat_permille: i64,
    /// Largest change that the host work of some consecutive steps shares.
    pub host_noise_permille: i64,
    /// Whether every piece of host work takes its mean time: what is left of a run once nothing disturbs its hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steady_host: bool,
    /// Synchronisations at the end of a step that have nothing to wait for.
    pub idle_syncs: i64,
    /// Whether the engine's counters are recorded.
    pub counters: bool,
    /// Whether framework operators are recorded with the shapes of their inputs.
    pub record_shapes: bool,
    /// The serving that the run is a part of; without it the batch never changes and kernels take what was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<Serving>,
    /// What is wrong with the run.
    pub faults: Vec<Fault>,
}

impl Config {
    /// A healthy configuration drawn from wide ranges.
    pub fn draw(seed: u64) -> Self {
        let dice = Dice::new(seed);
        let mut drawn = 0;
        let mut pick = |lo: i64, hi: i64| {
            drawn += 1;
            dice.uniform(Of::Config, [drawn, 0, 0], lo, hi)
        };
        let vendor = if pick(0, 3) == 0 { Vendor::Rocm } else { Vendor::Cuda };
        let layers = pick(4, 32);
        let batch = pick(1, 64);
        let mode = match pick(0, 2) {
            0 => Mode::Eager,
            1 => Mode::Piecewise { pieces: pick(2, 6).min(layers) },
            _ => Mode::Full,
        };
        let annotation = match pick(0, 4) {
            0 => Annotation::None,
            1 | 2 => Annotation::Sglang,
            _ => Annotation::Vllm,
        };
        let token_return = match pick(0, 2) {
            0 => TokenReturn::BlockingCopy,
            1 => TokenReturn::StreamSync,
            _ => TokenReturn::EventSync,
        };
        // Slots that came later and all that follows them are drawn by address, so that no other draw moves.
        let (first, later) = CARDS.split_at(Slot::UnfusedRope as usize + 1);
        let mut kernel_ns: BTreeMap<Slot, i64> =
            first.iter().map(|card| (card.slot, pick(card.range.0, card.range.1))).collect();
        let by_address = |place: i64, lo: i64, hi: i64| dice.uniform(Of::Config, [0, place, 0], lo, hi);
        // The slots after these have no duration of their own.
        let later = later.split(|card| card.slot == Slot::Send).next().unwrap_or(later);
        kernel_ns.extend(
            later.iter().map(|card| (card.slot, by_address(100 + card.slot as i64, card.range.0, card.range.1))),
        );
        Self {
            seed,
            vendor,
            layers,
            batch,
            mode,
            steps: pick(12, 60),
            warmup_steps: pick(0, 4),
            prefill_every: if pick(0, 2) == 0 { pick(5, 12) } else { 0 },
            streams: usize::try_from(pick(1, 3)).unwrap_or(1),
            tensor_parallel: [1, 1, 2, 4, 8][usize::try_from(pick(0, 4)).unwrap_or(0)],
            split_attention: pick(0, 1) == 0,
            quantized: pick(0, 3) == 0,
            sampling: pick(0, 1) == 0,
            async_scheduling: pick(0, 2) == 0,
            token_return,
            annotation,
            framework_ops: pick(0, 3) > 0,
            python_frames: pick(0, 1) == 0,
            kernel_ns,
            jitter_permille: pick(5, 60),
            drift_permille: pick(0, 15),
            contention_permille: pick(50, 400),
            wait_ns: pick(500, 4_000),
            launch_ns: pick(2_000, 7_000),
            latency_ns: pick(1_500, 9_000),
            gap_ns: pick(600, 1_600),
            node_gap_ns: pick(300, 1_500),
            graph_launch_ns: pick(6_000, 18_000),
            graph_launch_node_ns: pick(10, 60),
            event_ns: pick(500, 1_800),
            sync_tail_ns: pick(1_500, 9_000),
            sync_call_ns: pick(900, 2_500),
            queue_limit: usize::try_from(pick(64, 1024)).unwrap_or(1024),
            framework_ns: pick(1_000, 7_000),
            schedule_ns: pick(10_000, 60_000),
            prepare_ns: pick(5_000, 40_000),
            detokenize_ns: pick(5_000, 30_000),
            input_copies: pick(1, 4),
            allocate_every: if pick(0, 5) == 0 { pick(8, 20) } else { 0 },
            flush_every: if pick(0, 2) == 0 { pick(8, 25) } else { 0 },
            flush_ns: pick(40_000, 400_000),
            graph_level_trace: pick(0, 2) == 0,
            ranks: 1,
            clock_offset_ns: 0,
            clock_drift_ppm: 0,
            dropped_permille: 0,
            side_work: true,
            overlap: false,
            experts: 0,
            expert_parallel: false,
            hidden: [2048, 4096, 5120, 8192][usize::try_from(by_address(10, 0, 3)).unwrap_or(0)],
            context_tokens: by_address(11, 256, 6_000),
            heat_permille: by_address(12, 0, 12),
            host_noise_permille: by_address(13, 0, 120),
            steady_host: false,
            idle_syncs: 0,
            counters: by_address(14, 0, 1) == 0,
            record_shapes: by_address(15, 0, 1) == 0,
            serving: None,
            faults: Vec::new(),
        }
    }

    /// A healthy configuration of a job in which all of `ranks` ranks are simulated and no two clocks agree.
    pub fn draw_job(seed: u64, ranks: usize) -> Self {
        let dice = Dice::new(seed);
        let pick = |place: i64, lo: i64, hi: i64| dice.uniform(Of::Config, [0, place, 0], lo, hi);
        let experts = if pick(3, 0, 3) == 0 { 64 } else { 0 };
        let expert_parallel = experts > 0 && pick(4, 0, 1) == 0;
        Self { experts, expert_parallel, ..Self::draw(seed) }.gathered(ranks)
    }

    /// The same job with all of its `ranks` ranks simulated, no two clocks of which agree.
    pub fn gathered(mut self, ranks: usize) -> Self {
        let dice = Dice::new(self.seed);
        let pick = |place: i64, lo: i64, hi: i64| dice.uniform(Of::Config, [0, place, 0], lo, hi);
        (self.ranks, self.tensor_parallel) = (ranks, i64::try_from(ranks).unwrap_or(1));
        (self.clock_offset_ns, self.clock_drift_ppm) = (pick(1, 100_000, 8_000_000), pick(2, 0, 20));
        // Both reductions of a layer move the same bytes over the same links.
        self.kernel_ns.insert(Slot::MlpReduce, self.kernel(Slot::AttentionReduce));
        self
    }

    /// The same run without its faults; it shares every random number with this one.
    pub fn twin(&self) -> Self {
        Self { faults: Vec::new(), ..self.clone() }
    }

    /// The same run without the fault `kind`, and with the others.
    pub fn without(&self, kind: FaultKind) -> Self {
        let mut run = self.clone();
        run.faults.retain(|fault| fault.kind != kind);
        run
    }

    /// Decode duration of `slot`; a configuration that does not say takes the middle of the slot's range.
    pub(crate) fn kernel(&self, slot: Slot) -> i64 {
        let (lo, hi) = slot.card().range;
        self.kernel_ns.get(&slot).copied().unwrap_or((lo + hi) / 2)
    }

    /// Rough device time of a decode step, the yardstick of faults that are sized relative to a step.
    pub(crate) fn estimate(&self) -> i64 {
        use Slot::{Act, Attention, Down, GateUp, InputNorm, KvWrite, LmHead, OutProj, PostNorm, Qkv, Rope};
        let layer: i64 = [InputNorm, Qkv, Rope, KvWrite, Attention, OutProj, PostNorm, GateUp, Act, Down]
            .into_iter()
            .map(|slot| self.kernel(slot) + self.node_gap_ns)
            .sum();
        layer * self.layers + self.kernel(LmHead)
    }

    /// Mean device time per operation of the forward pass.
    pub(crate) fn mean_kernel(&self) -> i64 {
        self.estimate() / (self.layers * 10).max(1)
    }
}
