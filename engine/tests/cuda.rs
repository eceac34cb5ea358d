//! The CUDA backend over a driver that has no device: the real calls in their real order, and the real kernels on one core of
//! this machine, in memory that may not be left. What this cannot show is how fast a GPU is, and what only its compiler does.
//! Where `STRATO_CUDA_DEVICE` is set the same tests run on the first device of this machine's own driver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;
mod simulated_cuda;

use std::path::{Path, PathBuf};

use engine::{
    Config, Dtype, Error, KvLayout, Synthetic, Target,
    cpu::Isa,
    cuda::{self, CudaOptions, Libraries},
    preset,
    program::{Change, Level, OpName},
    record::{Kind, Log},
    run::{Engine, Mode, RunOptions, Sampling, Sync},
};
use golden::{Golden, TOLERANCE, decoded, greatest_difference, options, run, run_of, tiny};

/// The libraries of the tests; `None` where there is no driver of either kind. The kernels come from the embedded PTX, but on
/// a machine that has NVRTC.
fn libraries() -> Option<Libraries> {
    if std::env::var_os("STRATO_CUDA_DEVICE").is_some() {
        return Some(Libraries::default());
    }
    let driver = simulated_cuda::library().map(Path::to_owned)?;
    Some(Libraries { driver: Some(driver), compiler: None })
}

fn device(pageable: bool) -> Option<Target> {
    Some(Target::Cuda(CudaOptions { device: 0, pageable, libraries: libraries()? }))
}

#[test]
fn logits_and_greedy_tokens_are_those_of_transformers_whatever_the_level_cache_and_mode() {
    let Some(target) = device(false) else { return };
    for golden in Golden::all() {
        let expected = golden.floats("logits");
        for (level, layout, sampling, mode) in [
            (Level::Composite, KvLayout::Contiguous, Sampling::Device, Mode::Eager),
            (Level::Canonical, KvLayout::Paged(4), Sampling::Host, Mode::Eager),
            (Level::Fused, KvLayout::Paged(16), Sampling::Device, Mode::Graph),
        ] {
            let options = RunOptions {
                target: target.clone(),
                dtype: Dtype::F32,
                level,
                layout,
                sampling,
                mode,
                ..RunOptions::default()
            };
            let (logits, tokens) = decoded(&golden, options);
            let difference = greatest_difference(&logits[..expected.len()], &expected);
            println!("{:?} {level:?} {layout:?} {mode:?}: {difference:e}", golden.config.family);
            assert!(difference <= TOLERANCE, "{:?} {level:?}: {difference}", golden.config.family);
            assert_eq!(tokens, golden.tokens, "{:?} {level:?}", golden.config.family);
        }
    }
}

/// Products of one token, of a few, of a tile and of more; heads of one element and a half for each lane; and rows that are
/// read by vectors as well as such that are not.
#[test]
fn a_device_computes_what_the_cpu_does_for_every_type_of_weights_every_operator_and_every_product() {
    let Some(target) = device(false) else { return };
    let vectors = Config { head_dim: 48, ..preset("tiny").unwrap() };
    for (config, batch, prompt, level) in [
        (tiny(), 1, 1, Level::Composite),
        (tiny(), 3, 7, Level::Fused),
        (vectors.clone(), 1, 40, Level::Canonical),
        (vectors, 9, 8, Level::Composite),
    ] {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8] {
            let changes = vec![Change::CastBefore(OpName::DownProj)];
            // Kernels that round activations of some types would differ by that.
            let isa = Isa::available().into_iter().find(|isa| !isa.rounds(dtype)).unwrap();
            let of =
                |target| RunOptions { dtype, level, batch, prompt, isa, changes: changes.clone(), ..options(target) };
            let (expected, wanted) = run_of(config.clone(), &of(Target::Cpu), &mut Log::off());
            let (logits, tokens) = run_of(config.clone(), &of(target.clone()), &mut Log::off());
            let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
            let difference = greatest_difference(&logits, &expected) / most;
            println!("{batch} × {prompt} {dtype:?} {level:?}: {difference:e}");
            // The CPU rounds the activations of 8-bit products too, so both differ by more than the order of sums.
            let tolerance = if dtype == Dtype::Q8 { 1e-3 } else { 1e-4 };
            assert!(difference <= tolerance, "{batch} × {prompt} {dtype:?} {level:?}: {difference}");
            assert!(dtype == Dtype::Q8 || tokens == wanted, "{batch} × {prompt} {dtype:?} {level:?}");
        }
    }
}

