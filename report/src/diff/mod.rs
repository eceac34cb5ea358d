//! What is shown of two captures beside each other: one value, and the formats made from it.
//!
//! Where the contract forbids to set one beside the other the difference is not there at all: no format can show what
//! nobody computed.

pub mod ci;
pub mod declaration;
pub mod gate;
pub mod json;
mod movers;
pub mod sections;
mod slots;
pub(crate) mod unknown;
pub mod words;

use model::Ns;

use super::{Report, document::Document, sections::Shown, serving::ServingReport};
use diagnosis::{
    compare::{
        Difference, Statistics,
        contract::{Contract, MAIN, Reason, Verdict},
        statistics::Outcome,
    },
    diagnose::Readiness,
    i18n::{Lang, Message, Value},
};

pub use movers::{Mover, What, movers};
pub use slots::{Kernels, kernels};

/// Share of the step below which a difference is no ratio: ratios of what is nearly nothing explode (the gate of the
/// profiler advisors of Ascend is the same).
const GATE: i64 = 100;

/// What is said of a side before anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Name of the capture.
    pub name: String,
    /// Its device, if known.
    pub device: Option<String>,
    /// Whether its numbers were simulated rather than measured.
    pub simulated: bool,
}

/// Two results of a kind that has no steps, beside each other.
pub trait Compared {
    /// The two sides.
    fn heads(&self) -> &[Head; 2];
    /// The comparison as a document.
    fn document(&self, lang: Lang) -> Document;
    /// The comparison as one JSON object.
    ///
    /// # Errors
    /// Only if serialisation fails, which would be a defect.
    fn json(&self, gate: Option<ci::Asked>) -> Result<String, serde_json::Error>;
    /// What B takes longer for, each with its share of A, the largest first; `None` where the two may not be compared.
    fn slower(&self) -> Option<Vec<(String, f64)>>;

    /// How much longer B takes at most, as a share; `None` where the two may not be compared.
    fn slowdown(&self) -> Option<f64> {
        self.slower().map(|all| all.first().map_or(0.0, |(_, share)| *share))
    }
}

/// A report on two captures.
#[derive(Clone, Debug)]
pub struct DiffReport {
    /// The two sides.
    pub heads: [Head; 2],
    /// Whether they may be compared.
    pub contract: Contract,
    /// The difference; `None` where the contract refuses it, or where the two have no steps of one kind.
    pub difference: Option<Difference>,
    /// Whether the contract refuses the comparison and somebody asked for the numbers all the same.
    pub forced: bool,
    /// Whether the two do unequal amounts of work and are compared by what they take for a unit of it.
    pub unequal: bool,
    /// What a pipeline asked, and the answer to it.
    pub gate: Option<gate::Gate>,
    /// What repeated launches say of it; the difference itself is that of the middle launch of each side.
    pub statistics: Option<Statistics>,
    /// The report on each side by itself, where there is no difference to show.
    pub apart: Option<[Report; 2]>,
    /// What clients measured of both under load, where that was given too.
    pub serving: Option<ServingReport>,
    /// How ready each side's platform is, where that was assessed.
    pub readiness: Option<[Readiness; 2]>,
}

impl DiffReport {
    /// Puts a report together. A difference is only asked for where the contract allows one, the single reports where there
    /// is none.
    pub fn build(
        heads: [Head; 2],
        contract: Contract,
        force: bool,
        difference: impl FnOnce() -> Option<Difference>,
        statistics: impl FnOnce(&Difference) -> Statistics,
        apart: impl FnOnce() -> [Report; 2],
    ) -> Self {
        let refused = contract.verdict() == Verdict::NotComparable;
        let difference = if refused && !force { None } else { difference() };
        let forced = refused && difference.is_some();
        let apart = if difference.is_none() { Some(apart()) } else { None };
        let statistics = difference.as_ref().map(statistics);
        Self {
            heads,
            contract,
            difference,
            forced,
            unequal: false,
            gate: None,
            statistics,
            apart,
            serving: None,
            readiness: None,
        }
    }

    /// The same with how ready each side's platform is.
    #[must_use]
    pub fn with_readiness(self, sides: [Readiness; 2]) -> Self {
        Self { readiness: Some(sides), ..self }
    }

    /// What no format may leave out: that the contract refuses these numbers, or that they are of unequal work.
    pub fn banners(&self) -> Vec<Message> {
        let codes = || {
            let mut codes: Vec<String> = self.contract.refusals(MAIN).map(Reason::text).collect();
            codes.sort();
            codes.dedup();
            codes.join(", ")
        };
        let forced = self.forced.then(|| Message::new(words::FORCED, [("codes", Value::Raw(codes()))]));
        let unequal = (self.unequal && self.difference.is_some()).then(|| Message::plain(words::UNEQUAL));
        forced.into_iter().chain(unequal).collect()
    }

    /// The same with the word that the work of the two is unequal.
    #[must_use]
    pub fn of_unequal_work(self, unequal: bool) -> Self {
        Self { unequal, ..self }
    }

    /// The device of each side and the model of both, as far as they are known: by what an accepted comparison is recognised.
    pub fn identity(&self) -> [Option<String>; 3] {
        let model = self.contract.control("model.name").and_then(|own| own.a.as_ref().or(own.b.as_ref()));
        let [a, b] = self.heads.each_ref().map(|head| head.device.clone());
        [a, b, model.map(|entry| entry.value.clone())]
    }

    /// The comparison as a document.
    pub fn document(&self, lang: Lang) -> Document {
        let serving = self.serving.as_ref().map(|serving| serving.document(lang));
        [sections::report(self, lang)].into_iter().chain(serving).collect()
    }

    /// What is said beside every number: codes of the caveats, each once.
    pub fn caveats(&self) -> Vec<String> {
        let mut codes: Vec<String> = self.contract.caveats(MAIN).map(|reason| reason.code.word().to_owned()).collect();
        codes.sort();
        codes.dedup();
        codes
    }

    /// What repeated launches say of the difference.
    pub fn outcome(&self) -> Outcome {
        self.statistics.as_ref().map_or(Outcome::Unknown, Statistics::outcome)
    }

    /// How much longer the second side takes, as a share of the first: nothing where that is no more than noise. `None` where
    /// there is no difference to judge, or only one that the contract refuses.
    pub fn slowdown(&self) -> Option<f64> {
        let waterfall = &self.difference.as_ref().filter(|_| !self.forced)?.waterfall;
        if self.outcome() == Outcome::NotSignificant {
            return Some(0.0);
        }
        Some(waterfall.delta() as f64 / waterfall.from.max(1) as f64)
    }
}

/// Whether a difference is large enough for a ratio.
pub(crate) fn is_large(delta: Ns, from: Ns, to: Ns) -> bool {
    delta.saturating_abs().saturating_mul(GATE) >= from.max(to)
}

impl Shown for DiffReport {
    fn is_simulated(&self) -> bool {
        self.heads.iter().any(|head| head.simulated)
    }
}
