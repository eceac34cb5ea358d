//! What a report says of several ranks together, as values without formatting.

use model::Ns;

use diagnosis::analysis::{Analysis, Class, Layer, Rank, clock::Offset, wait::Cause};

/// What several ranks did together.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct JobPart {
    /// Groups of ranks that communicate.
    pub groups: Vec<GroupPart>,
    /// Collectives of which no other rank's part was found.
    pub unmatched: u64,
    /// Operations that are not matched because their ranks do not leave together.
    pub one_sided: u64,
    /// What the source reports of waits inside collectives: rank, rank waited for, ns in the whole capture, longest first.
    pub notified: Vec<(u32, u32, Ns)>,
    /// Clock of each rank against that of the first one.
    pub clocks: Vec<(u32, Offset)>,
}

/// Ranks that communicate with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GroupPart {
    /// Name of the process group, if recorded.
    pub name: Option<String>,
    /// Its ranks in the capture.
    pub ranks: Vec<u32>,
    /// Number of its ranks, if recorded.
    pub size: Option<u32>,
    /// Matched collectives.
    pub collectives: usize,
}

/// The time of a class with the waits for late ranks moved to their causes. Layers and the rest add up to the class's time.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Moved {
    /// ns by layer over the steps that count, in the order of [`Layer::ALL`].
    pub layers: [Ns; 4],
    /// Waits whose cause is not known, ns.
    pub unassigned: Ns,
    /// What the waits were for: late rank, bucket and layer, ns over the steps that count, longest first.
    pub causes: Vec<(u32, String, Layer, Ns)>,
    /// Waits, and those in which the ranks left too far apart to be sure.
    pub waits: (usize, usize),
    /// Waits that have causes, and what these leave unexplained of one (method §2.6), ns: the median and the largest.
    pub residual: Option<(usize, Ns, Ns)>,
}

impl Moved {
    pub(super) fn build(analysis: &Analysis, index: usize, rank: &Rank, class: &Class) -> Option<Self> {
        let moved = analysis.job.reassign(index, rank, class)?;
        let cause = |c: &Cause| {
            let late = analysis.ranks.get(c.late)?.rank;
            Some((late, c.bucket.name(&analysis.host_labels), c.bucket.layer(), c.ns))
        };
        Some(Self {
            layers: moved.layers,
            unassigned: moved.unassigned,
            causes: moved.causes.iter().filter_map(cause).collect(),
            waits: (moved.waits, moved.skewed),
            residual: residual(analysis, index, rank, class),
        })
    }
}

/// Waits of a class that have causes, and the median and largest part that these leave unexplained.
fn residual(analysis: &Analysis, index: usize, rank: &Rank, class: &Class) -> Option<(usize, Ns, Ns)> {
    let waits = rank.steady_steps(class).flat_map(|step| analysis.job.waits_in(index, &step.ops));
    let mut left: Vec<Ns> = waits.filter(|wait| !wait.causes.is_empty()).map(|wait| wait.skew.abs()).collect();
    left.sort_unstable();
    Some((left.len(), *left.get(left.len() / 2)?, *left.last()?))
}

impl JobPart {
    pub(super) fn build(analysis: &Analysis) -> Option<Self> {
        let rank = |i: &usize| analysis.ranks.get(*i).map(|r| r.rank);
        let job = &analysis.job;
        let notified = |r: &Rank| {
            let waits = r.collectives.notified.peers.iter().filter(|(_, ns)| **ns > 0);
            waits.map(|(peer, ns)| (r.rank, *peer, *ns)).collect::<Vec<_>>()
        };
        let mut notified: Vec<_> = analysis.ranks.iter().flat_map(notified).collect();
        notified.sort_by_key(|(rank, peer, ns)| (std::cmp::Reverse(*ns), *rank, *peer));
        (analysis.ranks.len() > 1 || !notified.is_empty()).then(|| Self {
            notified,
            groups: job
                .groups
                .iter()
                .map(|g| GroupPart {
                    name: g.name.clone(),
                    ranks: g.ranks.iter().filter_map(rank).collect(),
                    size: g.size,
                    collectives: g.instances,
                })
                .collect(),
            unmatched: job.unmatched,
            one_sided: job.one_sided,
            clocks: job.clocks.iter().zip(&analysis.ranks).filter_map(|(c, r)| Some((r.rank, (*c)?))).collect(),
        })
    }
}
