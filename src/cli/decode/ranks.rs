//! The ranks of a run: one in this thread, several as threads of this process or as processes that share memory.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use collectors::{
    engine_run,
    engine_watch::{StepSums, Watch},
    host::Host,
    telemetry::{
        self, Sampler,
        dcmi::Npu,
        nvml::{self, Gpu},
    },
};
use engine::{
    Error, Target,
    cpu::{Communicator, PATIENCE, Region, World},
    record::Log,
    run::{Engine, StepDone},
};
use model::{Provenance, Trace, TraceBuilder, TraceSink, trace};

use super::{
    DecodeArgs,
    cupti::Cupti,
    logits::LogitsFile,
    lost::{self, GRACE},
    mspti::Mspti,
    rank_processes,
};
use crate::{
    cli::{
        device_counters::{self, Sampling},
        devices,
        ended::Ended,
        exit::{self, Usage},
        say,
    },
    tui::terminal,
};

/// Who watches a run from close by: is told of every step of every rank with the sums of its records, and may end the run.
/// It is asked on the threads of the engine, and must not wait.
pub(in crate::cli) trait Live: Sync {
    /// Names of the operators, before the first step.
    fn names(&self, names: &[String]);

    /// A step of a rank is over; whether the run goes on.
    fn step(&self, rank: usize, step: &StepDone, sums: StepSums) -> bool;

    /// What looks at the machine meanwhile, and at the device of the run where a library tells of it.
    fn collectors(&self, gpu: Option<Gpu>) -> Vec<Box<dyn telemetry::Collector>>;

    /// The same as `collector`, listened to.
    fn listened(&self, collector: Box<dyn telemetry::Collector>) -> Box<dyn telemetry::Collector>;
}

/// Who may end a run early.
#[derive(Clone, Copy)]
pub(super) enum Watched<'w> {
    /// Nobody: signals do what they always do.
    No,
    /// A person in front of a dashboard, which has the signals.
    Live(&'w dyn Live),
    /// Signals, from the first step on: before it there is nothing that could be kept.
    Signals(&'w OnceLock<Ended>),
}

impl<'w> Watched<'w> {
    fn live(self) -> Option<&'w dyn Live> {
        match self {
            Self::Live(live) => Some(live),
            Self::No | Self::Signals(_) => None,
        }
    }

    /// Signals, received from now on.
    pub(super) fn signals(self) -> Option<&'w Ended> {
        match self {
            Self::Signals(held) => Some(held.get_or_init(|| Ended::receive().unwrap_or_else(|_| Ended::never()))),
            Self::No | Self::Live(_) => None,
        }
    }
}

/// Runs all ranks and joins what they recorded; `tell` is told of every step of the first. Ranks that are processes are not
/// watched from close by.
pub(super) fn run(
    what: &DecodeArgs,
    tell: &mut (dyn FnMut(&StepDone) + Send),
    watched: Watched<'_>,
) -> anyhow::Result<(Trace, Vec<StepDone>)> {
    if what.tp == 1 {
        return rank(what, None, tell, watched);
    }
    let options = what.options()?;
    let slot = Engine::largest_exchange(&what.source()?.0, &options, what.tp)?;
    let world = World { ranks: what.tp, workers: options.workers().max(1), slot };
    let (traces, steps) = match what.ranks {
        super::RanksAre::Threads => threads(what, world, tell, watched)?,
        super::RanksAre::Processes => rank_processes::run(what, world, tell, watched)?,
    };
    let joined =
        trace::join(traces).map_err(|_| Usage("a capture cannot hold so many records; run fewer steps".into()))?;
    Ok((joined, steps))
}

