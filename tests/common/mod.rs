//! What the integration tests share: the program, simulated captures, the corpus, and edits of a capture.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod buckets;
pub mod pair;
pub mod schema;
pub mod screen;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use diagnosis::{
    analysis::{self, Analysis, Options},
    platform::Packs,
};
use model::{Category, Clock, Detail, Ns, Slice, Trace, TraceBuilder, TraceSink, TrackKey};

/// The program in a directory, without the environment of whoever runs the tests.
pub fn strato(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("LANG", "C.UTF-8").output().unwrap()
}

/// Reads a trace file.
pub fn read(path: &Path) -> Trace {
    let mut builder = TraceBuilder::new(path.display().to_string(), "");
    let format = parsers::detect::read(path, None, &mut builder, &|_, _| {}).expect("readable");
    let mut trace = builder.finish();
    trace.format = format.id.to_owned();
    trace
}

/// Analyses a trace with the embedded packs.
pub fn analyze(trace: &Trace) -> Analysis {
    analysis::analyze(trace, &Packs::embedded().unwrap(), &Options::default())
}

/// The folder of real captures, or `None` with a line that says so.
pub fn corpus() -> Option<PathBuf> {
    let path = std::env::var_os("STRATO_CORPUS").map(PathBuf::from).filter(|p| p.is_dir());
    if path.is_none() {
        println!("skipped: STRATO_CORPUS is not set to the folder of real captures");
    }
    path
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
