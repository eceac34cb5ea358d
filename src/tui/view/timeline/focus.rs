//! Which lanes have something to say about a stretch of time: why the device was idle, its queues, what ran together, and the thread of
//! the host that the stretch is about, of which frames that only surround the window are names in a line.

use std::cmp::Reverse;

use model::{Ns, Span, StringId, TrackId, TrackKind};

use super::rows::{COLLAPSED, Row};
use crate::tui::{
    lane::{Lane, LaneSet, Of},
    opened::Look,
};
use diagnosis::{
    analysis::Rank,
    diagnose::Finding,
    i18n::{Message, Value},
};

/// Threads of the host beside the one that the stretch is about.
const THREADS: usize = 3;
/// Other ranks in the picture of a collective.
const RANKS: usize = 7;
/// Rows that frames have at least, however many queues there are.
const FRAMES: usize = 6;

/// Lanes around a stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    /// Rows from top to bottom.
    pub rows: Vec<Row>,
    /// Frames around the window, outermost first, by their names.
    pub outer: Vec<StringId>,
    /// The lane and the slot that say most.
    pub pick: Option<(usize, usize)>,
}

/// What is looked at while lanes are chosen.
struct Chooser<'a, 'b> {
    look: &'a Look<'b>,
    rank: &'b Rank,
    /// The stretch by the clock of the rank.
    own: Span,
    /// The same on the clock that lanes are drawn on.
    span: Span,
    /// What is seen of time.
    seen: Span,
    names: Vec<StringId>,
}

/// A slot of a lane, and how much of the stretch it takes.
type Share = (usize, usize, Ns);

impl Focus {
    /// Chooses the lanes for a stretch on a rank's device, by its own clock and by that of the lanes, in about so many rows; `several` asks for the other ranks too.
    pub fn on(
        look: &Look<'_>,
        (rank, several): (usize, bool),
        (own, span, seen): (Span, Span, Span),
        names: &[StringId],
        room: usize,
    ) -> Self {
        let set = look.lanes;
        let group = set.groups.iter().position(|group| group.rank.is_some_and(|(at, _)| at == rank));
        let Some((group, of)) = group.zip(look.analysis().and_then(|analysis| analysis.ranks.get(rank))) else {
            return Self::default();
        };
        let mut chooser = Chooser { look, rank: of, own, span, seen, names: names.to_vec() };
        chooser.name_owner();
        let mut rows = vec![Row::Head(group)];
        rows.extend(chooser.device(rank).into_iter().map(Row::Lane));
        if several {
            rows.extend(chooser.others(rank));
        }
        let thread = chooser.thread();
        let left = room.saturating_sub(rows.len() + 1).max(FRAMES);
        let mut outer = Vec::new();
        if let Some(thread) = thread {
            let (frames, around) = chooser.frames(thread, left);
            let first = set.position(Of::Track(thread, 0));
            if let Some(first) = first.filter(|first| !frames.contains(first)) {
                rows.push(Row::Outer(first));
            }
            rows.extend(frames.into_iter().map(Row::Lane));
            outer = around;
        }
        rows.extend(chooser.beside(thread).into_iter().map(Row::Lane));
        let pick = chooser.pick(rank, thread).map(|(lane, slot, _)| (lane, slot));
        Self { rows, outer, pick }
    }
}

