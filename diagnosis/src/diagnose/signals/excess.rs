//! What one rank spends longer than the others of its group, and the change that brings it to their level.

use std::collections::BTreeMap;

use model::{Ns, Span, TrackId};

use super::reading;
use crate::analysis::{Analysis, Bucket, Class, Edit, Rank};

/// What the late rank spends longer per step than the median of the others, bucket by bucket.
#[derive(Clone)]
pub struct Excess {
    /// Own mean and median of the others, ns per step.
    buckets: BTreeMap<Bucket, (Ns, Ns)>,
    /// Sum of the differences, ns per step.
    pub total: Ns,
}

impl Excess {
    /// Of the rank `late` and its main class over `ranks`, in the buckets that `pick` takes.
    pub fn of(analysis: &Analysis, ranks: &[usize], late: usize, class: &Class, pick: impl Fn(Bucket) -> bool) -> Self {
        let others = ranks.iter().filter(|r| **r != late);
        let others: Vec<&Class> = others.filter_map(|r| analysis.ranks.get(*r)?.main_class()).collect();
        let mut buckets = BTreeMap::new();
        for bucket in class.buckets.iter().map(|(b, _)| *b).filter(|b| pick(*b)) {
            let own = class.per_step(|b| b == bucket);
            let mut theirs: Vec<Ns> = others.iter().map(|c| c.per_step(|b| b == bucket)).collect();
            theirs.sort_unstable();
            let median = theirs.get(theirs.len().saturating_sub(1) / 2).copied().unwrap_or(own);
            if own > median {
                buckets.insert(bucket, (own, median));
            }
        }
        let total = buckets.values().map(|(own, median)| own - median).sum();
        Self { buckets, total }
    }

    /// Time of the late rank in the buckets in which it spends longer, over the median of the others.
    pub fn ratio(&self) -> Option<f64> {
        let sum = |of: fn(&(Ns, Ns)) -> Ns| self.buckets.values().map(of).sum::<Ns>();
        let (own, median) = (sum(|b| b.0), sum(|b| b.1));
        (median > 0).then(|| own as f64 / median as f64)
    }

    /// The same against the mean of all, itself among them: where the work is spread anew the others get more of it.
    pub fn shared(self, ranks: usize) -> Self {
        let n = ranks.max(1) as Ns;
        let spread = |(bucket, (own, median)): (Bucket, (Ns, Ns))| (bucket, (own, median + (own - median) / n));
        let buckets: BTreeMap<_, _> = self.buckets.into_iter().map(spread).collect();
        let total = buckets.values().map(|(own, mean)| own - mean).sum();
        Self { buckets, total }
    }

    /// The time something of this bucket would take if the rank were like the others.
    fn aligned(&self, bucket: Bucket, ns: Ns) -> Option<Ns> {
        let (own, median) = self.buckets.get(&bucket)?;
        Some((i128::from(ns) * i128::from(*median) / i128::from((*own).max(1))) as Ns)
    }

    /// Brings the rank's time in each bucket to the median of the others.
    pub fn edits(&self, rank: &Rank, class: &Class) -> Vec<Edit> {
        let (mut sizes, mut gaps) = (Vec::new(), Vec::new());
        let mut host: BTreeMap<TrackId, Vec<(Span, Ns)>> = BTreeMap::new();
        for step in rank.steady_steps(class) {
            for (i, op, _) in reading::accounted(rank, step) {
                if let Some(ns) = self.aligned(Bucket::Compute(op.op), op.dur()) {
                    sizes.push((i as u32, ns));
                }
            }
            for gap in reading::gaps(rank, step) {
                let call = reading::owner(rank, gap).and_then(|op| rank.timeline.call(op));
                for (bucket, span) in &gap.parts {
                    let Some(ns) = self.aligned(*bucket, span.len()) else { continue };
                    match (call, gap.owner) {
                        (Some(call), _) if bucket.is_host_side() && *bucket != Bucket::LaunchLatency => {
                            // Who hands the work over comes earlier too.
                            let feeder = rank.timeline.tasks.awaited(call.track, span.start);
                            for track in [Some(call.track), feeder].into_iter().flatten() {
                                host.entry(track).or_default().push((*span, ns));
                            }
                        }
                        (_, Some(owner)) => gaps.push((owner, ns)),
                        _ => {}
                    }
                }
            }
        }
        let host = host.into_iter().map(|(track, spans)| Edit::Host(track, spans));
        let sizes = (!sizes.is_empty()).then_some(Edit::Resize(sizes));
        let gaps = (!gaps.is_empty()).then_some(Edit::Gap(gaps));
        host.chain(sizes).chain(gaps).collect()
    }
}
