//! What a rule is.

use model::{EvidenceClass, Trace};

use super::{
    estimate::{self, Estimate, Intervention},
    finding::{Competing, Evidence, Finding, Over, Remedy, Severity, Trigger},
    relations::{Advice, Relations},
};
use crate::{
    analysis::{Analysis, AnchorKind, Class, Confidence, Layer, Rank, Workload},
    i18n::{Message, Text},
    platform::{Packs, StepLabel},
};

/// The text of a rule. `strato explain` prints it.
#[derive(Clone, Copy, Debug)]
pub struct Doc {
    /// Id such as `RT-14`.
    pub id: &'static str,
    /// Name in a few words.
    pub title: Text,
    /// Layer of the cause that the rule claims.
    pub layer: Layer,
    /// Evidence classes without which the rule abstains.
    pub needs: &'static [EvidenceClass],
    /// Whether what to do depends on the device.
    pub advice: Advice,
    /// How it stands to other rules, to the board and to the verdict.
    pub relations: Relations,
    /// What it sees.
    pub sees: Text,
    /// Why it matters.
    pub matters: Text,
    /// Trigger and threshold.
    pub trigger: Text,
    /// Where the threshold comes from.
    pub source: Text,
    /// When it keeps quiet although the trigger holds, and what else could explain the evidence.
    pub guards: Text,
    /// How to verify the remedy.
    pub verify: Text,
}

/// What a rule may look at.
pub struct Context<'a> {
    /// The capture.
    pub trace: &'a Trace,
    /// Its analysis.
    pub analysis: &'a Analysis,
    /// Platform knowledge.
    pub packs: &'a Packs,
}

/// What a rule says.
pub enum Outcome {
    /// Nothing to report.
    Quiet,
    /// Findings.
    Found(Vec<Finding>),
    /// It cannot decide although the evidence classes are there.
    Abstain(Message),
}

/// Parts of names that Python programs leave in a capture.
const PYTHON: [&str; 13] = [
    ".py",
    "python",
    "Python",
    "aten::",
    "at::native",
    "c10::",
    "torch",
    "vllm",
    "sglang",
    "triton",
    "aclnn",
    "MindSpore",
    "jit_",
];

impl FromIterator<Finding> for Outcome {
    fn from_iter<I: IntoIterator<Item = Finding>>(findings: I) -> Self {
        let findings: Vec<Finding> = findings.into_iter().collect();
        if findings.is_empty() { Self::Quiet } else { Self::Found(findings) }
    }
}

/// A rule of the catalogue.
pub trait Rule: Sync {
    /// Its text.
    fn doc(&self) -> &'static Doc;

    /// Whether it says something only about captures in which something marks the steps: without a mark nobody can tell what
    /// lies inside a step from what lies between two.
    fn needs_steps(&self) -> bool {
        false
    }

    /// What a rule that needs steps can say all the same where nothing marks any.
    fn check_unmarked(&self, _: &Context<'_>) -> Vec<Finding> {
        Vec::new()
    }

    /// Whether it also speaks of steps of which only a log tells their length, whatever evidence it else needs.
    fn reads_logs(&self) -> bool {
        false
    }

    /// Looks at one capture.
    fn check(&self, cx: &Context<'_>) -> Outcome;
}

impl Context<'_> {
    /// Vendor of the first device, for remedies.
    pub fn vendor(&self) -> Option<&str> {
        self.trace.devices.iter().find_map(|d| d.vendor).map(|v| self.trace.strings.get(v))
    }

    /// What to do about a finding of a rule on this platform, without what the run says it does already and what is for programs of
    /// another kind.
    pub fn remedies(&self, rule: &str) -> Vec<Remedy> {
        let follows = |(key, value): &(String, String)| {
            self.trace.manifest.value(key).is_some_and(|said| said.split(',').any(|one| one.trim() == value))
        };
        let mut remedies = self.packs.remedies(rule, self.vendor());
        let is_for = |remedy: &Remedy| {
            let holds = |name: &str| remedy.of.iter().any(|part| name.contains(part.as_str()));
            remedy.of.is_empty() || self.has_name(holds)
        };
        remedies.retain(|remedy| is_for(remedy) && !remedy.unless.as_ref().is_some_and(follows));
        remedies
    }

    /// Whether a name of the capture is that of Python code, of a framework that is driven from it, or of an engine's step.
    pub fn runs_python(&self) -> bool {
        let tells = |name: &str| PYTHON.iter().any(|part| name.contains(part)) || self.packs.step_label(name).is_some();
        self.has_name(tells)
    }

