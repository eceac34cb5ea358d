//! What replayed kernels are, told by the trace of the phase in which their graphs were captured.
//!
//! While a graph is captured, the host launches every kernel of it under its operators and modules, and nothing runs. A
//! replay runs the same kernels under one call that says none of this. The k-th launch of a name under the capture is the
//! k-th kernel of that name in the replay (nodes keep their order within a queue), so each replayed kernel gets the operator,
//! its shapes and the module that launched it, as ranges beside its queue.
//!
//! | module | owns |
//! | --- | --- |
//! | `captured` | the launches of each captured graph, with what stood around them |
//! | `fit` | which graph a replay is of |
//! | `write` | the ranges beside the queues of the run |

use std::collections::BTreeSet;

use model::{Beside, Category, Columns, Ns, SliceId, Trace, TrackId, TrackKey, TrackKind};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::platform::{HostCall, Packs};

mod captured;
mod fit;
#[cfg(test)]
mod tests;
mod write;

/// Share of a replay's kernels that must find a launch of their name for the graph to be theirs: own value. Graphs of two
/// batch sizes differ in more, and kernels that the library chose anew after the capture in less.
const SAME: f64 = 0.9;

/// Whether a call begins or ends a graph capture: CUDA and HIP say `StreamBeginCapture`, CANN `aclmdlRICaptureBegin`.
pub(super) fn capture_edge(name: &str) -> Option<bool> {
    let says = |words: [&str; 2]| words.iter().any(|word| name.contains(word));
    match (says(["BeginCapture", "CaptureBegin"]), says(["EndCapture", "CaptureEnd"])) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// How a run and a graph capture fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Replays in the run whose graph was found.
    pub replays: u64,
    /// Replays whose graph is not in the capture.
    pub unknown: u64,
    /// Kernels of all replays.
    pub kernels: u64,
    /// Of those, kernels that found their launch.
    pub matched: u64,
    /// Whether names were compared; otherwise only numbers of kernels were.
    pub by_name: bool,
    /// Matched kernels that had no name and got that of their launch.
    pub named: u64,
    /// Annotations around the graphs that were found, such as `capture_32_FULL`.
    pub graphs: Vec<String>,
}

/// Why a graph capture says nothing of a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Misfit {
    /// The run replays nothing.
    #[error(
        "the run holds no kernel that a graph launch caused; give a run that replays graphs and records their kernels"
    )]
    NoReplay,
    /// The capture captures nothing.
    #[error(
        "the graph capture holds no launch between the begin and the end of a stream capture; give the trace of the process's start-up, with host calls"
    )]
    NoCapture,
    /// They are of different processes.
    #[error(
        "the run is of process {run}, the graph capture of process {capture}; give the capture of the same process"
    )]
    OtherProcess {
        /// Process ids of the run.
        run: String,
        /// Process ids of the graph capture.
        capture: String,
    },
    /// No graph has the kernels of any replay.
    #[error(
        "no captured graph is the one that the run replays: its replays have {replays} kernels, the captured graphs {graphs} launches, and at most {best} of a replay's kernels have a launch of their name; give the capture of the same run"
    )]
    NoneFits {
        /// Kernels of the replays, as a list of numbers.
        replays: String,
        /// Launches of the captured graphs, as a list of numbers.
        graphs: String,
        /// Best share found, in percent.
        best: String,
    },
}

/// Takes names, operators with shapes, and modules of the kernels that `run` replays from `capture`, the trace of the same
/// process while its graphs were captured.
///
/// # Errors
/// [`Misfit`] when the two do not fit; `run` is then as it was.
pub fn apply(run: &mut Trace, capture: &Trace, packs: &Packs) -> Result<Fit, Misfit> {
    let pids = |trace: &Trace| -> BTreeSet<i64> { trace.processes.iter().filter_map(|p| p.pid).collect() };
    let (ours, theirs) = (pids(run), pids(capture));
    if !ours.is_empty() && !theirs.is_empty() && ours.is_disjoint(&theirs) {
        let listed = |pids: BTreeSet<i64>| list(&pids.into_iter().collect::<Vec<_>>());
        return Err(Misfit::OtherProcess { run: listed(ours), capture: listed(theirs) });
    }
    let replays = replays(run, packs, &theirs);
    if replays.is_empty() {
        return Err(Misfit::NoReplay);
    }
    let graphs = captured::graphs(capture, packs);
    if graphs.is_empty() {
        return Err(Misfit::NoCapture);
    }
    let found = fit::fit(run, capture, &replays, &graphs)?;
    Ok(write::write(run, capture, &replays, &graphs, &found))
}

