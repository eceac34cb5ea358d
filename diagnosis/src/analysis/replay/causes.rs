//! What a call waited for and what an operation depended on, read from a timeline that records neither.

use model::{Ns, TrackId};
use rustc_hash::FxHashMap;

use super::{
    calibrate::FULL_QUEUE,
    model::{CallRow, NONE, Typical},
};
use crate::{
    analysis::{Call, CopyDir, DeviceOp, OpKind, Timeline, median},
    platform::{CanonicalOp, HostCall},
};

/// Ends of operations looked back upon for one that was launched before a wait.
const LOOKBACK: usize = 64;
/// A token copy that ended so many ns before a wait for an event returned is what the event marked; own value, above the
/// wake-up times that runtimes show.
const WAKE_UP: Ns = 50_000;
/// From the end of what an event marks to the end of the wait for it, and from there to the next operation, ns: own value, some
/// times what events take on current devices.
const EVENT: Ns = 20_000;
/// A queue that stood still for so long, ns, did so for what the device recorded, whatever the way from a launch to its work usually takes;
/// own value, many times that.
const STOOD_LONG: Ns = 1_000_000;
/// Queues looked through for the other end of an event.
const QUEUES: usize = 16;

/// Indices over a timeline.
pub(super) struct Causes<'a> {
    timeline: &'a Timeline,
    /// Operations by end.
    by_end: Vec<u32>,
    /// Copies to the host by end.
    tokens: Vec<u32>,
    /// Last operation of each call to end.
    last_of_call: Vec<u32>,
    /// Starts of the launching calls, and ends of what they launched, each in order.
    launched: Vec<Ns>,
    done: Vec<Ns>,
    /// Per queue its operations with the starts of their calls, in the order of those.
    issued: Vec<Vec<(Ns, u32)>>,
    /// Launching calls before which their thread made a stream wait.
    ordered: Vec<bool>,
    /// Whether calls that make a stream wait were recorded: they tell more than how long it stood.
    orders: bool,
}

impl<'a> Causes<'a> {
    /// Looks through a timeline.
    pub fn new(timeline: &'a Timeline) -> Self {
        let end = |o: &u32| timeline.ops.get(*o as usize).map_or(0, |op| op.end);
        let mut by_end: Vec<u32> = (0..timeline.ops.len() as u32).collect();
        by_end.sort_by_key(end);
        let to_host = |op: &DeviceOp| op.kind == OpKind::Copy(CopyDir::DtoH);
        let tokens = by_end.iter().copied().filter(|o| timeline.ops.get(*o as usize).is_some_and(to_host)).collect();
        let mut last_of_call = vec![NONE; timeline.calls.len()];
        for o in &by_end {
            let call = timeline.ops.get(*o as usize).and_then(|op| op.call);
            if let Some(last) = call.and_then(|c| last_of_call.get_mut(c as usize)) {
                *last = *o;
            }
        }
        let mut issued = vec![Vec::new(); timeline.queues.len()];
        for (o, op) in timeline.ops.iter().enumerate() {
            if let (Some(call), Some(queue)) = (timeline.call(op), issued.get_mut(op.queue as usize)) {
                queue.push((call.start, o as u32));
            }
        }
        issued.iter_mut().for_each(|queue| queue.sort_unstable());
        let launched = timeline.calls.iter().filter(|c| c.ops > 0).map(|c| c.start).collect();
        let mut done: Vec<Ns> = last_of_call.iter().filter(|o| **o != NONE).map(end).collect();
        done.sort_unstable();
        let orders = timeline.calls.iter().any(|call| call.kind == HostCall::StreamWaitEvent);
        let ordered = ordered(timeline);
        Self { timeline, by_end, tokens, last_of_call, launched, done, issued, ordered, orders }
    }

