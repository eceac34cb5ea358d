//! The CUDA backend over a driver that has no device: the real calls in their real order, and the real kernels on one core of
//! this machine, in memory that may not be left. What this cannot show is how fast a GPU is, and what only its compiler does.
//! Where `STRATO_CUDA_DEVICE` is set the same tests run on the first device of this machine's own driver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;
mod simulated_cuda;

use std::path::{Path, PathBuf};

use engine::{
    Batch, Config, Dtype, Error, KvLayout, Seeded, Sequence, Shard, Source, Synthetic, Target, Weights,
    cpu::Isa,
    cuda::{self, CudaOptions, Gemm, Libraries},
    preset,
    program::{Change, Level, Logits, OpKind, OpName, Program, Shape},
    record::{Kind, Log},
    run::{Engine, Mode, RunOptions, Sampling, Sync},
};
use golden::{
    TOLERANCE, greatest_difference, hold_against_transformers, options, run, run_from, run_of, tiny, two_ranks,
};

/// The libraries of the tests: those of the machine where `STRATO_CUDA_DEVICE` is set, and else the simulated ones. The kernels
/// come from the embedded PTX, but on a machine that has NVRTC.
fn libraries() -> Libraries {
    if std::env::var_os("STRATO_CUDA_DEVICE").is_some() {
        return Libraries::default();
    }
    let all = Some(simulated_cuda::library().to_owned());
    Libraries { driver: all.clone(), compiler: None, cublaslt: all.clone(), nccl: all }
}

