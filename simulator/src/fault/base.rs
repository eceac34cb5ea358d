//! Base configurations: for each fault one in which it bites.

use super::{Fault, FaultKind};
use crate::{
    config::{Config, Mode},
    kernel::Slot,
};

impl Config {
    /// A drawn configuration, turned into one where `fault` shows, with the fault in it.
    pub fn draw_faulty(seed: u64, fault: Fault) -> Self {
        let mut config = Self::draw(seed);
        config.suit(fault);
        config.faults = vec![fault];
        config
    }

    /// A drawn configuration that suits all of `faults`, with them in it.
    pub fn draw_with(seed: u64, faults: &[Fault]) -> Self {
        let mut config = Self::draw(seed);
        config.suit_all(faults);
        config
    }

    /// Turns the configuration into one where `faults` show, with them in it.
    pub(crate) fn suit_all(&mut self, faults: &[Fault]) {
        for fault in faults {
            self.suit(*fault);
        }
        self.faults = faults.to_vec();
    }

    fn suit(&mut self, fault: Fault) {
        use FaultKind as F;
        match fault.kind {
            // Issued one by one, each operation must cost the host more than it costs the device.
            F::GraphOff => {
                self.mode = Mode::Full;
                self.framework_ns = self.mean_kernel() * (600 + fault.magnitude_permille) / 1000;
            }
            F::OffGrid => {
                self.mode = Mode::Full;
                self.framework_ns = self.mean_kernel() * 3 / 2;
            }
            F::NodeGap | F::Recapture | F::SlowGraphLaunch => self.mode = Mode::Full,
            F::PaddedGraph => {
                self.mode = Mode::Full;
                self.batch = self.batch.max(8);
            }
            F::ManyPieces => {
                self.mode = Mode::Full;
                self.layers = self.layers.max(16);
            }
            F::LayerSync | F::CpuFallback => self.mode = Mode::Eager,
            F::CollectiveHost => {
                self.mode = Mode::Eager;
                self.framework_ns = self.mean_kernel();
                self.tensor_parallel = self.tensor_parallel.max(2);
            }
            F::ExtraCollective | F::SlowCollective | F::WrongAlgorithm => {
                self.tensor_parallel = self.tensor_parallel.max(2);
            }
            F::LowBandwidth if self.serving.is_some() => self.gather(2),
            F::LowBandwidth => {
                self.tensor_parallel = self.tensor_parallel.max(2);
                // 2 MiB and more, which takes the wire some time.
                self.batch = 256;
                for slot in [Slot::AttentionReduce, Slot::MlpReduce] {
                    self.kernel_ns.insert(slot, 30_000);
                }
            }
            // The host is the slower side already, so that nothing hides what makes it slower still.
            F::Profiler | F::HostContention | F::SlowLaunch | F::Gil => {
                self.mode = Mode::Eager;
                self.framework_ns = self.mean_kernel();
                self.python_frames |= fault.kind == F::Gil;
            }
            // Here it is the faster side, so that the streams' waiting for each other shows.
            F::SerialStreams => {
                self.mode = Mode::Eager;
                self.streams = self.streams.max(2);
                (self.framework_ns, self.launch_ns) = (500, 1_500);
                (self.tensor_parallel, self.side_work) = (1, false);
            }
            F::HostStraggler | F::ThrottledRank | F::RankGc | F::RankScheduling | F::RankNoise | F::SlowLink => {
                self.gather(4);
            }
            F::NoOverlap => {
                self.mode = Mode::Full;
                self.gather(2);
                self.streams = self.streams.max(2);
                self.side_work = false;
                self.overlap = true;
            }
            F::MoeImbalance | F::BatchMismatch => {
                self.gather(4);
                self.experts = self.experts.max(64);
                self.expert_parallel = true;
            }
            F::MoePadding => self.experts = self.experts.max(64),
            F::PrefillTile => self.batch = self.batch.min(16),
            F::NoSplitKv | F::ManyCombines => {
                self.split_attention = true;
                self.batch = self.batch.min(4);
                self.context_tokens = self.context_tokens.max(8_192);
                self.kernel_ns.insert(Slot::Attention, 30_000);
            }
            F::LowAcceptance | F::Preemption | F::LoadLimited => {}
            F::Recompile
            | F::HostUpdate
            | F::AllocStall
            | F::PageableCopy
            | F::Scheduling
            | F::Gc
            | F::Stalls
            | F::ShortWarmup
            | F::Unfused
            | F::Transposes
            | F::SmallOps
            | F::FullSort
            | F::SlowGemm
            | F::Upcast
            | F::ExtraFills
            | F::WaveTail
            | F::LowClock
            | F::SlowScatter
            | F::FewBlocks
            | F::LogitsCopy
            | F::SlowPeer
            | F::UnevenStages
            | F::KvTransfer => {}
        }
        self.schedule_for(fault.kind);
    }

    fn schedule_for(&mut self, kind: FaultKind) {
        use FaultKind as F;
        let host_work_overlaps = matches!(
            kind,
            F::HostUpdate
                | F::AllocStall
                | F::PageableCopy
                | F::Scheduling
                | F::CollectiveHost
                | F::LayerSync
                | F::ManyPieces
                | F::HostStraggler
                | F::RankScheduling
                | F::RankNoise
                | F::SlowGraphLaunch
                | F::LoadLimited
                | F::LowAcceptance
                | F::LogitsCopy
        );
        // Issued ahead, such work would hide under the step before.
        self.async_scheduling &= !host_work_overlaps;
        // Rare stalls need steps to be rare in.
        if matches!(
            kind,
            F::Gc | F::Stalls | F::Recompile | F::ShortWarmup | F::Recapture | F::RankGc | F::OffGrid | F::Preemption
        ) {
            self.steps = self.steps.max(40);
        }
        // Of these the engine's own counters tell.
        self.counters |= matches!(
            kind,
            F::Scheduling
                | F::LoadLimited
                | F::Preemption
                | F::LowAcceptance
                | F::MoeImbalance
                | F::MoePadding
                | F::PaddedGraph
                | F::NoSplitKv
        );
    }

    /// Simulates all ranks of the group, of which there are then `ranks`.
    fn gather(&mut self, ranks: usize) {
        // Serving on several ranks has as many as it was drawn with.
        if self.serving.is_some() && self.ranks > 1 {
            return;
        }
        *self = self.clone().gathered(ranks);
    }
}
