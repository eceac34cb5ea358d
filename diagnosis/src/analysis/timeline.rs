//! Device operations of one rank in order of start, each with the host call that launched it.

use model::{
    Category, Columns, Detail, Ns, ProcessId, SliceId, Span, StringId, SyncKind, Trace, TrackId, TrackKey, TrackKind,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    bucket::CopyDir,
    graph_capture::{Tracks, capture_edge},
    median,
    spans::union,
    task_queue::TaskQueue,
};
use crate::platform::{CanonicalOp, HostCall, OpMatch, Packs, is_all_reduce};

/// What a device operation is, as far as the sweep cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A kernel that computes.
    Compute,
    /// A collective or peer transfer done by a kernel.
    Comm,
    /// A copy or fill.
    Copy(CopyDir),
    /// A whole graph replay recorded as one row.
    Opaque,
}

/// One operation on the device.
#[derive(Clone, Debug)]
pub struct DeviceOp {
    /// Start, ns.
    pub start: Ns,
    /// End, ns.
    pub end: Ns,
    /// Its slice.
    pub slice: SliceId,
    /// Queue it ran on, as an index into [`Timeline::queues`].
    pub queue: u32,
    /// Name.
    pub name: StringId,
    /// Canonical operator.
    pub op: CanonicalOp,
    /// Kind.
    pub kind: OpKind,
    /// Launch call, as an index into [`Timeline::calls`].
    pub call: Option<u32>,
    /// Whether a graph launch caused it.
    pub in_graph: bool,
    /// Whether it is the first operation of its launch call to start.
    pub first_of_call: bool,
}

impl DeviceOp {
    /// Duration, ns.
    pub fn dur(&self) -> Ns {
        self.end - self.start
    }
}

/// One call of the runtime or driver interface.
#[derive(Clone, Debug)]
pub struct Call {
    /// Start, ns.
    pub start: Ns,
    /// End, ns.
    pub end: Ns,
    /// Kind.
    pub kind: HostCall,
    /// Its slice.
    pub slice: SliceId,
    /// Thread that called.
    pub track: TrackId,
    /// Name.
    pub name: StringId,
    /// Number of device operations it caused.
    pub ops: u32,
    /// Whether a recorded wait shows that the host blocked in it (a plain copy API may or may not).
    pub blocking: bool,
}

/// Device operations and host calls of one rank.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Device queues of the rank.
    pub queues: Vec<TrackId>,
    /// Tracks with the operators that a graph capture gave to the replayed kernels of each queue.
    pub operators: Vec<Option<TrackId>>,
    /// First operation of each queue, as an index into `ops`.
    pub first_of_queue: Vec<u32>,
    /// Times between the begin and the end of a graph capture, during which launches run nothing.
    pub capturing: Vec<Span>,
    /// Host threads of the rank's process.
    pub threads: Vec<TrackId>,
    /// Device operations by start.
    pub ops: Vec<DeviceOp>,
    /// Times in which a queue did nothing but wait for another one or mark a place to wait for, disjoint and in order.
    pub waits: Vec<Span>,
    /// Waits for other queues that the device recorded on each queue, by start; filled after the timeline is built.
    pub stood: Vec<Vec<Span>>,
    /// Runtime and driver calls of the process by start.
    pub calls: Vec<Call>,
    /// Pairs of neighbours on one queue: how many gaps could be measured, and how many were at most 2 ns.
    pub gaps: (u64, u64),
    /// Operations that overlap an earlier one of their queue.
    pub overlapping: u64,
    /// Operations that start before their launch call.
    pub before_launch: u64,
    /// Operations without launch call.
    pub unlinked: u64,
    /// Of those, operations before the first one of their queue that has a launch call: queues run in order, so they were
    /// launched before the recording began.
    pub before_recording: u64,
    /// Operations without launch call between others of their queue that have theirs.
    pub lost_links: u64,
    /// Calls that issued device work, of which no record exists although earlier and later calls have theirs. A call inside
    /// another one is part of it.
    pub unrecorded: u64,
    /// When the process's first host record begins.
    pub recorded_from: Option<Ns>,
    /// When graphs were launched of whose work no record exists, in order of time.
    pub unrecorded_graphs: Vec<Ns>,
    /// Graph launches in all.
    pub graph_launches: u64,
    /// Threads that hand work to another one, which launches it.
    pub tasks: TaskQueue,
    /// How far the device's clock lags behind the host's: by so much earlier, the calls all come before their work. 0 where
    /// hardly any operation starts before its launch.
    pub lag: Ns,
    /// Whether nothing but collectives was recorded of the rank, so that what it did between them is not known.
    pub collectives_only: bool,
    /// Whether the device is the host's own processors, which the thread that launches needs too.
    pub on_host: bool,
}

