//! A run: a prompt is read, and then tokens are decoded step by step.

use std::borrow::Cow;

use crate::{
    Backend, Config, Device, Error, PlanId, Shard, Source, Target,
    comm::Communicator,
    cpu::most_likely,
    hook::Thieves,
    program::{Logits, Program},
    record::{Kind, Log, Span},
};

mod open;
mod options;
mod prompt;

pub use crate::options::{Mode, Sampling, Sync};
pub use open::open;
pub use options::RunOptions;
pub(crate) use prompt::next_batch;

/// A model made ready to run.
pub struct Engine {
    config: Config,
    options: RunOptions,
    shard: Shard,
    backend: Box<dyn Backend>,
    prefill: (PlanId, Program),
    decode: (PlanId, Program),
}

/// What a step gave; told as it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDone {
    /// Number; the prompt is step 0.
    pub number: u32,
    /// From when to when, ns.
    pub span: Span,
    /// Next token of each sequence.
    pub tokens: Vec<u32>,
    /// Logits that are NaN or infinite; `None` where the logits stayed on a device. The token that follows such logits means
    /// nothing.
    pub not_finite: Option<u64>,
}

/// How many of these numbers are NaN or infinite.
pub fn not_finite(values: &[f32]) -> u64 {
    // In parts that a counter of 32 bits holds, which the compiler counts many at a time.
    let count = |part: &[f32]| part.iter().map(|value| u32::from(!value.is_finite())).sum::<u32>();
    values.chunks(1 << 16).map(|part| u64::from(count(part))).sum()
}

impl Engine {
    /// Loads the weights and makes programs and memory ready. `log` gets what that took.
    ///
    /// # Errors
    /// Those of the weights, and [`Error::Request`] when the options fit neither the model nor the memory.
    pub fn new(config: Config, source: &mut dyn Source, options: RunOptions, log: &mut Log) -> Result<Self, Error> {
        Self::of_rank(config, source, options, None, log)
    }

    /// Elements of the largest part that a rank brings to a collective of such a run.
    ///
    /// # Errors
    /// [`Error::Request`] when the ranks cannot have equal parts.
    pub fn largest_exchange(config: &Config, options: &RunOptions, ranks: usize) -> Result<usize, Error> {
        let shard = Shard { rank: ranks.saturating_sub(1), of: ranks };
        let [prefill, decode] = options.programs(config, shard)?;
        Ok(prefill.largest_exchange().max(decode.largest_exchange()))
    }

    /// Loads a rank's part of the weights; `ranks` is the way to the others. See [`Engine::new`].
    ///
    /// # Errors
    /// Those of [`Engine::new`], and [`Error::Request`] when the ranks cannot have equal parts.
    pub fn of_rank(
        config: Config,
        source: &mut dyn Source,
        options: RunOptions,
        ranks: Option<Communicator>,
        log: &mut Log,
    ) -> Result<Self, Error> {
        let shard = ranks.as_ref().map_or(Shard::WHOLE, Communicator::shard);
        options.check_prompt()?;
        options.target.check()?;
        options.observer.check(&options.target)?;
        let mut backend = open(&config, source, &options, ranks, log)?;
        backend.check_mode(options.mode)?;
        backend.suffer(options.sync, options.faults.clone())?;
        let start = log.now();
        let programs = options.programs(&config, shard)?;
        let mut ready = |program: Program| Ok::<_, Error>((backend.prepare(program.clone(), log)?, program));
        let [prefill, decode] = programs;
        let (prefill, decode) = (ready(prefill)?, ready(decode)?);
        log.push(Kind::Prepare, Span { start, end: log.now() });
        Ok(Self { config, options, shard, backend, prefill, decode })
    }

    /// Records that a run of all steps makes.
    pub fn records(&self) -> usize {
        let per_step = self.decode.1.ops.len() + 7;
        per_step.saturating_mul(self.options.steps + 1) + 16
    }

    /// What is run.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Which rank of how many this is.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// What it runs on.
    pub fn device(&self) -> &Device {
        self.backend.device()
    }

    /// The shape of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The programs of the prompt and of a decode step.
    pub fn programs(&self) -> [&Program; 2] {
        [&self.prefill.1, &self.decode.1]
    }

