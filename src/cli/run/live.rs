//! A run under a dashboard: the engine on a thread of its own, the dashboard on this one, and between them a way on which
//! nobody waits. However the dashboard is left, the capture of what has been run is written.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use collectors::{
    engine_watch::StepSums,
    telemetry::{self, nvml::Gpu},
};
use engine::{record::Observer, run::StepDone};
use model::{Ns, Provenance, Reading};

use super::Finish;
use crate::{
    cli::{
        Global,
        decode::{DecodeArgs, Done, Live, capture_watched, checked},
        feed::{Feed, Told},
        progress::Bar,
        say, showing,
    },
    tui::{
        Job, Left, Opened, Session, Settings,
        live::{self, Dashboard, Event, Group, Op, Phase, Run},
        terminal,
    },
};
use diagnosis::{analysis::Options, i18n::Text, platform::Packs};

/// Between two looks whether the engine is done.
const LOOK: Duration = Duration::from_millis(20);
/// From when on a person is told what is waited for.
const PATIENCE: Duration = Duration::from_millis(300);

/// Runs the engine under a dashboard until the person leaves it.
///
/// # Errors
/// Those of the run and of the terminal.
pub(super) fn run(global: &Global, settings: Settings, what: &DecodeArgs, finish: Finish) -> anyhow::Result<Done> {
    let (shown, observer) = (describe(what, &finish)?, checked(what)?.observer);
    let (feed, inlet) = Feed::new();
    let stop = Arc::new(AtomicBool::new(false));
    let thread = start(what.clone(), finish, Watched { feed, stop: Arc::clone(&stop), observer })?;
    let mut session = Session::take(settings.mouse)?;
    let mut dashboard = Dashboard::new(inlet, shown, settings);
    let left = session.show(&mut dashboard);
    if matches!(left, Ok(Left::Open)) && thread.is_finished() {
        let done = joined(thread)?;
        let (trace, lang) = (done.trace.clone(), global.lang());
        let (early, arrived) = channel();
        let job = Job::start(move |progress| {
            let _bar = Bar::of(progress, lang);
            let session = session::Session::of(vec![trace], Packs::embedded()?).cancelled_by(progress.cancel());
            let sketch = showing::sketched(session.captures(), session.packs(), &early);
            let diagnosed = session.examine(&Options::default())?.diagnose()?;
            Ok(Opened::after(&sketch, diagnosed.captures))
        })?;
        let left = showing::open(&mut session, (job, arrived), dashboard.settings())?;
        showing::end(session, left);
        return Ok(done);
    }
    stop.store(true, Ordering::Relaxed);
    let signals = session.give_back();
    let began = Instant::now();
    let mut told = false;
    // The signal that ended the dashboard is answered by ending the run; any further one means that nobody wants to wait.
    signals.forget();
    while !thread.is_finished() {
        if !told && began.elapsed() > PATIENCE {
            told = true;
            let text = Text::new(
                "strato: ending the run after its step, then writing the capture; ctrl-c leaves without it",
                "strato：将在当前步结束后停止并写入采集；ctrl-c 放弃采集并退出",
            );
            say(text.get(global.lang()));
        }
        if let Some(signal) = signals.end() {
            terminal::end_by(signal);
        }
        std::thread::sleep(LOOK);
    }
    let done = joined(thread)?;
    if let Left::Signal(signal) = left? {
        terminal::end_by(signal);
    }
    Ok(done)
}

fn joined(thread: JoinHandle<anyhow::Result<Done>>) -> anyhow::Result<Done> {
    thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the engine panicked; its message is above")))
}

/// The engine on a thread of its own.
fn start(what: DecodeArgs, finish: Finish, watched: Watched) -> anyhow::Result<JoinHandle<anyhow::Result<Done>>> {
    let work = move || {
        let tell = |what| watched.feed.tell(what);
        tell(live::What::Phase(Phase::Preparing));
        let done = capture_watched(&what, &mut |_| (), &watched).and_then(|mut done| {
            tell(live::What::Phase(Phase::Writing));
            let said = format!("{} updates dropped", watched.feed.lost());
            done.trace.manifest.set("measurement.dashboard", &said, Provenance::Observed);
            let steps = done.steps.len().saturating_sub(1);
            let written = finish.output.as_ref().map(|path| path.display().to_string());
            let done = finish.write(done)?;
            let [en, zh] = match written {
                Some(path) => [format!("; capture {path}"), format!("；采集 {path}")],
                None => [String::new(), String::new()],
            };
            tell(event(format!("{steps} decode steps{en}"), format!("{steps} 个解码步{zh}"), false));
            Ok(done)
        });
        match &done {
            Ok(_) => tell(live::What::Phase(Phase::Over)),
            Err(error) => {
                let why = error.to_string();
                tell(event(format!("the run failed: {why}"), format!("运行失败：{why}"), true));
                tell(live::What::Phase(Phase::Failed));
            }
        }
        done
    };
    Ok(std::thread::Builder::new().name("engine".to_owned()).spawn(work)?)
}

