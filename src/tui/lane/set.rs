//! Which lanes a capture has: rank by rank the steps, the idle time with its cause, the queues of the device, collectives and
//! copies drawn together, host threads, counters; then what belongs to no rank.

use std::{cmp::Reverse, ops::Range};

use model::{Category, Columns, Detail, SliceId, Span, StringId, Trace, TrackId, TrackKind};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    counter::CounterIndex,
    index::{Item, LaneIndex},
    kind::Kind,
};
use crate::{
    analysis::{Analysis, OpKind, Rank},
    i18n::Text,
};

/// What a lane shows. Ranks are indices into [`Analysis::ranks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The steps of a rank; a slice's row is the index of the step.
    Steps(usize),
    /// Idle time by cause; a slice's row is the index of the gap.
    Idle(usize),
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

    /// Name of what a slot shows; text of the capture.
    pub fn name_of(&self, slot: usize, trace: &Trace, analysis: &Analysis) -> String {
        let Some(row) = self.slices().and_then(|index| index.row(slot)).map(|row| row as usize) else {
            return String::new();
        };
        let op = |rank: usize| Some(trace.strings.get(analysis.ranks.get(rank)?.timeline.ops.get(row)?.name));
        let found = match self.of {
            Of::Track(track, _) => {
                trace.lanes.get(track.0 as usize).and_then(|lane| lane.name.get(row)).map(|id| trace.strings.get(*id))
            }
            Of::Steps(rank) => {
                let step = analysis.ranks.get(rank).and_then(|rank| rank.steps.get(row));
                return step.map_or(String::new(), |step| format!("{}", step.index));
            }
            Of::Idle(rank) => {
                let span = self.slices().and_then(|index| index.span(slot));
                let gap = analysis.ranks.get(rank).and_then(|rank| rank.gaps.get(row));
                let part =
                    gap.zip(span).and_then(|(gap, span)| gap.parts.iter().find(|(_, part)| part.start == span.start));
                return part.map_or(String::new(), |(bucket, _)| bucket.name(&analysis.host_labels));
            }
            Of::Collectives(rank) | Of::Copies(rank) => op(rank),
            Of::Counter(_) => None,
        };
        found.unwrap_or("").to_owned()
    }

    /// When the slice or copy that a slot shows is; those that overlap hide parts of each other. `None` of anything else.
    pub fn whole(&self, slot: usize, trace: &Trace, analysis: &Analysis) -> Option<Span> {
        let row = self.slices()?.row(slot)? as usize;
        match self.of {
            Of::Track(track, _) => {
                let lane = trace.lanes.get(track.0 as usize)?;
                Some(Span::new(*lane.start.get(row)?, lane.end(row)))
            }
            Of::Copies(rank) => {
                let op = analysis.ranks.get(rank)?.timeline.ops.get(row)?;
                Some(Span::new(op.start, op.end))
            }
            _ => None,
        }
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
    /// The rank, as an index into [`Analysis::ranks`]; `None` for what belongs to none.
    pub rank: Option<usize>,
    /// Its lanes.
    pub lanes: Range<usize>,
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
    /// Indexes a capture.
    pub fn build(trace: &Trace, analysis: &Analysis) -> Self {
        let mut plan = Plan { taken: FxHashSet::default(), groups: Vec::new() };
        for (i, rank) in analysis.ranks.iter().enumerate() {
            plan.rank(trace, i, rank);
        }
        plan.rest(trace);
        let kinds = Kinds::of(analysis);
        let built: Vec<(Option<usize>, Vec<Lane>)> = plan
            .groups
            .into_par_iter()
            .map(|(rank, sources)| {
                let lanes = sources.into_par_iter().flat_map_iter(|source| lanes(trace, analysis, &kinds, source));
                (rank, lanes.collect())
            })
            .collect();
        let mut set = Self::default();
        for (rank, lanes) in built.into_iter().filter(|(_, lanes)| !lanes.is_empty()) {
            let first = set.lanes.len();
            set.lanes.extend(lanes);
            set.groups.push(Group { rank, lanes: first..set.lanes.len() });
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

    /// Nested lanes of a track.
    pub fn depths(&self, track: TrackId) -> u16 {
        self.depths.get(&track).copied().unwrap_or(0)
    }

    /// Lane and slot of a slice of the trace.
    pub fn find(&self, trace: &Trace, id: SliceId) -> Option<(usize, usize)> {
        let (track, row) = trace.locate(id)?;
        let columns = trace.lanes.get(track.0 as usize)?;
        let of = Of::Track(track, *columns.depth.get(row)?);
        let lane = self.lanes.iter().position(|lane| lane.of == of)?;
        let slot = self.lanes.get(lane)?.slices()?.find(*columns.start.get(row)?, row as u32)?;
        Some((lane, slot))
    }
}

/// What lanes are made from.
#[derive(Clone, Copy)]
enum Source {
    Steps(usize),
    Idle(usize),
    Collectives(usize),
    Copies(usize),
    Track(TrackId),
    Counter(usize),
}

/// Which sources each group has.
struct Plan {
    taken: FxHashSet<TrackId>,
    groups: Vec<(Option<usize>, Vec<Source>)>,
}

impl Plan {
    fn rank(&mut self, trace: &Trace, i: usize, rank: &Rank) {
        let mut sources = vec![Source::Steps(i), Source::Idle(i)];
        sources.extend(rank.timeline.queues.iter().map(|track| Source::Track(*track)));
        sources.extend([Source::Collectives(i), Source::Copies(i)]);
        let size = |track: &TrackId| trace.lanes.get(track.0 as usize).map_or(0, Columns::len);
        let mut threads = rank.timeline.threads.clone();
        // The threads that do the most stand first.
        threads.sort_by_key(|track| Reverse(size(track)));
        let beside = (0..).map(TrackId).zip(&trace.tracks).filter(|(_, track)| {
            let of_device = track.key.device == Some(rank.device);
            track.key.process == rank.process && track.key.kind != TrackKind::HostThread && of_device
        });
        let beside: Vec<TrackId> = beside.map(|(id, _)| id).collect();
        sources.extend(threads.into_iter().chain(beside).map(Source::Track));
        let counters = trace.counters.iter().enumerate().filter(|(_, counter)| {
            counter.process == rank.process && counter.device.is_none_or(|device| device == rank.device)
        });
        sources.extend(counters.map(|(counter, _)| Source::Counter(counter)));
        // Several devices of one process share its threads, which the first of them shows.
        sources.retain(|source| match source {
            Source::Track(track) => self.taken.insert(*track),
            _ => true,
        });
        self.groups.push((Some(i), sources));
    }

    fn rest(&mut self, trace: &Trace) {
        let left = (0..trace.tracks.len() as u32).map(TrackId).filter(|track| !self.taken.contains(track));
        let sources = left.map(Source::Track).collect();
        self.groups.push((None, sources));
    }
}

/// Kinds of slices by their names.
struct Kinds {
    by_name: FxHashMap<StringId, Kind>,
}

impl Kinds {
    fn of(analysis: &Analysis) -> Self {
        let mut by_name: FxHashMap<StringId, Kind> = FxHashMap::default();
        for call in analysis.ranks.iter().flat_map(|rank| &rank.timeline.calls) {
            by_name.entry(call.name).or_insert(match call.kind {
                kind if kind.is_sync() => Kind::Sync,
                kind if kind.is_launch() => Kind::Launch,
                _ => Kind::Host,
            });
        }
        for op in analysis.ranks.iter().flat_map(|rank| &rank.timeline.ops) {
            if matches!(op.kind, OpKind::Compute | OpKind::Comm) {
                by_name.insert(op.name, Kind::of_op(op));
            }
        }
        Self { by_name }
    }

    fn of_slice(&self, trace: &Trace, lane: &Columns, row: usize) -> Kind {
        let Some(category) = lane.category.get(row) else { return Kind::Unknown };
        match category {
            Category::Kernel if matches!(trace.detail(lane, row), Some(Detail::Kernel(k)) if k.collective.is_some()) => {
                Kind::Comm
            }
            Category::Kernel | Category::HostApi => {
                let known = lane.name.get(row).and_then(|name| self.by_name.get(name));
                known.copied().unwrap_or(Kind::of_category(*category))
            }
            other => Kind::of_category(*other),
        }
    }
}

fn lanes(trace: &Trace, analysis: &Analysis, kinds: &Kinds, source: Source) -> Vec<Lane> {
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
        Source::Collectives(i) => {
            let items = operations(trace, analysis, i, |kind| kind == OpKind::Comm);
            one(Of::Collectives(i), Text::new("collectives", "集合通信"), items)
        }
        Source::Copies(i) => {
            let items = operations(trace, analysis, i, |kind| matches!(kind, OpKind::Copy(_)));
            one(Of::Copies(i), Text::new("copies", "拷贝"), items)
        }
        Source::Track(track) => track_lanes(trace, kinds, track),
        Source::Counter(i) => {
            let Some(counter) = trace.counters.get(i) else { return Vec::new() };
            let samples = CounterIndex::new(counter.t.iter().copied().zip(counter.value.iter().copied()));
            let name = match counter.unit.as_str() {
                "" => trace.strings.get(counter.name).to_owned(),
                unit => format!("{} [{unit}]", trace.strings.get(counter.name)),
            };
            vec![Lane { of: Of::Counter(i), what: None, name, shape: Shape::Samples(samples) }]
        }
    }
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
    let mut by_depth: Vec<Vec<Item>> = Vec::new();
    for (row, (start, depth)) in columns.start.iter().zip(&columns.depth).enumerate() {
        let depth = usize::from(*depth);
        if by_depth.len() <= depth {
            by_depth.resize_with(depth + 1, Vec::new);
        }
        if let Some(items) = by_depth.get_mut(depth) {
            let span = Span::new(*start, columns.end(row));
            items.push(Item { span, kind: kinds.of_slice(trace, columns, row), row: row as u32 });
        }
    }
    let what = match track.key.kind {
        TrackKind::HostThread => Text::new("thread", "线程"),
        TrackKind::DeviceQueue => Text::new("stream", "流"),
        TrackKind::DeviceAnnotation => Text::new("ranges on stream", "流上区间"),
        TrackKind::DeviceSync => Text::new("waits on stream", "流上等待"),
        TrackKind::Global => Text::new("capture", "采集"),
    };
    let name = match track.name.map(|name| trace.strings.get(name)).filter(|name| !name.is_empty()) {
        // Some recorders name a thread "thread 7".
        Some(name) => {
            ["stream ", "thread "].into_iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name).to_owned()
        }
        None if track.key.kind == TrackKind::Global => String::new(),
        None => track.key.id.to_string(),
    };
    let lane = |(depth, items): (usize, Vec<Item>)| Lane {
        of: Of::Track(id, depth as u16),
        what: Some(what),
        name: name.clone(),
        shape: Shape::Slices(LaneIndex::new(items)),
    };
    by_depth.into_iter().enumerate().map(lane).collect()
}