impl Timeline {
    /// Launch call of an operation.
    pub fn call(&self, op: &DeviceOp) -> Option<&Call> {
        self.calls.get(op.call? as usize)
    }

    /// The blocking call whose beginning gave an operation a core. Where the device is the host's own processors, work that was
    /// launched onto an idle device may find the last core taken by the very thread that launches, until that has launched
    /// all the rest and waits.
    pub fn core_freed(&self, op: &DeviceOp) -> Option<u32> {
        let launch = op.call.filter(|_| self.on_host && op.first_of_call && !op.in_graph)?;
        let track = self.calls.get(launch as usize)?.track;
        let later = self.calls.iter().enumerate().skip(launch as usize + 1);
        let mut mine = later.take_while(|(_, call)| call.start <= op.start).filter(|(_, call)| call.track == track);
        let mut launches = 0;
        let (wait, _) = mine.find(|(_, call)| {
            launches += usize::from(call.ops > 0);
            call.blocking
        })?;
        (launches > 0).then_some(wait as u32)
    }

    /// Blocking copies of which the capture, that has no copies, holds no record: the device copies while the call lasts.
    pub fn untraced_copies(&self) -> impl Iterator<Item = &Call> {
        // Where copies are recorded, a copy call without one moved nothing on the device.
        let traced = self.ops.iter().any(|op| matches!(op.kind, OpKind::Copy(_)));
        let alone = move |call: &&Call| !traced && call.ops == 0 && call.kind == HostCall::CopySync;
        self.calls.iter().filter(alone)
    }

    /// Calls that start inside `[from, to)`.
    pub fn calls_between(&self, from: Ns, to: Ns) -> &[Call] {
        let a = self.calls.partition_point(|c| c.start < from);
        let b = self.calls.partition_point(|c| c.start < to);
        self.calls.get(a..b).unwrap_or(&[])
    }
}

/// Number of the device of work that names none, in a process with several devices.
const UNNUMBERED: i32 = -1;

/// On which device the queues of a capture lie. A queue without a device number is that of the only device of its process, of
/// device 0 where no queue of the process has a number, and of a device of its own where several have.
pub struct Devices {
    /// First device of each process, and whether it has further ones.
    numbered: FxHashMap<ProcessId, (i32, bool)>,
}

impl Devices {
    /// Those of a capture.
    pub fn of(trace: &Trace) -> Self {
        let mut numbered: FxHashMap<ProcessId, (i32, bool)> = FxHashMap::default();
        for key in trace.tracks.iter().map(|track| &track.key).filter(|key| key.kind == TrackKind::DeviceQueue) {
            if let Some(device) = key.device {
                let known = numbered.entry(key.process).or_insert((device, false));
                known.1 |= known.0 != device;
            }
        }
        Self { numbered }
    }

    /// The device of a queue.
    pub fn of_queue(&self, key: &TrackKey) -> i32 {
        key.device.unwrap_or_else(|| match self.numbered.get(&key.process) {
            None => 0,
            Some((only, false)) => *only,
            Some((_, true)) => UNNUMBERED,
        })
    }
}

