//! Which runs are examined: every fault at every magnitude, beside healthy runs, each from a seed of its own.
//!
//! A run is drawn from its seed alone: the seed decides how decode is issued, and a fault that makes sense in one way of
//! issuing only turns the drawn configuration into that one. So a fault, a magnitude, a number of ranks and a seed say
//! everything of a run, and the same four give the same run again.

use simulator::{Config, Fault, FaultKind, Layer, MAGNITUDES, config::Mode, fault::Control};

/// One run to examine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is wrong with it; nothing for a healthy run.
    pub faults: Vec<Fault>,
    /// What a healthy run only looks as if it had.
    pub control: Option<Control>,
    /// Seed of the run.
    pub seed: u64,
    /// Ranks that are simulated and recorded. With 1 a healthy run, or one whose fault needs collectives, may still be one
    /// rank of several.
    pub ranks: usize,
}

/// What stands for no fault at all.
pub const HEALTHY_KEY: &str = "healthy";

/// A kind of fault in the word that `--only` takes.
pub fn kind_key(kind: FaultKind) -> String {
    kind.key()
}

/// How decode is meant to be issued.
pub fn mode_key(mode: Mode) -> &'static str {
    match mode {
        Mode::Eager => "eager",
        Mode::Piecewise { .. } => "piecewise",
        Mode::Full => "graph",
    }
}

/// Healthy runs of a round, besides one of each control.
const HEALTHY: usize = 12;
/// Pairs of faults of a round.
const PAIRS: usize = 8;
/// Numbers of ranks that runs take in turn.
const RANKS: [usize; 3] = [1, 2, 4];
/// Size of the faults of a pair, in parts per thousand of the usual one.
const USUAL: i64 = 1000;

/// Seeds that are tried for one that issues as is wanted; a fault may allow only one way.
const TRIES: u64 = 32;
/// From one seed that is tried to the next: beyond all seeds of the rounds.
const FAR: u64 = 1 << 32;

impl Case {
    /// Faults of the run in the word that `--only` takes.
    pub fn key(&self) -> String {
        match self.control {
            Some(control) => control.key().to_owned(),
            None if self.faults.is_empty() => HEALTHY_KEY.to_owned(),
            None => self.faults.iter().map(|fault| kind_key(fault.kind)).collect::<Vec<_>>().join("+"),
        }
    }

