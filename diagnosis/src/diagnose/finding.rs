//! The diagnosis record: a claim with its evidence, trigger, estimate, competing explanation, remedy and verification.

use model::{EvidenceClass, Ns, SliceId, Span};

pub use crate::platform::Remedy;

use super::{
    estimate::{Estimate, Intervention},
    stretch::{self, Stretch},
};
use crate::{
    analysis::{Analysis, Class, Confidence, Layer, Rank, Step, Workload},
    i18n::{Message, Text, Value},
};

/// How much a finding matters, from the gain that is sure (the lower end of its estimate) over the mean step of the workload:
/// critical from 20 %, high from 10 %, medium from 3 %, low below. What promises nothing from below is low at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No gain of its own: a fact about the measurement or a condition.
    Info,
    /// 1–3 %.
    Low,
    /// 3–10 %.
    Medium,
    /// 10–20 %.
    High,
    /// 20 % and more.
    Critical,
}

impl Severity {
    /// Severity of a gain of `share` of the step time.
    pub fn of(share: f64) -> Self {
        match share {
            s if s >= 0.20 => Self::Critical,
            s if s >= 0.10 => Self::High,
            s if s >= 0.03 => Self::Medium,
            s if s >= 0.01 => Self::Low,
            _ => Self::Info,
        }
    }

    /// Severity of an estimate: that of the gain which is sure, and low where a gain is likely but not sure.
    pub fn of_estimate(estimate: &Estimate) -> Self {
        let likely = Self::of(estimate.mid_gain_share()).min(Self::Low);
        Self::of(estimate.least_gain_share()).max(likely)
    }

    /// Key in JSON and on the command line.
    pub fn key(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// One fact that supports a finding.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Evidence {
    /// What the value is, as a sentence part with `{value}` left to the unit of `value`.
    pub what: Message,
    /// The value.
    pub value: Value,
    /// Slices it was read from (a sample of at most 16).
    pub rows: Vec<SliceId>,
}

/// Why the rule fired.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Trigger {
    /// The formula, in the words of the rule's documentation.
    pub formula: Text,
    /// Its value here.
    pub value: f64,
    /// The threshold.
    pub threshold: f64,
}

/// Another explanation of the same evidence.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Competing {
    /// The other claim.
    pub claim: Message,
    /// Whether the evidence rules it out.
    pub refuted: bool,
    /// Why, or what would decide.
    pub why: Message,
}

impl Finding {
    /// What it costs, as a share of the step: the cost that it names, or what its change brings. Of kernels it may name a part as a
    /// cost and remove more of their time, which needs no replay.
    pub fn size(&self) -> f64 {
        let share = |ns: Ns| ns as f64 / self.estimate.from.max(1) as f64;
        let removed = match self.layer {
            Layer::Operator if self.cost > 0 => share(self.claimed).min(self.estimate.max_gain_share()),
            _ => 0.0,
        };
        (self.weight * share(self.cost)).max(removed).max(self.estimate.mid_gain_share())
    }

    /// Takes the stretches of its time, as its rank's gaps hold them together.
    pub(super) fn give_stretches(&mut self, analysis: &Analysis) {
        let rank = analysis.ranks.iter().find(|rank| rank.rank == self.selected_on);
        self.stretches = stretch::of(&self.selection, rank.map_or(&[], |rank| &rank.gaps));
    }

    /// Speaks of one window from now on, in which no step is marked.
    pub(super) fn speak_of_window(&mut self) {
        self.claim.speak_of_window();
        self.evidence.iter_mut().for_each(|fact| fact.what.speak_of_window());
        for rival in &mut self.competing {
            rival.claim.speak_of_window();
            rival.why.speak_of_window();
        }
    }
}

impl Evidence {
    /// A fact with the rows it was read from.
    pub fn new(what: Text, value: Value, rows: Vec<SliceId>) -> Self {
        Self { what: Message::plain(what), value, rows }
    }
}

impl Competing {
    /// An explanation that the evidence leaves open; `why` says what would decide.
    pub fn open(claim: Text, why: Text) -> Self {
        Self { claim: Message::plain(claim), refuted: false, why: Message::plain(why) }
    }

