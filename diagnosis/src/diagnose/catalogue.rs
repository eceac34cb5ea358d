//! The rules as those know them who judge findings: by what each says of itself, and none by name.

use super::{
    relations::{Feeds, Role},
    rule::{Doc, Rule},
};

/// The rules of a catalogue.
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
    use model::Area;
    use rustc_hash::FxHashSet;

    use super::*;
    use crate::{
        analysis::Layer,
        diagnose::{relations::Relations, rules::CATALOGUE},
    };

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
    fn every_rule_of_communication_feeds_its_light() {
        for doc in CATALOGUE.docs().filter(|doc| doc.layer == Layer::Communication) {
            assert!(CATALOGUE.feeds(doc.id, Feeds::Area(Area::Communication)), "{}", doc.id);
        }
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
}
