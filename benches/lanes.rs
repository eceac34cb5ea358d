//! What the timeline costs: from a capture file to the first frame, a frame at 200×60 while zooming and panning, and memory, for 10
//! million slices in 40 lanes. Frames are drawn for a terminal that is not there.
//!
//! `cargo bench --bench lanes -- [SLICES]`
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    io,
    time::{Duration, Instant},
};

use model::{Category, Slice, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind};
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};
use stratoscope::{
    analysis, diagnose,
    i18n::Lang,
    platform::Packs,
    store,
    tui::{App, Keymap, Opened, Settings, key::Key, theme::Depth},
};

const LANES: i64 = 40;
const SLICES: i64 = 10_000_000;
const NAMES: u64 = 400;
const SCREEN: Rect = Rect { x: 0, y: 0, width: 200, height: 60 };
/// What hands do: to a ten-thousandth of the capture and back, with pans and jumps on every level.
const KEYS: [&str; 12] = ["+", "l", "+", "L", "j", "]", "-", "h", "k", "H", "+", "J"];
const FRAMES: usize = 1000;

/// Kernels of some microseconds with gaps between them, different on every stream.
fn trace(slices: i64) -> Trace {
    let mut b = TraceBuilder::new("bench", "bench");
    let process = b.process(0);
    let names: Vec<_> = (0..NAMES).map(|i| b.intern(&format!("void gemm_bf16_{i}_tn_align8(Params)"))).collect();
    for lane in 0..LANES {
        let device = Some((lane / 8) as i32);
        let track = b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device, context: None, id: lane });
        let mut state = (lane as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut at = 0;
        for _ in 0..slices / LANES {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let start = at + (state % 900) as i64;
            let dur = 100 + (state >> 20) as i64 % 8_000;
            let name = names[(state >> 40) as usize % names.len()];
            b.slice(Slice { track, start, dur, name, category: Category::Kernel, correlation: None, detail: None });
            at = start + dur;
        }
    }
    b.finish()
}

/// Memory of this process, bytes; what cannot be read counts as nothing and is shown so.
fn memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()? * 1024)
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let out = work();
    let took = start.elapsed();
    println!("{what:<28} {took:>12.3?}");
    (out, took)
}

fn main() {
    let given = std::env::args().skip(1).find(|word| !word.starts_with("--"));
    let slices: i64 = given.map_or(SLICES, |word| word.parse().expect("a number of slices"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lanes.strato");
    store::save(&file, &[trace(slices)]).unwrap();
    println!("{slices} slices in {LANES} lanes");

    let (loaded, load) = timed("read the capture file", || store::load(&file).unwrap().remove(0));
    let packs = Packs::embedded().unwrap();
    let options = analysis::Options::default();
    let (analysis, analyse) = timed("analyse", || analysis::analyze(&loaded, &packs, &options));
    let (diagnosis, judge) = timed("diagnose", || diagnose::diagnose(&loaded, &analysis, &packs));
    let before = memory();
    let (opened, lanes) = timed("report and lanes", || Opened::new(vec![(loaded, analysis, diagnosis)]));
    let after = memory();
    let keymap = Keymap::load(None).unwrap();
    let settings =
        Settings { lang: Lang::En, theme: "dark".into(), depth: Depth::True, ascii: false, mouse: false, keymap };
    let mut app = App::new(opened, settings);
    let viewport = Viewport::Fixed(SCREEN);
    let mut terminal = Terminal::with_options(CrosstermBackend::new(io::sink()), TerminalOptions { viewport }).unwrap();
    app.key(Key::parse("2").unwrap());
    let (_, first) = timed("first frame", || terminal.draw(|frame| app.draw(frame.buffer_mut())).map(|_| ()).unwrap());
    println!("{:<28} {:>12.3?}", "open to first frame", load + analyse + judge + lanes + first);
    match before.zip(after) {
        Some((before, after)) => {
            println!("{:<28} {:>12.1} B per slice", "lanes in memory", (after - before) as f64 / slices as f64);
            println!("{:<28} {:>12.1} B per slice", "whole program in memory", after as f64 / slices as f64);
        }
        None => println!("memory: /proc/self/status says nothing of it"),
    }

    let keys: Vec<Key> = KEYS.iter().map(|name| Key::parse(name).unwrap()).collect();
    let mut times: Vec<Duration> = Vec::with_capacity(FRAMES);
    for frame in 0..FRAMES {
        // Every so often back to all of it, which costs the most.
        let key = if frame % 50 == 49 { Key::parse("0").unwrap() } else { keys[frame % keys.len()] };
        let start = Instant::now();
        app.key(key);
        terminal.draw(|frame| app.draw(frame.buffer_mut())).unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let at = |percent: usize| times[(FRAMES - 1) * percent / 100];
    println!(
        "frame at {}×{}, key to cells: p50 {:.3?}, p99 {:.3?}, slowest {:.3?}",
        SCREEN.width,
        SCREEN.height,
        at(50),
        at(99),
        at(100)
    );
}
