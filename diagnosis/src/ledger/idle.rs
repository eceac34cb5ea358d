//! Device idle time of one rank as a partition: each part has one kind, and one call path of the launching thread.
//!
//! A gap belongs to the operation that ends it, its launch call L and the thread T of that call. Its kind is the first that holds:
//! *node* (the operation before came from the same graph launch), *queue* (L returned before the gap began), *chain* (host time
//! since the launch before on T, and L itself, both below a limit), else *host*. Gaps of chain and host are cut by the innermost
//! record of T at each instant; what is left after L returned is latency, or *unstarted* where it is too long for that. Definitions and limits were measured on simulated and
//! recorded runs whose cause is known.

use model::{Category, Ns, Span, StringId, Trace, TrackId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{Key, Names, Path};
use crate::{
    analysis::{
        Rank, Step,
        idle::{Gap, UNSTARTED},
        nest::{Nests, Segment},
    },
    platform::HostCall,
};

/// Limits between which the longest host time of a launch chain is set, ns.
const CHAIN: (Ns, Ns) = (20_000, 100_000);
/// The longest host time of a launch chain, in medians of the time between two launches of the rank.
const CHAIN_MEDIANS: Ns = 4;
/// A synchronization that ended this shortly before the gap began is what the host comes back from, ns.
const BACK: Ns = 1_000;
/// A gap without a launch call up to which the device went from one operation to the next, ns.
const UNLINKED: Ns = 5_000;

/// Records that end inside another one that began in them, and are looked past at most.
const OVERLAPPING: usize = 64;

/// Why the device was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Between two nodes of one graph replay.
    Node,
    /// The work was queued: the device went from one operation to the next, or waited for another queue.
    Queue,
    /// Launches follow one another as fast as the host makes them.
    Chain,
    /// The host came back from a synchronization that the device had finished.
    Turnaround(Key),
    /// The host did something else.
    Host,
    /// The work was launched, and the device did not begin it.
    Unstarted,
    /// Nothing recorded says what ended the idle time.
    Blind,
}

impl Kind {
    /// Whether the host's time explains it.
    pub fn is_host(self) -> bool {
        matches!(self, Self::Chain | Self::Turnaround(_) | Self::Host)
    }
}

/// A part of the idle time.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// When, by the device's clock.
    pub span: Span,
    /// Why.
    pub kind: Kind,
    /// What the launching thread did, outermost to innermost; `None` where no thread explains it, or the launch had returned.
    pub path: Option<Path>,
    /// The gap it is part of, as an index into the rank's gaps.
    pub gap: u32,
    /// Thread that kept the device waiting.
    pub track: Option<TrackId>,
}

/// Idle time of the counted steps of one rank.
pub struct Idle<'a> {
    /// The parts, in order of time; they tile the gaps of the counted steps.
    pub parts: Vec<Part>,
    /// Names and paths.
    pub names: Names<'a>,
    /// Records of each key that begin in the counted time.
    pub occurrences: FxHashMap<Key, u64>,
    /// Keys under which several kinds of kernels are launched.
    pub generic: FxHashSet<Key>,
}

/// Kinds of kernels launched under a name from which the name owns no launch chain.
const GENERIC: usize = 3;

/// Whether records of a category tell what a thread does: what the operating system or the profiler notes beside them does not.
fn speaks(category: Category) -> bool {
    !matches!(category, Category::OsApi | Category::Overhead)
}

/// Whether they do where nothing else is recorded.
fn says_something(category: Category) -> bool {
    category != Category::Overhead
}

/// Cuts the idle time of `steps`, which are those that count, in order of time.
pub fn of<'a>(trace: &'a Trace, rank: &Rank, steps: &[&Step]) -> Idle<'a> {
    let mut ledger = Ledger {
        rank,
        nests: Nests::new(trace),
        names: Names::new(trace),
        parts: Vec::new(),
        rows: FxHashMap::default(),
        under: FxHashMap::default(),
        main: main_thread(trace, rank),
        telling: super::beside::telling(trace, rank),
        beside: FxHashMap::default(),
    };
    let before = launches_before(rank);
    let limit = limit(&before, rank);
    for step in steps {
        let from = rank.gaps.partition_point(|gap| gap.step < step.index);
        let to = rank.gaps.partition_point(|gap| gap.step <= step.index);
        for at in from..to {
            if let Some(gap) = rank.gaps.get(at) {
                ledger.gap(gap, at as u32, &before, limit);
            }
        }
    }
    let window = steps.first().zip(steps.last()).map(|(first, last)| (first.window.start, last.window.end));
    let occurrences = window.map(|window| occurrences(trace, rank, &mut ledger.names, window)).unwrap_or_default();
    let generic = ledger.under.iter().filter(|(_, kinds)| kinds.len() >= GENERIC).map(|(key, _)| *key).collect();
    Idle { parts: ledger.parts, names: ledger.names, occurrences, generic }
}

