//! One rank that is slower than the others.

use super::Injection;
use crate::Error;

/// Faults of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankFaults {
    /// The rank, and how many times as long as usual its operators take.
    pub slow: Option<(usize, f64)>,
}

pub(super) const SLOW_RANK: Injection = Injection {
    name: "slow_rank",
    arguments: "rank=1,factor=1.5",
    what: "operators of one rank take longer, collectives apart",
    apply: |options, arguments| {
        let rank = arguments.take("rank")?.unwrap_or(1);
        let factor: f64 = arguments.take("factor")?.unwrap_or(1.5);
        if !(1.0..=1000.0).contains(&factor) {
            return Err(Error::Request(format!("a rank cannot be slower by {factor}; choose 1 to 1000")));
        }
        options.faults.rank.slow = Some((rank, factor));
        Ok(())
    },
};

impl RankFaults {
    /// How many times as long as usual operators of `rank` take; `None` for once.
    pub(crate) fn factor(&self, rank: usize) -> Option<f64> {
        self.slow.filter(|(slow, _)| *slow == rank).map(|(_, factor)| factor)
    }
}
