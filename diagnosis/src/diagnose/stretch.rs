//! Stretches: where a person looks at what a finding is about. A pause is charged instant by instant, so that its time may be
//! thousands of pieces of microseconds; whoever looks at it wants to see the pause.

use model::{Ns, Span};

use crate::analysis::idle::Gap;

/// A stretch of a rank's time that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stretch {
    /// From when to when.
    pub span: Span,
    /// Time of it that the finding is about, ns.
    pub cost: Ns,
}

/// Pieces of time in order as stretches, the costliest first: those of one gap are one, as long as they are at least half of it.
pub(super) fn of(pieces: &[Span], gaps: &[Gap]) -> Vec<Stretch> {
    let gap = |piece: &Span| {
        let at = gaps.partition_point(|gap| gap.span.end < piece.end);
        gaps.get(at).filter(|gap| gap.span.start <= piece.start).map(|_| at)
    };
    let (mut out, mut before): (Vec<Stretch>, Option<usize>) = (Vec::new(), None);
    for piece in pieces {
        let (at, cost) = (gap(piece), piece.len());
        match out.last_mut().filter(|_| before.is_some() && before == at) {
            Some(last) if 2 * (last.cost + cost) >= piece.end - last.span.start => {
                last.span.end = piece.end;
                last.cost += cost;
            }
            _ => out.push(Stretch { span: *piece, cost }),
        }
        before = at;
    }
    // Findings are kept to the end, and a large capture has as many stretches as kernels.
    out.shrink_to_fit();
    out.sort_by_key(|stretch| (std::cmp::Reverse(stretch.cost), stretch.span.start));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause of 27 ms before a forward pass was 9 640 stretches, the longest of 61 µs.
    #[test]
    fn pieces_of_one_pause_are_one_stretch_and_those_of_two_are_two() {
        let gap = |start, end| Gap {
            span: Span::new(start, end),
            owner: None,
            step: 0,
            parts: Vec::new(),
            after_sync: false,
            between_steps: false,
        };
        let gaps = [gap(0, 100), gap(200, 300)];
        let pieces = [(0, 30), (35, 60), (70, 99), (200, 210), (290, 300), (400, 405)].map(|(a, b)| Span::new(a, b));
        let told: Vec<(Ns, Ns, Ns)> = of(&pieces, &gaps).iter().map(|s| (s.span.start, s.span.end, s.cost)).collect();
        assert_eq!(told, [(0, 99, 84), (200, 210, 10), (290, 300, 10), (400, 405, 5)]);
    }
}
