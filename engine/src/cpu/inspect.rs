//! A step one operator at a time, whose operands can be read and replaced between two operators: how the numbers of two
//! devices are compared.

use super::{Cpu, Driver, Prepared, ops::Part};
use crate::{Batch, Error, program::BufId};

impl Prepared {
    /// Content of a buffer, (rows, width), to be replaced before the operator that reads it.
    pub fn values_mut(&mut self, id: BufId) -> &mut [f32] {
        self.buffers.get_mut(usize::from(id.0)).map_or(&mut [], |buffer| buffer.as_mut_slice())
    }
}

impl Cpu {
    /// Runs one operator of a step on what its buffers hold. The calling thread does the shares of all workers, one after the
    /// other: what comes out is the same, and nobody has to be woken for an operator of a few microseconds.
    ///
    /// # Errors
    /// Those of [`Cpu::run`], and [`Error::Request`] on a rank of several: the others would wait for the rest of the step.
    pub fn run_op(&mut self, prepared: &mut Prepared, batch: &Batch, op: usize) -> Result<(), Error> {
        if self.ranks.is_some() {
            return Err(Error::Request("operators of a rank cannot run alone; compare runs of one rank".to_owned()));
        }
        let (step, Driver { pool, .. }) = self.step(prepared, batch)?;
        let of = pool.workers();
        (0..of).for_each(|number| step.compute(op, Part { number, of }));
        Ok(())
    }

    /// Keys and values that the cache of a layer holds for the tokens of a batch, (tokens, keys of all heads and then values).
    pub fn cached(&self, layer: u16, batch: &Batch) -> Vec<f32> {
        let mut values = Vec::new();
        for (half, place) in self.places(batch) {
            let cache = self.cache.get(usize::from(layer)).map_or(&[][..], |cache| cache[half].as_slice());
            values.extend_from_slice(cache.get(place..place + self.config.head_dim).unwrap_or_default());
        }
        values
    }

    /// Replaces what [`Cpu::cached`] gives.
    pub fn set_cached(&mut self, layer: u16, batch: &Batch, values: &[f32]) {
        let (places, width) = (self.places(batch), self.config.head_dim);
        let Some(cache) = self.cache.get_mut(usize::from(layer)) else { return };
        for ((half, place), head) in places.into_iter().zip(values.chunks_exact(width)) {
            if let Some(to) = cache[half].as_mut_slice().get_mut(place..place + width) {
                to.copy_from_slice(head);
            }
        }
    }

