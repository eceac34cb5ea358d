//! What the integration tests share: the program, simulated captures, the corpus, and edits of a capture.

#![allow(dead_code)]

pub mod ascend;
pub mod buckets;
pub mod pair;
pub mod schema;
pub mod screen;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use diagnosis::{
    analysis::{self, Analysis},
    diagnose::Diagnosis,
    platform::Packs,
};
use model::{Category, Clock, Detail, Ns, Slice, Trace, TraceBuilder, TraceSink, TrackKey};
use session::{Capture, Error, Options, Reading, Session};

/// The program in a directory, without the environment of whoever runs the tests.
pub fn strato(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("LANG", "C.UTF-8").output().unwrap()
}

/// What the program prints in a directory, where it ends well and has nothing to complain of.
pub fn printed(arguments: &[&str], directory: &Path) -> String {
    let output = strato(arguments, directory);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "strato {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The folder of the simulated captures that come with the program.
pub fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces")
}

/// What the program prints about one of them, such as `printed_of_sample(&["diagnose", "--lang", "en"], "….json.gz")`.
pub fn printed_of_sample(arguments: &[&str], sample: &str) -> String {
    printed(&[arguments, &[sample]].concat(), &samples())
}

/// One of them, as the program reads it.
pub fn sample(name: &str) -> Trace {
    read(&samples().join(name))
}

/// Reads a capture as the program does.
pub fn read(path: &Path) -> Trace {
    let session = Session::open(&[path.to_owned()], &Reading::default()).expect("readable");
    let [trace] = session.into_captures().try_into().expect("one capture");
    trace
}

/// Captures with the knowledge that comes with the program.
pub fn session(captures: Vec<Trace>) -> Session {
    Session::of(captures, Packs::embedded().unwrap())
}

/// A capture that was analysed, with what it shows of its run.
pub fn examined(trace: Trace) -> Capture {
    let [capture] = session(vec![trace]).examine(&Options::default()).unwrap().into_captures().try_into().ok().unwrap();
    capture
}

/// What the analysis of a capture says.
pub fn analyze(trace: &Trace) -> Analysis {
    examined(trace.clone()).analysis
}

/// A capture with what was found in it.
pub fn diagnosed(trace: Trace) -> (Trace, Analysis, Diagnosis) {
    let diagnosed = session(vec![trace]).examine(&Options::default()).and_then(session::Examined::diagnose);
    let [capture] = diagnosed.unwrap().captures.try_into().ok().unwrap();
    capture
}

/// What is found in a capture.
pub fn found_in(trace: &Trace) -> Diagnosis {
    diagnosed(trace.clone()).2
}

/// A capture that the session refuses, with the reason.
pub fn refused(path: &Path) -> Error {
    Session::open(&[path.to_owned()], &Reading::default()).err().expect("no capture")
}

/// What a variable names, which the test needs: it runs only when it is asked for.
pub fn required(variable: &str, what: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    named.unwrap_or_else(|| panic!("{variable} has to name {what}; leave --include-ignored out where there is none"))
}

/// The folder of real captures.
pub fn corpus() -> PathBuf {
    required("STRATO_CORPUS", "the folder of real captures")
}

/// Everything below a folder that is read as one capture: files, and directories that a profiler fills.
pub fn captures(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && parsers::detect::detect(&path, &parsers::ReadOptions::default()).is_err() {
            captures(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// One slice of a capture on its way into an edited one.
#[derive(Clone, Debug)]
pub struct Event {
    pub track: TrackKey,
    pub start: Ns,
    pub dur: Ns,
    pub name: String,
    pub category: Category,
    pub correlation: Option<i64>,
    pub detail: Option<Detail>,
}

/// A copy of a capture in which every slice has been replaced by what `edit` makes of it; its counters stay.
pub fn edited(trace: &Trace, mut edit: impl FnMut(Event) -> Vec<Event>) -> Trace {
    let mut b = TraceBuilder::new(&*trace.source, &*trace.format);
    // The same texts in the same order get the same ids, so that details stay valid.
    for (_, text) in trace.strings.iter() {
        b.intern(text);
    }
    for (i, p) in trace.processes.iter().enumerate() {
        let process = b.process(i as u64);
        b.describe_process(process, p.pid, p.name.map(|n| trace.strings.get(n)), p.rank);
    }
    trace.devices.iter().for_each(|d| b.device(d.clone()));
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        for i in 0..lane.len() {
            let event = Event {
                track: track.key,
                start: lane.start[i],
                dur: lane.dur[i],
                name: trace.strings.get(lane.name[i]).to_owned(),
                category: lane.category[i],
                correlation: (lane.correlation[i] != model::trace::NO_CORRELATION).then_some(lane.correlation[i]),
                detail: trace.detail(lane, i).cloned(),
            };
            for e in edit(event) {
                let (track, name) = (b.track(e.track), b.intern(&e.name));
                b.slice(Slice {
                    track,
                    start: e.start,
                    dur: e.dur,
                    name,
                    category: e.category,
                    correlation: e.correlation,
                    detail: e.detail.as_ref(),
                });
            }
        }
    }
    b.clock(Clock::AsIs { unix_zero: trace.start_unix_ns });
    let mut edited = b.finish();
    edited.counters.clone_from(&trace.counters);
    edited
}

/// What an analysis says of a step, free of ids.
#[derive(Clone, Debug, PartialEq)]
pub struct StepEssence {
    pub window: Ns,
    pub class: String,
    pub buckets: Vec<(String, Ns)>,
}

/// What an analysis says of every step, rank by rank.
pub fn essence(analysis: &Analysis) -> Vec<Vec<StepEssence>> {
    let labels = &analysis.host_labels;
    let step = |rank: &analysis::Rank, s: &analysis::Step| StepEssence {
        window: s.window.len(),
        class: rank.classes[s.class].key.clone(),
        buckets: s.buckets.iter().map(|(b, ns)| (b.name(labels), *ns)).collect(),
    };
    analysis.ranks.iter().map(|r| r.steps.iter().map(|s| step(r, s)).collect()).collect()
}

/// Copies a directory with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            // Of what cannot be written, such as the corpus, copies are made to be edited.
            std::fs::write(&target, std::fs::read(&path).unwrap()).unwrap();
        }
    }
}