/// How often each record begins in a window, by key.
fn occurrences(trace: &Trace, rank: &Rank, names: &mut Names<'_>, (from, to): (Ns, Ns)) -> FxHashMap<Key, u64> {
    let mut out: FxHashMap<Key, u64> = FxHashMap::default();
    let lag = rank.timeline.lag;
    for lane in rank.timeline.threads.iter().filter_map(|track| trace.lanes.get(track.0 as usize)) {
        let first = lane.start.partition_point(|start| *start < from.saturating_add(lag));
        let last = lane.start.partition_point(|start| *start < to.saturating_add(lag));
        for row in first..last {
            *out.entry(names.record(lane.name[row], lane.category[row])).or_default() += 1;
        }
    }
    out
}

/// By launching call the end of the launching call before it on its thread.
fn launches_before(rank: &Rank) -> Vec<Option<Ns>> {
    let mut ends: FxHashMap<TrackId, Ns> = FxHashMap::default();
    let calls = rank.timeline.calls.iter().map(|call| {
        if call.ops == 0 && call.kind != HostCall::Launch {
            return None;
        }
        ends.insert(call.track, call.end)
    });
    calls.collect()
}

/// The longest host time of a launch chain: four times the median between two launches, within limits.
fn limit(before: &[Option<Ns>], rank: &Rank) -> Ns {
    let between = before.iter().zip(&rank.timeline.calls).filter_map(|(end, call)| Some(call.start - (*end)?));
    let median = crate::analysis::median(between.collect()).unwrap_or(10_000);
    (CHAIN_MEDIANS * median).clamp(CHAIN.0, CHAIN.1)
}

/// The thread that launches most of the work; where no launch is recorded, the thread with the most recorded time.
fn main_thread(trace: &Trace, rank: &Rank) -> Option<TrackId> {
    let mut launched: FxHashMap<TrackId, u64> = FxHashMap::default();
    for call in &rank.timeline.calls {
        *launched.entry(call.track).or_default() += u64::from(call.ops);
    }
    let most = launched.into_iter().filter(|(_, n)| *n > 0).max_by_key(|(track, n)| (*n, std::cmp::Reverse(*track)));
    most.map(|(track, _)| track).or_else(|| {
        let time = |track: &&TrackId| -> Ns {
            let lane = trace.lanes.get(track.0 as usize);
            lane.map_or(0, |lane| (0..lane.len()).filter(|row| lane.depth[*row] == 0).map(|row| lane.dur[row]).sum())
        };
        rank.timeline.threads.iter().max_by_key(time).copied()
    })
}

struct Ledger<'a, 'r> {
    rank: &'r Rank,
    nests: Nests<'a>,
    names: Names<'a>,
    parts: Vec<Part>,
    /// Path of each record that was met.
    rows: FxHashMap<(TrackId, usize), Path>,
    /// Names of the kernels launched under each key.
    under: FxHashMap<Key, FxHashSet<StringId>>,
    main: Option<TrackId>,
    /// Lines that may be the other half of one.
    telling: Vec<TrackId>,
    /// The other line of threads that were looked up.
    beside: FxHashMap<TrackId, Option<TrackId>>,
}