fn device(pageable: bool) -> Target {
    Target::Cuda(CudaOptions { pageable, libraries: libraries(), ..CudaOptions::default() })
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints, and a C++ compiler"]
fn logits_and_greedy_tokens_are_those_of_transformers_whatever_the_level_cache_and_mode() {
    let target = device(false);
    for (level, layout, sampling, mode) in [
        (Level::Composite, KvLayout::Contiguous, Sampling::Device, Mode::Eager),
        (Level::Canonical, KvLayout::Paged(4), Sampling::Host, Mode::Eager),
        (Level::Fused, KvLayout::Paged(16), Sampling::Device, Mode::Graph),
    ] {
        let target = target.clone();
        hold_against_transformers(&RunOptions { target, level, layout, sampling, mode, ..RunOptions::default() });
    }
}

/// Products of one token, of a few, of a tile and of more; heads of one element and a half for each lane; and rows that are
/// read by vectors as well as such that are not.
#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_device_computes_what_the_cpu_does_for_every_type_of_weights_every_operator_and_every_product() {
    let target = device(false);
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
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn every_command_lies_between_its_events_within_its_step() {
    let target = device(false);
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
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn faults_of_numbers_and_host_show_and_those_of_the_cpu_are_refused() {
    let target = device(false);
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
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_graph_is_captured_once_and_replayed_and_gives_the_same_tokens_and_so_do_pageable_copies() {
    let (target, pageable) = (device(false), device(true));
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

/// Weights of a seed: of matrices only how elements follow from their places, or nothing but the elements.
struct Only {
    places: bool,
    of: Seeded,
}

impl Source for Only {
    fn rows(
        &mut self,
        name: &str,
        rows: usize,
        width: usize,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        match self.places && rows > 1 {
            true => Err(Error::Tensor { name: name.to_owned(), what: "was asked of the host".to_owned() }),
            false => self.of.rows(name, rows, width, each),
        }
    }

    fn sequence(&self, name: &str) -> Option<Sequence> {
        self.of.sequence(name).filter(|_| self.places)
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn weights_that_a_device_makes_are_those_of_the_host_to_the_last_bit() {
    let target = device(false);
    for (seed, dtype) in [(0, Dtype::F32), (7, Dtype::F16), (u64::MAX, Dtype::Bf16)] {
        let (of, options) = (Seeded(seed), RunOptions { dtype, ..options(target.clone()) });
        // Every token's row of the table, as it lies on the device.
        let config = tiny();
        let shape = Shape { tokens: config.vocab, sequences: 1, logits: Logits::Last, level: Level::Fused };
        let mut program = Program::plan(&config, shape);
        program.ops.truncate(1);
        let OpKind::Embed { out } = program.ops[0].kind else { panic!("a program begins with its tokens") };
        let wide = RunOptions { prompt: config.vocab, ..options.clone() };
        let source = &mut Only { places: true, of };
        let mut backend = engine::open(&config, source, &wide, None, &mut Log::off()).unwrap();
        let came = backend.device().facts.iter().find(|(key, _)| *key == "cuda.weights").unwrap().1.clone();
        assert!(came.ends_with("bytes made on the device"), "{came}");
        let plan = backend.prepare(program, &mut Log::off()).unwrap();
        let tokens: Vec<u32> = (0..config.vocab as u32).collect();
        backend.run(plan, &Batch::prefill(&tokens, 0), Mode::Eager, &mut Log::off()).unwrap();
        let made = backend.values(plan, out, &mut Log::off()).unwrap();
        let weights = Weights::load(&config, dtype, &mut Seeded(seed)).unwrap();
        let mut row = vec![0.0; config.hidden];
        for (token, made) in made.chunks(config.hidden).enumerate() {
            weights.embed.read_row(token, &mut row);
            assert!(made.iter().zip(&row).all(|(a, b)| a.to_bits() == b.to_bits()), "{dtype:?} {token}");
        }
        // All others, by what a run gives with them.
        let run = |places| run_from(tiny(), &mut Only { places, of }, &options, &mut Log::off());
        let ((made, tokens), (copied, same)) = (run(true), run(false));
        assert!(made.iter().zip(&copied).all(|(a, b)| a.to_bits() == b.to_bits()), "{dtype:?}");
        assert_eq!((tokens, made.len()), (same, copied.len()), "{dtype:?}");
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn attention_is_launched_between_captured_pieces_and_all_of_a_step_is_told() {
    let target = device(false);
    let expected = run(&options(target.clone()), &mut Log::off());
    for sync in [Sync::PerStep, Sync::PerLayer] {
        let options = RunOptions { mode: Mode::Piecewise, sync, ..options(target.clone()) };
        let mut log = Log::with_capacity(4096, 0);
        let (logits, tokens) = run(&options, &mut log);
        assert!(tokens == expected.1 && logits == expected.0, "the same kernels in the same order");
        assert_eq!((log.dropped, log.unread), (0, 0));
        let [_, program] = options.programs(&tiny(), Shard::WHOLE).unwrap();
        let of = |kind: fn(&Kind) -> bool| log.records().iter().filter(move |record| kind(&record.kind));
        // Before, between and behind the attention of two layers.
        assert_eq!((of(|kind| *kind == Kind::Capture).count(), of(|kind| *kind == Kind::Replay).count()), (3, 0));
        for number in 1..=4 {
            let of_step: Vec<_> = log.records().iter().filter(|r| r.step == number).collect();
            let mut ran = Vec::new();
            for record in &of_step {
                match record.kind {
                    Kind::Op(op) => {
                        let name = program.ops[op as usize].name;
                        assert!(matches!(name, OpName::KvCacheAppend | OpName::AttentionDecode), "{name:?}");
                        ran.push(op);
                    }
                    Kind::Piece { first, count } => ran.extend(first..first + count),
                    _ => continue,
                }
                assert!(record.device.start <= record.device.end, "{record:?}");
            }
            assert_eq!(ran, (0..program.ops.len() as u32).collect::<Vec<_>>(), "every operator once, in order");
            let waits = of_step.iter().filter(|r| r.kind == Kind::Sync).count();
            // Layers end inside of pieces: behind the first two of these, and behind the step.
            assert_eq!(waits, if sync == Sync::PerStep { 1 } else { 3 }, "{sync:?}");
        }
    }
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn products_of_the_vendors_library_give_what_ours_do_eager_and_captured() {
    let libraries = libraries();
    let vendors =
        |libraries: Libraries| Target::Cuda(CudaOptions { gemm: Gemm::CublasLt, libraries, ..CudaOptions::default() });
    // A prompt of 21 tokens, and nine sequences whose steps have products of many tokens too.
    for (dtype, batch, mode, tolerance) in [
        (Dtype::F32, 3, Mode::Eager, 1e-4),
        (Dtype::F32, 9, Mode::Graph, 1e-4),
        (Dtype::F16, 9, Mode::Piecewise, 4e-3),
        (Dtype::Bf16, 9, Mode::Eager, 3e-2),
        (Dtype::Q8, 9, Mode::Eager, 0.0),
    ] {
        let of = |target| RunOptions { dtype, batch, mode, level: Level::Composite, ..options(target) };
        let own = Target::Cuda(CudaOptions { libraries: libraries.clone(), ..CudaOptions::default() });
        let (expected, _) = run(&of(own), &mut Log::off());
        let (logits, _) = run(&of(vendors(libraries.clone())), &mut Log::off());
        let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
        let difference = greatest_difference(&logits, &expected) / most;
        println!("{dtype:?} {batch} {mode:?}: {difference:e}");
        // Activations of 16 bits are another computation: the vendor's library takes both sides in the type of the weights.
        let is_other = matches!(dtype, Dtype::F16 | Dtype::Bf16);
        assert!(difference <= tolerance && (difference > 0.0 || !is_other), "{dtype:?}: {difference}");
    }
    let missing = vendors(Libraries { cublaslt: Some("/nonexistent/libcublasLt.so".into()), ..libraries.clone() });
    let error = Engine::new(tiny(), &mut Synthetic, options(missing), &mut Log::off()).err().unwrap();
    assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("STRATO_CUBLASLT"), "{error}");
    let mut spoilt = options(vendors(libraries));
    engine::inject::inject("nan_at", &mut spoilt).unwrap();
    let error = Engine::new(tiny(), &mut Synthetic, spoilt, &mut Log::off()).err().unwrap().to_string();
    assert!(error.contains("nan_at") && error.contains("--gemm"), "{error}");
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn two_ranks_with_a_device_each_give_what_one_does() {
    let libraries = libraries();
    let devices = cuda::devices(&libraries).unwrap().len();
    assert!(devices > 1, "STRATO_CUDA_DEVICE asks for a real device, and there is one; leave it out or skip this test");
    let target = Target::Cuda(CudaOptions { libraries: libraries.clone(), ..CudaOptions::default() });
    let config = Config { vocab: 302, intermediate: 148, ..tiny() };
    for (mode, level, dtype) in [
        (Mode::Eager, Level::Canonical, Dtype::F32),
        (Mode::Graph, Level::Fused, Dtype::F32),
        (Mode::Piecewise, Level::Fused, Dtype::Bf16),
    ] {
        let options = RunOptions { mode, level, dtype, ..options(target.clone()) };
        let alone = run_of(config.clone(), &options, &mut Log::off());
        let of = Seeded(0);
        let parts = [true, false].map(|places| {
            two_ranks(&config, &move || -> Box<dyn Source> { Box::new(Only { places, of }) }, &options)
                .map(Result::unwrap)
        });
        for ((logits, tokens, log), (copied, ..)) in parts[0].iter().zip(&parts[1]) {
            assert!(greatest_difference(logits, &alone.0) <= TOLERANCE, "{mode:?} {level:?}");
            assert_eq!((tokens, logits), (&alone.1, copied), "{mode:?} {level:?}");
            assert_eq!((log.dropped, log.unread), (0, 0));
            let [_, program] = options.programs(&config, Shard { rank: 0, of: 2 }).unwrap();
            let exchanges = |step: u32| {
                let is_exchange =
                    |kind| matches!(kind, Kind::Op(op) if program.ops[op as usize].kind.exchanged().is_some());
                log.records().iter().filter(|r| r.step == step && is_exchange(r.kind)).count()
            };
            // Embedding, two layers of two, and the head; those that were captured are not told one by one.
            assert_eq!(exchanges(2), if mode == Mode::Eager { 1 + 2 * 2 + 1 } else { 0 });
        }
    }
    // Blocks of 8 bits end at the edge of a rank's part, so they are those of no run alone, but those of the CPU's ranks.
    let isa = Isa::available().into_iter().find(|isa| !isa.rounds(Dtype::Q8)).unwrap();
    for mode in [Mode::Eager, Mode::Graph, Mode::Piecewise] {
        let of = |mode, target| {
            let options = RunOptions { mode, isa, dtype: Dtype::Q8, threads: 1, ..options(target) };
            two_ranks(&config, &|| Box::new(Synthetic), &options).map(Result::unwrap)
        };
        for ((logits, ..), (expected, ..)) in of(mode, target.clone()).iter().zip(&of(Mode::Eager, Target::Cpu)) {
            let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
            let difference = greatest_difference(logits, expected) / most;
            println!("two ranks, 8 bits, {mode:?}: {difference:e}");
            assert!(difference <= 1e-3, "{mode:?}: {difference}");
        }
    }
    let missing = Libraries { nccl: Some("/nonexistent/libnccl.so".into()), ..libraries };
    let target = Target::Cuda(CudaOptions { libraries: missing, ..CudaOptions::default() });
    for rank in two_ranks(&config, &|| Box::new(Synthetic), &options(target)) {
        let error = rank.err().unwrap();
        assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("STRATO_NCCL"), "{error}");
    }
}

#[test]
#[ignore = "needs STRATO_NVRTC, a library of NVRTC, and a C++ compiler"]
fn kernels_that_nvrtc_compiled_are_loaded_by_their_names_and_their_compilations_told() {
    let libraries = libraries();
    let compiler = std::env::var_os("STRATO_NVRTC").map(PathBuf::from);
    let compiler = compiler.expect("STRATO_NVRTC has to name an NVRTC; pip install nvidia-cuda-nvrtc has one");
    let of = |libraries: &Libraries| {
        let target = Target::Cuda(CudaOptions { libraries: libraries.clone(), ..CudaOptions::default() });
        RunOptions { dtype: Dtype::Bf16, ..options(target) }
    };
    let mut log = Log::with_capacity(4096, 0);
    let compiled = run(&of(&Libraries { compiler: Some(compiler), ..libraries.clone() }), &mut log);
    let count = |is: fn(Kind) -> bool| log.records().iter().filter(|record| is(record.kind)).count();
    assert_eq!((count(|k| matches!(k, Kind::Compile(_))), count(|k| matches!(k, Kind::Load(_)))), (8, 8));
    assert_eq!(compiled.1, run(&of(&libraries), &mut Log::off()).1);
}

#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn what_a_device_has_not_is_named() {
    let libraries = libraries();
    let refused = |config: Config, options: RunOptions| {
        Engine::new(config, &mut Synthetic, options, &mut Log::off()).err().unwrap()
    };
    let of = |device, libraries: &Libraries| {
        Target::Cuda(CudaOptions { device, libraries: libraries.clone(), ..CudaOptions::default() })
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

/// Nothing of what is missing may end in a panic of the bindings, which look calls up one by one.
#[test]
#[ignore = "needs a C++ compiler, which builds a simulated CUDA driver"]
fn a_driver_that_lacks_a_call_is_told_by_the_call_and_one_beside_another_by_that() {
    let libraries = libraries();
    // A real driver cannot be had twice.
    if libraries.driver.is_none() {
        return;
    }
    let refused = |driver: &Path| {
        let libraries = Libraries { driver: Some(driver.to_owned()), ..Libraries::default() };
        cuda::devices(&libraries).err().unwrap().to_string()
    };
    let directory = tempfile::tempdir().unwrap();
    let [text, old, copy] = ["old.cpp", "libold.so", "libcopy.so"].map(|name| directory.path().join(name));
    std::fs::write(&text, "extern \"C\" int cuInit(unsigned) { return 0; }\n").unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let built = std::process::Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&old).arg(&text).status();
    assert!(built.unwrap().success());
    let told = refused(&old);
    assert!(told.contains("no 'cuDriverGetVersion'") && told.contains("newer driver"), "{told}");
    // The bindings have one driver in a process, and what the second is asked must not go to the first.
    assert!(cuda::devices(&libraries).is_ok());
    std::fs::copy(libraries.driver.as_ref().unwrap(), &copy).unwrap();
    let told = refused(&copy);
    assert!(told.contains("libcopy.so") && told.contains("another libcuda already"), "{told}");
    assert!(cuda::devices(&libraries).is_ok());
}
