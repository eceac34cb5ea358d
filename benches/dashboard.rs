//! What the dashboard costs: the share of a core that its thread takes at ten frames a second over a running engine, and the time
//! from step to step with it and without, in turn within one run. Frames are drawn at 200×60 for a terminal that is not there.
//!
//! A machine's speed wanders by more than a hundredth, so short blocks of steps stand in pairs, watched and not, the one first in
//! one pair and last in the next. A block counts by its mean step: only some steps meet a frame, and a median would not see
//! those. What is said is the median over pairs with the interval that a sign test leaves, which asks nothing of the noise.
//!
//! `cargo bench --bench dashboard -- [MODEL [STEPS [BLOCK]]]`
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    io,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use collectors::{
    engine_watch::Watch,
    telemetry::{self, Collector, Sampler, own_time},
};
use diagnosis::i18n::Lang;
use engine::{
    Synthetic, preset,
    record::Log,
    run::{Engine, Mode, RunOptions},
};
use model::Reading;
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};
use stratoscope::{
    cli::feed::{Feed, Inlet, Told},
    tui::{
        Face, Keymap, Settings,
        face::Tick,
        live::{Dashboard, Group, Op, Run, Step, What},
        theme::Depth,
    },
};

const FRAME: Duration = Duration::from_millis(100);
const SCREEN: Rect = Rect { x: 0, y: 0, width: 200, height: 60 };
/// Steps at the beginning of a block that do not count: the thread wakes, caches change hands.
const SETTLE: usize = 3;

/// What the thread of the dashboard took while it was on.
#[derive(Default)]
struct Cost {
    on: Duration,
    processor: i64,
    frames: u32,
}

