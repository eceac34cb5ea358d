//! What the diagnosis said of a run, beside what is true of it.

use model::Ns;
use simulator::{FaultKind, Layer as Family};

use super::worth::Worth;
use diagnosis::{
    analysis::{Confidence, Layer},
    diagnose::{Diagnosis, Finding, Method, Severity, VerdictLayer, rules},
};

/// Share of a step below which a gain is nothing that anybody could see: the least gain that a report speaks of.
pub const VISIBLE: f64 = 0.01;
/// Share of a step from which a gain matters: that of a finding of medium severity.
pub const MATTERS: f64 = 0.03;

/// Two gains that differ by less than one part in so many are worth as much as each other: no estimate tells them apart.
const ALIKE: Ns = 10;

/// Faults that nobody can take away as such, and the rules that propose something else which makes them matter less: what
/// these promise is held against what that would really bring. A launch call costs what it costs; a graph needs fewer.
const AVOIDED: [(FaultKind, &[&str]); 1] = [(FaultKind::SlowLaunch, &["RT-14", "RT-01"])];

/// A fault of a run and what it really costs.
#[derive(Clone, Debug)]
pub struct Injected {
    /// What is wrong.
    pub kind: FaultKind,
    /// Layer of the cause.
    pub family: Family,
    /// The rank that has the cause, if it is one.
    pub culprit: Option<u32>,
    /// Mean steady step with the fault less that without it, ns.
    pub gain: Ns,
    /// Whether the capture holds what tells it from everything that looks like it.
    pub told: bool,
}

/// A finding, as far as it can be right or wrong.
#[derive(Clone, Debug)]
pub struct Said {
    /// Rule.
    pub rule: &'static str,
    /// Layer it blames.
    pub layer: Layer,
    /// How much it says it matters.
    pub severity: Severity,
    /// How sure it says it is.
    pub confidence: Confidence,
    /// Ranks it names.
    pub ranks: Vec<u32>,
    /// Rules whose findings gave way to it.
    pub supersedes: Vec<&'static str>,
    /// Least and largest gain it promises, ns; `None` without an estimate.
    pub gain: Option<(Ns, Ns)>,
    /// Value that met the threshold, and the threshold.
    pub trigger: (f64, f64),
    /// Which of the run's faults it names.
    pub faults: Vec<usize>,
    /// What doing as it says would really bring, ns; `None` where there is nothing of the kind in the run.
    pub truth: Option<Ns>,
}

/// What the diagnosis said of a run.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verdict.
    pub verdict: VerdictLayer,
    /// Findings in their order.
    pub said: Vec<Said>,
    /// For each of the run's faults, whether a rule that names it could speak: there is one, the capture holds the evidence
    /// it needs, and it is no evidence of something else as well.
    pub heard: Vec<bool>,
}

/// Name of a family in tables and scripts.
pub fn family_key(family: Family) -> &'static str {
    match family {
        Family::Operator => "operator",
        Family::Runtime => "runtime",
        Family::Communication => "communication",
        Family::Measurement => "measurement",
        Family::Environment => "environment",
        Family::LoadLimited => "load_limited",
    }
}

/// The layer of findings that blame a family; `None` where only a rule that names the fault can.
fn layer_of(family: Family) -> Option<Layer> {
    match family {
        Family::Operator => Some(Layer::Operator),
        Family::Runtime => Some(Layer::Runtime),
        Family::Communication => Some(Layer::Communication),
        Family::Measurement | Family::Environment | Family::LoadLimited => None,
    }
}

impl Answer {
    /// Puts the truth beside each finding.
    pub fn new(diagnosis: &Diagnosis, faults: &[Injected], worth: &mut Worth) -> Self {
        let mut said = |finding: &Finding| {
            let named = |(_, fault): &(usize, &Injected)| fault.kind.rules().contains(&finding.rule);
            let named: Vec<(usize, &Injected)> = faults.iter().enumerate().filter(named).collect();
            let avoids = |fault: &Injected| {
                AVOIDED.iter().any(|(kind, rules)| *kind == fault.kind && rules.contains(&finding.rule))
            };
            let truth = match named.iter().map(|(_, fault)| fault.gain).max() {
                Some(gain) if named.iter().any(|(_, fault)| avoids(fault)) => worth.of(finding.rule).or(Some(gain)),
                Some(gain) => Some(gain),
                None if finding.layer == Layer::Measurement => None,
                None => worth.of(finding.rule),
            };
            let estimate = &finding.estimate;
            Said {
                rule: finding.rule,
                layer: finding.layer,
                severity: finding.severity,
                confidence: finding.confidence,
                ranks: finding.ranks.clone(),
                supersedes: finding.supersedes.clone(),
                gain: (estimate.method != Method::None)
                    .then_some((estimate.from - estimate.to_high, estimate.from - estimate.to_low)),
                trigger: (finding.trigger.value, finding.trigger.threshold),
                faults: named.iter().map(|(i, _)| *i).collect(),
                truth,
            }
        };
        let abstained = |rule: &str| diagnosis.abstained.iter().any(|abstention| abstention.rule == rule);
        let speaks = |rule: &&str| rules::find(rule).is_some() && !abstained(rule);
        Self {
            verdict: diagnosis.verdict.layer,
            said: diagnosis.findings.iter().map(&mut said).collect(),
            heard: faults.iter().map(|fault| fault.told && fault.kind.rules().iter().any(speaks)).collect(),
        }
    }