/// Runs a rank and records it.
pub(super) fn rank(
    what: &DecodeArgs,
    ranks: Option<Communicator>,
    tell: &mut (dyn FnMut(&StepDone) + Send),
    watched: Watched<'_>,
) -> anyhow::Result<(Trace, Vec<StepDone>)> {
    let live = watched.live();
    let (config, mut source) = what.source()?;
    let mut options = what.options()?;
    let alone = ranks.is_none();
    // The log's size depends on the programs, which exist only when the engine does.
    let ops = 160 * config.layers + 160;
    let room = ops.saturating_mul(options.steps + 2).min(1 << 24);
    let log = Log::with_capacity(room, options.workers());
    let (cupti, log) = Cupti::begin(&mut options, log, alone);
    let (mspti, mut log) = Mspti::begin(&options, log, alone, live.is_some());
    // What samples the machine watches, too.
    let is_sampled = options.observer.sees_host();
    // Ranks that are threads of one process have one machine and one process to look at.
    let looks = ranks.as_ref().is_none_or(|ranks| ranks.shard().rank == 0) || what.ranks == super::RanksAre::Processes;
    let mut engine = Engine::of_rank(config, &mut *source, options, ranks, &mut log)?;
    let unused = source.unused();
    if !unused.is_empty() && engine.shard().rank == 0 {
        say(&format!("strato: the checkpoint has {}, which this kind of model does not use", named(&unused)));
    }
    let mut logits = match &what.logits {
        // All ranks have the same.
        Some(file) if engine.shard().rank == 0 => Some(LogitsFile::create(file, &engine)?),
        _ => None,
    };
    let (mut steps, mut failed) = (Vec::new(), None);
    // A run that nobody could look at is a run all the same.
    let bus = engine.device().bus.as_deref();
    let gpu = engine.device().name.as_deref().and_then(|name| nvml::of_run(name, bus));
    // What a library tells needs no tool, and one question to a tool is enough, whatever the ranks are.
    let npu = match &engine.options().target {
        Target::Ascend(asked) => Some(Npu::of_run(asked.device)),
        _ => None,
    };
    let told = gpu.is_some() || npu.as_ref().is_some_and(|npu| npu.absent().is_none());
    let asks = is_sampled && engine.shard().rank == 0 && (!told || !what.tools.is_empty());
    let tools = if asks { devices::of_run(&what.tools, &engine.options().target)? } else { Vec::new() };
    let listened = |collector| match live {
        Some(live) => live.listened(collector),
        None => collector,
    };
    // A library that is missing says so only where no tool stands for it.
    let npu = npu.filter(|npu| npu.absent().is_none() || tools.is_empty());
    let collectors = || {
        let mut all = match live {
            Some(live) => live.collectors(gpu),
            None => telemetry::with(gpu),
        };
        all.extend(npu.map(|npu| listened(Box::new(npu))));
        all
    };
    let sampler =
        (looks && is_sampled).then(|| Sampler::start(log.clock, telemetry::PERIOD, collectors()).ok()).flatten();
    let place = devices::place(&engine.options().target);
    let tools = Sampling::start(tools, device_counters::PERIOD, log.clock, place, listened).ok();
    let mut decodes = None;
    let number = engine.shard().rank;
    let signals = watched.signals();
    let mut watch = live.map(|live| (live, Watch::new(engine.programs())));
    if let Some((live, watch)) = watch.as_ref().filter(|_| number == 0) {
        live.names(watch.names());
    }
    let each = |step: &StepDone, values: &[f32], log: &Log| {
        cupti.flush();
        mspti.flush();
        tell(step);
        let goes_on = watch.as_mut().is_none_or(|(live, watch)| {
            let sums = watch.step(step.number, log.records());
            live.step(number, step, sums)
        });
        steps.push(step.clone());
        failed = logits.as_mut().and_then(|file| file.add(step.number, values).err());
        let decodes: &Instant = decodes.get_or_insert_with(Instant::now);
        let goes_on = goes_on && !signals.is_some_and(Ended::is);
        goes_on && failed.is_none() && what.at_most.is_none_or(|most| !alone || decodes.elapsed() < most)
    };
    let ran = engine.run_watched(&mut log, what.logits.is_some(), each);
    let mut telemetry = sampler.and_then(Sampler::finish);
    if let Some((tools, telemetry)) = tools.zip(telemetry.as_mut()) {
        tools.finish(telemetry);
    }
    ran?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    // Of logits that stay on the device the last ones tell: what is lost once goes on through the cache.
    if let Some(last) = steps.last_mut().filter(|last| number == 0 && last.number > 0 && last.not_finite.is_none()) {
        last.not_finite = engine.logits().ok().map(|logits| engine::run::not_finite(&logits));
    }
    let (tasks, log) = mspti.finish(log);
    let (saw, log) = cupti.finish(&mut engine, log, what.at_most.is_none());
    logits.map(LogitsFile::finish).transpose()?;
    let on = engine.device().name.as_deref().unwrap_or("this CPU");
    let title = format!("{} on {on}", what.model);
    let mut builder = TraceBuilder::new(title, "strato");
    let facts = engine_run::Facts {
        model: what.identity(),
        ranks: what.ranks.text(),
        host: &Host::read(),
        telemetry: telemetry.as_ref(),
        cupti: saw.told(),
    };
    tasks.fields(&mut builder);
    if !unused.is_empty() {
        builder.manifest("model.unused_tensors", &named(&unused), Provenance::Observed);
    }
    engine_run::collect(&engine, &log, facts, &mut builder);
    let process = builder.process(0);
    tasks.write(process, &mut builder);
    Ok((builder.finish(), steps))
}

