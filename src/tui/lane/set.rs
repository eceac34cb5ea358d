//! The lanes of a capture: of its tracks and counters as soon as it is read, of steps, idle time, replays, collectives and copies
//! once it is analysed.

use std::ops::Range;

use model::{Ns, SliceId, Span, Trace, TrackId};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{
    counter::CounterIndex,
    index::{Filling, Item, LaneIndex, moved},
    kind::Kind,
    kinds::Kinds,
    plan::{Belongs, Plan, Source},
};
use diagnosis::{
    analysis::{self, Analysis, OpKind, clock::Offset},
    i18n::Text,
    platform::Packs,
};
use report::track_name;

/// What a lane shows. Ranks are indices into [`Analysis::ranks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The steps of a rank; a slice's row is the index of the step.
    Steps(usize),
    /// Idle time by cause; a slice's row is the index of the gap.
    Idle(usize),
    /// Replays of graphs, each from its first operation to the end of its last; a slice's row is the index of the launch call.
    Replays(usize),
    /// Collectives of all queues, waits apart from transfers; a slice's row is the index of the operation.
    Collectives(usize),
    /// Copies of all queues; a slice's row is the index of the operation.
    Copies(usize),
    /// The slices of a track at a nesting depth; a slice's row is its row on the track.
    Track(TrackId, u16),
    /// A counter of the trace, by index.
    Counter(usize),
}

/// What a lane holds.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Slices.
    Slices(LaneIndex),
    /// Samples.
    Samples(CounterIndex),
}

/// One lane.
#[derive(Clone, Debug)]
pub struct Lane {
    /// What it shows.
    pub of: Of,
    /// What kind of thing it is, if its name alone does not say.
    pub what: Option<Text>,
    /// Its name; text of the capture.
    pub name: String,
    /// What it holds.
    pub shape: Shape,
}

impl Lane {
    /// Its slices, if it has any.
    pub fn slices(&self) -> Option<&LaneIndex> {
        match &self.shape {
            Shape::Slices(index) => Some(index),
            Shape::Samples(_) => None,
        }
    }

    /// The same on another clock, on which everything is so much later.
    fn shifted(self, by: Ns) -> Self {
        let shape = match self.shape {
            Shape::Slices(index) => Shape::Slices(index.shifted(by)),
            Shape::Samples(counter) => Shape::Samples(counter.shifted(by)),
        };
        Self { shape, ..self }
    }

    /// Name of what a slot shows; text of the capture.
    pub fn name_of(&self, slot: usize, trace: &Trace, analysis: Option<&Analysis>) -> String {
        let Some(row) = self.slices().and_then(|index| index.row(slot)).map(|row| row as usize) else {
            return String::new();
        };
        let of_rank = |rank: usize| analysis?.ranks.get(rank);
        let op = |rank: usize| Some(trace.strings.get(of_rank(rank)?.timeline.ops.get(row)?.name));
        let found = match self.of {
            Of::Track(track, _) => {
                trace.lanes.get(track.0 as usize).and_then(|lane| lane.name.get(row)).map(|id| trace.strings.get(*id))
            }
            Of::Steps(rank) => {
                let step = of_rank(rank).and_then(|rank| rank.steps.get(row));
                return step.map_or(String::new(), |step| format!("{}", step.index));
            }
            Of::Idle(rank) => {
                let span = self.slices().and_then(|index| index.recorded(slot));
                let gap = of_rank(rank).and_then(|rank| rank.gaps.get(row));
                let part =
                    gap.zip(span).and_then(|(gap, span)| gap.parts.iter().find(|(_, part)| part.start == span.start));
                let labels = analysis.map_or(&[][..], |analysis| &analysis.host_labels);
                return part.map_or(String::new(), |(bucket, _)| bucket.name(labels));
            }
            Of::Collectives(rank) | Of::Copies(rank) => op(rank),
            Of::Replays(rank) => {
                of_rank(rank).and_then(|rank| rank.timeline.calls.get(row)).map(|call| trace.strings.get(call.name))
            }
            Of::Counter(_) => None,
        };
        found.unwrap_or("").to_owned()
    }

