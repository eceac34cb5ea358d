//! How rules stand to each other, to the readiness board, to the verdict and to devices: each rule says it of itself, and
//! whoever ranks, judges and shows findings asks here and knows no rule by name.

use model::{Area, Maturity};

use super::rule::{Doc, Rule};

/// What a rule says of itself beside its text. A relation between two rules stands on one of them, the one that came
/// later, so that a new rule never changes another rule's file.
#[derive(Clone, Copy, Debug)]
pub struct Relations {
    /// Rules that claim the same time and name its cause more closely, in the order in which they are asked: where such a
    /// rule fires too, this one becomes its competing explanation.
    pub yields_to: &'static [&'static str],
    /// The same from the other side: rules that give way to this one.
    pub precedes: &'static [&'static str],
    /// Rules that may count some of the same time for another cause: both findings stay, and this one says so.
    pub shares_time_with: &'static [&'static str],
    /// Cells of the readiness board and matrix that a finding turns amber or red.
    pub board: &'static [Feeds],
    /// What a finding means to the ranking and to the verdict beyond its gain.
    pub role: Option<Role>,
    /// Vendors of the devices to which the rule applies.
    pub vendors: Vendors,
}

impl Relations {
    /// A rule that stands for itself.
    pub const NONE: Self =
        Self { yields_to: &[], precedes: &[], shares_time_with: &[], board: &[], role: None, vendors: Vendors::All };
}

/// A cell that a rule feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feeds {
    /// An area of the board.
    Area(Area),
    /// An area of the board, if some steps are launched outside graphs: a step that waits for its launches is what graphs
    /// are for.
    IfLaunched(Area),
    /// A cell of the matrix.
    Maturity(Maturity),
}

/// What a finding, or the rule that made it, means to the ranking and to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Names the one rank that the others wait for, and so explains what the waiting does to all of them.
    LateRank,
    /// The host sets the pace of the forward pass: faster kernels gain little.
    LaunchBound,
    /// The host is late between steps, or had nothing to do.
    BetweenSteps,
    /// Nothing is asked of the stack: its trigger is the share of the time without a request.
    LoadLimited,
    /// Speculative decoding, whose gain depends on the tokens that are accepted.
    Speculation,
    /// An operator that several kernels make up.
    Composite,
    /// An operator that falls back to a CPU.
    CpuFallback,
    /// The recording made the step longer: its trigger is the ratio.
    TracingInflation,
    /// Sums of kernel times without a wall time.
    SumAboveWall,
    /// Time that nothing recorded explains.
    Unexplained,
    /// Other processes had the machine.
    SharedMachine,
}

/// Vendors of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendors {
    /// Whatever the device.
    All,
    /// Only these, as packs name them.
    Only(&'static [&'static str]),
}

impl Vendors {
    /// Whether a vendor is among them.
    pub fn include(self, vendor: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(named) => named.iter().any(|one| one.eq_ignore_ascii_case(vendor)),
        }
    }
}

/// What the remedy of a rule depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The device, its runtime, its libraries or its tools: each platform's pack has advice of its own.
    Device,
    /// The host, the engine's settings, the job or the load: the same everywhere.
    Host,
}

/// The rules of a catalogue, as those know them who judge findings.
#[derive(Clone, Copy)]
pub struct Catalogue(&'static [&'static dyn Rule]);

