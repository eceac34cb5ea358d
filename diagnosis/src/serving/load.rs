//! A load and what was measured under it.

use std::collections::BTreeMap;

use model::{Ns, Trace};

/// Facts of loads begin so; the readers of results write `load.<n>.<name>`.
const PREFIX: &str = "load.";
/// Requests of one load whose times are kept one by one.
const REQUESTS: usize = 1 << 20;

/// A time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// From the request to its first token.
    Ttft,
    /// Mean time of a token after the first.
    Tpot,
    /// Time between two tokens.
    Itl,
    /// From the request to its last token.
    E2e,
}

impl Metric {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Ttft, Self::Tpot, Self::Itl, Self::E2e];

    /// Key in facts, options and JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Tpot => "tpot",
            Self::Itl => "itl",
            Self::E2e => "e2e",
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Tpot => "TPOT",
            Self::Itl => "ITL",
            Self::E2e => "E2E",
        }
    }
}

/// How hard the server was pressed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// So many requests at a time at most.
    Concurrency(f64),
    /// So many requests each second.
    Rate(f64),
    /// Everything at once.
    Unlimited,
}

impl Level {
    /// As a number that grows with the load.
    pub fn value(self) -> f64 {
        match self {
            Self::Concurrency(n) | Self::Rate(n) => n,
            Self::Unlimited => f64::INFINITY,
        }
    }
}

/// Share of the rate at which requests came from which their answers keep up with it: own value, for the ends of a run.
const KEPT: f64 = 0.95;

/// One request that was timed by itself, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// To its first token.
    pub ttft: f64,
    /// Mean of the times between its tokens; absent for a request of one token.
    pub tpot: Option<f64>,
    /// To its last token.
    pub e2e: f64,
}

/// The distribution of a time over the requests of a load, ms, as far as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation over requests.
    pub std: Option<f64>,
    /// Percentiles, the lowest first: percent and ms.
    pub percentiles: Vec<(f64, f64)>,
}

impl Times {
    /// A percentile that was recorded.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentiles.iter().find(|(known, _)| *known == percent).map(|(_, ms)| *ms)
    }
}

/// What was measured under one load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// File that it was read from.
    pub source: String,
    /// Its numbers by name, times left out; the names are those of the readers (`completed`, `output_throughput`, `power_w`).
    pub numbers: BTreeMap<String, f64>,
    /// Times that were recorded.
    pub times: BTreeMap<Metric, Times>,
    /// Requests that were timed one by one, where they were.
    pub requests: Vec<Request>,
    /// Whether requests came as fast as the server takes them.
    pub unlimited: bool,
}

impl Load {
    /// One of its numbers.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }

    /// What of its load pressed the server: the rate of requests where their answers kept up with it, else [`Load::level`].
    pub fn pressed(&self) -> Option<Level> {
        let (answered, asked) = self.request_throughput().zip(self.number("request_rate")).unzip();
        let kept = answered.zip(asked).is_some_and(|(answered, asked)| asked > 0.0 && answered >= KEPT * asked);
        asked.filter(|_| kept).map(Level::Rate).or_else(|| self.level())
    }

    /// How hard the server was pressed as the benchmark was told: a limit of concurrency, else a rate, else the concurrency that was
    /// measured.
    pub fn level(&self) -> Option<Level> {
        let limit = self.number("concurrency").map(Level::Concurrency);
        let rate = || self.number("request_rate").map(Level::Rate);
        let measured = || self.number("mean_concurrency").map(Level::Concurrency);
        limit.or_else(rate).or_else(measured).or_else(|| self.unlimited.then_some(Level::Unlimited))
    }

    /// Mean tokens of a prompt.
    pub fn input_len(&self) -> Option<f64> {
        self.number("input_len").or_else(|| Some(self.number("input_tokens")? / self.completed()?))
    }

    /// Mean tokens of an answer.
    pub fn output_len(&self) -> Option<f64> {
        self.number("output_len").or_else(|| Some(self.number("output_tokens")? / self.completed()?))
    }

    /// Requests that were answered.
    pub fn completed(&self) -> Option<f64> {
        self.number("completed").filter(|n| *n > 0.0)
    }

    /// Requests that ended with an error.
    pub fn failed(&self) -> Option<f64> {
        self.number("failed").filter(|n| *n > 0.0)
    }

    /// Whether the result says that no request was answered: none of its times is one.
    pub fn is_void(&self) -> bool {
        self.number("completed") == Some(0.0)
    }

    /// Requests answered each second.
    pub fn request_throughput(&self) -> Option<f64> {
        self.number("request_throughput")
            .or_else(|| Some(self.completed()? / self.number("duration_s").filter(|s| *s > 0.0)?))
    }

    /// Tokens of answers each second, of all devices.
    pub fn output_throughput(&self) -> Option<f64> {
        let per_device = || Some(self.number("output_throughput_per_device")? * self.devices()?);
        self.number("output_throughput").or_else(per_device)
    }

    /// Devices that the server ran on, where the result says it.
    pub fn devices(&self) -> Option<f64> {
        self.number("devices").or_else(|| self.number("tp")).filter(|n| *n > 0.0)
    }

    /// Mean of a time, ms: recorded, or that of the requests.
    pub fn mean(&self, metric: Metric) -> Option<f64> {
        self.times.get(&metric).and_then(|times| times.mean)
    }

    /// A percentile of a time, ms: recorded, or that of the requests.
    pub fn percentile(&self, metric: Metric, percent: f64) -> Option<f64> {
        self.times.get(&metric)?.percentile(percent)
    }

