//! Stamps of a library by the run's clock: either it stamps with a clock of this program, as CUPTI can, or pairs of looks at both clocks, at the
//! begin and at the end, say how one becomes the other.

use engine::record::Clock;
use model::Ns;
use rustix::time::{ClockId, clock_gettime};

/// Looks of which the shortest counts: the others were interrupted.
const LOOKS: usize = 32;

/// The clock that CUPTI is given: the system's monotonic one, which the run's clock counts, too.
pub extern "C" fn stamp() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec.unsigned_abs())
}

/// One moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// By the clock of the stamps.
    pub stamp: u64,
    /// By the run's.
    pub run: Ns,
    /// How far the two may be apart, ns.
    pub within: Ns,
}

impl Pair {
    /// Looks at both clocks; `None` where `stamp` gives nothing.
    pub fn look(clock: Clock, stamp: impl Fn() -> Option<u64>) -> Option<Self> {
        let looks = (0..LOOKS).filter_map(|_| {
            let before = clock.now();
            let stamp = stamp()?;
            let after = clock.now();
            Some(Self { stamp, run: before + (after - before) / 2, within: (after - before + 1) / 2 })
        });
        looks.min_by_key(|pair| pair.within)
    }
}

/// How a stamp becomes a time of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    first: Pair,
    last: Pair,
    /// Whether the stamps are of a clock of this program.
    pub is_own: bool,
}

impl Conversion {
    /// By one look at two clocks of one pace, or two looks at two of their own.
    pub fn new(first: Pair, last: Pair, is_own: bool) -> Self {
        Self { first, last, is_own }
    }

    /// The time of a stamp, ns since the run's zero.
    pub fn run(&self, stamp: u64) -> Ns {
        let since = i128::from(stamp) - i128::from(self.first.stamp);
        let (stamps, times) = (
            i128::from(self.last.stamp) - i128::from(self.first.stamp),
            i128::from(self.last.run) - i128::from(self.first.run),
        );
        // Clocks of one pace need no slope, and one that is made of two near looks would be all error.
        let elapsed = if self.is_own || stamps <= 0 || times <= 0 { since } else { since * times / stamps };
        let time = i128::from(self.first.run) + elapsed;
        Ns::try_from(time).unwrap_or(if time < 0 { Ns::MIN } else { Ns::MAX })
    }

    /// What a manifest says of it.
    pub fn said(&self) -> String {
        let within = self.first.within.max(self.last.within);
        if self.is_own {
            format!("stamps of CUPTI by the monotonic clock of the host, zero to within {within} ns")
        } else {
            format!(
                "stamps of CUPTI by its own clock, put on the monotonic clock of the host to within {within} ns at both ends"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pair(stamp: u64, run: Ns) -> Pair {
        Pair { stamp, run, within: 3 }
    }

    #[test]
    fn a_clock_of_another_pace_is_followed_and_one_of_our_own_only_moved() {
        let fast = Conversion::new(pair(1_000_000, 500), pair(1_002_000, 1_500), false);
        assert_eq!([1_000_000, 1_001_000, 1_002_000, 999_000].map(|s| fast.run(s)), [500, 1000, 1500, 0]);
        let own = Conversion::new(pair(1_000_000, 500), pair(1_002_000, 1_500), true);
        assert_eq!(own.run(1_001_000), 1_500);
        let stood = Conversion::new(pair(1_000, 500), pair(1_000, 500), false);
        assert_eq!(stood.run(1_100), 600);
        let far = Conversion::new(pair(0, 0), pair(1, Ns::MAX), false);
        assert_eq!((far.run(u64::MAX), own.run(0)), (Ns::MAX, 500 - 1_000_000));
    }

    #[test]
    fn the_clock_that_is_given_is_the_runs() {
        let clock = Clock::start();
        let look = || Pair::look(clock, || Some(stamp())).unwrap();
        let (first, second) = (look(), look());
        let conversion = Conversion::new(first, first, true);
        let apart = conversion.run(second.stamp) - second.run;
        assert!(apart.abs() <= first.within + second.within + 1, "{apart} ns, {first:?}, {second:?}");
        assert!(Pair::look(clock, || None).is_none());
    }
}