/// Reads the timeline of (process, device) out of the columns.
pub fn build(
    trace: &Trace,
    packs: &Packs,
    ops: &FxHashMap<StringId, OpMatch>,
    process: ProcessId,
    device: i32,
) -> Timeline {
    let own = trace.devices.iter().find(|d| d.process == process && d.ordinal == device);
    let on_host = own.and_then(|d| d.vendor).is_some_and(|vendor| trace.strings.get(vendor) == "cpu");
    let mut timeline = Timeline { tasks: TaskQueue::of(trace, packs, process), on_host, ..Timeline::default() };
    let mut kinds: FxHashMap<StringId, HostCall> = FxHashMap::default();
    let mut call_of: FxHashMap<SliceId, u32> = FxHashMap::default();
    for (track, lane) in lanes(trace, process, TrackKind::HostThread) {
        timeline.threads.push(track);
        timeline.recorded_from = timeline.recorded_from.into_iter().chain(lane.start.first().copied()).min();
        for i in (0..lane.len()).filter(|i| lane.category[*i] == Category::HostApi) {
            let name = lane.name[i];
            let kind = *kinds.entry(name).or_insert_with(|| packs.host_call(trace.strings.get(name)));
            let (start, end) = (lane.start[i], lane.end(i));
            let blocking = kind.is_blocking();
            timeline.calls.push(Call { start, end, kind, slice: lane.id(i), track, name, ops: 0, blocking });
        }
    }
    timeline.calls.sort_by_key(|c| (c.start, std::cmp::Reverse(c.end), c.slice));
    for (i, call) in timeline.calls.iter().enumerate() {
        call_of.insert(call.slice, i as u32);
    }
    let captured = Tracks::of(trace);
    let mut waiting: FxHashSet<SliceId> = FxHashSet::default();
    let devices = Devices::of(trace);
    for (track, lane) in lanes(trace, process, TrackKind::DeviceQueue) {
        if devices.of_queue(&trace.tracks[track.0 as usize].key) != device {
            continue;
        }
        let queue = timeline.queues.len() as u32;
        timeline.queues.push(track);
        timeline.operators.push(captured.operators(trace.tracks[track.0 as usize].key));
        let mut latest: Option<Ns> = None;
        for i in (0..lane.len()).filter(|i| lane.category[*i].is_device_work()) {
            if let Some(previous) = latest {
                if lane.start[i] < previous {
                    timeline.overlapping += 1;
                } else {
                    timeline.gaps.0 += 1;
                    timeline.gaps.1 += u64::from(lane.start[i] - previous <= 2);
                }
            }
            latest = Some(latest.unwrap_or(Ns::MIN).max(lane.end(i)));
            let op = device_op(trace, ops, lane, i, queue, &call_of);
            if op.kind == OpKind::Compute && op.op == CanonicalOp::Wait {
                timeline.waits.push(Span::new(op.start, op.end));
                waiting.extend(lane.link(i));
            } else {
                timeline.ops.push(op);
            }
        }
    }
    timeline.ops.sort_by(|a, b| {
        (a.start, std::cmp::Reverse(a.end)).cmp(&(b.start, std::cmp::Reverse(b.end))).then_with(|| {
            let text = |op: &DeviceOp| trace.strings.get(op.name);
            text(a).cmp(text(b)).then(a.slice.cmp(&b.slice))
        })
    });
    timeline.first_of_queue = vec![u32::MAX; timeline.queues.len()];
    for (i, op) in timeline.ops.iter().enumerate().rev() {
        timeline.first_of_queue[op.queue as usize] = i as u32;
    }
    timeline.waits = union(std::mem::take(&mut timeline.waits));
    let collectives = timeline.ops.iter().all(|op| op.kind == OpKind::Comm);
    timeline.collectives_only = collectives && timeline.calls.is_empty() && timeline.recorded_from.is_none();
    timeline.capturing = captures(trace, &timeline.calls);
    link(&mut timeline, &waiting);
    mark_blocking_copies(trace, process, &mut timeline);
    timeline
}

