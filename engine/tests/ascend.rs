//! The engine on Ascend devices, through the simulated NPU of the crate `sim-npu`: everything but the numbers' place of birth
//! is as on a real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;

use std::{collections::BTreeSet, path::PathBuf};

use engine::{
    Config, Dtype, Error, KvLayout, Synthetic, Target,
    ascend::{self, AscendOptions, AttentionBy},
    preset,
    program::{Change, Level, OpName},
    record::{Kind, Log},
    run::{Engine, Mode, RunOptions, Sampling, Sync},
};
use golden::{
    Golden, TOLERANCE, decoded, greatest_difference, hold_against_transformers, options, run, run_of, tiny, two_ranks,
};

/// The simulator, which Cargo builds beside the tests.
fn simulator() -> PathBuf {
    let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = format!("{}sim_npu{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    [directory.join(&name), directory.parent().unwrap().join(&name)].into_iter().find(|path| path.is_file()).unwrap()
}

fn device() -> AscendOptions {
    AscendOptions { library: Some(simulator()), ..AscendOptions::default() }
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn logits_and_greedy_tokens_are_those_of_transformers_in_single_precision() {
    for (mode, level, reuse, sampling) in [
        (Mode::Eager, Level::Composite, false, Sampling::Device),
        (Mode::Eager, Level::Canonical, true, Sampling::Host),
        (Mode::Graph, Level::Fused, false, Sampling::Device),
        (Mode::Graph, Level::Canonical, true, Sampling::Device),
    ] {
        let target = Target::Ascend(AscendOptions { reuse, ..device() });
        hold_against_transformers(&RunOptions { target, mode, level, sampling, ..RunOptions::default() });
    }
}

/// Weights and activations of 16 bits change a logit by about 2^-8 (or 2^-11) of the size of its terms at every operator; three
/// layers of the tiny models stay within these shares of the greatest logit, found by measuring and doubled.
#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn sixteen_bits_stay_within_their_precision_in_both_formats_of_weights_and_all_ways_of_attention() {
    for golden in Golden::all() {
        let expected = golden.floats("logits");
        let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
        for (dtype, share) in [(Dtype::F16, 0.004), (Dtype::Bf16, 0.03)] {
            for (nz, mode, attention, layout) in [
                (false, Mode::Eager, AttentionBy::Lengths, KvLayout::Contiguous),
                (true, Mode::Eager, AttentionBy::Lengths, KvLayout::Paged(128)),
                (true, Mode::Graph, AttentionBy::Lengths, KvLayout::Contiguous),
                (false, Mode::Graph, AttentionBy::Lengths, KvLayout::Paged(256)),
                (true, Mode::Graph, AttentionBy::Mask, KvLayout::Contiguous),
            ] {
                let target = Target::Ascend(AscendOptions { nz, attention, ..device() });
                let options = RunOptions { target, dtype, mode, layout, level: Level::Fused, ..RunOptions::default() };
                let (logits, _) = decoded(&golden, options);
                let difference = greatest_difference(&logits[..expected.len()], &expected) / most;
                println!("{:?} {dtype:?} nz={nz} {mode:?} {attention:?}: {difference}", golden.config.family);
                assert!(difference <= share && difference > 0.0, "{:?} {dtype:?}: {difference}", golden.config.family);
            }
        }
    }
}

#[test]
fn several_sequences_give_what_the_cpu_gives_whatever_the_level_and_the_waits() {
    for (level, mode, sync) in [
        (Level::Composite, Mode::Eager, Sync::PerOp),
        (Level::Fused, Mode::Eager, Sync::PerLayer),
        (Level::Fused, Mode::Graph, Sync::PerStep),
    ] {
        let changes = vec![Change::CastBefore(OpName::DownProj)];
        let of = |target| RunOptions { level, mode, sync, changes: changes.clone(), ..options(target) };
        let (expected, wanted) = run(&of(Target::Cpu), &mut Log::off());
        let (logits, tokens) = run(&of(Target::Ascend(device())), &mut Log::off());
        let difference = greatest_difference(&logits, &expected);
        assert!(difference <= TOLERANCE, "{level:?} {mode:?}: {difference}");
        assert_eq!(tokens, wanted, "{level:?} {mode:?}");
    }
}

/// Of 16 bits there is no other engine to compare with, but every way must give what the others do to the last bit or nearly.
#[test]
fn every_way_of_sixteen_bits_gives_the_same() {
    let of = |nz, reuse, attention, mode, layout| {
        let target = Target::Ascend(AscendOptions { nz, reuse, attention, ..device() });
        run(&RunOptions { dtype: Dtype::F16, mode, layout, ..options(target) }, &mut Log::off())
    };
    let (expected, wanted) = of(false, false, AttentionBy::Lengths, Mode::Eager, KvLayout::Contiguous);
    for (nz, reuse, attention, mode, layout) in [
        (true, false, AttentionBy::Lengths, Mode::Eager, KvLayout::Contiguous),
        (false, true, AttentionBy::Lengths, Mode::Graph, KvLayout::Paged(128)),
        (true, true, AttentionBy::Mask, Mode::Graph, KvLayout::Contiguous),
    ] {
        let (logits, tokens) = of(nz, reuse, attention, mode, layout);
        let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
        let difference = greatest_difference(&logits, &expected) / most;
        assert!(difference <= 2e-3, "{nz} {attention:?} {mode:?}: {difference}");
        assert_eq!(tokens, wanted, "{nz} {attention:?} {mode:?}");
    }
}

#[test]
fn every_command_lies_on_the_device_in_order_within_its_step() {
    for mode in [Mode::Eager, Mode::Graph] {
        let options = RunOptions { mode, dtype: Dtype::Bf16, ..options(Target::Ascend(device())) };
        let mut log = Log::with_capacity(8192, options.workers());
        run(&options, &mut log);
        assert_eq!((log.dropped, log.unread), (0, 0));
        let uncertainty = log.uncertainty.unwrap();
        println!("{mode:?}: the clocks agree within {uncertainty} ns");
        let of = |kind: fn(&Kind) -> bool| log.records().iter().filter(move |record| kind(&record.kind));
        for number in 0..=4u32 {
            let of_step: Vec<_> = log.records().iter().filter(|record| record.step == number).collect();
            let step = of_step.iter().find(|record| record.kind == Kind::Step).unwrap().host;
            let commands: Vec<_> = of_step
                .iter()
                .filter(|r| matches!(r.kind, Kind::Op(_) | Kind::Write(_) | Kind::Read(_) | Kind::Replay))
                .collect();
            let graph = mode == Mode::Graph && number > 0;
            assert_eq!(commands.len(), if graph { 3 } else { 2 * 17 + 5 + 2 }, "{mode:?} {number}");
            for command in &commands {
                assert!(command.device.start <= command.device.end && command.host.start <= command.host.end);
                assert!(step.start - uncertainty <= command.device.start, "{command:?}");
                assert!(command.device.end <= step.end + uncertainty, "{command:?} {step:?}");
            }
            assert!(commands.windows(2).all(|pair| pair[0].device.end <= pair[1].device.start), "one at a time");
            // Each of two layers' attention gets its lengths.
            let updates = of_step.iter().filter(|r| matches!(r.kind, Kind::Update(_))).count();
            assert_eq!(updates, if graph { 2 } else { 0 });
        }
        assert_eq!(of(|kind| *kind == Kind::Capture).count(), usize::from(mode == Mode::Graph));
    }
}

#[test]
fn two_ranks_with_a_device_each_give_what_one_does() {
    let config = Config { vocab: 302, intermediate: 148, ..tiny() };
    for (mode, level) in [(Mode::Eager, Level::Canonical), (Mode::Graph, Level::Fused)] {
        let options = RunOptions { mode, level, ..options(Target::Ascend(device())) };
        let alone = run_of(config.clone(), &options, &mut Log::off());
        for rank in two_ranks(&config, &|| Box::new(Synthetic), &options) {
            let (logits, tokens, _) = rank.unwrap();
            assert!(greatest_difference(&logits, &alone.0) <= TOLERANCE, "{mode:?} {level:?}");
            assert_eq!(tokens, alone.1, "{mode:?} {level:?}");
        }
    }
}

#[test]
fn what_a_device_cannot_do_is_named_before_anything_runs() {
    type Alter<'c> = &'c dyn Fn(&mut RunOptions, &mut AscendOptions);
    let refused = |change: Alter<'_>| {
        let (mut own, mut options) = (device(), options(Target::Cpu));
        change(&mut options, &mut own);
        options.target = Target::Ascend(own);
        Engine::new(tiny(), &mut Synthetic, options, &mut Log::off()).err().unwrap()
    };
    let cases: [(&str, Alter<'_>); 7] = [
        ("no Ascend device 9", &|_, own| own.device = 9),
        ("8-bit", &|options, _| options.dtype = Dtype::Q8),
        ("16 bits", &|_, own| own.nz = true),
        ("blocks of 128", &|options, _| options.layout = KvLayout::Paged(16)),
        ("single precision", &|options, _| options.layout = KvLayout::Paged(128)),
        ("/nonexistent/libnone.so", &|_, own| own.library = Some("/nonexistent/libnone.so".into())),
        ("bf16_accum", &|options, _| engine::inject::inject("bf16_accum", options).unwrap()),
    ];
    for (words, change) in cases {
        let error = refused(change);
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(matches!(error, Error::Unavailable { .. } | Error::Request(_)), "{error:?}");
    }
    let moe = RunOptions { target: Target::Ascend(device()), dtype: Dtype::Bf16, ..RunOptions::default() };
    let error = Engine::new(preset("tiny-moe").unwrap(), &mut Synthetic, moe, &mut Log::off()).err().unwrap();
    assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("mixtures of experts"), "{error}");
}

