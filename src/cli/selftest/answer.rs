//! What the diagnosis said of a run, beside what is true of it.

use model::Ns;
use simulator::FaultKind;

use super::worth::Worth;
use crate::{
    analysis::{Confidence, Layer},
    diagnose::{Diagnosis, Finding, Method, Severity, VerdictLayer},
};

/// Share of a step below which a gain is nothing that anybody could see: the least gain that a report speaks of.
pub const VISIBLE: f64 = 0.01;
/// Share of a step from which a gain matters: that of a finding of medium severity.
pub const MATTERS: f64 = 0.03;

/// A fault of a run and what it really costs.
#[derive(Clone, Debug)]
pub struct Injected {
    /// What is wrong.
    pub kind: FaultKind,
    /// Layer of the cause.
    pub layer: Layer,
    /// The rank that has the cause, if it is one.
    pub culprit: Option<u32>,
    /// Mean steady step with the fault less that without it, ns.
    pub gain: Ns,
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
    /// Least and largest gain it promises, ns; `None` without an estimate.
    pub gain: Option<(Ns, Ns)>,
    /// Value that met the threshold, and the threshold.
    pub trigger: (f64, f64),
    /// Which of the run's faults it names.
    pub fault: Option<usize>,
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
}

impl Answer {
    /// Puts the truth beside each finding.
    pub fn new(diagnosis: &Diagnosis, faults: &[Injected], worth: &mut Worth) -> Self {
        let mut said = |finding: &Finding| {
            let fault = faults.iter().position(|fault| fault.kind.rules().contains(&finding.rule));
            let truth = match fault.and_then(|i| faults.get(i)) {
                Some(fault) => Some(fault.gain),
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
                gain: (estimate.method != Method::None)
                    .then_some((estimate.from - estimate.to_high, estimate.from - estimate.to_low)),
                trigger: (finding.trigger.value, finding.trigger.threshold),
                fault,
                truth,
            }
        };
        Self { verdict: diagnosis.verdict.layer, said: diagnosis.findings.iter().map(&mut said).collect() }
    }

    /// The findings that compete with fault `i`, whose true gain is `gain`: without those that name something else which
    /// really is worth as much, since to name that first is right.
    pub fn against(&self, i: usize, gain: Ns) -> impl Iterator<Item = &Said> {
        let excused = move |said: &Said| said.fault != Some(i) && said.truth.is_some_and(|truth| truth >= gain);
        self.said.iter().filter(move |said| !excused(said))
    }

    /// The finding that names fault `i`, the first of them.
    pub fn names(&self, i: usize) -> Option<&Said> {
        self.said.iter().find(|said| said.fault == Some(i))
    }

    /// The layer that the answer blames for fault `i`; `None` when it leaves that open. A fault of the measurement is
    /// blamed by naming it at all: such findings qualify the others and never come first.
    pub fn layer(&self, i: usize, fault: &Injected) -> Option<Layer> {
        if fault.layer == Layer::Measurement && self.names(i).is_some() {
            return Some(Layer::Measurement);
        }
        let verdict = match self.verdict {
            VerdictLayer::Operator => Some(Layer::Operator),
            VerdictLayer::Runtime => Some(Layer::Runtime),
            VerdictLayer::Communication => Some(Layer::Communication),
            VerdictLayer::None | VerdictLayer::Undecided => None,
        };
        let first = self.against(i, fault.gain).find(|said| said.layer != Layer::Measurement);
        if self.verdict == VerdictLayer::Undecided { None } else { first.map(|said| said.layer).or(verdict) }
    }

    /// Findings that a reader would act upon.
    pub fn weighty(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| said.severity >= Severity::Medium && said.layer != Layer::Measurement)
    }
}

impl Said {
    /// Middle of the gain it promises, ns.
    pub fn middle(&self) -> Option<Ns> {
        self.gain.map(|(low, high)| low.midpoint(high))
    }

    /// Whether what it says is so: it names a fault that can be seen, or something else that really matters, in a step of
    /// `step` ns.
    pub fn is_right(&self, step: Ns) -> bool {
        let least = if self.fault.is_some() { VISIBLE } else { MATTERS };
        self.truth.is_some_and(|truth| truth as f64 >= least * step as f64)
    }
}
