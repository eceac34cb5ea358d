//! The model that suffers, and runs of it in this process.

use std::sync::Arc;

use collectors::{
    engine_run::{Facts, Model, collect},
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
use model::{Ns, Statistic, Trace, TraceBuilder, trace};

/// A model of fewer layers than its name says, so that many runs of it take minutes and not hours.
pub struct Subject {
    pub config: Config,
    host: Host,
}

/// One run.
pub struct Took {
    pub trace: Trace,
    /// Median decode step of the first rank, ns.
    pub step: Ns,
}

impl Subject {
    pub fn chosen(model: Option<&str>, layers: usize) -> Self {
        let name = model.unwrap_or("qwen2.5-0.5b");
        let mut config = preset(name).unwrap_or_else(|| panic!("no model '{name}'"));
        config.layers = config.layers.min(layers);
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

    fn record(&self, engine: &mut Engine, ranks: usize) -> (Trace, Vec<Ns>) {
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
        };
        collect(engine, &log, facts, &mut builder);
        let decode = log.records().iter().filter(|record| record.kind == Kind::Step && record.step > 0);
        (builder.finish(), decode.map(|record| record.host.end - record.host.start).collect())
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
        let (traces, steps) = match &mut self.alone {
            Some(engine) => {
                let (trace, steps) = self.subject.record(engine, 1);
                (vec![trace], steps)
            }
            None => self.together(),
        };
        let trace = trace::join(traces).unwrap_or_else(|_| panic!("a short run fits a capture"));
        let median = Statistic::of(steps.into_iter().map(|ns| ns as f64)).unwrap().median;
        Took { trace, step: median as Ns }
    }

    /// All ranks as threads of this process.
    fn together(&self) -> (Vec<Trace>, Vec<Ns>) {
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
            let mut all: Vec<_> = running.into_iter().map(|rank| rank.join().unwrap()).collect();
            let steps = all.first_mut().map(|(_, steps)| std::mem::take(steps)).unwrap_or_default();
            (all.into_iter().map(|(trace, _)| trace).collect(), steps)
        })
    }
}
