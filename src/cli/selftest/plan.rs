//! Which runs are examined: every fault at every magnitude, beside healthy runs, each from a seed of its own.
//!
//! A run is drawn from its seed alone: the seed decides how decode is issued, and a fault that makes sense in one way of
//! issuing only turns the drawn configuration into that one. So a fault, a magnitude, a number of ranks and a seed say
//! everything of a run, and the same four give the same run again.

use simulator::{Config, Fault, FaultKind, MAGNITUDES, config::Mode};

/// One run to examine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is wrong with it; nothing for a healthy run.
    pub faults: Vec<Fault>,
    /// Seed of the run.
    pub seed: u64,
}

/// Faults of a run in the word that `--only` takes, `healthy` without any.
pub fn fault_key(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return "healthy".to_owned();
    }
    faults.iter().map(|fault| kind_key(fault.kind)).collect::<Vec<_>>().join("+")
}

/// A kind of fault in snake case, the word that its serialised form uses.
pub fn kind_key(kind: FaultKind) -> String {
    let mut out = String::new();
    for c in format!("{kind:?}").chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// How decode is meant to be issued.
pub fn mode_key(mode: Mode) -> &'static str {
    match mode {
        Mode::Eager => "eager",
        Mode::Piecewise { .. } => "piecewise",
        Mode::Full => "graph",
    }
}

/// Healthy runs for each run of one fault and magnitude: enough to tell a rate of false alarms of 5 % from none.
const HEALTHY: usize = 8;

impl Case {
    /// The configuration to simulate.
    pub fn config(&self) -> Config {
        let Some(first) = self.faults.first() else { return Config::draw(self.seed) };
        Config::draw_faulty(self.seed, *first)
    }
}

/// The runs of `rounds` rounds; a round has every fault of `kinds` once at every magnitude, and healthy runs unless only
/// some faults are asked for. The runs of a round lie next to each other, so that any beginning of the list is an even
/// choice of the whole.
pub fn rounds(kinds: &[FaultKind], seed: u64, rounds: usize, healthy: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for round in 0..rounds as u64 {
        for magnitude_permille in MAGNITUDES {
            let of = |kind: &FaultKind| Case {
                faults: vec![Fault { kind: *kind, magnitude_permille }],
                seed: seed.wrapping_add(round),
            };
            cases.extend(kinds.iter().map(of));
        }
        let count = if healthy { HEALTHY as u64 } else { 0 };
        cases.extend((0..count).map(|i| Case { faults: Vec::new(), seed: seed.wrapping_add(round * count + i) }));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_holds_every_fault_at_every_magnitude_once() {
        let cases = rounds(&FaultKind::ALL, 5, 2, true);
        for kind in FaultKind::ALL {
            for magnitude_permille in MAGNITUDES {
                let fault = Fault { kind, magnitude_permille };
                let seeds: Vec<u64> = cases.iter().filter(|c| c.faults == [fault]).map(|c| c.seed).collect();
                assert_eq!(seeds, [5, 6], "{kind:?}");
            }
        }
        let mut healthy: Vec<u64> = cases.iter().filter(|c| c.faults.is_empty()).map(|c| c.seed).collect();
        healthy.dedup();
        assert_eq!(healthy.len(), 2 * HEALTHY, "no healthy run is examined twice");
    }

    #[test]
    fn keys_are_the_serialised_names() {
        for kind in FaultKind::ALL {
            assert_eq!(serde_json::to_value(kind).ok(), Some(kind_key(kind).into()));
        }
    }
}
