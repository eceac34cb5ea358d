//! Where the time between two collectives went on one rank: what the sweep charged, cut where collectives begin and end, so
//! that any stretch between two of them can be asked for without sweeping again.

use std::collections::BTreeMap;

use model::Ns;

use super::bucket::Bucket;

/// Stretches that one question may add up: between two collectives of one group lie those of others, a few hundred at most
/// (own value; it bounds hostile input).
const STRETCHES: usize = 8_192;

/// Buckets of the stretches between cuts.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    /// Cuts in time order; stretch `i` lies between cut `i` and the next.
    cuts: Vec<Ns>,
    /// First entry of each stretch.
    first: Vec<u32>,
    entries: Vec<(Bucket, Ns)>,
}

impl Segments {
    /// Segments that will be cut at these times.
    pub(super) fn new(mut cuts: Vec<Ns>) -> Self {
        cuts.sort_unstable();
        cuts.dedup();
        Self { first: Vec::with_capacity(cuts.len()), entries: Vec::new(), cuts }
    }

    /// The next time to cut at.
    pub(super) fn next_cut(&self) -> Option<Ns> {
        self.cuts.get(self.first.len()).copied()
    }

    /// Closes the stretch that ends at the next cut. What lies before the first cut is not kept.
    pub(super) fn close(&mut self, buckets: BTreeMap<Bucket, Ns>) {
        if !self.first.is_empty() {
            self.entries.extend(buckets.into_iter().filter(|(_, ns)| *ns != 0));
        }
        self.first.push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }

    /// Buckets from one cut to a later one; they add up to the time between exactly. `None` where part of that time was not
    /// attributed, or where one of the two is no cut.
    pub(super) fn between(&self, from: Ns, to: Ns) -> Option<BTreeMap<Bucket, Ns>> {
        let a = self.cuts.binary_search(&from).ok()?;
        let b = self.cuts.binary_search(&to).ok()?;
        if a > b || b - a > STRETCHES {
            return None;
        }
        // Entries of stretch `i` end where the count stood when cut `i + 1` was reached.
        let (first, last) = (*self.first.get(a)? as usize, *self.first.get(b)? as usize);
        let mut out = BTreeMap::new();
        for (bucket, ns) in self.entries.get(first..last)? {
            *out.entry(*bucket).or_insert(0) += ns;
        }
        (out.values().sum::<Ns>() == to - from).then_some(out)
    }
}
