//! What is run: the options of the command line, and the engine's of the same meaning.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use collectors::engine_run::Model;
use engine::{
    Checkpoint, Config, Dtype, KvLayout, PRESETS, Seeded, Source, Target,
    cpu::Isa,
    inject::inject,
    preset,
    program::{Level, Logits},
    record::Observer,
    run::{Mode, RunOptions, Sampling, Sync},
};

use super::prompt_ids;
use crate::cli::{backend::On, exit::Usage, memory};

/// What is run.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub struct DecodeArgs {
    #[command(flatten)]
    pub(in crate::cli) on: On,
    /// Named shape, or directory of a checkpoint.
    #[arg(long, default_value = "qwen2.5-0.5b", value_name = "NAME|DIR")]
    pub(in crate::cli) model: String,
    /// Type of the weights.
    #[arg(long, value_enum, default_value_t = Weights::Bf16)]
    pub(in crate::cli) dtype: Weights,
    /// Sequences that are decoded together.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(in crate::cli) batch: usize,
    /// Tokens of the prompt.
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub(in crate::cli) prompt_len: usize,
    /// The prompt itself, as token ids with commas between them, or a text file with one prompt per line, of which sequences
    /// take one after the other.
    #[arg(long, value_name = "IDS|FILE", conflicts_with = "prompt_len")]
    pub(in crate::cli) prompt_ids: Option<String>,
    /// Tokens to generate.
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub(in crate::cli) r#gen: usize,
    /// What the weights of named shapes and made prompts begin with.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(in crate::cli) seed: u64,
    /// Write the logits of every position that was fed to this NumPy file: positions × vocabulary, single precision; of several
    /// sequences, sequences × positions × vocabulary. The prompt's pass then computes them for all of its tokens.
    #[arg(long, value_name = "FILE.npy")]
    pub(in crate::cli) logits: Option<PathBuf>,
    /// How a decode step is started: operator by operator, all at once, or in pieces.
    #[arg(long, value_enum, default_value_t = Start::Eager)]
    mode: Start,
    /// When the host waits for a step that is launched operator by operator.
    #[arg(long, value_enum, default_value_t = Waits::Step)]
    sync: Waits,
    /// Who chooses the next token.
    #[arg(long, value_enum, default_value_t = Chooser::Device)]
    sampling: Chooser,
    /// What of the run is recorded: steps only, the host's calls, the device's stamps too, or a CUDA device by CUPTI with a
    /// replay as one record or node by node. The less, the less a run is held up by being watched.
    #[arg(long, value_enum, default_value_t = Watching::Device)]
    observer: Watching,
    /// How operators are divided.
    #[arg(long, value_enum, default_value_t = Division::Canonical)]
    level: Division,
    /// Tokens of a block of the KV cache; without it the cache of a sequence is one block.
    #[arg(long, value_name = "TOKENS")]
    kv_block: Option<usize>,
    /// Ranks that share the model, as tensor parallelism does.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(in crate::cli) tp: usize,
    /// What a rank is.
    #[arg(long, value_enum, default_value_t = RanksAre::Threads)]
    pub(in crate::cli) ranks: RanksAre,
    /// Threads of each rank [default: the cores, divided between the ranks].
    #[arg(long, value_name = "N")]
    pub(in crate::cli) threads: Option<usize>,
    /// Instruction set of the kernels [default: the best of this processor].
    #[arg(long, value_enum)]
    isa: Option<Instructions>,
    /// Put a bottleneck or a fault into the run, NAME or NAME:key=value,…; 'help' lists them. Can be given several times.
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) inject: Vec<String>,
    /// Device tools to ask meanwhile, with commas between them, such as nvidia-smi; 'none' asks none [default: that of the
    /// device's vendor, where it is in PATH].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(default)]
    pub(in crate::cli) tools: Vec<String>,
    /// Bytes that the run may take of this machine's memory, such as 8G; one that needs more is refused before it begins
    /// [default: what is free].
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    #[serde(default)]
    pub(in crate::cli) max_memory: Option<u64>,
    /// Time from the first token on after which a run of one rank ends, however many it has generated.
    #[arg(skip)]
    #[serde(skip)]
    pub(in crate::cli) at_most: Option<Duration>,
}

