//! The engine against Hugging Face `transformers` in single precision: tiny checkpoints of every family with the logits,
//! hidden states and greedy tokens that it gave. They are looked for in the directory that `STRATO_REFERENCE` names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use engine::{
    Batch, Checkpoint, Dtype, KvLayout, Shard, Weights,
    cpu::{Communicator, Cpu, CpuOptions, Isa, PATIENCE, Prepared, Region, World},
    program::{Level, Logits, Program, Shape},
    record::Log,
};

mod golden;

use golden::{Golden, TOLERANCE, greatest_difference};

trait OnCpu {
    fn weights(&self, dtype: Dtype) -> Arc<Weights>;
    fn cpu(&self, dtype: Dtype, isa: Isa, threads: usize, layout: KvLayout) -> Cpu;
    fn program(&self, tokens: usize, logits: Logits, level: Level) -> Program;
    fn whole_pass(&self, cpu: &mut Cpu, level: Level) -> Prepared;
}

impl OnCpu for Golden {
    fn weights(&self, dtype: Dtype) -> Arc<Weights> {
        Arc::new(Weights::load(&self.config, dtype, &mut Checkpoint::open(&self.directory).unwrap()).unwrap())
    }

    fn cpu(&self, dtype: Dtype, isa: Isa, threads: usize, layout: KvLayout) -> Cpu {
        let options = CpuOptions { threads, isa, layout, sequences: 1, context: 64 };
        Cpu::new(self.config.clone(), self.weights(dtype), options).unwrap()
    }

    fn program(&self, tokens: usize, logits: Logits, level: Level) -> Program {
        Program::plan(&self.config, Shape { tokens, sequences: 1, logits, level })
    }

