//! What must hold of every fault and control: it changes the run where it should, alone and beside another.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use simulator::{
    Config, Control, Fault, FaultKind, Layer, MAGNITUDES,
    record::{HostKind, Work},
    simulate, simulate_job,
};

fn fault(kind: FaultKind) -> Fault {
    Fault { kind, magnitude_permille: 1000 }
}

/// A faulty configuration that is quick to run.
fn short(seed: u64, kind: FaultKind, magnitude_permille: i64) -> Config {
    let config = Config::draw_faulty(seed, Fault { kind, magnitude_permille });
    Config { steps: config.steps.min(24), layers: config.layers.min(8), ..config }
}

#[test]
fn every_fault_changes_the_run_and_its_twin_is_the_healthy_one() {
    for (seed, &kind) in (400..).zip(FaultKind::ALL) {
        for magnitude_permille in MAGNITUDES {
            let config = short(seed, kind, magnitude_permille);
            let ops = |config: &Config| {
                let job = simulate_job(config);
                job.ranks.into_iter().flat_map(|run| run.ops).map(|op| (op.slot, op.start, op.end)).collect::<Vec<_>>()
            };
            assert!(ops(&config) != ops(&config.twin()), "{kind:?} {magnitude_permille}");
            assert_eq!(config.twin(), config.without(kind));
        }
    }
}

#[test]
fn the_culprit_is_a_rank_of_the_job_and_only_of_faults_that_have_one() {
    for &kind in FaultKind::ALL {
        let mut named = [false; 4];
        for seed in 0..24 {
            let config = Config::draw_faulty(seed, fault(kind));
            match config.culprit(kind) {
                Some(rank) => named[rank] = config.ranks == 4,
                None => assert!(!kind.of_one_rank(), "{kind:?}"),
            }
        }
        assert_eq!(named, [kind.of_one_rank(); 4], "{kind:?}: any rank may be it");
    }
}

#[test]
fn faults_of_one_rank_make_that_rank_the_late_one() {
    for &kind in FaultKind::ALL.iter().filter(|kind| kind.of_one_rank()) {
        for seed in 30..32 {
            let config = short(seed, kind, 1000);
            let culprit = config.culprit(kind).unwrap();
            let caused = |config: &Config| -> i64 {
                let told = simulate_job(config).collectives();
                let late = told.iter().filter(|told| told.step >= config.warmup_steps && told.late == culprit);
                late.map(|told| told.wait_ns.iter().sum::<i64>()).sum()
            };
            let (with, without) = (caused(&config), caused(&config.twin()));
            assert!(with > 3 * without, "{kind:?} seed {seed}: {without} -> {with}");
        }
    }
}

#[test]
fn two_faults_share_a_run_and_either_can_be_taken_away() {
    use FaultKind as F;
    for (seed, pair) in (60..).zip([
        [F::Scheduling, F::FullSort],
        [F::HostStraggler, F::Transposes],
        [F::AllocStall, F::ExtraFills],
        [F::SlowLink, F::HostUpdate],
    ]) {
        let config = Config::draw_with(seed, &pair.map(fault));
        let config = Config { steps: 16, layers: config.layers.min(12), ..config };
        let truth = simulate(&config).truth();
        assert_eq!(truth.faults.iter().map(|fault| fault.kind).collect::<Vec<_>>(), pair);
        let healthy = simulate(&config.twin()).truth().mean_decode_ns;
        for told in &truth.faults {
            assert!(told.twin_mean_decode_ns < truth.mean_decode_ns, "{pair:?} without {:?}", told.kind);
            assert!(healthy < told.twin_mean_decode_ns, "{pair:?}: the other one still slows it");
        }
    }
}

#[test]
fn controls_are_healthy_and_look_as_they_should() {
    for seed in 0..4 {
        let run = |control| simulate(&Config { steps: 12, ..Config::draw_control(seed, control) });
        for control in Control::ALL {
            assert!(run(control).config.faults.is_empty());
        }
        let busy = |control| {
            let truth = run(control).truth();
            let idle = truth.decode_buckets.iter().filter(|(bucket, _)| bucket.starts_with("rt."));
            1000 - idle.map(|(_, ns)| ns).sum::<i64>() * 1000 / truth.decode_buckets.values().sum::<i64>()
        };
        assert!(busy(Control::LongContext) > 900, "seed {seed}: {}", busy(Control::LongContext));
        let harmless = run(Control::HarmlessSync);
        let syncs = harmless.host.iter().filter(|event| matches!(event.kind, HostKind::Sync(_))).count() as i64;
        assert!(syncs >= 3 * (harmless.config.steps + harmless.config.warmup_steps));
        let gain = {
            let without = simulate(&Config { idle_syncs: 0, ..harmless.config.clone() }).truth().mean_decode_ns;
            (harmless.truth().mean_decode_ns - without) * 1000 / without
        };
        assert!(gain < 40, "seed {seed}: {gain}");
        let low = run(Control::LowOccupancy);
        let attention = low.ops.iter().filter(|op| op.work == Work::Compute(simulator::kernel::Class::Attention));
        assert!(attention.clone().count() > 0 && attention.into_iter().all(|op| op.blocks < 66));
    }
}

#[test]
fn the_engine_counts_what_it_does() {
    let last = |kind, name: &str| {
        let run = simulate(&Config { steps: 60, layers: 4, ..Config::draw_faulty(11, fault(kind)) });
        run.counters.iter().filter(|counter| counter.name == name).map(|counter| counter.value).next_back().unwrap()
    };
    assert!(last(FaultKind::Preemption, "num_preemptions") > 0.0);
    assert!(last(FaultKind::Preemption, "kv_cache_usage") > 0.95);
    let (drafted, accepted) =
        (last(FaultKind::LowAcceptance, "spec_draft_tokens"), last(FaultKind::LowAcceptance, "spec_accepted_tokens"));
    assert!(accepted < 0.2 * drafted, "{accepted} of {drafted}");
    assert!(last(FaultKind::MoePadding, "moe_padded_tokens") > 1.5 * last(FaultKind::MoePadding, "moe_tokens"));
    assert!(
        last(FaultKind::PaddedGraph, "num_padded_tokens") > 1.5 * last(FaultKind::PaddedGraph, "num_scheduled_tokens")
    );
    let idle = simulate(&Config { steps: 40, layers: 4, ..Config::draw_faulty(11, fault(FaultKind::LoadLimited)) });
    assert!(idle.counters.iter().any(|counter| counter.name == "num_requests_running" && counter.value == 0.0));
    assert_eq!(FaultKind::LoadLimited.layer(), Layer::LoadLimited);
}