#[test]
fn every_command_lies_between_its_events_within_its_step() {
    let Some(target) = device(false) else { return };
    for sync in [Sync::PerStep, Sync::PerOp] {
        let options = RunOptions { sync, ..options(target.clone()) };
        let mut log = Log::with_capacity(4096, options.workers());
        run(&options, &mut log);
        assert_eq!((log.dropped, log.unread), (0, 0));
        let uncertainty = log.uncertainty.unwrap();
        println!("{sync:?}: the clocks agree within {uncertainty} ns");
        let loaded = log.records().iter().filter(|r| matches!(r.kind, Kind::Load(_))).count();
        assert_eq!(loaded, 8, "every family of kernels is loaded once");
        for number in 0..=4 {
            let of_step: Vec<_> = log.records().iter().filter(|r| r.step == number).collect();
            let step = of_step.iter().find(|r| r.kind == Kind::Step).unwrap().host;
            let is_command = |kind| matches!(kind, Kind::Op(_) | Kind::Write(_) | Kind::Read(_));
            let commands: Vec<_> = of_step.iter().filter(|r| is_command(r.kind)).collect();
            let ops = commands.iter().filter(|r| matches!(r.kind, Kind::Op(_))).count();
            // Two norms of heads are operators of their own.
            assert_eq!((ops, commands.len()), (2 * 17 + 5, 2 * 17 + 5 + 2));
            for command in &commands {
                assert!(command.submit.is_none(), "events do not say when the driver took a command");
                assert!(command.device.start <= command.device.end);
                assert!(command.from - uncertainty <= command.device.start, "nothing starts before it is launched");
                assert!(
                    step.start - uncertainty <= command.device.start && command.device.end <= step.end + uncertainty
                );
            }
            // A number of single precision is a time in milliseconds: below a second it is off by 30 ns at most.
            assert!(commands.windows(2).all(|pair| pair[0].device.end <= pair[1].device.start + 60), "one at a time");
            let waits = of_step.iter().filter(|r| r.kind == Kind::Sync).count();
            assert_eq!(waits, if sync == Sync::PerOp { ops } else { 1 });
        }
    }
}

#[test]
fn faults_of_numbers_and_host_show_and_those_of_the_cpu_are_refused() {
    let Some(target) = device(false) else { return };
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
    for text in ["cpu_fallback", "bf16_accum"] {
        let refused = Engine::new(tiny(), &mut Synthetic, injected(text), &mut Log::off());
        assert!(refused.err().unwrap().to_string().contains(text), "{text}");
    }
}

