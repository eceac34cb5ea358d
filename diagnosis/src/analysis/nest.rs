//! The records of a host thread as the tree that they nest in.

use model::{Category, Columns, Ns, Span, Trace, TrackId};
use rustc_hash::FxHashMap;

/// No record around it.
const NONE: u32 = u32::MAX;
/// Records around a moment that are looked at: far more than any program nests.
const DEEPEST: usize = 1024;

/// Per row of a lane the row that encloses it.
struct Nest(Vec<u32>);

impl Nest {
    fn of(lane: &Columns) -> Self {
        let (mut parents, mut open) = (Vec::with_capacity(lane.len()), Vec::<usize>::new());
        for (row, start) in lane.start.iter().enumerate() {
            while open.last().is_some_and(|outer| lane.end(*outer) <= *start) {
                open.pop();
            }
            parents.push(open.last().map_or(NONE, |outer| *outer as u32));
            open.push(row);
        }
        Self(parents)
    }

    fn parent(&self, row: usize) -> Option<usize> {
        self.0.get(row).copied().filter(|outer| *outer != NONE).map(|outer| outer as usize)
    }
}

/// A stretch of a thread's time with the record that is innermost throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When.
    pub span: Span,
    /// The innermost record, as a row of the thread; `None` where no record covers the time.
    pub row: Option<usize>,
    /// Whether the record encloses no other one: then the time is its own from end to end.
    pub leaf: bool,
    /// In the own time of a record with children, or outside every record: the record that ended before.
    pub before: Option<usize>,
    /// The same: the record that begins next.
    pub next: Option<usize>,
}

/// The trees of the threads that were asked for.
pub struct Nests<'a> {
    trace: &'a Trace,
    known: FxHashMap<TrackId, Nest>,
}

impl<'a> Nests<'a> {
    /// None yet.
    pub fn new(trace: &'a Trace) -> Self {
        Self { trace, known: FxHashMap::default() }
    }

