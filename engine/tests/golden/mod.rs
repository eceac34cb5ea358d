//! Reference checkpoints with what Hugging Face `transformers` gave for them in single precision, and runs of a small model, for
//! every backend.
#![allow(dead_code)] // no program of tests needs all of it

use std::{path::PathBuf, sync::Arc};

use engine::{
    Checkpoint, Config, Dtype, Error, Source, Synthetic, Target,
    cpu::{Communicator, PATIENCE, Region, World},
    preset,
    program::Logits,
    record::Log,
    run::{Engine, RunOptions},
};

/// Greatest difference of a logit or hidden value: decoding with a cache differs from a whole pass by 2e-6 in
/// `transformers` itself, so this is room for another order of additions.
pub const TOLERANCE: f32 = 1e-4;
const MODELS: [&str; 3] = ["tiny-llama", "tiny-qwen2", "tiny-qwen3"];

/// A checkpoint and what `transformers` gave.
pub struct Golden {
    pub config: Config,
    pub directory: PathBuf,
    /// Prompt.
    pub ids: Vec<u32>,
    /// Prompt and what follows it.
    pub tokens: Vec<u32>,
}

impl Golden {
    /// Every checkpoint. Tests that need them are ignored where nobody asks for them.
    pub fn all() -> Vec<Self> {
        let root = std::env::var_os("STRATO_REFERENCE");
        let root = root.expect("STRATO_REFERENCE has to name the folder of reference checkpoints");
        let open = |model| {
            let directory = PathBuf::from(&root).join(model);
            let config = Config::read(&directory.join("config.json")).unwrap();
            let mut golden = Self { config, directory, ids: Vec::new(), tokens: Vec::new() };
            golden.ids = golden.integers("ids");
            golden.tokens = golden.integers("gen");
            golden
        };
        MODELS.into_iter().map(open).collect()
    }

    fn integers(&self, name: &str) -> Vec<u32> {
        let mut file = npyz::npz::NpzArchive::open(self.directory.join("golden.npz")).unwrap();
        let values: Vec<i64> = file.by_name(name).unwrap().unwrap().into_vec().unwrap();
        values.into_iter().map(|value| value as u32).collect()
    }

    /// An array of numbers.
    pub fn floats(&self, name: &str) -> Vec<f32> {
        let mut file = npyz::npz::NpzArchive::open(self.directory.join("golden.npz")).unwrap();
        file.by_name(name).unwrap().unwrap().into_vec().unwrap()
    }
}

/// Greatest distance of two numbers in one place.
pub fn greatest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// A run of a prompt of a reference checkpoint and of what follows it.
pub fn of_golden(golden: &Golden, options: RunOptions) -> RunOptions {
    RunOptions {
        prompt: golden.ids.len(),
        ids: vec![golden.ids.clone()],
        steps: golden.tokens.len() - golden.ids.len() - 1,
        logits: Logits::All,
        ..options
    }
}

/// Logits of every position that was fed, and the tokens with the prompt.
pub fn decoded(golden: &Golden, options: RunOptions) -> (Vec<f32>, Vec<u32>) {
    let source = &mut Checkpoint::open(&golden.directory).unwrap();
    let options = of_golden(golden, options);
    let (logits, tokens) = run_from(golden.config.clone(), source, &options, &mut Log::off());
    (logits, golden.ids.iter().copied().chain(tokens.into_iter().flatten()).collect())
}

/// Holds a run of every checkpoint, in single precision, against `transformers`: logits of every position and greedy tokens.
pub fn hold_against_transformers(options: &RunOptions) {
    for golden in Golden::all() {
        let RunOptions { level, layout, sampling, mode, .. } = options;
        let what = format!("{:?} {level:?} {layout:?} {sampling:?} {mode:?}", golden.config.family);
        let expected = golden.floats("logits");
        let (logits, tokens) = decoded(&golden, RunOptions { dtype: Dtype::F32, ..options.clone() });
        let difference = greatest_difference(&logits[..expected.len()], &expected);
        println!("{what}: {difference:e}");
        assert!(difference <= TOLERANCE, "{what}: {difference}");
        assert_eq!(tokens, golden.tokens, "{what}");
    }
}

/// Sizes of which none is a multiple of a vector or of a square of 16, with every kind of operator.
pub fn tiny() -> Config {
    Config { qk_norm: true, qkv_bias: true, intermediate: 147, vocab: 301, ..preset("tiny").unwrap() }
}

/// A short run of several sequences.
pub fn options(target: Target) -> RunOptions {
    RunOptions { target, prompt: 7, steps: 4, batch: 3, threads: 2, dtype: Dtype::F32, ..RunOptions::default() }
}

/// Logits of every step and the tokens of a run of a made model.
pub fn run_of(config: Config, options: &RunOptions, log: &mut Log) -> (Vec<f32>, Vec<Vec<u32>>) {
    run_from(config, &mut Synthetic, options, log)
}

/// The same of the small one.
pub fn run(options: &RunOptions, log: &mut Log) -> (Vec<f32>, Vec<Vec<u32>>) {
    run_of(tiny(), options, log)
}

/// The same with the weights of a source.
pub fn run_from(
    config: Config,
    source: &mut dyn Source,
    options: &RunOptions,
    log: &mut Log,
) -> (Vec<f32>, Vec<Vec<u32>>) {
    run_rank(config, source, options, None, log).unwrap()
}

fn run_rank(
    config: Config,
    source: &mut dyn Source,
    options: &RunOptions,
    ranks: Option<Communicator>,
    log: &mut Log,
) -> Result<(Vec<f32>, Vec<Vec<u32>>), Error> {
    let mut engine = Engine::of_rank(config, source, options.clone(), ranks, log)?;
    let (mut all, mut tokens) = (Vec::new(), Vec::new());
    engine.run_with_logits(log, true, |step, values| {
        all.extend_from_slice(values);
        tokens.push(step.tokens.clone());
        true
    })?;
    Ok((all, tokens))
}

/// Logits of every step, tokens and record of a rank.
pub type Ran = (Vec<f32>, Vec<Vec<u32>>, Log);

/// What two ranks in threads gave.
pub fn two_ranks(
    config: &Config,
    source: &(dyn Fn() -> Box<dyn Source> + std::marker::Sync),
    options: &RunOptions,
) -> [Result<Ran, Error>; 2] {
    let slot = Engine::largest_exchange(config, options, 2).unwrap();
    let region = Arc::new(Region::of_threads(World { ranks: 2, workers: 1, slot }).unwrap());
    std::thread::scope(|scope| {
        let rank = |number| {
            let region = Arc::clone(&region);
            scope.spawn(move || {
                let ranks = Communicator::new(region, number, PATIENCE)?;
                let mut log = Log::with_capacity(1 << 14, 0);
                let (logits, tokens) = run_rank(config.clone(), &mut *source(), options, Some(ranks), &mut log)?;
                Ok((logits, tokens, log))
            })
        };
        [rank(0), rank(1)].map(|thread| thread.join().unwrap())
    })
}