/// The first values of a list, for people.
fn list<T: std::fmt::Display>(values: &[T]) -> String {
    const FEW: usize = 8;
    let few: Vec<String> = values.iter().take(FEW).map(ToString::to_string).collect();
    let more = if values.len() > FEW { ", …" } else { "" };
    few.join(", ") + more
}

/// A kernel or other node on a device queue: track and row.
type Node = (usize, usize);

/// The device work of each graph launch of the processes `pids` of the run, in order of start. A process without a number,
/// or any where `pids` is empty, may be the one.
fn replays(run: &Trace, packs: &Packs, pids: &BTreeSet<i64>) -> Vec<Vec<Node>> {
    let fits = |track: usize| {
        let process = run.tracks.get(track).and_then(|track| run.processes.get(track.key.process.0 as usize));
        pids.is_empty() || process.and_then(|p| p.pid).is_none_or(|pid| pids.contains(&pid))
    };
    let mut is_launch: FxHashMap<SliceId, bool> = FxHashMap::default();
    let mut of_call: FxHashMap<SliceId, Vec<(Ns, Node)>> = FxHashMap::default();
    for (track, lane) in run.lanes.iter().enumerate() {
        if !is(run, track, TrackKind::DeviceQueue) || !fits(track) {
            continue;
        }
        for row in (0..lane.len())
            .filter(|row| matches!(lane.category[*row], Category::Kernel | Category::Memcpy | Category::Memset))
        {
            let Some(call) = lane.link(row) else { continue };
            let launches = *is_launch.entry(call).or_insert_with(|| {
                let name =
                    run.locate(call).and_then(|(track, row)| run.lanes.get(track.0 as usize)?.name.get(row).copied());
                name.is_some_and(|name| packs.host_call(run.strings.get(name)) == HostCall::GraphLaunch)
            });
            if launches {
                of_call.entry(call).or_default().push((lane.start[row], (track, row)));
            }
        }
    }
    let mut calls: Vec<(SliceId, Vec<(Ns, Node)>)> = of_call.into_iter().collect();
    calls.sort_by_key(|(call, _)| *call);
    let in_order = |mut nodes: Vec<(Ns, Node)>| {
        nodes.sort_unstable();
        nodes.into_iter().map(|(_, node)| node).collect()
    };
    calls.into_iter().map(|(_, nodes)| in_order(nodes)).collect()
}

/// Slices that device work names as its launch.
fn launching(trace: &Trace) -> FxHashSet<SliceId> {
    trace.lanes.iter().flat_map(|lane| (0..lane.len()).filter_map(|row| lane.link(row))).collect()
}

fn is(trace: &Trace, track: usize, kind: TrackKind) -> bool {
    trace.tracks.get(track).is_some_and(|track| track.key.kind == kind)
}

/// Tracks with what a graph capture gave to replayed kernels, or the profiler's own table to all.
#[derive(Clone, Debug, Default)]
pub struct Tracks(FxHashMap<TrackKey, TrackId>);

impl Tracks {
    /// Those of a capture.
    pub fn of(trace: &Trace) -> Self {
        if [Beside::MATCH, Beside::TOLD].iter().all(|field| trace.manifest.value(field).is_none()) {
            return Self::default();
        }
        let tracks = trace.tracks.iter().zip(0u32..).filter(|(track, _)| track.key.kind == TrackKind::DeviceAnnotation);
        Self(tracks.map(|(track, id)| (track.key, TrackId(id))).collect())
    }

    /// The operators beside this queue.
    pub fn operators(&self, queue: TrackKey) -> Option<TrackId> {
        self.0.get(&Beside::Operators.key(queue)).copied()
    }

    /// The modules beside this queue.
    pub fn modules(&self, queue: TrackKey) -> Option<TrackId> {
        self.0.get(&Beside::Modules.key(queue)).copied()
    }
}

/// The range of such a track that a kernel which started then lies in: lane and row.
pub fn range_at(trace: &Trace, track: TrackId, start: Ns) -> Option<(&Columns, usize)> {
    let lane = trace.lanes.get(track.0 as usize)?;
    let row = lane.start.partition_point(|begin| *begin <= start).checked_sub(1)?;
    (start < lane.end(row)).then_some((lane, row))
}
