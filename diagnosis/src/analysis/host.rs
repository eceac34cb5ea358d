//! What each host thread was doing: a partition of its time into states, the strongest state first.

use model::{Category, Detail, Ns, ProcessId, SliceId, Span, StringId, Trace, TrackId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    bucket::{Bucket, CopyDir, HostLabel},
    spans::union,
    task_queue::TaskQueue,
    timeline::{Call, Timeline},
};
use crate::platform::{HostCall, Packs};

/// Host states in order of precedence (method §2.4): of several that hold at once the first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The profiler's own work.
    Prof,
    /// Compilation, autotuning, module load, graph capture or instantiation.
    Compile,
    /// Allocator.
    Alloc,
    /// Blocked in a synchronisation or copy.
    Sync,
    /// Blocked in a copy of which the capture, that has no copies, holds no record: the device copies meanwhile.
    Copy(CopyDir),
    /// Garbage collection.
    Gc,
    /// Taken off the processor.
    OffCpu,
    /// Graph parameters being updated.
    GraphUpdate,
    /// Launching other work.
    Launch,
    /// Inside the operating system for a reason that no stronger state gives.
    Blocked,
    /// Anything else the program does, by label.
    Work(HostLabel),
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    span: Span,
    state: State,
    /// Start of the slice that gives the state; tells a synchronisation that began before a gap from one inside it.
    since: Ns,
}

/// Labels of host work, interned.
#[derive(Debug)]
pub struct Labels {
    names: Vec<String>,
    ids: FxHashMap<String, HostLabel>,
}

impl Default for Labels {
    fn default() -> Self {
        let mut labels = Self { names: Vec::new(), ids: FxHashMap::default() };
        labels.id("unknown");
        labels
    }
}

impl Labels {
    /// Label of time without any event.
    pub const UNKNOWN: HostLabel = HostLabel(0);