    /// When the slice or copy that a slot shows is; those that overlap hide parts of each other. `None` of anything else.
    pub fn whole(&self, slot: usize, trace: &Trace, analysis: Option<&Analysis>) -> Option<Span> {
        let index = self.slices()?;
        let row = index.row(slot)? as usize;
        let recorded = match self.of {
            Of::Track(track, _) => {
                let lane = trace.lanes.get(track.0 as usize)?;
                Some(Span::new(*lane.start.get(row)?, lane.end(row)))
            }
            Of::Copies(rank) => {
                let op = analysis?.ranks.get(rank)?.timeline.ops.get(row)?;
                Some(Span::new(op.start, op.end))
            }
            _ => None,
        };
        recorded.map(|span| moved(span, index.shift()))
    }

    /// Nesting depth.
    pub fn depth(&self) -> u16 {
        match self.of {
            Of::Track(_, depth) => depth,
            _ => 0,
        }
    }
}

/// Lanes that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// The rank.
    pub rank: Belongs,
    /// Its lanes.
    pub lanes: Range<usize>,
    /// Its clock against that of the first rank, where both are known: its lanes are drawn on the first rank's.
    pub clock: Option<Offset>,
}

/// All lanes of a capture.
#[derive(Clone, Debug, Default)]
pub struct LaneSet {
    /// Groups in the order in which they are drawn.
    pub groups: Vec<Group>,
    /// Lanes, group by group.
    pub lanes: Vec<Lane>,
    /// From the first slice to the end of the last.
    pub extent: Option<Span>,
    /// Lanes that each track has.
    depths: FxHashMap<TrackId, u16>,
}

impl LaneSet {
    /// Indexes what a capture holds, of which nothing else is known yet: tracks and counters.
    pub fn of_tracks(trace: &Trace, packs: &Packs) -> Self {
        let mut plan = Plan::default();
        for (i, place) in analysis::places(trace).into_iter().enumerate() {
            plan.place(trace, i, place);
        }
        plan.rest(trace);
        let kinds = Kinds::of_names(trace, packs);
        Self::of(plan, &[], |source| match source {
            Source::Track(track) => track_lanes(trace, &kinds, track),
            Source::Counter(counter) => counter_lane(trace, counter),
            _ => Vec::new(),
        })
    }

    /// Indexes a capture, with what its analysis found: steps, idle time, collectives and copies. Lanes of its tracks that
    /// are known already are taken from there.
    pub fn build(trace: &Trace, analysis: &Analysis, known: Option<&Self>) -> Self {
        let mut plan = Plan::default();
        for (i, rank) in analysis.ranks.iter().enumerate() {
            plan.rank(trace, i, rank);
        }
        plan.rest(trace);
        let kinds = Kinds::of(trace, analysis);
        Self::of(plan, &analysis.job.clocks, |source| match (source, known) {
            (Source::Track(track), Some(known)) => known.told_apart(trace, &kinds, track),
            (Source::Track(track), None) => track_lanes(trace, &kinds, track),
            (Source::Counter(counter), _) => counter_lane(trace, counter),
            (source, _) => derived(trace, analysis, source),
        })
    }

    /// Makes the lanes of a plan, each rank's on the clock of the first.
    fn of(plan: Plan, clocks: &[Option<Offset>], lanes: impl Fn(Source) -> Vec<Lane> + Sync) -> Self {
        let built: Vec<(Belongs, Vec<Lane>)> = plan
            .groups
            .into_par_iter()
            .map(|(rank, sources)| (rank, sources.into_par_iter().flat_map_iter(&lanes).collect()))
            .collect();
        let mut set = Self::default();
        for (rank, lanes) in built.into_iter().filter(|(_, lanes)| !lanes.is_empty()) {
            let first = set.lanes.len();
            let clock = rank.and_then(|(at, _)| clocks.get(at).copied().flatten());
            let shift = clock.map_or(0, |clock| clock.ahead.saturating_neg());
            set.lanes.extend(lanes.into_iter().map(|lane| lane.shifted(shift)));
            set.groups.push(Group { rank, lanes: first..set.lanes.len(), clock });
        }
        for lane in &set.lanes {
            if let Of::Track(track, depth) = lane.of {
                set.depths.insert(track, depth.saturating_add(1));
            }
        }
        let join = |a: Span, b: Span| Span::new(a.start.min(b.start), a.end.max(b.end));
        set.extent = set.lanes.iter().filter_map(|lane| lane.slices()?.extent()).reduce(join);
        set
    }

