//! What must hold of every run that serves: it adds up, its batch changes where requests come and go, its grids follow
//! from its shapes, and what a fault costs is the difference of two runs.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeSet, fs};

use simulator::{
    Config, Fault, FaultKind, Load, Run, Strength,
    kernel::Slot,
    record::{DeviceOp, Work},
    simulate, simulate_job,
};

fn fault(kind: FaultKind) -> Fault {
    Fault { kind, magnitude_permille: 1000 }
}

fn short(seed: u64, load: Load, churn: bool, faults: &[Fault]) -> Config {
    let config = Config::serve(seed, load, churn, faults);
    Config { steps: 16, layers: config.layers.min(6), ..config }
}

fn blocks(run: &Run, slot: Slot, step: i64) -> BTreeSet<i64> {
    let of = |op: &&DeviceOp| op.slot == Some(slot) && op.step == step;
    run.ops.iter().filter(of).map(|op| op.blocks).collect()
}

#[test]
fn there_are_twenty_kinds_and_each_adds_up_and_gives_the_same_run_again() {
    assert!(Load::ALL.len() >= 20);
    for (seed, load) in (100..).zip(Load::ALL) {
        for churn in [false, true] {
            let config = short(seed, *load, churn, &[]);
            let job = simulate_job(&config);
            for truth in job.truth().ranks {
                for step in &truth.steps {
                    assert_eq!(
                        step.buckets.values().sum::<i64>(),
                        step.end - step.start,
                        "{load:?} step {}",
                        step.index
                    );
                }
            }
            assert_eq!(format!("{:?}", job.ranks), format!("{:?}", simulate_job(&config).ranks), "{load:?}");
            let other = simulate(&short(seed + 1000, *load, churn, &[]));
            assert_ne!(format!("{:?}", job.ranks[0].ops), format!("{:?}", other.ops), "{load:?}");
        }
    }
}

#[test]
fn the_batch_changes_with_churn_only() {
    for load in [Load::Dozens, Load::FastChurn, Load::TensorTwo, Load::ChunkedPrefill, Load::PrefillSteps] {
        let batches = |churn| {
            let config = Config { layers: 2, ..Config::serve(9, load, churn, &[]) };
            let steps = simulate(&config).truth().steps;
            steps.iter().filter(|step| step.class != "prefill").map(|step| step.batch).collect::<BTreeSet<_>>()
        };
        assert_eq!(batches(false).len(), 1, "{load:?}");
        assert!(batches(true).len() > 1, "{load:?}");
    }
}

#[test]
fn a_fault_changes_no_request() {
    let schedule = |faults: &[Fault]| {
        let config = short(4, Load::Dozens, true, faults);
        let steps = simulate(&config).truth().steps;
        steps.iter().map(|step| (step.class, step.batch)).collect::<Vec<_>>()
    };
    for kind in [FaultKind::Gc, FaultKind::FewBlocks, FaultKind::LowClock] {
        assert_eq!(schedule(&[]), schedule(&[fault(kind)]), "{kind:?}");
    }
}

#[test]
fn grids_follow_shapes() {
    for load in [Load::OddBatch, Load::Many, Load::Single, Load::TensorTwo, Load::Ampere] {
        let run = simulate(&short(6, load, true, &[]));
        for step in run.truth().steps.iter().filter(|step| step.class == "decode") {
            // A replay works on the rows of its graph.
            let graph =
                if step.batch > 8 { (step.batch + 7) / 8 * 8 } else { (step.batch as u64).next_power_of_two() as i64 };
            assert_eq!(blocks(&run, Slot::KvWrite, step.index), [graph].into(), "{load:?}");
            assert_eq!(blocks(&run, Slot::InputNorm, step.index), [graph].into(), "{load:?}");
            // What is sampled is what is there.
            assert_eq!(blocks(&run, Slot::Argmax, step.index), [step.batch].into(), "{load:?}");
        }
    }
    let cores = 132;
    let few = simulate(&short(6, Load::Dozens, false, &[fault(FaultKind::FewBlocks)]));
    let healthy = simulate(&short(6, Load::Dozens, false, &[]));
    let least = |run: &Run| *blocks(run, Slot::Down, 3).first().unwrap();
    assert!(least(&few) * 4 < cores && least(&healthy) * 3 > cores, "{} {}", least(&few), least(&healthy));
}

#[test]
fn attention_grows_as_contexts_do() {
    let config = Config { steps: 60, ..short(8, Load::ShortContext, false, &[]) };
    let run = simulate(&config);
    let attention = |steps: std::ops::Range<i64>| -> i64 {
        let of = |op: &&DeviceOp| op.slot == Some(Slot::Attention) && steps.contains(&op.step);
        run.ops.iter().filter(of).map(|op| op.end - op.start).sum()
    };
    assert!(attention(45..60) > attention(0..15));
}

