//! Which owner of idle time a difference is told by: the one whose time changed.

use std::collections::BTreeMap;

use model::Ns;

use crate::{analysis::owners, compare::chosen::Chosen};

/// Owners of a side's idle time in a bucket, and that time, ns.
pub(super) fn owned<'a>(side: &'a Chosen<'_>, bucket: &'a str) -> impl Iterator<Item = (&'a str, Ns)> {
    let labels = &side.analysis.host_labels;
    let own = side.rank.owners.groups.iter().filter(move |group| group.bucket.name(labels) == bucket);
    own.filter_map(|group| Some((side.trace.strings.get(group.owner?), group.ns)))
}

/// Share of a term's difference from which the owner whose time changed most stands for it; own value.
const MOST_OF_IT: f64 = 0.3;

/// The owner, by a name without its place, whose time per step changed most between the sides, where that is much of what the
/// term differs by: `delta` ns.
pub(super) fn changed_owner(sides: &[Chosen<'_>; 2], bucket: &str, delta: Ns) -> Option<String> {
    let [a, b] = sides.each_ref().map(|side| {
        let steps = side.rank.owners.steps.max(1) as f64;
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        owned(side, bucket).for_each(|(name, ns)| *sums.entry(placeless(name)).or_default() += ns as f64 / steps);
        sums
    });
    most_changed(&a, &b, delta)
}

/// The name whose value changed most from `a` to `b`, where it changed with `delta` and is much of it.
fn most_changed(a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>, delta: Ns) -> Option<String> {
    let names = a.keys().chain(b.keys());
    let by = |name: &String| b.get(name).copied().unwrap_or(0.0) - a.get(name).copied().unwrap_or(0.0);
    // Of equals the first name, so that either order of the sides gives the same.
    let most = names.max_by(|x, y| by(x).abs().total_cmp(&by(y).abs()).then_with(|| y.cmp(x)))?;
    let change = by(most);
    let is_of_it = delta != 0 && (change < 0.0) == (delta < 0);
    (is_of_it && change.abs() >= MOST_OF_IT * delta.abs() as f64).then(|| most.clone())
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

    fn owners(all: &[(&str, f64)]) -> BTreeMap<String, f64> {
        all.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect()
    }

    /// A new pause of the collector was told under the name of the operator that had most time on both sides.
    #[test]
    fn the_owner_of_a_difference_is_the_one_that_changed() {
        let (a, b) = (owners(&[("addmm", 9_000.0)]), owners(&[("addmm", 9_010.0), ("collect", 3_000.0)]));
        assert_eq!(most_changed(&a, &b, 3_010).as_deref(), Some("collect"));
        assert_eq!(most_changed(&b, &a, -3_010).as_deref(), Some("collect"), "either way round");
        assert_eq!(most_changed(&a, &b, -3_010), None, "it changed the other way");
        assert_eq!(most_changed(&a, &b, 30_000), None, "it is little of it");
        let (x, y) = (owners(&[("a", 1.0), ("b", 1.0)]), owners(&[("a", 5.0), ("b", 5.0)]));
        assert_eq!(most_changed(&x, &y, 8), most_changed(&y, &x, -8));
    }

    #[test]
    fn a_step_has_the_name_of_every_other_step() {
        assert_eq!(placeless("ProfilerStep#9"), placeless("ProfilerStep#16"));
        assert_ne!(placeless("stage#a"), placeless("stage#b"));
    }
}
