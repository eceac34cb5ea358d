//! Sends and receives: who speaks to whom.

use std::collections::BTreeMap;

use model::Ns;
use rustc_hash::FxHashSet;

use super::{Call, Found, Recorded, add, align::LEAVE, by_number_or_order, by_order};
use crate::analysis::job::{Job, Member};

/// Places by which the counterpart of a call may lie before or after it among those of the other rank.
const NEAR: usize = 8;

/// Calls of each rank from which the times between them tell an exchange; heuristic.
const CALLS: usize = 3;
/// Part of the times between two calls that must be the same on all ranks for an exchange of all; heuristic.
const ALIKE: f64 = 0.75;

/// Whether sends and receives without a direction are one exchange of all their ranks, as an all-to-all is that the library runs by the
/// same kernel: all ranks leave each call together. Stages of a pipeline share a call with one neighbour at a time.
pub(super) fn is_exchange(recorded: &Recorded) -> bool {
    let mut ranks = recorded.calls.values();
    let Some(first) = ranks.next().filter(|calls| calls.len() >= CALLS) else { return false };
    let alike = |calls: &Vec<Call>| {
        let between = |calls: &[Call]| -> Vec<Ns> {
            calls.windows(2).filter_map(|w| Some(w.last()?.item.end.saturating_sub(w.first()?.item.end))).collect()
        };
        let pairs = between(first).into_iter().zip(between(calls));
        let same = pairs.filter(|(a, b)| a.saturating_sub(*b).saturating_abs() <= LEAVE).count();
        calls.len() == first.len() && same as f64 >= ALIKE * (first.len() - 1) as f64
    };
    let undirected = recorded.calls.values().flatten().all(|call| call.sends.is_none());
    recorded.calls.len() > 2 && undirected && ranks.all(alike)
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
    // The last stage hands tokens back to the first one.
    let around = ranks.last().zip(ranks.first()).map(|(last, first)| [*last, *first]);
    let next = ranks.windows(2).filter_map(|pair| <[usize; 2]>::try_from(pair).ok()).chain(around);
    for ([a, b], forward) in next.flat_map(|pair| [(pair, true), (pair, false)]) {
        let of = |rank: usize, sends: bool| -> Vec<Call> {
            let own = calls.get(&rank).into_iter().flatten();
            let fits = |call: &&Call| call.sends.is_none_or(|it| it == sends) && !taken.contains(&(rank, call.op));
            own.filter(fits).copied().collect()
        };
        let calls = BTreeMap::from([(a, of(a, forward)), (b, of(b, !forward))]);
        let (groups, instances) = (job.groups.len(), job.instances.len());
        if calls.values().flatten().any(|call| call.sends.is_none()) {
            // Both directions leave together: what is left of them does so by chance.
            if !forward {
                continue;
            }
            add(job, None, Some(2), leaving_together((a, calls.get(&a)), (b, calls.get(&b))));
        } else if calls.values().all(|calls| !calls.is_empty()) {
            // Without a name, so that leaving together is what makes them one.
            by_order(job, None, Recorded { size: Some(2), calls });
        }
        job.groups.iter_mut().skip(groups).for_each(|group| group.name.clone_from(&name));
        let members = job.instances.iter().skip(instances).flat_map(|instance| &instance.members);
        taken.extend(members.map(|member| (member.rank, member.op)));
    }
}

/// The calls of two ranks that end together. Where a name says neither, a send of one rank may as well lie between two of its
/// receives, so that the order tells nothing; what tells is that the two ends of one leave at one time. Between the clocks lies
/// what most of the calls nearby have between their ends.
fn leaving_together((a, own): (usize, Option<&Vec<Call>>), (b, others): (usize, Option<&Vec<Call>>)) -> Vec<Found> {
    let (Some(own), Some(others)) = (own, others) else { return Vec::new() };
    let near = |i: usize| others.iter().skip(i.saturating_sub(NEAR)).take(2 * NEAR + 1);
    let ends = |call: &Call| call.item.end;
    let mut apart: Vec<Ns> = Vec::with_capacity(own.len() * (2 * NEAR + 1));
    for (i, call) in own.iter().enumerate() {
        apart.extend(near(i).map(|other| ends(other).saturating_sub(ends(call))));
    }
    apart.sort_unstable();
    // How many ends lie so far apart, and how much the middle half of them differ.
    let close = |from: Ns| {
        let first = apart.partition_point(|x| *x < from);
        let count = apart.partition_point(|x| *x <= from.saturating_add(2 * LEAVE)) - first;
        let quarter = |q: usize| apart.get(first + q * count / 4).copied().unwrap_or(from);
        (count, quarter(3).saturating_sub(quarter(1)))
    };
    let most = apart.iter().map(|from| close(*from).0).max().unwrap_or(0);
    // Stages of equal length fit when shifted by one, too, and then sends as well as receives; but these times scatter.
    let likely = apart.iter().map(|from| (*from, close(*from))).filter(|(_, (count, _))| 5 * count >= 2 * most);
    let Some((from, _)) = likely.min_by_key(|(from, (_, scatter))| (*scatter, from.saturating_abs())) else {
        return Vec::new();
    };
    let between = from.saturating_add(LEAVE);
    let mut found = Vec::new();
    let mut next = 0;
    for call in own {
        let here = ends(call).saturating_add(between);
        while others.get(next).is_some_and(|other| ends(other) < here.saturating_sub(LEAVE)) {
            next += 1;
        }
        if let Some(other) = others.get(next).filter(|other| ends(other) <= here.saturating_add(LEAVE)) {
            found.push((call.item.symbol, vec![Member { rank: a, op: call.op }, Member { rank: b, op: other.op }]));
            next += 1;
        }
    }
    found
}
