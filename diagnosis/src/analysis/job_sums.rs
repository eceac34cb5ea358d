//! What sums of a job's steps and links allow to say: which rank does most besides communicating, and which link moves
//! least. Both are observations: a sum does not say when, and so neither why.

use std::collections::BTreeMap;

use model::{JobSums, Ns, StepPart, Trace};

use super::median;

/// Share of a link's bytes of the most that any link of its transport moved from which the two are compared: short transfers
/// never reach the bandwidth of long ones; own value.
const ALIKE: i64 = 2;

/// One rank over all its steps.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RankTotal {
    /// Rank in the job.
    pub rank: u32,
    /// Stage of the pipeline, if the source says it.
    pub stage: Option<u32>,
    /// Time of each part, ns, and the steps that it is a sum over.
    pub parts: BTreeMap<StepPart, (Ns, u64)>,
}

impl RankTotal {
    /// Mean time of a part in a step, ns.
    pub fn mean(&self, part: StepPart) -> Option<Ns> {
        let (ns, steps) = self.parts.get(&part)?;
        ns.checked_div(i64::try_from(*steps).ok()?)
    }

    /// Mean time of a step, ns.
    pub fn step(&self) -> Option<Ns> {
        self.own()?.checked_add(self.mean(StepPart::ExposedCommunication)?)
    }

    /// Mean time of a step in which the rank does not communicate, or computes meanwhile, ns.
    pub fn own(&self) -> Option<Ns> {
        self.mean(StepPart::Computing)?.checked_add(self.mean(StepPart::Free)?)
    }
}

/// The rank of a stage that takes longest besides communicating: for which the others may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SlowestRank {
    /// The rank.
    pub rank: u32,
    /// Its stage.
    pub stage: Option<u32>,
    /// What it takes, ns per step.
    pub own: Ns,
    /// What the fastest of the stage takes, ns per step.
    pub least: Ns,
    /// Ranks of the stage.
    pub ranks: u64,
}

/// A link over all steps.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LinkTotal {
    /// Rank that sends.
    pub from: u32,
    /// Rank that receives.
    pub to: u32,
    /// Transport as the source spells it.
    pub transport: String,
    /// Bytes moved.
    pub bytes: i64,
    /// Sum of the times of the transfers, ns.
    pub time: Ns,
}

impl LinkTotal {
    /// Bytes per second; `None` without time.
    pub fn rate(&self) -> Option<f64> {
        (self.time > 0).then(|| self.bytes as f64 * 1e9 / self.time as f64)
    }
}

/// The slowest of the links of a transport that moved alike much.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SlowestLink {
    /// The link.
    pub link: LinkTotal,
    /// Bytes per second of the middle one of those links.
    pub median: f64,
    /// How many they are.
    pub links: u64,
}

impl SlowestLink {
    /// Up to so many times the slowest one's rate the middle link reaches where all of them count as even (as in rule CM-07).
    pub const EVEN: f64 = 1.5;
}

/// What the ranks of a stage wait for the others in a step: means over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bubble {
    /// The stage.
    pub stage: u32,
    /// Time in which they wait for what another stage sends, ns per step.
    pub wait: Ns,
    /// Their step, ns.
    pub step: Ns,
}

/// All that is said of the job.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct JobTotals {
    /// Ranks by stage and number.
    pub ranks: Vec<RankTotal>,
    /// The slowest rank of each stage with more than one.
    pub slowest_ranks: Vec<SlowestRank>,
    /// Links from one rank to another, those that moved most first.
    pub links: Vec<LinkTotal>,
    /// The slowest link of each transport that has comparable ones.
    pub slowest_links: Vec<SlowestLink>,
}

