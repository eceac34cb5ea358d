//! What must hold of every run: the truth sums exactly, runs repeat, twins share their randomness, faults slow the step.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use simulator::{Config, Fault, FaultKind, MAGNITUDES, config::Mode, simulate, simulate_job};

fn check(config: &Config) {
    let run = simulate(config);
    let bounds = run.bounds();
    assert!(bounds.windows(2).all(|b| b[0] < b[1]), "windows tile in order: {}", config.seed);
    let truth = run.truth();
    assert_eq!(truth.steps.len() as i64, config.warmup_steps + config.steps);
    for step in &truth.steps {
        assert_eq!(
            step.buckets.values().sum::<i64>(),
            step.end - step.start,
            "step {} seed {}",
            step.index,
            config.seed
        );
    }
    let sum: i64 = truth.steps.iter().map(|step| step.end - step.start).sum();
    assert_eq!(sum, truth.total_ns);
    for op in &run.ops {
        let call = &run.host[op.call];
        assert!(op.start >= call.start, "an operation starts after its launch began");
        assert!(op.end > op.start);
    }
    // Streams are in order and the host does one thing at a time.
    for stream in 0..3 {
        let ops: Vec<_> = run.ops.iter().filter(|op| op.stream == stream).collect();
        assert!(ops.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
    let calls: Vec<_> = run.host.iter().filter(|e| e.kind.is_api()).collect();
    assert!(calls.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

#[test]
fn buckets_sum_exactly_for_two_hundred_configurations() {
    for seed in 0..200 {
        check(&Config { steps: 12, ..Config::draw(seed) });
    }
}

#[test]
fn buckets_sum_exactly_with_every_fault() {
    for (seed, &kind) in (1000..).zip(FaultKind::ALL) {
        for magnitude_permille in MAGNITUDES {
            let drawn = Config::draw_faulty(seed, Fault { kind, magnitude_permille });
            check(&Config { steps: 10, layers: drawn.layers.min(6), ..drawn });
        }
    }
}

#[test]
fn the_same_configuration_gives_the_same_run() {
    for seed in 0..5 {
        let config = Config::draw(seed);
        assert_eq!(format!("{:?}", simulate(&config)), format!("{:?}", simulate(&config)));
    }
    let median = |seed| simulate(&Config::draw(seed)).truth().median_decode_ns;
    assert_ne!(median(1), median(2));
}

#[test]
fn a_fault_of_no_size_changes_nothing() {
    for (seed, &kind) in (50..).zip(FaultKind::ALL) {
        // These change how work is issued or how often the profiler flushes, whatever their size.
        if matches!(
            kind,
            FaultKind::GraphOff
                | FaultKind::ManyPieces
                | FaultKind::Profiler
                | FaultKind::FullSort
                | FaultKind::Unfused
                | FaultKind::Upcast
        ) {
            continue;
        }
        let config = Config::draw_faulty(seed, Fault { kind, magnitude_permille: 0 });
        let config = Config { layers: config.layers.min(6), ..config };
        let ops = |config: &Config| {
            simulate_job(config).ranks.into_iter().map(|run| format!("{:?}", run.ops)).collect::<Vec<_>>()
        };
        assert!(ops(&config) == ops(&config.twin()), "{kind:?}");
    }
}

#[test]
fn a_fault_slows_the_step_and_more_of_it_slows_it_more() {
    for &kind in FaultKind::ALL {
        for seed in 300..302 {
            let truth = |magnitude_permille| {
                let config = Config::draw_faulty(seed, Fault { kind, magnitude_permille });
                simulate(&Config { layers: config.layers.min(10), steps: config.steps.min(24), ..config }).truth()
            };
            let (small, large) = (truth(350), truth(2000));
            let twin = large.faults.first().unwrap();
            assert!(
                twin.twin_mean_decode_ns < large.mean_decode_ns,
                "{kind:?} seed {seed}: {} < {}",
                twin.twin_mean_decode_ns,
                large.mean_decode_ns
            );
            assert!(small.mean_decode_ns <= large.mean_decode_ns, "{kind:?} seed {seed}");
        }
    }
}

#[test]
fn a_fault_goes_to_the_bucket_it_is_made_of() {
    let share = |kind, bucket: &str| {
        let config = Config::draw_faulty(77, Fault { kind, magnitude_permille: 1000 });
        let of = |config: &Config| simulate(config).truth().decode_buckets.get(bucket).copied().unwrap_or(0);
        (of(&config.twin()), of(&config))
    };
    for (kind, bucket) in [
        (FaultKind::NodeGap, "rt.graph_internal"),
        (FaultKind::AllocStall, "rt.alloc"),
        (FaultKind::Recompile, "rt.compile"),
        (FaultKind::Transposes, "compute.format"),
        (FaultKind::FullSort, "compute.sample"),
        (FaultKind::Unfused, "compute.elementwise"),
        (FaultKind::ExtraCollective, "comm.transfer"),
        (FaultKind::PageableCopy, "copy.h2d"),
        (FaultKind::Scheduling, "rt.host"),
        (FaultKind::ManyPieces, "rt.graph_launch"),
        (FaultKind::LayerSync, "rt.sync_tail"),
        (FaultKind::Profiler, "prof"),
    ] {
        let (without, with) = share(kind, bucket);
        assert!(with > without, "{kind:?}: {bucket} {without} -> {with}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_seed_sums_exactly(seed in any::<u64>()) {
        check(&Config { steps: 6, layers: 5, ..Config::draw(seed) });
    }
}

#[test]
fn the_launch_queue_never_holds_more_than_its_limit() {
    let roomy = Config {
        mode: Mode::Eager,
        async_scheduling: true,
        steps: 6,
        framework_ns: 10,
        launch_ns: 500,
        ..Config::draw(9)
    };
    let deepest = |queue_limit| {
        let run = simulate(&Config { queue_limit, ..roomy.clone() });
        let pending = |at: i64| run.ops.iter().filter(|op| run.host[op.call].end <= at && op.end > at).count();
        run.ops.iter().map(|op| pending(run.host[op.call].end)).max().unwrap()
    };
    assert_eq!(deepest(8), 8);
    assert!(deepest(1024) > 64);
}
