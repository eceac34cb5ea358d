//! Idle gaps: the operation that ends a gap owns it, and its launch call says why the gap was there (method §2.4).

use model::{Ns, Span};

use super::{
    bucket::Bucket,
    device_waits,
    host::HostStates,
    median,
    timeline::{Call, DeviceOp, Timeline},
};
use crate::platform::HostCall;

/// A maximal interval in which the device did nothing.
#[derive(Clone, Debug)]
pub struct Gap {
    /// When.
    pub span: Span,
    /// The operation that ends it, as an index into the timeline's operations.
    pub owner: Option<u32>,
    /// Step it lies in.
    pub step: u32,
    /// What it is attributed to, in time order; the parts tile the gap.
    pub parts: Vec<(Bucket, Span)>,
    /// A blocking synchronisation covered the moment the device drained: the rest of the host part is restart work.
    pub after_sync: bool,
    /// It ends with the first operation of the next step: scheduling cadence, not launch rate.
    pub between_steps: bool,
}

/// Explains gaps of one rank.
pub struct Explainer<'a> {
    timeline: &'a Timeline,
    states: &'a HostStates,
    /// Whether the capture holds host calls at all.
    has_host: bool,
    /// Time from the return of a launch to the start of its work on an idle device, median of the rank.
    latency_ns: Ns,
    /// How much later than its work a launch may begin, because the clocks of host and device agree no better: as much as
    /// launches were seen to take, and nothing where none was.
    clock_ns: Ns,
    /// Time from one operation to the next that was queued long before, median of the rank.
    dispatch_ns: Ns,
    /// Gaps between graph nodes up to this length are the graph's, whatever the host was doing meanwhile.
    node_gap_ns: Ns,
}

/// Assumed launch latency where no launch met an empty queue: the lower end of what CUDA runtimes show (5–20 µs per launch
/// in the HTA documentation, of which the larger part is the call itself).
const DEFAULT_LATENCY_NS: Ns = 5_000;

/// The first recorded operation of a queue that starts later than this many launch latencies after its launch waited for
/// something that the capture does not hold.
const UNRECORDED_LATENCIES: Ns = 10;

/// A launched operation that an empty queue does not begin for so long waits for no launch, ns: launches take microseconds, on Windows
/// up to some hundred. Another process that shares the device takes turns of milliseconds.
pub const UNSTARTED: Ns = 500_000;

/// Between the launch of a graph and its work, or between its nodes, a device idles for microseconds; own value.
const UNRECORDED_REPLAY: Ns = 1_000_000;

impl<'a> Explainer<'a> {
    /// Calibrates the explanation on the rank's own launches.
    pub fn new(timeline: &'a Timeline, states: &'a HostStates) -> Self {
        let seen = median(launch_latencies(timeline));
        let latency_ns = seen.unwrap_or(DEFAULT_LATENCY_NS);
        Self {
            timeline,
            states,
            has_host: !timeline.calls.is_empty(),
            latency_ns,
            clock_ns: seen.unwrap_or(0),
            dispatch_ns: median(dispatch_gaps(timeline, latency_ns)).unwrap_or(0),
            node_gap_ns: 2 * median(node_gaps(timeline)).unwrap_or(0),
        }
    }

    /// Explains the idle interval `span`, which ends where `owner` starts.
    pub fn explain(&self, span: Span, owner: Option<usize>) -> (Vec<(Bucket, Span)>, bool) {
        let (parts, after_sync) = self.by_calls(span, owner);
        (device_waits::overlay(parts, &self.timeline.waits), after_sync)
    }

    /// The same, as far as host calls and queues show.
    fn by_calls(&self, span: Span, owner: Option<usize>) -> (Vec<(Bucket, Span)>, bool) {
        if self.timeline.collectives_only {
            return (vec![(Bucket::Unseen, span)], false);
        }
        let mut parts = Vec::new();
        let Some((index, op)) = owner.and_then(|i| Some((i, self.timeline.ops.get(i)?))) else {
            return (vec![(Bucket::Unattributed, span)], false);
        };
        let Some(call) = self.timeline.call(op) else {
            let bucket = if self.has_host { Bucket::Unattributed } else { Bucket::IdleUndecided };
            return (vec![(bucket, span)], false);
        };
        let graph = call.kind == HostCall::GraphLaunch;
        if graph && span.len() > self.unrecorded_ns() && call.end - self.timeline.lag <= span.start {
            // No replay waits so long for itself: what it did meanwhile was not recorded.
            return (vec![(Bucket::Unattributed, span)], false);
        }
        if graph && !op.first_of_call && (call.end - self.timeline.lag <= span.start || span.len() <= self.node_gap_ns)
        {
            return (vec![(Bucket::GraphInternal, span)], false);
        }
        // On the clock of the device.
        let lag = self.timeline.lag;
        let (start, end) = (call.start - lag, call.end - lag);
        // A launch that comes after its own work by more than that is linked wrongly or timed wrongly, and explains nothing.
        if op.start.saturating_add(self.clock_ns) < start {
            return (vec![(Bucket::Unattributed, span)], false);
        }
        let begun = start.clamp(span.start, span.end);
        let returned = end.clamp(begun, span.end);
        let mut add = |bucket: Bucket, part: Span| {
            if !part.is_empty() {
                match parts.last_mut() {
                    Some((last, tail)) if *last == bucket => Span::clone_from(tail, &Span::new(tail.start, part.end)),
                    _ => parts.push((bucket, part)),
                }
            }
        };
        let before = Span::new(span.start + lag, begun + lag);
        let mut add_before = |bucket, part: Span| add(bucket, Span::new(part.start - lag, part.end - lag));
        self.states.split(call.track, before, before.start, &mut add_before);
        add(if graph { Bucket::GraphLaunch } else { Bucket::LaunchApi }, Span::new(begun, returned));
        let waited = Span::new(returned, span.end);
        let is_first = waited.len() > UNRECORDED_LATENCIES * self.latency_ns && self.is_first_of_queue(op, index);
        let unexplained = is_first || (graph && waited.len() > self.unrecorded_ns());
        let after = if unexplained { Bucket::Unattributed } else { self.after_return(op, index, end, span.start) };
        add(after, waited);
        let after_sync = begun > span.start && self.states.blocked_at(call.track, before.start);
        (parts, after_sync)
    }

