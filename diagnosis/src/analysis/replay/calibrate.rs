//! From a rank's timeline to a model that reproduces it: every operation gets its own latency and gap, so that what the
//! model cannot explain is kept as that operation's own constant (method §2.11).

use model::{Ns, TrackId};
use rustc_hash::FxHashMap;

use super::{
    causes::{Causes, Typicals},
    model::{CallRow, Fate, Model, NONE, Node, OpRow, Thread, Typical},
};
use crate::{
    analysis::{Call, DeviceOp, Rank, Timeline},
    platform::HostCall,
};

/// A thread that called nothing for so long, ns, was waiting for the one that launches; own value, longer than a launch.
const IDLE_THREAD: Ns = 20_000;
/// A thread with at least one launch in so many takes turns with the one that launches most, as the thread of the forward pass
/// does with that of the backward pass; own value, far above what a thread that only feeds data launches.
pub(super) const TURNS: usize = 8;
/// Pause of the thread that launches most from which another one may have had its turn, ns: far more than the framework's way from
/// one launch to the next; own value.
const TURN: Ns = 200_000;
/// A launch call that lasts so many times the usual one, and as many more ns, was blocked by a full queue; own values.
const BLOCKED: (Ns, Ns) = (4, 10_000);
/// Launches that must be outstanding before a queue can be full; queues hold from tens to about a thousand launches.
pub(super) const FULL_QUEUE: usize = 32;

/// A queue whose launches are within one part in so many of the most that were ever outstanding is at its limit; own value.
const AT_LIMIT: usize = 16;

/// Builds the model of a rank. `instances` are the collectives matched across ranks, by operation.
pub(super) fn calibrate(rank: &Rank, instances: &FxHashMap<u32, u32>) -> Model {
    let timeline = &rank.timeline;
    let (mut threads, roles) = threads(timeline);
    let nodes = order(timeline, &mut threads, instances);
    let mut calls = host_leads(timeline, &threads, &roles, &nodes);
    let causes = Causes::new(timeline);
    let awaited: Vec<u32> = (0..calls.len()).map(|c| causes.awaited(c)).collect();
    let typical = Typicals { timeline, calls: &calls, awaited: &awaited, causes: &causes }.medians();
    waits(timeline, &mut calls, &awaited, &typical, &causes);
    Model {
        nodes,
        ops: operations(timeline, instances, &typical, &causes),
        calls,
        tracks: threads.iter().enumerate().map(|(i, thread)| (thread.track, i)).collect(),
        threads,
        main: roles.main,
        begins: timeline.calls.iter().map(|call| call.start).collect(),
        starts: timeline.ops.iter().map(|op| op.start).collect(),
        ends: timeline.ops.iter().map(|op| op.end).collect(),
        typical,
    }
}

/// A thread while its calls are read: its points, its open calls with their ends, and how many of its calls launch.
type Walked = (Thread, Vec<(Ns, u32)>, usize);

/// Which threads launch, as indices.
struct Roles {
    /// The one that launches most.
    main: usize,
    /// The others that take turns with it.
    turns: Vec<usize>,
}

/// The threads that call, with their points, and which of them launch.
fn threads(timeline: &Timeline) -> (Vec<Thread>, Roles) {
    let mut position: FxHashMap<TrackId, usize> = FxHashMap::default();
    let mut threads: Vec<Walked> = Vec::new();
    for (c, call) in timeline.calls.iter().enumerate() {
        let at = *position.entry(call.track).or_insert_with(|| {
            threads.push((Thread { track: call.track, points: Vec::new() }, Vec::new(), 0));
            threads.len() - 1
        });
        let Some((thread, open, launches)) = threads.get_mut(at) else { continue };
        close(&mut thread.points, open, call.start);
        thread.points.push((call.start, Node::Begin(c as u32)));
        open.push((call.end, c as u32));
        *launches += usize::from(call.ops > 0);
    }
    for (thread, open, _) in &mut threads {
        close(&mut thread.points, open, Ns::MAX);
    }
    let launches = || threads.iter().map(|(.., n)| *n).enumerate();
    let main = launches().max_by_key(|(i, n)| (*n, std::cmp::Reverse(*i))).map_or(0, |(i, _)| i);
    let all: usize = launches().map(|(_, n)| n).sum();
    let turns = launches().filter(|(i, n)| *i != main && TURNS * n >= all.max(1)).map(|(i, _)| i).collect();
    (threads.into_iter().map(|(thread, ..)| thread).collect(), Roles { main, turns })
}