    /// A time of every request that was timed by itself, ms.
    pub fn samples(&self, metric: Metric) -> Vec<f64> {
        let of = |request: &Request| match metric {
            Metric::Ttft => Some(request.ttft),
            Metric::Tpot => request.tpot,
            Metric::E2e => Some(request.e2e),
            Metric::Itl => None,
        };
        self.requests.iter().filter_map(of).collect()
    }

    /// Fills in what requests say and the result does not.
    fn complete(&mut self) {
        // Where nothing was answered, the zeros of the requests and of their statistics are no times.
        if self.is_void() {
            self.requests.clear();
            self.times.clear();
        }
        for metric in [Metric::Ttft, Metric::Tpot, Metric::E2e] {
            let mut samples = self.samples(metric);
            if samples.is_empty() {
                continue;
            }
            samples.sort_unstable_by(f64::total_cmp);
            let n = samples.len() as f64;
            let mean = samples.iter().sum::<f64>() / n;
            let times = self.times.entry(metric).or_default();
            times.mean.get_or_insert(mean);
            if samples.len() > 1 {
                let variance = samples.iter().map(|ms| (ms - mean) * (ms - mean)).sum::<f64>() / (n - 1.0);
                times.std.get_or_insert(variance.sqrt());
            }
            for percent in [50.0, 90.0, 95.0, 99.0] {
                // Nearest rank; below it, a percentile would only be the slowest request.
                let enough = n * (100.0 - percent) >= 100.0;
                let rank = (n * percent / 100.0).ceil() as usize;
                let value = samples.get(rank.saturating_sub(1)).filter(|_| enough);
                if let Some(value) = value.filter(|_| times.percentile(percent).is_none()) {
                    times.percentiles.push((percent, *value));
                }
            }
            times.percentiles.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        }
        if self.number("completed").is_none() && !self.requests.is_empty() {
            self.numbers.insert("completed".to_owned(), self.requests.len() as f64);
        }
    }
}

/// The loads of a capture, in the order of their source; none of a capture that is no serving result.
pub fn of(trace: &Trace) -> Vec<Load> {
    let mut loads: BTreeMap<u32, Load> = BTreeMap::new();
    for (key, entry) in trace.manifest.iter() {
        let named = key.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.'));
        let Some((number, name)) = named else { continue };
        let (Ok(number), Ok(value)) = (number.parse::<u32>(), entry.value.parse::<f64>()) else { continue };
        let load = loads.entry(number).or_default();
        match name.split_once('.').and_then(|(time, rest)| Some((metric(time)?, rest))) {
            Some((metric, statistic)) => put(load.times.entry(metric).or_default(), statistic, value),
            None => drop(load.numbers.insert(name.to_owned(), value)),
        }
    }
    let unlimited = trace
        .manifest
        .value("workload.arrival")
        .is_some_and(|rate| rate.eq_ignore_ascii_case("infinity") || rate == "inf");
    let source = trace.source.rsplit(['/', '\\']).next().unwrap_or_default();
    for (number, load) in &mut loads {
        load.source = source.to_owned();
        load.unlimited = unlimited;
        load.requests = requests(trace, *number);
        load.complete();
        for times in load.times.values_mut() {
            times.percentiles.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    loads.into_values().filter(|load| !load.times.is_empty() || load.is_void()).collect()
}

fn metric(key: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.key() == key)
}

fn put(times: &mut Times, statistic: &str, value: f64) {
    match statistic {
        "mean" => times.mean = Some(value),
        "std" => times.std = Some(value),
        "min" | "max" => {}
        _ => {
            let percent = statistic.strip_prefix('p').and_then(|text| text.parse().ok());
            times.percentiles.extend(percent.map(|percent: f64| (percent, value)));
        }
    }
}

/// The requests of a load that lie on tracks of their own, one after the other: first the time to the first token, then those
/// between tokens.
fn requests(trace: &Trace, load: u32) -> Vec<Request> {
    let suffix = if load == 1 { String::new() } else { format!(" of load {load}") };
    let lane = |name: String| {
        let named = |text: Option<model::StringId>| text.is_some_and(|id| trace.strings.get(id) == name);
        let found = trace.tracks.iter().position(|track| named(track.name));
        found.and_then(|track| trace.lanes.get(track))
    };
    let Some(firsts) = lane(format!("requests{suffix}")).filter(|_| trace.format == "serving") else {
        return Vec::new();
    };
    let tokens = lane(format!("tokens{suffix}"));
    let mut tokens =
        tokens.into_iter().flat_map(|lane| lane.start.iter().copied().zip(lane.dur.iter().copied())).peekable();
    let ms = |ns: Ns| ns as f64 / 1e6;
    let mut found = Vec::new();
    for (row, (start, ttft)) in firsts.start.iter().zip(&firsts.dur).enumerate().take(REQUESTS) {
        let end = firsts.start.get(row + 1).copied().unwrap_or(Ns::MAX);
        let (mut count, mut sum) = (0u32, 0);
        while let Some((at, dur)) = tokens.next_if(|(at, _)| *at < end) {
            if at >= *start {
                (count, sum) = (count + 1, dur.saturating_add(sum));
            }
        }
        let tpot = (count > 0).then(|| ms(sum) / f64::from(count));
        found.push(Request { ttft: ms(*ttft), tpot, e2e: ms(ttft.saturating_add(sum)) });
    }
    found
}