#[test]
fn what_a_fault_costs_is_the_difference_of_two_runs_and_as_much_as_was_asked() {
    use FaultKind as F;
    let kinds =
        [F::LowBandwidth, F::SlowPeer, F::FewBlocks, F::LowClock, F::LogitsCopy, F::Recapture, F::Recompile, F::Gc]
            .into_iter()
            .chain([F::RankGc, F::Scheduling, F::HostStraggler]);
    for (seed, kind) in (40..).zip(kinds) {
        for (strength, churn) in Strength::ALL.into_iter().zip([true, false, true]) {
            let load = Load::suiting(kind, seed);
            let config = Config { steps: 24, ..Config::serve(seed, load, churn, &[fault(kind)]) };
            let config = config.costing(strength.share(seed));
            let (job, twin) = (simulate_job(&config), simulate_job(&config.without(kind)));
            let truth = job.truth();
            let (mut with, mut without) = (0, 0);
            for (rank, told) in truth.ranks.iter().enumerate() {
                assert_eq!(told.faults[0].twin_mean_decode_ns, twin.ranks[rank].mean_decode_ns(), "{kind:?}");
                with = told.mean_decode_ns.max(with);
                without = told.faults[0].twin_mean_decode_ns.max(without);
            }
            let ((lo, hi), share) = (strength.range(), (with - without) * 1000 / with);
            assert!(lo <= share && share <= hi, "{kind:?} {strength:?} {load:?}: {share}");
        }
    }
}

#[test]
fn a_stage_asks_early_for_what_the_other_sends_and_both_leave_together() {
    let job = simulate_job(&short(12, Load::PipelineTwo, true, &[]));
    let passed =
        |rank: usize| -> Vec<&DeviceOp> { job.ranks[rank].ops.iter().filter(|op| op.peer == Some(1 - rank)).collect() };
    let (first, second) = (passed(0), passed(1));
    assert_eq!(first.len() as i64, 2 * job.config.steps);
    assert_eq!(first.len(), second.len());
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one.end, other.end);
        let sent = |op: &DeviceOp| op.slot == Some(Slot::Send);
        assert_ne!(sent(one), sent(other));
    }
    let waits = |op: &&&DeviceOp| op.slot == Some(Slot::Recv) && 4 * op.work.wait() > 3 * (op.end - op.start);
    assert!(second.iter().filter(waits).count() * 10 > second.len() * 4, "receives mostly wait");
    assert!(job.collectives().is_empty());
}

#[test]
fn two_batches_under_way_keep_both_stages_busy() {
    let busy = |load: Load| {
        let config = Config { steps: 16, ..Config::serve(12, load, false, &[]) };
        let job = simulate_job(&config);
        let ops = |rank: usize| job.ranks[rank].ops.iter().filter(|op| matches!(op.work, Work::Compute(_)));
        let ns: i64 = (0..2).flat_map(ops).map(|op| op.end - op.start).sum();
        let bounds = job.ranks[0].bounds();
        ns * 1000 / (2 * (bounds.last().unwrap() - bounds[0]))
    };
    let (one, two) = (busy(Load::PipelineTwo), busy(Load::PipelineBusy));
    assert!(one < 550 && two > one + 250, "{one} {two}");
}

#[test]
fn four_stages_hand_on_in_turn_and_the_tokens_close_the_ring() {
    let job = simulate_job(&short(12, Load::PipelineFour, true, &[]));
    for rank in 0..4 {
        let passed = |from: usize, to: usize, slot: Slot| -> Vec<i64> {
            let of = |op: &&DeviceOp| op.slot == Some(slot) && op.peer == Some(to);
            job.ranks[from].ops.iter().filter(of).map(|op| op.end).collect()
        };
        let next = (rank + 1) % 4;
        let (sent, received) = (passed(rank, next, Slot::Send), passed(next, rank, Slot::Recv));
        assert!(sent.len() as i64 == job.config.steps && sent == received, "{rank} to {next}");
    }
}

#[test]
fn all_reduces_of_serving_end_together() {
    let job = simulate_job(&short(13, Load::TensorFour, true, &[]));
    let of = |rank: usize| job.ranks[rank].ops.iter().filter(|op| matches!(op.work, Work::Collective { .. }));
    for rank in 1..4 {
        assert_eq!(of(0).count(), of(rank).count());
        assert!(of(0).zip(of(rank)).all(|(a, b)| a.end == b.end && a.bytes == b.bytes));
    }
}

#[test]
fn captures_of_serving_have_the_names_of_its_stack() {
    let directory = tempfile::tempdir().unwrap();
    let job = simulate_job(&short(14, Load::LongContext, true, &[]));
    let path = &job.write_kineto(directory.path()).unwrap()[0];
    let text = fs::read_to_string(path).unwrap();
    for name in ["nvjet_tst_", "FlashAttnFwdSm90", "FlashAttnFwdCombine", "NVIDIA H100", "reshape_and_cache_flash"] {
        assert!(text.contains(name), "{name}");
    }
    assert!(text.contains("\"stratoSimulated\": true"));
    job.write_nsys(&directory.path().join("run.sqlite")).unwrap();
}

#[test]
fn every_fault_can_be_had_with_churn_and_without() {
    for (seed, kind) in (500..).zip(FaultKind::ALL.iter().chain(FaultKind::OF_SERVING)) {
        for churn in [false, true] {
            let config = short(seed, Load::suiting(*kind, seed), churn, &[fault(*kind)]);
            let config = Config { steps: config.steps.max(24), ..config };
            let ends = |config: &Config| simulate(config).ops.iter().map(|op| (op.start, op.end)).collect::<Vec<_>>();
            assert!(ends(&config) != ends(&config.twin()), "{kind:?} churn {churn}");
        }
    }
}

#[test]
fn keys_are_the_serialised_names() {
    for load in Load::ALL {
        assert_eq!(serde_json::to_value(load).unwrap(), load.key());
    }
    for kind in FaultKind::ALL.iter().chain(FaultKind::OF_SERVING) {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.key());
    }
    for strength in Strength::ALL {
        assert_eq!(serde_json::to_value(strength).unwrap(), strength.key());
    }
}