impl Default for DecodeArgs {
    /// What the command line gives without options.
    fn default() -> Self {
        Self {
            on: On::default(),
            model: "qwen2.5-0.5b".to_owned(),
            dtype: Weights::Bf16,
            batch: 1,
            prompt_len: 64,
            prompt_ids: None,
            r#gen: 64,
            seed: 0,
            logits: None,
            mode: Start::Eager,
            level: Division::Canonical,
            kv_block: None,
            tp: 1,
            ranks: RanksAre::Threads,
            threads: None,
            isa: None,
            sync: Waits::Step,
            sampling: Chooser::Device,
            observer: Watching::Device,
            inject: Vec::new(),
            tools: Vec::new(),
            max_memory: None,
            at_most: None,
        }
    }
}

/// What the ranks of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
pub(in crate::cli) enum RanksAre {
    /// Threads of this process.
    Threads,
    /// Processes that share memory.
    Processes,
}

impl RanksAre {
    /// The word for them.
    pub(in crate::cli) fn text(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
pub(in crate::cli) enum Weights {
    F32,
    F16,
    Bf16,
    Q8,
}

impl Weights {
    /// The engine's name for it.
    pub(in crate::cli) fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::Bf16,
            Self::Q8 => Dtype::Q8,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Start {
    Eager,
    Graph,
    /// Captured pieces with attention operator by operator between them, of a CUDA device.
    Piecewise,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Waits {
    #[value(name = "per-step")]
    Step,
    #[value(name = "per-layer")]
    Layer,
    #[value(name = "per-op")]
    Op,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Chooser {
    Device,
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Watching {
    Off,
    Host,
    Device,
    Graph,
    Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Division {
    Composite,
    Canonical,
    Fused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
enum Instructions {
    Portable,
    Avx2,
    Avx512,
    #[value(name = "avx512_bf16")]
    Avx512Bf16,
    Amx,
}

impl DecodeArgs {
    /// A run of one rank that ends a time after its first token, as the engine decodes by default.
    pub(in crate::cli) fn within(
        at_most: Duration,
        model: &str,
        dtype: Weights,
        prompt_len: usize,
        r#gen: usize,
    ) -> Self {
        Self { model: model.to_owned(), dtype, prompt_len, r#gen, at_most: Some(at_most), ..Self::default() }
    }

    /// Whether its ranks can be watched from close by.
    pub(in crate::cli) fn is_watched(&self) -> bool {
        self.tp == 1 || self.ranks == RanksAre::Threads
    }

    /// A run of a model of which nothing else was said.
    pub(in crate::cli) fn plain(model: String, seed: u64) -> Self {
        Self { model, seed, ..Self::default() }
    }

    /// The same with what a side of a comparison is described by: a type, a level, an instruction set, how steps start, who
    /// chooses tokens, `kv-block=N`, `threads=N`, `model=NAME|DIR`, with commas between them.
    ///
    /// # Errors
    /// A word that means none of these.
    pub(in crate::cli) fn side(&self, words: &str) -> Result<Self, Usage> {
        let mut side = self.clone();
        for word in words.split(',').filter(|word| !word.is_empty()) {
            let number = |key: &str| word.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')?.parse().ok());
            if let Ok(dtype) = Weights::from_str(word, true) {
                side.dtype = dtype;
            } else if let Ok(level) = Division::from_str(word, true) {
                side.level = level;
            } else if let Ok(isa) = Instructions::from_str(word, true) {
                side.isa = Some(isa);
            } else if let Ok(mode) = Start::from_str(word, true) {
                side.mode = mode;
            } else if let Ok(chooser) = Chooser::from_str(word, true) {
                side.sampling = chooser;
            } else if let Some(block) = number("kv-block") {
                side.kv_block = Some(block);
            } else if let Some(threads) = number("threads") {
                side.threads = Some(threads);
            } else if let Some(model) = word.strip_prefix("model=") {
                model.clone_into(&mut side.model);
            } else {
                let words = [
                    names::<Weights>(),
                    names::<Division>(),
                    names::<Instructions>(),
                    names::<Start>(),
                    names::<Chooser>(),
                ];
                return Err(Usage(format!(
                    "'{word}' describes no side of a comparison; the words are {}, kv-block=N, threads=N, model=NAME|DIR",
                    words.join(", ")
                )));
            }
        }
        Ok(side)
    }

    /// The same as the engine takes it.
    ///
    /// # Errors
    /// What an injection does not understand, and a prompt that cannot be read.
    pub(in crate::cli) fn options(&self) -> anyhow::Result<RunOptions> {
        let default = RunOptions::default();
        let ids = self.prompt_ids.as_deref().map(prompt_ids::read).transpose()?.unwrap_or_default();
        let mut options = RunOptions {
            target: self.target()?,
            dtype: self.dtype.dtype(),
            mode: match self.mode {
                Start::Eager => Mode::Eager,
                Start::Graph => Mode::Graph,
                Start::Piecewise => Mode::Piecewise,
            },
            level: match self.level {
                Division::Composite => Level::Composite,
                Division::Canonical => Level::Canonical,
                Division::Fused => Level::Fused,
            },
            sync: match self.sync {
                Waits::Step => Sync::PerStep,
                Waits::Layer => Sync::PerLayer,
                Waits::Op => Sync::PerOp,
            },
            sampling: match self.sampling {
                Chooser::Device => Sampling::Device,
                Chooser::Host => Sampling::Host,
            },
            observer: match self.observer {
                Watching::Off => Observer::Off,
                Watching::Host => Observer::Host,
                Watching::Device => Observer::Device,
                Watching::Graph => Observer::Graph,
                Watching::Node => Observer::Node,
            },
            layout: self.kv_block.map_or(KvLayout::Contiguous, KvLayout::Paged),
            batch: self.batch,
            prompt: ids.first().map_or(self.prompt_len, Vec::len),
            ids,
            seed: self.seed,
            logits: if self.logits.is_some() { Logits::All } else { Logits::Last },
            // The prompt's own pass gives the first token.
            steps: self.r#gen.saturating_sub(1),
            threads: self.threads.unwrap_or((default.threads / self.tp.max(1)).max(1)),
            isa: match self.isa {
                Some(Instructions::Portable) => Isa::Portable,
                Some(Instructions::Avx2) => Isa::Avx2,
                Some(Instructions::Avx512) => Isa::Avx512,
                Some(Instructions::Avx512Bf16) => Isa::Avx512Bf16,
                Some(Instructions::Amx) => Isa::Amx,
                None => default.isa,
            },
            ..default
        };
        self.inject.iter().try_for_each(|text| inject(text, &mut options))?;
        Ok(options)
    }

    /// The device.
    ///
    /// # Errors
    /// Options that mean nothing to a device of that kind.
    pub(in crate::cli) fn target(&self) -> Result<Target, Usage> {
        let target = self.on.target(&[
            ("--threads", self.threads.is_some()),
            ("--isa", self.isa.is_some()),
            ("--ranks processes", self.ranks == super::RanksAre::Processes),
        ])?;
        if target == Target::Cpu && !self.tools.is_empty() {
            return Err(Usage("--tools asks tools of a device; leave it out, or choose another --backend".to_owned()));
        }
        Ok(target)
    }

    /// Takes a control of a plan that is an option of the engine; others are no concern of its.
    ///
    /// # Errors
    /// Why the option cannot have that value.
    pub(in crate::cli) fn control(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<usize>().map_err(|_| "write a number".to_owned());
        match key {
            "model.name" => value.clone_into(&mut self.model),
            "precision.weights" => {
                self.dtype = Weights::from_str(value, true)
                    .map_err(|_| format!("the engine has weights of {}", names::<Weights>()))?;
            }
            "caps.batch" => self.batch = number()?,
            "workload.prompt_len" => self.prompt_len = number()?,
            // The prompt's own pass gives the first token.
            "workload.output_len" => self.r#gen = number()?.saturating_add(1),
            "workload.seed" => self.seed = value.parse().map_err(|_| "write a number".to_owned())?,
            "parallel.tp" => self.tp = number()?,
            _ => (),
        }
        Ok(())
    }

    /// Which model it is of.
    pub(in crate::cli) fn identity(&self) -> Model<'_> {
        Model { name: &self.model, weights_seed: preset(&self.model).map(|_| self.seed) }
    }

    /// The shape of the model and where its weights come from.
    pub(in crate::cli) fn source(&self) -> anyhow::Result<(Config, Box<dyn Source>)> {
        if let Some(config) = preset(&self.model) {
            return Ok((config, Box::new(Seeded(self.seed))));
        }
        let directory = Path::new(&self.model);
        if !directory.is_dir() {
            return Err(Usage(format!(
                "'{}' is neither a directory nor a named shape; the shapes are {}",
                self.model,
                PRESETS.join(", ")
            ))
            .into());
        }
        Ok((Config::read(&directory.join("config.json"))?, Box::new(Checkpoint::open(directory)?)))
    }
}

/// The words of an option.
fn names<T: ValueEnum>() -> String {
    let words = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    words.map(|word| word.get_name().to_owned()).collect::<Vec<_>>().join(", ")
}
