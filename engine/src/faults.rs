//! What a run suffers on purpose, in words that devices and runs have in common; `inject` puts it there.

use std::{borrow::Cow, time::Duration};

use crate::{Config, program::OpName};

/// Everything that a run suffers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Of the host thread that launches.
    pub host: HostFaults,
    /// Of one rank.
    pub rank: RankFaults,
    /// Of the machine beside the run.
    pub machine: MachineFaults,
    /// Of the numbers.
    pub numeric: NumericFaults,
    /// The injections as they were asked for.
    pub asked: Vec<String>,
}

/// Faults of the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFaults {
    /// Busy time before launches.
    pub delay: Option<Delay>,
    /// Bytes allocated, touched and freed before every launch.
    pub alloc: Option<usize>,
    /// Bytes copied before every step.
    pub copy: Option<usize>,
    /// Operator that the host computes itself.
    pub fallback: Option<OpName>,
    /// Another thread that holds what the host needs for every launch.
    pub stall: Option<Stall>,
}

/// Busy time before launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Of this operator only.
    pub op: Option<OpName>,
    /// For how long.
    pub time: Duration,
    /// At most so much more, evenly spread.
    pub jitter: Duration,
}

/// A thread that takes a lock again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From one time to the next.
    pub period: Duration,
    /// For how long.
    pub hold: Duration,
}

/// Faults of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFaults {
    /// Threads that read memory as fast as they can.
    pub thieves: usize,
}

/// Faults of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankFaults {
    /// The rank, and how many times as long as usual its operators take.
    pub slow: Option<(usize, f64)>,
}

impl RankFaults {
    /// How many times as long as usual operators of `rank` take; `None` for once.
    pub(crate) fn factor(&self, rank: usize) -> Option<f64> {
        self.slow.filter(|(slow, _)| *slow == rank).map(|(_, factor)| factor)
    }
}

/// Faults of the numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumericFaults {
    /// The base of the rotary frequencies is so many times what it should be.
    pub rope_base: Option<f64>,
    /// Sums of matrix products are rounded to bf16 as they grow.
    pub bf16_accum: bool,
    /// A layer whose cache does not get the tokens of decode steps.
    pub stale_kv: Option<u16>,
    /// A layer whose feed-forward block gives a NaN.
    pub nan_at: Option<u16>,
}

impl NumericFaults {
    /// The shape by which rotary frequencies are computed.
    pub(crate) fn turned<'c>(&self, config: &'c Config) -> Cow<'c, Config> {
        match self.rope_base {
            None => Cow::Borrowed(config),
            Some(factor) => {
                let mut wrong = config.clone();
                wrong.rope.theta *= factor;
                Cow::Owned(wrong)
            }
        }
    }
}
