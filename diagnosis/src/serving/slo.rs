//! Targets of times: whether a load holds them, and how many of its requests do.

use super::{Load, Metric};

/// Percentile that has to hold a target where nobody says another: that of MLPerf Inference's server scenario.
const PERCENTILE: f64 = 99.0;

/// Targets of the times of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// Times with the most that they may be, ms.
    pub targets: Vec<(Metric, f64)>,
    /// Percentile of the requests that has to hold them.
    pub percentile: f64,
}

/// Requests per second that hold every target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goodput {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
    /// From what it is known.
    pub by: By,
}

/// From what a number of good requests is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Requests were timed one by one and counted.
    Requests,
    /// Recorded percentiles bound it from both sides.
    Percentiles,
}

impl Slo {
    /// Reads `ttft=200ms,tpot=50ms,p=99`; a time without unit is ms.
    ///
    /// # Errors
    /// What is no target, with how one is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut slo = Self { targets: Vec::new(), percentile: PERCENTILE };
        for part in text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once(['=', '<']).ok_or_else(|| wrong(part))?;
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim_start_matches('=').trim());
            if matches!(key.as_str(), "p" | "percentile") {
                let percent = value.trim_start_matches('p').parse().ok().filter(|p| *p > 0.0 && *p < 100.0);
                slo.percentile = percent.ok_or_else(|| wrong(part))?;
                continue;
            }
            let metric = Metric::ALL.into_iter().find(|metric| metric.key() == key).ok_or_else(|| wrong(part))?;
            let units = [("us", 1e-3), ("µs", 1e-3), ("ms", 1.0), ("s", 1e3), ("", 1.0)];
            let (number, scale) = units
                .iter()
                .find_map(|(unit, scale)| Some((value.strip_suffix(unit)?, scale)))
                .unwrap_or((value, &1.0));
            let ms = number.trim().parse::<f64>().ok().map(|ms| ms * scale).filter(|ms| ms.is_finite() && *ms > 0.0);
            slo.targets.push((metric, ms.ok_or_else(|| wrong(part))?));
        }
        if slo.targets.is_empty() { Err(wrong(text)) } else { Ok(slo) }
    }

    /// The most that a time may be, ms; without a target there is no limit.
    pub fn most(&self, metric: Metric) -> f64 {
        self.targets.iter().filter(|(own, _)| *own == metric).map(|(_, ms)| *ms).fold(f64::INFINITY, f64::min)
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let targets = self.targets.iter().map(|(metric, ms)| format!("{}={ms}ms", metric.key()));
        let targets: Vec<String> = targets.chain([format!("p={}", self.percentile)]).collect();
        targets.join(",")
    }

    /// Whether the percentile of every target holds under a load; `None` where what was recorded does not tell.
    pub fn holds(&self, load: &Load) -> Option<bool> {
        let each = self.targets.iter().map(|(metric, ms)| {
            let (low, high) = within(load, *metric, *ms)?;
            let asked = self.percentile / 100.0;
            if low >= asked { Some(true) } else { (high <= asked).then_some(false) }
        });
        let each: Vec<Option<bool>> = each.collect();
        if each.contains(&Some(false)) {
            Some(false)
        } else {
            each.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
        }
    }

    /// Requests per second that hold every target.
    pub fn goodput(&self, load: &Load) -> Option<Goodput> {
        let rate = load.request_throughput()?;
        let counted = self.targets.iter().all(|(metric, _)| !load.samples(*metric).is_empty());
        if counted {
            let good = load.requests.iter().filter(|request| {
                self.targets.iter().all(|(metric, ms)| match metric {
                    Metric::Ttft => request.ttft <= *ms,
                    Metric::Tpot => request.tpot.is_none_or(|tpot| tpot <= *ms),
                    Metric::E2e => request.e2e <= *ms,
                    Metric::Itl => false,
                })
            });
            let share = good.count() as f64 / load.requests.len().max(1) as f64;
            return Some(Goodput { low: rate * share, high: rate * share, by: By::Requests });
        }
        // At most as many are good as hold the hardest target; at least as many as are left when every target is missed by others.
        let (mut least, mut most) = (1.0f64, 1.0f64);
        for (metric, ms) in &self.targets {
            let (low, high) = within(load, *metric, *ms)?;
            least -= 1.0 - low;
            most = most.min(high);
        }
        Some(Goodput { low: rate * least.max(0.0), high: rate * most, by: By::Percentiles })
    }
}

/// Between which shares of the requests hold a target: exact where they were timed one by one, else between recorded percentiles.
/// `None` where neither is known.
fn within(load: &Load, metric: Metric, ms: f64) -> Option<(f64, f64)> {
    let samples = load.samples(metric);
    if !samples.is_empty() {
        let share = samples.iter().filter(|own| **own <= ms).count() as f64 / samples.len() as f64;
        return Some((share, share));
    }
    let percentiles = &load.times.get(&metric)?.percentiles;
    if percentiles.is_empty() {
        return None;
    }
    let low = percentiles.iter().filter(|(_, own)| *own <= ms).map(|(percent, _)| percent / 100.0).fold(0.0, f64::max);
    let high = percentiles.iter().filter(|(_, own)| *own > ms).map(|(percent, _)| percent / 100.0).fold(1.0, f64::min);
    Some((low.min(high), high.max(low)))
}

fn wrong(part: &str) -> String {
    format!("'{part}' is no target; write targets as ttft=200ms,tpot=50ms and the percentile as p=99")
}
