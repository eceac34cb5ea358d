//! Where the ranks of a job meet: each runs by itself and a collective goes on when the last of them has come. What a
//! rank learns here depends on the times the ranks bring alone, never on the order in which their threads run.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    members: usize,
    present: usize,
    /// Latest arrival of those present.
    latest: i64,
    /// Number of the round that gathers.
    round: u64,
    /// Latest arrival of the round before.
    agreed: i64,
}

impl State {
    fn close(&mut self) {
        self.agreed = self.latest;
        (self.present, self.latest) = (0, i64::MIN);
        self.round += 1;
    }
}

/// The meeting place of `members` ranks.
#[derive(Debug)]
pub(crate) struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

impl Meeting {
    pub(crate) fn new(members: usize) -> Self {
        let state = State { members, latest: i64::MIN, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes at `arrival` and waits for all others; the arrival of the last.
    pub(crate) fn join(&self, arrival: i64) -> i64 {
        let mut state = self.state();
        state.latest = state.latest.max(arrival);
        state.present += 1;
        let round = state.round;
        if state.present >= state.members {
            state.close();
            self.changed.notify_all();
        }
        while state.round == round {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // The next round cannot close before this rank has come to it.
        state.agreed
    }

    /// Comes no more; the others stop waiting for this rank.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.members = state.members.saturating_sub(1);
        if state.present > 0 && state.present >= state.members {
            state.close();
        }
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::Meeting;

    #[test]
    fn all_learn_the_last_arrival_of_each_round_and_nobody_waits_for_one_who_left() {
        let meeting = Meeting::new(3);
        let rank = |arrivals: &'static [i64]| {
            let meeting = &meeting;
            move || {
                let learnt: Vec<i64> = arrivals.iter().map(|at| meeting.join(*at)).collect();
                meeting.leave();
                learnt
            }
        };
        thread::scope(|scope| {
            let ranks = [&[5, 20, 21][..], &[7, 11], &[6, 12, 30]].map(|arrivals| scope.spawn(rank(arrivals)));
            let learnt = ranks.map(|thread| thread.join().ok());
            assert_eq!(learnt, [Some(vec![7, 20, 30]), Some(vec![7, 20]), Some(vec![7, 20, 30])]);
        });
    }
}
