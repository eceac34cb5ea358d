//! Ranks that run the same program: those of one stage that share a communicator and go through the same collectives in the same
//! order, as replicas and the parts of split layers do. What is changed in the program of one of them is changed in all.

use std::collections::BTreeMap;

use model::Ns;
use rustc_hash::FxHashSet;

use super::signals::stages;
use crate::{
    analysis::{Analysis, DeviceOp, Edit, OpKind, Timeline},
    platform::CanonicalOp,
};

/// The twins of each rank, as positions in the analysis.
pub struct Twins(Vec<Vec<usize>>);

impl Twins {
    /// Finds them.
    pub fn of(analysis: &Analysis) -> Self {
        let stage = stages::numbers(analysis);
        let collectives = |timeline: &Timeline| -> Vec<CanonicalOp> {
            timeline.ops.iter().filter(|op| op.kind == OpKind::Comm).map(|op| op.op).collect()
        };
        let mut kinds: BTreeMap<(Option<&usize>, Vec<CanonicalOp>), usize> = BTreeMap::new();
        let mut kind_of = Vec::with_capacity(analysis.ranks.len());
        for (i, rank) in analysis.ranks.iter().enumerate() {
            let next = kinds.len();
            kind_of.push(*kinds.entry((stage.get(&i), collectives(&rank.timeline))).or_insert(next));
        }
        let mut twins: Vec<FxHashSet<usize>> = vec![FxHashSet::default(); analysis.ranks.len()];
        for group in analysis.job.groups.iter().filter(|group| !group.is_pair && group.instances > 0) {
            for (i, own) in group.ranks.iter().filter_map(|i| Some((*i, kind_of.get(*i)?))) {
                let others = group.ranks.iter().filter(|j| **j != i && kind_of.get(**j) == Some(own));
                if let Some(twins) = twins.get_mut(i) {
                    twins.extend(others);
                }
            }
        }
        let sorted = twins.into_iter().map(|twins| {
            let mut twins: Vec<usize> = twins.into_iter().collect();
            twins.sort_unstable();
            twins
        });
        Self(sorted.collect())
    }

    /// Of the ranks that `edits` change, those twins that no edit changes, each with one of the ranks that it is a twin of: first
    /// those that were recorded, then those of which only collectives were.
    pub fn unchanged(&self, analysis: &Analysis, edits: &[(usize, &Edit)]) -> [Vec<(usize, usize)>; 2] {
        let changed: FxHashSet<usize> = edits.iter().map(|(i, _)| *i).collect();
        let mut found: BTreeMap<usize, usize> = BTreeMap::new();
        let mut sources: Vec<usize> = changed.iter().copied().collect();
        sources.sort_unstable();
        for i in sources {
            let twins = self.0.get(i).into_iter().flatten().filter(|j| !changed.contains(j));
            twins.for_each(|j| {
                found.entry(*j).or_insert(i);
            });
        }
        let summed = |(j, _): &(usize, usize)| analysis.ranks.get(*j).is_some_and(|r| r.timeline.collectives_only);
        let (summed, recorded): (Vec<_>, Vec<_>) = found.into_iter().partition(summed);
        let turned = |of: Vec<(usize, usize)>| of.into_iter().map(|(j, i)| (i, j)).collect();
        [turned(recorded), turned(summed)]
    }
}

/// The same change on a rank that runs the same kernels in the same order; `None` where it does not, or where the change is not one of
/// kernels.
pub fn carried_over(edit: &Edit, from: &Timeline, to: &Timeline) -> Option<Edit> {
    let kernels = |timeline: &Timeline| -> Vec<(u32, DeviceOp)> {
        let ops = (0u32..).zip(&timeline.ops).filter(|(_, op)| op.kind == OpKind::Compute);
        ops.map(|(o, op)| (o, op.clone())).collect()
    };
    let (own, theirs) = (kernels(from), kernels(to));
    if own.len() != theirs.len() || own.iter().zip(&theirs).any(|((_, a), (_, b))| a.name != b.name) {
        return None;
    }
    let counterpart = |o: u32| {
        let at = own.binary_search_by_key(&o, |(o, _)| *o).ok()?;
        Some((theirs.get(at)?.0, own.get(at)?.1.dur(), theirs.get(at)?.1.dur()))
    };
    translated(edit, &counterpart)
}

/// An edit with each operation replaced by its counterpart, and each time by as large a part of what that takes.
fn translated(edit: &Edit, counterpart: &dyn Fn(u32) -> Option<(u32, Ns, Ns)>) -> Option<Edit> {
    let op = |o: &u32| counterpart(*o).map(|(other, ..)| other);
    let sized = |(o, ns): &(u32, Ns)| {
        let (other, was, is) = counterpart(*o)?;
        let ns = i128::from(*ns) * i128::from(is) / i128::from(was.max(1));
        Some((other, Ns::try_from(ns).ok()?))
    };
    Some(match edit {
        Edit::Remove(ops) => Edit::Remove(ops.iter().map(op).collect::<Option<_>>()?),
        Edit::Aside(ops) => Edit::Aside(ops.iter().map(op).collect::<Option<_>>()?),
        Edit::Resize(ops) => Edit::Resize(ops.iter().map(sized).collect::<Option<_>>()?),
        Edit::Fuse(groups) => {
            let group = |(ops, ns): &(Vec<u32>, Ns)| Some((ops.iter().map(op).collect::<Option<Vec<_>>>()?, *ns));
            Edit::Fuse(groups.iter().map(group).collect::<Option<_>>()?)
        }
        Edit::Hoped(edit) => Edit::Hoped(Box::new(translated(edit, counterpart)?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::analysis::script::Script;

    /// Two ranks with three kernels each; the second one's take twice as long, and a copy comes before them.
    fn ranks(names: [&str; 3]) -> [Timeline; 2] {
        let mut s = Script::default();
        for (rank, names) in [["gemm_nt", "cast_kernel", "rms_norm_kernel"], names].into_iter().enumerate() {
            s.rank(rank as u32);
            if rank == 1 {
                s.copy("cudaMemcpyAsync", (0, 10), "HtoD", "pinned", 8, (20, 30));
            }
            for (i, name) in names.into_iter().enumerate() {
                let at = 1_000 * (i as Ns + 1);
                s.launch((at - 20, at - 10), name, (at, at + 100 * (rank as Ns + 1)));
            }
        }
        let analysis = s.analyze().1;
        [0, 1].map(|rank| analysis.ranks[rank].timeline.clone())
    }

    /// What a rank does shorter its twin does as much shorter, by parts of its own time, wherever its operations stand.
    #[test]
    fn a_change_is_carried_over_to_the_same_kernels_alone() {
        let [own, twin] = ranks(["gemm_nt", "cast_kernel", "rms_norm_kernel"]);
        let half = Edit::Resize(vec![(1, 50)]);
        let told = |edit: Option<Edit>| format!("{edit:?}");
        assert_eq!(told(carried_over(&half, &own, &twin)), "Some(Resize([(2, 100)]))");
        assert_eq!(told(carried_over(&Edit::Remove(vec![1]), &own, &twin)), "Some(Remove([2]))");
        assert!(carried_over(&Edit::Unblock(vec![0]), &own, &twin).is_none(), "calls are each rank's own");
        let [own, other] = ranks(["gemm_nt", "gemm_nt", "rms_norm_kernel"]);
        assert!(carried_over(&half, &own, &other).is_none());
    }
}
