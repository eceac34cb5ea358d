//! Reports on simulated runs, of which it is known what is wrong with them: between them each kind of fault.

use std::path::Path;

use simulator::{Config, Fault, FaultKind as F, simulate_job};

use super::{all_hold, held_against, report};

/// A simulated run with faults that do not hide each other.
pub(super) struct Run {
    /// Name of its page, and of its directory.
    pub name: &'static str,
    seed: u64,
    /// What is wrong with it.
    pub faults: &'static [F],
    /// Those of them that no finding names.
    pub unseen: &'static [F],
}

const fn run(name: &'static str, seed: u64, faults: &'static [F]) -> Run {
    Run { name, seed, faults, unseen: &[] }
}

pub(super) const RUNS: &[Run] = &[
    run("operators", 1, &[F::Unfused, F::Transposes, F::SmallOps, F::FullSort, F::Upcast, F::ExtraFills]),
    run("products", 2, &[F::SlowGemm, F::WaveTail, F::PrefillTile]),
    run("attention", 3, &[F::NoSplitKv, F::ManyCombines, F::SlowScatter]),
    run("experts", 4, &[F::MoePadding, F::LowClock]),
    run("host-operators", 5, &[F::CpuFallback, F::PageableCopy, F::AllocStall, F::LayerSync]),
    run("no-graph", 6, &[F::GraphOff]),
    run("graph-sizes", 7, &[F::OffGrid, F::PaddedGraph]),
    run("graph-pieces", 8, &[F::ManyPieces, F::HostUpdate]),
    run("graph-captures", 9, &[F::Recompile, F::Recapture, F::SlowGraphLaunch, F::NodeGap]),
    run("host", 10, &[F::HostContention, F::Gil, F::SlowLaunch, F::Profiler]),
    run("pauses", 11, &[F::Gc, F::Stalls, F::ShortWarmup]),
    run("scheduler", 12, &[F::Scheduling, F::Preemption, F::LowAcceptance]),
    run("load", 13, &[F::LoadLimited]),
    run("streams", 14, &[F::SerialStreams]),
    run("collectives", 15, &[F::ExtraCollective, F::CollectiveHost, F::SlowCollective]),
    run("bandwidth", 16, &[F::LowBandwidth, F::WrongAlgorithm, F::NoOverlap, F::KvTransfer]),
    run("straggler", 17, &[F::HostStraggler, F::RankGc, F::RankScheduling]),
    run("slow-rank", 18, &[F::ThrottledRank, F::SlowLink]),
    run("rank-noise", 19, &[F::RankNoise]),
    run("expert-ranks", 20, &[F::MoeImbalance, F::BatchMismatch]),
];

impl Run {
    fn config(&self) -> Config {
        let faults: Vec<Fault> =
            self.faults.iter().map(|kind| Fault { kind: *kind, magnitude_permille: 1000 }).collect();
        let drawn = Config::draw_with(self.seed, &faults);
        let (layers, steps) = (drawn.layers.min(16), drawn.steps.min(48));
        Config { layers, steps, graph_level_trace: false, record_shapes: true, ..drawn }
    }

    fn report(&self, directory: &Path) -> String {
        simulate_job(&self.config()).write_kineto(&directory.join(self.name)).unwrap();
        report(directory, self.name, &[])
    }
}

#[test]
fn reports_on_simulated_faults_are_as_accepted() {
    let directory = tempfile::tempdir().unwrap();
    all_hold(RUNS.iter().map(|run| held_against(&format!("{}.md", run.name), &run.report(directory.path()))));
}