    /// The lanes of a track with other kinds.
    fn told_apart(&self, trace: &Trace, kinds: &Kinds, id: TrackId) -> Vec<Lane> {
        let Some(columns) = trace.lanes.get(id.0 as usize) else { return Vec::new() };
        let own = self.lanes.iter().filter(|lane| matches!(lane.of, Of::Track(track, _) if track == id));
        let own = own.filter_map(|lane| {
            let index = lane.slices()?.told_apart(|row| kinds.of_slice(trace, columns, row as usize));
            Some(Lane { of: lane.of, what: lane.what, name: lane.name.clone(), shape: Shape::Slices(index) })
        });
        own.collect()
    }

    /// When something that was recorded of a rank, by its index, is on the clock that all lanes are drawn on.
    pub fn aligned(&self, rank: usize, span: Span) -> Span {
        let group = self.groups.iter().find(|group| group.rank.is_some_and(|(at, _)| at == rank));
        moved(span, group.and_then(|group| group.clock).map_or(0, |clock| clock.ahead.saturating_neg()))
    }

    /// Bytes that its lanes allocate.
    pub fn bytes(&self) -> usize {
        let lanes = self.lanes.iter().map(|lane| match &lane.shape {
            Shape::Slices(index) => index.bytes(),
            Shape::Samples(counter) => counter.bytes(),
        });
        lanes.sum()
    }

    /// Position of the lane that shows something.
    pub fn position(&self, of: Of) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.of == of)
    }

    /// Nested lanes of a track.
    pub fn depths(&self, track: TrackId) -> u16 {
        self.depths.get(&track).copied().unwrap_or(0)
    }

    /// Lane and slot of a slice of the trace.
    pub fn find(&self, trace: &Trace, id: SliceId) -> Option<(usize, usize)> {
        let (track, row) = trace.locate(id)?;
        let columns = trace.lanes.get(track.0 as usize)?;
        let of = Of::Track(track, *columns.depth.get(row)?);
        let lane = self.position(of)?;
        let slot = self.lanes.get(lane)?.slices()?.find(*columns.start.get(row)?, row as u32)?;
        Some((lane, slot))
    }
}

/// The lane of something that the analysis found.
fn derived(trace: &Trace, analysis: &Analysis, source: Source) -> Vec<Lane> {
    let one = |of, what, items: Vec<Item>| {
        let lane = Lane { of, what: Some(what), name: String::new(), shape: Shape::Slices(LaneIndex::new(items)) };
        if lane.slices().is_some_and(LaneIndex::is_empty) { Vec::new() } else { vec![lane] }
    };
    match source {
        Source::Steps(i) => {
            let steps = analysis.ranks.get(i).map_or(&[][..], |rank| &rank.steps);
            let items = steps.iter().zip(0..).map(|(step, row)| Item { span: step.window, kind: Kind::Range, row });
            one(Of::Steps(i), Text::new("steps", "步"), items.collect())
        }
        Source::Idle(i) => {
            let gaps = analysis.ranks.get(i).map_or(&[][..], |rank| &rank.gaps);
            let items = gaps.iter().zip(0..).flat_map(|(gap, row)| {
                gap.parts.iter().map(move |(bucket, span)| Item { span: *span, kind: Kind::of_bucket(*bucket), row })
            });
            one(Of::Idle(i), Text::new("idle: why", "空闲原因"), items.collect())
        }
        Source::Replays(i) => one(Of::Replays(i), Text::new("graph replays", "图重放"), replays(analysis, i)),
        Source::Collectives(i) => {
            let items = operations(trace, analysis, i, |kind| kind == OpKind::Comm);
            one(Of::Collectives(i), Text::new("collectives", "集合通信"), items)
        }
        Source::Copies(i) => {
            let items = operations(trace, analysis, i, |kind| matches!(kind, OpKind::Copy(_)));
            one(Of::Copies(i), Text::new("copies", "拷贝"), items)
        }
        Source::Track(_) | Source::Counter(_) => Vec::new(),
    }
}

