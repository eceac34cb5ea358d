//! Programs of one kind of operator on the engine's CPU: what is timed is what a decode step runs.

use std::sync::Arc;

use engine::{
    Config, Dtype, Error, Shard, Source, Weights,
    cpu::{Batch, Cpu, CpuOptions, Prepared},
    preset,
    program::{BufDesc, BufId, Level, Logits, OpCall, OpId, OpKind, OpName, Program, Shape},
    record::Log,
};

use crate::Setup;

/// Weights that are all the same small number: filling them takes no time worth speaking of, and no kernel is faster for it.
struct Same(Vec<f32>);

impl Source for Same {
    fn rows(&mut self, _: &str, rows: usize, width: usize, each: &mut dyn FnMut(usize, &[f32])) -> Result<(), Error> {
        self.0.resize(width, 0.0625);
        self.0.fill(0.0625);
        (0..rows).for_each(|row| each(row, &self.0));
        Ok(())
    }
}

/// The smallest model of which everything but `shape` is next to nothing.
pub fn model(shape: impl FnOnce(&mut Config)) -> Result<Config, String> {
    let mut config = preset("tiny").ok_or("the engine has no tiny model")?;
    config.vocab = 2;
    (config.hidden, config.intermediate, config.layers) = (2, 2, 1);
    (config.heads, config.kv_heads, config.head_dim) = (1, 1, 2);
    (config.tied, config.qkv_bias, config.qk_norm) = (true, false, false);
    shape(&mut config);
    Ok(config)
}

/// A model on the CPU and one program on it.
pub struct Device {
    cpu: Cpu,
    prepared: Prepared,
    batch: Batch,
    ops: usize,
}

impl Device {
    /// `tokens` tokens at `position` of one sequence each, with buffers of (rows, width) and these operators.
    pub fn new(
        setup: &Setup,
        config: Config,
        dtype: Dtype,
        (tokens, position): (usize, usize),
        buffers: &[(usize, usize)],
        ops: Vec<(OpName, OpKind)>,
    ) -> Result<Self, String> {
        let said = |error: Error| error.to_string();
        let weights = Arc::new(Weights::load(&config, dtype, &mut Same(Vec::new())).map_err(said)?);
        let options =
            CpuOptions { threads: setup.threads, isa: setup.isa, sequences: tokens, ..CpuOptions::new(position + 1) };
        let cpu = Cpu::new(config, weights, options).map_err(said)?;
        let call =
            |(slot, (name, kind)): (u16, (OpName, OpKind))| OpCall { id: OpId { layer: None, slot }, name, kind };
        let none = BufId(0);
        let program = Program {
            shape: Shape { tokens, sequences: tokens, logits: Logits::Last, level: Level::Fused },
            buffers: buffers
                .iter()
                .map(|(rows, width)| BufDesc { name: "probe", rows: *rows, width: *width })
                .collect(),
            ops: (0..).zip(ops).map(call).collect(),
            residual: none,
            normed: none,
            logits: none,
            shard: Shard::WHOLE,
        };
        let ops = program.ops.len();
        let prepared = cpu.prepare(program).map_err(said)?;
        let sequences = 0..u32::try_from(tokens).unwrap_or(u32::MAX);
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let batch =
            Batch { tokens: vec![0; tokens], positions: vec![position; tokens], sequences: sequences.collect() };
        Ok(Self { cpu, prepared, batch, ops })
    }

    /// A chain of `n` operators with as good as nothing to do.
    pub fn empty(setup: &Setup, n: usize) -> Result<Self, String> {
        let add = (OpName::ResidualAdd, OpKind::Add { x: BufId(0), delta: BufId(1) });
        Self::new(setup, model(|_| ())?, Dtype::F32, (1, 0), &[(1, 2), (1, 2)], vec![add; n])
    }

    /// Operators of the program.
    pub fn ops(&self) -> usize {
        self.ops
    }

    /// Runs the program operator by operator.
    pub fn run(&mut self, log: &mut Log) -> Result<(), String> {
        let ran = self.cpu.run(&mut self.prepared, &self.batch, log);
        ran.map(|tokens| drop(std::hint::black_box(tokens))).map_err(|error| error.to_string())
    }

    /// Runs the program in one go.
    pub fn replay(&mut self, log: &mut Log) -> Result<(), String> {
        let ran = self.cpu.replay(&mut self.prepared, &self.batch, log);
        ran.map(|tokens| drop(std::hint::black_box(tokens))).map_err(|error| error.to_string())
    }
}