#[test]
fn faults_of_host_and_numbers_show() {
    let clean = run(&options(Target::Ascend(device())), &mut Log::off());
    let injected = |text: &str| {
        let mut options = options(Target::Ascend(device()));
        engine::inject::inject(text, &mut options).unwrap();
        run(&options, &mut Log::off())
    };
    for text in ["host_delay:us=20", "alloc_per_op:kib=4", "extra_sync:every=layer", "unfuse"] {
        assert_eq!(injected(text).1, clean.1, "{text}");
    }
    for text in ["stale_kv", "rope_base_wrong"] {
        assert!(greatest_difference(&injected(text).0, &clean.0) > 1e-3, "{text}");
    }
}

#[test]
fn what_a_library_says_of_itself_tells_the_simulator_apart() {
    let facts = ascend::facts(Some(simulator())).unwrap();
    assert!(facts.simulated && facts.name == "sim-npu (simulated)" && facts.count >= 2, "{facts:?}");
}

/// First phases that this thread went through.
fn planned() -> u64 {
    // SAFETY: a function without arguments, of a library that stays open.
    #[allow(unsafe_code)]
    unsafe {
        let library = libloading::Library::new(simulator()).unwrap();
        library.get::<unsafe extern "C" fn() -> u64>("strato_sim_npu_planned").unwrap()()
    }
}

