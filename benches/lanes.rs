//! What the timeline costs as `strato view` opens a capture: from the file to the first frame that shows lanes, to the frame with
//! the diagnosis, frames at 200×60 while zooming and panning before and after, and memory, for 10 million slices in 40 lanes.
//! Frames are drawn for a terminal that is not there.
//!
//! `cargo bench --bench lanes -- [SLICES]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{self, Sink},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};

use diagnosis::{i18n::Lang, platform::Packs};
use model::{Category, Slice, Trace, TraceBuilder, TraceSink, TrackKey, TrackKind};
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};
use session::{Options, Session};
use stratoscope::tui::{
    Face, Job, Keymap, Opened, Opening, Settings, Sketch,
    face::Tick,
    key::Key,
    run::{FRAME, PULSE},
    text,
    theme::Depth,
};

const LANES: i64 = 40;
const SLICES: i64 = 10_000_000;
const NAMES: u64 = 400;
const SCREEN: Rect = Rect { x: 0, y: 0, width: 200, height: 60 };
/// What hands do: to a ten-thousandth of the capture and back, with pans and jumps on every level.
const KEYS: [&str; 12] = ["+", "l", "+", "L", "j", "]", "-", "h", "k", "H", "+", "J"];
const FRAMES: usize = 1000;
/// Between two keys of one that is held down, while the diagnosis is made.
const HELD: Duration = Duration::from_millis(33);

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

/// What the job says of itself.
enum Told {
    /// A part of the work took so long.
    Part(&'static str, Duration),
    /// Bytes that the lanes allocate.
    Lanes(usize),
}

fn timed<T>(what: &'static str, told: &Sender<Told>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let out = work();
    told.send(Told::Part(what, start.elapsed())).unwrap();
    out
}

/// The work of `strato view` on a capture file.
fn opening(file: PathBuf, told: Sender<Told>) -> Opening<store::Error> {
    let (early, arrived) = channel();
    let job = Job::start(move |progress| {
        let packs = Packs::embedded().unwrap();
        progress.doing("loading", "");
        let traces = timed("read the capture file", &told, || store::load(&file))?;
        let sketch = Arc::new(timed("lanes of its tracks", &told, || Sketch::of(&traces, &packs)));
        early.send(Arc::clone(&sketch)).unwrap();
        progress.doing("analysing", "");
        let session = Session::of(traces, packs);
        let examined = timed("analyse", &told, || session.examine(&Options::default())).unwrap();
        progress.doing("diagnosing", "");
        let inputs = timed("diagnose", &told, || examined.diagnose()).unwrap().captures;
        let opened = timed("report and all lanes", &told, || Opened::after(&sketch, inputs));
        told.send(Told::Lanes(opened.look(0).unwrap().lanes.bytes())).unwrap();
        Ok(opened)
    });
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
    Opening::new(job.unwrap(), arrived, settings)
}

/// A screen that is not there.
struct Screen {
    terminal: Terminal<CrosstermBackend<Sink>>,
    looked: Instant,
    /// Keys that were pressed.
    pressed: usize,
}

impl Screen {
    /// Draws a frame.
    fn draw(&mut self, face: &mut dyn Face) {
        self.terminal.draw(|frame| face.draw(frame.buffer_mut())).unwrap();
    }

    /// Draws a frame, and says whether it shows a text.
    fn shows(&mut self, face: &mut dyn Face, wanted: &str) -> bool {
        let mut shown = false;
        let draw = |frame: &mut ratatui::Frame<'_>| {
            face.draw(frame.buffer_mut());
            shown = text::rows(frame.buffer_mut(), SCREEN).iter().any(|row| row.contains(wanted));
        };
        self.terminal.draw(draw).unwrap();
        shown
    }

    /// Takes in what has arrived, as often as a session does; how long that took.
    fn tick(&mut self, face: &mut dyn Face) -> Option<Duration> {
        let due = self.looked.elapsed() >= PULSE;
        due.then(|| {
            self.looked = Instant::now();
            assert_ne!(face.tick(), Tick::Done, "the capture cannot be opened");
            self.looked.elapsed()
        })
    }

    /// Presses the next key and draws; how long that took.
    fn press(&mut self, face: &mut dyn Face, keys: &[Key]) -> Duration {
        // Every so often back to all of it, which costs the most.
        let all = Key::parse("0").unwrap();
        let key = if self.pressed % 50 == 49 { all } else { keys[self.pressed % keys.len()] };
        self.pressed += 1;
        let start = Instant::now();
        face.key(key);
        self.draw(face);
        start.elapsed()
    }
}

fn say(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len().max(1) - 1) * percent / 100).copied().unwrap_or_default();
    let (p50, p99, most) = (at(50), at(99), at(100));
    println!("{what:<32} p50 {p50:.3?}, p99 {p99:.3?}, slowest {most:.3?} of {} (p99 at most {FRAME:?})", times.len());
}

fn main() {
    let given = std::env::args().skip(1).find(|word| !word.starts_with("--"));
    let slices: i64 = given.map_or(SLICES, |word| word.parse().expect("a number of slices"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lanes.strato");
    store::save(&file, &[trace(slices)]).unwrap();
    println!("{slices} slices in {LANES} lanes, frames at {}×{}", SCREEN.width, SCREEN.height);

    let options = TerminalOptions { viewport: Viewport::Fixed(SCREEN) };
    let terminal = Terminal::with_options(CrosstermBackend::new(io::sink()), options).unwrap();
    let keys: Vec<Key> = KEYS.iter().map(|name| Key::parse(name).unwrap()).collect();
    let (told, says) = channel();
    let began = Instant::now();
    let mut screen = Screen { terminal, looked: began, pressed: 0 };
    let mut face = opening(file, told);
    while screen.tick(&mut face).is_none() || !screen.shows(&mut face, "stream") {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{:<32} {:.3?} (at most 1 s)", "file to first frame with lanes", began.elapsed());
    let mut early = Vec::new();
    loop {
        let pressed = Instant::now();
        // What arrives holds up the frame after it.
        let ticked = screen.tick(&mut face);
        // A message lasts until the next key.
        if ticked.is_some() && screen.shows(&mut face, "the diagnosis is done") {
            println!("{:<32} {:.3?}", "taking the diagnosis in", ticked.unwrap_or_default());
            break;
        }
        early.push(ticked.unwrap_or_default() + screen.press(&mut face, &keys));
        std::thread::sleep(HELD.saturating_sub(pressed.elapsed()));
    }
    println!("{:<32} {:.3?}", "file to frame with diagnosis", began.elapsed());
    for part in says.try_iter() {
        match part {
            Told::Part(what, took) => println!("  {what:<30} {took:.3?}"),
            Told::Lanes(bytes) => {
                let each = bytes as f64 / slices as f64;
                println!("{:<32} {each:.1} B per slice (at most 45)", "lanes in memory");
            }
        }
    }
    match memory() {
        Some(bytes) => println!("{:<32} {:.1} B per slice", "whole program in memory", bytes as f64 / slices as f64),
        None => println!("memory: /proc/self/status says nothing of it"),
    }
    say("frames during the diagnosis", early);
    let later = (0..FRAMES).map(|_| screen.press(&mut face, &keys)).collect();
    say("frames after it", later);
}
