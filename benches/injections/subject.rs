//! The model that suffers, and runs of it in this process.

use std::sync::Arc;

use collectors::{
    engine_run::{Cupti, Facts, Model, collect},
    host::Host,
    telemetry::{self, Sampler},
};
use engine::{
    Config, Synthetic,
    cpu::{Communicator, PATIENCE, Region, World},
    preset,
    record::{Kind, Log},
    run::{Engine, RunOptions},
};
use model::{Ns, Trace, TraceBuilder, trace};

use crate::case::Size;

/// A model of few layers, so that many runs of it take minutes and not hours.
pub struct Subject {
    pub config: Config,
    host: Host,
}

/// One run.
pub struct Took {
    pub trace: Trace,
    /// Mean decode step of the first rank, ns: gains are promised of it.
    pub step: Ns,
    /// What its operators take of a step, mean, ns.
    pub work: Ns,
}

impl Subject {
    pub fn chosen(size: Size) -> Self {
        let wide = Config { layers: 8, ..preset("qwen2.5-0.5b").unwrap() };
        let config = match size {
            Size::Wide => wide,
            Size::Deep => {
                Config { layers: 24, hidden: 64, intermediate: 128, heads: 4, vocab: 512, head_dim: 16, ..wide }
            }
            Size::Narrow => Config { hidden: 256, intermediate: 1024, heads: 4, vocab: 8192, ..wide },
        };
        Self { config, host: Host::read() }
    }

    /// A run that can be done again and again.
    pub fn ready(&self, options: &RunOptions, ranks: usize) -> Ready<'_> {
        // Ranks leave each other at the end of a run, so theirs are made anew for each.
        let alone = (ranks == 1).then(|| self.engine(options, None));
        Ready { subject: self, options: options.clone(), ranks, alone }
    }

    fn engine(&self, options: &RunOptions, ranks: Option<Communicator>) -> Engine {
        Engine::of_rank(self.config.clone(), &mut Synthetic, options.clone(), ranks, &mut Log::off()).unwrap()
    }

    fn record(&self, engine: &mut Engine, ranks: usize) -> (Trace, Ns, Ns) {
        let mut log = Log::with_capacity(2 * engine.records(), engine.options().threads);
        let sampler = (ranks == 1).then(|| Sampler::start(log.clock, telemetry::PERIOD, telemetry::collectors()));
        engine.run(&mut log, |_| true).unwrap();
        let telemetry = sampler.and_then(Result::ok).and_then(Sampler::finish);
        let mut builder = TraceBuilder::new("injected", "strato");
        let facts = Facts {
            model: Model { name: "cut", weights_seed: Some(0) },
            ranks: "threads",
            host: &self.host,
            telemetry: telemetry.as_ref(),
            cupti: Cupti::NotAsked,
        };
        collect(engine, &log, facts, &mut builder);
        let decode = || log.records().iter().filter(|record| record.step > 0);
        let steps = decode().filter(|record| record.kind == Kind::Step);
        let work = decode().filter(|record| matches!(record.kind, Kind::Op(_) | Kind::ReplayedOp(_)));
        let (count, spent): (Ns, Ns) = steps.fold((0, 0), |(n, sum), r| (n + 1, sum + r.host.end - r.host.start));
        let work: Ns = work.map(|record| record.device.end - record.device.start).sum();
        (builder.finish(), spent / count.max(1), work / count.max(1))
    }
}

/// A run made ready.
pub struct Ready<'s> {
    subject: &'s Subject,
    options: RunOptions,
    ranks: usize,
    alone: Option<Engine>,
}

impl Ready<'_> {
    pub fn run(&mut self) -> Took {
        let (traces, step, work) = match &mut self.alone {
            Some(engine) => {
                let (trace, step, work) = self.subject.record(engine, 1);
                (vec![trace], step, work)
            }
            None => self.together(),
        };
        let trace = trace::join(traces).unwrap_or_else(|_| panic!("a short run fits a capture"));
        Took { trace, step, work }
    }

    /// All ranks as threads of this process.
    fn together(&self) -> (Vec<Trace>, Ns, Ns) {
        let Self { subject, options, ranks, .. } = self;
        let slot = Engine::largest_exchange(&subject.config, options, *ranks).unwrap();
        let world = World { ranks: *ranks, workers: options.threads, slot };
        let region = Arc::new(Region::of_threads(world).unwrap());
        std::thread::scope(|scope| {
            let run = |rank| {
                let way = Communicator::new(Arc::clone(&region), rank, PATIENCE).unwrap();
                scope.spawn(move || subject.record(&mut subject.engine(options, Some(way)), *ranks))
            };
            let running: Vec<_> = (0..*ranks).map(run).collect();
            let all: Vec<_> = running.into_iter().map(|rank| rank.join().unwrap()).collect();
            let (step, work) = all.first().map_or((0, 0), |(_, step, work)| (*step, *work));
            (all.into_iter().map(|(trace, ..)| trace).collect(), step, work)
        })
    }
}