    /// The findings that compete with fault `i`, whose true gain is `gain`: without those that name something else which
    /// really is worth as much, since to name that first is right.
    pub fn against(&self, i: usize, gain: Ns) -> impl Iterator<Item = &Said> {
        let as_much = gain - gain / ALIKE;
        let excused = move |said: &Said| !said.names(i) && said.truth.is_some_and(|truth| truth >= as_much);
        self.said.iter().filter(move |said| !excused(said))
    }

    /// The finding that names fault `i`, the first of them.
    pub fn names(&self, i: usize) -> Option<&Said> {
        self.said.iter().find(|said| said.names(i))
    }

    /// Whether the answer blames the family of fault `i`; `None` when it leaves that open, or rests on something else that
    /// really is worth as much and says nothing of the fault. What qualifies all findings (a fault of the measurement) never
    /// comes first, and is blamed by naming it at all.
    pub fn blames(&self, i: usize, fault: &Injected) -> Option<bool> {
        if fault.family == Family::Measurement && self.names(i).is_some() {
            return Some(true);
        }
        if self.verdict == VerdictLayer::Undecided {
            return None;
        }
        let wanted = layer_of(fault.family);
        let by_verdict = match self.verdict {
            VerdictLayer::Operator => Some(wanted == Some(Layer::Operator)),
            VerdictLayer::Runtime => Some(wanted == Some(Layer::Runtime)),
            VerdictLayer::Communication => Some(wanted == Some(Layer::Communication)),
            VerdictLayer::Load => Some(fault.family == Family::LoadLimited),
            VerdictLayer::None | VerdictLayer::Undecided => None,
        };
        let counts = |said: &&Said| said.layer != Layer::Measurement;
        match self.against(i, fault.gain).find(counts) {
            Some(first) => Some(wanted.map_or(first.names(i), |layer| first.layer == layer)),
            None if self.said.iter().any(|said| counts(&said)) => by_verdict.filter(|right| *right),
            None => by_verdict,
        }
    }

    /// The same for findings as they stand, whatever else is really there.
    pub fn blames_strictly(&self, i: usize, fault: &Injected) -> bool {
        let first = self.said.iter().find(|said| competes(said, fault.family));
        let layer = layer_of(fault.family);
        first.is_some_and(|said| layer.map_or(said.names(i), |layer| said.layer == layer))
    }

    /// Findings that a reader would act upon.
    pub fn weighty(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| said.severity >= Severity::Medium && said.layer != Layer::Measurement)
    }
}

impl Said {
    /// Whether it names fault `i`.
    pub fn names(&self, i: usize) -> bool {
        self.faults.contains(&i)
    }

    /// Middle of the gain it promises, ns.
    pub fn middle(&self) -> Option<Ns> {
        self.gain.map(|(low, high)| low.midpoint(high))
    }

    /// Whether what it says is so: it names a fault that can be seen, or something else that really matters, in a step of
    /// `step` ns.
    pub fn is_right(&self, step: Ns) -> bool {
        let least = if self.faults.is_empty() { MATTERS } else { VISIBLE };
        self.truth.is_some_and(|truth| truth as f64 >= least * step as f64)
    }
}

/// Findings about the measurement qualify the others and compete only with each other.
pub fn competes(said: &Said, family: Family) -> bool {
    (said.layer == Layer::Measurement) == (family == Family::Measurement)
}

/// Whether a bucket of this layer is what a family would show in.
pub fn shows_in(family: Family, layer: Option<Layer>) -> Option<bool> {
    layer_of(family).map(|wanted| layer == Some(wanted))
}
