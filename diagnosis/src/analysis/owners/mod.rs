//! Who owns the idle time: for every idle gap the record of the host that covers at least half of it.
//!
//! A gap has parts (see [`super::idle`]). What the host's own code takes before a launch is one stretch, and its owner is the
//! innermost record of the launching thread that covers at least half of it: a Python frame, an annotated range, a framework
//! operator, a call. Calls that have a bucket of their own (allocation, synchronisation, launch) own their parts. A record that
//! spans the whole step tells nothing about any part of it, and frames that only pass a call on are passed over.

mod follow;
mod frames;
mod group;
pub(crate) mod nest;

use model::{Category, Ns, SliceId, Span, StringId, Trace, TrackId};
use rustc_hash::FxHashMap;

use self::{follow::Threads, frames::Frames, group::Groups, nest::Nests};
pub use self::{
    frames::{is_forward, short},
    group::{Ending, Group},
};
use super::{
    bucket::{Bucket, HostLabel},
    host::Labels,
    idle::Gap,
    timeline::{Call, Timeline},
};
use crate::platform::Packs;

/// Buckets whose calls own their time themselves, by label of host work: what stops a thread is no code that it runs.
const STOPPED: [&str; 3] = ["gc", "offcpu", "blocked"];

/// Innermost records that are kept by name: far more than a step's idle time is much of.
const INNERMOST: usize = 4096;

/// The owner of the host's own time before a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its record; of several alike the longest one.
    pub slice: SliceId,
    /// Thread that it is on: the one that launches, or one for which that thread waits.
    pub track: TrackId,
    /// Name.
    pub name: StringId,
    /// Activity that the platform packs know it by, its own or that of the closest record around it.
    pub activity: Option<HostLabel>,
    /// Whether it spans the whole step, so that nothing narrower is known.
    pub wraps: bool,
    /// When the model's forward pass began, where the gap ends with the first launch inside it.
    pub forward: Option<Ns>,
    /// Idle time that it owns, ns.
    pub ns: Ns,
}

/// Owners of the idle time of one rank.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Owner of the host's own time by gap, in order of the gaps.
    of_gap: Vec<(u32, Owner)>,
    /// Idle time of the steps that count by bucket, owner and ending operation, longest first.
    pub groups: Vec<Group>,
    /// Idle time of further groups that are not listed, ns.
    pub rest: Ns,
    /// All idle time of the steps that count, ns: the groups and the rest.
    pub idle: Ns,
    /// Idle time by bucket and by the record that was innermost meanwhile on the thread that kept the device waiting, ns, longest
    /// first. Not all of it: a record that covers nothing of a gap's host time says nothing.
    pub innermost: Vec<(Bucket, StringId, Ns)>,
    /// Steps that count.
    pub steps: usize,
}

impl Owners {
    /// The owner of the host's own time in the gap with this index.
    pub fn of(&self, gap: usize) -> Option<&Owner> {
        let at = self.of_gap.binary_search_by_key(&gap, |(gap, _)| *gap as usize).ok()?;
        self.of_gap.get(at).map(|(_, owner)| owner)
    }
}

/// A step as far as owners care.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Position in the run.
    pub index: u32,
    /// When its work runs.
    pub span: Span,
    /// Its annotated range.
    pub host: Option<Span>,
}

/// Finds the owners of the idle time in `windows`, which are those of the steps that count, in order of time; and of the time
/// before the first operation of the only step, which `lead` gives with the step and the operation's launch.
pub fn find(
    trace: &Trace,
    packs: &Packs,
    (timeline, gaps, windows): (&Timeline, &[Gap], &[Window]),
    lead: Option<(Span, Window, &Call)>,
    labels: &mut Labels,
) -> (Owners, Option<Owner>) {
    let stopped = STOPPED.map(|label| labels.id(label));
    let mut search = Search {
        trace,
        timeline,
        nests: Nests::new(trace),
        frames: Frames::new(trace, packs, labels),
        threads: Threads::of(trace, timeline),
        groups: Groups::default(),
        innermost: FxHashMap::default(),
        launches: launches(timeline),
        stopped,
    };
    let mut owners = Owners { steps: windows.len(), ..Owners::default() };
    for window in windows {
        let from = gaps.partition_point(|gap| gap.step < window.index);
        let to = gaps.partition_point(|gap| gap.step <= window.index);
        for (index, gap) in gaps.iter().enumerate().take(to).skip(from) {
            owners.idle = owners.idle.saturating_add(gap.span.len());
            if let Some(owner) = search.gap(gap, window) {
                owners.of_gap.push((index as u32, owner));
            }
        }
    }
    let before = lead.and_then(|(span, window, call)| {
        let on_host = Span::new(span.start.saturating_add(timeline.lag), call.start);
        Some(search.owner(call, on_host, &window, false)?.owner).filter(|owner| !owner.wraps)
    });
    owners.innermost = search.innermost();
    (owners.groups, owners.rest) = search.groups.finish();
    (owners, before)
}

