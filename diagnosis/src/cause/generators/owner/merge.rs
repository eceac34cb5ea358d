//! Owners that are one: those whose time lies in the same gaps, and neighbours in one record before the same operations.

use model::{Ns, StringId};
use rustc_hash::FxHashMap;

use super::descend::Owned;
use crate::{
    analysis::Rank,
    ledger::idle::{Idle, Kind},
};

/// Part of the smaller owner that lies in the other one's gaps, or between the same operations, for the two to be one.
const SAME: f64 = 0.8;
/// Part of both that the larger one has at most: what is far larger keeps its own name.
const LARGER: f64 = 0.75;
/// Gaps from which the operations around them tell a site.
const GAPS: usize = 5;

/// What is compared of an owner.
struct Traits {
    gaps: FxHashMap<u32, Ns>,
    sites: FxHashMap<(Option<StringId>, Option<StringId>), Ns>,
    parent: Option<crate::ledger::names::Path>,
}

/// Merges owners that are one into the first of them.
pub fn merge(owned: &mut Vec<Owned>, idle: &Idle<'_>, rank: &Rank) {
    let mut traits: Vec<Traits> = owned.iter().map(|one| traits_of(one, idle, rank)).collect();
    let mut i = 0;
    while i < owned.len() {
        let mut j = i + 1;
        while j < owned.len() {
            if is_one(owned, &traits, i, j) {
                let (other, of) = (owned.remove(j), traits.remove(j));
                if let Some((one, own)) = owned.get_mut(i).zip(traits.get_mut(i)) {
                    one.ns += other.ns;
                    one.parts.extend(other.parts);
                    one.parts.sort_unstable();
                    of.gaps.into_iter().for_each(|(gap, ns)| *own.gaps.entry(gap).or_default() += ns);
                    of.sites.into_iter().for_each(|(site, ns)| *own.sites.entry(site).or_default() += ns);
                }
            } else {
                j += 1;
            }
        }
        i += 1;
    }
}

fn is_one(owned: &[Owned], traits: &[Traits], i: usize, j: usize) -> bool {
    let (Some(a), Some(b), Some(of_a), Some(of_b)) = (owned.get(i), owned.get(j), traits.get(i), traits.get(j)) else {
        return false;
    };
    let of_host = |kind: Kind| matches!(kind, Kind::Host | Kind::Turnaround(_));
    if !of_host(a.kind) || !of_host(b.kind) || a.ns as f64 >= LARGER * (a.ns + b.ns) as f64 {
        return false;
    }
    let part = |ns: Ns, of: Ns| ns as f64 / of.max(1) as f64;
    let in_gaps: Ns = of_b.gaps.iter().filter(|(gap, _)| of_a.gaps.contains_key(gap)).map(|(_, ns)| ns).sum();
    let common = |own: &Traits, other: &Traits| -> Ns {
        own.sites.iter().filter(|(site, _)| other.sites.contains_key(site)).map(|(_, ns)| ns).sum()
    };
    let same_site = part(common(of_b, of_a), b.ns) >= SAME && part(common(of_a, of_b), a.ns) >= SAME;
    let often = of_a.gaps.len() >= GAPS && of_b.gaps.len() >= GAPS;
    part(in_gaps, b.ns) >= SAME || same_site && often && of_a.parent == of_b.parent
}

fn traits_of(owned: &Owned, idle: &Idle<'_>, rank: &Rank) -> Traits {
    let ops = &rank.timeline.ops;
    let (mut gaps, mut sites) = (FxHashMap::default(), FxHashMap::default());
    for part in owned.parts.iter().filter_map(|part| idle.parts.get(*part as usize)) {
        *gaps.entry(part.gap).or_default() += part.span.len();
        let next = rank.gaps.get(part.gap as usize).and_then(|gap| gap.owner);
        let name = |op: Option<u32>| op.and_then(|op| ops.get(op as usize)).map(|op| op.name);
        *sites.entry((name(next.and_then(|op| op.checked_sub(1))), name(next))).or_default() += part.span.len();
    }
    let first = owned.parts.first().and_then(|part| idle.parts.get(*part as usize)?.path);
    Traits { gaps, sites, parent: first.and_then(|path| idle.names.outer(path)) }
}
