//! What else the machine did while it was probed: time that the hypervisor took, and time of other processes. Probes on a
//! busy machine measure what was left of it, and have to say so.

use std::{fs, time::Instant};

use model::{ProbeRow, Reading};

/// Share of the cores' time taken by the hypervisor or by other processes from which a run counts as disturbed (own value:
/// the least difference that a diagnosis reports is 1 %).
const DISTURBED: f64 = 0.02;
/// Relative spread of a row's repeats from which the row counts as unsteady (own value).
const UNSTEADY: f64 = 0.10;

/// Clock ticks of `/proc/stat` since the start of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    /// Of all cores, whatever they did.
    all: u64,
    /// In which they were neither idle nor waiting for a disk.
    busy: u64,
    /// Taken by the hypervisor.
    steal: u64,
    /// Of this process.
    own: u64,
}

/// The state of the machine at a moment.
#[derive(Clone, Debug)]
pub struct Conditions {
    at: Instant,
    ticks: Result<Ticks, String>,
}

impl Conditions {
    /// Now.
    pub fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let ticks = read("/proc/stat").and_then(|stat| {
            let own = read("/proc/self/stat")?;
            parse(&stat, &own).ok_or_else(|| "/proc/stat does not say it".to_owned())
        });
        Self { at: Instant::now(), ticks }
    }

    /// What happened from here to `later`.
    pub fn until(&self, later: &Self) -> Interval {
        let ticks = self.ticks.clone().and_then(|from| {
            let to = later.ticks.clone()?;
            let all = to.all.saturating_sub(from.all);
            if all == 0 {
                return Err("the run was shorter than a tick of the kernel's clock".to_owned());
            }
            let share = |of: fn(&Ticks) -> u64| of(&to).saturating_sub(of(&from)) as f64 / all as f64;
            let (busy, steal, own) = (share(|t| t.busy), share(|t| t.steal), share(|t| t.own));
            Ok(Shares { own, steal, others: (busy - steal - own).max(0.0) })
        });
        Interval { seconds: later.at.duration_since(self.at).as_secs_f64(), shares: ticks }
    }
}

/// Shares of the time of all cores.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shares {
    own: f64,
    steal: f64,
    others: f64,
}

/// What the machine did from one moment to another.
#[derive(Clone, Debug)]
pub struct Interval {
    seconds: f64,
    shares: Result<Shares, String>,
}

impl Interval {
    /// The interval as facts of a provenance; `rows` are what was measured in it.
    pub fn facts(&self, rows: &[ProbeRow]) -> Vec<(String, Reading<String>)> {
        let share = |of: fn(&Shares) -> f64| match &self.shares {
            Ok(shares) => Reading::Value(percent(of(shares))),
            Err(reason) => Reading::Unavailable(reason.clone()),
        };
        vec![
            ("seconds".to_owned(), Reading::Value(format!("{:.1}", self.seconds))),
            ("load".to_owned(), share(|s| s.own)),
            ("others".to_owned(), share(|s| s.others)),
            ("steal".to_owned(), share(|s| s.steal)),
            (model::ProbeRun::NOISE.to_owned(), self.noise(rows)),
        ]
    }

    /// What disturbed the run.
    fn noise(&self, rows: &[ProbeRow]) -> Reading<String> {
        let mut noise = Vec::new();
        if let Ok(shares) = &self.shares {
            for (name, share) in [("the hypervisor took", shares.steal), ("other processes took", shares.others)] {
                if share >= DISTURBED {
                    noise.push(format!("{name} {}", percent(share)));
                }
            }
        }
        let measured = rows.iter().filter_map(ProbeRow::statistic);
        let (all, unsteady) = measured.fold((0, 0), |(all, unsteady), statistic| {
            (all + 1, unsteady + usize::from(statistic.relative_spread() >= UNSTEADY))
        });
        if unsteady > 0 {
            noise.push(format!("{unsteady} of {all} rows spread by {} or more", percent(UNSTEADY)));
        }
        if noise.is_empty() {
            Reading::Unavailable("nothing disturbed the run as far as the kernel's counts show".to_owned())
        } else {
            Reading::Value(noise.join("; "))
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// From `/proc/stat` and `/proc/self/stat` (proc(5)).
fn parse(stat: &str, own: &str) -> Option<Ticks> {
    let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal; guest time is part of user time.
    let ticks: Vec<u64> = cpu.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, _, _, idle, iowait, _, _, steal] = ticks[..] else { return None };
    // The name of the process is in brackets and may hold anything; utime and stime are the 12th and 13th field after it.
    let mut fields = own.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
    let all = ticks.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let busy = all.saturating_sub(idle).saturating_sub(iowait);
    Some(Ticks { all, busy, steal, own: user.saturating_add(system) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STAT: &str = "cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 2 3\n";
    const OWN: &str = "42 (a) b) c) R 1 1 1 0 -1 4194304 100 0 0 0 70 30 0 0 20 0 1 0 1 1 1";

    #[test]
    fn the_kernels_counts_are_told_apart() {
        let ticks = parse(STAT, OWN).unwrap();
        assert_eq!(ticks, Ticks { all: 1000, busy: 180, steal: 10, own: 100 });
        assert_eq!(parse("cpu  1 2 x 4 5 6 7 8\n", OWN), None);
        assert_eq!(parse("cpu  1 2 3\n", OWN), None);
        assert_eq!(parse(STAT, "42 (a"), None);
    }

    #[test]
    fn a_run_beside_others_says_so_and_a_quiet_one_does_not() {
        let at = Instant::now();
        let moment = |ticks| Conditions { at, ticks };
        let zero = moment(Ok(Ticks { all: 0, busy: 0, steal: 0, own: 0 }));
        let noise = |busy, steal, own| {
            let facts = zero.until(&moment(Ok(Ticks { all: 1000, busy, steal, own }))).facts(&[]);
            facts.into_iter().find(|(key, _)| key == "noise").unwrap().1
        };
        assert_eq!(
            noise(500, 30, 400),
            Reading::Value("the hypervisor took 3.0 %; other processes took 7.0 %".to_owned())
        );
        assert_eq!(noise(500, 5, 490).value(), None);
        let unread = zero.until(&moment(Err("no /proc".to_owned()))).facts(&[]);
        let steal = &unread.iter().find(|(key, _)| key == "steal").unwrap().1;
        assert_eq!(*steal, Reading::Unavailable("no /proc".to_owned()));
    }
}
