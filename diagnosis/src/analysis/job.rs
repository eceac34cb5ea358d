//! What the ranks of a job did together: collectives matched across ranks.

use model::{Ns, Trace};

use super::{bucket::Bucket, collective::Split, timeline::Timeline};

/// Ranks may leave this far apart before the explanation is in doubt, ns, or a tenth of the wait (method §2.6).
pub(super) const LEAVE: Ns = 5_000;

/// Everything that several ranks of one capture tell only together. Empty for a capture of one rank.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Collectives that at least two ranks recorded, in an order that no rank contradicts.
    pub instances: Vec<Instance>,
    /// Groups of ranks that communicate.
    pub groups: Vec<Group>,
    /// Collectives of which no other rank's part was found.
    pub unmatched: u64,
    /// Not matched: broadcasts and reductions to one rank, because their ranks do not leave together, and sends and receives of
    /// which the other end was not found.
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
    /// Whether the source says how many ranks the group or the job has.
    pub counted: bool,
    /// Whether it is two ranks that send to each other, as the stages of a pipeline do: that one waits for the other lies in the
    /// nature of the pipeline.
    pub is_pair: bool,
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

/// Wait of one rank in one collective.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Index into the analysis' ranks.
    pub rank: usize,
    /// The collective on that rank, as an index into its operations.
    pub op: u32,
    /// Index into [`Job::instances`].
    pub instance: usize,
    /// Rank that arrived last.
    pub late: usize,
    /// Time the rank was inside the collective before the data began to move, ns.
    pub ns: Ns,
    /// Of that, time in which the rank did nothing else, ns; the rest was hidden.
    pub exposed: Ns,
    /// Part of the wait that is none: what this rank's clock gained on that of the late one since they left the collective
    /// before, ns, signed. 0 where there are no segments.
    pub gained: Ns,
    /// Part of the wait that neither the segments nor the clocks' rates give, ns, signed: the ranks did not leave together.
    /// 0 where there are no segments.
    pub skew: Ns,
    /// What the late rank spent longer on than the waiting one, signed; with `gained` and `skew` it adds up to what this rank
    /// waited longer than the late one, exactly. Empty where nothing can be said: the first collective of a group, a record lost in
    /// between, ranks that left too far apart.
    pub causes: Vec<Cause>,
}

/// A cause of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Rank that was late, as an index into the analysis' ranks.
    pub late: usize,
    /// What it spent the time on; [`Bucket::CommWait`] where that was a wait that could not be explained itself.
    pub bucket: Bucket,
    /// Time, ns; negative where the waiting rank itself spent longer on it.
    pub ns: Ns,
}

impl Wait {
    /// Whether the ranks left so far apart that the causes are in doubt.
    pub fn is_skewed(&self) -> bool {
        self.skew.abs() > LEAVE.max(self.ns / 10)
    }

    /// The causes as shares of the exposed wait.
    pub fn exposed_causes(&self) -> impl Iterator<Item = Cause> {
        self.causes.iter().map(|cause| Cause { ns: scale(cause.ns, self.exposed, self.ns), ..*cause })
    }
}

/// `value × part / whole`, towards zero; the value itself where the part is the whole.
pub(super) fn scale(value: Ns, part: Ns, whole: Ns) -> Ns {
    if part == whole || whole == 0 {
        return value;
    }
    (i128::from(value) * i128::from(part) / i128::from(whole)) as Ns
}

/// Difference of rates beyond which a line through the ends tells of something else than clocks, parts per million; quartz is
/// within 100 of the true rate.
const QUARTZ: f64 = 200.0;

/// Clock of a rank against that of the first rank.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Offset {
    /// How far it is ahead in the middle of the common time, ns.
    pub ahead: Ns,
    /// How much it gains, parts per million.
    pub drift_ppm: f64,
    /// Median absolute deviation of the collectives from the line, ns: differences between ranks below it mean nothing.
    pub uncertainty: Ns,
    /// Collectives that it rests on.
    pub collectives: usize,
}

impl Offset {
    /// What this clock gains on `other` in a time, ns: nothing where the fits say more than clocks can.
    pub(super) fn gains_on(&self, other: &Self, time: Ns) -> Ns {
        let ppm = self.drift_ppm - other.drift_ppm;
        if ppm.abs() > QUARTZ {
            return 0;
        }
        // The rate in parts per 10^15, so that times stay integers.
        let rate = (ppm * 1e9).round() as i128;
        let (gained, unit) = (i128::from(time) * rate, 1_000_000_000_000_000);
        Ns::try_from((gained + gained.signum() * unit / 2) / unit).unwrap_or(0)
    }
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

/// Whether the name of an operation says that it sends, or that it receives; `None` for one that does both.
pub fn sends(name: &str) -> Option<bool> {
    let name = name.to_ascii_lowercase();
    let (sends, receives) = (name.contains("send"), name.contains("recv") || name.contains("receive"));
    (sends != receives).then_some(sends)
}

/// The 5th percentile.
pub(super) fn fast(mut values: Vec<Ns>) -> Option<Ns> {
    let rank = values.len() / 20;
    (rank < values.len()).then(|| *values.select_nth_unstable(rank).1)
}