    /// Half of the cache and place in it of every head of the tokens of a batch; of tokens beyond the cache there are none.
    fn places(&self, batch: &Batch) -> Vec<(usize, usize)> {
        let heads = self.config.kv_heads / self.weights.shard.of.max(1);
        let tokens = batch.sequences.iter().zip(&batch.positions).map(|(s, p)| (*s as usize, *p as usize));
        let within = tokens.filter(|(s, p)| *s < self.plan.sequences && *p < self.plan.context);
        within
            .flat_map(|(sequence, position)| {
                (0..2)
                    .flat_map(move |half| (0..heads).map(move |head| (half, self.plan.place(sequence, position, head))))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::{collections::BTreeSet, sync::Arc};

    use super::*;
    use crate::{
        Config, Dtype, KvLayout, Synthetic, Weights,
        cpu::{CpuOptions, Isa},
        preset,
        program::{Change, Level, Logits, OpName, Program, Shape, Written},
        record::Log,
    };

    fn cpu(config: &Config, layout: KvLayout) -> Cpu {
        let weights = Arc::new(Weights::load(config, Dtype::F32, &mut Synthetic).unwrap());
        let options = CpuOptions { threads: 2, isa: Isa::available()[0], layout, sequences: 2, context: 16 };
        Cpu::new(config.clone(), weights, options).unwrap()
    }

    /// Two sequences, of which each has three tokens.
    fn batch() -> Batch {
        Batch { tokens: vec![3, 1, 4, 1, 5, 9], positions: vec![0, 1, 2, 0, 1, 2], sequences: vec![0, 0, 0, 1, 1, 1] }
    }

    /// A step of all operators that one rank has.
    fn program(config: &Config, level: Level) -> Program {
        let shape = Shape { tokens: 6, sequences: 2, logits: Logits::Last, level };
        let mut program = Program::plan(config, shape);
        program.change(Change::CastBefore(OpName::DownProj), config);
        program
    }

    #[test]
    fn a_step_is_the_same_one_operator_at_a_time() {
        let config = Config { qk_norm: true, ..preset("tiny").unwrap() };
        for level in [Level::Composite, Level::Canonical, Level::Fused] {
            let (mut whole, mut single) = (cpu(&config, KvLayout::Contiguous), cpu(&config, KvLayout::Paged(2)));
            let (mut expected, mut own) =
                (whole.prepare(program(&config, level)).unwrap(), single.prepare(program(&config, level)).unwrap());
            whole.run(&mut expected, &batch(), &mut Log::off()).unwrap();
            for op in 0..own.program().ops.len() {
                single.run_op(&mut own, &batch(), op).unwrap();
            }
            let logits = own.program().logits;
            assert_eq!(own.values(logits), expected.values(logits), "{level:?}");
            assert_eq!(single.cached(1, &batch()), whole.cached(1, &batch()), "{level:?}");
            assert_eq!(single.cached(1, &batch()).len(), 6 * 2 * config.kv_width());
        }
    }

    #[test]
    fn what_is_put_into_the_cache_is_there_and_nowhere_else() {
        let config = preset("tiny").unwrap();
        let mut cpu = cpu(&config, KvLayout::Paged(2));
        let one = Batch { tokens: vec![7], positions: vec![2], sequences: vec![1] };
        let values: Vec<f32> = (1..=2 * config.kv_width()).map(|i| i as f32).collect();
        cpu.set_cached(1, &one, &values);
        assert_eq!(cpu.cached(1, &one), values);
        let total = |cpu: &Cpu| cpu.cache.iter().flatten().flat_map(|half| half.as_slice::<f32>()).sum::<f32>();
        assert_eq!(total(&cpu), values.iter().sum::<f32>());
        let beyond = Batch { positions: vec![99], ..one };
        assert!(cpu.cached(1, &beyond).is_empty());
    }

    /// What a program says that an operator writes is all that it writes, whatever the level.
    #[test]
    fn operators_write_what_they_say_and_all_of_it() {
        let dense = Config { qk_norm: true, ..preset("tiny").unwrap() };
        let mixture = preset("tiny-moe").unwrap();
        let mut seen = BTreeSet::new();
        let levels = [Level::Composite, Level::Canonical, Level::Fused];
        for (config, level) in
            [dense, mixture].into_iter().flat_map(|config| levels.map(|level| (config.clone(), level)))
        {
            let mut cpu = cpu(&config, KvLayout::Contiguous);
            let mut prepared = cpu.prepare(program(&config, level)).unwrap();
            let ids: Vec<BufId> = (0..prepared.buffers.len() as u16).map(BufId).collect();
            for op in 0..prepared.program().ops.len() {
                // Values that no operator gives, so that what is written differs.
                let call = prepared.program().ops[op].clone();
                let written = prepared.program().writes(&call, &config);
                let before: Vec<Vec<f32>> = ids.iter().map(|id| prepared.values(*id).to_vec()).collect();
                let cached = cpu.cached(call.id.layer.unwrap_or(0), &batch());
                cpu.run_op(&mut prepared, &batch(), op).unwrap();
                for (id, before) in ids.iter().zip(&before) {
                    let width = prepared.program().buffer(*id).unwrap().width;
                    let columns = written.iter().find_map(|w| match w {
                        Written::Columns(of, columns) if of == id => Some(columns.clone()),
                        _ => None,
                    });
                    let columns = columns.unwrap_or(0..0);
                    for (at, (new, old)) in prepared.values(*id).iter().zip(before).enumerate() {
                        let inside = columns.contains(&(at % width));
                        assert!(inside || new.to_bits() == old.to_bits(), "{} {level:?} column {at}", call.name.text());
                    }
                    let changed = prepared.values(*id).iter().zip(before).any(|(new, old)| new != old);
                    if !columns.is_empty() && changed {
                        seen.insert(call.name.text());
                    }
                }
                let is_cache = written.contains(&Written::Cache(call.id.layer.unwrap_or(0)));
                let changed = cpu.cached(call.id.layer.unwrap_or(0), &batch()) != cached;
                assert_eq!(is_cache, changed, "{} {level:?}", call.name.text());
            }
        }
        // All but the choice of tokens, the collectives and what moves what is there already.
        for name in OpName::ALL {
            let silent = matches!(
                name,
                OpName::Argmax
                    | OpName::AllReduce
                    | OpName::AllGather
                    | OpName::KvCacheAppend
                    | OpName::AttentionDecode
            );
            assert!(silent || seen.contains(name.text()), "{} wrote nothing", name.text());
        }
    }
}
