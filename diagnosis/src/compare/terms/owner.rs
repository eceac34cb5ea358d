//! Which owner of idle time a difference is told by: the one whose time changed.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{Ns, StringId};
use rustc_hash::FxHashMap;

use crate::{analysis::owners, compare::chosen::Chosen};

/// Owners of a side's idle time in a bucket, and that time, ns.
fn owned<'a>(side: &'a Chosen<'_>, bucket: &'a str) -> impl Iterator<Item = (&'a str, Ns)> {
    let labels = &side.analysis.host_labels;
    let own = side.rank.owners.groups.iter().filter(move |group| group.bucket.name(labels) == bucket);
    own.filter_map(|group| Some((side.trace.strings.get(group.owner?), group.ns)))
}

/// Records that are innermost in a side's idle time in a bucket, and that time, ns.
fn innermost<'a>(side: &'a Chosen<'_>, bucket: &'a str) -> impl Iterator<Item = (&'a str, Ns)> {
    let labels = &side.analysis.host_labels;
    let own = side.rank.owners.innermost.iter().filter(move |(own, ..)| own.name(labels) == bucket);
    own.map(|(_, name, ns)| (side.trace.strings.get(*name), *ns))
}

/// Share of a term's difference from which the owner whose time changed most stands for it; own value.
const MOST_OF_IT: f64 = 0.3;
/// Changes beyond this multiple of the difference are gaps that found another owner, and no time that came or went: own value.
const MOVED: f64 = 1.25;
/// What the innermost record must explain of what the owner of whole gaps does, to stand for it: own value.
const AS_MUCH: f64 = 0.8;

/// Time by name, ns per step.
type ByName = BTreeMap<String, f64>;

/// An owner whose time changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Changed {
    /// Its name without its place.
    name: String,
    /// By how much, ns per step.
    ns: f64,
    /// Whether it is the innermost record, which may cover little of each gap, and not the owner of whole gaps.
    innermost: bool,
}

