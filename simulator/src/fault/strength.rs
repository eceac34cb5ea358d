//! Faults sized by what they cost: a share of the step instead of a multiple of the usual size.

use serde::{Deserialize, Serialize};

use crate::{
    config::Config,
    job::simulate_job,
    random::{Dice, Of},
};

/// How much of the step a fault costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// 3 to 8 %.
    Weak,
    /// 10 to 20 %.
    Medium,
    /// 30 to 40 %.
    Strong,
}

/// Runs that are tried for a share.
const TRIES: usize = 6;
/// Largest size that is tried, in parts per thousand of the usual one.
const LARGEST: i64 = 200_000;

impl Strength {
    /// All strengths, the weakest first.
    pub const ALL: [Self; 3] = [Self::Weak, Self::Medium, Self::Strong];

    /// Its name in reports; the serialised one.
    pub fn key(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Medium => "medium",
            Self::Strong => "strong",
        }
    }

    /// Least and largest share of the step, in parts per thousand.
    pub fn range(self) -> (i64, i64) {
        match self {
            Self::Weak => (30, 80),
            Self::Medium => (100, 200),
            Self::Strong => (300, 400),
        }
    }

    /// The share that a run of `seed` is given.
    pub fn share(self, seed: u64) -> i64 {
        let (lo, hi) = self.range();
        // Somewhat inside, since a size that meets a share exactly is not looked for.
        Dice::new(seed).uniform(Of::Serving, [1, self as i64, 0], lo + (hi - lo) / 6, hi - (hi - lo) / 6)
    }
}

impl Config {
    /// Mean steady decode step of the slowest rank (ns).
    fn slowest(&self) -> i64 {
        simulate_job(self).ranks.iter().map(|run| run.mean_decode_ns()).max().unwrap_or(0)
    }

    /// The same run with each of its faults sized so that it alone costs about `permille` parts per thousand of the step.
    pub fn costing(&self, permille: i64) -> Self {
        let twin = self.twin();
        let bare = twin.slowest().max(1);
        // A step of which the fault takes that share is so much longer.
        let wanted = bare * permille / (1000 - permille.clamp(0, 900));
        let sized = |fault: &crate::Fault| {
            let mut fault = *fault;
            let (mut low, mut high) = ((0, 0), None);
            fault.magnitude_permille = 1000;
            for _ in 0..TRIES {
                let gain = Self { faults: vec![fault], ..twin.clone() }.slowest() - bare;
                if (gain - wanted).abs() * 12 <= wanted {
                    break;
                }
                let here = (fault.magnitude_permille, gain);
                if gain < wanted {
                    low = here;
                } else {
                    high = Some(here);
                }
                fault.magnitude_permille = match high {
                    None if gain <= low.1 / 8 || gain < wanted / 20 => here.0 * 8,
                    None => here.0.saturating_mul(wanted) / gain.max(1) * 11 / 10 + 1,
                    Some(high) => {
                        // Between the two by their gains, kept off the ends.
                        let (span, rise) = (high.0 - low.0, (high.1 - low.1).max(1));
                        low.0 + (span * (wanted - low.1) / rise).clamp(span / 10, span * 9 / 10)
                    }
                }
                .clamp(1, LARGEST);
            }
            fault
        };
        Self { faults: self.faults.iter().map(sized).collect(), ..twin.clone() }
    }
}