/// Pairs the calls that begin and end a graph capture, thread by thread.
fn captures(trace: &Trace, calls: &[Call]) -> Vec<Span> {
    let mut open: FxHashMap<TrackId, Ns> = FxHashMap::default();
    let mut out = Vec::new();
    for call in calls.iter().filter(|c| c.kind == HostCall::GraphCapture) {
        let name = trace.strings.get(call.name);
        match capture_edge(name) {
            Some(true) => {
                open.insert(call.track, call.start);
            }
            Some(false) => out.extend(open.remove(&call.track).map(|start| Span::new(start, call.end))),
            None => {}
        }
    }
    out
}

fn lanes(trace: &Trace, process: ProcessId, kind: TrackKind) -> impl Iterator<Item = (TrackId, &Columns)> {
    trace.tracks.iter().zip(&trace.lanes).enumerate().filter_map(move |(i, (track, lane))| {
        (track.key.process == process && track.key.kind == kind).then_some((TrackId(i as u32), lane))
    })
}

fn device_op(
    trace: &Trace,
    ops: &FxHashMap<StringId, OpMatch>,
    lane: &Columns,
    i: usize,
    queue: u32,
    call_of: &FxHashMap<SliceId, u32>,
) -> DeviceOp {
    let name = lane.name[i];
    let named = ops.get(&name).map_or(CanonicalOp::Other, |m| m.op);
    let call = match trace.detail(lane, i) {
        Some(Detail::Kernel(kernel)) => kernel.collective.as_ref(),
        _ => None,
    };
    let collective = call.is_some();
    // One kernel may serve all collectives of a library: then the call says which it was.
    let op = match call.and_then(|call| call.op).map(|op| trace.strings.get(op)) {
        Some(op) if named == CanonicalOp::CommOther && is_all_reduce(op) => CanonicalOp::CommAllReduce,
        _ => named,
    };
    let kind = match lane.category[i] {
        Category::GraphExec => OpKind::Opaque,
        Category::Memset => OpKind::Copy(CopyDir::Memset),
        Category::Memcpy => OpKind::Copy(copy_dir(trace, lane, i)),
        _ if collective || matches!(op, CanonicalOp::CommAllReduce | CanonicalOp::CommOther) => OpKind::Comm,
        _ => OpKind::Compute,
    };
    DeviceOp {
        start: lane.start[i],
        end: lane.end(i),
        slice: lane.id(i),
        queue,
        name,
        op,
        kind,
        call: lane.link(i).and_then(|launch| call_of.get(&launch).copied()),
        // Tasks of Ascend carry the graph they are of; a node of its own they have none.
        in_graph: matches!(trace.detail(lane, i), Some(Detail::Kernel(k)) if k.graph_node.or(k.graph).is_some())
            || matches!(trace.detail(lane, i), Some(Detail::Copy(c)) if c.graph_node.is_some()),
        first_of_call: false,
    }
}

/// Direction of a copy: what its call asked for, else what the profiler calls it. roctracer names every copy between
/// memories that the device can reach `DtoD`, pinned host memory included.
fn copy_dir(trace: &Trace, lane: &Columns, i: usize) -> CopyDir {
    let said = |lane: &Columns, i: usize| match trace.detail(lane, i) {
        Some(Detail::Copy(copy)) => copy.direction.map(|d| CopyDir::named(trace.strings.get(d))),
        _ => None,
    };
    let asked = lane
        .link(i)
        .and_then(|call| trace.locate(call))
        .and_then(|(track, row)| said(trace.lanes.get(track.0 as usize)?, row));
    asked.or_else(|| said(lane, i)).unwrap_or(CopyDir::Unknown)
}

fn touches_pinned(trace: &Trace, op: &DeviceOp) -> bool {
    let Some((track, row)) = trace.locate(op.slice) else { return false };
    let Some(Detail::Copy(copy)) = trace.detail(&trace.lanes[track.0 as usize], row) else { return false };
    [copy.src, copy.dst].into_iter().flatten().any(|kind| trace.strings.get(kind).eq_ignore_ascii_case("pinned"))
}