/// Draws while it is on; a message switches it on or off.
fn watch(inlet: Inlet, run: Run, switch: &Receiver<bool>) -> Cost {
    let keymap = Keymap::load(None).unwrap();
    let settings = Settings {
        lang: Lang::En,
        theme: "dark".into(),
        depth: Depth::True,
        ascii: false,
        mouse: false,
        keymap,
        start: Default::default(),
    };
    let mut dashboard = Dashboard::new(inlet, run, settings);
    let options = TerminalOptions { viewport: Viewport::Fixed(SCREEN) };
    let mut terminal = Terminal::with_options(CrosstermBackend::new(io::sink()), options).unwrap();
    let mut cost = Cost::default();
    let time = || own_time().value().copied().unwrap_or(0);
    while let Ok(is_watched) = switch.recv() {
        if !is_watched {
            continue;
        }
        let (began, before) = (Instant::now(), time());
        loop {
            if dashboard.tick() == Tick::New {
                terminal.draw(|frame| dashboard.draw(frame.buffer_mut())).unwrap();
                cost.frames += 1;
            }
            if switch.recv_timeout(FRAME) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        cost.on += began.elapsed();
        cost.processor += time() - before;
    }
    cost
}

/// Whether a block is watched: off on, on off, and so on.
fn is_on(block: usize) -> bool {
    matches!(block % 4, 1 | 2)
}

/// The ranks from below and from above between which the median of so many values lies 19 times in 20, by the sign test; `None`
/// of too few values.
fn ends(count: usize) -> Option<(usize, usize)> {
    let mut chance = 0.5f64.powi(i32::try_from(count).ok()?);
    let (mut below, mut rank) = (0.0, 0);
    while below + chance <= 0.025 && rank < count {
        below += chance;
        chance *= (count - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    Some((rank.checked_sub(1)?, count - rank))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |at: usize, usual| given.get(at).map_or(usual, |word| word.parse().expect("a number"));
    let model = given.first().map_or("qwen2.5-0.5b", String::as_str);
    let (steps, block) = (number(1, 3200), number(2, 24).max(SETTLE + 2));
    let config = preset(model).expect("the name of a shape");
    let options = RunOptions { prompt: 16, steps, mode: Mode::Graph, ..RunOptions::default() };
    let room = (160 * config.layers + 160) * (steps + 2);
    let mut log = Log::with_capacity(room.min(1 << 24), options.workers());
    let mut engine = Engine::new(config, &mut Synthetic, options.clone(), &mut log).unwrap();
    let (feed, inlet) = Feed::new();
    let mut sums = Watch::new(engine.programs());
    feed.tell(What::Names(sums.names().to_vec()));
    let told = |collector| -> Box<dyn Collector> {
        Box::new(Told { collector, feed: feed.clone(), group: Box::new(|_| Group::Device("CPU".to_owned())) })
    };
    // Counters are sampled in every run; what is compared is whether somebody looks.
    let counters = telemetry::collectors().into_iter().map(told).collect();
    let sampler = Sampler::start(log.clock, telemetry::PERIOD, counters).unwrap();
    let run = Run { title: model.to_owned(), ranks: 1, steps: steps as u32, batch: 1, prompt: 16, ..Run::default() };
    let (switch, switched) = channel();
    let thread = std::thread::spawn(move || watch(inlet, run, &switched));

    let mut blocks: Vec<Vec<f64>> = Vec::new();
    let mut before: Option<Instant> = None;
    engine
        .run_watched(&mut log, false, |step, _, log| {
            let now = Instant::now();
            let at = step.number as usize;
            let is_watched = is_on(at / block);
            if at.is_multiple_of(block) {
                blocks.push(Vec::new());
                switch.send(is_watched).unwrap();
            } else if let Some(before) = before.filter(|_| at % block >= SETTLE) {
                blocks.last_mut().unwrap().push((now - before).as_nanos() as f64);
            }
            before = Some(now);
            if is_watched {
                let sums = sums.step(step.number, log.records());
                let ns = step.span.end - step.span.start;
                let layers = Reading::Value([sums.compute, ns - sums.compute - sums.exchange, sums.exchange, 0]);
                let ops = sums.ops.iter().map(|op| Op { name: op.name, count: op.count, ns: op.ns }).collect();
                feed.tell(What::Step(Step { rank: 0, number: step.number, ns, layers, ops }));
            }
            true
        })
        .unwrap();
    drop(switch);
    let cost = thread.join().unwrap();
    drop(sampler.finish());

    let means: Vec<f64> = blocks.iter().filter(|block| !block.is_empty()).map(|block| mean(block)).collect();
    let mut differences: Vec<f64> = means
        .chunks_exact(2)
        .enumerate()
        .map(|(pair, two)| if is_on(2 * pair) { two[0] / two[1] } else { two[1] / two[0] })
        .map(|ratio| (ratio - 1.0) * 100.0)
        .collect();
    let of = |watched: bool| -> Vec<f64> {
        let own = means.iter().enumerate().filter(|(at, _)| is_on(*at) == watched);
        own.map(|(_, mean)| *mean).collect()
    };
    println!("{model}, {} threads, {steps} steps in blocks of {block}", options.threads);
    println!(
        "dashboard: {:.2} % of one core over {:.1} s, {} frames at {}×{}, {:.0} µs of processor each; {} updates dropped",
        cost.processor as f64 / cost.on.as_nanos().max(1) as f64 * 100.0,
        cost.on.as_secs_f64(),
        cost.frames,
        SCREEN.width,
        SCREEN.height,
        cost.processor as f64 / 1e3 / f64::from(cost.frames.max(1)),
        feed.lost(),
    );
    println!(
        "mean step of a block, median: {:.1} µs without, {:.1} µs with",
        median(&mut of(false)) / 1e3,
        median(&mut of(true)) / 1e3
    );
    let middle = median(&mut differences);
    match ends(differences.len()) {
        Some((low, high)) => println!(
            "with to without: median {middle:+.2} %, 95 % interval {:+.2} … {:+.2} % by {} pairs of blocks",
            differences[low],
            differences[high],
            differences.len()
        ),
        None => println!("{} pairs of blocks are too few to judge by: give more steps", differences.len()),
    }
}
