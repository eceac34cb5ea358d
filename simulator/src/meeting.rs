//! Where the ranks of a job meet: each runs by itself and a collective goes on when the last of them has come.
//!
//! A rank is a coroutine, not a thread: thousands of meetings in a run would each cost several turns of the system's
//! scheduler, and what a rank learns would still have to be the same on every machine.

use corosensei::{Coroutine, CoroutineResult, Yielder};

/// What a rank comes to: `suspend` with its arrival gives the arrival of the last.
pub(crate) type Meeting = Yielder<i64, i64>;

/// Runs the ranks; what each of them gives. Who has ended is waited for no more.
pub(crate) fn together<R: 'static, F: FnOnce(&Meeting) -> R + 'static>(ranks: impl Iterator<Item = F>) -> Vec<R> {
    let mut ranks: Vec<(Coroutine<i64, i64, R>, Option<R>)> =
        ranks.map(|rank| (Coroutine::new(move |meeting: &Meeting, _| rank(meeting)), None)).collect();
    let mut last = Some(0);
    while let Some(agreed) = last.take() {
        for (rank, ended) in ranks.iter_mut().filter(|(_, ended)| ended.is_none()) {
            match rank.resume(agreed) {
                CoroutineResult::Yield(arrival) => last = last.max(Some(arrival)),
                CoroutineResult::Return(given) => *ended = Some(given),
            }
        }
    }
    ranks.into_iter().filter_map(|(_, ended)| ended).collect()
}

#[cfg(test)]
mod tests {
    use super::{Meeting, together};

    #[test]
    fn all_learn_the_last_arrival_of_each_round_and_nobody_waits_for_one_who_left() {
        let arrivals: [&'static [i64]; 3] = [&[5, 20, 21], &[7, 11], &[6, 12, 30]];
        let learnt = together(arrivals.into_iter().map(|arrivals| {
            move |meeting: &Meeting| arrivals.iter().map(|at| meeting.suspend(*at)).collect::<Vec<i64>>()
        }));
        assert_eq!(learnt, [vec![7, 20, 30], vec![7, 20], vec![7, 20, 30]]);
    }
}
