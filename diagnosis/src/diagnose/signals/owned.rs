//! Idle time by what the host was doing: which gaps an owner has, how it is called, and what would be without it.

use model::{Ns, SliceId, Span, StringId};
use rustc_hash::FxHashMap;

use super::{change, reading};
use crate::{
    analysis::{
        Bucket, Class, Edit, Owner, Rank, Step,
        idle::Gap,
        owners::{Group, short},
    },
    diagnose::Context,
};

/// Tenths of an owner's time that the group with most of it has where that group speaks for all of them; own value.
const NEARLY_ALL: Ns = 8;

/// Activities that turn what arrives into what the model takes: data loading, tokenizing, decoding and scaling of images and
/// sound.
const INPUT: [&str; 3] = ["load_batch", "tokenizer", "preprocess"];

/// What stays of host work that is moved off the launching thread or done once for all steps, in percent; own value: the same
/// model's forward pass on a healthy stack needs 2 % of the time that one with a slow prologue does, and something else must
/// still hand over what was made ready.
const LEFT: Ns = 20;

/// Host time in the gaps of steps that one rule claims.
#[derive(Default)]
pub struct Owned {
    /// The parts, each on its thread.
    spans: Vec<(model::TrackId, Span)>,
    /// Time by the owner's name.
    names: FxHashMap<StringId, (Ns, u64)>,
    /// Time of all of them, ns.
    pub total: Ns,
    /// The time of each gap, ns.
    pub pauses: Vec<Ns>,
    /// Operations that end the gaps, in order of time.
    pub rows: Vec<SliceId>,
}

/// What idle time an owner has most of, in words.
pub struct Spoken {
    /// The owner's name and the records around it: `inner ← outer`.
    pub place: String,
    /// The most frequent records inside it, such as `1207 × dict.__getitem__`; empty where it has none.
    pub children: String,
    /// Its time, ns.
    pub ns: Ns,
}

impl Owned {
    /// The parts of the gaps of `steps` that `pick` takes, each cut to what of it counts.
    pub fn of<'a>(
        rank: &Rank,
        steps: impl Iterator<Item = &'a Step>,
        pick: impl Fn(&Gap, Option<&Owner>, Bucket, Span) -> Option<Span>,
    ) -> Self {
        let mut owned = Self::default();
        for gap in steps.flat_map(|step| reading::gaps(rank, step)) {
            let owner = rank.owner_of(gap);
            let parts = gap.parts.iter().filter_map(|(bucket, part)| pick(gap, owner, *bucket, *part));
            let parts: Vec<Span> = parts.filter(|part| !part.is_empty()).collect();
            let ns: Ns = parts.iter().map(|part| part.len()).sum();
            if ns == 0 {
                continue;
            }
            owned.total += ns;
            owned.pauses.push(ns);
            let op = reading::owner(rank, gap);
            owned.rows.extend(op.map(|op| op.slice));
            let track = owner.map(|o| o.track).or_else(|| Some(rank.timeline.call(op?)?.track));
            owned.spans.extend(parts.into_iter().filter_map(|part| Some((track?, part))));
            if let Some(owner) = owner.filter(|owner| !owner.wraps) {
                let (sum, count) = owned.names.entry(owner.name).or_default();
                *sum += ns;
                *count += 1;
            }
        }
        owned
    }

    /// Mean of the steps that count, ns per step.
    pub fn per_step(&self, class: &Class) -> Ns {
        self.total / class.steady.max(1) as Ns
    }

    /// The longest of the gaps, ns.
    pub fn longest(&self) -> Ns {
        self.pauses.iter().copied().max().unwrap_or(0)
    }

    /// The owner with the most of the time.
    pub fn spoken(&self, cx: &Context<'_>, rank: &Rank) -> Option<Spoken> {
        let text = |name: StringId| cx.trace.strings.get(name);
        let most = self.names.iter().max_by_key(|(name, (ns, _))| (*ns, std::cmp::Reverse(text(**name))));
        let (name, (ns, _)) = most?;
        Some(spoken(cx, rank, *name, *ns))
    }

    /// Most of the time is not spent any more; hopefully none of it is.
    pub fn gone(&self) -> Vec<Edit> {
        let to = |percent| change::shortened(self.spans.iter().copied(), percent);
        to(LEFT).into_iter().chain(change::hoped(to(0))).collect()
    }
}

/// How an owner is called.
pub fn spoken(cx: &Context<'_>, rank: &Rank, name: StringId, ns: Ns) -> Spoken {
    let text = |name: StringId| short(cx.trace.strings.get(name));
    let groups = || rank.owners.groups.iter().filter(|group| group.owner == Some(name));
    let group = groups().next();
    // What stands around the largest group is said of all only where it stands around nearly all.
    let time = |of: &Group| groups().filter(|group| group.around == of.around).map(|group| group.ns).sum::<Ns>();
    let nearly_all = |of: &&Group| time(of).saturating_mul(10) >= ns.saturating_mul(NEARLY_ALL);
    let around = group.filter(nearly_all).map_or(&[][..], |group| &group.around).iter().take(2).map(|name| text(*name));
    let place: Vec<String> = std::iter::once(text(name)).chain(around).collect();
    let children = group.map_or(&[][..], |group| &group.children).iter();
    let gaps = group.map_or(1, |group| group.count.max(1));
    let children: Vec<String> =
        children.map(|(name, count, _)| format!("{} × {}", (count / gaps).max(1), text(*name))).collect();
    Spoken { place: place.join(" ← "), children: children.join(", "), ns }
}

/// Whether a part of a gap goes to the input pipeline: by its own label, or by what owns the host's time.
pub fn is_input(cx: &Context<'_>, owner: Option<&Owner>, bucket: Bucket) -> bool {
    let input = |bucket| INPUT.iter().any(|label| reading::is_host(cx.analysis, bucket, label));
    let by_owner = || owner.and_then(|o| o.activity).is_some_and(|label| input(Bucket::Host(label)));
    input(bucket) || (is_code(cx, bucket) && by_owner())
}

/// Whether a part of a gap is code that the host runs, and nothing that stops it.
pub fn is_code(cx: &Context<'_>, bucket: Bucket) -> bool {
    let stopped = ["gc", "offcpu", "blocked"].iter().any(|label| reading::is_host(cx.analysis, bucket, label));
    matches!(bucket, Bucket::Host(_)) && !stopped
}
