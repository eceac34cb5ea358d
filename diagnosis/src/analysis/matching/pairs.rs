//! Sends and receives: who speaks to whom.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::{Call, Recorded, by_number_or_order, by_order};
use crate::analysis::job::Job;

/// Whether the name of an operation says that it sends, or that it receives; `None` for one that does both.
pub(super) fn sends(name: &str) -> Option<bool> {
    let name = name.to_ascii_lowercase();
    let (sends, receives) = (name.contains("send"), name.contains("recv") || name.contains("receive"));
    (sends != receives).then_some(sends)
}

/// Matches the sends and receives of a communicator. Of more than two ranks nobody says which of them a call speaks to: the
/// stages of a pipeline speak to the next one, so what one rank sends goes with what its neighbour receives, as far as the two
/// leave together.
pub(super) fn match_all(job: &mut Job, name: Option<String>, recorded: Recorded) {
    if recorded.calls.len() == 2 {
        by_number_or_order(job, name, Recorded { size: Some(2), ..recorded });
    } else if recorded.calls.len() > 2 {
        neighbours(job, name, recorded.calls);
    }
}

fn neighbours(job: &mut Job, name: Option<String>, calls: BTreeMap<usize, Vec<Call>>) {
    let ranks: Vec<usize> = calls.keys().copied().collect();
    let mut taken: FxHashSet<(usize, u32)> = FxHashSet::default();
    for (pair, forward) in ranks.windows(2).flat_map(|pair| [(pair, true), (pair, false)]) {
        let [a, b] = *pair else { continue };
        let of = |rank: usize, sends: bool| -> Vec<Call> {
            let own = calls.get(&rank).into_iter().flatten();
            let fits = |call: &&Call| call.sends.is_none_or(|it| it == sends) && !taken.contains(&(rank, call.op));
            own.filter(fits).copied().collect()
        };
        let calls = BTreeMap::from([(a, of(a, forward)), (b, of(b, !forward))]);
        let (groups, instances) = (job.groups.len(), job.instances.len());
        if calls.values().all(|calls| !calls.is_empty()) {
            // Without a name, so that leaving together is what makes them one.
            by_order(job, None, Recorded { size: Some(2), calls });
        }
        job.groups.iter_mut().skip(groups).for_each(|group| group.name.clone_from(&name));
        let members = job.instances.iter().skip(instances).flat_map(|instance| &instance.members);
        taken.extend(members.map(|member| (member.rank, member.op)));
    }
}