impl Catalogue {
    /// A catalogue of these rules.
    pub const fn new(rules: &'static [&'static dyn Rule]) -> Self {
        Self(rules)
    }

    /// The texts of all rules, in order.
    pub fn docs(self) -> impl Iterator<Item = &'static Doc> {
        self.0.iter().map(|rule| rule.doc())
    }

    /// The text of the rule with this id.
    pub fn doc(self, id: &str) -> Option<&'static Doc> {
        self.docs().find(|doc| doc.id == id)
    }

    /// Whether the rule with this id has a role.
    pub fn plays(self, id: &str, role: Role) -> bool {
        self.doc(id).is_some_and(|doc| doc.relations.role == Some(role))
    }

    /// Ids of the rules with a role.
    pub fn with(self, role: Role) -> impl Iterator<Item = &'static str> {
        self.docs().filter(move |doc| doc.relations.role == Some(role)).map(|doc| doc.id)
    }

    /// Whether the rule with this id feeds a cell.
    pub fn feeds(self, id: &str, cell: Feeds) -> bool {
        self.doc(id).is_some_and(|doc| doc.relations.board.contains(&cell))
    }

    /// Rules that claim the same time as `general` and name its cause more closely.
    pub fn closer(self, general: &'static Doc) -> impl Iterator<Item = &'static str> {
        let named = general.relations.yields_to.iter().copied();
        named.chain(self.docs().filter(|doc| doc.relations.precedes.contains(&general.id)).map(|doc| doc.id))
    }

    /// The rules that give way, each before those that it gives way to: what a finding took over stays with whoever that
    /// finding gives way to in its turn.
    pub fn from_the_most_general(self) -> Vec<&'static Doc> {
        let mut order: Vec<&'static Doc> = Vec::new();
        let mut open: Vec<&'static Doc> = self.docs().collect();
        while !open.is_empty() {
            let waits = |doc: &&'static Doc| open.iter().any(|other| self.closer(other).any(|id| id == doc.id));
            // In a circle, which the tests rule out, nobody is first: then all that are left are.
            let (rest, free): (Vec<_>, Vec<_>) = open.iter().copied().partition(|doc| waits(&doc));
            let (free, rest) = if free.is_empty() { (rest, free) } else { (free, rest) };
            order.extend(free);
            open = rest;
        }
        order
    }

    /// Rules beside which one of `second`'s findings counts some of the same time.
    pub fn beside(self, second: &'static Doc) -> impl Iterator<Item = &'static str> {
        self.closer(second).chain(second.relations.shares_time_with.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;
    use crate::diagnose::rules::CATALOGUE;

    #[test]
    fn every_relation_names_a_rule_and_stands_once() {
        let mut pairs: FxHashSet<(&str, &str)> = FxHashSet::default();
        for doc in CATALOGUE.docs() {
            let Relations { yields_to, precedes, shares_time_with, .. } = doc.relations;
            for id in yields_to.iter().chain(precedes).chain(shares_time_with) {
                assert!(CATALOGUE.doc(id).is_some(), "{} names {id}, which no rule is", doc.id);
                assert_ne!(doc.id, *id);
            }
            let closer = yields_to.iter().map(|id| (*id, doc.id)).chain(precedes.iter().map(|id| (doc.id, *id)));
            for (specific, general) in closer.chain(shares_time_with.iter().map(|id| (*id, doc.id))) {
                assert!(pairs.insert((specific, general)), "{specific} and {general} are told twice");
                assert!(!pairs.contains(&(general, specific)), "{specific} and {general} give way to each other");
            }
        }
        assert!(pairs.len() > 40, "{} relations", pairs.len());
    }

    #[test]
    fn who_gives_way_is_asked_before_whom_it_gives_way_to() {
        let order = CATALOGUE.from_the_most_general();
        assert_eq!(order.len(), CATALOGUE.docs().count());
        let place = |id: &str| order.iter().position(|doc| doc.id == id).unwrap();
        for doc in CATALOGUE.docs() {
            for closer in CATALOGUE.closer(doc) {
                assert!(place(doc.id) < place(closer), "{} and {closer} stand in a circle", doc.id);
            }
        }
    }

    #[test]
    fn a_vendor_is_asked_by_any_spelling() {
        assert!(Vendors::All.include("x"));
        assert!(Vendors::Only(&["ascend"]).include("Ascend") && !Vendors::Only(&["ascend"]).include("amd"));
    }
}