impl Ledger<'_, '_> {
    fn gap(&mut self, gap: &Gap, at: u32, before: &[Option<Ns>], limit: Ns) {
        let timeline = &self.rank.timeline;
        let mut whole = |kind| self.parts.push(Part { span: gap.span, kind, path: None, gap: at, track: None });
        let Some((index, op)) = gap.owner.and_then(|index| Some((index, timeline.ops.get(index as usize)?))) else {
            return whole(Kind::Blind);
        };
        let Some((c, call)) = op.call.and_then(|c| Some((c, timeline.calls.get(c as usize)?))) else {
            if op.in_graph && gap.span.len() < UNLINKED {
                return whole(Kind::Node);
            }
            // A thread whose recording is over says nothing of what it does.
            let recorded = |track: &TrackId| {
                let last = self.nests.lane(*track).and_then(|lane| lane.start.last());
                last.is_some_and(|last| *last >= gap.span.start.saturating_add(timeline.lag))
            };
            let main = self.main.filter(|track| gap.span.len() >= UNLINKED && recorded(track));
            let Some(track) = main else { return whole(Kind::Blind) };
            return self.host(gap, at, track, gap.span.end, None);
        };
        let earlier = (index as usize).checked_sub(1).and_then(|i| timeline.ops.get(i));
        if op.in_graph && !op.first_of_call && earlier.is_some_and(|earlier| earlier.call == op.call) {
            return whole(Kind::Node);
        }
        let returned = call.end - timeline.lag;
        if returned <= gap.span.start {
            return whole(if op.in_graph && !op.first_of_call { Kind::Node } else { Kind::Queue });
        }
        let distance = before.get(c as usize).copied().flatten().map(|end| call.start - end);
        let chain = distance.is_some_and(|ns| ns < limit) && call.end - call.start < limit;
        self.host(gap, at, call.track, returned.min(gap.span.end), chain.then_some(op.name));
    }

    /// Cuts the part of a gap up to `until` by the records of a thread; the rest is latency of the launch.
    fn host(&mut self, gap: &Gap, at: u32, track: TrackId, until: Ns, chain: Option<StringId>) {
        let lag = self.rank.timeline.lag;
        let on_host = Span::new(gap.span.start.saturating_add(lag), until.saturating_add(lag));
        let mut segments = Vec::new();
        if !on_host.is_empty() {
            self.nests.segments(track, on_host, &speaks, &mut segments);
        }
        // Whoever comes back from a synchronization is no part of a chain, however short the way.
        let kind = match self.turnaround(track, &segments, on_host.start) {
            Some(sync) => Kind::Turnaround(sync),
            None if chain.is_some() => Kind::Chain,
            None => Kind::Host,
        };
        let chain = chain.filter(|_| kind == Kind::Chain);
        for (track, segment) in self.filled(track, segments) {
            let path = self.path(track, &segment);
            if let Some(name) = chain {
                for key in self.names.along(path).collect::<Vec<_>>() {
                    self.under.entry(key).or_default().insert(name);
                }
            }
            let span = Span::new(segment.span.start - lag, segment.span.end - lag);
            self.parts.push(Part { span, kind, path: Some(path), gap: at, track: Some(track) });
        }
        if until < gap.span.end {
            let span = Span::new(until, gap.span.end);
            let kind = if span.len() > UNSTARTED { Kind::Unstarted } else { kind };
            self.parts.push(Part { span, kind, path: None, gap: at, track: Some(track) });
        }
    }

    /// The line that tells what a line of nothing but calls does.
    fn beside(&mut self, track: TrackId) -> Option<TrackId> {
        if let Some(known) = self.beside.get(&track) {
            return *known;
        }
        let found = super::beside::of(&self.telling, &mut self.nests, track);
        self.beside.insert(track, found);
        found
    }

    /// Segments of a thread with its own records; what none of the program covers is cut by those of the thread that hands it its work,
    /// else by those of the operating system.
    fn filled(&mut self, track: TrackId, segments: Vec<Segment>) -> Vec<(TrackId, Segment)> {
        let mut out = Vec::with_capacity(segments.len());
        let mut inner = Vec::new();
        for segment in segments {
            if segment.row.is_some() {
                out.push((track, segment));
                continue;
            }
            let awaited = self.rank.timeline.tasks.awaited(track, segment.span.start);
            let feeder = awaited.or_else(|| self.beside(track));
            let (on, says): (TrackId, &dyn Fn(Category) -> bool) = match feeder {
                Some(feeder) => (feeder, &speaks),
                None => (track, &says_something),
            };
            self.nests.segments(on, segment.span, says, &mut inner);
            for mut part in inner.drain(..) {
                if part.row.is_none() {
                    (part.before, part.next) = (segment.before, segment.next);
                }
                out.push((if part.row.is_some() { on } else { track }, part));
            }
        }
        out
    }

