//! For what a rank waited (method §2.6), without comparing clocks.
//!
//! Ranks leave a collective together. Between two collectives of one group each rank has a segment on its own clock, and a
//! rank that waits d longer than the last one to arrive had a segment d shorter. Both segments are attributed to buckets, so
//! the wait is exactly the difference of the two, bucket by bucket. Where a segment holds waits of other groups, those have
//! been explained before, and their causes take their place.
//!
//! Offsets of the clocks do not matter. Their rates do: over a pause of 20 ms two clocks that differ by 20 parts per million
//! come 400 ns apart, which is neither a wait nor a sign that the ranks left apart.

use std::collections::BTreeMap;

use model::Ns;
use rustc_hash::FxHashMap;

pub use super::job::{Cause, Wait};
use super::{
    bucket::{Bucket, Layer},
    job::{Instance, Job, LEAVE, Offset, scale},
    model::{Class, Rank},
    segments::Segments,
};

/// Groups of one rank whose waits may explain each other; far above what parallelism needs.
const GROUPS: usize = 16;

type Terms = BTreeMap<(usize, Bucket), Ns>;

/// Explains the waits of all matched collectives, in an order in which nested ones come first.
pub(super) fn explain(job: &Job, ranks: &[Rank], segments: &[Segments]) -> Vec<Wait> {
    let clocks = &job.clocks;
    let mut history = History { ranks, segments, clocks, last: FxHashMap::default(), nested: FxHashMap::default() };
    let mut groups_of: Vec<Vec<usize>> = vec![Vec::new(); ranks.len()];
    for (g, group) in job.groups.iter().enumerate() {
        for rank in &group.ranks {
            groups_of[*rank].push(g);
        }
    }
    let mut waits = Vec::new();
    for (n, instance) in job.instances.iter().enumerate() {
        let found = history.waits(n, instance);
        for wait in &found {
            let groups = Some(&groups_of[wait.rank]).filter(|groups| groups.len() <= GROUPS);
            for other in groups.into_iter().flatten().filter(|g| **g != instance.group) {
                let nested = history.nested.entry((*other, wait.rank)).or_default();
                wait.causes.iter().for_each(|c| *nested.entry((c.late, c.bucket)).or_default() += c.ns);
            }
        }
        history.pass(n, instance);
        waits.extend(found);
    }
    waits.sort_by_key(|w| (w.rank, w.op));
    waits
}

/// What lies behind each rank while the instances are gone through.
struct History<'a> {
    ranks: &'a [Rank],
    segments: &'a [Segments],
    clocks: &'a [Option<Offset>],
    /// Latest instance of a group in which a rank took part, and when the rank left it.
    last: FxHashMap<(usize, usize), (usize, Ns)>,
    /// Causes of the waits in other groups since then.
    nested: FxHashMap<(usize, usize), Terms>,
}

