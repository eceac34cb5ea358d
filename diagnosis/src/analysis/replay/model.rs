//! One rank as the replay sees it: host calls with the work before each, device operations with what holds each of them
//! up, and one order in which every point depends only on points before it.

use model::{Ns, TrackId};
use rustc_hash::FxHashMap;

/// No operation, no call, no instance.
pub(super) const NONE: u32 = u32::MAX;

/// A point of the run. Sorted by observed time, every point comes after all it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A call begins.
    Begin(u32),
    /// A call returns.
    End(u32),
    /// An operation starts.
    Op(u32),
    /// A collective ends on this rank.
    Join(u32),
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It runs in its queue.
    Stays,
    /// It is not done.
    Removed,
    /// It runs beside its queue.
    Aside,
}

/// When an operation may start, and how long it lasts. Times are ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpRow {
    /// Operation before it on its queue.
    pub pred: u32,
    /// Its launch call.
    pub call: u32,
    /// Operation of another queue whose event it waits for.
    pub dep: u32,
    /// Call whose beginning gives it a core.
    pub core: u32,
    /// Collective that it is part of.
    pub instance: u32,
    /// Signal that its end gives.
    pub tells: u32,
    /// Whether `latency` counts from the return of the call rather than from its beginning.
    pub from_end: bool,
    /// What becomes of it.
    pub fate: Fate,
    /// From the call to the earliest start.
    pub latency: Ns,
    /// From the end of `pred` to the earliest start; negative where the two overlap.
    pub gap: Ns,
    /// From the end of `dep` to the earliest start.
    pub lag: Ns,
    /// From the beginning of `core` to the earliest start.
    pub wake: Ns,
    /// Duration.
    pub dur: Ns,
}

/// A host call. Times are ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallRow {
    /// Thread, as an index into the model's threads.
    pub thread: u32,
    /// Thread from whose last point `before` counts, where it is not this thread's own: the one that launches most, or the one
    /// that hands over what is launched here.
    pub follows: u32,
    /// Operation whose end the call waits for.
    pub awaits: u32,
    /// Signal of an operation's end, maybe in another rank, that lets the call begin.
    pub heeds: u32,
    /// Host time before the call.
    pub before: Ns,
    /// Time of the call itself (after the last call nested in it), without waiting.
    pub own: Ns,
    /// From the end of what it waits for to its return; negative where it returns before that.
    pub tail: Ns,
}

/// Medians of a rank, for what an operation's own record does not show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typical {
    /// From the beginning of a launch call to the start of its work on an idle queue, ns.
    pub latency: Ns,
    /// From the return of a graph launch to the start of its first node on an idle queue, ns.
    pub graph_latency: Ns,
    /// Between two launched operations of a queue, ns.
    pub gap: Ns,
    /// Whether that was seen: where every launch finds an idle queue it is what devices usually need.
    pub gap_seen: bool,
    /// Between two nodes of a graph, ns; `None` without graphs.
    pub node_gap: Option<Ns>,
    /// Launch call that does not block, ns.
    pub launch: Ns,
    /// Graph launch, ns; `None` without graphs.
    pub graph_launch: Option<Ns>,
    /// Host time before a launch, ns.
    pub before: Ns,
    /// Blocking call that had nothing to wait for, ns.
    pub sync: Ns,
    /// From the end of what a blocking call waits for to its return, ns.
    pub tail: Ns,
}

/// One rank, ready for replay.
pub(super) struct Model {
    /// Points in order.
    pub nodes: Vec<Node>,
    /// Operations.
    pub ops: Vec<OpRow>,
    /// Calls.
    pub calls: Vec<CallRow>,
    /// Host threads.
    pub threads: Vec<Thread>,
    /// Their indices by track.
    pub tracks: FxHashMap<TrackId, usize>,
    /// The one that launches most, as an index.
    pub main: usize,
    /// Observed begin of each call, ns.
    pub begins: Vec<Ns>,
    /// Observed start of each operation, ns.
    pub starts: Vec<Ns>,
    /// Observed end of each operation, ns.
    pub ends: Vec<Ns>,
    /// Medians.
    pub typical: Typical,
}

impl Model {
    /// The thread of a track.
    pub fn thread(&self, track: TrackId) -> Option<&Thread> {
        self.threads.get(*self.tracks.get(&track)?)
    }
}

/// One host thread.
pub(super) struct Thread {
    /// Its track.
    pub track: TrackId,
    /// Its points with their observed times, in order.
    pub points: Vec<(Ns, Node)>,
}

impl Thread {
    /// Observed time of its first point, ns.
    pub fn origin(&self) -> Ns {
        self.points.first().map_or(0, |(t, _)| *t)
    }
}