/// When each thread makes launching calls, in order.
fn launches(timeline: &Timeline) -> FxHashMap<TrackId, Vec<Ns>> {
    let mut out: FxHashMap<TrackId, Vec<Ns>> = FxHashMap::default();
    for call in timeline.calls.iter().filter(|call| call.kind.is_launch() || call.ops > 0) {
        out.entry(call.track).or_default().push(call.start);
    }
    out
}

/// What was found to own a stretch of time.
struct Found {
    owner: Owner,
    category: Category,
    /// The records around it, innermost first, without those that span the step.
    around: Vec<StringId>,
    /// What is directly inside it: name and time.
    children: Vec<(StringId, Ns)>,
}

struct Search<'a> {
    trace: &'a Trace,
    timeline: &'a Timeline,
    nests: Nests<'a>,
    frames: Frames<'a>,
    threads: Threads,
    groups: Groups,
    innermost: FxHashMap<(Bucket, StringId), Ns>,
    launches: FxHashMap<TrackId, Vec<Ns>>,
    stopped: [HostLabel; 3],
}

impl Search<'_> {
    /// Adds a gap to the groups; the owner of the host's own time in it.
    fn gap(&mut self, gap: &Gap, window: &Window) -> Option<Owner> {
        let op = gap.owner.and_then(|op| self.timeline.ops.get(op as usize));
        let ending = op.map(Ending::of);
        let Some((op, call)) = op.and_then(|op| Some((op, self.timeline.call(op)?))) else {
            gap.parts.iter().for_each(|(bucket, part)| self.groups.add(*bucket, ending, part.len(), None));
            return None;
        };
        let slice = op.slice;
        let lag = self.timeline.lag;
        let on_host = |part: &Span| Span::new(part.start.saturating_add(lag), part.end.saturating_add(lag));
        let mut own: Option<Span> = None;
        let mut weak: Vec<(Bucket, Ns)> = Vec::new();
        for (bucket, part) in &gap.parts {
            match self.kind(*bucket) {
                Kind::Device => self.groups.add(*bucket, ending, part.len(), None),
                Kind::Call => {
                    let found = self.owner(call, on_host(part), window, true);
                    self.add_innermost(*bucket, found.as_ref().map_or(call.track, |f| f.owner.track), on_host(part));
                    self.groups.add(*bucket, ending, part.len(), found.as_ref().map(|f| (f, f.owner.slice)));
                }
                Kind::Code => {
                    let end = on_host(part);
                    own = Some(own.map_or(end, |own| Span::new(own.start, end.end)));
                    match weak.iter_mut().find(|(known, _)| known == bucket) {
                        Some((_, ns)) => *ns += part.len(),
                        None => weak.push((*bucket, part.len())),
                    }
                }
            }
        }
        let (bucket, _) = weak.iter().copied().max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(*bucket)))?;
        let ns = weak.iter().map(|(_, ns)| ns).sum();
        let mut found = self.owner(call, own?, window, false);
        let track = found.as_ref().map_or(call.track, |found| found.owner.track);
        for (bucket, part) in &gap.parts {
            if matches!(self.kind(*bucket), Kind::Code) {
                self.add_innermost(*bucket, track, on_host(part));
            }
        }
        if let Some(found) = &mut found {
            found.owner.ns = ns;
        }
        self.groups.add(bucket, ending, ns, found.as_ref().map(|found| (found, slice)));
        found.map(|found| found.owner)
    }

    /// Adds a stretch of a thread's time to the records that are innermost in it.
    fn add_innermost(&mut self, bucket: Bucket, track: TrackId, span: Span) {
        let Some(lane) = self.nests.lane(track) else { return };
        for (row, ns) in self.nests.innermost(track, span) {
            if self.frames.speaks(lane.category[row]) {
                *self.innermost.entry((bucket, lane.name[row])).or_default() += ns;
            }
        }
    }

    /// What was added of those, longest first; no more than are looked at.
    fn innermost(&mut self) -> Vec<(Bucket, StringId, Ns)> {
        let all = std::mem::take(&mut self.innermost).into_iter();
        let mut all: Vec<_> = all.map(|((bucket, name), ns)| (bucket, name, ns)).collect();
        all.sort_by_key(|(bucket, name, ns)| (std::cmp::Reverse(*ns), *bucket, *name));
        all.truncate(INNERMOST);
        all
    }

    fn kind(&self, bucket: Bucket) -> Kind {
        match bucket {
            Bucket::Host(label) if self.stopped.contains(&label) => Kind::Call,
            Bucket::Host(_) => Kind::Code,
            Bucket::LaunchApi
            | Bucket::GraphLaunch
            | Bucket::GraphUpdate
            | Bucket::SyncTail
            | Bucket::SyncIdle
            | Bucket::Compile
            | Bucket::Alloc
            | Bucket::Prof
            // In idle time: the capture holds the call and no copy.
            | Bucket::Copy(_) => Kind::Call,
            _ => Kind::Device,
        }
    }

    /// The owner of a stretch before `call` or of a part of it. Of a part that a call gives its bucket, calls of one name own
    /// it together; the host's own code is owned by the one record that holds it.
    fn owner(&mut self, call: &Call, span: Span, window: &Window, calls: bool) -> Option<Found> {
        let narrow = self.holder(call.track, call, span, window, calls);
        if narrow.as_ref().is_some_and(|found| !found.owner.wraps && !self.frames.waits_for_thread(found.owner.name)) {
            return narrow;
        }
        // Whoever only takes work, or waits for another thread's, idles because of what that thread does.
        let elsewhere = self.threads.instead_of(call.track, self.timeline.tasks.awaited(call.track, span.start));
        for other in elsewhere {
            let found = self.holder(other, call, span, window, calls);
            if let Some(found) = found.filter(|found| !found.owner.wraps) {
                return Some(found);
            }
        }
        narrow
    }

    /// The innermost record of a thread that covers at least half of a stretch.
    fn holder(&mut self, track: TrackId, call: &Call, span: Span, window: &Window, calls: bool) -> Option<Found> {
        // What covers at least half of it holds its middle.
        let middle = span.start.midpoint(span.end);
        let lane = self.nests.lane(track)?;
        let around = self.nests.around(track, middle);
        let time = |row: usize| Span::new(lane.start.get(row).copied().unwrap_or(0), lane.end(row));
        let covers = |row: usize| 2 * time(row).clip(span).len() >= span.len();
        let wraps = |frames: &mut Frames<'_>, row: usize| {
            let own = time(row);
            let whole = |of: Span| own.start <= of.start && of.end <= own.end;
            whole(window.span) || window.host.is_some_and(whole) || frames.marks_step(lane.name[row])
        };
        let at = around.iter().position(|row| covers(*row) && self.frames.speaks(lane.category[*row]))?;
        let held = *around.get(at)?;
        let inside = self.nests.inside(track, held, span);
        let mut row = held;
        let mut around: Vec<usize> = around.into_iter().skip(at + 1).collect();
        let spans_step = wraps(&mut self.frames, held);
        let together = self.together(lane, &inside, span).filter(|_| calls || spans_step);
        let mut children = Vec::new();
        if let Some(child) = together {
            around.insert(0, held);
            row = child;
        } else {
            children = inside.iter().map(|(child, ns)| (lane.name[*child], *ns)).collect();
            // A frame that only passes a call on says less than the one around it.
            while self.frames.passes_on(lane.name[row]) {
                let Some(outer) = around.first().copied().filter(|outer| !wraps(&mut self.frames, *outer)) else {
                    break;
                };
                around.remove(0);
                row = outer;
            }
        }
        let name = lane.name[row];
        let rows: Vec<usize> = std::iter::once(row).chain(around.iter().copied()).collect();
        let narrow: Vec<usize> = rows.into_iter().take_while(|row| !wraps(&mut self.frames, *row)).collect();
        let activity = narrow.iter().find_map(|row| self.frames.activity(lane.name[*row]));
        let forward = narrow.iter().rev().find(|row| self.frames.is_forward(lane.name[**row]));
        let forward = forward.map(|row| time(*row).start).filter(|start| self.launches_first(track, *start, call));
        let owner =
            Owner { slice: lane.id(row), track, name, activity, wraps: narrow.is_empty(), forward, ns: span.len() };
        let around = narrow.iter().skip(1).map(|row| lane.name[*row]).filter(|name| !self.frames.passes_on(*name));
        Some(Found { owner, category: lane.category[row], around: around.take(group::PATH).collect(), children })
    }

    /// Of records directly inside another one those of one name, if they cover at least half of a stretch: the longest of them.
    fn together(&self, lane: &model::Columns, inside: &[(usize, Ns)], span: Span) -> Option<usize> {
        let mut names: FxHashMap<StringId, (Ns, usize, Ns)> = FxHashMap::default();
        for (row, ns) in inside {
            let (sum, longest, most) = names.entry(lane.name[*row]).or_insert((0, *row, *ns));
            *sum += ns;
            if ns > most {
                (*longest, *most) = (*row, *ns);
            }
        }
        let most =
            names.into_iter().max_by_key(|(name, (sum, ..))| (*sum, std::cmp::Reverse(self.trace.strings.get(*name))));
        most.filter(|(_, (sum, ..))| 2 * sum >= span.len()).map(|(_, (_, longest, _))| longest)
    }

    /// Whether a call is the first on its thread to launch anything since `start`.
    fn launches_first(&self, track: TrackId, start: Ns, call: &Call) -> bool {
        let starts = self.launches.get(&call.track).map_or(&[][..], Vec::as_slice);
        let next = starts.get(starts.partition_point(|t| *t < start));
        call.track == track && next == Some(&call.start)
    }
}

/// What decides who owns a part of a gap.
enum Kind {
    /// The device: no record of the host says anything.
    Device,
    /// A call, or something else that stops the thread.
    Call,
    /// The program's own code.
    Code,
}

#[cfg(test)]
mod tests;