    /// A name.
    pub fn text(&self, name: model::StringId) -> &'a str {
        self.trace.strings.get(name)
    }

    /// The rows of a thread.
    pub fn lane(&self, track: TrackId) -> Option<&'a Columns> {
        self.trace.lanes.get(track.0 as usize)
    }

    /// The records of a thread that hold the moment `t`, innermost first.
    pub fn around(&mut self, track: TrackId, t: Ns) -> Vec<usize> {
        let Some(lane) = self.lane(track) else { return Vec::new() };
        let nest = self.known.entry(track).or_insert_with(|| Nest::of(lane));
        let mut next = lane.start.partition_point(|start| *start <= t).checked_sub(1);
        let mut out = Vec::new();
        for _ in 0..DEEPEST {
            let Some(row) = next else { break };
            if lane.end(row) >= t {
                out.push(row);
            }
            next = nest.parent(row);
        }
        out
    }

    /// The records directly inside another one that lie, in part, in `span`, each with its time there.
    pub fn inside(&mut self, track: TrackId, row: usize, span: Span) -> Vec<(usize, Ns)> {
        let Some(lane) = self.lane(track) else { return Vec::new() };
        let nest = self.known.entry(track).or_insert_with(|| Nest::of(lane));
        // A child that began before the span and reaches into it holds the span's first moment.
        let mut first = lane.start.partition_point(|start| *start < span.start);
        let mut out = Vec::new();
        let mut at = first.checked_sub(1);
        for _ in 0..DEEPEST {
            let Some(before) = at.filter(|before| *before > row) else { break };
            if nest.parent(before) == Some(row) {
                first = before;
                break;
            }
            at = nest.parent(before);
        }
        let last = lane.start.partition_point(|start| *start < span.end);
        for child in first.max(row + 1)..last {
            let ns = Span::new(lane.start.get(child).copied().unwrap_or(0), lane.end(child)).clip(span).len();
            if nest.parent(child) == Some(row) && ns > 0 {
                out.push((child, ns));
            }
        }
        out
    }

    /// The records of a thread that are innermost somewhere in `span`, each with its time there.
    pub fn innermost(&mut self, track: TrackId, span: Span) -> Vec<(usize, Ns)> {
        let Some(lane) = self.lane(track) else { return Vec::new() };
        let mut open = self.around(track, span.start);
        open.reverse();
        let (mut out, mut at) = (Vec::new(), span.start);
        let mut until = |open: &mut Vec<usize>, to: Ns| {
            while let Some(top) = open.last().copied() {
                let end = lane.end(top).min(to);
                if end > at {
                    out.push((top, end - at));
                    at = end;
                }
                if lane.end(top) > to {
                    break;
                }
                open.pop();
            }
            at = at.max(to);
        };
        let first = lane.start.partition_point(|start| *start <= span.start);
        for (row, start) in lane.start.iter().enumerate().skip(first).take_while(|(_, start)| **start < span.end) {
            until(&mut open, *start);
            open.push(row);
        }
        until(&mut open, span.end);
        out
    }

    /// The record that encloses another one, `None` for the outermost.
    pub fn parent(&mut self, track: TrackId, row: usize) -> Option<usize> {
        let lane = self.lane(track)?;
        self.known.entry(track).or_insert_with(|| Nest::of(lane)).parent(row)
    }

    /// Splits `span` of a thread by the innermost of the records that `speaks` takes, in order of time and without holes.
    pub fn segments(&mut self, track: TrackId, span: Span, speaks: &dyn Fn(Category) -> bool, out: &mut Vec<Segment>) {
        let Some(lane) = self.lane(track) else {
            return out.push(Segment { span, row: None, leaf: false, before: None, next: None });
        };
        let mut open: Vec<usize> = self.around(track, span.start);
        open.retain(|row| lane.end(*row) > span.start && speaks(lane.category[*row]));
        open.reverse();
        let nest = self.known.entry(track).or_insert_with(|| Nest::of(lane));
        let first = lane.start.partition_point(|start| *start <= span.start);
        // The last child of the innermost record that ended before the span.
        let mut before = None;
        let mut at = first.checked_sub(1);
        for _ in 0..DEEPEST {
            let Some(row) = at.filter(|row| open.last().is_none_or(|top| row > top)) else { break };
            let parent = nest.parent(row);
            if parent == open.last().copied() && speaks(lane.category[row]) {
                before = Some(row);
                break;
            }
            at = parent;
        }
        let mut cursor = span.start;
        let mut rows = (first..lane.len()).take_while(|row| lane.start[*row] < span.end);
        loop {
            let next = rows.by_ref().find(|row| speaks(lane.category[*row]) && lane.dur[*row] > 0);
            let until = next.map_or(span.end, |row| lane.start[row]);
            while let Some(top) = open.last().copied().filter(|top| lane.end(*top) <= until) {
                let end = lane.end(top);
                if end > cursor {
                    out.push(own(lane, speaks, Some(top), Span::new(cursor, end), (before, None)));
                    cursor = end;
                }
                before = open.pop();
            }
            if until > cursor {
                out.push(own(lane, speaks, open.last().copied(), Span::new(cursor, until), (before, next)));
                cursor = until;
            }
            let Some(row) = next else { break };
            open.push(row);
            before = None;
        }
    }
}

/// Rows that are looked at behind a record for one inside it; what speaks lies near.
const INSIDE: usize = 64;

/// A stretch that the record `row` has to itself, between two others.
fn own(
    lane: &Columns,
    speaks: &dyn Fn(Category) -> bool,
    row: Option<usize>,
    span: Span,
    (before, next): (Option<usize>, Option<usize>),
) -> Segment {
    let encloses = |row: usize| {
        let inside = (row + 1..lane.len()).take(INSIDE).take_while(|inner| lane.start[*inner] < lane.end(row));
        inside.into_iter().any(|inner| speaks(lane.category[inner]))
    };
    let leaf = row.is_some_and(|row| !encloses(row));
    let (before, next) = if leaf { (None, None) } else { (before, next) };
    Segment { span, row, leaf, before, next }
}
