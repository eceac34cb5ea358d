//! One step of each side, operation by operation, with the slot that each lies in.

use std::ops::Range;

use model::{Ns, SliceId, Span};

use crate::tui::view::Scene;
use diagnosis::compare::align::{Place as Placed, Placer, Reader};

/// A step of one side.
#[derive(Clone, Debug)]
pub struct Side {
    /// The rank, as an index into those of the analysis.
    pub rank: usize,
    /// Its number in the run.
    pub index: u32,
    /// From when to when.
    pub window: Span,
    /// Its operations, as indices into the timeline.
    pub ops: Range<usize>,
    /// When each is, in the order of the timeline.
    spans: Vec<Span>,
    /// Where each lies.
    pub places: Vec<Placed>,
}

impl Side {
    /// Where an operation lies.
    pub fn place(&self, op: usize) -> Option<Placed> {
        self.places.get(op).copied()
    }

    /// The operations that lie in a place.
    pub fn at(&self, place: Placed) -> Vec<usize> {
        (0..).zip(&self.places).filter(|(_, known)| **known == place).map(|(at, _)| at).collect()
    }

    /// The first operation, if there is any.
    pub fn first(&self) -> Option<usize> {
        (!self.places.is_empty()).then_some(0)
    }
}

/// The same step of both sides: the one in the same place among those that count.
#[derive(Clone, Debug)]
pub struct Pair {
    /// That place.
    pub at: usize,
    /// Steps that both sides have.
    pub count: usize,
    /// A and B.
    pub sides: [Side; 2],
}

impl Pair {
    /// Reads the steps in a place; without one, those where A takes its median time.
    pub fn read(scene: &Scene<'_>, at: Option<usize>) -> Option<Self> {
        let beside = scene.beside?;
        let difference = beside.report.difference.as_ref()?;
        let [a, b] = &difference.sides;
        let [of_a, of_b] = beside.sides;
        let chosen = [a.find((of_a.trace, of_a.analysis()?))?, b.find((of_b.trace, of_b.analysis()?))?];
        let count = chosen.iter().map(|side| side.steps().count()).min()?;
        let median = chosen[0].class.p50;
        let usual = || {
            let steps = chosen[0].steps().take(count).enumerate();
            steps.min_by_key(|(_, step)| step.window.len().abs_diff(median)).map(|(at, _)| at)
        };
        let at = at.or_else(usual)?.min(count.saturating_sub(1));
        let side = |number: usize| {
            let side = chosen.get(number)?;
            let step = side.steps().nth(at)?;
            let places = Placer::new(&difference.alignment, number).step(&Reader::new(*side), step);
            let spans = side.rank.ops_of(step).iter().map(|op| Span::new(op.start, op.end)).collect();
            let (rank, index) = (side.index, step.index);
            Some(Side { rank, index, window: step.window, ops: step.ops.clone(), spans, places })
        };
        Some(Self { at, count, sides: [side(0)?, side(1)?] })
    }

    /// One of the two.
    pub fn side(&self, side: usize) -> &Side {
        &self.sides[side.min(1)]
    }

    /// Whether neither has an operation.
    pub fn is_empty(&self) -> bool {
        self.sides.iter().all(|side| side.places.is_empty())
    }

    /// When an operation is, since the start of its step.
    pub fn span(&self, side: usize, op: usize) -> Option<Span> {
        let side = self.side(side);
        let span = side.spans.get(op)?;
        Some(Span::new(span.start - side.window.start, span.end - side.window.start))
    }

    /// When an operation begins, since the start of its step.
    pub fn since_start(&self, side: usize, op: usize) -> Option<Ns> {
        self.span(side, op).map(|span| span.start)
    }

    /// The operation that begins nearest to a time since the start of the step.
    pub fn nearest(&self, side: usize, t: Ns) -> Option<usize> {
        let of = self.side(side);
        (0..of.spans.len()).min_by_key(|op| {
            let span = self.span(side, *op).unwrap_or(Span::new(0, 0));
            if span.contains(t) { 0 } else { span.start.abs_diff(t).min(span.end.abs_diff(t)) + 1 }
        })
    }

    /// The slice of the trace that an operation is.
    pub fn slice(&self, scene: &Scene<'_>, side: usize, op: usize) -> Option<SliceId> {
        let of = self.side(side);
        let look = scene.beside?.sides.get(side.min(1)).copied()?;
        let rank = look.analysis()?.ranks.get(of.rank)?;
        Some(rank.timeline.ops.get(of.ops.start.checked_add(op)?)?.slice)
    }
}
