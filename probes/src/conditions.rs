//! What else the machine did while it was probed: time that the hypervisor took, and time of other processes. Probes on a
//! busy machine measure what was left of it, and have to say so.

use std::time::Instant;

use collectors::telemetry::ticks::{Shares, Ticks};
use model::{ProbeRow, Reading};

/// Share of the cores' time taken by the hypervisor or by other processes from which a run counts as disturbed (own value:
/// the least difference that a diagnosis reports is 1 %).
const DISTURBED: f64 = 0.02;
/// Relative spread of a row's repeats from which the row counts as unsteady (own value).
const UNSTEADY: f64 = 0.10;

/// The state of the machine at a moment.
#[derive(Clone, Debug)]
pub struct Conditions {
    at: Instant,
    ticks: Result<Ticks, String>,
}

impl Conditions {
    /// Now.
    pub fn now() -> Self {
        Self { at: Instant::now(), ticks: Ticks::now() }
    }

    /// What happened from here to `later`.
    pub fn until(&self, later: &Self) -> Interval {
        let ticks = self.ticks.clone().and_then(|from| {
            let shares = later.ticks.clone()?.since(&from);
            shares.ok_or_else(|| "the run was shorter than a tick of the kernel's clock".to_owned())
        });
        Interval { seconds: later.at.duration_since(self.at).as_secs_f64(), shares: ticks }
    }
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
            ("others".to_owned(), share(Shares::others)),
            ("steal".to_owned(), share(|s| s.steal)),
            (model::ProbeRun::NOISE.to_owned(), self.noise(rows)),
        ]
    }

    /// What disturbed the run.
    fn noise(&self, rows: &[ProbeRow]) -> Reading<String> {
        let mut noise = Vec::new();
        if let Ok(shares) = &self.shares {
            for (name, share) in [("the hypervisor took", shares.steal), ("other processes took", shares.others())] {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
