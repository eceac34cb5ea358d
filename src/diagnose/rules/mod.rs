//! The rule catalogue: one file and one line per rule.

mod cm06_redundant_collectives;
mod cm11_host_per_collective;
mod composite;
pub(crate) mod cp04_tracing_inflation;
pub(crate) mod cp05_trace_integrity;
mod cp07_sum_above_wall;
mod cp08_unexplained;
mod fine_op;
pub(crate) mod gate;
mod measurement;
mod op03_unfused_composite;
mod op05_layout;
mod op07_cpu_fallback;
mod op08_small_ops;
mod op14_sampling;
pub(super) mod reading;
mod rt01_no_graph;
mod rt03_piecewise_graph;
mod rt05_recompile;
mod rt08_update_before_replay;
mod rt09_extra_syncs;
mod rt10_allocator;
mod rt11_blocking_copy;
mod rt12_between_steps;
mod rt14_launch_bound;
mod rt15_gc_pauses;
mod rt18_node_gap;
mod rt22_jitter;
mod rt23_warm_up;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use super::rule::Rule;

/// Every rule, in catalogue order.
pub const REGISTRY: &[&dyn Rule] = &[
    &op03_unfused_composite::UnfusedComposite,
    &op05_layout::Layout,
    &op07_cpu_fallback::CpuFallback,
    &op08_small_ops::SmallOps,
    &op14_sampling::Sampling,
    &rt01_no_graph::NoGraph,
    &rt03_piecewise_graph::PiecewiseGraph,
    &rt05_recompile::Recompile,
    &rt08_update_before_replay::UpdateBeforeReplay,
    &rt09_extra_syncs::ExtraSyncs,
    &rt10_allocator::Allocator,
    &rt11_blocking_copy::BlockingCopy,
    &rt12_between_steps::BetweenSteps,
    &rt14_launch_bound::LaunchBound,
    &rt15_gc_pauses::GcPauses,
    &rt18_node_gap::NodeGap,
    &rt22_jitter::Jitter,
    &rt23_warm_up::WarmUp,
    &cm06_redundant_collectives::RedundantCollectives,
    &cm11_host_per_collective::HostPerCollective,
    &cp04_tracing_inflation::TracingInflation,
    &cp05_trace_integrity::TraceIntegrity,
    &cp07_sum_above_wall::SumAboveWall,
    &cp08_unexplained::Unexplained,
];

/// The rule with this id, in any letter case.
pub fn find(id: &str) -> Option<&'static dyn Rule> {
    REGISTRY.iter().copied().find(|r| r.doc().id.eq_ignore_ascii_case(id))
}
