//! Where in the host's program an owner's time lies, and what it is named by.

use std::cmp::Reverse;

use model::{Ns, StringId};
use rustc_hash::FxHashMap;

use super::descend::Owned;
use crate::{
    cause::Site,
    ledger::{
        idle::Idle,
        names::{self, Key, Path},
    },
};

/// Frames of a path that are kept.
const PATH: usize = 4;
/// Share of an owner that was merged below which its record does not stand for all of it.
const ALONE: f64 = 0.85;
/// Records that are named where none holds half of the time.
const AMONG: usize = 2;
/// Share of the time from which one is worth its name.
const WORTH: f64 = 0.05;
/// Share of all idle time that the host explains from which a record is around everything, and names nothing.
const AROUND: f64 = 0.9;
/// Part of the idle time under a record that an owner has at least for the record to name it: else it names other costs as well.
const OWN: f64 = 0.75;
/// Share of an owner that no record covers from which the cost says so.
const BARE: f64 = 0.5;

/// The sites of a rank's idle time.
pub(super) struct Sites<'a> {
    /// The idle time.
    pub idle: &'a Idle<'a>,
    /// Whether a site, the innermost one or another, says where and not what.
    plumbing: &'a dyn Fn(Key, bool) -> bool,
    /// Whether it is the mark of a step.
    marks: &'a dyn Fn(Key) -> bool,
    /// Idle time that the host explains under each record, and in all, ns.
    under: FxHashMap<Key, Ns>,
    host: Ns,
}

/// Time by call path.
type Paths = FxHashMap<Path, Ns>;

impl<'a> Sites<'a> {
    pub(super) fn of(
        idle: &'a Idle<'a>,
        plumbing: &'a dyn Fn(Key, bool) -> bool,
        marks: &'a dyn Fn(Key) -> bool,
    ) -> Self {
        let host = || idle.parts.iter().filter(|part| part.kind.is_host() && part.path.is_some());
        let mut paths = Paths::default();
        for part in host() {
            if let Some(path) = part.path {
                *paths.entry(path).or_default() += part.span.len();
            }
        }
        Self { idle, plumbing, marks, under: under(idle, &paths), host: host().map(|part| part.span.len()).sum() }
    }

    /// The site of an owner: where the heaviest part of its time lies.
    pub(super) fn site(&self, owned: &Owned) -> Site {
        let idle = self.idle;
        let mut paths = Paths::default();
        for part in owned.parts.iter().filter_map(|part| idle.parts.get(*part as usize)) {
            if let Some(path) = part.path {
                *paths.entry(path).or_default() += part.span.len();
            }
        }
        let Some((path, _)) = paths.iter().max_by_key(|(path, ns)| (**ns, Reverse(**path))) else {
            return Site::default();
        };
        let bare =
            paths.iter().filter(|(path, _)| idle.names.along(**path).all(|key| idle.names.record_of(key).is_none()));
        let bare: Ns = bare.map(|(_, ns)| ns).sum();
        let Some(own) = owned.key else {
            if bare as f64 >= BARE * owned.ns as f64 {
                return Site::default();
            }
            return Site { among: self.among(&paths, owned.ns, None), ..Site::default() };
        };
        let record = |key: Option<Key>| key.and_then(|key| idle.names.record_of(key));
        // The path below the owner is not what the cost is named by.
        let along = idle.names.along(*path).skip_while(|key| *key != own).skip(1);
        let between = match idle.names.site(own) {
            Some(names::Site::Between { before, next, .. }) => Some((record(before), record(next))),
            _ => None,
        };
        let held = idle.names.record_of(own);
        // An owner of many callers is called from none of them.
        let callers = under(idle, &paths);
        let holds = |key: &Key| 2 * callers.get(key).copied().unwrap_or(0) >= owned.ns;
        let around: Vec<StringId> = along.filter(holds).filter_map(|key| idle.names.record_of(key)).collect();
        let path: Vec<StringId> = around.into_iter().skip_while(|name| Some(*name) == held).take(PATH).collect();
        let several = idle.names.is_several(own);
        if between.is_some() {
            return Site { record: held, between, path, several, among: Vec::new() };
        }
        let among = match self.is_around(own, owned.ns) {
            true => self.among(&paths, owned.ns, Some(own)),
            false => Vec::new(),
        };
        if !among.is_empty() {
            return Site { record: None, between, path: held.into_iter().chain(path).collect(), several, among };
        }
        Site { record: held, between, path, several, among: self.beside(&paths, owned) }
    }

