//! The rule catalogue: one file and one line per rule.

mod cm01_late_rank;
mod cm02_below_link;
mod cm03_small_messages;
mod cm04_wrong_algorithm;
mod cm05_missing_overlap;
mod cm06_redundant_collectives;
mod cm07_slow_link;
mod cm09_moe_imbalance;
mod cm10_dp_mismatch;
mod cm11_host_per_collective;
mod cm12_jitter_wait;
mod cm13_kv_transfer;
mod cm14_recorded_wait;
mod cm15_uneven_stages;
mod costs;
mod cp04_tracing_inflation;
mod cp05_trace_integrity;
mod cp06_clock_drift;
mod cp07_sum_above_wall;
mod cp08_unexplained;
mod cp09_workload_mix;
mod cp10_synthetic_load;
mod cp13_shared_machine;
mod exposed;
mod gate;
mod launch_chain;
mod measurement;
mod nm01_not_finite;
mod op01_below_ceiling;
mod op02_library_choice;
mod op03_unfused_composite;
mod op04_upcast;
mod op05_layout;
mod op06_fills;
mod op07_cpu_fallback;
mod op08_small_ops;
mod op09_tail;
mod op10_gemm_variant;
mod op11_latency_bound;
mod op12_split_kv;
mod op13_reduced_clock;
mod op14_sampling;
mod op15_cache_ops;
mod op16_expert_padding;
mod op17_attention_merge;
mod op19_few_blocks;
mod op20_older_kernel;
mod op21_scalar_bound;
mod op22_no_matrix_units;
mod op23_expanded_weights;
mod op24_gathered_cache;
mod rt01_no_graph;
mod rt02_partial_graph;
mod rt03_piecewise_graph;
mod rt04_padding;
mod rt05_recompile;
mod rt06_graph_recapture;
mod rt07_slow_graph_launch;
mod rt08_update_before_replay;
mod rt09_extra_syncs;
mod rt10_allocator;
mod rt11_blocking_copy;
mod rt12_between_steps;
mod rt13_cpu_contention;
mod rt14_launch_bound;
mod rt15_gc_pauses;
mod rt16_gil;
mod rt17_serial_streams;
mod rt18_node_gap;
mod rt19_load_limited;
mod rt20_preemption;
mod rt21_speculation;
mod rt22_jitter;
mod rt23_warm_up;
mod rt24_input_pipeline;
mod rt25_forward_prologue;
mod share_of_step;
mod uneven;

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

pub use super::signals::ceilings;
use super::{
    catalogue::Catalogue,
    rule::Rule,
    signals::{
        beside, change, composite, demand, excess, fallback, fine_op, first_use, graph_sizes, host_op, late,
        launch_shape, launching, link, machine, matrix_units, measured, owned, pauses, product, reading, speculation,
        stages, start_up, transfers, unfused,
    },
};

/// Every rule, in catalogue order.
pub const REGISTRY: &[&dyn Rule] = &[
    &op01_below_ceiling::BelowCeiling,
    &op02_library_choice::LibraryChoice,
    &op03_unfused_composite::UnfusedComposite,
    &op04_upcast::Upcast,
    &op05_layout::Layout,
    &op06_fills::Fills,
    &op07_cpu_fallback::CpuFallback,
    &op08_small_ops::SmallOps,
    &op09_tail::Tail,
    &op10_gemm_variant::GemmVariant,
    &op11_latency_bound::LatencyBound,
    &op12_split_kv::SplitKv,
    &op13_reduced_clock::ReducedClock,
    &op14_sampling::Sampling,
    &op15_cache_ops::CacheOps,
    &op16_expert_padding::ExpertPadding,
    &op17_attention_merge::AttentionMerge,
    &op19_few_blocks::FewBlocks,
    &op20_older_kernel::OlderKernel,
    &op21_scalar_bound::ScalarBound,
    &op22_no_matrix_units::NoMatrixUnits,
    &op23_expanded_weights::ExpandedWeights,
    &op24_gathered_cache::GatheredCache,
    &rt01_no_graph::NoGraph,
    &rt02_partial_graph::PartialGraph,
    &rt03_piecewise_graph::PiecewiseGraph,
    &rt04_padding::Padding,
    &rt05_recompile::Recompile,
    &rt06_graph_recapture::GraphRecapture,
    &rt07_slow_graph_launch::SlowGraphLaunch,
    &rt08_update_before_replay::UpdateBeforeReplay,
    &rt09_extra_syncs::ExtraSyncs,
    &rt10_allocator::Allocator,
    &rt11_blocking_copy::BlockingCopy,
    &rt12_between_steps::BetweenSteps,
    &rt13_cpu_contention::CpuContention,
    &rt14_launch_bound::LaunchBound,
    &rt15_gc_pauses::GcPauses,
    &rt16_gil::Gil,
    &rt17_serial_streams::SerialStreams,
    &rt18_node_gap::NodeGap,
    &rt19_load_limited::LoadLimited,
    &rt20_preemption::Preemption,
    &rt21_speculation::Speculation,
    &rt22_jitter::Jitter,
    &rt23_warm_up::WarmUp,
    &rt24_input_pipeline::InputPipeline,
    &rt25_forward_prologue::ForwardPrologue,
    &nm01_not_finite::NotFinite,
    &cm01_late_rank::LateRank,
    &cm02_below_link::BelowLink,
    &cm03_small_messages::SmallMessages,
    &cm04_wrong_algorithm::WrongAlgorithm,
    &cm05_missing_overlap::MissingOverlap,
    &cm06_redundant_collectives::RedundantCollectives,
    &cm07_slow_link::SlowLink,
    &cm09_moe_imbalance::MoeImbalance,
    &cm10_dp_mismatch::DpMismatch,
    &cm11_host_per_collective::HostPerCollective,
    &cm12_jitter_wait::JitterWait,
    &cm13_kv_transfer::KvTransfer,
    &cm14_recorded_wait::RecordedWait,
    &cm15_uneven_stages::UnevenStages,
    &costs::ALL[0],
    &costs::ALL[1],
    &costs::ALL[2],
    &costs::ALL[3],
    &costs::ALL[4],
    &costs::ALL[5],
    &costs::ALL[6],
    &costs::ALL[7],
    &costs::ALL[8],
    &costs::ALL[9],
    &costs::ALL[10],
    &costs::ALL[11],
    &costs::ALL[12],
    &costs::ALL[13],
    &costs::ALL[14],
    &cp04_tracing_inflation::TracingInflation,
    &cp05_trace_integrity::TraceIntegrity,
    &cp06_clock_drift::ClockDrift,
    &cp07_sum_above_wall::SumAboveWall,
    &cp08_unexplained::Unexplained,
    &cp09_workload_mix::WorkloadMix,
    &cp10_synthetic_load::SyntheticLoad,
    &cp13_shared_machine::SharedMachine,
];

/// The same, for those who judge findings.
pub const CATALOGUE: Catalogue = Catalogue::new(REGISTRY);

/// The rule with this id, in any letter case.
pub fn find(id: &str) -> Option<&'static dyn Rule> {
    REGISTRY.iter().copied().find(|r| r.doc().id.eq_ignore_ascii_case(id))
}
