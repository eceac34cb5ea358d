//! Every kind of fault: what it is, the layer of its cause, and the rules that name it, the expected one first. Generated statements
//! (CO) are among them where their sentence says the fault itself, and not only where the time went.

use serde::{Deserialize, Serialize};

use super::Layer;

macro_rules! kinds {
    ($($(#[doc = $text:literal])+ $kind:ident $layer:ident [$($rule:literal),+] $($one:ident)?;)*
     of serving: $($(#[doc = $of:literal])+ $served:ident $at:ident [$($says:literal),+];)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FaultKind { $($(#[doc = $text])+ $kind,)* $($(#[doc = $of])+ $served,)* }

        impl FaultKind {
            /// All faults that a run may have whether it serves or not.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// Faults that only a run has which serves.
            pub const OF_SERVING: &'static [Self] = &[$(Self::$served,)*];

            /// Its name on the command line and in reports; the serialised one.
            pub fn key(self) -> String {
                crate::texts::snake(&format!("{self:?}"))
            }

            /// Rules that name this fault, the expected one first.
            pub fn rules(self) -> &'static [&'static str] {
                match self { $(Self::$kind => &[$($rule),+],)* $(Self::$served => &[$($says),+],)* }
            }

            /// Layer of the cause.
            pub fn layer(self) -> Layer {
                match self { $(Self::$kind => Layer::$layer,)* $(Self::$served => Layer::$at,)* }
            }

            /// Whether a single rank suffers from it, and the others only wait.
            pub fn of_one_rank(self) -> bool {
                match self { $(Self::$kind => kinds!(@one $($one)?),)* $(Self::$served => false,)* }
            }
        }
    };
    (@one) => { false };
    (@one one) => { true };
}

kinds! {
    /// Decode issues every operation by itself although graphs are there to be used.
    GraphOff Runtime ["RT-01", "RT-14", "CO-03"];
    /// Norm, activation and rotary embedding run as several elementwise kernels.
    Unfused Operator ["OP-03", "OP-08"];
    /// A layout copy before each matrix product.
    Transposes Operator ["OP-05"];
    /// Many tiny kernels beside the real ones.
    SmallOps Operator ["OP-08", "OP-03"];
    /// Sampling sorts the whole vocabulary.
    FullSort Operator ["OP-14"];
    /// The forward pass is cut in many graphs.
    ManyPieces Runtime ["RT-03"];
    /// Compilation in the steady state.
    Recompile Runtime ["RT-05"];
    /// Host work on metadata before the forward pass.
    HostUpdate Runtime ["RT-08"];
    /// The host waits for the device in each layer.
    LayerSync Runtime ["RT-09"];
    /// Device memory is allocated and freed in each step.
    AllocStall Runtime ["RT-10"];
    /// A pageable copy to the device in each step.
    PageableCopy Runtime ["RT-11", "CO-05"];
    /// The scheduler takes long between steps.
    Scheduling Runtime ["RT-12"];
    /// Pauses of the interpreter's garbage collection.
    Gc Runtime ["RT-15", "RT-22"];
    /// Long gaps between the nodes of a graph.
    NodeGap Runtime ["RT-18", "CO-04"];
    /// Rare host stalls of unknown origin; of several ranks now one, now another. Nothing recorded tells them from
    /// collections that nobody recorded.
    Stalls Runtime ["RT-22", "CM-12", "RT-15"];
    /// Steps are still getting faster after the claimed warm-up.
    ShortWarmup Runtime ["RT-23"];
    /// Collectives that the model does not need.
    ExtraCollective Communication ["CM-06"];
    /// Each collective costs much host time.
    CollectiveHost Runtime ["CM-11"];
    /// The profiler slows each launch and flushes often.
    Profiler Measurement ["CP-04"];
    /// One rank's host prepares each step slower than the others.
    HostStraggler Runtime ["CM-01", "RT-08"] one;
    /// One rank computes slower than the others.
    ThrottledRank Operator ["CM-01", "OP-13", "CO-08"] one;
    /// Garbage collection pauses one rank.
    RankGc Runtime ["CM-01", "RT-15", "RT-22"] one;
    /// The scheduler of one rank takes long between steps.
    RankScheduling Runtime ["CM-01", "RT-12"] one;
    /// Every rank's host is held up at random, none more than the others.
    RankNoise Runtime ["CM-12", "RT-22"];
    /// All matrix products are slower than the device allows.
    SlowGemm Operator ["OP-01"];
    /// Activations go to 32 bits and back around each norm and activation.
    Upcast Operator ["OP-04"];
    /// Buffers are filled in each layer although they are overwritten.
    ExtraFills Operator ["OP-06", "OP-08"];
    /// An operator runs on the host in the middle of the forward pass.
    CpuFallback Operator ["OP-07", "RT-11"];
    /// Matrix products need a little more than one wave of blocks.
    WaveTail Operator ["OP-09", "OP-01"];
    /// Matrix products of few rows run with the tile of prefill.
    PrefillTile Operator ["OP-10", "OP-01"];
    /// Attention over a long context is not split over the device.
    NoSplitKv Operator ["OP-12"];
    /// From the middle of the run on the device computes slower.
    LowClock Environment ["OP-13", "CO-08"];
    /// Writing the KV cache is slow.
    SlowScatter Operator ["OP-15"];
    /// Experts work on many padded rows.
    MoePadding Operator ["OP-16"];
    /// The parts of a split attention are combined by many kernels.
    ManyCombines Operator ["OP-17", "OP-03"];
    /// Some steps' batches lie off the grid of captured sizes and run without a graph.
    OffGrid Runtime ["RT-02"];
    /// Graphs are captured for batches much larger than those that run.
    PaddedGraph Runtime ["RT-04", "CO-11"];
    /// Graphs are captured again in the steady state.
    Recapture Runtime ["RT-06", "RT-05"];
    /// Each graph launch takes long.
    SlowGraphLaunch Runtime ["RT-07"];
    /// Other processes take the processor away in the middle of calls.
    HostContention Runtime ["RT-13", "RT-22"];
    /// Each launch call takes long.
    SlowLaunch Runtime ["RT-14", "RT-01", "CO-03"];
    /// Another thread of the interpreter holds its lock.
    Gil Runtime ["RT-16"];
    /// Kernels of each layer go to a side stream that the main one then waits for, by events that are slow.
    SerialStreams Runtime ["RT-17"];
    /// Few requests arrive and the engine waits for them.
    LoadLimited LoadLimited ["RT-19"];
    /// Requests are preempted for want of cache and computed again.
    Preemption Runtime ["RT-20"];
    /// Drafted tokens are rarely accepted.
    LowAcceptance Runtime ["RT-21"];
    /// Each small collective takes a fixed time too long.
    SlowCollective Communication ["CM-02", "CO-09"];
    /// Large collectives reach a fraction of the bandwidth.
    LowBandwidth Communication ["CM-03", "CO-09"];
    /// Collectives use an algorithm that does not fit their size.
    WrongAlgorithm Communication ["CM-04", "CM-02", "CO-09"];
    /// Work that could run beside a collective runs before it.
    NoOverlap Communication ["CM-05"];
    /// A bad link makes some collectives long for all ranks.
    SlowLink Communication ["CM-07", "CO-09"];
    /// One rank's experts get more tokens than the others'.
    MoeImbalance Communication ["CM-09", "CM-01"] one;
    /// One data-parallel rank decodes a larger batch than the others.
    BatchMismatch Communication ["CM-10", "CM-01"] one;
    /// KV blocks come from another device before each step.
    KvTransfer Communication ["CM-13"];
    of serving:
    /// One product of each layer runs with a tile so large that most cores have none.
    FewBlocks Operator ["OP-19", "OP-10", "OP-01", "OP-02", "CO-07"];
    /// All logits come to the host in each step, by a copy that blocks.
    LogitsCopy Runtime ["RT-11", "RT-09", "CO-05"];
    /// What a stage sends to the next takes long.
    SlowPeer Communication ["CM-13"];
    /// One stage of a pipeline has more layers than the others.
    UnevenStages Communication ["CM-15"];
}

#[cfg(test)]
mod tests {
    use super::FaultKind;

    #[test]
    fn each_fault_names_rules_and_ranks_only_where_there_are_some() {
        assert!(FaultKind::ALL.len() >= 45);
        for kind in FaultKind::ALL.iter().chain(FaultKind::OF_SERVING) {
            assert!(kind.rules().iter().all(|rule| rule.len() == 5), "{kind:?}");
            assert!(!kind.of_one_rank() || kind.rules().contains(&"CM-01"), "{kind:?}");
        }
    }
}