    /// The synchronization that the thread came back from as the gap began or in it.
    fn turnaround(&mut self, track: TrackId, segments: &[Segment], begun: Ns) -> Option<Key> {
        let lane = self.nests.lane(track)?;
        let row = segments.iter().flat_map(|segment| [segment.row.filter(|_| segment.leaf), segment.before]).flatten();
        let mut back = row.filter(|row| lane.end(*row) >= begun.saturating_sub(BACK));
        let row =
            back.find(|row| lane.category[*row] == Category::HostApi && is_sync(self.nests.text(lane.name[*row])))?;
        Some(self.names.record(lane.name[row], lane.category[row]))
    }

    /// The path of the record that a segment belongs to, its own time between two others included.
    fn path(&mut self, track: TrackId, segment: &Segment) -> Path {
        let from = segment.row.map(|row| self.row(track, row));
        if let Some(path) = from.filter(|_| segment.leaf) {
            return path;
        }
        let lane = self.nests.lane(track);
        let mut key = |row: Option<usize>| {
            let (lane, row) = lane.zip(row)?;
            Some(self.names.record(lane.name[row], lane.category[row]))
        };
        let (inside, before, next) = (key(segment.row), key(segment.before), key(segment.next));
        let key = self.names.between(inside, before, next);
        self.names.path(from, key)
    }

    /// The record around another one: one that ends while the other one goes on only came before it.
    fn outer(&mut self, track: TrackId, row: usize) -> Option<usize> {
        let lane = self.nests.lane(track)?;
        let (start, end) = (*lane.start.get(row)?, lane.end(row));
        let mut outer = self.nests.parent(track, row);
        for _ in 0..OVERLAPPING {
            let around = outer?;
            if lane.end(around).min(end) - start >= (end - start) / 2 {
                break;
            }
            outer = self.nests.parent(track, around);
        }
        outer
    }

    fn row(&mut self, track: TrackId, innermost: usize) -> Path {
        if let Some(path) = self.rows.get(&(track, innermost)) {
            return *path;
        }
        // Up to a record whose path is known; no deeper than programs nest.
        let mut rows = vec![innermost];
        let mut from = None;
        while let Some(outer) = rows.last().and_then(|row| self.outer(track, *row)).filter(|_| rows.len() < 1024) {
            from = self.rows.get(&(track, outer)).copied();
            if from.is_some() {
                break;
            }
            rows.push(outer);
        }
        for row in rows.into_iter().rev() {
            let path = match self.nests.lane(track) {
                Some(lane) if speaks(lane.category[row]) || row == innermost && says_something(lane.category[row]) => {
                    let key = self.names.record(lane.name[row], lane.category[row]);
                    self.names.path(from, key)
                }
                _ => from.unwrap_or_else(|| {
                    let key = self.names.between(None, None, None);
                    self.names.path(None, key)
                }),
            };
            self.rows.insert((track, row), path);
            from = Some(path);
        }
        from.unwrap_or_else(|| {
            let key = self.names.between(None, None, None);
            self.names.path(None, key)
        })
    }
}

/// Whether the host waits in a call of this name until the device has finished.
pub fn is_sync(name: &str) -> bool {
    name.contains("Synchronize") || name == "hipMemcpyWithStream"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::analysis::script::Script;

    #[test]
    fn every_part_of_the_idle_time_is_in_the_ledger_once() {
        let mut script = Script::default();
        for i in 0..40 {
            let at = 100_000 * i;
            script.host(Category::FrameworkOp, "aten::linear", (at, at + 30_000));
            script.launch((at + 20_000, at + 25_000), "gemm_nt", (at + 27_000, at + 40_000 + i));
            script.host(Category::HostApi, "cudaStreamSynchronize", (at + 31_000, at + 42_000 + i));
        }
        let (trace, analysis) = script.analyze();
        let rank = &analysis.ranks[0];
        let steps: Vec<&Step> = rank.counted_steps().collect();
        let idle = of(&trace, rank, &steps);
        let counted = |gap: &&Gap| steps.iter().any(|step| step.index == gap.step);
        let gaps: Ns = rank.gaps.iter().filter(counted).map(|gap| gap.span.len()).sum();
        assert_eq!(idle.parts.iter().map(|part| part.span.len()).sum::<Ns>(), gaps);
        assert!(gaps > 0 && idle.parts.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
        assert!(idle.parts.iter().any(|part| matches!(part.kind, Kind::Turnaround(_))), "the host comes back");
    }
}