/// Ties operations and calls: fan-out of each call, the first operation of each, and what a graph launch caused. Calls in
/// `waiting` had a wait of the device as their work.
fn link(timeline: &mut Timeline, waiting: &FxHashSet<SliceId>) {
    let mut queues = vec![Links::default(); timeline.queues.len()];
    let mut lags = Vec::new();
    for op in &mut timeline.ops {
        let Some(call) = op.call.and_then(|c| timeline.calls.get_mut(c as usize)) else {
            timeline.unlinked += 1;
            queues[op.queue as usize].unlinked();
            continue;
        };
        queues[op.queue as usize].linked += 1;
        op.first_of_call = call.ops == 0;
        call.ops += 1;
        op.in_graph |= call.kind == HostCall::GraphLaunch;
        if op.start < call.start {
            timeline.before_launch += 1;
            lags.push(call.start - op.start);
        }
    }
    timeline.lag = lag(lags, timeline.ops.len() as u64 - timeline.unlinked);
    let recorded = |call: &&Call| call.ops > 0;
    let bounds = timeline.calls.iter().find(recorded).zip(timeline.calls.iter().rfind(recorded));
    let inside = |call: &&Call| bounds.is_some_and(|(first, last)| first.start < call.start && call.start < last.start);
    let capturing = union(timeline.capturing.clone());
    let captured = |call: &Call| {
        let span = capturing.get(capturing.partition_point(|span| span.end <= call.start));
        span.is_some_and(|span| span.start <= call.start)
    };
    let issued = |call: &Call| call.ops > 0 || waiting.contains(&call.slice);
    // Profilers leave out fills of a few microseconds, which are the work of a call of their own: no kernel is lost with one.
    let fills = |call: &Call| call.kind == HostCall::MemsetAsync;
    let silent =
        |call: &&Call| call.kind.is_launch() && !fills(call) && !issued(call) && inside(call) && !captured(call);
    let families = families(&timeline.calls);
    let mut unrecorded: FxHashMap<u32, bool> = FxHashMap::default();
    for (call, family) in timeline.calls.iter().filter(|call| issues(call)).zip(&families) {
        let silent = silent(&call) && unrecorded.get(family).copied().unwrap_or(true);
        unrecorded.insert(*family, silent);
    }
    timeline.unrecorded = unrecorded.values().filter(|silent| **silent).count() as u64;
    let lost = |family: &u32| unrecorded.get(family).copied().unwrap_or(false);
    let issuing = || timeline.calls.iter().filter(|call| issues(call)).zip(0u32..).zip(&families);
    let graphs = || issuing().filter(|((call, own), family)| call.kind == HostCall::GraphLaunch && own == *family);
    let (lost, all) = (graphs().filter(|(_, f)| lost(f)).map(|((call, _), _)| call.start).collect(), graphs().count());
    (timeline.unrecorded_graphs, timeline.graph_launches) = (lost, all as u64);
    timeline.before_recording = queues.iter().filter(|queue| queue.linked > 0).map(|queue| queue.before).sum();
    timeline.lost_links =
        queues.iter().filter(|queue| queue.lost <= MOST_LOST * queue.linked).map(|queue| queue.lost).sum();
}

/// Operations of a queue with a launch call, and without one: before the first that has one, and after it.
#[derive(Clone, Copy, Default)]
struct Links {
    linked: u64,
    before: u64,
    lost: u64,
}

impl Links {
    fn unlinked(&mut self) {
        *if self.linked == 0 { &mut self.before } else { &mut self.lost } += 1;
    }
}

/// Most operations of a queue without a launch call per operation that has one, for calls to be lost: a queue with fewer links is
/// fed by something that the profiler does not record. Own value.
const MOST_LOST: u64 = 3;

