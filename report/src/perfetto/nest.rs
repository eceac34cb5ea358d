//! Slices that overlap without nesting. Viewers drop them, so each finds a row in which it nests; where there are too many
//! rows it has a track of its own.

use model::{Ns, Span};

/// Rows of one track that are tried. A stream whose work overlaps needs two or three.
const ROWS: usize = 32;
/// Slices open at a time in one row; `trace_processor` refuses those below its 512th.
const DEEPEST: usize = 128;

/// Where a slice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The row with this number; 0 is the track itself.
    Nested(usize),
    /// None of them.
    Alone,
}

/// Slices of a track that are open at the time that was reached, row by row.
#[derive(Clone, Debug, Default)]
pub struct Nest {
    rows: Vec<Vec<Span>>,
}

impl Nest {
    /// Gives a slice a row. Slices come in order of their start, the longest first.
    pub fn place(&mut self, span: Span) -> Row {
        for (i, open) in self.rows.iter_mut().enumerate() {
            close(open, span.start);
            if open.len() < DEEPEST
                && open.last().is_none_or(|outer| outer.start <= span.start && span.end <= outer.end)
            {
                open.push(span);
                return Row::Nested(i);
            }
        }
        if self.rows.len() == ROWS {
            return Row::Alone;
        }
        self.rows.push(vec![span]);
        Row::Nested(self.rows.len() - 1)
    }

    /// The row whose innermost slice at `t` began last.
    pub fn at(&self, t: Ns) -> Option<usize> {
        let begin = |open: &Vec<Span>| open.iter().rev().find(|s| s.end > t || s.start == t).map(|s| s.start);
        let rows = self.rows.iter().enumerate().filter_map(|(i, open)| Some((begin(open)?, i)));
        // Of two that began together the later row holds the inner one.
        rows.max().map(|(_, row)| row)
    }
}

/// Ends what is over at `t`.
fn close(open: &mut Vec<Span>, t: Ns) {
    while open.last().is_some_and(|span| span.end <= t) {
        open.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn whatever_comes_nests_in_its_row(mut raw in proptest::collection::vec((0i64..200, 0i64..90), 0..400)) {
            raw.sort_by_key(|(start, len)| (*start, -len));
            let mut nest = Nest::default();
            let mut rows: Vec<Vec<Span>> = vec![Vec::new(); ROWS];
            for (start, len) in raw {
                let span = Span::new(start, start + len);
                if let Row::Nested(row) = nest.place(span)
                    && let Some(row) = rows.get_mut(row)
                {
                    row.push(span);
                }
            }
            for row in rows {
                for (i, a) in row.iter().enumerate() {
                    for b in row.iter().skip(i + 1) {
                        let apart = b.start >= a.end || b.end <= a.end;
                        proptest::prop_assert!(apart, "{:?} {:?}", a, b);
                    }
                }
            }
        }
    }

    #[test]
    fn what_nests_stays_and_what_overlaps_moves() {
        let mut nest = Nest::default();
        let rows: Vec<Row> =
            [(0, 10), (2, 5), (4, 12), (5, 5), (12, 13)].map(|(a, b)| nest.place(Span::new(a, b))).into();
        let expected = [0, 0, 1, 0, 0].map(Row::Nested);
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_pile_has_a_bounded_number_of_rows() {
        let mut nest = Nest::default();
        let rows = (0..10_000).map(|i| nest.place(Span::new(i, i + 20_000)));
        assert_eq!(rows.filter(|row| *row == Row::Alone).count(), 10_000 - ROWS);
    }
}
