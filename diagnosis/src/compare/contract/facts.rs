//! What a capture shows of itself beside its manifest: whether its times can be taken at face value, and how far its
//! evidence reaches.

use std::hash::{DefaultHasher, Hash, Hasher};

use model::{Evidence, EvidenceClass, Severity, Trace};

use crate::{analysis::Analysis, compare::work::Profile};

/// What the contract needs to know of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Classes of evidence it holds.
    pub evidence: Evidence,
    /// Whether its numbers were simulated.
    pub simulated: bool,
    /// Steps that count, of the class the verdict is about, on the rank that has most.
    pub steps: usize,
    /// Whether more launches or operations are lost than a trace may lose.
    pub broken: bool,
    /// Records that the import counted as lost or wrong.
    pub lost: u64,
    /// Whether power was sampled.
    pub power: bool,
    /// Independent runs that stand for this side, where that is known better than the manifest says it: the captures given.
    pub runs: Option<u64>,
    /// Whether the noise of this side against itself is known: from several launches of it, here or in an earlier A/A run.
    pub noise: bool,
    /// What its steps do, by its trace.
    pub work: Option<Profile>,
    /// Whether other processes had so much of the machine that the run says little of itself.
    pub shared: bool,
    /// Whether the run was limited by its requests.
    pub idle: bool,
    /// A number that captures of the same content share.
    pub digest: Option<u64>,
}

impl Facts {
    /// The facts of a capture.
    pub fn of(trace: &Trace, analysis: &Analysis) -> Self {
        let lost = trace.stats.iter().filter(|stat| stat.severity >= Severity::DataLoss).map(|stat| stat.count);
        let watts = |unit: &str| matches!(unit, "W" | "mW");
        Self {
            evidence: analysis.evidence,
            simulated: trace.simulated,
            steps: analysis.ranks.iter().filter_map(|rank| Some(rank.main_class()?.steady)).max().unwrap_or(0),
            broken: analysis.integrity.is_broken() || analysis.loss.forbids_causes(),
            lost: lost.fold(0, u64::saturating_add),
            power: trace.counters.iter().any(|counter| watts(&counter.unit)),
            work: Profile::of_capture((trace, analysis)),
            shared: false,
            idle: false,
            runs: None,
            noise: false,
            digest: Some(digest(trace)),
        }
    }

    pub(super) fn has(&self, class: EvidenceClass) -> bool {
        self.evidence.has(class)
    }
}

/// A number that captures of the same content share: two readings of one launch.
pub fn digest(trace: &Trace) -> u64 {
    let mut hasher = DefaultHasher::new();
    trace.format.hash(&mut hasher);
    trace.start_unix_ns.hash(&mut hasher);
    for (_, text) in trace.strings.iter() {
        text.hash(&mut hasher);
    }
    for lane in &trace.lanes {
        (&lane.start, &lane.dur, &lane.name, &lane.correlation).hash(&mut hasher);
    }
    hasher.finish()
}