/// Share of the linked operations that must start before their launch call for the clocks to disagree: own value. Single
/// ones are wrong links.
const EARLY: f64 = 0.01;
/// And how many at least.
const EARLY_OPS: usize = 8;

/// The lag of a device's clock that operations before their launches show: the longest of them but for those far beyond the
/// median, which are wrong links.
fn lag(lags: Vec<Ns>, linked: u64) -> Ns {
    if lags.len() < EARLY_OPS || (lags.len() as f64) < EARLY * linked as f64 {
        return 0;
    }
    let Some(middle) = median(lags.clone()) else { return 0 };
    lags.into_iter().filter(|lag| *lag <= 2 * middle).max().unwrap_or(0)
}

/// Whether a call issues work. An operator call of CANN is no launch by its name and yet carries the link of a copy that a
/// runtime call inside it issued.
fn issues(call: &Call) -> bool {
    call.kind.is_launch() || call.ops > 0
}

/// For each call that issues work the outermost one of its thread that it lies in, by a number of that call's own. Levels of one
/// runtime call each other: the inner call of a launch issues nothing of its own.
fn families(calls: &[Call]) -> Vec<u32> {
    let mut open: FxHashMap<TrackId, (Ns, u32)> = FxHashMap::default();
    let mut outermost = |(number, call): (u32, &Call)| {
        let family = open.get(&call.track).filter(|(end, _)| call.end <= *end && call.start < *end);
        let family = family.map_or(number, |(_, family)| *family);
        if family == number {
            open.insert(call.track, (call.end, number));
        }
        family
    };
    (0..).zip(calls.iter().filter(|call| issues(call))).map(&mut outermost).collect()
}

/// A copy call whose name does not say whether it blocks did block if it returned only after its copy had ended and the
/// host's memory is not pinned (a slow call may outlast a short asynchronous copy), or if the capture recorded a host wait
/// under its correlation id.
fn mark_blocking_copies(trace: &Trace, process: ProcessId, timeline: &mut Timeline) {
    for op in timeline.ops.iter().filter(|op| matches!(op.kind, OpKind::Copy(CopyDir::DtoH | CopyDir::HtoD))) {
        if let Some(call) = op.call.and_then(|c| timeline.calls.get_mut(c as usize)) {
            call.blocking |= call.end >= op.end && !touches_pinned(trace, op);
        }
    }
    let mut waits: FxHashMap<i64, ()> = FxHashMap::default();
    for (_, lane) in lanes(trace, process, TrackKind::DeviceSync) {
        for i in 0..lane.len() {
            if let Some(Detail::Sync(SyncKind::Event | SyncKind::Stream | SyncKind::Context)) = trace.detail(lane, i) {
                waits.insert(lane.correlation[i], ());
            }
        }
    }
    if waits.is_empty() {
        return;
    }
    for call in &mut timeline.calls {
        let Some((track, row)) = trace.locate(call.slice) else { continue };
        let lane = &trace.lanes[track.0 as usize];
        let correlation = lane.correlation[row];
        call.blocking |= correlation != model::trace::NO_CORRELATION && waits.contains_key(&correlation);
    }
}

#[cfg(test)]
mod tests {
    use model::{TraceBuilder, TraceSink};

    use super::*;

    /// Queues without a device number were left out, and their kernels with them.
    #[test]
    fn queues_without_a_device_number_have_a_device() {
        let of = |devices: &[Option<i32>]| {
            let mut builder = TraceBuilder::new("t", "t");
            let process = builder.process(0);
            let key = |device, id| TrackKey { kind: TrackKind::DeviceQueue, process, device, context: None, id };
            for (id, device) in (0..).zip(devices) {
                builder.track(key(*device, id));
            }
            let trace = builder.finish();
            Devices::of(&trace).of_queue(&key(None, 9))
        };
        assert_eq!(of(&[None]), 0);
        assert_eq!(of(&[None, Some(3), Some(3)]), 3);
        assert_eq!(of(&[None, Some(3), Some(4)]), UNNUMBERED);
    }
}