    fn whole_pass(&self, cpu: &mut Cpu, level: Level) -> Prepared {
        let mut prepared = cpu.prepare(self.program(self.ids.len(), Logits::All, level)).unwrap();
        cpu.run(&mut prepared, &Batch::prefill(&self.ids, 0), &mut Log::off()).unwrap();
        prepared
    }
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn logits_are_those_of_transformers_whatever_the_instructions_threads_and_fusion() {
    for golden in Golden::all() {
        let expected = golden.floats("logits");
        for isa in Isa::available() {
            for (threads, level, layout) in [
                (1, Level::Canonical, KvLayout::Contiguous),
                (2, Level::Fused, KvLayout::Contiguous),
                (3, Level::Canonical, KvLayout::Paged(4)),
            ] {
                let mut cpu = golden.cpu(Dtype::F32, isa, threads, layout);
                let prepared = golden.whole_pass(&mut cpu, level);
                let difference = greatest_difference(prepared.values(prepared.program().logits), &expected);
                println!("{:?} {isa:?} {threads} threads {level:?} {layout:?}: {difference:e}", golden.config.family);
                assert!(difference <= TOLERANCE, "{difference}");
            }
        }
    }
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn hidden_states_are_those_of_transformers_after_every_layer() {
    for golden in Golden::all() {
        let layers = golden.config.layers;
        for count in 0..=layers {
            let mut cpu = golden.cpu(Dtype::F32, Isa::available()[0], 2, KvLayout::Contiguous);
            let mut program = golden.program(golden.ids.len(), Logits::All, Level::Canonical);
            let value = if count == layers { program.normed } else { program.residual };
            if count < layers {
                let in_layers = |layer: Option<u16>| layer.is_some_and(|layer| usize::from(layer) < count);
                program.ops.retain(|op| op.name.text() == "embed" || in_layers(op.id.layer));
            }
            let mut prepared = cpu.prepare(program).unwrap();
            cpu.run(&mut prepared, &Batch::prefill(&golden.ids, 0), &mut Log::off()).unwrap();
            let difference = greatest_difference(prepared.values(value), &golden.floats(&format!("h{count}")));
            assert!(difference <= TOLERANCE, "{:?} layer {count}: {difference}", golden.config.family);
        }
    }
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn greedy_tokens_are_those_of_transformers_by_steps_and_by_replay() {
    for golden in Golden::all() {
        for (replay, level) in [(false, Level::Canonical), (true, Level::Fused)] {
            let mut cpu = golden.cpu(Dtype::F32, Isa::available()[0], 2, KvLayout::Paged(16));
            let mut prefill = cpu.prepare(golden.program(golden.ids.len(), Logits::Last, level)).unwrap();
            let mut decode = cpu.prepare(golden.program(1, Logits::Last, level)).unwrap();
            let mut tokens = golden.ids.clone();
            let mut next = cpu.run(&mut prefill, &Batch::prefill(&golden.ids, 0), &mut Log::off()).unwrap();
            while tokens.len() < golden.tokens.len() {
                tokens.extend(&next);
                let batch = Batch::prefill(&next, tokens.len() as u32 - 1);
                next = if replay {
                    cpu.replay(&mut decode, &batch, &mut Log::off())
                } else {
                    cpu.run(&mut decode, &batch, &mut Log::off())
                }
                .unwrap();
            }
            assert_eq!(tokens, golden.tokens, "{:?} {level:?} replay {replay}", golden.config.family);
        }
    }
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn prefill_and_decode_give_the_logits_of_a_whole_pass() {
    for golden in Golden::all() {
        let expected = golden.floats("logits");
        let vocab = golden.config.vocab;
        let mut cpu = golden.cpu(Dtype::F32, Isa::available()[0], 2, KvLayout::Paged(3));
        let mut first = cpu.prepare(golden.program(3, Logits::All, Level::Fused)).unwrap();
        cpu.run(&mut first, &Batch::prefill(&golden.ids[..3], 0), &mut Log::off()).unwrap();
        let mut decode = cpu.prepare(golden.program(1, Logits::All, Level::Fused)).unwrap();
        for (position, token) in golden.ids.iter().enumerate().skip(3) {
            cpu.run(&mut decode, &Batch::prefill(&[*token], position as u32), &mut Log::off()).unwrap();
            let logits = decode.values(decode.program().logits);
            let difference = greatest_difference(logits, &expected[position * vocab..(position + 1) * vocab]);
            assert!(difference <= TOLERANCE, "{:?} position {position}: {difference}", golden.config.family);
        }
    }
}

/// What a rank of two gives: the logits of the whole prompt and the tokens after it.
fn rank_of_two(golden: &Golden, rank: Communicator, level: Level, replay: bool) -> (Vec<f32>, Vec<u32>) {
    let shard = rank.shard();
    let source = &mut Checkpoint::open(&golden.directory).unwrap();
    let weights = Arc::new(Weights::load_part(&golden.config, shard, Dtype::F32, source).unwrap());
    let isa = Isa::available()[0];
    let options = CpuOptions { threads: 2, isa, layout: KvLayout::Paged(4), sequences: 1, context: 64 };
    let mut cpu = Cpu::of_rank(golden.config.clone(), weights, options, Some(rank)).unwrap();
    let program = |tokens, logits| {
        Program::of_rank(&golden.config, Shape { tokens, sequences: 1, logits, level }, shard).unwrap()
    };
    let mut prefill = cpu.prepare(program(golden.ids.len(), Logits::All)).unwrap();
    let mut decode = cpu.prepare(program(1, Logits::Last)).unwrap();
    cpu.meet().unwrap();
    let mut next = cpu
        .run(&mut prefill, &Batch::prefill(&golden.ids, 0), &mut Log::off())
        .unwrap()
        .split_off(golden.ids.len() - 1);
    let mut tokens = golden.ids.clone();
    while tokens.len() < golden.tokens.len() {
        tokens.extend(&next);
        let batch = Batch::prefill(&next, tokens.len() as u32 - 1);
        let step = if replay { Cpu::replay } else { Cpu::run };
        next = step(&mut cpu, &mut decode, &batch, &mut Log::off()).unwrap();
    }
    cpu.leave();
    (prefill.values(prefill.program().logits).to_vec(), tokens)
}

#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn two_ranks_give_the_logits_and_tokens_of_one() {
    for golden in Golden::all() {
        let expected = golden.floats("logits");
        for (level, replay) in [(Level::Canonical, false), (Level::Fused, true)] {
            let slot = Program::of_rank(
                &golden.config,
                Shape { tokens: golden.ids.len(), sequences: 1, logits: Logits::All, level },
                Shard { rank: 1, of: 2 },
            );
            let world = World { ranks: 2, workers: 2, slot: slot.unwrap().largest_exchange() };
            let region = Arc::new(Region::of_threads(world).unwrap());
            let rank = |number| Communicator::new(Arc::clone(&region), number, PATIENCE).unwrap();
            let ranks = [rank(0), rank(1)];
            let given = std::thread::scope(|scope| {
                let run = |rank| scope.spawn(|| rank_of_two(&golden, rank, level, replay));
                ranks.map(run).map(|thread| thread.join().unwrap())
            });
            for (logits, tokens) in &given {
                let difference = greatest_difference(logits, &expected);
                println!("{:?} {level:?} two ranks: {difference:e}", golden.config.family);
                assert!(difference <= TOLERANCE, "{:?} {level:?}: {difference}", golden.config.family);
                assert_eq!(*tokens, golden.tokens, "{:?} {level:?}", golden.config.family);
            }
            assert_eq!(given[0].0, given[1].0, "ranks add in one order");
        }
    }
}

/// Weights rounded to 8 bits of mantissa change a logit by about 2^-9 of the size of its terms; three layers of the tiny
/// models stay within these shares of the greatest logit, found by measuring and doubled.
#[test]
#[ignore = "needs STRATO_REFERENCE, the folder of reference checkpoints"]
fn narrower_weights_stay_within_their_precision() {
    for golden in Golden::all() {
        let expected = golden.floats("logits");
        let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
        for (dtype, share) in [(Dtype::F16, 0.0025), (Dtype::Bf16, 0.0125), (Dtype::Q8, 0.06)] {
            for isa in Isa::available() {
                let mut cpu = golden.cpu(dtype, isa, 2, KvLayout::Contiguous);
                let prepared = golden.whole_pass(&mut cpu, Level::Fused);
                let difference = greatest_difference(prepared.values(prepared.program().logits), &expected) / most;
                println!("{:?} {dtype:?} {isa:?}: {difference}", golden.config.family);
                assert!(difference <= share && difference > 0.0, "{:?} {dtype:?}: {difference}", golden.config.family);
            }
        }
    }
}