impl JobTotals {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty() && self.links.is_empty()
    }

    /// Gathers what a capture holds.
    pub fn of(trace: &Trace) -> Self {
        let JobSums { steps, links } = &trace.job_sums;
        let mut ranks: BTreeMap<(Option<u32>, u32), RankTotal> = BTreeMap::new();
        for sum in steps {
            let of_rank = RankTotal { rank: sum.rank, stage: sum.stage, parts: BTreeMap::new() };
            let total = ranks.entry((sum.stage, sum.rank)).or_insert(of_rank);
            for (part, ns) in &sum.parts {
                let (time, steps) = total.parts.entry(*part).or_default();
                (*time, *steps) = (time.saturating_add(*ns), *steps + 1);
            }
        }
        let mut links: Vec<LinkTotal> = links
            .iter()
            // A copy on the device itself says nothing of a link.
            .filter(|link| link.from != link.to)
            .map(|link| LinkTotal {
                from: link.from,
                to: link.to,
                transport: trace.strings.get(link.transport).to_owned(),
                bytes: link.bytes,
                time: link.time,
            })
            .collect();
        links.sort_by_key(|link| std::cmp::Reverse(link.bytes));
        let ranks: Vec<RankTotal> = ranks.into_values().collect();
        Self { slowest_ranks: slowest_ranks(&ranks), slowest_links: slowest_links(&links), ranks, links }
    }

    /// The stage that waits longest for another one; `None` where none waits.
    pub fn longest_bubble(&self) -> Option<Bubble> {
        let of_stage = |ranks: &[RankTotal]| {
            let bubbles = ranks.iter().filter_map(|rank| rank.mean(StepPart::Bubble).zip(rank.step()));
            let (wait, step, n) = bubbles.fold((0, 0, 0), |(wait, step, n): (Ns, Ns, i64), (a, b)| {
                (wait.saturating_add(a), step.saturating_add(b), n + 1)
            });
            Some(Bubble { stage: ranks.first()?.stage?, wait: wait.checked_div(n)?, step: step.checked_div(n)? })
        };
        let stages = self.ranks.chunk_by(|a, b| a.stage == b.stage).filter_map(of_stage);
        stages.filter(|bubble| bubble.wait > 0).max_by_key(|bubble| bubble.wait)
    }

    /// Of the time of all steps of all ranks, ns, the part in which a rank communicated and did not compute, ns.
    pub fn exposed(&self) -> Option<(Ns, Ns)> {
        let sum = |part| {
            let times = self.ranks.iter().filter_map(|rank| rank.parts.get(&part));
            times.fold(0, |sum: Ns, (ns, _)| sum.saturating_add(*ns))
        };
        let exposed = sum(StepPart::ExposedCommunication);
        let all = sum(StepPart::Computing).saturating_add(sum(StepPart::Free)).saturating_add(exposed);
        (all > 0).then_some((exposed, all))
    }
}

fn slowest_ranks(ranks: &[RankTotal]) -> Vec<SlowestRank> {
    let of_stage = |ranks: &[RankTotal]| {
        let own: Vec<(Ns, u32)> = ranks.iter().filter_map(|rank| Some((rank.own()?, rank.rank))).collect();
        let (most, least) = (own.iter().max()?, own.iter().min()?);
        let stage = ranks.first()?.stage;
        let found = SlowestRank { rank: most.1, stage, own: most.0, least: least.0, ranks: own.len() as u64 };
        (own.len() > 1).then_some(found)
    };
    ranks.chunk_by(|a, b| a.stage == b.stage).filter_map(of_stage).collect()
}

