//! Where the ranks of a job meet: each runs by itself and what several do together goes on when the last of them has come.
//!
//! A rank is a coroutine, not a thread: thousands of meetings in a run would each cost several turns of the system's
//! scheduler, and what a rank learns would still have to be the same on every machine.

use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Who meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// All ranks that still run.
    All,
    /// Two of them, the smaller first.
    Pair(usize, usize),
}

impl Party {
    /// A rank and its peer.
    pub(crate) fn of(rank: usize, peer: Option<usize>) -> Self {
        peer.map_or(Self::All, |peer| Self::Pair(rank.min(peer), rank.max(peer)))
    }

    fn holds(self, rank: usize) -> bool {
        match self {
            Self::All => true,
            Self::Pair(first, second) => rank == first || rank == second,
        }
    }
}

/// A rank that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) party: Party,
    pub(crate) at: i64,
}

/// What a rank comes to: `suspend` with its arrival gives the arrival of the last.
pub(crate) type Meeting = Yielder<i64, Arrival>;

/// How far a rank is.
enum Rank<R> {
    Waits(Arrival),
    Ended(R),
}

/// Runs the ranks; what each of them gives. Who has ended is waited for no more.
pub(crate) fn together<R: 'static, F: FnOnce(&Meeting) -> R + 'static>(ranks: impl Iterator<Item = F>) -> Vec<R> {
    type Of<R> = Coroutine<i64, Arrival, R>;
    fn go<R: 'static>(rank: &mut Of<R>, agreed: i64) -> Rank<R> {
        match rank.resume(agreed) {
            CoroutineResult::Yield(arrival) => Rank::Waits(arrival),
            CoroutineResult::Return(given) => Rank::Ended(given),
        }
    }
    let start = |rank: F| {
        let mut rank: Of<R> = Coroutine::new(move |meeting: &Meeting, _| rank(meeting));
        let state = go(&mut rank, 0);
        (rank, state)
    };
    let mut ranks: Vec<(Of<R>, Rank<R>)> = ranks.map(start).collect();
    loop {
        let waiting = |ranks: &[(Of<R>, Rank<R>)], party: Option<Party>| -> Vec<(usize, Arrival)> {
            let held = ranks.iter().enumerate().filter(|(rank, _)| party.is_none_or(|party| party.holds(*rank)));
            held.filter_map(|(rank, (_, state))| match state {
                Rank::Waits(arrival) => Some((rank, *arrival)),
                Rank::Ended(_) => None,
            })
            .collect()
        };
        let all = waiting(&ranks, None);
        let complete = |party: Party| waiting(&ranks, Some(party)).iter().all(|(_, arrival)| arrival.party == party);
        // Ranks that wait for different meetings would wait for ever; then each goes on by itself.
        let party = all.iter().map(|(_, arrival)| arrival.party).find(|party| complete(*party));
        let met = party.map_or_else(|| all.clone(), |party| waiting(&ranks, Some(party)));
        let Some(last) = met.iter().map(|(_, arrival)| arrival.at).max() else { break };
        for (rank, arrival) in met {
            if let Some((coroutine, state)) = ranks.get_mut(rank) {
                *state = go(coroutine, if party.is_some() { last } else { arrival.at });
            }
        }
    }
    let given = |(_, state)| match state {
        Rank::Ended(given) => Some(given),
        Rank::Waits(_) => None,
    };
    ranks.into_iter().filter_map(given).collect()
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Meeting, Party, together};

    #[test]
    fn all_learn_the_last_arrival_of_each_round_and_nobody_waits_for_one_who_left() {
        let arrivals: [&'static [i64]; 3] = [&[5, 20, 21], &[7, 11], &[6, 12, 30]];
        let learnt = together(arrivals.into_iter().map(|arrivals| {
            let come = |at: &i64| Arrival { party: Party::All, at: *at };
            move |meeting: &Meeting| arrivals.iter().map(|at| meeting.suspend(come(at))).collect::<Vec<i64>>()
        }));
        assert_eq!(learnt, [vec![7, 20, 30], vec![7, 20], vec![7, 20, 30]]);
    }

    #[test]
    fn two_ranks_meet_without_the_others() {
        let plans: [&'static [(usize, i64)]; 3] = [&[(1, 5), (2, 40)], &[(0, 9), (2, 12)], &[(1, 3), (0, 20)]];
        let learnt = together(plans.into_iter().enumerate().map(|(rank, plan)| {
            let come = move |(peer, at): &(usize, i64)| Arrival { party: Party::of(rank, Some(*peer)), at: *at };
            move |meeting: &Meeting| plan.iter().map(|meet| meeting.suspend(come(meet))).collect::<Vec<i64>>()
        }));
        assert_eq!(learnt, [vec![9, 40], vec![9, 12], vec![12, 40]]);
    }
}