/// How many tensors, and the first of them.
fn named(tensors: &[String]) -> String {
    let first = tensors.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if tensors.len() > 3 { ", …" } else { "" };
    format!("{} more tensors ({first}{more})", tensors.len())
}

/// Captures of the ranks and the steps of the first.
pub(super) type Ran = (Vec<Trace>, Vec<StepDone>);

fn threads(
    what: &DecodeArgs,
    world: World,
    tell: &mut (dyn FnMut(&StepDone) + Send),
    watched: Watched<'_>,
) -> anyhow::Result<Ran> {
    let region = Arc::new(Region::of_threads(world)?);
    let ways: Vec<_> = (0..world.ranks)
        .map(|number| Communicator::new(Arc::clone(&region), number, PATIENCE))
        .collect::<Result<_, _>>()?;
    // That a rank was lost is told by the others too; why it was, only by itself.
    let is_echo = |error: &anyhow::Error| matches!(error.downcast_ref(), Some(Error::Lost { .. }));
    // Why the first one failed, for when the others never come back.
    let (why, done) = (Mutex::new(None), AtomicBool::new(false));
    let noted = |ran: anyhow::Result<_>| {
        if let Some(error) = ran.as_ref().err().filter(|error| !is_echo(error)) {
            let said = (exit::code(error), exit::message(error));
            why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(said);
        }
        ran
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(rank) = lost::watch(&region, &done, GRACE) {
                let said = why.lock().unwrap_or_else(PoisonError::into_inner).take();
                end_without(rank, said);
            }
        });
        let mut ways = ways.into_iter();
        let first = ways.next();
        let others: Vec<_> =
            ways.map(|way| scope.spawn(|| noted(rank(what, Some(way), &mut |_| (), watched)))).collect();
        let mut results: Vec<_> = first.map(|way| noted(rank(what, Some(way), tell, watched))).into_iter().collect();
        for other in others {
            let lost = |_| Err(anyhow::anyhow!("a rank of the engine panicked"));
            results.push(other.join().unwrap_or_else(lost));
        }
        done.store(true, Ordering::Release);
        results
    });
    let (mut traces, mut steps, mut echo) = (Vec::new(), Vec::new(), None);
    for result in results {
        match result {
            Ok((trace, own)) => {
                traces.push(trace);
                if steps.is_empty() {
                    steps = own;
                }
            }
            Err(error) if is_echo(&error) => echo = Some(error),
            Err(error) => return Err(error),
        }
    }
    echo.map_or(Ok((traces, steps)), Err)
}

/// Ends the program, as threads that wait within a device's library cannot be ended. The terminal may be that of a dashboard.
fn end_without(rank: usize, why: Option<(u8, String)>) -> ! {
    terminal::restore();
    let (code, why) = why.unwrap_or((3, "it ended without a word".to_owned()));
    say(&format!("strato: rank {rank} is lost: {why}"));
    say("strato: the other ranks wait for it on their devices; the run ends without a capture");
    std::process::exit(i32::from(code))
}
