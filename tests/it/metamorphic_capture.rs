//! What must not change when the same run is captured in another way: under another vendor's names, in another format, its
//! ranks in another order or one of them twice. `metamorphic.rs` lists all invariants.

use crate::common;
use crate::common::{analyze, essence, found_in};
use diagnosis::{analysis::Layer, diagnose::Verdict};
use model::{CounterTrack, Ns, ProcessId, Slice, Trace, TraceBuilder, TraceSink};
use simulator::{Config, Fault, FaultKind, kernel::Vendor, simulate, simulate_job};

/// Faults of each layer that the traces of one rank show.
const FAULTS: [FaultKind; 5] =
    [FaultKind::GraphOff, FaultKind::LayerSync, FaultKind::Unfused, FaultKind::FullSort, FaultKind::PageableCopy];
const SEEDS: u64 = 2;

/// Runs of one rank with one fault each.
fn faulty() -> impl Iterator<Item = (String, Config)> {
    let of_kind = |kind: FaultKind| {
        (0..SEEDS).map(move |seed| {
            let drawn = Config::draw_with(seed, &[Fault { kind, magnitude_permille: 1000 }]);
            let config = Config { graph_level_trace: false, tensor_parallel: 1, ..drawn };
            (format!("{kind:?} seed {seed}"), config)
        })
    };
    FAULTS.into_iter().flat_map(of_kind)
}

/// The capture of a run as Kineto writes it.
fn captured(config: &Config) -> Trace {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.json");
    simulate(config).write_kineto(&path).unwrap();
    common::read(&path)
}

/// The capture of a job as Nsight Systems exports it.
fn exported(config: &Config) -> Trace {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.sqlite");
    simulate_job(config).write_nsys(&path).unwrap();
    common::read(&path)
}

fn verdict(trace: &Trace) -> Verdict {
    found_in(trace).verdict
}

/// The capture with `processes` in the place of its own, each a copy of one of them under a rank of its own.
fn recast(trace: &Trace, processes: &[(usize, Option<u32>)]) -> Trace {
    let mut b = TraceBuilder::new(&*trace.source, &*trace.format);
    // The same texts in the same order get the same ids, so that details stay valid.
    for (_, text) in trace.strings.iter() {
        b.intern(text);
    }
    let mut counters: Vec<CounterTrack> = Vec::new();
    for (i, (source, rank)) in processes.iter().enumerate() {
        let (of, into) = (ProcessId(u32::try_from(*source).unwrap()), b.process(i as u64));
        let process = &trace.processes[*source];
        b.describe_process(into, process.pid, process.name.map(|n| trace.strings.get(n)), *rank);
        for device in trace.devices.iter().filter(|d| d.process == of) {
            b.device(model::Device { process: into, ..device.clone() });
        }
        for (track, lane) in trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.process == of) {
            let track = b.track(model::TrackKey { process: into, ..track.key });
            for row in 0..lane.len() {
                let correlation = lane.correlation[row];
                b.slice(Slice {
                    track,
                    start: lane.start[row],
                    dur: lane.dur[row],
                    name: lane.name[row],
                    category: lane.category[row],
                    correlation: (correlation != model::trace::NO_CORRELATION).then_some(correlation),
                    detail: trace.detail(lane, row),
                });
            }
        }
        let own = trace.counters.iter().filter(|counter| counter.process == of);
        counters.extend(own.map(|counter| CounterTrack { process: into, ..counter.clone() }));
    }
    b.clock(model::Clock::AsIs { unix_zero: trace.start_unix_ns });
    let mut recast = b.finish();
    recast.counters = counters.into();
    recast
}

#[test]
fn the_names_of_another_vendor_leave_the_verdict_as_it_is() {
    for (name, config) in faulty() {
        let of = |vendor: Vendor| verdict(&captured(&Config { vendor, ..config.clone() }));
        let (cuda, rocm) = (of(Vendor::Cuda), of(Vendor::Rocm));
        assert_eq!(rocm.layer, cuda.layer, "{name}: {rocm:?}");
    }
}

#[test]
fn two_formats_of_one_run_have_the_same_layers() {
    for seed in 0..4 {
        let config = Config { vendor: Vendor::Cuda, graph_level_trace: false, ..Config::draw(seed) };
        let shares = |trace: &Trace| {
            let analysis = analyze(trace);
            let class = analysis.ranks.first().and_then(|rank| rank.main_class()).unwrap();
            Layer::ALL.map(|layer| class.share(|bucket| bucket.layer() == layer))
        };
        let (kineto, nsys) = (shares(&captured(&config)), shares(&exported(&config)));
        let close = kineto.iter().zip(nsys).all(|(a, b)| (a - b).abs() < 0.01);
        assert!(close, "seed {seed}: {kineto:?} and {nsys:?}");
    }
}

/// A job of two ranks of which one is late.
fn straggling(seed: u64) -> Trace {
    let fault = Fault { kind: FaultKind::HostStraggler, magnitude_permille: 1000 };
    let drawn = Config::draw_with(seed, &[fault]).gathered(2);
    exported(&Config { vendor: Vendor::Cuda, graph_level_trace: false, ..drawn })
}

#[test]
fn the_order_in_which_ranks_are_read_changes_nothing() {
    for seed in 0..4 {
        let trace = straggling(seed);
        let by_rank = |trace: &Trace| {
            let analysis = analyze(trace);
            let mut ranks: Vec<_> = analysis.ranks.iter().map(|r| r.rank).zip(essence(&analysis)).collect();
            ranks.sort_by_key(|(rank, _)| *rank);
            ranks
        };
        // The export does not number its ranks, so that their order would.
        let (trace, reversed) =
            (recast(&trace, &[(0, Some(0)), (1, Some(1))]), recast(&trace, &[(1, Some(1)), (0, Some(0))]));
        assert_eq!(by_rank(&trace).len(), 2, "seed {seed}");
        assert_eq!(by_rank(&reversed), by_rank(&trace), "seed {seed}");
        let (before, after) = (verdict(&trace), verdict(&reversed));
        assert_eq!((after.layer, after.because), (before.layer, before.because), "seed {seed}");
    }
}

#[test]
fn identical_ranks_change_nothing() {
    for (name, config) in faulty() {
        let trace = captured(&config);
        let twice = recast(&trace, &[(0, Some(0)), (0, Some(1))]);
        let (alone, both) = (essence(&analyze(&trace)), essence(&analyze(&twice)));
        assert_eq!(both, [alone.clone(), alone].concat(), "{name}");
        let (before, after) = (verdict(&trace), verdict(&twice));
        assert_eq!((after.layer, after.because), (before.layer, before.because), "{name}");
    }
}

#[test]
fn waits_are_explained_to_two_nanoseconds() {
    for seed in 0..4 {
        let job = analyze(&straggling(seed)).job;
        let explained = job.waits.iter().filter(|wait| !wait.causes.is_empty());
        let left: Vec<Ns> = explained.map(|wait| wait.skew.abs()).collect();
        assert!(left.iter().max().is_some_and(|most| *most <= 2), "seed {seed}: {:?}", left.iter().max());
    }
}
