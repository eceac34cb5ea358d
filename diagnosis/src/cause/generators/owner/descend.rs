//! From the heaviest kind of idle time to the deepest site that holds half of it.

use model::Ns;
use rustc_hash::FxHashMap;

use crate::ledger::{
    idle::{Idle, Kind},
    names::{Key, Path},
};

/// Owners of one rank that are looked for.
const MOST: usize = 13;
/// Smallest owner, in parts of the counted time.
const SMALLEST: Ns = 200;

/// Idle time of one owner on one rank.
pub struct Owned {
    /// Kind of the idle time.
    pub kind: Kind,
    /// The site; `None` where no site holds half of the kind.
    pub key: Option<Key>,
    /// Positions in the ledger's parts.
    pub parts: Vec<u32>,
    /// Its time, ns.
    pub ns: Ns,
}

/// Parts of one kind on one path.
struct Group {
    kind: Kind,
    /// Sites outermost first, each once.
    keys: Vec<Key>,
    ns: Ns,
    parts: Vec<u32>,
}

/// The owners of the idle time, disjoint, in the order in which they were found. `plumbing` says of a site, and whether it is the
/// innermost one, that it owns nothing.
pub fn descend(idle: &Idle<'_>, counted: Ns, plumbing: &dyn Fn(Key, bool) -> bool) -> Vec<Owned> {
    let mut left = groups(idle, plumbing);
    let mut out = Vec::new();
    while let Some((kind, tot)) = heaviest(&left) {
        if tot.saturating_mul(SMALLEST) < counted || out.len() >= MOST {
            break;
        }
        let mut deepest: FxHashMap<Key, usize> = FxHashMap::default();
        for group in &left {
            for (depth, key) in group.keys.iter().enumerate() {
                let known = deepest.entry(*key).or_default();
                *known = (depth + 1).max(*known);
            }
        }
        let mut chosen: Vec<usize> = (0..left.len()).filter(|g| left[*g].kind == kind).collect();
        let (mut key, mut ns, mut depth) = (None, tot, 0);
        loop {
            let mut inside: FxHashMap<Key, Ns> = FxHashMap::default();
            for group in chosen.iter().filter_map(|g| left.get(*g)) {
                for key in &group.keys {
                    *inside.entry(*key).or_default() += group.ns;
                }
            }
            // Of a chain half of the whole: else what all launches have in common wins over the launching itself.
            let half = if kind == Kind::Chain { tot } else { ns };
            let depth_of = |key: &Key| deepest.get(key).copied().unwrap_or(0);
            let owns = |(key, ns): &(Key, Ns)| {
                2 * *ns >= half && depth_of(key) > depth && !(kind == Kind::Chain && idle.generic.contains(key))
            };
            let next =
                inside.into_iter().filter(owns).max_by_key(|(key, ns)| (depth_of(key), *ns, std::cmp::Reverse(*key)));
            let Some((found, time)) = next else { break };
            (key, ns, depth) = (Some(found), time, depth_of(&found));
            chosen.retain(|g| left.get(*g).is_some_and(|group| group.keys.contains(&found)));
        }
        if ns.saturating_mul(SMALLEST) < counted {
            break;
        }
        let mut taken = chosen.iter().copied().peekable();
        let mut parts = Vec::new();
        let mut at = 0;
        left.retain_mut(|group| {
            let goes = taken.next_if_eq(&at).is_some();
            at += 1;
            if goes {
                parts.append(&mut group.parts);
            }
            !goes
        });
        parts.sort_unstable();
        out.push(Owned { kind, key, parts, ns });
    }
    out
}

fn heaviest(left: &[Group]) -> Option<(Kind, Ns)> {
    let mut kinds: FxHashMap<Kind, Ns> = FxHashMap::default();
    for group in left {
        *kinds.entry(group.kind).or_default() += group.ns;
    }
    kinds.into_iter().max_by_key(|(kind, ns)| (*ns, std::cmp::Reverse(*kind)))
}

fn groups(idle: &Idle<'_>, plumbing: &dyn Fn(Key, bool) -> bool) -> Vec<Group> {
    let mut at: FxHashMap<(Kind, Option<Path>), usize> = FxHashMap::default();
    let mut out: Vec<Group> = Vec::new();
    let mut known: FxHashMap<(Key, bool), bool> = FxHashMap::default();
    for (index, part) in (0u32..).zip(&idle.parts) {
        let place = *at.entry((part.kind, part.path)).or_insert_with(|| {
            let mut keys: Vec<Key> = part.path.map(|path| idle.names.along(path).collect()).unwrap_or_default();
            let innermost = keys.first().copied();
            keys.reverse();
            let mut seen = rustc_hash::FxHashSet::default();
            keys.retain(|key| {
                let asked = (*key, innermost == Some(*key));
                seen.insert(*key) && !*known.entry(asked).or_insert_with(|| plumbing(asked.0, asked.1))
            });
            out.push(Group { kind: part.kind, keys, ns: 0, parts: Vec::new() });
            out.len() - 1
        });
        if let Some(group) = out.get_mut(place) {
            group.ns = group.ns.saturating_add(part.span.len());
            group.parts.push(index);
        }
    }
    out
}
