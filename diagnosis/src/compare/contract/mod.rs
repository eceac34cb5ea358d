//! The comparability contract: whether two captures may be compared, claim by claim, and what would have to change.
//!
//! [`judge`] holds the manifests against each other field by field. A hard field that differs refuses; one that is unknown
//! refuses the claims that cannot be made without it; a soft field that differs or is unknown is a caveat of every number.
//! What the captures show of themselves counts beside that: lost records, tracing that slowed the run, missing repeats.
//!
//! | module | owns |
//! | --- | --- |
//! | [`claim`] | the questions, and what each rests on |
//! | [`code`] | reasons with their codes |
//! | [`rule`] | when two values say the same |
//! | `implied` | fields that others leave no choice for |
//! | `facts` | what a capture shows beside its manifest |
//! | [`change`] | what would make a pair comparable |

pub mod change;
pub mod claim;
pub mod code;
mod facts;
mod implied;
pub mod rule;
#[cfg(test)]
mod tests;

use model::{
    EvidenceClass,
    manifest::{Control as Weight, Entry, FIELDS, Field, Manifest, REPEATS},
};

use super::{Side, work::Distance};
use crate::analysis::inflation;

pub use change::Change;
pub use claim::Claim;
pub use code::{About, Code, Force, Reason};
pub use facts::{Facts, digest};
pub use rule::{Rule, Status};

/// The claim that a diff of steps makes, and that its verdict is about.
pub const MAIN: Claim = Claim::Step;
/// Evidence whose absence on one side leaves a part of the step unseen there.
const SEEN: [EvidenceClass; 3] = [EvidenceClass::HostApi, EvidenceClass::Correlation, EvidenceClass::Shapes];

/// What may be said of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything.
    Comparable,
    /// Everything, with caveats that go with every number.
    Caveats,
    /// Nothing that sets one beside the other.
    NotComparable,
}

impl Verdict {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Comparable => "comparable",
            Self::Caveats => "caveats",
            Self::NotComparable => "not_comparable",
        }
    }
}

/// Fields that say how much work there is, and not which.
const AMOUNTS: [&str; 4] = ["caps.batch", "model.layers", "workload.prompt_len", "workload.concurrency"];

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What the run says of itself, declarations included.
    pub manifest: &'a Manifest,
    /// What its capture shows.
    pub facts: &'a Facts,
}

/// A field on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// The field.
    pub field: &'static Field,
    /// What A says.
    pub a: Option<Entry>,
    /// What B says.
    pub b: Option<Entry>,
    /// What that comes to.
    pub status: Status,
    /// Whether it differs because it is what the pair was made to find out.
    pub studied: bool,
}

impl Control {
    /// What a side says.
    pub fn entry(&self, side: Side) -> Option<&Entry> {
        match side {
            Side::A => self.a.as_ref(),
            Side::B => self.b.as_ref(),
        }
    }

    /// The sides that say nothing.
    pub fn silent(&self) -> Vec<Side> {
        Side::BOTH.into_iter().filter(|side| self.entry(*side).is_none()).collect()
    }
}

/// What the contract says of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// Every field, in the order of [`FIELDS`].
    pub controls: Vec<Control>,
    /// Every reason, refusals first.
    pub reasons: Vec<Reason>,
    /// How far the work of the two is apart, as far as the traces show it.
    pub work: Option<Distance>,
}

impl Contract {
    /// The verdict on one claim.
    pub fn of(&self, claim: Claim) -> Verdict {
        let about = || self.reasons.iter().filter(|reason| reason.claims.contains(&claim));
        match about().map(|reason| reason.force).min_by_key(|force| *force != Force::Refuses) {
            Some(Force::Refuses) => Verdict::NotComparable,
            Some(Force::Limits) => Verdict::Caveats,
            None => Verdict::Comparable,
        }
    }

    /// The verdict on decode steps, which a diff is about.
    pub fn verdict(&self) -> Verdict {
        self.of(MAIN)
    }

