//! Damaged and hostile files of every format but Kineto and Nsight Systems, which have tests of their own: reading ends
//! with what could be read and a count of what was lost, or with an error that names the file and the next step. It never
//! panics, never hangs, and holds no more than it keeps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod inputs;
mod seeds;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::LazyLock,
    time::{Duration, Instant},
};

use inputs::Input;
use model::{Severity, Trace, TraceBuilder};
use parsers::{REGISTRY, ReadError, ReadOptions};

static INPUTS: LazyLock<Vec<Input>> = LazyLock::new(inputs::all);

/// Longest that reading a small file may take, also on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

/// A tenth part of the sweep is quick enough for every change; `STRATO_SWEEP=full` makes all of it.
fn of_sweep(full: usize) -> usize {
    if std::env::var("STRATO_SWEEP").is_ok_and(|sweep| sweep == "full") { full } else { full / 10 }
}

/// Random numbers that are the same in every run (splitmix64).
fn random() -> impl FnMut(usize) -> usize {
    let mut state = 7u64;
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below.max(1) as u64) as usize
    }
}

/// A place to write damaged copies of a file to, under its own name.
struct Copy {
    directory: tempfile::TempDir,
    input: &'static Input,
}

impl Copy {
    fn of(input: &'static Input) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), input }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join(self.input.name)
    }

    /// Reads a damaged copy as the format of the whole, whatever it looks like now.
    fn read(&self, bytes: &[u8]) -> Result<Trace, ReadError> {
        std::fs::write(self.path(), bytes).unwrap();
        read(&self.path(), self.input.format)
    }
}

fn read(path: &Path, format: &str) -> Result<Trace, ReadError> {
    let mut sink = TraceBuilder::new("t", format);
    let began = Instant::now();
    let outcome =
        parsers::detect::read(path, &mut sink, &ReadOptions { format: Some(format), ..ReadOptions::default() });
    assert!(began.elapsed() < LONGEST, "{} took {:?}", path.display(), began.elapsed());
    match outcome {
        Ok(_) => {
            let trace = sink.finish();
            for lane in &trace.lanes {
                assert!(lane.start.is_sorted() && lane.dur.iter().all(|dur| *dur >= 0));
                assert_eq!((lane.start.len(), lane.start.len()), (lane.dur.len(), lane.name.len()));
            }
            Ok(trace)
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.contains(&path.display().to_string()) && told.contains("; "), "{told}");
            Err(error)
        }
    }
}

/// Everything that a capture holds, in one number.
fn kept(trace: &Trace) -> u64 {
    let counters: usize = trace.counters.iter().map(|counter| counter.t.len()).sum();
    (trace.slice_count() + trace.summaries.len() + counters) as u64
        + trace
            .ledger
            .iter()
            .filter(|row| row.note.contains("sums") || row.category.contains('/'))
            .map(|r| r.read)
            .sum::<u64>()
}

fn lost(trace: &Trace) -> u64 {
    trace.stats.iter().filter(|s| s.severity >= Severity::DataLoss).map(|s| s.count).sum()
}

#[test]
fn every_input_is_whole_and_every_format_has_one() {
    for input in &*INPUTS {
        let copy = Copy::of(input);
        let trace = copy.read(&input.bytes).unwrap();
        assert_eq!(
            parsers::detect::detect(&copy.path(), &ReadOptions::default()).unwrap().id,
            input.format,
            "{}",
            input.name
        );
        // One row of a results file has no times on purpose: it is the last of a list.
        assert!(lost(&trace) <= 1, "{}: {:?}", input.name, trace.stats);
        assert!(kept(&trace) >= 20, "{}: {} kept, {:?}", input.name, kept(&trace), trace.ledger);
    }
    // Two have tests of damage of their own, one needs a tool that is not here, and the last ones are declined by name.
    let elsewhere = ["kineto", "nsys", "nsys-rep", "ascend-sums", "not-read"];
    let missing = REGISTRY.iter().filter(|f| !elsewhere.contains(&f.id) && INPUTS.iter().all(|i| i.format != f.id));
    assert_eq!(missing.map(|f| f.id).collect::<Vec<_>>(), Vec::<&str>::new());
}

