//! What Nsight Compute calls the quantities that are kept: by id on the raw page, by section and label on the details page.
//! The same label means different things in different sections. Ids depend on the chip, so several stand side by side.

use model::Metric;

/// Id of the duration.
pub(super) const DURATION: &str = "gpu__time_duration.sum|gpu__time_duration.avg|gpu__time_duration.max";

/// Ids of the metrics, in lower case.
pub(super) const METRICS: &[(Metric, &str)] = &[
    (Metric::Compute, "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Memory, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    (
        Metric::Dram,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed|dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    (Metric::DramBytesPerSecond, "dram__bytes.sum.per_second"),
    (Metric::L2Hit, "lts__t_sector_hit_rate.pct"),
    (Metric::Occupancy, "sm__warps_active.avg.pct_of_peak_sustained_active"),
    (Metric::OccupancyLimit, "sm__maximum_warps_per_active_cycle_pct"),
    (Metric::Waves, "launch__waves_per_multiprocessor"),
    (Metric::Registers, "launch__registers_per_thread"),
    (Metric::EligibleWarps, "smsp__warps_eligible.avg.per_cycle_active"),
    (Metric::Cores, "launch__sm_count|device__attribute_multiprocessor_count"),
    (Metric::CoreClock, "gpc__cycles_elapsed.avg.per_second|smsp__cycles_elapsed.avg.per_second"),
];

/// What stands before and after the reason in the ids of stalls.
pub(super) const STALL: (&str, &str) = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio");

/// Ids of the cycles in which the mean core had work, and of those that the kernel took.
pub(super) const CYCLES: [&str; 2] = ["sm__cycles_active.avg", "gpc__cycles_elapsed.max|sm__cycles_elapsed.max"];

/// Which of [`CYCLES`] a row of the details page holds.
pub(super) fn cycles_label(section: &str, label: &str) -> Option<usize> {
    let by_label = match (section, label) {
        (SPEED_OF_LIGHT, "SM Active Cycles") => Some(0),
        (SPEED_OF_LIGHT, "Elapsed Cycles") => Some(1),
        _ => None,
    };
    by_label.or_else(|| CYCLES.iter().position(|ids| ids.split('|').any(|id| id == label)))
}

const SPEED_OF_LIGHT: &str = "GPU Speed Of Light Throughput";

/// Whether a row is the duration.
pub(super) fn duration_label(section: &str, label: &str) -> bool {
    (section == SPEED_OF_LIGHT && label == "Duration") || DURATION.split('|').any(|id| id == label)
}

/// Sections and labels of the metrics.
pub(super) const LABELS: &[(&str, &str, Metric)] = &[
    (SPEED_OF_LIGHT, "Compute (SM) Throughput", Metric::Compute),
    (SPEED_OF_LIGHT, "Memory Throughput", Metric::Memory),
    (SPEED_OF_LIGHT, "DRAM Throughput", Metric::Dram),
    (SPEED_OF_LIGHT, "SM Frequency", Metric::CoreClock),
    ("Memory Workload Analysis", "Memory Throughput", Metric::DramBytesPerSecond),
    ("Memory Workload Analysis", "L2 Hit Rate", Metric::L2Hit),
    ("Occupancy", "Achieved Occupancy", Metric::Occupancy),
    ("Occupancy", "Theoretical Occupancy", Metric::OccupancyLimit),
    ("Launch Statistics", "Waves Per SM", Metric::Waves),
    ("Launch Statistics", "Registers Per Thread", Metric::Registers),
    ("Launch Statistics", "# SMs", Metric::Cores),
    ("Scheduler Statistics", "Eligible Warps Per Scheduler", Metric::EligibleWarps),
];
