//! A counter, ready to be drawn at any zoom: the least and the most value of every column, so that no spike vanishes.

use model::{Ns, Span};

use super::index::moved;

/// Samples that one node of a level stands for, in samples of the level below.
const FACTOR: usize = 16;

/// Least and most of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Least value.
    pub least: f64,
    /// Most.
    pub most: f64,
}

impl Range {
    fn join(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// Samples of a counter in order of time.
#[derive(Clone, Debug, Default)]
pub struct CounterIndex {
    t: Vec<Ns>,
    /// The samples, and above them ever fewer nodes.
    levels: Vec<Vec<Range>>,
    /// Added to all times, ns.
    shift: Ns,
}

impl CounterIndex {
    /// Takes samples in any order; those that are no numbers are left out.
    pub fn new(samples: impl IntoIterator<Item = (Ns, f64)>) -> Self {
        let mut samples: Vec<(Ns, f64)> = samples.into_iter().filter(|(_, value)| value.is_finite()).collect();
        samples.sort_by_key(|(t, _)| *t);
        let (t, first): (Vec<Ns>, Vec<Range>) =
            samples.into_iter().map(|(t, value)| (t, Range { least: value, most: value })).unzip();
        let mut levels = vec![first];
        while let Some(below) = levels.last().filter(|below| below.len() > FACTOR) {
            let joined = below.chunks(FACTOR).filter_map(|part| part.iter().copied().reduce(Range::join)).collect();
            levels.push(joined);
        }
        Self { t, levels, shift: 0 }
    }

    /// The same on another clock, on which everything is so much later.
    pub fn shifted(self, by: Ns) -> Self {
        Self { shift: by, ..self }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.t.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.t.is_empty()
    }

    /// Bytes that it allocates.
    pub fn bytes(&self) -> usize {
        let nodes: usize = self.levels.iter().map(Vec::capacity).sum();
        size_of::<Ns>() * self.t.capacity() + size_of::<Range>() * nodes
    }

    /// Least and most of all samples.
    pub fn range(&self) -> Option<Range> {
        self.levels.last()?.iter().copied().reduce(Range::join)
    }

    /// Least and most of each of `width` columns of a window: of the samples in it, or of the last one before it. Before
    /// the first sample there is nothing.
    pub fn columns(&self, window: Span, width: u16, out: &mut Vec<Option<Range>>) {
        out.clear();
        let window = moved(window, self.shift.saturating_neg());
        let edge = |i: u16| {
            let part = i128::from(window.len()) * i128::from(i) / i128::from(width.max(1));
            window.start.saturating_add(part as Ns)
        };
        let mut low = self.t.partition_point(|t| *t < edge(0));
        for i in 0..width {
            let high = low + self.t.get(low..).map_or(0, |rest| rest.partition_point(|t| *t < edge(i + 1)));
            let shown = if high > low { low } else { low.saturating_sub(1) };
            out.push(self.over(shown, high.max(low)));
            low = high;
        }
    }

    /// Least and most of the samples `low..high`, from the highest nodes that fit.
    fn over(&self, mut low: usize, mut high: usize) -> Option<Range> {
        let mut found: Option<Range> = None;
        for level in &self.levels {
            let mut take = |at: usize| {
                if let Some(node) = level.get(at) {
                    found = Some(found.map_or(*node, |f| f.join(*node)));
                }
            };
            let (first, last) = (low.div_ceil(FACTOR), high / FACTOR);
            if first >= last {
                (low..high).for_each(take);
                break;
            }
            (low..first * FACTOR).chain(last * FACTOR..high).for_each(&mut take);
            (low, high) = (first, last);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn columns_hold_the_extremes(
            samples in proptest::collection::vec((0i64..5000, -100i32..100), 0..700),
            from in -100i64..5000, len in 0i64..9000, width in 1u16..60,
        ) {
            let counter = CounterIndex::new(samples.iter().map(|(t, v)| (*t, f64::from(*v))));
            let mut columns = Vec::new();
            counter.columns(Span::new(from, from + len), width, &mut columns);
            let edge = |i: u16| from + (i128::from(len) * i128::from(i) / i128::from(width)) as i64;
            for (i, shown) in (0..).zip(&columns) {
                let inside: Vec<i32> = samples.iter().filter(|(t, _)| edge(i) <= *t && *t < edge(i + 1)).map(|s| s.1).collect();
                if let (Some(least), Some(most)) = (inside.iter().min(), inside.iter().max()) {
                    let expected = Some(Range { least: f64::from(*least), most: f64::from(*most) });
                    proptest::prop_assert_eq!(*shown, expected);
                } else {
                    let earlier = samples.iter().any(|(t, _)| *t < edge(i));
                    proptest::prop_assert_eq!(shown.is_some(), earlier);
                }
            }
        }
    }
}