impl History<'_> {
    fn span(&self, rank: usize, op: u32) -> Option<(Ns, Ns)> {
        self.ranks.get(rank)?.timeline.ops.get(op as usize).map(|op| (op.start, op.end))
    }

    /// Buckets from the end of the group's instance `before` to the start of this one.
    fn segment(&self, group: usize, rank: usize, start: Ns, before: usize) -> Option<BTreeMap<Bucket, Ns>> {
        let (instance, end) = *self.last.get(&(group, rank))?;
        (instance == before).then(|| self.segments.get(rank)?.between(end, start))?
    }

    fn waits(&self, n: usize, instance: &Instance) -> Vec<Wait> {
        let spans: Vec<(usize, u32, Ns, Ns)> = instance
            .members
            .iter()
            .filter_map(|m| self.span(m.rank, m.op).map(|(start, end)| (m.rank, m.op, start, end)))
            .collect();
        let Some(&(late, _, late_start, late_end)) =
            spans.iter().min_by_key(|(rank, _, start, end)| (end - start, *rank))
        else {
            return Vec::new();
        };
        let group = instance.group;
        let before = self.last.get(&(group, late)).map(|(instance, _)| *instance);
        let of_late = before.and_then(|before| self.segment(group, late, late_start, before));
        let waiting = spans.iter().filter(|(.., start, end)| end - start > instance.transfer);
        waiting
            .map(|&(rank, op, start, end)| {
                let ns = end - start - instance.transfer;
                let lag = (end - start) - (late_end - late_start);
                let inside = self.segments.get(rank).and_then(|s| s.between(start, end));
                let exposed = inside.map_or(ns, |i| i.get(&Bucket::CommWait).copied().unwrap_or(0).min(ns));
                let own = before.filter(|_| rank != late).and_then(|before| self.segment(group, rank, start, before));
                let mut terms = Terms::new();
                if let (Some(of_late), Some(own)) = (&of_late, &own) {
                    self.add(&mut terms, (group, late), late, of_late, 1);
                    self.add(&mut terms, (group, rank), late, own, -1);
                }
                let compared = own.is_some() && of_late.is_some();
                let gained = if compared { self.gained(group, (rank, end), late) } else { 0 };
                let skew = if compared { lag - terms.values().sum::<Ns>() - gained } else { 0 };
                let known = skew.abs() <= LEAVE.max(lag / 2);
                let causes = terms.into_iter().filter(|(_, ns)| known && *ns != 0);
                let causes = causes.map(|((late, bucket), ns)| Cause { late, bucket, ns }).collect();
                Wait { rank, op, instance: n, late, ns, exposed, gained, skew, causes }
            })
            .collect()
    }

    /// What a rank's clock gained on that of the late one since the rank left the group's collective before this one.
    fn gained(&self, group: usize, (rank, end): (usize, Ns), late: usize) -> Ns {
        let clock = |rank: usize| self.clocks.get(rank)?.as_ref();
        let both = clock(rank).zip(clock(late)).zip(self.last.get(&(group, rank)));
        both.map_or(0, |((own, theirs), (_, left))| own.gains_on(theirs, end.saturating_sub(*left)))
    }

    /// Adds a segment to the terms; its waits are replaced by what explains them.
    fn add(&self, terms: &mut Terms, at: (usize, usize), late: usize, segment: &BTreeMap<Bucket, Ns>, sign: Ns) {
        for (bucket, ns) in segment {
            let mut rest = *ns;
            if let Some(nested) = self.nested.get(&at).filter(|_| *bucket == Bucket::CommWait) {
                let all: Ns = nested.values().sum();
                for ((cause, bucket), part) in nested.iter().filter(|_| all > 0) {
                    let part = scale(*part, (*ns).min(all), all);
                    rest -= part;
                    *terms.entry((*cause, *bucket)).or_default() += sign * part;
                }
            }
            *terms.entry((late, *bucket)).or_default() += sign * rest;
        }
    }

    /// Leaves an instance behind.
    fn pass(&mut self, n: usize, instance: &Instance) {
        for member in &instance.members {
            if let Some((_, end)) = self.span(member.rank, member.op) {
                self.last.insert((instance.group, member.rank), (n, end));
                self.nested.remove(&(instance.group, member.rank));
            }
        }
    }
}

/// The time of a class once its waits are with what caused them. With `unassigned` the layers add up to the class's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reassigned {
    /// ns by layer over the steps that count, in the order of [`Layer::ALL`].
    pub layers: [Ns; 4],
    /// Waits whose cause is not known, ns; negative where the ranks left apart and more was explained than waited.
    pub unassigned: Ns,
    /// What the waits were for, ns over the steps that count: late rank (index), bucket, largest first.
    pub causes: Vec<Cause>,
    /// Waits of the steps that count.
    pub waits: usize,
    /// Of those, waits whose ranks left too far apart to be sure.
    pub skewed: usize,
}

impl Job {
    /// The waits of one rank in a range of its operations.
    pub fn waits_in(&self, rank: usize, ops: &std::ops::Range<usize>) -> &[Wait] {
        let at = |op: usize| self.waits.partition_point(|w| (w.rank, w.op as usize) < (rank, op));
        self.waits.get(at(ops.start)..at(ops.end)).unwrap_or(&[])
    }

    /// Moves the waits of a class to their causes; `None` where the rank shares no matched collective with another.
    pub fn reassign(&self, index: usize, rank: &Rank, class: &Class) -> Option<Reassigned> {
        if !self.groups.iter().any(|g| g.instances > 0 && g.ranks.contains(&index)) {
            return None;
        }
        let mut out = Reassigned { unassigned: class.ns(Bucket::CommWait), ..Reassigned::default() };
        let mut causes = Terms::new();
        for wait in rank.steady_steps(class).flat_map(|step| self.waits_in(index, &step.ops)) {
            out.waits += 1;
            out.skewed += usize::from(wait.is_skewed());
            wait.exposed_causes().for_each(|c| *causes.entry((c.late, c.bucket)).or_default() += c.ns);
        }
        for (place, layer) in out.layers.iter_mut().zip(Layer::ALL) {
            *place = class.sum(|b| b.layer() == layer && b != Bucket::CommWait);
            let known = |(_, bucket): &(usize, Bucket)| *bucket != Bucket::CommWait && bucket.layer() == layer;
            let moved: Ns = causes.iter().filter(|(cause, _)| known(cause)).map(|(_, ns)| ns).sum();
            *place += moved;
            out.unassigned -= moved;
        }
        out.causes = causes
            .into_iter()
            .filter(|((_, bucket), ns)| *bucket != Bucket::CommWait && *ns != 0)
            .map(|((late, bucket), ns)| Cause { late, bucket, ns })
            .collect();
        out.causes.sort_by_key(|c| (std::cmp::Reverse(c.ns), c.late, c.bucket));
        Some(out)
    }
}
