//! The records of a host thread as the tree that they nest in.

use model::{Columns, Ns, Span, Trace, TrackId};
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

/// The trees of the threads that were asked for.
pub(crate) struct Nests<'a> {
    trace: &'a Trace,
    known: FxHashMap<TrackId, Nest>,
}

impl<'a> Nests<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        Self { trace, known: FxHashMap::default() }
    }

    /// The rows of a thread.
    pub(crate) fn lane(&self, track: TrackId) -> Option<&'a Columns> {
        self.trace.lanes.get(track.0 as usize)
    }

    /// The records of a thread that hold the moment `t`, innermost first.
    pub(crate) fn around(&mut self, track: TrackId, t: Ns) -> Vec<usize> {
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
    pub(crate) fn inside(&mut self, track: TrackId, row: usize, span: Span) -> Vec<(usize, Ns)> {
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
    pub(crate) fn innermost(&mut self, track: TrackId, span: Span) -> Vec<(usize, Ns)> {
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
}