    /// Logits of the last decode step, (sequences, vocab).
    ///
    /// # Errors
    /// [`Error::Device`] when the device does not give them.
    pub fn logits(&mut self) -> Result<Cow<'_, [f32]>, Error> {
        let (plan, program) = &self.decode;
        self.backend.values(*plan, program.logits, &mut Log::off())
    }

    /// Reads the prompts and decodes; `each` is told of every step and may end the run by returning `false`. Of several ranks
    /// only the first is asked, and all end after the step that is then begun.
    ///
    /// # Errors
    /// [`Error::Request`] when a step does not fit, which the options exclude, and [`Error::Lost`] when another rank does not
    /// take part any more.
    pub fn run(&mut self, log: &mut Log, mut each: impl FnMut(&StepDone) -> bool) -> Result<(), Error> {
        self.run_with_logits(log, false, |step, _| each(step))
    }

    /// As [`Engine::run`]; `each` is also told of the logits that the step computed, (rows, vocab), if they are `wanted`: of
    /// the prompt those that the options ask for, sequence by sequence, and of a decode step one row of each sequence. Logits
    /// that nobody wants stay on the device.
    ///
    /// # Errors
    /// Those of [`Engine::run`].
    pub fn run_with_logits(
        &mut self,
        log: &mut Log,
        wanted: bool,
        mut each: impl FnMut(&StepDone, &[f32]) -> bool,
    ) -> Result<(), Error> {
        self.run_watched(log, wanted, |step, logits, _| each(step, logits))
    }

    /// As [`Engine::run_with_logits`]; `each` is also shown what has been recorded so far.
    ///
    /// # Errors
    /// Those of [`Engine::run`].
    pub fn run_watched(
        &mut self,
        log: &mut Log,
        wanted: bool,
        mut each: impl FnMut(&StepDone, &[f32], &Log) -> bool,
    ) -> Result<(), Error> {
        let mut batch = self.options.first_batch(self.config.vocab);
        self.backend.meet()?;
        let _thieves = Thieves::start(&self.options.faults.machine)?;
        for step in 0..=self.options.steps {
            log.step = u32::try_from(step).unwrap_or(u32::MAX);
            let start = log.clock.now();
            let (plan, program) = if step == 0 { &self.prefill } else { &self.decode };
            let mode = if step > 0 { self.options.mode } else { Mode::Eager };
            let mut tokens = self.backend.run(*plan, &batch, mode, log)?;
            let mut lost = None;
            if self.options.sampling == Sampling::Host {
                let width = program.buffer(program.logits).map_or(1, |logits| logits.width);
                let logits = self.backend.values(*plan, program.logits, log)?;
                let start = log.now();
                tokens = most_likely(&logits, width);
                log.push(Kind::Sample, Span { start, end: log.now() });
                lost = Some(not_finite(&logits));
            }
            let ran = log.now();
            if step == 0 && self.options.logits == Logits::All {
                // The last token of each sequence is the one that is followed.
                tokens = tokens.chunks(self.options.prompt).filter_map(|own| own.last().copied()).collect();
            }
            batch = next_batch(tokens.clone(), self.options.prompt + step);
            log.push(Kind::Advance, Span { start: ran, end: log.now() });
            tokens.truncate(self.options.batch);
            let span = Span { start, end: log.clock.now() };
            log.push(Kind::Step, span);
            log.observe(|log| {
                self.backend.drain(*plan, log);
                // They are on the host: no copy, and a look at them is a trifle beside the product that made them.
                if lost.is_none() && self.options.target == Target::Cpu {
                    let logits = self.backend.values(*plan, program.logits, &mut Log::off());
                    lost = logits.ok().map(|logits| not_finite(&logits));
                }
            });
            let logits =
                if wanted { self.backend.values(*plan, program.logits, &mut Log::off())? } else { Cow::default() };
            if wanted {
                lost = lost.or_else(|| Some(not_finite(&logits)));
            }
            let goes_on = each(&StepDone { number: log.step, span, tokens, not_finite: lost }, &logits, log);
            if self.backend.ends(log.step, goes_on) {
                break;
            }
        }
        self.backend.leave();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Arc;

    use super::*;
    use crate::{
        Batch, Dtype, KvLayout, Synthetic, Weights,
        cpu::{Cpu, CpuOptions, PATIENCE, Prepared, Region, World},
        preset,
        program::{Level, Logits, Shape},
    };

    fn tokens(options: RunOptions, log: &mut Log) -> Vec<Vec<u32>> {
        let mut engine = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, log).unwrap();
        let mut all = Vec::new();
        engine
            .run(log, |step| {
                all.push(step.tokens.clone());
                true
            })
            .unwrap();
        all
    }

    fn options() -> RunOptions {
        RunOptions { prompt: 5, steps: 6, threads: 2, ..RunOptions::default() }
    }

    #[test]
    fn a_sequence_decodes_the_same_alone_and_in_a_batch_eager_and_at_once() {
        let alone = tokens(options(), &mut Log::off());
        assert_eq!(alone.len(), 7);
        for (mode, level, layout) in [
            (Mode::Graph, Level::Canonical, KvLayout::Contiguous),
            (Mode::Eager, Level::Fused, KvLayout::Paged(4)),
            (Mode::Graph, Level::Fused, KvLayout::Paged(16)),
        ] {
            let batch = tokens(RunOptions { batch: 3, mode, level, layout, ..options() }, &mut Log::off());
            let first: Vec<Vec<u32>> = batch.iter().map(|tokens| vec![tokens[0]]).collect();
            assert_eq!(first, alone, "{mode:?} {level:?} {layout:?}");
        }
    }

    /// Runs two ranks on threads; what each gave.
    fn two_ranks(options: &RunOptions, stop_second: bool) -> [Result<Vec<Vec<u32>>, Error>; 2] {
        let config = preset("tiny").unwrap();
        let slot = Engine::largest_exchange(&config, options, 2).unwrap();
        let world = World { ranks: 2, workers: options.threads, slot };
        let region = Arc::new(Region::of_threads(world).unwrap());
        std::thread::scope(|scope| {
            let run = |number| {
                let rank = Communicator::new(Arc::clone(&region), number, PATIENCE).unwrap();
                let (config, options) = (config.clone(), options.clone());
                scope.spawn(move || {
                    let log = &mut Log::off();
                    let mut engine = Engine::of_rank(config, &mut Synthetic, options, Some(rank), log).unwrap();
                    if stop_second && number == 1 {
                        return Ok(Vec::new());
                    }
                    let mut all = Vec::new();
                    engine.run(log, |step| {
                        all.push(step.tokens.clone());
                        true
                    })?;
                    Ok(all)
                })
            };
            [run(0), run(1)].map(|rank| rank.join().unwrap())
        })
    }

    #[test]
    fn two_ranks_decode_what_one_does() {
        let alone = tokens(RunOptions { batch: 3, ..options() }, &mut Log::off());
        for (mode, level) in [(Mode::Eager, Level::Canonical), (Mode::Graph, Level::Fused)] {
            for given in two_ranks(&RunOptions { batch: 3, mode, level, threads: 1, ..options() }, false) {
                assert_eq!(given.unwrap(), alone, "{mode:?} {level:?}");
            }
        }
    }

    /// Each rank has its own opinion of when to end; only the first one's counts, and nobody waits for a rank that has ended.
    #[test]
    fn all_ranks_end_after_the_same_step() {
        let config = preset("tiny").unwrap();
        let options = RunOptions { threads: 1, steps: 400, ..options() };
        let slot = Engine::largest_exchange(&config, &options, 2).unwrap();
        let region = Arc::new(Region::of_threads(World { ranks: 2, workers: 1, slot }).unwrap());
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let run = |number| {
                let rank = Communicator::new(Arc::clone(&region), number, PATIENCE).unwrap();
                let (config, options) = (config.clone(), options.clone());
                scope.spawn(move || {
                    let log = &mut Log::off();
                    let mut engine = Engine::of_rank(config, &mut Synthetic, options, Some(rank), log).unwrap();
                    let mut count = 0;
                    engine
                        .run(log, |step| {
                            count += 1;
                            number > 0 || step.number < 3
                        })
                        .unwrap();
                    count
                })
            };
            [run(0), run(1)].map(|rank| rank.join().unwrap()).to_vec()
        });
        // Steps 0 to 3, and the one that the others may have begun by then.
        assert_eq!(counts, [5, 5]);
    }

    #[test]
    fn a_rank_that_is_gone_is_named_by_the_others() {
        let [first, _] = two_ranks(&options(), true);
        assert!(first.unwrap_err().to_string().contains("rank 1 is lost"));
    }

    #[test]
    fn every_operator_of_every_step_is_recorded_in_order_and_within_its_step() {
        for mode in [Mode::Eager, Mode::Graph] {
            let mut log = Log::with_capacity(4096, 2);
            tokens(RunOptions { mode, ..options() }, &mut log);
            assert_eq!(log.dropped, 0);
            for step in 1..=6 {
                let of_step: Vec<_> = log.records().iter().filter(|r| r.step == step).collect();
                let whole = of_step.iter().find(|r| r.kind == Kind::Step).unwrap().host;
                let ops: Vec<Span> = of_step
                    .iter()
                    .filter(|r| matches!(r.kind, Kind::Op(_) | Kind::ReplayedOp(_)))
                    .map(|r| r.device)
                    .collect();
                assert_eq!(ops.len(), 2 * 15 + 5, "{mode:?}");
                assert!(ops.windows(2).all(|pair| pair[0].end <= pair[1].start), "{mode:?}");
                assert!(ops.iter().all(|op| whole.start <= op.start && op.start < op.end && op.end <= whole.end));
                let replays = of_step.iter().filter(|r| r.kind == Kind::Replay).count();
                assert_eq!(replays, usize::from(mode == Mode::Graph));
                let waits: Vec<_> = of_step.iter().filter(|r| r.kind == Kind::Sync).collect();
                assert_eq!(waits.len(), 1, "{mode:?}");
                // That they were written down took time too, which is told apart from what the step took.
                let noted: Vec<Span> = of_step.iter().filter(|r| r.kind == Kind::Observe).map(|r| r.host).collect();
                assert_eq!(noted.len(), 1, "{mode:?}");
                assert!(waits[0].host.end <= noted[0].start && noted[0].start < noted[0].end);
                assert!(ops.iter().all(|op| op.end <= waits[0].host.end), "{mode:?}");
                for record in of_step.iter().filter(|r| matches!(r.kind, Kind::Op(_) | Kind::ReplayedOp(_))) {
                    let shares = log.shares(record);
                    assert_eq!(shares.len(), 2, "{mode:?}");
                    assert!(shares.iter().all(|s| s.start <= record.device.start && s.end <= record.device.end));
                    assert!(record.kind != Kind::Op(0) || record.host.start <= record.device.start);
                }
            }
        }
    }

    #[test]
    fn nothing_runs_on_a_model_that_it_was_not_made_for_and_no_place_is_written_twice() {
        let (tiny, other) = (preset("tiny").unwrap(), Config { vocab: 256, ..preset("tiny").unwrap() });
        let cpu = |config: &Config| {
            let weights = Arc::new(Weights::load(config, Dtype::F32, &mut Synthetic).unwrap());
            Cpu::new(config.clone(), weights, CpuOptions::new(8)).unwrap()
        };
        let shape = Shape { tokens: 2, sequences: 1, logits: Logits::Last, level: Level::Fused };
        let mut prepared = cpu(&other).prepare(Program::plan(&other, shape)).unwrap();
        let mut device = cpu(&tiny);
        let batch = Batch::prefill(&[1, 2], 0);
        let mut refused = |prepared: &mut Prepared, batch: &Batch| {
            device.run(prepared, batch, &mut Log::off()).unwrap_err().to_string()
        };
        assert!(refused(&mut prepared, &batch).contains("another model"));
        let mut own = cpu(&tiny).prepare(Program::plan(&tiny, shape)).unwrap();
        let twice = Batch { positions: vec![3, 3], ..batch };
        assert!(refused(&mut own, &twice).contains("position 3 of sequence 0"));
        let weights = Arc::new(Weights::load(&other, Dtype::F32, &mut Synthetic).unwrap());
        let options = CpuOptions::new(8);
        assert!(Cpu::new(tiny, weights, options).err().unwrap().to_string().contains("another model"));
    }

    #[test]
    fn requests_that_cannot_be_met_are_refused() {
        for options in [
            RunOptions { batch: 0, ..options() },
            RunOptions { prompt: 0, ..options() },
            RunOptions { batch: 1 << 12, prompt: 1 << 12, ..options() },
        ] {
            let refused = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, &mut Log::off());
            assert!(refused.err().unwrap().to_string().contains("cannot read"));
        }
        let pieces = RunOptions { mode: Mode::Piecewise, ..options() };
        let refused = Engine::new(preset("tiny").unwrap(), &mut Synthetic, pieces, &mut Log::off()).err().unwrap();
        assert!(matches!(refused, Error::Unavailable { .. }) && refused.to_string().contains("--mode"), "{refused}");
    }
}