/// Ends every open call that has ended by `t`, innermost first. A call that outlasts the one around it ends with it.
fn close(points: &mut Vec<(Ns, Node)>, open: &mut Vec<(Ns, u32)>, t: Ns) {
    while let Some((end, c)) = open.last().copied().filter(|(end, _)| *end <= t) {
        let latest = points.last().map_or(end, |(latest, _)| end.max(*latest));
        points.push((latest, Node::End(c)));
        open.pop();
    }
}

/// All points by time. At the same time a collective ends first, then the host acts, then operations start.
fn order(timeline: &Timeline, threads: &mut [Thread], instances: &FxHashMap<u32, u32>) -> Vec<Node> {
    let host: usize = threads.iter().map(|t| t.points.len()).sum();
    let mut keyed: Vec<(Ns, u8, u32, Node)> = Vec::with_capacity(host + timeline.ops.len() + instances.len());
    for thread in threads {
        for point in &thread.points {
            keyed.push((point.0, 1, keyed.len() as u32, point.1));
        }
    }
    for (o, op) in timeline.ops.iter().enumerate() {
        keyed.push((op.start, 2, o as u32, Node::Op(o as u32)));
        if instances.contains_key(&(o as u32)) {
            // An operation without duration would end before it starts.
            let class = if op.end > op.start { 0 } else { 3 };
            keyed.push((op.end, class, o as u32, Node::Join(o as u32)));
        }
    }
    keyed.sort_unstable_by_key(|(t, class, nth, _)| (*t, *class, *nth));
    keyed.into_iter().map(|(.., node)| node).collect()
}

/// Calls with the host time before and inside each.
fn host_leads(timeline: &Timeline, threads: &[Thread], roles: &Roles, nodes: &[Node]) -> Vec<CallRow> {
    let position: FxHashMap<TrackId, usize> = threads.iter().enumerate().map(|(i, t)| (t.track, i)).collect();
    let mut cursor: Vec<Ns> = threads.iter().map(Thread::origin).collect();
    let blank = CallRow { thread: 0, follows: NONE, awaits: NONE, heeds: NONE, before: 0, own: 0, tail: 0 };
    let mut rows = vec![blank; timeline.calls.len()];
    let feeders = timeline.tasks.feeders();
    for node in nodes {
        let (Node::Begin(c) | Node::End(c)) = node else { continue };
        let (Some(call), Some(row)) = (timeline.calls.get(*c as usize), rows.get_mut(*c as usize)) else { continue };
        let at = position.get(&call.track).copied().unwrap_or(0);
        // Who may have kept this thread waiting: for the one that launches most the last that took its turn, for others that one. A
        // thread that has not begun yet keeps nobody waiting.
        let after = |thread: usize| Some((thread, *cursor.get(thread).filter(|t| **t <= call.start)?));
        let turns =
            roles.turns.iter().copied().filter_map(after).max_by_key(|(thread, t)| (*t, std::cmp::Reverse(*thread)));
        let leader = if at == roles.main { turns } else { after(roles.main) };
        // A thread that launches what another one hands to it cannot be before it.
        let own = cursor.get(at).copied().unwrap_or(0);
        let feeder = timeline.tasks.awaited(call.track, own).and_then(|feeder| position.get(&feeder).copied());
        let handed = feeder.filter(|feeder| *feeder != at).and_then(after);
        let Some(last) = cursor.get_mut(at) else { continue };
        if matches!(node, Node::Begin(_)) {
            row.thread = at as u32;
            let idle = call.start - *last > IDLE_THREAD && !feeders.contains(&call.track);
            // The other thread's turn ends where this one goes on; its calls in the middle of a pause are its own affair.
            let paused = call.start - *last;
            let turned = |t: Ns| at != roles.main || (paused > TURN && call.start - t < paused / 2);
            let leader = leader.filter(|(_, t)| idle && *t > *last && turned(*t));
            let (leader, from) = match handed.or(leader) {
                Some((thread, t)) if t > *last => (thread as u32, t),
                _ => (NONE, *last),
            };
            row.follows = leader;
            row.before = (call.start - from).max(0);
            *last = call.start.max(*last);
        } else {
            row.own = (call.end - *last).max(0);
            *last = call.end.max(*last);
        }
    }
    rows
}

