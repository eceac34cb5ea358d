//! What is run, and how.

use crate::{
    Config, Dtype, Error, KvLayout, Shard, Target,
    cpu::{CpuOptions, Isa},
    faults::Faults,
    options::{Mode, Sampling, Sync},
    program::{Change, Level, Logits, OpName, Program, Shape},
    record::Observer,
};

/// What is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What it runs on.
    pub target: Target,
    /// Type of the weights.
    pub dtype: Dtype,
    /// How a decode step is started.
    pub mode: Mode,
    /// How operators are divided.
    pub level: Level,
    /// Division of the cache.
    pub layout: KvLayout,
    /// Sequences that are decoded together.
    pub batch: usize,
    /// Tokens of the prompt of each sequence.
    pub prompt: usize,
    /// The prompt of each sequence, over and over where these are fewer; where there is none, prompts are made from `seed`.
    pub ids: Vec<Vec<u32>>,
    /// What made prompts begin with; the weights have a source of their own.
    pub seed: u64,
    /// Rows of logits that the pass of the prompt computes.
    pub logits: Logits,
    /// Decode steps.
    pub steps: usize,
    /// Threads.
    pub threads: usize,
    /// Instruction set.
    pub isa: Isa,
    /// When the host waits.
    pub sync: Sync,
    /// Who chooses the next token.
    pub sampling: Sampling,
    /// Changes of form of the steps.
    pub changes: Vec<Change>,
    /// Sequences that are computed, where these are more than are asked for.
    pub padded: Option<usize>,
    /// What the run suffers.
    pub faults: Faults,
    /// What of it is recorded.
    pub observer: Observer,
}

impl Default for RunOptions {
    /// One sequence, a prompt of 64 tokens, 64 steps, operators one by one on every core.
    fn default() -> Self {
        let cpu = CpuOptions::new(0);
        Self {
            target: Target::default(),
            dtype: Dtype::Bf16,
            mode: Mode::Eager,
            level: Level::Canonical,
            layout: KvLayout::Contiguous,
            batch: 1,
            prompt: 64,
            ids: Vec::new(),
            seed: 0,
            logits: Logits::Last,
            steps: 64,
            threads: cpu.threads,
            isa: cpu.isa,
            sync: Sync::default(),
            sampling: Sampling::default(),
            changes: Vec::new(),
            padded: None,
            faults: Faults::default(),
            observer: Observer::default(),
        }
    }
}

impl RunOptions {
    /// The programs of the prompt and of a decode step, as a rank runs them.
    ///
    /// # Errors
    /// [`Error::Request`] when the ranks cannot have equal parts.
    pub fn programs(&self, config: &Config, shard: Shard) -> Result<[Program; 2], Error> {
        let part = config.part(shard)?;
        let program = |tokens, logits| -> Result<Program, Error> {
            let shape = Shape { tokens, sequences: self.sequences(), logits, level: self.level };
            let mut program = Program::of_rank(config, shape, shard)?;
            self.changes.iter().for_each(|change| program.change(*change, &part));
            if self.sampling == Sampling::Host {
                program.ops.retain(|op| op.name != OpName::Argmax);
            }
            Ok(program)
        };
        let prompt = program(self.sequences().saturating_mul(self.prompt), self.logits)?;
        Ok([prompt, program(self.sequences(), Logits::Last)?])
    }

    /// Workers of the device that stamp their own shares of an operator: what a log of the run needs room for.
    pub fn workers(&self) -> usize {
        self.target.workers(self.threads)
    }

    /// Sequences that are computed.
    pub(crate) fn sequences(&self) -> usize {
        self.padded.unwrap_or(self.batch)
    }
}