    /// Whether a record holds all of the host's idle time, or much more than an owner: then it says nothing of that.
    fn is_around(&self, key: Key, ns: Ns) -> bool {
        let under = self.under.get(&key).copied().unwrap_or(0);
        under as f64 >= AROUND * self.host as f64 || (ns as f64) < OWN * under as f64
    }

    /// The record of a merged owner with its share, and the largest one beside it; nothing where the first stands for all.
    fn beside(&self, paths: &Paths, owned: &Owned) -> Vec<(StringId, f64)> {
        let idle = self.idle;
        let own = |path: &Path| owned.key.is_some_and(|key| idle.names.along(*path).any(|along| along == key));
        let (held, others): (Paths, Paths) = paths.iter().partition(|(path, _)| own(path));
        let share = held.values().sum::<Ns>() as f64 / owned.ns.max(1) as f64;
        let record = owned.key.and_then(|key| idle.names.record_of(key)).filter(|_| share < ALONE);
        let other = || self.among(&others, owned.ns, None).into_iter().find(|(name, _)| Some(*name) != record);
        record.map_or_else(Vec::new, |record| [(record, share)].into_iter().chain(other()).collect())
    }

    /// The records that hold the most of some time, below `own` if that is given, each with its share of `total`.
    fn among(&self, paths: &Paths, total: Ns, own: Option<Key>) -> Vec<(StringId, f64)> {
        let below: Vec<(Vec<Key>, Ns)> = paths.iter().map(|(path, ns)| (self.below(*path, own), *ns)).collect();
        let mut left: Vec<(&[Key], Ns)> = below.iter().map(|(keys, ns)| (keys.as_slice(), *ns)).collect();
        let share = |ns: Ns| ns as f64 / total.max(1) as f64;
        let around = own.and_then(|own| self.idle.names.record_of(own));
        // What is around nearly all of it is no part.
        while let Some((key, _)) = first(&left, |ns| share(ns) >= AROUND) {
            left = inside(&left, key);
        }
        let mut out: Vec<(StringId, f64)> = Vec::new();
        while let Some((key, ns)) = first(&left, |ns| share(ns) >= WORTH) {
            let (mut deepest, mut held, mut within) = (key, ns, inside(&left, key));
            while let Some((key, ns)) = first(&within, |ns| 2 * ns >= held) {
                (deepest, held) = (key, ns);
                within = inside(&within, key);
            }
            left.retain(|(keys, _)| keys.first() != Some(&key));
            // Its own time between two records inside it says no more than its name.
            let name = self.idle.names.record_of(deepest).filter(|name| Some(*name) != around);
            let Some(name) = name else { continue };
            if out.iter().all(|(known, _)| *known != name) {
                out.push((name, share(held)));
            }
            if out.len() == AMONG {
                break;
            }
        }
        out.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        out
    }

    /// The sites of a path that say what is done, outermost first; below `own` if that is given.
    fn below(&self, path: Path, own: Option<Key>) -> Vec<Key> {
        let innermost = self.idle.names.along(path).next();
        let along = self.idle.names.along(path).take_while(|key| Some(*key) != own);
        // A frame that only passes a call on still tells what runs if nothing lies inside it.
        let says = |key: &Key| match Some(*key) == innermost {
            true => !(self.marks)(*key),
            false => !(self.plumbing)(*key, false),
        };
        let mut keys: Vec<Key> = along.filter(says).collect();
        keys.reverse();
        keys
    }
}

/// The first site of the most time, if that is `enough`.
fn first(paths: &[(&[Key], Ns)], enough: impl Fn(Ns) -> bool) -> Option<(Key, Ns)> {
    let mut sums: FxHashMap<Key, Ns> = FxHashMap::default();
    for (keys, ns) in paths {
        if let Some(key) = keys.first() {
            *sums.entry(*key).or_default() += ns;
        }
    }
    sums.into_iter().max_by_key(|(key, ns)| (*ns, Reverse(*key))).filter(|(_, ns)| enough(*ns))
}

/// What lies inside a first site.
fn inside<'k>(paths: &[(&'k [Key], Ns)], key: Key) -> Vec<(&'k [Key], Ns)> {
    let own = paths.iter().filter(|(keys, _)| keys.first() == Some(&key));
    own.map(|(keys, ns)| (keys.get(1..).unwrap_or_default(), *ns)).collect()
}

/// Time under each record of some paths.
fn under(idle: &Idle<'_>, paths: &Paths) -> FxHashMap<Key, Ns> {
    let mut out: FxHashMap<Key, Ns> = FxHashMap::default();
    for (path, ns) in paths {
        let mut keys: Vec<Key> = idle.names.along(*path).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            *out.entry(key).or_default() += ns;
        }
    }
    out
}
