//! Reports on simulated runs, of which it is known what is wrong with them: between them each kind of fault.

use std::path::Path;

use simulator::{Config, Fault, FaultKind as F, simulate_job};

use super::{all_hold, held_against, report};

/// A simulated run with faults that do not hide each other.
pub(super) struct Run {
    /// Name of its page, and of its directory.
    pub name: &'static str,
    seed: u64,
    /// What is wrong with it, which a finding of its page names.
    pub faults: &'static [F],
}

const fn run(name: &'static str, seed: u64, faults: &'static [F]) -> Run {
    Run { name, seed, faults }
}

pub(super) const RUNS: &[Run] = &[
    run("operators", 1, &[F::Unfused, F::Transposes, F::SmallOps, F::FullSort, F::ExtraFills]),
    run("types", 1, &[F::Upcast]),
    run("products", 2, &[F::WaveTail, F::PrefillTile]),
    run("attention", 3, &[F::NoSplitKv, F::SlowScatter]),
    run("attention-parts", 3, &[F::ManyCombines]),
    run("experts", 4, &[F::MoePadding, F::LowClock]),
    run("host-operators", 5, &[F::CpuFallback, F::PageableCopy, F::AllocStall]),
    run("syncs", 5, &[F::LayerSync]),
    run("no-graph", 6, &[F::GraphOff]),
    run("graph-sizes", 7, &[F::OffGrid, F::PaddedGraph]),
    run("graph-pieces", 8, &[F::ManyPieces, F::HostUpdate]),
    run("graph-captures", 9, &[F::Recapture, F::SlowGraphLaunch]),
    run("graph-gaps", 9, &[F::NodeGap]),
    run("compilations", 9, &[F::Recompile]),
    run("host", 10, &[F::HostContention, F::Gil, F::SlowLaunch, F::Profiler]),
    run("pauses", 11, &[F::Gc, F::Stalls]),
    run("warm-up", 11, &[F::ShortWarmup]),
    run("scheduler", 12, &[F::Scheduling, F::Preemption, F::LowAcceptance]),
    run("load", 13, &[F::LoadLimited]),
    run("streams", 14, &[F::SerialStreams]),
    run("collectives", 15, &[F::ExtraCollective, F::CollectiveHost]),
    run("transfers", 16, &[F::NoOverlap, F::KvTransfer]),
    run("straggler", 17, &[F::HostStraggler, F::RankGc]),
    run("late-scheduler", 17, &[F::RankScheduling]),
    run("slow-rank", 18, &[F::ThrottledRank, F::SlowLink]),
    run("rank-noise", 19, &[F::RankNoise]),
    run("expert-ranks", 20, &[F::BatchMismatch]),
    run("expert-load", 20, &[F::MoeImbalance]),
];

/// Faults that no rule of the registry names without ceilings of the device.
pub(super) const UNNAMED: &[F] = &[F::SlowGemm, F::SlowCollective, F::LowBandwidth, F::WrongAlgorithm];

impl Run {
    fn config(&self) -> Config {
        let faults: Vec<Fault> =
            self.faults.iter().map(|kind| Fault { kind: *kind, magnitude_permille: 1000 }).collect();
        let drawn = Config::draw_with(self.seed, &faults);
        let (layers, steps) = (drawn.layers.min(16), drawn.steps.min(48));
        Config { layers, steps, graph_level_trace: false, record_shapes: true, ..drawn }
    }

    /// What its report says of rules; the other sections are those of the pages of the samples.
    fn page(&self, directory: &Path) -> String {
        let drawn = simulate_job(&self.config());
        drawn.write_kineto(&directory.join(self.name)).unwrap();
        let report = report(directory, self.name, &["--full"]);
        let mut sections = report.split("\n## ");
        let title = sections.next().unwrap().to_owned();
        let about = ["Verdict\n", "Findings\n", "Skipped rules\n"];
        let kept = sections.filter(|section| about.iter().any(|heading| section.starts_with(heading)));
        kept.fold(title, |page, section| page + "\n## " + section.trim_end_matches('\n') + "\n")
    }
}

#[test]
fn reports_on_simulated_faults_are_as_accepted() {
    let directory = tempfile::tempdir().unwrap();
    all_hold(RUNS.iter().map(|run| held_against(&format!("{}.md", run.name), &run.page(directory.path()))));
}