/// What each launch of a graph caused, from its first operation to the end of its last.
fn replays(analysis: &Analysis, rank: usize) -> Vec<Item> {
    let mut spans: FxHashMap<u32, Span> = FxHashMap::default();
    let ops = analysis.ranks.get(rank).map_or(&[][..], |rank| &rank.timeline.ops);
    for (op, call) in ops.iter().filter(|op| op.in_graph).filter_map(|op| Some((op, op.call?))) {
        let span = spans.entry(call).or_insert(Span::new(op.start, op.end));
        *span = Span::new(span.start.min(op.start), span.end.max(op.end));
    }
    let mut items: Vec<Item> =
        spans.into_iter().map(|(call, span)| Item { span, kind: Kind::Graph, row: call }).collect();
    items.sort_by_key(|item| (item.span.start, item.row));
    items
}

fn counter_lane(trace: &Trace, at: usize) -> Vec<Lane> {
    let Some(counter) = trace.counters.get(at) else { return Vec::new() };
    let samples = CounterIndex::new(counter.t.iter().copied().zip(counter.value.iter().copied()));
    let name = match counter.unit.as_str() {
        "" => trace.strings.get(counter.name).to_owned(),
        unit => format!("{} [{unit}]", trace.strings.get(counter.name)),
    };
    vec![Lane { of: Of::Counter(at), what: None, name, shape: Shape::Samples(samples) }]
}

/// Operations of a rank; of a collective, the wait before the transfer is a slice of its own.
fn operations(trace: &Trace, analysis: &Analysis, rank: usize, pick: impl Fn(OpKind) -> bool) -> Vec<Item> {
    let Some(rank) = analysis.ranks.get(rank) else { return Vec::new() };
    let ops = rank.timeline.ops.iter().zip(0..).filter(|(op, _)| pick(op.kind));
    let mut items: Vec<Item> = Vec::new();
    for (op, row) in ops {
        let whole = Span::new(op.start, op.end);
        let transfer = match op.kind {
            OpKind::Comm => op.end - rank.collectives.transfer_of(trace, op),
            _ => op.start,
        };
        let parts = [(Span::new(op.start, transfer), Kind::Wait), (Span::new(transfer, op.end), Kind::of_op(op))];
        let parts = parts.into_iter().filter(|(span, _)| !span.is_empty());
        let before = items.len();
        items.extend(parts.map(|(span, kind)| Item { span, kind, row }));
        if items.len() == before {
            items.push(Item { span: whole, kind: Kind::of_op(op), row });
        }
    }
    items.sort_by_key(|item| item.span.start);
    items
}

/// One lane per nesting depth of a track.
fn track_lanes(trace: &Trace, kinds: &Kinds, id: TrackId) -> Vec<Lane> {
    let at = id.0 as usize;
    let Some((track, columns)) = trace.tracks.get(at).zip(trace.lanes.get(at)) else { return Vec::new() };
    let mut counts: Vec<usize> = Vec::new();
    for depth in &columns.depth {
        let depth = usize::from(*depth);
        if counts.len() <= depth {
            counts.resize(depth + 1, 0);
        }
        if let Some(count) = counts.get_mut(depth) {
            *count += 1;
        }
    }
    let mut by_depth: Vec<Filling> = counts.into_iter().map(Filling::of).collect();
    for (row, (start, depth)) in columns.start.iter().zip(&columns.depth).enumerate() {
        if let Some(filling) = by_depth.get_mut(usize::from(*depth)) {
            let span = Span::new(*start, columns.end(row));
            filling.push(Item { span, kind: kinds.of_slice(trace, columns, row), row: row as u32 });
        }
    }
    let what = track_name::kind(&track.key);
    let name = match track.name.map(|name| trace.strings.get(name)).filter(|name| !name.is_empty()) {
        // Some recorders name a thread "thread 7".
        Some(name) => {
            ["stream ", "thread "].into_iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name).to_owned()
        }
        None => String::new(),
    };
    let name = match track_name::has_number(&track.key) {
        false => String::new(),
        true if name.is_empty() => track.key.id.to_string(),
        true => name,
    };
    let lane = |(depth, filling): (usize, Filling)| Lane {
        of: Of::Track(id, depth as u16),
        what: Some(what),
        name: name.clone(),
        shape: Shape::Slices(filling.finish()),
    };
    by_depth.into_iter().enumerate().map(lane).collect()
}
