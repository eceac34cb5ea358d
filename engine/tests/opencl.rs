//! The engine on OpenCL devices: the first one that this machine offers, which on a machine without an accelerator is PoCL.
//! Where there is none the tests say so and do nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;

use std::{collections::BTreeMap, sync::Arc};

use engine::{
    Checkpoint, Config, Dtype, Error, KvLayout, Source, Synthetic, Target,
    cpu::{Communicator, Isa, PATIENCE, Region, World},
    opencl::{self, Flavour, OpenClOptions},
    preset,
    program::{Change, Level, OpName},
    record::{Kind, Log, Record},
    run::{Engine, Mode, RunOptions, Sampling, Sync},
};
use golden::{
    Golden, Ran, decoded, greatest_difference, hold_against_transformers, of_golden, options, run, tiny, two_ranks,
};

const FLAVOURS: [Flavour; 2] = [Flavour::Cpu, Flavour::Gpu];

/// The device of the machine. Tests that need it are ignored where nobody asks for them.
fn device(flavour: Flavour) -> Target {
    let found = opencl::devices().unwrap_or_else(|error| panic!("{error}"));
    assert!(!found.is_empty(), "the OpenCL drivers of this machine offer no device");
    Target::OpenCl(OpenClOptions { device: 0, flavour: Some(flavour) })
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints, and an OpenCL device"]
fn logits_and_greedy_tokens_are_those_of_transformers_whatever_the_flavour_level_and_cache() {
    for flavour in FLAVOURS {
        let target = device(flavour);
        for (level, layout, sampling) in [
            (Level::Composite, KvLayout::Contiguous, Sampling::Device),
            (Level::Canonical, KvLayout::Paged(4), Sampling::Host),
            (Level::Fused, KvLayout::Paged(16), Sampling::Device),
        ] {
            let target = target.clone();
            hold_against_transformers(&RunOptions { target, level, layout, sampling, ..RunOptions::default() });
        }
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn a_device_computes_what_the_cpu_does_for_every_type_of_weights_and_every_operator() {
    for flavour in FLAVOURS {
        let target = device(flavour);
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8] {
            for level in [Level::Composite, Level::Fused] {
                let changes = vec![Change::CastBefore(OpName::DownProj)];
                // Kernels that round activations of some types would differ by that.
                let isa = Isa::available().into_iter().find(|isa| !isa.rounds(dtype)).unwrap();
                let of = |target| RunOptions { dtype, level, isa, changes: changes.clone(), ..options(target) };
                let (expected, wanted) = run(&of(Target::Cpu), &mut Log::off());
                let (logits, tokens) = run(&of(target.clone()), &mut Log::off());
                let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
                let difference = greatest_difference(&logits, &expected) / most;
                println!("{flavour:?} {dtype:?} {level:?}: {difference:e}");
                // The CPU rounds the activations of 8-bit products too, so both differ by more than the order of sums.
                let tolerance = if dtype == Dtype::Q8 { 1e-3 } else { 1e-4 };
                assert!(difference <= tolerance, "{flavour:?} {dtype:?} {level:?}: {difference}");
                assert!(dtype == Dtype::Q8 || tokens == wanted, "{flavour:?} {dtype:?} {level:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn every_command_has_four_stamps_in_order_within_its_step() {
    for flavour in FLAVOURS {
        let target = device(flavour);
        for sync in [Sync::PerStep, Sync::PerOp] {
            let options = RunOptions { sync, ..options(target.clone()) };
            let mut log = Log::with_capacity(4096, options.workers());
            run(&options, &mut log);
            assert_eq!((log.dropped, log.unread), (0, 0));
            let uncertainty = log.uncertainty.unwrap();
            println!("{flavour:?} {sync:?}: the clocks agree within {uncertainty} ns");
            let built = log.records().iter().filter(|r| matches!(r.kind, Kind::Compile(_))).count();
            assert_eq!(built, 6, "a compilation for every family of kernels");
            for number in 0..=4 {
                let of_step: Vec<_> = log.records().iter().filter(|r| r.step == number).collect();
                let step = of_step.iter().find(|r| r.kind == Kind::Step).unwrap().host;
                let commands: Vec<_> = of_step.iter().filter(|r| r.submit.is_some()).collect();
                let ops = commands.iter().filter(|r| matches!(r.kind, Kind::Op(_))).count();
                // Two norms of heads are operators of their own.
                assert_eq!((ops, commands.len()), (2 * 17 + 5, 2 * 17 + 5 + 2));
                for command in &commands {
                    let submit = command.submit.unwrap();
                    assert!(submit.start <= submit.end && submit.end <= command.device.start);
                    assert!(command.device.start <= command.device.end);
                    // Each stamp is as far off as the clocks may be.
                    assert!(command.host.start - uncertainty <= submit.start);
                    assert!(submit.start <= command.host.end + uncertainty);
                    assert!(step.start - uncertainty <= submit.start && command.device.end <= step.end + uncertainty);
                }
                assert!(commands.windows(2).all(|pair| pair[0].device.end <= pair[1].device.start), "one at a time");
                let waits = of_step.iter().filter(|r| r.kind == Kind::Sync).count();
                assert_eq!(waits, if sync == Sync::PerOp { ops } else { 1 });
            }
        }
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn faults_of_numbers_and_host_show_and_those_of_the_cpu_are_refused() {
    let target = device(Flavour::Cpu);
    let clean = run(&options(target.clone()), &mut Log::off());
    let injected = |text: &str| {
        let mut options = options(target.clone());
        engine::inject::inject(text, &mut options).unwrap();
        options
    };
    for text in ["host_delay:us=20", "alloc_per_op:kib=4", "blocking_copy:mib=1", "extra_sync:every=layer", "unfuse"] {
        assert_eq!(run(&injected(text), &mut Log::off()).1, clean.1, "{text}");
    }
    for text in ["stale_kv", "rope_base_wrong"] {
        assert!(greatest_difference(&run(&injected(text), &mut Log::off()).0, &clean.0) > 1e-3, "{text}");
    }
    assert!(run(&injected("nan_at"), &mut Log::off()).0.iter().any(|logit| logit.is_nan()));
    for (text, said) in [("cpu_fallback:op=rms_norm", "op=silu_mul"), ("bf16_accum", "'bf16_accum'")] {
        let refused = Engine::new(tiny(), &mut Synthetic, injected(text), &mut Log::off());
        assert!(refused.err().unwrap().to_string().contains(said), "{text}");
    }
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn an_operator_on_the_host_is_two_copies_and_a_wait_and_the_same_numbers() {
    let target = device(Flavour::Cpu);
    let (clean, tokens) = run(&options(target.clone()), &mut Log::off());
    let mut fallback = options(target);
    engine::inject::inject("cpu_fallback", &mut fallback).unwrap();
    let mut log = Log::with_capacity(4096, 0);
    let (logits, same) = run(&fallback, &mut log);
    assert_eq!(same, tokens);
    assert!(greatest_difference(&logits, &clean) <= 1e-4);
    // Of the last step: a copy there and back and a computation in each of two layers, beside the step's own copies.
    let of = |kind: fn(&Kind) -> bool| log.records().iter().filter(|r| r.step == 4 && kind(&r.kind)).count();
    assert_eq!(of(|kind| matches!(kind, Kind::Fallback(_))), 2);
    assert_eq!(of(|kind| matches!(kind, Kind::Read(_))), 2 + 1);
    assert_eq!(of(|kind| matches!(kind, Kind::Write(_))), 2 + 1);
    assert_eq!(log.unread, 0);
}

/// What two ranks in threads gave, on a device of two cores or more.
fn divided(
    config: &Config,
    source: &(dyn Fn() -> Box<dyn Source> + std::marker::Sync),
    options: &RunOptions,
) -> Vec<Ran> {
    two_ranks(config, source, options).into_iter().map(|rank| rank.unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints, and an OpenCL device"]
fn two_ranks_on_parts_of_a_device_have_the_numbers_of_one() {
    for golden in Golden::all() {
        // Key heads of some reference models cannot be split.
        if !golden.config.kv_heads.is_multiple_of(2) {
            continue;
        }
        for flavour in FLAVOURS {
            let target = device(flavour);
            for (level, layout) in [(Level::Canonical, KvLayout::Contiguous), (Level::Fused, KvLayout::Paged(4))] {
                let options =
                    RunOptions { target: target.clone(), dtype: Dtype::F32, level, layout, ..RunOptions::default() };
                let (alone, tokens) = decoded(&golden, options.clone());
                let options = of_golden(&golden, options);
                let source = || -> Box<dyn Source> { Box::new(Checkpoint::open(&golden.directory).unwrap()) };
                let ranks = divided(&golden.config, &source, &options);
                for (logits, generated, _) in ranks {
                    let difference = greatest_difference(&logits, &alone);
                    println!("{:?} {flavour:?} {level:?}, two ranks: {difference:e}", golden.config.family);
                    assert!(difference <= 1e-4, "{:?} {flavour:?} {level:?}: {difference}", golden.config.family);
                    let generated: Vec<u32> =
                        golden.ids.iter().copied().chain(generated.into_iter().flatten()).collect();
                    assert_eq!(generated, tokens, "{:?} {flavour:?} {level:?}", golden.config.family);
                }
            }
        }
    }
}

/// Time of the operators of a rank that are its own, or of those that ranks do together. Of its own each counts with the
/// shortest of all decode steps, so that it does not count when others had the core; what is waited for with the median, because
/// whoever comes late for once waits for nobody.
fn time_of(log: &Log, together: bool) -> i64 {
    let mut times: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for record in log.records().iter().filter(|record| record.step > 1) {
        let Kind::Op(op) = record.kind else { continue };
        if record.submit.is_none() == together {
            times.entry(op).or_default().push(record.device.end - record.device.start);
        }
    }
    times.values_mut().for_each(|times| times.sort_unstable());
    times.values().map(|times| times[if together { times.len() / 2 } else { 0 }]).sum()
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn collectives_lie_between_their_copies_and_a_slow_rank_is_waited_for() {
    let target = device(Flavour::Cpu);
    let config = Config { hidden: 256, intermediate: 1024, ..preset("tiny").unwrap() };
    let options = RunOptions { batch: 1, steps: 40, dtype: Dtype::F32, ..options(target) };
    let mut slow = options.clone();
    // Far more than what a launch costs beside its work, and what a machine with other programs adds to either rank.
    engine::inject::inject("slow_rank:rank=1,factor=32", &mut slow).unwrap();
    let source = || -> Box<dyn Source> { Box::new(Synthetic) };
    let even = divided(&config, &source, &options);
    let uneven = divided(&config, &source, &slow);
    assert_eq!(even[0].1, uneven[0].1, "work that is done again changes nothing");
    for (_, tokens, log) in even.iter().chain(&uneven) {
        assert_eq!((tokens, log.dropped, log.unread), (&even[0].1, 0, 0));
        // Embedding, two layers of two, and the head.
        let exchanges: Vec<&Record> = log
            .records()
            .iter()
            .filter(|r| r.step == 5 && r.submit.is_none() && matches!(r.kind, Kind::Op(_)))
            .collect();
        assert_eq!(exchanges.len(), 1 + 2 * 2 + 1);
        let queue: Vec<&Record> = log.records().iter().filter(|r| r.step == 5 && r.device.end > 0).collect();
        assert!(queue.windows(2).all(|pair| pair[0].device.end <= pair[1].device.start), "one at a time");
    }
    // What rank 1 works longer, rank 0 waits longer in collectives.
    let (worked, exchanged) = (|log: &Log| time_of(log, false), |log: &Log| time_of(log, true));
    let [(_, _, first), (_, _, second)] = &uneven[..] else { panic!("two ranks") };
    println!(
        "worked {} and {}, exchanged {} and {}",
        worked(first),
        worked(second),
        exchanged(first),
        exchanged(second)
    );
    assert!(worked(second) > 2 * worked(first), "{} {}", worked(second), worked(first));
    assert!(exchanged(first) > exchanged(second), "{} {}", exchanged(first), exchanged(second));
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn several_ranks_are_refused_what_they_cannot_do() {
    let target = device(Flavour::Cpu);
    let units = opencl::devices().unwrap()[0].units as usize;
    let graph = RunOptions { mode: Mode::Graph, ..options(target.clone()) };
    let refused = |options: &RunOptions, of: usize, workers: usize| {
        let region = Arc::new(Region::of_threads(World { ranks: of, workers, slot: 1 << 16 }).unwrap());
        let ranks = Communicator::new(region, 0, PATIENCE).unwrap();
        let config = Config { heads: 64, kv_heads: 64, head_dim: 4, intermediate: 1024, ..preset("tiny").unwrap() };
        let made = Engine::of_rank(config, &mut Synthetic, options.clone(), Some(ranks), &mut Log::off());
        made.err().unwrap().to_string()
    };
    if units >= 2 {
        assert!(refused(&graph, 2, 1).contains("leave --mode out"));
        assert!(refused(&options(target.clone()), 2, 2).contains("one worker each"));
    }
    let of = (units + 1).next_power_of_two();
    let said = refused(&options(target), of, 1);
    assert!(said.contains("cannot be divided") && said.contains("choose fewer ranks"), "{said}");
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn what_a_device_has_not_is_named() {
    device(Flavour::Cpu);
    let refused = |options: RunOptions| Engine::new(tiny(), &mut Synthetic, options, &mut Log::off()).err().unwrap();
    let none = Target::OpenCl(OpenClOptions { device: 99, flavour: None });
    let error = refused(options(none));
    assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("no OpenCL device 99"), "{error}");
}

#[test]
#[ignore = "needs an OpenCL device, such as that of PoCL"]
fn a_step_that_is_one_command_gives_the_same_tokens_and_lasts_from_copy_to_copy() {
    for flavour in FLAVOURS {
        let target = device(flavour);
        let graph = |sampling| RunOptions { mode: Mode::Graph, sampling, ..options(target.clone()) };
        if !opencl::devices().unwrap()[0].has_command_buffers() {
            let refused = Engine::new(tiny(), &mut Synthetic, graph(Sampling::Device), &mut Log::off()).err().unwrap();
            assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
            assert!(refused.to_string().contains("cl_khr_command_buffer"), "{refused}");
            return;
        }
        let expected = run(&options(target.clone()), &mut Log::off()).1;
        let mut delayed = graph(Sampling::Device);
        engine::inject::inject("host_delay:us=3000", &mut delayed).unwrap();
        for options in [graph(Sampling::Device), graph(Sampling::Host), delayed] {
            let mut log = Log::with_capacity(4096, 0);
            assert_eq!(run(&options, &mut log).1, expected, "{flavour:?} {options:?}");
            let of = |kind| log.records().iter().filter(move |record| record.kind == kind);
            assert_eq!((of(Kind::Capture).count(), of(Kind::Replay).count(), log.unread), (1, 4, 0));
            let uncertainty = log.uncertainty.unwrap();
            for replay in of(Kind::Replay) {
                let step = of(Kind::Step).find(|step| step.step == replay.step).unwrap().host;
                // A host that is late with its call, as one with a delay is, makes no work for the device.
                assert!(replay.host.start <= replay.device.start + uncertainty, "{replay:?}");
                assert!(step.start <= replay.device.start + uncertainty && replay.device.end <= step.end + uncertainty);
                // A step of forty operators is not over in the microsecond that some drivers say.
                assert!(replay.device.end - replay.device.start > 10_000, "{replay:?}");
            }
        }
    }
}
