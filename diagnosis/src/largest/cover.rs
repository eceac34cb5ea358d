//! Sets of time, and how much of a stretch lies in one.

use model::{Ns, Span};

/// Disjoint spans in order, with the time before each.
#[derive(Clone, Debug, Default)]
pub(super) struct Cover {
    spans: Vec<Span>,
    /// Time of all spans before each one, ns.
    before: Vec<Ns>,
}

impl Cover {
    /// The time that these spans cover.
    pub fn of(mut spans: Vec<Span>) -> Self {
        spans.retain(|span| !span.is_empty());
        spans.sort_unstable();
        // In place: a large capture has as many spans as kernels.
        spans.dedup_by(|span, last| {
            let joins = span.start <= last.end;
            last.end = if joins { last.end.max(span.end) } else { last.end };
            joins
        });
        spans.shrink_to_fit();
        let (mut sum, mut before): (Ns, _) = (0, Vec::with_capacity(spans.len()));
        for span in &spans {
            before.push(sum);
            sum = sum.saturating_add(span.len());
        }
        Self { spans, before }
    }

    /// All of it, ns.
    pub fn len(&self) -> Ns {
        self.until(Ns::MAX)
    }

    /// The disjoint spans in order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether `t` lies in it.
    pub fn contains(&self, t: Ns) -> bool {
        let at = self.spans.partition_point(|span| span.end <= t);
        self.spans.get(at).is_some_and(|span| span.start <= t)
    }

    /// How much of it lies in `span`, ns.
    pub fn within(&self, span: Span) -> Ns {
        self.until(span.end).saturating_sub(self.until(span.start)).max(0)
    }

    /// How much of it lies before `t`, ns.
    fn until(&self, t: Ns) -> Ns {
        self.spans.partition_point(|span| span.start < t).checked_sub(1).map_or(0, |last| self.before_end(last, t))
    }

    /// How much of it lies before `t`, which span `last` is the last to begin before, ns.
    fn before_end(&self, last: usize, t: Ns) -> Ns {
        let (Some(span), Some(before)) = (self.spans.get(last), self.before.get(last)) else { return 0 };
        if span.start < t { before.saturating_add(span.end.min(t) - span.start) } else { 0 }
    }

    /// The same for stretches that come in order of time.
    pub fn walk(&self) -> Walk<'_> {
        Walk { cover: self, at: 0 }
    }

    /// What of it `other` covers, too.
    pub fn and(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }

    /// What of it `other` does not cover.
    pub fn without(&self, other: &Self) -> Self {
        let mut out = Vec::new();
        for span in &self.spans {
            let mut from = span.start;
            let first = other.spans.partition_point(|hole| hole.end <= span.start);
            for hole in other.spans.iter().skip(first).take_while(|hole| hole.start < span.end) {
                out.push(Span::new(from, hole.start));
                from = hole.end;
            }
            out.push(Span::new(from, span.end));
        }
        Self::of(out)
    }
}

/// A walk along a cover: what was passed is not looked at again.
pub(super) struct Walk<'a> {
    cover: &'a Cover,
    /// The last span that was reached.
    at: usize,
}

impl Walk<'_> {
    /// How much of the cover lies in `span`, which begins no earlier than the one before it ended, ns.
    pub fn within(&mut self, span: Span) -> Ns {
        let from = self.until(span.start);
        self.until(span.end).saturating_sub(from).max(0)
    }

    /// The same where the next span begins no earlier than this one began: it may lie in it.
    pub fn around(&mut self, span: Span) -> Ns {
        let from = self.until(span.start);
        self.cover.before_end(self.last(span.end), span.end).saturating_sub(from).max(0)
    }

    fn until(&mut self, t: Ns) -> Ns {
        self.at = self.last(t);
        self.cover.before_end(self.at, t)
    }

    /// The last span from here on that begins before `t`, else where the walk is. In steps that double: a long span costs the
    /// logarithm of what it covers, and so does each of a million threads whose only call is late.
    fn last(&self, t: Ns) -> usize {
        let ahead = self.cover.spans.get(self.at + 1..).unwrap_or(&[]);
        let mut step = 1;
        while ahead.get(step - 1).is_some_and(|next| next.start < t) {
            step *= 2;
        }
        let near = ahead.get(step / 2..step.min(ahead.len())).unwrap_or(&[]);
        self.at + step / 2 + near.partition_point(|next| next.start < t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spans: &[(Ns, Ns)]) -> Cover {
        Cover::of(spans.iter().map(|(start, end)| Span { start: *start, end: *end }).collect())
    }

    #[test]
    fn time_is_counted_once_and_holes_are_left_out() {
        let cover = of(&[(10, 20), (15, 30), (40, 50), (60, 55)]);
        assert_eq!((cover.len(), cover.spans().len()), (30, 2));
        assert_eq!(cover.within(Span::new(0, 100)), 30);
        assert_eq!(cover.within(Span::new(25, 45)), 10);
        assert_eq!(cover.within(Span::new(30, 40)), 0);
        let mut walk = cover.walk();
        let along = [(0, 5), (5, 12), (12, 30), (30, 45), (45, 45), (45, 90)];
        let along = along.map(|(start, end)| walk.within(Span { start, end }));
        assert_eq!(along, [0, 2, 18, 5, 0, 5]);
        let mut walk = cover.walk();
        let nested = [(0, 100), (5, 12), (5, 45), (12, 12), (12, 41), (29, 41), (45, 90)];
        for (start, end) in nested {
            let span = Span { start, end };
            assert_eq!(walk.around(span), cover.within(span), "{span:?}");
        }
        assert!(cover.contains(10) && cover.contains(29) && !cover.contains(30) && !cover.contains(9));
        let rest = cover.without(&of(&[(0, 12), (28, 42), (48, 70)]));
        assert_eq!(rest.spans(), [Span::new(12, 28), Span::new(42, 48)]);
        assert_eq!(cover.and(&of(&[(0, 12), (28, 42)])).spans(), of(&[(10, 12), (28, 30), (40, 42)]).spans());
        assert_eq!(of(&[]).within(Span::new(0, 5)), 0);
    }
}