/// Does something with every input, each on a thread of its own.
fn each_input(test: impl Fn(&'static Input) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        let tasks: Vec<_> = INPUTS.iter().map(|input| scope.spawn(move || test(input))).collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn a_file_cut_anywhere_keeps_what_was_complete_or_says_what_was_lost() {
    each_input(|input| {
        let (copy, mut random) = (Copy::of(input), random());
        let whole = kept(&copy.read(&input.bytes).unwrap());
        let mut readable = 0;
        // What is kept of the complete lines before a cut, by their end: there are fewer lines than cuts.
        let mut complete = BTreeMap::new();
        let cuts = of_sweep(400);
        for _ in 0..cuts {
            let end = random(input.bytes.len() - 1);
            let cut = input.bytes.get(..end).unwrap();
            let last_line = cut.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            let mut complete = || {
                let lines = || copy.read(cut.get(..last_line).unwrap()).map_or(0, |trace| kept(&trace));
                *complete.entry(last_line).or_insert_with(lines)
            };
            match copy.read(cut) {
                Ok(trace) => {
                    readable += 1;
                    assert!(kept(&trace) <= whole, "{} cut at {end}", input.name);
                    if input.lines {
                        assert!(kept(&trace) >= complete(), "{} cut at {end}", input.name);
                    } else if kept(&trace) < whole {
                        assert!(lost(&trace) > 0, "{} cut at {end}: {:?}", input.name, trace.stats);
                    }
                }
                Err(_) if input.lines => {
                    assert_eq!(complete(), 0, "{} cut at {end} lost complete rows", input.name);
                }
                Err(_) => {}
            }
        }
        assert!(readable > cuts / 10, "{}: only {readable} of {cuts} gave anything", input.name);
    });
}

#[test]
fn a_changed_byte_never_breaks_reading() {
    each_input(|input| {
        let (copy, mut random) = (Copy::of(input), random());
        let mut readable = 0;
        let flips = of_sweep(4000);
        for _ in 0..flips {
            let mut bytes = input.bytes.clone();
            let at = random(bytes.len());
            *bytes.get_mut(at).unwrap() ^= 1 + random(255) as u8;
            readable += usize::from(copy.read(&bytes).is_ok());
        }
        assert!(readable > flips * 3 / 4, "{}: only {readable} of {flips} gave anything", input.name);
    });
}

/// What stands in the place of a number or of a text.
fn wrong_values() -> Vec<Vec<u8>> {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = "{\"a\":".repeat(100_000);
    let escapes = "a\u{1b}[2J\u{7}\u{202e}`|<b>\\u001b[31m\\ud800\0x";
    let texts = [
        "",
        "-1",
        "0",
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999999999999999999999",
        "1e400",
        "-1e400",
        "1e-400",
        "NaN",
        "Infinity",
        "0.0000000000000000000000000000000000000001",
        "null",
        "true",
        "{}",
        "\"",
        "\n",
        ",,,,",
        "=cmd|' /C calc'!A0",
        "x",
        deep.as_str(),
        objects.as_str(),
        escapes,
    ];
    let mut values: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    values.push(b"n".repeat(1 << 20));
    values.push(b"9".repeat(1 << 20));
    values.push(vec![0xff; 64]);
    values
}

/// Where runs of characters of a kind lie.
fn runs(bytes: &[u8], is: impl Fn(u8) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| is(**byte)) {
        match runs.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

#[test]
fn wrong_values_in_every_place_are_survived() {
    let values = &wrong_values();
    each_input(|input| {
        if input.bytes.starts_with(b"SQLite") {
            return;
        }
        let copy = Copy::of(input);
        // The rows are alike: the places of the head and of the first rows are all there are, and a few of the last ones.
        let places = |is: fn(u8) -> bool| {
            let all = runs(&input.bytes, is);
            let last = all.len().saturating_sub(3);
            all.into_iter().enumerate().filter(move |(i, _)| *i < 40 || *i >= last).map(|(_, run)| run)
        };
        let places = places(|b| b.is_ascii_digit()).chain(places(|b| b.is_ascii_alphabetic()));
        for (number, place) in places.enumerate() {
            // The long ones in some places only: they take as long to write as they are.
            for value in values.iter().filter(|value| value.len() < 1000 || number % 16 == 0) {
                let (before, after) = (input.bytes.get(..place.start).unwrap(), input.bytes.get(place.end..).unwrap());
                let _ = copy.read(&[before, value, after].concat());
            }
        }
    });
}

#[test]
fn what_is_no_file_of_the_format_is_refused_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::create_dir(here.join("folder")).unwrap();
    std::fs::write(here.join("empty"), b"").unwrap();
    std::fs::write(here.join("zeros"), vec![0; 1 << 20]).unwrap();
    std::fs::write(here.join("nested"), "[".repeat(1 << 20)).unwrap();
    std::fs::write(here.join("objects"), "{\"a\":".repeat(1 << 18)).unwrap();
    std::fs::write(here.join("quote"), format!("\"{}", "x,".repeat(1 << 19))).unwrap();
    std::fs::write(here.join("gzip"), [0x1f, 0x8b]).unwrap();
    std::fs::write(here.join("songs.sqlite"), include_bytes!("../../../tests/songs.sqlite")).unwrap();
    for format in REGISTRY.iter().filter(|f| !["kineto", "nsys", "nsys-rep"].contains(&f.id)) {
        for name in ["folder", "empty", "zeros", "nested", "objects", "quote", "gzip", "songs.sqlite", "absent"] {
            // Timelines may hold nothing at all and end early.
            if let Ok(trace) = read(&here.join(name), format.id) {
                assert_eq!(trace.slice_count() + trace.summaries.len(), 0, "{} of {name}", format.id);
                assert!(lost(&trace) > 0, "{} took {name} for a whole file", format.id);
            }
        }
    }
}