    fn op(&self, o: u32) -> Option<&'a DeviceOp> {
        self.timeline.ops.get(o as usize)
    }

    /// The operation that a blocking call waits for: its own if it launches, else the last one launched before it that had
    /// ended when it returned. Of a wait for an event the copy of the token is what programs wait for.
    pub fn awaited(&self, c: usize) -> u32 {
        let Some(call) = self.timeline.calls.get(c).filter(|call| call.blocking) else { return NONE };
        let own = self.last_of_call.get(c).copied().unwrap_or(NONE);
        if own != NONE {
            return own;
        }
        if call.kind == HostCall::SyncEvent {
            let token = self.last(&self.tokens, call);
            let ended = self.op(token).map_or(Ns::MIN, |op| op.end);
            if call.end.saturating_sub(ended) <= WAKE_UP || call.end - call.start <= WAKE_UP {
                return token;
            }
        }
        self.last(&self.by_end, call)
    }

    /// The last of `ops` (by end) that was launched before `call` and had ended when it returned.
    fn last(&self, ops: &[u32], call: &Call) -> u32 {
        let to = ops.partition_point(|o| self.op(*o).is_some_and(|op| op.end <= call.end));
        let before = |o: &&u32| {
            self.op(**o).is_some_and(|op| {
                op.start < call.end && self.timeline.call(op).is_none_or(|launch| launch.start < call.start)
            })
        };
        ops.get(..to).unwrap_or(&[]).iter().rev().take(LOOKBACK).find(before).copied().unwrap_or(NONE)
    }

    /// The operation that ended last by `t`.
    pub fn ended_by(&self, t: Ns) -> u32 {
        let to = self.by_end.partition_point(|o| self.op(*o).is_some_and(|op| op.end <= t));
        to.checked_sub(1).and_then(|i| self.by_end.get(i)).copied().unwrap_or(NONE)
    }

    /// Launches before `call` that had not ended when it returned.
    pub fn outstanding(&self, call: &Call) -> usize {
        let launched = self.launched.partition_point(|start| *start < call.start);
        launched.saturating_sub(self.done.partition_point(|end| *end <= call.end))
    }

    /// The operation of another queue that `o` waited for: where its thread had made a stream wait, or where a graph
    /// joins or forks its queues.
    pub fn dependency(&self, o: usize, pred: u32) -> u32 {
        if self.timeline.queues.len() < 2 {
            return NONE;
        }
        let Some(op) = self.timeline.ops.get(o) else { return NONE };
        if !self.orders
            && let Some(found) = self.stood_for(op, pred).or_else(|| self.given_before(op))
        {
            return found;
        }
        if self.timeline.calls.is_empty() {
            return self.ended_last(op, pred);
        }
        let ordered = self.ordered_by_calls(o, op, pred);
        // What had ended before its own queue was free explains no standing: of several operations that another queue was given before
        // the call, the calls do not tell which one was waited for, and the device's own record does. Of a send or a receive it does not:
        // what a stage of a pipeline comes to next, its host decides.
        let end = |o: u32| self.op(o).map_or(Ns::MIN, |op| op.end);
        let long = end(pred) > Ns::MIN && op.start - end(pred) >= STOOD_LONG;
        let reduces = |o: &u32| self.op(*o).is_some_and(|op| op.op == CanonicalOp::CommAllReduce);
        let stood =
            self.stood_for(op, pred).filter(|found| self.orders && long && end(ordered) <= end(pred) && reduces(found));
        stood.unwrap_or(ordered)
    }

    /// The same as far as the calls of the operation's thread tell.
    fn ordered_by_calls(&self, o: usize, op: &DeviceOp, pred: u32) -> u32 {
        let Some((c, call)) = op.call.and_then(|c| Some((c, self.timeline.calls.get(c as usize)?))) else {
            return NONE;
        };
        let inside = if call.kind == HostCall::GraphLaunch { self.within_graph(o, op, c) } else { NONE };
        // A graph as a whole waits for what its queue was told to wait for, as any launch does.
        let whole = call.kind != HostCall::GraphLaunch || op.first_of_call;
        let found = if inside != NONE || !whole {
            inside
        } else if self.ordered.get(c as usize) == Some(&true) {
            self.before_call(op, call)
        } else {
            NONE
        };
        let later = |found: &DeviceOp| {
            // Inside a graph the queue explains what it can.
            let queue = self.op(pred).filter(|p| p.call == op.call && call.kind == HostCall::GraphLaunch);
            queue.is_none_or(|p| found.end > p.end)
        };
        self.op(found).filter(|found| later(found)).map_or(NONE, |_| found)
    }

    /// Where not a single call was recorded nothing tells what was ordered: of the other queues the operation that ended last before
    /// `op` started, if its own queue had nothing later.
    fn ended_last(&self, op: &DeviceOp, pred: u32) -> u32 {
        let since = self.op(pred).map_or(Ns::MIN, |pred| pred.end);
        let to = self.by_end.partition_point(|o| self.op(*o).is_some_and(|other| other.end <= op.start));
        let mut before = self.by_end.get(..to).unwrap_or(&[]).iter().rev().take(LOOKBACK);
        let of_another = |o: &&u32| self.op(**o).is_some_and(|other| other.queue != op.queue);
        let found = before
            .find(of_another)
            .filter(|o| self.op(**o).is_some_and(|other| other.end > since && other.start < op.start));
        found.copied().unwrap_or(NONE)
    }

    /// The operation of another queue for which the queue of `op` stood still until right before it started, where the device
    /// recorded that it did.
    fn stood_for(&self, op: &DeviceOp, pred: u32) -> Option<u32> {
        let waits = self.timeline.stood.get(op.queue as usize)?;
        let wait = waits.get(waits.partition_point(|wait| wait.end <= op.start).checked_sub(1)?)?;
        let since = self.op(pred).map_or(Ns::MIN, |pred| pred.end);
        let near = op.start - wait.end <= EVENT && wait.end > since;
        let to = self.by_end.partition_point(|o| self.op(*o).is_some_and(|other| other.end <= wait.end));
        let before = self.by_end.get(..to)?.iter().rev().take(LOOKBACK);
        let mut others = before.filter(|o| self.op(**o).is_some_and(|other| other.queue != op.queue));
        let found = others.next().filter(|_| near)?;
        self.op(*found).filter(|other| wait.end - other.end <= EVENT && other.end > wait.start).map(|_| *found)
    }

    /// What a collective on a queue of its own waits for where no call tells: the framework has that queue wait for all that the
    /// program's queue was given before (`syncStreams` of torch's process groups, NCCL and HCCL alike).
    fn given_before(&self, op: &DeviceOp) -> Option<u32> {
        let call =
            self.timeline.call(op).filter(|call| call.kind != HostCall::GraphLaunch && op.kind == OpKind::Comm)?;
        Some(self.before_call(op, call)).filter(|found| *found != NONE)
    }

    /// The node of the same graph launch on another queue that ended last before `o` started.
    fn within_graph(&self, o: usize, op: &DeviceOp, call: u32) -> u32 {
        let before = self.timeline.ops.get(..o).unwrap_or(&[]);
        let nodes = before.iter().enumerate().rev().take(LOOKBACK).filter(|(_, other)| {
            other.call == Some(call) && other.queue != op.queue && other.end <= op.start && other.start < op.start
        });
        nodes.max_by_key(|(_, other)| other.end).map_or(NONE, |(i, _)| i as u32)
    }

    /// Of what the other queues had been given last before the call, the operation that ended last before `op` started.
    fn before_call(&self, op: &DeviceOp, call: &Call) -> u32 {
        let queues = self.issued.iter().enumerate().filter(|(q, _)| *q != op.queue as usize).take(QUEUES);
        let given = queues.filter_map(|(_, issued)| {
            let at = issued.partition_point(|(start, _)| *start < call.start).checked_sub(1)?;
            issued.get(at).map(|(_, o)| *o)
        });
        let ended =
            given.filter_map(|o| Some((self.op(o).filter(|g| g.end <= op.start && g.start < op.start)?.end, o)));
        ended.max().map_or(NONE, |(_, o)| o)
    }
}