impl<'b> Chooser<'_, 'b> {
    fn set(&self) -> &'b LaneSet {
        self.look.lanes
    }

    /// Whether a lane has something in the window.
    fn is_there(&self, lane: usize) -> bool {
        let slices = self.set().lanes.get(lane).and_then(Lane::slices);
        slices.is_some_and(|index| !index.touching(self.seen).is_empty())
    }

    /// Where the claim names nothing that the capture has, the owner of the idle time is what is looked for.
    fn name_owner(&mut self) {
        let owner = |(at, gap): (usize, &diagnosis::analysis::idle::Gap)| {
            let shared = gap.span.clip(self.own).len();
            (shared > 0).then(|| Some((shared, self.rank.owners.of(at)?.name))).flatten()
        };
        let owners = self.rank.gaps.iter().enumerate().filter_map(owner);
        if let Some((_, name)) = owners.max_by_key(|(shared, _)| *shared)
            && !self.names.contains(&name)
        {
            self.names.push(name);
        }
    }

    /// The queue that the stretch is about: of the operation that ends its idle time, or of most of its work.
    fn queue(&self) -> Option<TrackId> {
        let ops = &self.rank.timeline.ops;
        let gap = self.rank.gaps.iter().max_by_key(|gap| gap.span.clip(self.own).len());
        let ends = gap.filter(|gap| !gap.span.clip(self.own).is_empty()).and_then(|gap| gap.owner);
        let op = ends.and_then(|op| ops.get(op as usize));
        let op = op.or_else(|| ops.iter().max_by_key(|op| Span::new(op.start, op.end).clip(self.own).len()))?;
        self.rank.timeline.queues.get(op.queue as usize).copied()
    }

    /// Idle time, queues and what was drawn together of them.
    fn device(&self, rank: usize) -> Vec<usize> {
        let set = self.set();
        let queue = self.queue();
        let mut lanes: Vec<usize> = set.position(Of::Idle(rank)).into_iter().collect();
        for track in &self.rank.timeline.queues {
            let own =
                (0..set.depths(*track)).filter_map(|depth| Some((depth, set.position(Of::Track(*track, depth))?)));
            let own = own.filter(|(depth, lane)| self.is_there(*lane) || (*depth == 0 && Some(*track) == queue));
            lanes.extend(own.map(|(_, lane)| lane));
        }
        let together = [Of::Replays(rank), Of::Collectives(rank), Of::Copies(rank)];
        lanes.extend(together.into_iter().filter_map(|of| set.position(of)).filter(|lane| self.is_there(*lane)));
        lanes
    }

    /// What other ranks exchange meanwhile.
    fn others(&self, rank: usize) -> Vec<Row> {
        let set = self.set();
        let groups = set.groups.iter().enumerate().filter_map(|(at, group)| {
            let (other, _) = group.rank.filter(|(other, _)| *other != rank)?;
            let lane = set.position(Of::Collectives(other)).filter(|lane| self.is_there(*lane))?;
            Some([Row::Head(at), Row::Lane(lane)])
        });
        groups.take(RANKS).flatten().collect()
    }

    /// The slot of some lanes that takes most of the stretch, of those that `wanted` takes.
    fn most(&self, lanes: impl IntoIterator<Item = usize>, wanted: impl Fn(&Lane, usize) -> bool) -> Option<Share> {
        let shares = lanes.into_iter().filter_map(|at| {
            let lane = self.set().lanes.get(at)?;
            let index = lane.slices()?;
            let own = index.touching(self.span).filter(|slot| wanted(lane, *slot));
            let share = |slot: usize| Some((at, slot, index.span(slot)?.clip(self.span).len()));
            own.filter_map(share).max_by_key(|(_, slot, shared)| (*shared, Reverse(*slot)))
        });
        // Of those that take as much, the innermost says most.
        shares.max_by_key(|(lane, _, shared)| (*shared, *lane))
    }

    fn is_named(&self, lane: &Lane, slot: usize) -> bool {
        name_of(self.look, lane, slot).is_some_and(|name| self.names.contains(&name))
    }

    fn lanes_of(&self, track: TrackId) -> impl Iterator<Item = usize> {
        let set = self.set();
        (0..set.depths(track)).filter_map(move |depth| set.position(Of::Track(track, depth)))
    }

    /// The thread of the host that the stretch is about: on which a name of the claim is, first of all the one that launched what ends
    /// it; else that one, or the busiest.
    fn thread(&self) -> Option<TrackId> {
        let threads = &self.rank.timeline.threads;
        let named_on = |track: TrackId| self.most(self.lanes_of(track), |lane, slot| self.is_named(lane, slot));
        let named = threads.iter().filter_map(|track| Some((named_on(*track)?.2, *track)));
        let timeline = &self.rank.timeline;
        let launched = || {
            let next = timeline.ops.partition_point(|op| op.start < self.own.start);
            let within = timeline.ops.iter().skip(next).find_map(|op| timeline.call(op));
            within.map(|call| call.track).filter(|track| threads.contains(track))
        };
        let busiest = || {
            let there = threads.iter().filter_map(|track| {
                let count = self.lanes_of(*track).filter(|lane| self.is_there(*lane)).count();
                (count > 0).then_some((count, Reverse(track.0)))
            });
            there.max().map(|(_, track)| TrackId(track.0))
        };
        let named = named.max_by_key(|(shared, track)| (*shared, Reverse(track.0))).map(|(_, track)| track);
        // A thread that sleeps the whole time has a name of the claim for longer than the one that the device waits for.
        let both = launched().filter(|track| named_on(*track).is_some());
        both.or(named).or_else(launched).or_else(busiest)
    }

    /// The nested lanes of a thread that are shown in so many rows, and the names of those around the window.
    fn frames(&self, thread: TrackId, room: usize) -> (Vec<usize>, Vec<StringId>) {
        let (mut shown, mut outer, mut named) = (Vec::new(), Vec::new(), None);
        for at in self.lanes_of(thread) {
            let Some((lane, index)) = self.set().lanes.get(at).and_then(|lane| Some((lane, lane.slices()?))) else {
                continue;
            };
            let slots = index.touching(self.seen);
            let is_named = slots.clone().any(|slot| {
                self.is_named(lane, slot) && index.span(slot).is_some_and(|span| !span.clip(self.span).is_empty())
            });
            let covers = |span: Span| span.start <= self.seen.start && span.end >= self.seen.end;
            if slots.is_empty() {
                continue;
            }
            if !is_named && index.span(slots.start).is_some_and(covers) {
                outer.extend(name_of(self.look, lane, slots.start));
                continue;
            }
            if is_named {
                named = Some(shown.len());
            }
            shown.push(at);
        }
        // What is named stays; then what is inside it says more than what is around it.
        let before = shown.len().saturating_sub(room).min(named.unwrap_or(0));
        shown.drain(..before);
        shown.truncate(room);
        (shown, outer)
    }

    /// The outer lanes of some threads beside the one that is shown whole.
    fn beside(&self, thread: Option<TrackId>) -> Vec<usize> {
        let others = self.rank.timeline.threads.iter().filter(|track| Some(**track) != thread);
        let lanes = others.map(|track| {
            let own = self.lanes_of(*track).take(usize::from(COLLAPSED));
            own.filter(|lane| self.is_there(*lane)).collect::<Vec<_>>()
        });
        lanes.filter(|lanes| !lanes.is_empty()).take(THREADS).flatten().collect()
    }

    /// The slice that says most: of idle time the frame that is named, else the idle time; of work the operation.
    fn pick(&self, rank: usize, thread: Option<TrackId>) -> Option<Share> {
        let set = self.set();
        let named = |lane: &Lane, slot: usize| self.is_named(lane, slot);
        let idle = self.most(set.position(Of::Idle(rank)), |_, _| true);
        let on_host = thread.and_then(|thread| self.most(self.lanes_of(thread), named));
        let queues = || {
            let is_queue = |lane: &Lane| match lane.of {
                Of::Track(track, _) => {
                    let tracks = &self.look.trace.tracks;
                    tracks.get(track.0 as usize).is_some_and(|track| track.key.kind == TrackKind::DeviceQueue)
                }
                _ => false,
            };
            self.device(rank).into_iter().filter(move |at| set.lanes.get(*at).is_some_and(is_queue))
        };
        let is_gap = idle.is_some_and(|(_, _, shared)| shared.saturating_mul(2) >= self.span.len());
        let work = || self.most(queues(), named).or_else(|| self.most(queues(), |_, _| true));
        if is_gap { on_host.or(idle).or_else(work) } else { work().or(on_host).or(idle) }
    }
}

