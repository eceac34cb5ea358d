//! Waits that a source reports inside its collectives (method §2.5): a collective's own queue then holds, below the
//! collective, the waits for other ranks and the transfers. Time in which a rank only waited is no transfer.

use std::collections::BTreeMap;

use model::{Category, Columns, Detail, Ns, SliceId, Trace};
use rustc_hash::FxHashMap;

use super::timeline::{OpKind, Timeline};

/// What the waits inside the collectives of one rank tell.
#[derive(Clone, Debug, Default)]
pub struct Notified {
    /// Transfer of each collective whose inside was recorded, ns.
    pub transfer: FxHashMap<SliceId, Ns>,
    /// Time that waits for each rank took, ns, by the number of the rank in its group. Waits for several ranks run side by
    /// side, so the times may add up to more than the collectives took.
    pub peers: BTreeMap<u32, Ns>,
}

impl Notified {
    /// Reads the queues of a rank.
    pub fn of(trace: &Trace, timeline: &Timeline) -> Self {
        let mut notified = Self::default();
        for (queue, track) in timeline.queues.iter().enumerate() {
            let Some(lane) = trace.lanes.get(track.0 as usize) else { continue };
            if !lane.category.contains(&Category::DeviceSync) {
                continue;
            }
            let (waits, moves) = (covered(lane, Category::DeviceSync), covered(lane, Category::DeviceOther));
            let (all, alone) = (Sums::of(&merged(&waits, &moves)), Sums::of(&without(&waits, &moves)));
            let own = |op: &&super::timeline::DeviceOp| op.queue as usize == queue && op.kind == OpKind::Comm;
            for op in timeline.ops.iter().filter(own) {
                if all.between(op.start, op.end) > 0 {
                    notified.transfer.insert(op.slice, op.dur() - alone.between(op.start, op.end));
                }
            }
            for i in 0..lane.len() {
                if let Some(Detail::Peer(rank)) = trace.detail(lane, i) {
                    *notified.peers.entry(*rank).or_default() += lane.dur[i];
                }
            }
        }
        notified
    }
}

/// The time that slices of a category cover, as disjoint intervals in order.
fn covered(lane: &Columns, category: Category) -> Vec<(Ns, Ns)> {
    let spans = (0..lane.len()).filter(|i| lane.category[*i] == category).map(|i| (lane.start[i], lane.end(i)));
    union(spans)
}

/// Intervals in order of their starts as disjoint ones.
fn union(spans: impl Iterator<Item = (Ns, Ns)>) -> Vec<(Ns, Ns)> {
    let mut out: Vec<(Ns, Ns)> = Vec::new();
    for (start, end) in spans.filter(|(start, end)| start < end) {
        match out.last_mut() {
            Some((_, last)) if *last >= start => *last = end.max(*last),
            _ => out.push((start, end)),
        }
    }
    out
}

fn merged(a: &[(Ns, Ns)], b: &[(Ns, Ns)]) -> Vec<(Ns, Ns)> {
    let mut all: Vec<(Ns, Ns)> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    union(all.into_iter())
}

/// The part of `a` that `b` does not cover.
fn without(a: &[(Ns, Ns)], b: &[(Ns, Ns)]) -> Vec<(Ns, Ns)> {
    let (mut out, mut next) = (Vec::new(), 0);
    for &(mut start, end) in a {
        while b.get(next).is_some_and(|(_, hole_end)| *hole_end <= start) {
            next += 1;
        }
        for &(hole, hole_end) in b.iter().skip(next).take_while(|(hole, _)| *hole < end) {
            if start < hole {
                out.push((start, hole));
            }
            start = start.max(hole_end);
        }
        if start < end {
            out.push((start, end));
        }
    }
    out
}

/// Disjoint intervals and how much time they cover up to each.
struct Sums {
    spans: Vec<(Ns, Ns)>,
    before: Vec<Ns>,
}

impl Sums {
    fn of(spans: &[(Ns, Ns)]) -> Self {
        let sum = |sum: &mut Ns, (start, end): &(Ns, Ns)| {
            let before = *sum;
            *sum += end - start;
            Some(before)
        };
        Self { spans: spans.to_vec(), before: spans.iter().scan(0, sum).collect() }
    }

    /// Time covered before `t`, ns.
    fn until(&self, t: Ns) -> Ns {
        let Some(i) = self.spans.partition_point(|(start, _)| *start < t).checked_sub(1) else { return 0 };
        self.before[i] + t.min(self.spans[i].1) - self.spans[i].0
    }

    fn between(&self, from: Ns, to: Ns) -> Ns {
        self.until(to) - self.until(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_alone_is_what_no_transfer_covers() {
        let waits = [(0, 10), (20, 30), (40, 41)];
        assert_eq!(without(&waits, &[(5, 22), (25, 26), (40, 60)]), [(0, 5), (22, 25), (26, 30)]);
        assert_eq!(without(&waits, &[]), waits);
        assert_eq!(without(&[(0, 100)], &[(10, 20), (30, 40)]), [(0, 10), (20, 30), (40, 100)]);
    }

    #[test]
    fn sums_of_parts_of_intervals_are_exact() {
        let sums = Sums::of(&[(0, 10), (20, 30)]);
        assert_eq!([sums.between(5, 25), sums.between(10, 20), sums.between(-5, 99)], [10, 0, 20]);
    }

    #[test]
    fn unions_join_what_touches() {
        assert_eq!(merged(&[(0, 5), (9, 9)], &[(5, 7), (8, 9)]), [(0, 7), (8, 9)]);
    }
}