    /// The label with this name; the table is bounded by the platform packs, not by the input.
    pub fn id(&mut self, name: &str) -> HostLabel {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = HostLabel(self.names.len().min(usize::from(u16::MAX)) as u16);
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// All names by id.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// States of every thread of a process that launches work.
pub struct HostStates {
    threads: FxHashMap<TrackId, Vec<Segment>>,
    overhead: Vec<Span>,
    gc: Vec<Span>,
    capturing: Vec<Span>,
    tasks: TaskQueue,
    gc_label: HostLabel,
    blocked_label: HostLabel,
    off_cpu_label: HostLabel,
}

impl HostStates {
    /// Partitions the time of every launching thread of `process`.
    pub fn build(trace: &Trace, packs: &Packs, process: ProcessId, timeline: &Timeline, labels: &mut Labels) -> Self {
        let mut states = Self {
            threads: FxHashMap::default(),
            overhead: union(slices_of(trace, process, Category::Overhead)),
            gc: union(slices_of(trace, process, Category::Gc)),
            capturing: union(timeline.capturing.clone()),
            tasks: timeline.tasks.clone(),
            gc_label: labels.id("gc"),
            blocked_label: labels.id("blocked"),
            off_cpu_label: labels.id("offcpu"),
        };
        let mut classes = Classes { packs, cache: FxHashMap::default() };
        let blocking: FxHashSet<SliceId> = timeline.calls.iter().filter(|c| c.blocking).map(|c| c.slice).collect();
        let direction = |call: &Call| {
            let (track, row) = trace.locate(call.slice)?;
            let Detail::Copy(copy) = trace.detail(trace.lanes.get(track.0 as usize)?, row)? else { return None };
            copy.direction.map(|name| CopyDir::named(trace.strings.get(name)))
        };
        let unseen: FxHashMap<SliceId, CopyDir> =
            timeline.untraced_copies().map(|c| (c.slice, direction(c).unwrap_or(CopyDir::Unknown))).collect();
        let waits = |id: SliceId| match unseen.get(&id) {
            Some(direction) => Some(State::Copy(*direction)),
            None => blocking.contains(&id).then_some(State::Sync),
        };
        let mut launching: Vec<TrackId> = timeline.calls.iter().filter(|c| c.ops > 0).map(|c| c.track).collect();
        launching.extend(timeline.tasks.feeders());
        launching.sort_unstable();
        launching.dedup();
        let first = timeline.ops.first().map_or(0, |op| op.start);
        let busy = Span::new(first, timeline.ops.iter().map(|op| op.end).max().unwrap_or(first));
        for track in launching {
            let segments = partition(trace, track, busy, &mut classes, labels, waits);
            states.threads.insert(track, segments);
        }
        states
    }

    /// Splits `span` of a thread into buckets, in time order and without holes. `drained` is when the device fell idle: it
    /// tells a synchronisation that slept through it from one that found the device idle.
    pub fn split(&self, thread: TrackId, span: Span, drained: Ns, emit: &mut dyn FnMut(Bucket, Span)) {
        overlay(&self.overhead, span, &mut |inside, part| {
            if inside {
                return emit(Bucket::Prof, part);
            }
            overlay(&self.capturing, part, &mut |capturing, part| {
                if capturing {
                    emit(Bucket::Compile, part);
                } else {
                    self.split_thread(thread, part, drained, emit);
                }
            });
        });
    }

    fn split_thread(&self, thread: TrackId, span: Span, drained: Ns, emit: &mut dyn FnMut(Bucket, Span)) {
        let segments = self.threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = segments.partition_point(|s| s.span.end <= span.start);
        let mut cursor = span.start;
        for segment in segments.iter().skip(first).take_while(|s| s.span.start < span.end) {
            let part = segment.span.clip(span);
            self.without_record(thread, Span::new(cursor, part.start), drained, emit);
            self.emit_state(segment.state, segment.since, part, drained, emit);
            cursor = part.end;
        }
        self.without_record(thread, Span::new(cursor, span.end), drained, emit);
    }

    /// Time in which a thread has nothing to do that was recorded: one that takes work from a queue waits for the thread that
    /// hands it the next.
    fn without_record(&self, thread: TrackId, span: Span, drained: Ns, emit: &mut dyn FnMut(Bucket, Span)) {
        match self.tasks.awaited(thread, span.start).filter(|_| !span.is_empty()) {
            // Whoever hands over work takes none, so that this ends with it.
            Some(feeder) if self.tasks.awaited(feeder, span.start).is_none() => {
                self.split_thread(feeder, span, drained, emit);
            }
            _ => self.emit_state(State::Work(Labels::UNKNOWN), 0, span, drained, emit),
        }
    }

    fn emit_state(&self, state: State, since: Ns, span: Span, drained: Ns, emit: &mut dyn FnMut(Bucket, Span)) {
        if span.is_empty() {
            return;
        }
        let bucket = match state {
            State::Prof => Bucket::Prof,
            State::Compile => Bucket::Compile,
            State::Alloc => Bucket::Alloc,
            State::Sync if since <= drained => Bucket::SyncTail,
            State::Sync => Bucket::SyncIdle,
            State::Copy(direction) => Bucket::Copy(direction),
            State::GraphUpdate => Bucket::GraphUpdate,
            State::Gc => Bucket::Host(self.gc_label),
            State::OffCpu => Bucket::Host(self.off_cpu_label),
            State::Blocked | State::Launch | State::Work(_) => {
                let weaker = match state {
                    State::Launch => Bucket::LaunchApi,
                    State::Work(label) => Bucket::Host(label),
                    _ => Bucket::Host(self.blocked_label),
                };
                // A collection on any thread stops this one too, unless something stronger explains the time.
                return overlay(&self.gc, span, &mut |inside, part| {
                    emit(if inside { Bucket::Host(self.gc_label) } else { weaker }, part);
                });
            }
        };
        emit(bucket, span);
    }

    /// Whether a blocking synchronisation of the thread covered `t`.
    pub fn blocked_at(&self, thread: TrackId, t: Ns) -> bool {
        let segments = self.threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let i = segments.partition_point(|s| s.span.end < t);
        segments.iter().skip(i).take(2).any(|s| s.state == State::Sync && s.span.start <= t && t <= s.span.end)
    }
}

/// State and label of a slice by its name and category, looked up once per distinct pair.
struct Classes<'a> {
    packs: &'a Packs,
    cache: FxHashMap<(StringId, Category), Option<(State, bool)>>,
}

impl Classes<'_> {
    /// The state, and whether a pack named the label (then nested slices inherit it).
    fn state(
        &mut self,
        trace: &Trace,
        labels: &mut Labels,
        name: StringId,
        category: Category,
    ) -> Option<(State, bool)> {
        if let Some(known) = self.cache.get(&(name, category)) {
            return *known;
        }
        let text = trace.strings.get(name);
        let state = match category {
            Category::HostApi => Some((api_state(self.packs.host_call(text), labels), false)),
            Category::Overhead => Some((State::Prof, false)),
            Category::Gc => Some((State::Gc, false)),
            Category::OsApi if text == OFF_CPU => Some((State::OffCpu, false)),
            Category::OsApi => Some((State::Blocked, false)),
            Category::FrameworkOp
            | Category::PythonFrame
            | Category::UserRange
            | Category::LibraryApi
            | Category::CollectiveCall
            | Category::HostOther => Some(match self.packs.host_activity(text) {
                Some("compile") => (State::Compile, false),
                Some("gc") => (State::Gc, false),
                Some(activity) => (State::Work(labels.id(activity)), true),
                None => (State::Work(labels.id(fallback_label(category))), false),
            }),
            _ => None,
        };
        self.cache.insert((name, category), state);
        state
    }
}

/// Name under which readers keep the times that a thread was off the processor.
const OFF_CPU: &str = "off-cpu";