/// But for attention, whose lengths are an argument of the host that changes from step to step.
#[test]
fn executors_that_are_used_again_are_prepared_once() {
    let of = |reuse, steps| {
        let target = Target::Ascend(AscendOptions { reuse, ..device() });
        let before = planned();
        run(&RunOptions { steps, dtype: Dtype::F16, ..options(target) }, &mut Log::off());
        planned() - before
    };
    let each = |reuse| of(reuse, 5) - of(reuse, 4);
    let (anew, again) = (each(false), each(true));
    println!("first phases of a step: {anew}, {again} with executors that are used again");
    assert_eq!(again, 2, "the attention of two layers");
    assert!(anew > 30, "{anew}");
}

/// Every attention of a replay waits until the host has given it its lengths: one that never gets them would hold the device up.
#[test]
fn a_replay_whose_lengths_cannot_be_given_ends_and_the_next_one_is_right() {
    // SAFETY: a function with a number, of a library that stays open.
    #[allow(unsafe_code)]
    let fail = |after: u64| unsafe {
        let library = libloading::Library::new(simulator()).unwrap();
        library.get::<unsafe extern "C" fn(u64)>("strato_sim_npu_fail").unwrap()(after);
    };
    let options = RunOptions { mode: Mode::Graph, dtype: Dtype::F16, ..options(Target::Ascend(device())) };
    let mut engine = Engine::new(tiny(), &mut Synthetic, options, &mut Log::off()).unwrap();
    let mut tokens = |failing: Option<u32>| {
        let mut tokens = Vec::new();
        let ran = engine.run(&mut Log::off(), |step| {
            tokens.push(step.tokens.clone());
            if failing == Some(step.number) {
                fail(1);
            }
            true
        });
        ran.map(|()| tokens)
    };
    let expected = tokens(None).unwrap();
    let error = tokens(Some(2)).unwrap_err().to_string();
    assert!(
        error.contains("prepare aclnnFusedInferAttentionScoreV2") && error.contains("as it was told to"),
        "{error}"
    );
    assert_eq!(tokens(None).unwrap(), expected);
}

/// Names that `tests/ascend/symbols.py` found, in which public package of what version.
const FOUND: &str = include_str!("ascend/symbols.txt");

#[test]
fn every_call_that_is_looked_up_is_one_of_a_public_package() {
    // Those of MSPTI are its collector's.
    let found: BTreeSet<&str> =
        FOUND.lines().filter(|line| !line.starts_with(['#', 'm'])).filter_map(|line| line.split('\t').next()).collect();
    let own: BTreeSet<&str> = ascend::symbols().into_iter().collect();
    assert!(own.len() > 70, "{}", own.len());
    let unknown: Vec<_> = own.difference(&found).collect();
    assert!(unknown.is_empty(), "run tests/ascend/symbols.py: {unknown:?}");
    let dead: Vec<_> = found.difference(&own).collect();
    assert!(dead.is_empty(), "no longer looked up: {dead:?}");
    // The simulator has them all, too.
    // SAFETY: nothing of it is called.
    #[allow(unsafe_code)]
    let library = unsafe { libloading::Library::new(simulator()) }.unwrap();
    for name in own {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        let call = unsafe { library.get::<unsafe extern "C" fn()>(name) };
        assert!(call.is_ok(), "{name}");
    }
}