/// Which calls wait for which operation, and how long each takes without waiting.
fn waits(timeline: &Timeline, calls: &mut [CallRow], awaited: &[u32], typical: &Typical, causes: &Causes<'_>) {
    let usual = BLOCKED.0 * typical.launch + BLOCKED.1;
    let plain = |call: &Call| !call.blocking && call.ops > 0 && call.kind != HostCall::GraphLaunch;
    // A queue that is full stays at its limit: there a launch need not be as long to have been blocked.
    let limit = timeline.calls.iter().filter(|c| plain(c)).map(|c| causes.outstanding(c)).max().unwrap_or(0);
    let full = (limit - limit / AT_LIMIT).max(FULL_QUEUE);
    for (c, (call, row)) in timeline.calls.iter().zip(calls.iter_mut()).enumerate() {
        let least = if row.own > usual { FULL_QUEUE } else { full };
        let blocked = plain(call) && row.own > 2 * typical.launch && causes.outstanding(call) >= least;
        let on = match awaited.get(c) {
            Some(on) if call.blocking => *on,
            _ if blocked => {
                // What makes room may end less than a usual launch before the call returns: it is the one that ended within it.
                let early = causes.ended_by(call.end - typical.launch);
                let within = timeline.ops.get(early as usize).is_some_and(|op| op.end > call.end - row.own);
                if within { early } else { causes.ended_by(call.end) }
            }
            _ => continue,
        };
        let Some(op) = timeline.ops.get(on as usize).filter(|op| op.start < call.end) else { continue };
        let begun = call.end - row.own;
        // Negative where the call hands its last bytes over and returns before they are there.
        let observed = call.end - op.end;
        row.awaits = on;
        if op.end > begun {
            row.tail = observed;
            row.own = row.own.min(if blocked { typical.launch } else { typical.sync });
        } else {
            row.tail = observed.min(typical.tail);
        }
    }
}

/// Operations, each with what holds it up: of its launch, its queue and its event the one that is expected last is taken
/// for the cause, and what it does not explain is the operation's own.
fn operations(
    timeline: &Timeline,
    instances: &FxHashMap<u32, u32>,
    typical: &Typical,
    causes: &Causes<'_>,
) -> Vec<OpRow> {
    let mut last = vec![NONE; timeline.queues.len()];
    let mut rows = Vec::with_capacity(timeline.ops.len());
    for (o, op) in timeline.ops.iter().enumerate() {
        let pred = last.get_mut(op.queue as usize).map_or(NONE, |last| std::mem::replace(last, o as u32));
        let dep = causes.dependency(o, pred);
        rows.push(row(timeline, op, (pred, dep, instances.get(&(o as u32)).copied().unwrap_or(NONE)), typical));
    }
    rows
}

fn row(timeline: &Timeline, op: &DeviceOp, (pred, dep, instance): (u32, u32, u32), typical: &Typical) -> OpRow {
    let call = timeline.call(op).filter(|call| call.start <= op.start);
    let graph = call.is_some_and(|call| call.kind == HostCall::GraphLaunch);
    let from_end = call.is_some_and(|call| graph && call.end <= op.start);
    let issued = call.map(|call| if from_end { call.end } else { call.start });
    let end_of = |o: u32| timeline.ops.get(o as usize).map(|op| op.end);
    // Of node gaps and launch gaps the operation's own kind is usual.
    let (latency, gap) = match typical.node_gap {
        Some(node_gap) if graph => (if from_end { typical.graph_latency } else { typical.latency }, node_gap),
        _ => (typical.latency, typical.gap),
    };
    let since = |t: Option<Ns>| t.map(|t| op.start - t);
    let (launched, queued, waited) = (since(issued), since(end_of(pred)), since(end_of(dep)));
    // The core comes last of all, and explains the start alone.
    let drained = end_of(pred).is_none_or(|end| call.is_some_and(|call| end <= call.end));
    let core = if drained { timeline.core_freed(op) } else { None };
    let wake = core.and_then(|core| since(Some(timeline.calls.get(core as usize)?.start)));
    let expected = |t: Option<Ns>, usual: Ns| t.map_or(Ns::MIN, |observed| usual - observed);
    let (by_launch, by_queue, by_event) =
        (expected(launched, latency), expected(queued, gap), expected(waited, typical.gap));
    let latest = by_launch.max(by_queue).max(by_event);
    let own = |observed: Option<Ns>, usual: Ns, expected: Ns| {
        observed.map_or(0, |observed| if expected == latest && wake.is_none() { observed } else { observed.min(usual) })
    };
    OpRow {
        pred,
        call: call.and(op.call).unwrap_or(NONE),
        dep,
        core: core.unwrap_or(NONE),
        instance,
        tells: NONE,
        from_end,
        fate: Fate::Stays,
        latency: own(launched, latency, by_launch),
        gap: own(queued, gap, by_queue),
        lag: own(waited, typical.gap, by_event),
        wake: wake.unwrap_or(0),
        dur: op.dur(),
    }
}
