//! Idle time that has the same owner, added up.

use model::{Category, Ns, SliceId, StringId};
use rustc_hash::FxHashMap;

use super::{Found, HostLabel};
use crate::{
    analysis::{
        bucket::{Bucket, CopyDir},
        timeline::{DeviceOp, OpKind},
    },
    platform::CanonicalOp,
};

/// Groups that are kept; the rest is one sum.
const MOST: usize = 64;
/// Records around an owner that are named.
pub(super) const PATH: usize = 3;
/// Names of children that are kept.
const CHILDREN: usize = 3;
/// Slices that stand for a group.
const SLICES: usize = 8;

/// What kind of operation ends a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    /// An operation that computes; whether a graph replay launched it.
    Compute(CanonicalOp, bool),
    /// A collective or transfer; whether a graph replay launched it.
    Transfer(CanonicalOp, bool),
    /// A copy or fill.
    Copy(CopyDir),
    /// A graph replay recorded as one row.
    Graph,
}

impl Ending {
    pub(super) fn of(op: &DeviceOp) -> Self {
        match op.kind {
            OpKind::Compute => Self::Compute(op.op, op.in_graph),
            OpKind::Comm => Self::Transfer(op.op, op.in_graph),
            OpKind::Copy(dir) => Self::Copy(dir),
            OpKind::Opaque => Self::Graph,
        }
    }

    /// Name in reports: the operator, the direction of a copy, `graph` for a replay.
    pub fn name(self) -> String {
        match self {
            Self::Compute(op, false) | Self::Transfer(op, false) => op.name().to_owned(),
            Self::Compute(op, true) | Self::Transfer(op, true) => format!("graph: {}", op.name()),
            Self::Copy(dir) => dir.name().to_owned(),
            Self::Graph => "graph".to_owned(),
        }
    }
}

/// Idle time of one bucket that has one owner and ends with one kind of operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Bucket; of the host's own code the one with the most time.
    pub bucket: Bucket,
    /// Name of the owner; absent where no record of the host says anything.
    pub owner: Option<StringId>,
    /// What kind of record it is.
    pub kind: Option<Category>,
    /// Activity that the platform packs know it by.
    pub activity: Option<HostLabel>,
    /// Whether the owner spans the whole step, so that nothing narrower is known.
    pub wraps: bool,
    /// The records around the owner, innermost first.
    pub around: Vec<StringId>,
    /// What ends the gaps.
    pub ended_by: Option<Ending>,
    /// Gaps, or parts of gaps.
    pub count: u64,
    /// Their time, ns.
    pub ns: Ns,
    /// The longest of them, ns.
    pub longest: Ns,
    /// What is directly inside the owner meanwhile: name, how often, ns; longest first.
    pub children: Vec<(StringId, u64, Ns)>,
    /// The owner's longest record, and operations that end such gaps.
    pub slices: Vec<SliceId>,
}

type Key = (Option<StringId>, Option<Ending>, Option<Bucket>);

/// Groups while they are added up.
#[derive(Default)]
pub(super) struct Groups(FxHashMap<Key, Draft>);

struct Draft {
    group: Group,
    buckets: FxHashMap<Bucket, Ns>,
    children: FxHashMap<StringId, (u64, Ns)>,
}

impl Groups {
    /// Adds a part of a gap, its owner, and a slice that stands for it.
    pub(super) fn add(&mut self, bucket: Bucket, ending: Option<Ending>, ns: Ns, found: Option<(&Found, SliceId)>) {
        let owner = found.map(|(found, _)| found.owner);
        // Buckets of the host's own code differ by what kind of record lies innermost, which is no difference of the owner.
        let own = |bucket: &Bucket| !matches!(bucket, Bucket::Host(_)) || owner.is_none();
        let key = (owner.map(|owner| owner.name), ending, Some(bucket).filter(own));
        let draft = self.0.entry(key).or_insert_with(|| Draft {
            group: Group {
                bucket,
                owner: owner.map(|owner| owner.name),
                kind: found.map(|(found, _)| found.category),
                activity: owner.and_then(|owner| owner.activity),
                wraps: owner.is_some_and(|owner| owner.wraps),
                around: Vec::new(),
                ended_by: ending,
                count: 0,
                ns: 0,
                longest: 0,
                children: Vec::new(),
                slices: Vec::new(),
            },
            buckets: FxHashMap::default(),
            children: FxHashMap::default(),
        });
        let group = &mut draft.group;
        group.count += 1;
        group.ns = group.ns.saturating_add(ns);
        *draft.buckets.entry(bucket).or_default() += ns;
        if let Some((found, slice)) = found {
            if ns >= group.longest {
                group.around.clone_from(&found.around);
                group.slices.retain(|known| *known != found.owner.slice);
                group.slices.insert(0, found.owner.slice);
                group.slices.truncate(SLICES);
            }
            if group.slices.len() < SLICES && !group.slices.contains(&slice) {
                group.slices.push(slice);
            }
            for (name, ns) in &found.children {
                let (count, sum) = draft.children.entry(*name).or_default();
                *count += 1;
                *sum += ns;
            }
        }
        group.longest = group.longest.max(ns);
    }

    /// The groups, longest first, and the time of those that are not kept.
    pub(super) fn finish(self) -> (Vec<Group>, Ns) {
        let close = |draft: Draft| {
            let mut group = draft.group;
            let most = draft.buckets.into_iter().max_by_key(|(bucket, ns)| (*ns, std::cmp::Reverse(*bucket)));
            group.bucket = most.map_or(group.bucket, |(bucket, _)| bucket);
            let mut children: Vec<(StringId, u64, Ns)> =
                draft.children.into_iter().map(|(name, (count, ns))| (name, count, ns)).collect();
            children.sort_by_key(|(name, count, ns)| (std::cmp::Reverse((*ns, *count)), *name));
            children.truncate(CHILDREN);
            group.children = children;
            group
        };
        let mut groups: Vec<Group> = self.0.into_values().map(close).filter(|group| group.ns > 0).collect();
        groups.sort_by_key(|g| (std::cmp::Reverse(g.ns), g.owner, g.ended_by, g.bucket));
        let rest = groups.iter().skip(MOST).map(|group| group.ns).fold(0, Ns::saturating_add);
        groups.truncate(MOST);
        (groups, rest)
    }
}