fn fallback_label(category: Category) -> &'static str {
    match category {
        Category::FrameworkOp => "framework",
        Category::PythonFrame => "python",
        Category::UserRange => "range",
        Category::LibraryApi => "library",
        Category::CollectiveCall => "collective_call",
        _ => "other",
    }
}

fn api_state(call: HostCall, labels: &mut Labels) -> State {
    match call {
        HostCall::Launch | HostCall::GraphLaunch | HostCall::CopyAsync | HostCall::CopySync | HostCall::MemsetAsync => {
            State::Launch
        }
        HostCall::SyncStream | HostCall::SyncDevice | HostCall::SyncEvent => State::Sync,
        HostCall::Alloc | HostCall::Free | HostCall::HostAlloc => State::Alloc,
        HostCall::ModuleLoad | HostCall::Compile | HostCall::GraphCapture | HostCall::GraphInstantiate => {
            State::Compile
        }
        HostCall::GraphUpdate => State::GraphUpdate,
        HostCall::Query | HostCall::EventRecord | HostCall::StreamWaitEvent | HostCall::Other => {
            State::Work(labels.id("runtime_call"))
        }
    }
}

/// An open slice while a thread is walked.
struct Open {
    end: Ns,
    state: State,
    since: Ns,
    named: bool,
}

/// Segments of a thread. `busy` is the time from the device's first operation to its last: a frame that spans all of it
/// tells nothing about any part, so its name labels nothing.
fn partition(
    trace: &Trace,
    track: TrackId,
    busy: Span,
    classes: &mut Classes<'_>,
    labels: &mut Labels,
    waits: impl Fn(SliceId) -> Option<State>,
) -> Vec<Segment> {
    let lane = &trace.lanes[track.0 as usize];
    let (mut out, mut open) = (Vec::new(), Vec::<Open>::new());
    let mut cursor = Ns::MIN;
    for i in 0..lane.len() {
        let Some((mut state, mut named)) = classes.state(trace, labels, lane.name[i], lane.category[i]) else {
            continue;
        };
        if named && lane.start[i] <= busy.start && busy.end <= lane.end(i) {
            (state, named) = (State::Work(labels.id(fallback_label(lane.category[i]))), false);
        }
        if state == State::Launch
            && let Some(wait) = waits(lane.id(i))
        {
            state = wait;
        }
        let (start, mut since) = (lane.start[i], lane.start[i]);
        close(&mut out, &mut open, &mut cursor, start);
        if let Some(outer) = open.last() {
            push(&mut out, Span::new(cursor.max(outer.since), start), outer.state, outer.since);
            let weaker = match (outer.state, state) {
                // Work inside a named activity belongs to that activity.
                (State::Work(_), State::Work(_)) => outer.named && !named,
                (outer, inner) => outer <= inner,
            };
            if weaker {
                (state, since, named) = (outer.state, outer.since, outer.named);
            }
        }
        cursor = cursor.max(start);
        open.push(Open { end: lane.end(i), state, since, named });
    }
    close(&mut out, &mut open, &mut cursor, Ns::MAX);
    out
}

/// Ends every open slice that ends at or before `t`, innermost first.
fn close(out: &mut Vec<Segment>, open: &mut Vec<Open>, cursor: &mut Ns, t: Ns) {
    while let Some(top) = open.last().filter(|top| top.end <= t) {
        push(out, Span::new(*cursor, top.end), top.state, top.since);
        *cursor = (*cursor).max(top.end);
        open.pop();
    }
}

fn push(out: &mut Vec<Segment>, span: Span, state: State, since: Ns) {
    if span.is_empty() {
        return;
    }
    match out.last_mut() {
        Some(last)
            if last.span.end == span.start && last.state == state && (last.since == since || state != State::Sync) =>
        {
            last.span.end = span.end;
        }
        _ => out.push(Segment { span, state, since }),
    }
}

/// Slices of a category on any track of the process.
fn slices_of(trace: &Trace, process: ProcessId, category: Category) -> Vec<Span> {
    let tracks = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.process == process);
    tracks
        .flat_map(|(_, lane)| {
            (0..lane.len()).filter(|i| lane.category[*i] == category).map(|i| Span::new(lane.start[i], lane.end(i)))
        })
        .collect()
}

/// Cuts `span` by a sorted union of spans: `emit(true, part)` inside them, `emit(false, part)` outside.
fn overlay(union: &[Span], span: Span, emit: &mut dyn FnMut(bool, Span)) {
    let first = union.partition_point(|s| s.end <= span.start);
    let mut cursor = span.start;
    for s in union.iter().skip(first).take_while(|s| s.start < span.end) {
        let part = s.clip(span);
        for (inside, piece) in [(false, Span::new(cursor, part.start)), (true, part)] {
            if !piece.is_empty() {
                emit(inside, piece);
            }
        }
        cursor = part.end;
    }
    if cursor < span.end {
        emit(false, Span::new(cursor, span.end));
    }
}