    fn has_name(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.trace.strings.iter().any(|(_, name)| holds(name))
    }

    /// A finding about `class` of `rank` with everything that follows from the rule's text, the platform and the
    /// change filled in; the rule adds evidence and competing explanations.
    pub fn finding(
        &self,
        doc: &'static Doc,
        rank: &Rank,
        class: &Class,
        claim: Message,
        trigger: Trigger,
        change: Intervention,
    ) -> Finding {
        let estimate = estimate::of_class(&rank.workload(class), class, &change);
        self.drafted(doc, rank, class, (claim, trigger, change), estimate)
    }

    /// The same about something that happens to a whole workload: what the change removes is a mean over all its steps.
    pub fn event(
        &self,
        doc: &'static Doc,
        workload: &Workload<'_>,
        claim: Message,
        trigger: Trigger,
        change: Intervention,
    ) -> Finding {
        let estimate = estimate::bound(&workload.classes, &change);
        self.drafted(doc, workload.rank, workload.class, (claim, trigger, change), estimate)
    }

    fn drafted(
        &self,
        doc: &'static Doc,
        rank: &Rank,
        class: &Class,
        (claim, trigger, change): (Message, Trigger, Intervention),
        estimate: Estimate,
    ) -> Finding {
        Finding {
            rule: doc.id,
            layer: doc.layer,
            severity: Severity::of_estimate(&estimate),
            confidence: self.confidence(rank),
            claim,
            class: class.key.clone(),
            ranks: vec![rank.rank],
            evidence: Vec::new(),
            trigger,
            estimate,
            over: Over::Workload,
            limits: None,
            unreplayed: None,
            claimed: change.removes,
            changes: vec![(rank.rank, change)],
            competing: Vec::new(),
            remedy: self.remedies(doc.id),
            verify: Message::plain(doc.verify),
            supersedes: Vec::new(),
            explains: 0,
            same_time_as: None,
            beyond: false,
            cost: 0,
            weight: 1.0,
            selection: Vec::new(),
            stretches: Vec::new(),
            selected_on: rank.rank,
        }
    }

    /// The most that the anchor and the integrity of the trace allow a finding to be sure of.
    pub fn confidence(&self, rank: &Rank) -> Confidence {
        let integrity = &self.analysis.integrity;
        let early = integrity.before_launch as f64 / integrity.device_ops.max(1) as f64;
        // 2 % unmatched correlation is the integrity limit of rule CP-05.
        let doubtful = early + integrity.judged_without_launch() > 0.02;
        if doubtful { rank.anchor.confidence.min(Confidence::Medium) } else { rank.anchor.confidence }
    }

    /// Whether a rank has steps that something marks.
    pub fn has_marked_steps(&self) -> bool {
        self.main_classes().any(|(rank, _)| rank.anchor.kind != AnchorKind::WholeCapture)
    }

    /// Whether the steps are those of a log, which times them and shows nothing of what ran in them.
    pub fn is_logged(&self) -> bool {
        self.analysis.ranks.iter().any(|rank| rank.anchor.kind == AnchorKind::Log)
    }

    /// Whether a log says something of a kind of at least one of its steps.
    pub fn log_says(&self, of: impl Fn(&StepLabel) -> bool) -> bool {
        let steps = self.analysis.ranks.iter().flat_map(|rank| &rank.steps);
        let mut names: Vec<&str> = steps.map(|step| step.label.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.packs.step_label(name)).any(|label| of(&label))
    }

    /// Every workload of every rank: what rules about events look at.
    pub fn workloads(&self) -> impl Iterator<Item = Workload<'_>> {
        self.analysis.ranks.iter().filter(|r| !r.timeline.collectives_only).flat_map(Rank::workloads)
    }

    /// Every rank with its main class, if that class has steps that count; but for ranks of which nothing was recorded beside
    /// their collectives.
    pub fn main_classes(&self) -> impl Iterator<Item = (&Rank, &Class)> {
        let recorded = self.analysis.ranks.iter().filter(|r| !r.timeline.collectives_only);
        recorded.filter_map(|r| Some((r, r.main_class().filter(|c| c.steady > 0)?)))
    }
}

impl Finding {
    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// Adds another explanation.
    #[must_use]
    pub fn against(mut self, competing: Competing) -> Self {
        self.competing.push(competing);
        self
    }
}