    /// An explanation that the evidence rules out.
    pub fn refuted(claim: Text, why: Text) -> Self {
        Self { claim: Message::plain(claim), refuted: true, why: Message::plain(why) }
    }
}

/// Steps of which an estimate is the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// The steady steps of the finding's class.
    Class,
    /// Those of the workload that its class belongs to.
    Workload,
}

impl Over {
    /// What a finding about `class` is the mean of.
    pub fn workload<'a>(self, rank: &'a Rank, class: &'a Class) -> Workload<'a> {
        match self {
            Self::Class => Workload { rank, class, classes: vec![class] },
            Self::Workload => rank.workload(class),
        }
    }

    /// The steps of a rank that count for a finding about `class`.
    pub fn steps<'a>(self, rank: &'a Rank, class: &'a Class) -> impl Iterator<Item = &'a Step> {
        self.workload(rank, class).steps()
    }

    /// Mean of those steps, ns, and how many they are, at least one.
    pub fn mean(self, rank: &Rank, class: &Class) -> (Ns, Ns) {
        let count = self.steps(rank, class).count().max(1) as Ns;
        (self.steps(rank, class).map(|s| s.window.len()).sum::<Ns>() / count, count)
    }
}

/// One finding.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Finding {
    /// Rule id such as `RT-14`.
    pub rule: &'static str,
    /// Layer of the cause.
    pub layer: Layer,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// The claim in one sentence with its numbers.
    pub claim: Message,
    /// Step class it speaks of (key), empty for the whole capture.
    pub class: String,
    /// Ranks it speaks of.
    pub ranks: Vec<u32>,
    /// Facts.
    pub evidence: Vec<Evidence>,
    /// Why it fired.
    pub trigger: Trigger,
    /// From X to Y.
    pub estimate: Estimate,
    /// Steps of which the estimate is the mean.
    pub over: Over,
    /// What no change of this kind can beat, where the steps were replayed.
    pub limits: Option<Limits>,
    /// Why the estimate is only a bound although the change is known.
    pub unreplayed: Option<Text>,
    /// The change behind the estimate, rank by rank.
    #[serde(skip)]
    pub changes: Vec<(u32, Intervention)>,
    /// Other explanations.
    pub competing: Vec<Competing>,
    /// What to do, for this platform.
    pub remedy: Vec<Remedy>,
    /// How to check that the remedy worked.
    pub verify: Message,
    /// Rules whose claim on the same time this one took precedence over.
    pub supersedes: Vec<&'static str>,
    /// Time of which this finding is the first to speak, ns per step of the workload.
    pub explains: Ns,
    /// A finding before it that speaks of most of the same time.
    pub same_time_as: Option<&'static str>,
    /// Whether the replayed gain is more than the time that the claim names: launches go with operations, and idle time with what
    /// the host is spared.
    pub beyond: bool,
    /// Time of a step that its own claim is about, ns, whatever costs it names besides.
    pub claimed: Ns,
    /// Size of the cost that it names, ns per step of the workload; 0 where it names none.
    pub cost: Ns,
    /// The time that it is about, on one rank: idle time and operations, disjoint and in order.
    #[serde(skip)]
    pub selection: Vec<Span>,
    /// The rank whose time that is.
    #[serde(skip)]
    pub selected_on: u32,
    /// Where to look at it: stretches of that time, the costliest first.
    #[serde(skip)]
    pub stretches: Vec<Stretch>,
    /// Weight of that size among others: less than 1 where no change is known that would remove it.
    pub weight: f64,
}

/// Step times below which a change cannot bring the step, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Limits {
    /// The step without the time that the change itself takes away, as if nothing else took its place (Amdahl).
    pub amdahl: Ns,
    /// The most that one of host, device and collectives has to do in a step: overlap cannot hide it.
    pub overlap: Ns,
}

impl Limits {
    /// The same of a step that is longer by so much, ns.
    pub(super) fn shifted(self, by: Ns) -> Self {
        Self { amdahl: self.amdahl + by, overlap: self.overlap + by }
    }
}

/// A rule that could not decide.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Abstention {
    /// Rule id.
    pub rule: &'static str,
    /// Evidence classes that are missing.
    pub needs: Vec<EvidenceClass>,
    /// Another reason.
    pub why: Option<Message>,
}
