//! Time of the processors in the kernel's clock ticks, proc(5): what the whole machine did, what the hypervisor took from
//! it, and what this process had of it.

use model::{Ns, Reading};

use super::{Collector, Counter, read};

/// Clock ticks of all cores since the start of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Whatever the cores did.
    pub all: u64,
    /// In which they were neither idle nor waiting for a disk.
    pub busy: u64,
    /// Taken by the hypervisor; they count as busy.
    pub steal: u64,
    /// Of this process.
    pub own: u64,
}

impl Ticks {
    /// Now.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn now() -> Result<Self, String> {
        let stat = read("/proc/stat")?;
        let own = read("/proc/self/stat")?;
        Self::parse(&stat, &own).ok_or_else(|| "/proc/stat does not say it".to_owned())
    }

    /// From `/proc/stat` and `/proc/self/stat`.
    pub fn parse(stat: &str, own: &str) -> Option<Self> {
        let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let ticks: Vec<u64> = cpu.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_, _, _, idle, iowait, _, _, steal] = ticks[..] else { return None };
        // The name of the process is in brackets and may hold anything; utime and stime are the 12th and 13th field after it.
        let mut fields = own.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<u64>);
        let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
        let all = ticks.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let busy = all.saturating_sub(idle).saturating_sub(iowait);
        Some(Self { all, busy, steal, own: user.saturating_add(system) })
    }

    /// What passed since `before`, as shares of the time of all cores; `None` when that was no tick.
    pub fn since(&self, before: &Self) -> Option<Shares> {
        let all = self.all.saturating_sub(before.all);
        let share = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before)) as f64 / all as f64;
        (all > 0).then(|| Shares { busy: share(|t| t.busy), steal: share(|t| t.steal), own: share(|t| t.own) })
    }
}

/// Shares of the time of all cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Neither idle nor waiting for a disk.
    pub busy: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Of this process.
    pub own: f64,
}

impl Shares {
    /// What other processes had.
    pub fn others(&self) -> f64 {
        (self.busy - self.steal - self.own).max(0.0)
    }
}

const BUSY: Counter = Counter { name: "cpu_busy", unit: "", device: Some(0) };
const STEAL: Counter = Counter { name: "cpu_steal", unit: "", device: Some(0) };
const OWN: Counter = Counter { name: "cpu_own", unit: "", device: Some(0) };

/// Use of the processors since the last look, as shares of the time of all cores.
#[derive(Debug, Default)]
pub struct Processors(Option<Ticks>);

impl Collector for Processors {
    fn look(&mut self, _: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        match Ticks::now() {
            Ok(now) => {
                let Some(before) = self.0 else {
                    self.0 = Some(now);
                    return;
                };
                // Looks within one tick of the kernel's clock are one look.
                let Some(shares) = now.since(&before) else { return };
                self.0 = Some(now);
                give(BUSY, Reading::Value(shares.busy));
                give(STEAL, Reading::Value(shares.steal));
                give(OWN, Reading::Value(shares.own));
            }
            Err(reason) => [BUSY, STEAL, OWN].into_iter().for_each(|c| give(c, Reading::Unavailable(reason.clone()))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STAT: &str = "cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 2 3\n";
    const OWN_STAT: &str = "42 (a) b) c) R 1 1 1 0 -1 4194304 100 0 0 0 70 30 0 0 20 0 1 0 1 1 1";

    #[test]
    fn the_kernels_counts_are_told_apart() {
        let ticks = Ticks::parse(STAT, OWN_STAT).unwrap();
        assert_eq!(ticks, Ticks { all: 1000, busy: 180, steal: 10, own: 100 });
        assert_eq!(Ticks::parse("cpu  1 2 x 4 5 6 7 8\n", OWN_STAT), None);
        assert_eq!(Ticks::parse("cpu  1 2 3\n", OWN_STAT), None);
        assert_eq!(Ticks::parse(STAT, "42 (a"), None);
    }

    #[test]
    fn shares_are_of_what_passed_between_two_looks() {
        let before = Ticks { all: 1000, busy: 500, steal: 10, own: 100 };
        let after = Ticks { all: 1200, busy: 650, steal: 20, own: 190 };
        let shares = after.since(&before).unwrap();
        assert_eq!(shares, Shares { busy: 0.75, steal: 0.05, own: 0.45 });
        assert!((shares.others() - 0.25).abs() < 1e-9);
        assert_eq!(before.since(&before), None);
    }
}
