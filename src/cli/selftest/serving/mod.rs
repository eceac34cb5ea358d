//! The examination on serving: runs whose batch changes as requests come and go, and the same without, each with a fault of
//! known cost, a pair of them or none. A fault is sized by what it costs, so that weak, medium and strong mean the same
//! share of the step whatever its kind.
//!
//! | module | owns |
//! | --- | --- |
//! | [`examine`] | one run from simulation to answer |
//! | [`score`] | figures of many runs |
//! | [`page`] | their tables |

use simulator::{Config, Fault, FaultKind, Load, Strength};

pub mod examine;
pub mod page;
pub mod score;

/// Faults of serving that are examined.
pub const FAULTS: [FaultKind; 12] = {
    use FaultKind as F;
    [
        F::LowBandwidth,
        F::SlowPeer,
        F::FewBlocks,
        F::LowClock,
        F::ThrottledRank,
        F::LogitsCopy,
        F::Recapture,
        F::Recompile,
        F::Gc,
        F::RankGc,
        F::Scheduling,
        F::HostStraggler,
    ]
};

/// Faults that do not depend on serving, and shall be named in it all the same: one strength of each in a round.
pub const EVERYWHERE: [FaultKind; 9] = {
    use FaultKind as F;
    [
        F::Transposes,
        F::FullSort,
        F::PageableCopy,
        F::AllocStall,
        F::HostUpdate,
        F::NodeGap,
        F::NoSplitKv,
        F::SlowScatter,
        F::RankScheduling,
    ]
};

/// Pairs of faults whose costs add up and which show in the same kind of serving.
const PAIRS: [([FaultKind; 2], Load); 8] = {
    use FaultKind as F;
    [
        ([F::Scheduling, F::FewBlocks], Load::Sync),
        ([F::HostStraggler, F::LowBandwidth], Load::TensorTwo),
        ([F::LogitsCopy, F::Recompile], Load::Sync),
        ([F::Gc, F::FewBlocks], Load::OddBatch),
        ([F::RankGc, F::LowBandwidth], Load::TensorFour),
        ([F::Recapture, F::LogitsCopy], Load::Dozens),
        ([F::LowClock, F::Scheduling], Load::Sync),
        ([F::Recompile, F::FewBlocks], Load::Ampere),
    ]
};

/// From one round's seeds to the next's.
const ROUND: u64 = 1 << 20;
/// Beyond all seeds of the runs that do not serve.
const APART: u64 = 1 << 40;

/// One run to examine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is served.
    pub load: Load,
    /// Whether requests come and go.
    pub churn: bool,
    /// What is wrong with it; nothing for a healthy run.
    pub faults: Vec<FaultKind>,
    /// What each fault costs.
    pub strength: Strength,
    /// Seed of the run.
    pub seed: u64,
}

impl Case {
    /// The configuration to simulate, its faults sized.
    pub fn config(&self) -> Config {
        let usual = |kind: &FaultKind| Fault { kind: *kind, magnitude_permille: 1000 };
        let faults: Vec<Fault> = self.faults.iter().map(usual).collect();
        let config = Config::serve(self.seed, self.load, self.churn, &faults);
        if faults.is_empty() { config } else { config.costing(self.strength.share(self.seed)) }
    }

    /// A name for its files and for whoever wants to repeat it.
    pub fn name(&self) -> String {
        let churn = if self.churn { "churn" } else { "fixed" };
        let load = self.load.key();
        if self.faults.is_empty() {
            return format!("healthy-{load}-{churn}-{}", self.seed);
        }
        let faults: Vec<String> = self.faults.iter().map(|kind| kind.key()).collect();
        format!("{}-{}-{load}-{churn}-{}", faults.join("+"), self.strength.key(), self.seed)
    }
}

/// The runs of `rounds` rounds from `seed` on: every fault of serving at every strength, the others at one, eight pairs and every kind of healthy serving,
/// all with churn and without. The two share a seed.
pub fn rounds(seed: u64, rounds: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for round in 0..rounds {
        let base = seed.wrapping_add(APART).wrapping_add(round as u64 * ROUND);
        for churn in [true, false] {
            for (at, kind) in FAULTS.iter().enumerate() {
                for (n, strength) in Strength::ALL.into_iter().enumerate() {
                    let seed = base + (8 * at + n) as u64;
                    let load = Load::suiting(*kind, seed);
                    cases.push(Case { load, churn, faults: vec![*kind], strength, seed });
                }
            }
            for (at, (kind, strength)) in EVERYWHERE.iter().zip(Strength::ALL.iter().cycle().skip(round)).enumerate() {
                let seed = base + 500 + at as u64;
                let load = Load::suiting(*kind, seed);
                cases.push(Case { load, churn, faults: vec![*kind], strength: *strength, seed });
            }
            for (at, (pair, load)) in PAIRS.iter().enumerate() {
                let seed = base + 1_000 + at as u64;
                let strength = Strength::Medium;
                cases.push(Case { load: *load, churn, faults: pair.to_vec(), strength, seed });
            }
            for (at, load) in Load::ALL.iter().enumerate() {
                let seed = base + 2_000 + at as u64;
                let strength = Strength::Weak;
                cases.push(Case { load: *load, churn, faults: Vec::new(), strength, seed });
            }
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rounds_hold_a_hundred_healthy_runs_of_twenty_kinds_and_every_fault_both_ways() {
        let cases = rounds(0, 2);
        let healthy: Vec<&Case> = cases.iter().filter(|case| case.faults.is_empty()).collect();
        let kinds: std::collections::BTreeSet<Load> = healthy.iter().map(|case| case.load).collect();
        assert!(healthy.len() >= 100 && kinds.len() >= 20, "{} of {}", healthy.len(), kinds.len());
        for kind in FAULTS {
            for churn in [true, false] {
                assert_eq!(cases.iter().filter(|case| case.faults == [kind] && case.churn == churn).count(), 6);
            }
        }
        let names: std::collections::BTreeSet<String> = cases.iter().map(Case::name).collect();
        assert_eq!(names.len(), cases.len(), "no run is examined twice");
    }
}