fn event(en: String, zh: String, warns: bool) -> live::What {
    live::What::Event(Event { en, zh, warns })
}

/// DecodeArgs the dashboard says of the run.
fn describe(what: &DecodeArgs, finish: &Finish) -> anyhow::Result<Run> {
    let options = checked(what)?;
    let (config, _) = what.source()?;
    let threads = options.threads;
    let mode = format!("{:?}", options.mode).to_lowercase();
    let facts = vec![
        (Text::new("weights, kernels", "权重、内核"), format!("{}, {}", options.dtype.name(), options.isa.name())),
        (Text::new("graph mode", "图模式"), mode.clone()),
        (Text::new("batch", "批大小"), options.batch.to_string()),
        (Text::new("ranks × threads", "rank × 线程"), format!("{} × {threads}", what.tp)),
    ];
    let kv_bytes = 8 * (config.layers * config.kv_heads * config.head_dim) as u64;
    Ok(Run {
        title: format!("strato run · {}", what.model),
        facts,
        ranks: what.tp,
        steps: u32::try_from(options.steps).unwrap_or(u32::MAX),
        batch: options.batch,
        prompt: options.prompt,
        kv_bytes,
        output: finish.output.as_ref().map(|path| path.display().to_string()),
    })
}

/// The layers of a step that took `ns`. Whatever is neither an operator nor a collective, the host or the queue took.
fn layers(ns: Ns, sums: &StepSums, observer: Observer) -> Reading<[Ns; 4]> {
    match sums.missing {
        _ if !observer.sees_device() => {
            Reading::Unavailable(format!("the device is not watched: --observer {}", observer.name()))
        }
        0 => Reading::Value([sums.compute, ns - sums.compute - sums.exchange, sums.exchange, 0]),
        _ if observer.asks_vendor() && sums.ops.is_empty() => {
            Reading::Unavailable("CUPTI records the device: its times are in the capture".to_owned())
        }
        _ if sums.opaque => Reading::Unavailable("the device tells nothing of the parts of a replay".to_owned()),
        missing => Reading::Unavailable(format!("the record is full: {missing} operators of the step are missing")),
    }
}

/// The engine's side of the dashboard.
struct Watched {
    feed: Feed,
    stop: Arc<AtomicBool>,
    observer: Observer,
}

impl Live for Watched {
    fn names(&self, names: &[String]) {
        self.feed.tell(live::What::Names(names.to_vec()));
        self.feed.tell(live::What::Phase(Phase::Running));
        self.feed.tell(event("weights are ready".to_owned(), "权重就绪".to_owned(), false));
    }

    fn step(&self, rank: usize, step: &StepDone, sums: StepSums) -> bool {
        let ns = step.span.end - step.span.start;
        let layers = layers(ns, &sums, self.observer);
        let ops = sums.ops.iter().map(|op| Op { name: op.name, count: op.count, ns: op.ns }).collect();
        self.feed.tell(live::What::Step(live::Step { rank, number: step.number, ns, layers, ops }));
        !self.stop.load(Ordering::Relaxed)
    }

    fn collectors(&self, gpu: Option<Gpu>) -> Vec<Box<dyn telemetry::Collector>> {
        let group = |counter: telemetry::Counter| {
            if counter.device.is_some() { Group::Device("CPU".to_owned()) } else { Group::Process }
        };
        let told = |collector| -> Box<dyn telemetry::Collector> {
            Box::new(Told { collector, feed: self.feed.clone(), group: Box::new(group) })
        };
        let of_gpu = |gpu: Gpu| -> Box<dyn telemetry::Collector> {
            let own = Group::Device(gpu.title());
            Box::new(Told { collector: gpu, feed: self.feed.clone(), group: Box::new(move |_| own.clone()) })
        };
        telemetry::collectors().into_iter().map(told).chain(gpu.map(of_gpu)).collect()
    }