impl Changed {
    /// The owner whose time per step changed most between the sides, where that is much of what the term differs by: `delta` ns.
    /// A record inside the owner of a gap is named where it is as much of the difference.
    pub(super) fn of(sides: &[Chosen<'_>; 2], bucket: &str, delta: Ns) -> Option<Self> {
        let whole = sides.each_ref().map(|side| per_step(side, owned(side, bucket)));
        let narrow = sides.each_ref().map(|side| per_step(side, innermost(side, bucket)));
        Self::either(&whole, &narrow, delta)
    }

    /// The one of the owners of whole gaps or of the innermost records.
    fn either(whole: &[ByName; 2], narrow: &[ByName; 2], delta: Ns) -> Option<Self> {
        let whole = most_changed(whole, delta)
            .filter(|(_, ns)| ns.abs() <= MOVED * delta.abs() as f64)
            .map(|(name, ns)| Self { name, ns, innermost: false });
        let narrow = most_changed(narrow, delta).map(|(name, ns)| Self { name, ns, innermost: true });
        match (whole, narrow) {
            (whole, Some(narrow)) if whole.as_ref().is_none_or(|w| narrow.ns.abs() >= AS_MUCH * w.ns.abs()) => {
                Some(narrow)
            }
            (whole, _) => whole,
        }
    }

    /// Its name on each side where the device waits for it: the same one on both where there is one, as a name stands for
    /// several places.
    pub(super) fn on<'a>(&self, sides: &'a [Chosen<'_>; 2], bucket: &'a str) -> [Option<&'a str>; 2] {
        let [a, b] = sides.each_ref().map(|side| {
            let mut own: Vec<(&str, Ns)> = match self.innermost {
                true => innermost(side, bucket).filter(|(name, _)| placeless(name) == self.name).collect(),
                false => owned(side, bucket).filter(|(name, _)| placeless(name) == self.name).collect(),
            };
            own.sort_by_key(|(name, ns)| (Reverse(*ns), *name));
            own
        });
        let of = |side: &[(&'a str, Ns)], name: &str| side.iter().find(|(own, _)| *own == name).map(|(_, ns)| *ns);
        let both = a.iter().filter_map(|(name, ns)| Some((*name, ns + of(&b, name)?)));
        let both = both.max_by_key(|(name, ns)| (*ns, Reverse(*name))).map(|(name, _)| name);
        [&a, &b].map(|side| both.or_else(|| side.first().map(|(name, _)| *name)))
    }

    /// Its name on a side that has such a record, whether or not the device waits for it.
    pub(super) fn runs_on<'a>(&self, side: &'a Chosen<'_>) -> Option<&'a str> {
        let mut known: FxHashMap<StringId, bool> = FxHashMap::default();
        let names = side.trace.lanes.iter().flat_map(|lane| &lane.name);
        let mut is_it =
            |id: &StringId| *known.entry(*id).or_insert_with(|| placeless(side.trace.strings.get(*id)) == self.name);
        names.copied().find(|id| is_it(id)).map(|id| side.trace.strings.get(id))
    }
}

/// Who owns most of a side's idle time in a bucket.
pub(super) fn first<'a>(side: &'a Chosen<'_>, bucket: &'a str) -> Option<&'a str> {
    owned(side, bucket).max_by_key(|(_, ns)| *ns).map(|(name, _)| name)
}

/// Time by name without its place, ns per step.
fn per_step<'a>(side: &Chosen<'_>, all: impl Iterator<Item = (&'a str, Ns)>) -> ByName {
    let steps = side.rank.owners.steps.max(1) as f64;
    let mut sums: ByName = BTreeMap::new();
    all.for_each(|(name, ns)| *sums.entry(placeless(name)).or_default() += ns as f64 / steps);
    sums
}

/// The name whose value changed most from the first to the second, and by how much, where it changed with `delta` and is much
/// of it.
fn most_changed([a, b]: &[ByName; 2], delta: Ns) -> Option<(String, f64)> {
    let names = a.keys().chain(b.keys());
    let by = |name: &String| b.get(name).copied().unwrap_or(0.0) - a.get(name).copied().unwrap_or(0.0);
    // Of equals the first name, so that either order of the sides gives the same.
    let most = names.max_by(|x, y| by(x).abs().total_cmp(&by(y).abs()).then_with(|| y.cmp(x)))?;
    let change = by(most);
    let is_of_it = delta != 0 && (change < 0.0) == (delta < 0);
    (is_of_it && change.abs() >= MOST_OF_IT * delta.abs() as f64).then(|| (most.clone(), change))
}

/// The name of an owner without folders, without the line of its file, which versions of one program move, and without the
/// number of a step.
pub(super) fn placeless(name: &str) -> String {
    let name = owners::short(name);
    let name = match name.rsplit_once('#') {
        Some((step, number)) if !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) => step.to_owned(),
        _ => name,
    };
    match name.split_once('(').and_then(|(file, rest)| Some((file.to_owned(), rest.split_once(')')?.1.to_owned()))) {
        Some((file, rest)) => file + &rest,
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(all: &[(&str, f64)]) -> ByName {
        all.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect()
    }

    /// A new pause of the collector was told under the name of the operator that had most time on both sides.
    #[test]
    fn the_owner_of_a_difference_is_the_one_that_changed() {
        let sides = [owners(&[("addmm", 9_000.0)]), owners(&[("addmm", 9_010.0), ("collect", 3_000.0)])];
        let mut back = sides.clone();
        back.reverse();
        let most = |sides, delta| most_changed(sides, delta).map(|(name, _)| name);
        assert_eq!(most(&sides, 3_010).as_deref(), Some("collect"));
        assert_eq!(most(&back, -3_010).as_deref(), Some("collect"), "either way round");
        assert_eq!(most(&sides, -3_010), None, "it changed the other way");
        assert_eq!(most(&sides, 30_000), None, "it is little of it");
        let alike = [owners(&[("a", 1.0), ("b", 1.0)]), owners(&[("a", 5.0), ("b", 5.0)])];
        let back = [alike[1].clone(), alike[0].clone()];
        assert_eq!(most(&alike, 8), most(&back, -8));
    }

    /// A pause in a record that covers less than half of its gaps was told under the name of the record that covers the most.
    #[test]
    fn a_record_inside_a_gap_stands_for_what_it_added() {
        let (norm, gaps) = ("layernorm.py: forward", "aten::addmm");
        let whole = [owners(&[(gaps, 90_000.0)]), owners(&[(gaps, 90_400.0)])];
        let narrow = [owners(&[(gaps, 60_000.0), (norm, 2_000.0)]), owners(&[(gaps, 60_000.0), (norm, 2_400.0)])];
        let named = |whole, narrow, delta| Changed::either(whole, narrow, delta).map(|changed| changed.name);
        assert_eq!(named(&whole, &narrow, 400).as_deref(), Some(norm));
        // Many records inside that each changed a little leave the difference to whoever holds them all.
        let many = [owners(&[("a", 10.0), ("b", 10.0)]), owners(&[("a", 160.0), ("b", 150.0)])];
        assert_eq!(named(&whole, &many, 400).as_deref(), Some(gaps));
        // More than the whole difference is a gap that found another owner.
        let moved = [owners(&[("forward", 90_000.0)]), owners(&[("forward", 92_000.0)])];
        assert_eq!(named(&moved, &narrow, 400).as_deref(), Some(norm));
        assert_eq!(named(&moved, &many, 10_000), None);
    }

    #[test]
    fn a_step_has_the_name_of_every_other_step() {
        assert_eq!(placeless("ProfilerStep#9"), placeless("ProfilerStep#16"));
        assert_ne!(placeless("stage#a"), placeless("stage#b"));
    }
}