/// Launching calls before which their thread made a stream wait for an event.
fn ordered(timeline: &Timeline) -> Vec<bool> {
    let mut waiting: FxHashMap<TrackId, bool> = FxHashMap::default();
    let mut out = vec![false; timeline.calls.len()];
    for (call, out) in timeline.calls.iter().zip(&mut out) {
        match call.kind {
            HostCall::StreamWaitEvent => {
                waiting.insert(call.track, true);
            }
            _ if call.ops > 0 => *out = waiting.remove(&call.track).unwrap_or(false),
            _ => {}
        }
    }
    out
}

/// Where the medians of a rank come from.
pub(super) struct Typicals<'a> {
    pub timeline: &'a Timeline,
    pub calls: &'a [CallRow],
    pub awaited: &'a [u32],
    pub causes: &'a Causes<'a>,
}

/// Stands in where no launch met an idle queue: the lower end of what CUDA runtimes show per launch (HTA documentation).
const LATENCY: Ns = 5_000;
/// Stands in where no operation was queued behind another, ns: what kernels of a busy queue are apart on current devices.
const GAP: Ns = 1_000;
/// Stands in where no launch call, no synchronisation and no wake-up was seen, ns; own value.
const CALL: Ns = 3_000;

impl Typicals<'_> {
    /// The medians.
    pub fn medians(&self) -> Typical {
        let ops = &self.timeline.ops;
        let (mut launch, mut graph, mut gap, mut node_gap) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut last: Vec<Option<&DeviceOp>> = vec![None; self.timeline.queues.len()];
        let mut latest = Ns::MIN;
        for op in ops {
            let previous = last.get_mut(op.queue as usize).and_then(|last| last.replace(op));
            if let Some(call) = self.timeline.call(op).filter(|call| call.start <= op.start) {
                let is_graph = call.kind == HostCall::GraphLaunch;
                // What ran on a queue before its first recorded operation is unknown.
                if op.first_of_call && previous.is_some() {
                    if is_graph && latest <= call.end && call.end <= op.start {
                        graph.push(op.start - call.end);
                    } else if !is_graph && latest <= call.start {
                        let freed = self.timeline.core_freed(op).and_then(|c| self.timeline.calls.get(c as usize));
                        launch.push(op.start - freed.unwrap_or(call).start);
                    }
                }
                if let Some(previous) = previous.filter(|p| p.end <= op.start && p.end == latest) {
                    let apart = op.start - previous.end;
                    if is_graph && !op.first_of_call && call.end <= previous.end {
                        node_gap.push(apart);
                    } else if !is_graph && call.end.saturating_add(4 * LATENCY) < previous.end {
                        gap.push(apart);
                    }
                }
            }
            latest = latest.max(op.end);
        }
        let (gap, gap_seen) = median(gap).map_or((GAP, false), |gap| (gap, true));
        let graphs = self.own(|call| call.kind == HostCall::GraphLaunch && call.ops > 0);
        let launches = |call: &Call| call.kind == HostCall::Launch && call.ops > 0;
        // Where the host is far ahead most launches wait for room in the queue: those that cannot have are usual.
        let free = |call: &Call| launches(call) && self.causes.outstanding(call) < FULL_QUEUE;
        let latency = median(launch).unwrap_or(LATENCY);
        Typical {
            latency,
            graph_latency: median(graph).unwrap_or(latency),
            gap,
            gap_seen,
            node_gap: (!graphs.is_empty()).then(|| median(node_gap).unwrap_or(gap)),
            launch: median(self.own(free)).or_else(|| median(self.own(launches))).unwrap_or(CALL),
            graph_launch: median(graphs),
            before: median(self.before()).unwrap_or(CALL),
            sync: median(self.waits(|waited| !waited)).unwrap_or(CALL),
            tail: median(self.waits(|waited| waited)).unwrap_or(CALL),
        }
    }

    fn own(&self, pick: impl Fn(&Call) -> bool) -> Vec<Ns> {
        let calls = self.timeline.calls.iter().zip(self.calls).filter(|(call, _)| pick(call));
        calls.map(|(_, row)| row.own).collect()
    }

    fn before(&self) -> Vec<Ns> {
        let calls = self.timeline.calls.iter().zip(self.calls);
        calls.filter(|(call, _)| call.kind == HostCall::Launch && call.ops > 0).map(|(_, row)| row.before).collect()
    }

    /// Tails of the synchronisations that waited, or times of those that did not.
    fn waits(&self, pick: impl Fn(bool) -> bool) -> Vec<Ns> {
        let calls = self.timeline.calls.iter().zip(self.calls).zip(self.awaited);
        let syncs = calls.filter(|((call, _), _)| call.blocking && call.ops == 0);
        syncs
            .filter_map(|((call, row), on)| {
                let end = self.timeline.ops.get(*on as usize)?.end;
                let waited = end > call.end - row.own;
                pick(waited).then_some(if waited { call.end - end } else { row.own })
            })
            .collect()
    }
}