    /// The configuration to simulate.
    pub fn config(&self) -> Config {
        let mut config = match self.control {
            Some(control) => Config::draw_control(self.seed, control),
            None if self.faults.is_empty() && self.ranks > 1 => Config::draw_job(self.seed, self.ranks),
            None => Config::draw_with(self.seed, &self.faults),
        };
        // What happened in a replay recorded as one row nobody can tell, and no answer would be right.
        config.graph_level_trace = false;
        // One rank of several that was captured alone is what is left when the others are taken away, and examined as that.
        let of_ranks =
            |fault: &Fault| fault.kind.layer() == Layer::Communication || fault.kind == FaultKind::CollectiveHost;
        if config.ranks == 1 && !self.faults.is_empty() && !self.faults.iter().any(of_ranks) {
            config.tensor_parallel = 1;
        }
        // Streams that wait for each other are examined without collectives, which would hide it.
        let alone = self.faults.iter().any(|fault| fault.kind == FaultKind::SerialStreams);
        if self.ranks > 1 && !alone {
            config = config.gathered(self.ranks);
        }
        config
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Faults that a run has together, one entry for each kind of run; none for all there are, with pairs and healthy runs
    /// beside them.
    pub only: Vec<Vec<FaultKind>>,
    /// Seed of the first run.
    pub seed: u64,
    /// Number of ranks, when it shall not change from run to run.
    pub ranks: Option<usize>,
    /// Rounds.
    pub rounds: usize,
    /// Whether rounds issue eagerly and by graphs in turn, as far as a fault leaves the choice; otherwise the seeds decide.
    pub in_turn: bool,
}

/// The runs asked for, round by round. A round has every fault once at every magnitude; the magnitudes of a fault share a
/// seed, so that only the size differs, and every fault of a round has its own.
pub fn rounds(wish: &Wish) -> Vec<Case> {
    let every = wish.only.is_empty();
    let kinds: Vec<Vec<FaultKind>> =
        if every { FaultKind::ALL.iter().map(|kind| vec![*kind]).collect() } else { wish.only.clone() };
    let entries = kinds.len();
    let mut cases = Vec::new();
    for round in 0..wish.rounds {
        let ranks = |at: usize| wish.ranks.unwrap_or(RANKS[(round + at) % RANKS.len()]);
        let seed = |count: usize, at: usize| wish.seed.wrapping_add((round * count + at) as u64);
        // All numbers of ranks are taken with one way of issuing before the other has its turn.
        let eager = wish.in_turn.then_some((round / RANKS.len()).is_multiple_of(2));
        let mut put = |kinds: &[FaultKind], magnitude_permille: i64, seed: u64, ranks: usize| {
            let faults: Vec<Fault> = kinds.iter().map(|kind| Fault { kind: *kind, magnitude_permille }).collect();
            let case = |seed| Case { faults: faults.clone(), control: None, seed, ranks };
            let issues = |case: &Case| eager.is_none_or(|eager| (case.config().mode == Mode::Eager) == eager);
            let seeds = (0..TRIES).map(|n| seed.wrapping_add(n * FAR));
            let chosen = seeds.map(case).find(issues);
            cases.push(chosen.unwrap_or_else(|| case(seed)));
        };
        for (at, kinds) in kinds.iter().enumerate() {
            let sizes: &[i64] = if kinds.len() == 1 { &MAGNITUDES } else { &[USUAL] };
            for size in sizes {
                put(kinds, *size, seed(entries, at), ranks(at));
            }
        }
        if every {
            let all = FaultKind::ALL.len();
            for at in 0..PAIRS {
                let first = (round * PAIRS + at) % all;
                let second = (first + 1 + (round + at) % (all - 1)) % all;
                let pair: Vec<FaultKind> =
                    [first, second].iter().filter_map(|i| FaultKind::ALL.get(*i)).copied().collect();
                put(&pair, USUAL, seed(PAIRS, at), ranks(at));
            }
            for at in 0..HEALTHY {
                put(&[], 0, seed(HEALTHY, at), ranks(at));
            }
            for control in Control::ALL {
                cases.push(Case { faults: Vec::new(), control: Some(control), seed: seed(1, 0), ranks: 1 });
            }
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_holds_every_fault_at_every_magnitude_once() {
        let cases = rounds(&Wish { rounds: 2, seed: 5, ..Wish::default() });
        for kind in FaultKind::ALL.iter().copied() {
            for magnitude_permille in MAGNITUDES {
                let fault = Fault { kind, magnitude_permille };
                assert_eq!(cases.iter().filter(|c| c.faults == [fault]).count(), 2, "{kind:?}");
            }
        }
        let mut healthy: Vec<u64> =
            cases.iter().filter(|c| c.faults.is_empty() && c.control.is_none()).map(|c| c.seed).collect();
        healthy.dedup();
        assert_eq!(healthy.len(), 2 * HEALTHY, "no healthy run is examined twice");
    }

    #[test]
    fn what_a_miss_says_of_itself_gives_the_same_run_again() {
        let all = rounds(&Wish { rounds: 3, ..Wish::default() });
        for case in all.iter().filter(|case| !case.faults.is_empty()) {
            let only = vec![case.faults.iter().map(|fault| fault.kind).collect()];
            let ranks = Some(case.config().ranks);
            let again = rounds(&Wish { only, seed: case.seed, ranks, rounds: 1, in_turn: false });
            let same = |other: &Case| other.faults == case.faults && other.config() == case.config();
            assert!(again.iter().any(same), "{case:?}");
        }
    }

    #[test]
    fn rounds_in_turn_examine_every_fault_both_ways_with_every_number_of_ranks() {
        const ROUNDS: usize = 12;
        let cases = rounds(&Wish { rounds: ROUNDS, in_turn: true, ..Wish::default() });
        for kind in FaultKind::ALL.iter().copied() {
            let of_kind = |case: &&Case| case.faults == [Fault { kind, magnitude_permille: USUAL }];
            let of_kind: Vec<&Case> = cases.iter().filter(of_kind).collect();
            let seeds: std::collections::BTreeSet<u64> = of_kind.iter().map(|case| case.seed).collect();
            assert_eq!(seeds.len(), ROUNDS, "{kind:?}: a seed is examined twice");
            let eager = |case: &&&Case| case.config().mode == Mode::Eager;
            if matches!(of_kind.iter().filter(eager).count(), 0 | ROUNDS) {
                continue; // The fault exists in one way only.
            }
            for ranks in RANKS {
                let so_many: Vec<&&Case> = of_kind.iter().filter(|case| case.ranks == ranks).collect();
                let eager = so_many.iter().filter(|case| case.config().mode == Mode::Eager).count();
                assert_eq!((eager, so_many.len() - eager), (2, 2), "{kind:?} with {ranks} ranks");
            }
        }
    }

    #[test]
    fn keys_are_the_serialised_names() {
        for kind in FaultKind::ALL.iter().copied() {
            assert_eq!(serde_json::to_value(kind).ok(), Some(kind_key(kind).into()));
        }
        for control in Control::ALL {
            assert_eq!(serde_json::to_value(control).ok(), Some(control.key().into()));
        }
    }
}