    /// Why a claim is refused.
    pub fn refusals(&self, claim: Claim) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(move |reason| reason.refuses(claim))
    }

    /// What goes with every number of a claim.
    pub fn caveats(&self, claim: Claim) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(move |reason| reason.force == Force::Limits && reason.claims.contains(&claim))
    }

    /// Lets sides of unequal amounts of work be compared by what they take for a unit of it: what refuses because of an amount goes
    /// with every number instead. Work of another kind stays refused.
    pub fn allow_unequal(&mut self) {
        let amount = |about: About| match about {
            About::Work(part) => part.is_amount(),
            About::Field(field) => AMOUNTS.contains(&field.key),
            _ => false,
        };
        let meant = |reason: &&mut Reason| reason.code != Code::Unknown && amount(reason.about);
        for reason in self.reasons.iter_mut().filter(meant) {
            reason.force = Force::Limits;
        }
        self.reasons.sort_by_key(|reason| reason.force != Force::Refuses);
    }

    /// Fields that nobody knows and without which a claim is refused.
    pub fn open(&self, claim: Claim) -> Vec<&'static Field> {
        let field = |reason: &Reason| match reason.about {
            About::Field(field) if reason.code == Code::Unknown => Some(field),
            _ => None,
        };
        let mut open: Vec<&'static Field> = self.refusals(claim).filter_map(field).collect();
        open.dedup_by_key(|field| field.key);
        open
    }

    /// The control of a field.
    pub fn control(&self, key: &str) -> Option<&Control> {
        self.controls.iter().find(|control| control.field.key == key)
    }

    /// The smallest change that would make the pair comparable for a claim; empty where it is.
    pub fn changes(&self, claim: Claim) -> Vec<Change> {
        change::smallest(self, claim)
    }
}

