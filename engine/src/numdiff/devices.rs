//! The devices of a comparison: the two sides as they are, and beside them the operators of both on the same input.

use std::sync::Arc;

use super::align::Value;
use crate::{
    Batch, Config, Error, Shard, Weights,
    cpu::{Cpu, CpuOptions, Prepared},
    program::Program,
    record::Log,
    run::{Mode, RunOptions},
};

/// A device with the programs of the prompt and of a decode step.
pub(super) struct Device {
    cpu: Cpu,
    prepared: [Prepared; 2],
    mode: Mode,
}

impl Device {
    /// # Errors
    /// Those of [`Cpu::new`] and [`Cpu::prepare`], and [`Error::Unavailable`] of a way of starting that the CPU has not.
    pub(super) fn new(config: &Config, weights: &Arc<Weights>, options: &RunOptions) -> Result<Self, Error> {
        if options.mode == Mode::Piecewise {
            return Err(Mode::no_pieces("cpu"));
        }
        let cpu = CpuOptions {
            threads: options.threads,
            isa: options.isa,
            layout: options.layout,
            sequences: options.sequences(),
            context: options.prompt.saturating_add(options.steps),
        };
        let mut cpu = Cpu::new(config.clone(), Arc::clone(weights), cpu)?;
        cpu.suffer(options.sync, options.faults.clone())?;
        let [prompt, decode] = options.programs(config, Shard::WHOLE)?;
        Ok(Self { prepared: [cpu.prepare(prompt)?, cpu.prepare(decode)?], cpu, mode: options.mode })
    }

    /// The program of the prompt, or of a decode step.
    pub(super) fn program(&self, phase: usize) -> &Program {
        self.prepared[phase].program()
    }

    /// Runs operators of a step one by one.
    pub(super) fn run(&mut self, phase: usize, batch: &Batch, ops: std::ops::Range<usize>) -> Result<(), Error> {
        ops.into_iter().try_for_each(|op| self.cpu.run_op(&mut self.prepared[phase], batch, op))
    }

    /// Runs a step as the side starts it, on the cache that it left; whether the logits are those that the operators gave
    /// one by one.
    pub(super) fn is_repeated(&mut self, phase: usize, batch: &Batch) -> Result<bool, Error> {
        let prepared = &mut self.prepared[phase];
        let logits = prepared.program().logits;
        let before = prepared.values(logits).to_vec();
        match self.mode {
            Mode::Graph if phase > 0 => self.cpu.replay(prepared, batch, &mut Log::off())?,
            _ => self.cpu.run(prepared, batch, &mut Log::off())?,
        };
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        Ok(bits(prepared.values(logits)) == bits(&before))
    }

    /// Most likely token of each row of logits.
    pub(super) fn most_likely(&self, phase: usize) -> Vec<u32> {
        self.prepared[phase].most_likely()
    }

    /// Logits of a step, (rows, vocab).
    pub(super) fn logits(&self, phase: usize) -> &[f32] {
        self.prepared[phase].values(self.program(phase).logits)
    }

    /// A value of a step; `side` is that whose program this device has.
    pub(super) fn read(&self, phase: usize, batch: &Batch, value: &Value, side: usize) -> Vec<f32> {
        match value {
            Value::Cache(layer) => self.cpu.cached(*layer, batch),
            Value::Columns(ids, columns) => {
                let width = self.program(phase).buffer(ids[side]).map_or(1, |buffer| buffer.width.max(1));
                let rows = self.prepared[phase].values(ids[side]).chunks_exact(width);
                rows.flat_map(|row| row.get(columns.clone()).unwrap_or_default()).copied().collect()
            }
        }
    }

    /// Replaces a value.
    pub(super) fn write(&mut self, phase: usize, batch: &Batch, value: &Value, side: usize, content: &[f32]) {
        match value {
            Value::Cache(layer) => self.cpu.set_cached(*layer, batch, content),
            Value::Columns(ids, columns) => {
                let width = self.program(phase).buffer(ids[side]).map_or(1, |buffer| buffer.width.max(1));
                let rows = self.prepared[phase].values_mut(ids[side]).chunks_exact_mut(width);
                for (row, content) in rows.zip(content.chunks_exact(columns.len().max(1))) {
                    if let Some(to) = row.get_mut(columns.clone()) {
                        to.copy_from_slice(content);
                    }
                }
            }
        }
    }
}