/// The position of the rank whose time a finding is about, and the names that it says.
pub fn about(look: &Look<'_>, finding: &Finding) -> (Option<usize>, Vec<StringId>) {
    let ranks = look.analysis().map_or(&[][..], |analysis| &analysis.ranks);
    let mut names = Vec::new();
    named_in(look, &finding.claim, &mut names);
    finding.evidence.iter().for_each(|fact| named_in(look, &fact.what, &mut names));
    (ranks.iter().position(|rank| rank.rank == finding.selected_on), names)
}

/// Names of the capture that a message holds.
fn named_in(look: &Look<'_>, message: &Message, out: &mut Vec<StringId>) {
    for (_, value) in &message.args {
        match value {
            Value::Raw(name) | Value::Kernel(name) | Value::Phrase(name) => {
                out.extend(look.trace.strings.find(name).filter(|id| !name.is_empty() && !out.contains(id)));
            }
            Value::Message(inner) => named_in(look, inner, out),
            _ => {}
        }
    }
}

/// Name of a slot of a track's lane.
fn name_of(look: &Look<'_>, lane: &Lane, slot: usize) -> Option<StringId> {
    let Of::Track(track, _) = lane.of else { return None };
    let row = lane.slices()?.row(slot)? as usize;
    look.trace.lanes.get(track.0 as usize)?.name.get(row).copied()
}
