//! How much of the time that is not useful the statements of a report cover: a large cost is never silent.

use model::{Ns, Span};

use super::{
    finding::Finding,
    rule::Context,
    signals::reading::{accounted, gaps, merged, overlap},
    verdict::Unjudged,
};
use crate::analysis::{Class, OpKind, Rank};

/// Time that is not useful, and how much of it is stated; ns over the counted steps of the rank that the verdict is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Coverage {
    /// Idle time, waits in collectives, and copies that nothing runs beside.
    pub not_useful: Ns,
    /// Of that, what a finding or a doubt states.
    pub stated: Ns,
}

/// The stretches of one rank in which nothing useful is done.
pub struct NotUseful<'a> {
    /// The rank with the most time.
    pub rank: &'a Rank,
    /// Its class.
    pub class: &'a Class,
    /// Disjoint and in order.
    pub spans: Vec<Span>,
}

impl<'a> NotUseful<'a> {
    /// Those of the rank that the verdict is about; `None` without a step that counts.
    pub fn of(cx: &'a Context<'_>) -> Option<Self> {
        let (rank, class) =
            cx.main_classes().max_by_key(|(rank, class)| (class.total, std::cmp::Reverse(rank.rank)))?;
        let mut spans = Vec::new();
        for step in rank.workload(class).steps() {
            spans.extend(gaps(rank, step).iter().map(|gap| gap.span));
            // Of a copy or a wait that something runs beside only its own part is lost; where that lies is not kept.
            spans.extend(accounted(rank, step).filter_map(|(_, op, own)| match op.kind {
                OpKind::Copy(_) if 2 * own.busy >= op.dur() => Some(Span::new(op.start, op.end)),
                OpKind::Comm if own.waiting > 0 => Some(Span::new(op.start, op.start + own.waiting.min(op.dur()))),
                _ => None,
            }));
        }
        Some(Self { rank, class, spans: merged(spans) })
    }

    /// The parts that no finding is about.
    pub fn without(&self, findings: &[Finding]) -> Vec<Span> {
        let stated = self.stated(findings);
        let (mut out, mut next) = (Vec::new(), 0);
        for span in &self.spans {
            let mut from = span.start;
            while stated.get(next).is_some_and(|other| other.end <= from) {
                next += 1;
            }
            for other in stated.iter().skip(next).take_while(|other| other.start < span.end) {
                if other.start > from {
                    out.push(Span::new(from, other.start));
                }
                from = from.max(other.end);
            }
            if from < span.end {
                out.push(Span::new(from, span.end));
            }
        }
        out
    }

    fn stated(&self, findings: &[Finding]) -> Vec<Span> {
        let mine = findings.iter().filter(|f| f.selected_on == self.rank.rank);
        merged(mine.flat_map(|f| f.selection.iter().copied()).collect())
    }
}

/// What findings and doubts cover.
pub fn of(cx: &Context<'_>, findings: &[Finding], unjudged: &[Unjudged]) -> Coverage {
    let Some(time) = NotUseful::of(cx) else { return Coverage::default() };
    let not_useful: Ns = time.spans.iter().map(|span| span.len()).sum();
    let stated = overlap(&time.spans, &time.stated(findings));
    // A doubt says how much is not known, not where.
    let doubted = unjudged.iter().map(|doubt| doubt.share).fold(0.0, f64::max) * time.class.total as f64;
    Coverage { not_useful, stated: stated.saturating_add(doubted as Ns).min(not_useful) }
}