#[test]
fn a_graph_is_captured_once_and_replayed_and_gives_the_same_tokens_and_so_do_pageable_copies() {
    let (Some(target), Some(pageable)) = (device(false), device(true)) else { return };
    let expected = run(&options(target.clone()), &mut Log::off()).1;
    let graph = |target: &Target, sampling| RunOptions { mode: Mode::Graph, sampling, ..options(target.clone()) };
    let mut delayed = graph(&target, Sampling::Device);
    engine::inject::inject("host_delay:us=3000", &mut delayed).unwrap();
    for options in [
        graph(&target, Sampling::Device),
        graph(&target, Sampling::Host),
        graph(&pageable, Sampling::Device),
        graph(&pageable, Sampling::Host),
        options(pageable.clone()),
        delayed,
    ] {
        let mut log = Log::with_capacity(4096, 0);
        assert_eq!(run(&options, &mut log).1, expected, "{options:?}");
        let of = |kind| log.records().iter().filter(move |record| record.kind == kind);
        let replays = if options.mode == Mode::Graph { (1, 4, 0) } else { (0, 0, 0) };
        assert_eq!((of(Kind::Capture).count(), of(Kind::Replay).count(), log.unread), replays);
        let uncertainty = log.uncertainty.unwrap();
        for replay in of(Kind::Replay) {
            let step = of(Kind::Step).find(|step| step.step == replay.step).unwrap().host;
            assert!(replay.from <= replay.device.start + uncertainty, "{replay:?}");
            assert!(step.start <= replay.device.start + uncertainty && replay.device.end <= step.end + uncertainty);
            // A step of forty operators is not over in a microsecond.
            assert!(replay.device.end - replay.device.start > 10_000, "{replay:?}");
        }
    }
}

#[test]
fn kernels_that_nvrtc_compiled_are_loaded_by_their_names_and_their_compilations_told() {
    let Some(libraries) = libraries() else { return };
    let Some(compiler) = std::env::var_os("STRATO_NVRTC").map(PathBuf::from) else {
        eprintln!("skipped: STRATO_NVRTC names no NVRTC (pip install nvidia-cuda-nvrtc has one)");
        return;
    };
    let of = |libraries: &Libraries| {
        let target = Target::Cuda(CudaOptions { device: 0, pageable: false, libraries: libraries.clone() });
        RunOptions { dtype: Dtype::Bf16, ..options(target) }
    };
    let mut log = Log::with_capacity(4096, 0);
    let compiled = run(&of(&Libraries { compiler: Some(compiler), ..libraries.clone() }), &mut log);
    let count = |is: fn(Kind) -> bool| log.records().iter().filter(|record| is(record.kind)).count();
    assert_eq!((count(|k| matches!(k, Kind::Compile(_))), count(|k| matches!(k, Kind::Load(_)))), (8, 8));
    assert_eq!(compiled.1, run(&of(&libraries), &mut Log::off()).1);
}

#[test]
fn what_a_device_has_not_is_named() {
    let Some(libraries) = libraries() else { return };
    let refused = |config: Config, options: RunOptions| {
        Engine::new(config, &mut Synthetic, options, &mut Log::off()).err().unwrap()
    };
    let of = |device, libraries: &Libraries| {
        Target::Cuda(CudaOptions { device, pageable: false, libraries: libraries.clone() })
    };
    let error = refused(tiny(), options(of(99, &libraries)));
    assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("no CUDA device 99"), "{error}");
    let moe = refused(preset("tiny-moe").unwrap(), options(of(0, &libraries)));
    assert!(matches!(moe, Error::Unavailable { .. }) && moe.to_string().contains("--backend cpu"), "{moe}");
    let wide = refused(Config { head_dim: 264, ..tiny() }, options(of(0, &libraries)));
    assert!(wide.to_string().contains("heads of 264 elements"), "{wide}");
    let compiler = Some(PathBuf::from("/nonexistent/libnvrtc.so"));
    let compiler = refused(tiny(), options(of(0, &Libraries { compiler, ..libraries.clone() })));
    assert!(
        matches!(compiler, Error::Unavailable { .. }) && compiler.to_string().contains("STRATO_NVRTC"),
        "{compiler}"
    );
    let far = RunOptions { steps: 1 << 30, ..options(of(0, &libraries)) };
    let far = refused(tiny(), far).to_string();
    assert!(far.contains("no room") && far.contains("smaller model or context"), "{far}");
    if libraries.driver.is_some() {
        let facts = &cuda::devices(&libraries).unwrap()[0];
        assert!(facts.name.contains("simulated") && facts.architecture() == "sm_80", "{facts:?}");
    }
}