/// Holds two captures against each other. `studied` are the fields that differ on purpose (see [`claim::may_be_studied`]).
pub fn judge(a: Subject<'_>, b: Subject<'_>, studied: &[&'static Field]) -> Contract {
    let (of_a, of_b) = (implied::completed(a.manifest), implied::completed(b.manifest));
    // Two readings of one capture are equal in everything, also in what neither of them knows.
    let same = a.facts.digest.is_some() && a.facts.digest == b.facts.digest && a.manifest == b.manifest;
    let both = a.facts.work.as_ref().zip(b.facts.work.as_ref());
    let work = both.map(|(of_a, of_b)| Distance::of(of_a, of_b));
    let shown = |field: &Field| {
        let work = work.as_ref()?;
        if work.asks(field) { work.shows(field).then_some(Rule::SameWork) } else { Some(Rule::Meaningless) }
    };
    let controls: Vec<Control> = FIELDS
        .iter()
        .map(|field| {
            let mut status = rule::status(field, of_a.value(field.key), of_b.value(field.key));
            if status == Status::Unknown {
                let proof = rule::proof(field, &of_a, &of_b).map(Rule::Proved).or(same.then_some(Rule::SameCapture));
                let proof = proof.or_else(|| shown(field));
                status = proof.map_or(status, Status::Equivalent);
            }
            let studied = status == Status::Different && studied.iter().any(|one| one.key == field.key);
            let entry = |manifest: &Manifest| manifest.get(field.key).cloned();
            Control { field, a: entry(&of_a), b: entry(&of_b), status, studied }
        })
        .collect();
    let mut reasons: Vec<Reason> = controls.iter().flat_map(of_field).collect();
    reasons.extend(work.iter().filter(|_| !same).flat_map(|work| of_work(work, studied)));
    for (side, subject) in Side::BOTH.into_iter().zip([a, b]) {
        // What may be wrong with a capture is wrong on both sides of it, and makes no difference.
        let doubts = |reason: &Reason| {
            same && matches!(reason.about, About::Links | About::Inflation(_) | About::Shared | About::Idle)
        };
        reasons.extend(of_capture(side, subject).into_iter().map(|reason| match doubts(&reason) {
            true => Reason { force: Force::Limits, ..reason },
            false => reason,
        }));
    }
    if !same {
        for (side, subject) in Side::BOTH.into_iter().zip([a, b]) {
            let other = if side == Side::A { b } else { a };
            reasons.extend(shortcomings(side, subject, other.facts));
        }
    }
    reasons.sort_by_key(|reason| reason.force != Force::Refuses);
    Contract { controls, reasons, work }
}

/// What the values of a field do: at most one refusal, and a caveat for the claims that stand.
fn of_field(control: &Control) -> Vec<Reason> {
    let (field, all) = (control.field, Claim::ALL.to_vec());
    let (code, refused) = match (control.status, field.control) {
        (Status::Equal | Status::Equivalent(_), _) => return Vec::new(),
        (Status::Different, _) if control.studied => (Code::Studied, Vec::new()),
        (Status::Different, Weight::Hard) => (Code::of_difference(field), claim::refused_different(field)),
        (Status::Different, Weight::Soft) => (Code::Different, Vec::new()),
        (Status::Unknown, Weight::Hard) => (Code::Unknown, claim::refused_unknown(field)),
        // Without a price there is no cost; nothing else asks for one.
        (Status::Unknown, Weight::Soft) if field.key == "hardware.price" => (Code::Unknown, vec![Claim::Cost]),
        (Status::Unknown, Weight::Soft) => (Code::Unknown, Vec::new()),
    };
    let limited: Vec<Claim> = match field.key {
        "hardware.price" => Vec::new(),
        _ => all.into_iter().filter(|claim| !refused.contains(claim)).collect(),
    };
    let side = match control.silent().as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let reason = |force, claims: Vec<Claim>| Reason { code, about: About::Field(field), side, force, claims };
    [reason(Force::Refuses, refused), reason(Force::Limits, limited)]
        .into_iter()
        .filter(|reason| !reason.claims.is_empty())
        .collect()
}

/// What the work of the two does: other work is refused whatever was declared of it, unless it is what the pair studies.
fn of_work(work: &Distance, studied: &[&'static Field]) -> Vec<Reason> {
    let reason = |own: &super::work::Parted| {
        let meant = studied.iter().any(|field| own.part.studied_by().contains(&field.key));
        let force = if meant { Force::Limits } else { Force::Refuses };
        Reason { code: Code::Work, about: About::Work(own.part), side: None, force, claims: Claim::ALL.to_vec() }
    };
    let mut reasons: Vec<Reason> = work.differing().map(reason).collect();
    if !work.is_seen() {
        let claims = Claim::ALL.to_vec();
        reasons.push(Reason { code: Code::Unknown, about: About::Unseen, side: None, force: Force::Refuses, claims });
    }
    reasons
}

/// What a capture shows that forbids taking it at face value.
fn of_capture(side: Side, subject: Subject<'_>) -> Vec<Reason> {
    let facts = subject.facts;
    let mut found = Vec::new();
    let mut refuse = |code, about, claims| {
        found.push(Reason { code, about, side: Some(side), force: Force::Refuses, claims });
    };
    let mixed = |key: &str| subject.manifest.value(key).is_some_and(|value| value.contains(','));
    if mixed("hardware.vendor") {
        refuse(Code::MixedVendor, About::Vendors, Claim::ALL.to_vec());
    }
    if facts.broken {
        refuse(Code::Integrity, About::Links, Claim::ALL.to_vec());
    }
    if let Some(ratio) = inflation::ratio(subject.manifest).filter(|ratio| *ratio > inflation::REFUSED) {
        refuse(Code::Traced, About::Inflation(ratio), Claim::ALL.to_vec());
    }
    if facts.shared {
        refuse(Code::Withheld, About::Shared, Claim::ALL.to_vec());
    }
    if facts.idle {
        refuse(Code::Withheld, About::Idle, Claim::Step.and_wider());
    }
    if !facts.has(EvidenceClass::Device) {
        refuse(Code::Unknown, About::Device, vec![Claim::Op]);
    }
    if facts.steps == 0 {
        refuse(Code::Unknown, About::Steps, Claim::Step.and_wider());
    }
    if !facts.power {
        refuse(Code::Unknown, About::Power, vec![Claim::Energy]);
    }
    found
}

/// What goes with the numbers of a capture.
fn shortcomings(side: Side, subject: Subject<'_>, other: &Facts) -> Vec<Reason> {
    let (facts, manifest) = (subject.facts, subject.manifest);
    let mut found = Vec::new();
    let mut limit = |code, about| {
        found.push(Reason { code, about, side: Some(side), force: Force::Limits, claims: Claim::ALL.to_vec() });
    };
    if facts.simulated {
        limit(Code::Simulated, About::Simulated);
    }
    if facts.lost > 0 {
        limit(Code::Integrity, About::Losses(facts.lost));
    }
    let slowed = |ratio: &f64| *ratio > inflation::TRUSTED && *ratio <= inflation::REFUSED;
    if let Some(ratio) = inflation::ratio(manifest).filter(slowed) {
        limit(Code::Traced, About::Inflation(ratio));
    }
    let repeats = facts.runs.or_else(|| manifest.count("measurement.repeats"));
    if repeats.is_none_or(|n| n < REPEATS) {
        limit(Code::Repeats, About::Repeats(repeats));
    }
    if !facts.noise {
        limit(Code::Noise, About::Noise);
    }
    if !facts.has(EvidenceClass::Probes) {
        limit(Code::Probes, About::Probes);
    }
    let unlocked =
        |value: &str| matches!(value.trim().to_ascii_lowercase().as_str(), "no" | "false" | "unlocked" | "0");
    if manifest.value("measurement.clock_lock").is_some_and(unlocked) {
        limit(Code::Clocks, About::Clocks);
    }
    for class in SEEN.into_iter().filter(|class| other.has(*class) && !facts.has(*class)) {
        limit(Code::Evidence, About::Lacks(class));
    }
    found
}
