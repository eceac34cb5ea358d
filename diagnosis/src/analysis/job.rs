//! What the ranks of a job did together: collectives matched across ranks.

use model::{Ns, Trace};

use super::{clock::Offset, collective::Split, timeline::Timeline, wait::Wait};

/// Everything that several ranks of one capture tell only together. Empty for a capture of one rank.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Collectives that at least two ranks recorded, in an order that no rank contradicts.
    pub instances: Vec<Instance>,
    /// Groups of ranks that communicate.
    pub groups: Vec<Group>,
    /// Collectives of which no other rank's part was found.
    pub unmatched: u64,
    /// Broadcasts, reductions to one rank, sends and receives: not matched, because their ranks do not leave together.
    pub one_sided: u64,
    /// Why each rank waited, rank by rank in the order of its operations.
    pub waits: Vec<Wait>,
    /// Clock of each rank against that of the first; only its rate is used, its offset is for display. Absent for a rank without matched collectives.
    pub clocks: Vec<Option<Offset>>,
}

/// Ranks that communicate with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of the process group, if the source says it; else the group was found by its ranks leaving collectives together.
    pub name: Option<String>,
    /// Number of ranks in the group, if the source says it.
    pub size: Option<u32>,
    /// Whether ranks of the job are missing in the capture, any of which may belong to the group.
    pub open: bool,
    /// Its ranks in this capture, as indices into the analysis' ranks.
    pub ranks: Vec<usize>,
    /// Matched collectives.
    pub instances: usize,
}

impl Group {
    /// Whether every rank of the group is in the capture, as far as the source says what there is.
    pub fn is_complete(&self) -> bool {
        self.size.map_or(!self.open, |size| self.ranks.len() as u64 >= u64::from(size))
    }
}

/// One collective as its ranks saw it.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its part on each rank that recorded it, in the order of the ranks.
    pub members: Vec<Member>,
    /// Time the data took once the last rank was there, ns: the shortest duration of any member.
    pub transfer: Ns,
    /// Its group, as an index into [`Job::groups`].
    pub group: usize,
    /// Operation and payload, or place in the model where the payload is not known: instances of one group with the same
    /// number are comparable.
    pub kind: u32,
    /// Even the last rank was slow: the transfer is above 1.5 times the 5th percentile of its kind (method §2.5).
    pub slow: bool,
}

/// A collective's operation on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Index into the analysis' ranks.
    pub rank: usize,
    /// Index into that rank's operations.
    pub op: u32,
}

impl Job {
    /// Transfer that instances of this group and kind reach when nothing holds them up, ns: the 5th percentile.
    pub fn usual_transfer(&self, group: usize, kind: u32) -> Option<Ns> {
        let same = self.instances.iter().filter(|i| i.group == group && i.kind == kind);
        fast(same.map(|i| i.transfer).collect())
    }
}

impl Job {
    /// Hands each rank the transfers of its matched collectives, and says where its time is to be cut: where they begin and
    /// end.
    pub(super) fn settle(&self, trace: &Trace, timelines: &[Timeline], splits: &mut [Split]) -> Vec<Vec<Ns>> {
        let mut cuts = vec![Vec::new(); timelines.len()];
        for instance in &self.instances {
            let measured = self.groups.get(instance.group).is_some_and(Group::is_complete);
            for member in &instance.members {
                let op = timelines.get(member.rank).and_then(|t| t.ops.get(member.op as usize));
                let (Some(op), Some(split)) = (op, splits.get_mut(member.rank)) else { continue };
                split.settle(trace, op, instance.transfer, measured);
                if let Some(cuts) = cuts.get_mut(member.rank) {
                    cuts.extend([op.start, op.end]);
                }
            }
        }
        cuts
    }
}

/// The 5th percentile.
pub(super) fn fast(mut values: Vec<Ns>) -> Option<Ns> {
    let rank = values.len() / 20;
    (rank < values.len()).then(|| *values.select_nth_unstable(rank).1)
}