fn slowest_links(links: &[LinkTotal]) -> Vec<SlowestLink> {
    let mut transports: BTreeMap<&str, Vec<&LinkTotal>> = BTreeMap::new();
    for link in links {
        transports.entry(&link.transport).or_default().push(link);
    }
    let of_transport = |links: Vec<&LinkTotal>| {
        let most = links.first()?.bytes;
        let alike = links.into_iter().filter(|link| link.bytes > 0 && link.bytes >= most / ALIKE);
        // Times for as many bytes as the largest moved: whole ns, so that they can be sorted.
        let timed = |link: &LinkTotal| Some((link.rate()?, (most as f64 / link.rate()? * 1e9).round() as Ns));
        let timed: Vec<_> = alike.filter_map(|link| Some((timed(link)?, link))).collect();
        let middle = median(timed.iter().map(|((_, ns), _)| *ns).collect())?;
        let ((_, slowest), link) = timed.iter().max_by_key(|((_, ns), _)| *ns)?;
        let median = most as f64 * 1e9 / middle.max(1) as f64;
        let found = SlowestLink { link: (*link).clone(), median, links: timed.len() as u64 };
        (timed.len() > 1 && *slowest > 0).then_some(found)
    };
    transports.into_values().filter_map(of_transport).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{LinkSum, StepSum, TraceBuilder, TraceSink};

    use super::*;

    fn totals(steps: &[(u32, Option<u32>, [Ns; 3])], links: &[(u32, u32, &str, i64, Ns)]) -> JobTotals {
        let mut b = TraceBuilder::new("t", "t");
        let step = b.intern("2");
        let parts = [StepPart::Computing, StepPart::ExposedCommunication, StepPart::Free];
        let of = |(rank, stage, times): &(u32, Option<u32>, [Ns; 3])| StepSum {
            step,
            rank: *rank,
            stage: *stage,
            parts: parts.into_iter().zip(*times).collect(),
        };
        let steps = steps.iter().map(of).collect();
        let links = links.iter().map(|(from, to, transport, bytes, time)| LinkSum {
            from: *from,
            to: *to,
            transport: b.intern(transport),
            bytes: *bytes,
            time: *time,
        });
        let links = links.collect();
        b.job_sums(JobSums { steps, links });
        JobTotals::of(&b.finish())
    }

    #[test]
    fn the_slowest_rank_is_the_one_that_others_may_wait_for() {
        let found = totals(
            &[
                (0, Some(0), [50, 30, 20]),
                (1, Some(0), [60, 20, 20]),
                (2, Some(1), [90, 0, 10]),
                (0, Some(0), [52, 28, 20]),
            ],
            &[],
        );
        let slowest = SlowestRank { rank: 1, stage: Some(0), own: 80, least: 71, ranks: 2 };
        assert_eq!((found.slowest_ranks, found.ranks.len()), (vec![slowest], 3));
        assert_eq!(found.ranks[0].parts[&StepPart::Computing], (102, 2));
    }

    #[test]
    fn the_stage_that_waits_longest_for_another_is_found() {
        let mut found = totals(
            &[(0, Some(0), [50, 50, 0]), (1, Some(1), [50, 45, 5]), (2, Some(1), [30, 75, 15]), (3, None, [1, 99, 0])],
            &[],
        );
        assert_eq!(found.longest_bubble(), None, "nobody says it");
        for (rank, bubble) in [(0, 0), (1, 40), (2, 60), (3, 90)] {
            let total = found.ranks.iter_mut().find(|total| total.rank == rank).unwrap();
            total.parts.insert(StepPart::Bubble, (bubble, 1));
        }
        assert_eq!(found.longest_bubble(), Some(Bubble { stage: 1, wait: 50, step: 110 }));
    }

    #[test]
    fn links_are_compared_where_they_moved_alike_much() {
        let links = [
            (0, 0, "LOCAL", 1_000_000, 9_000_000),
            (0, 1, "HCCS", 1_000_000, 100_000),
            (1, 2, "HCCS", 900_000, 90_000),
            (2, 0, "HCCS", 800_000, 160_000),
            // As slow as short transfers are.
            (2, 1, "HCCS", 40, 1_620),
            (0, 8, "RDMA", 1_000_000, 500_000),
        ];
        let found = totals(&[], &links);
        let [slowest] = found.slowest_links.as_slice() else { panic!("{found:?}") };
        assert_eq!((slowest.link.from, slowest.link.to, slowest.links), (2, 0, 3));
        assert_eq!((slowest.link.rate(), slowest.median), (Some(5e9), 1e10));
        assert_eq!((found.links.len(), found.links[0].to), (5, 1));
    }
}