    fn listened(&self, collector: Box<dyn telemetry::Collector>) -> Box<dyn telemetry::Collector> {
        let group = |_: telemetry::Counter| Group::Device("device tool".to_owned());
        Box::new(Told { collector, feed: self.feed.clone(), group: Box::new(group) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::{collections::BTreeMap, sync::Mutex};

    use clap::Parser;

    use super::*;
    use diagnosis::analysis::{Bucket, Layer, Step};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        what: DecodeArgs,
    }

    /// Keeps what it is told.
    #[derive(Default)]
    struct Notes(Mutex<BTreeMap<(usize, u32), (Ns, StepSums)>>);

    impl Live for Notes {
        fn names(&self, _: &[String]) {}

        fn step(&self, rank: usize, step: &StepDone, sums: StepSums) -> bool {
            self.0.lock().unwrap().insert((rank, step.number), (step.span.end - step.span.start, sums));
            true
        }

        fn collectors(&self, _: Option<Gpu>) -> Vec<Box<dyn telemetry::Collector>> {
            Vec::new()
        }

        fn listened(&self, collector: Box<dyn telemetry::Collector>) -> Box<dyn telemetry::Collector> {
            collector
        }
    }

    fn of_layer(step: &Step, layer: Layer) -> Ns {
        step.buckets.iter().filter(|(bucket, _)| Bucket::layer(*bucket) == layer).map(|(_, ns)| ns).sum()
    }

    /// The layers that the dashboard shows are those that the analysis of the capture finds: time of operators and of
    /// collectives to the nanosecond. A step lasts here from its first launch to the choice of its tokens, and there from its
    /// first operation on the device to that of the next step, so the rest differs by just what lies between these ends.
    fn live_equals_offline(arguments: &[&str], ranks: usize) {
        let common = ["run", "--model", "tiny", "--prompt-len", "8", "--gen", "12", "--threads", "1"];
        let what = Line::parse_from(common.iter().chain(arguments)).what;
        let notes = Notes::default();
        let done = capture_watched(&what, &mut |_| (), &notes).unwrap();
        let packs = Packs::embedded().unwrap();
        let examined = session::Session::of(vec![done.trace], packs).examine(&Options::default()).unwrap();
        let analysis = &examined.captures()[0].analysis;
        let notes = notes.0.into_inner().unwrap();
        assert_eq!(analysis.ranks.len(), ranks);
        let mut compared = 0;
        for (number, rank) in analysis.ranks.iter().enumerate() {
            for step in &rank.steps {
                let (ns, sums) = &notes[&(number, step.index)];
                let Reading::Value([compute, rest, exchange, measured]) = layers(*ns, sums, Observer::Device) else {
                    panic!("{sums:?}")
                };
                assert_eq!(compute + rest + exchange + measured, *ns, "the layers add up to the step");
                let at = format!("{arguments:?}: rank {number}, step {}: {:?}", step.index, step.buckets);
                assert_eq!(of_layer(step, Layer::Operator), compute, "{at}");
                assert_eq!(of_layer(step, Layer::Communication), exchange, "{at}");
                let shift = step.window.len() - ns;
                assert_eq!(of_layer(step, Layer::Runtime) + of_layer(step, Layer::Measurement), rest + shift, "{at}");
                compared += 1;
            }
        }
        assert_eq!(compared, notes.len(), "every step was compared");
    }

    #[test]
    fn the_layers_that_are_shown_live_are_those_of_the_capture() {
        live_equals_offline(&["--mode", "eager"], 1);
        live_equals_offline(&["--mode", "graph"], 1);
        live_equals_offline(&["--mode", "graph", "--batch", "3", "--level", "fused"], 1);
    }

    #[test]
    fn so_they_are_where_ranks_wait_for_each_other() {
        live_equals_offline(&["--mode", "eager", "--tp", "2"], 2);
    }

    #[test]
    fn a_record_that_is_full_and_a_replay_that_tells_nothing_say_so_in_both_languages() {
        let sums = StepSums { missing: 35, ..StepSums::default() };
        let full = layers(100, &sums, Observer::Device);
        let unseen = layers(100, &sums, Observer::Host);
        let vendor = layers(100, &sums, Observer::Node);
        let opaque = layers(100, &StepSums { opaque: true, ..sums }, Observer::Device);
        for (reading, en, zh) in [
            (full, "the record is full", "记录已满"),
            (vendor, "CUPTI records the device", "由 CUPTI 记录设备"),
            (opaque, "of a replay", "图重放"),
            (unseen, "not watched: --observer host", "未观测设备：--observer host"),
        ] {
            let Reading::Unavailable(reason) = reading else { panic!("{reading:?}") };
            assert!(reason.contains(en), "{reason}");
            assert!(live::said(&reason, diagnosis::i18n::Lang::Zh).contains(zh), "{reason}");
        }
    }
}
