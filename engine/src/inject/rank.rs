//! One rank that is slower than the others.

use super::Injection;
use crate::Error;

pub(super) const SLOW_RANK: Injection = Injection {
    name: "slow_rank",
    arguments: "rank=1,factor=1.5",
    what: "operators of one rank take longer, collectives apart",
    is_timing: true,
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
