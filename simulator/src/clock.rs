//! What a profiler writes of a run: each rank's times by its own clock, and some records lost.

use crate::{
    random::{Dice, Of},
    record::DeviceOp,
    run::Run,
};

/// Wall clock of a capture's zero (Unix ns), a constant of the calendar quarter as in real files of Kineto.
pub(crate) const EPOCH: i64 = 1_767_189_312_000_000_000;

/// Nanoseconds as microseconds with three decimals.
pub(crate) fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}

/// A clock that is off and runs away. The first rank's clock is the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    offset_ns: i64,
    drift_ppm: i64,
}

impl Clock {
    fn of(run: &Run) -> Self {
        let (config, dice) = (&run.config, Dice::new(run.config.seed));
        if run.rank == 0 {
            return Self { offset_ns: 0, drift_ppm: 0 };
        }
        let draw = |of, most: i64| dice.uniform(of, [i64::try_from(run.rank).unwrap_or(0), 0, 0], -most, most);
        Self {
            offset_ns: draw(Of::ClockOffset, config.clock_offset_ns),
            drift_ppm: draw(Of::ClockDrift, config.clock_drift_ppm),
        }
    }

    fn read(self, ns: i64) -> i64 {
        ns + self.offset_ns + ns / 1000 * self.drift_ppm / 1000
    }
}

impl Run {
    /// The run in the times of its rank's own clock.
    pub(crate) fn by_own_clock(&self) -> Self {
        let clock = Clock::of(self);
        let mut run = self.clone();
        for event in run.host.iter_mut().chain(&mut run.other) {
            (event.start, event.end) = (clock.read(event.start), clock.read(event.end));
        }
        for counter in &mut run.counters {
            counter.at = clock.read(counter.at);
        }
        for op in &mut run.ops {
            (op.start, op.end) = (clock.read(op.start), clock.read(op.end));
        }
        run
    }

    /// Device operations that the profiler did not lose.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &DeviceOp> {
        let dice = Dice::new(self.config.seed).of_rank(self.rank);
        let lost = move |at: i64| dice.chance(Of::Dropped, [at, 0, 0], self.config.dropped_permille);
        (0..).zip(&self.ops).filter(move |(at, _)| !lost(*at)).map(|(_, op)| op)
    }
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn no_nanosecond_is_lost() {
        assert_eq!(micros(1_234_567), "1234.567");
        assert_eq!(micros(7), "0.007");
        assert_eq!(micros(-1_001), "-1.001");
    }
}
