//! What the ranks of a job did together: collectives matched across ranks.

use model::Ns;

/// Everything that several ranks of one capture tell only together. Empty for a capture of one rank.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Collectives that at least two ranks recorded, in the order of the first member's start on its own clock.
    pub instances: Vec<Instance>,
}

/// One collective as its ranks saw it.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its part on each rank that recorded it, in the order of the ranks.
    pub members: Vec<Member>,
    /// Time the data took once the last rank was there, ns: the shortest duration of any member.
    pub transfer: Ns,
}

/// A collective's operation on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Index into the analysis' ranks.
    pub rank: usize,
    /// Index into that rank's operations.
    pub op: u32,
}