    /// An idle gap of a replay beyond which the capture lacks some of its work, ns.
    fn unrecorded_ns(&self) -> Ns {
        UNRECORDED_REPLAY.max(UNRECORDED_LATENCIES * self.latency_ns).max(UNRECORDED_LATENCIES * self.node_gap_ns)
    }

    /// Whether the capture holds nothing that ran on the queue before: what it waited for may not have been recorded.
    fn is_first_of_queue(&self, op: &DeviceOp, index: usize) -> bool {
        self.timeline.first_of_queue.get(op.queue as usize).is_some_and(|first| *first as usize == index)
    }

    /// Why an operation whose launch call has returned has not started.
    fn after_return(&self, op: &DeviceOp, index: usize, returned: Ns, drained: Ns) -> Bucket {
        if returned >= drained {
            if op.start - returned > UNSTARTED { Bucket::Unstarted } else { Bucket::LaunchLatency }
        } else if self.waits_for_event(op, index, drained) {
            Bucket::DeviceDep
        } else if returned.saturating_add(self.latency_ns) > drained.saturating_add(self.dispatch_ns) {
            // Launched so shortly before the device drained that the launch, not the queue, set the start.
            Bucket::LaunchLatency
        } else {
            Bucket::Dispatch
        }
    }

    /// Whether the queue was told to wait for an event before this operation and another queue finished last.
    fn waits_for_event(&self, op: &DeviceOp, index: usize, drained: Ns) -> bool {
        if self.timeline.queues.len() < 2 {
            return false;
        }
        let before = self.timeline.ops.get(..index).unwrap_or(&[]).iter().rev().take(256);
        let mut last_elsewhere = false;
        let mut own_previous = None;
        for earlier in before {
            last_elsewhere |= earlier.queue != op.queue && earlier.end == drained;
            if earlier.queue == op.queue {
                own_previous = Some(earlier);
                break;
            }
        }
        let Some(call) = self.timeline.call(op).filter(|_| last_elsewhere) else { return false };
        let from = own_previous.and_then(|p| self.timeline.call(p)).map_or(Ns::MIN, |c| c.end);
        let calls = self.timeline.calls_between(from, call.start);
        calls.iter().rev().take(4096).any(|c| c.kind == HostCall::StreamWaitEvent && c.track == call.track)
    }
}

/// Times from the return of a launch call to the start of its work, where everything launched before had ended.
fn launch_latencies(timeline: &Timeline) -> Vec<Ns> {
    let mut latest = Ns::MIN;
    let mut out = Vec::new();
    for (index, op) in timeline.ops.iter().enumerate() {
        // What ran on a queue before its first recorded operation is unknown, so that one may have waited for anything.
        let first = timeline.first_of_queue.get(op.queue as usize) == Some(&(index as u32));
        let returned = timeline.call(op).map(|call| call.end - timeline.lag);
        let idle = |end: &Ns| op.first_of_call && !first && latest <= *end && *end <= op.start;
        if let Some(end) = returned.filter(idle) {
            out.push(op.start - end);
        }
        latest = latest.max(op.end);
    }
    out
}

/// Gaps before operations whose launch had returned several latencies before the device drained.
fn dispatch_gaps(timeline: &Timeline, latency_ns: Ns) -> Vec<Ns> {
    let mut latest = Ns::MIN;
    let mut out = Vec::new();
    for op in &timeline.ops {
        let queued = |call: &&Call| {
            call.kind != HostCall::GraphLaunch && (call.end - timeline.lag).saturating_add(4 * latency_ns) < latest
        };
        if timeline.call(op).filter(queued).is_some() && op.start > latest {
            out.push(op.start - latest);
        }
        latest = latest.max(op.end);
    }
    out
}

/// Gaps between nodes of a graph whose launch call had long returned.
fn node_gaps(timeline: &Timeline) -> Vec<Ns> {
    let mut latest = Ns::MIN;
    let mut out = Vec::new();
    for op in &timeline.ops {
        let returned = timeline.call(op).filter(|c| c.kind == HostCall::GraphLaunch && c.end - timeline.lag <= latest);
        if returned.is_some() && !op.first_of_call && op.start > latest {
            out.push(op.start - latest);
        }
        latest = latest.max(op.end);
    }
    out
}
