//! The transfers of the steps that count: how long the data of each collective took once all its ranks were there, beside what
//! its size takes on the link.

use model::{Ns, SliceId, StringId};
use rustc_hash::FxHashMap;

use super::{
    link::{self, Link, Message, Protocol, Sizes},
    reading,
};
use crate::{
    analysis::{Class, Rank, job::Instance},
    diagnose::rule::Context,
};

/// One collective of a step, of which all ranks were captured.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Its operation on the rank.
    pub op: u32,
    /// Its row.
    pub row: SliceId,
    /// Name of the kernel.
    pub name: StringId,
    /// Its group and kind, by which instances are comparable.
    pub kind: (usize, u32),
    /// Whether one rank sends to one other.
    pub is_pair: bool,
    /// Time the data took, ns.
    pub ns: Ns,
    /// Of that, time in which the rank does nothing else, ns.
    pub exposed: Ns,
    /// Its size, if it is known.
    pub message: Option<Message>,
    /// What the library's model gives that size on the published link, ns, and by which protocol.
    pub best: Option<(f64, Protocol)>,
}

impl Transfer {
    /// So many times the best that the link allows.
    pub fn ratio(&self) -> Option<f64> {
        self.best.map(|(best, _)| self.ns as f64 / best.max(1.0))
    }
}

/// Those of the steps of a class that count, in the order of the steps. `index` is the rank's in the analysis.
pub fn of(cx: &Context<'_>, index: usize, rank: &Rank, class: &Class) -> Vec<Transfer> {
    let job = &cx.analysis.job;
    let mut instances: FxHashMap<u32, &Instance> = FxHashMap::default();
    for instance in &job.instances {
        let member = instance.members.iter().find(|m| m.rank == index);
        instances.extend(member.map(|member| (member.op, instance)));
    }
    if instances.is_empty() {
        return Vec::new();
    }
    let (sizes, link) = (Sizes::of(cx, rank, class), Link::of(cx, rank));
    let mut found = Vec::new();
    for step in rank.steady_steps(class) {
        for (i, op, exclusive) in reading::accounted(rank, step) {
            let Some(instance) = instances.get(&(i as u32)) else { continue };
            let Some(group) = job.groups.get(instance.group).filter(|group| group.is_complete()) else { continue };
            let ranks = group.size.unwrap_or(group.ranks.len() as u32);
            let message = sizes.message(step, i as u32, ranks);
            let best = link
                .zip(message)
                .filter(|_| link::in_one_node(cx, instance))
                .and_then(|(link, message)| link.best(message));
            let ns = instance.transfer.min(op.dur());
            found.push(Transfer {
                op: i as u32,
                row: op.slice,
                name: op.name,
                kind: (instance.group, instance.kind),
                is_pair: group.is_pair,
                ns,
                exposed: ns.min(exclusive.busy),
                message,
                best,
            });
        }
    }
    found
}
