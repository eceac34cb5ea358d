//! What a serving engine says of itself: its Prometheus `/metrics` page, read again and again, as counters like those of the
//! machine. A page that cannot be read, and a quantity that a page does not hold, have their reason.
//!
//! | module | owns |
//! | --- | --- |
//! | [`http`] | a page over plain HTTP, bounded in time and in size |
//! | [`exposition`] | Prometheus' text format |
//! | [`histogram`] | quantiles of what was added to a histogram between two pages |
//! | [`engine`] | which metric of which engine means what; the names are in `metrics/engines.toml` |

use std::{collections::BTreeMap, time::Duration};

use model::{Ns, Reading};

use crate::telemetry::{Collector, Counter};

pub mod engine;
pub mod exposition;
pub mod histogram;
pub mod http;

use engine::{Engine, Quantity};
use exposition::{Histogram, Page};
use http::Url;

/// How long a page may take, from the name of the host to its last byte.
pub const PATIENCE: Duration = Duration::from_secs(3);

const fn counter(name: &'static str, unit: &'static str) -> Counter {
    Counter { name, unit, device: None }
}

const RUNNING: Counter = counter("requests_running", "");
const WAITING: Counter = counter("requests_waiting", "");
const KV_USE: Counter = counter("kv_cache_use", "share");
const PREEMPTIONS: Counter = counter("preemptions", "1/s");
const PROMPT: Counter = counter("prompt_tokens", "1/s");
const GENERATED: Counter = counter("generated_tokens", "1/s");
const LATENCIES: [(Quantity, [Counter; 2]); 2] = [
    (Quantity::FirstToken, [counter("ttft_p50", "ns"), counter("ttft_p99", "ns")]),
    (Quantity::OutputToken, [counter("tpot_p50", "ns"), counter("tpot_p99", "ns")]),
];
const QUANTILES: [f64; 2] = [0.5, 0.99];
/// Time that reading a page took.
pub const SCRAPE: Counter = counter("scrape_time", "ns");
/// Lines of the page that are not of its format.
const BAD_LINES: Counter = counter("scrape_bad_lines", "");

/// A serving engine at an address.
#[derive(Debug)]
pub struct Server {
    url: Url,
    patience: Duration,
    /// The page before, and when it was read.
    before: Option<(Ns, Page)>,
}

impl Server {
    /// The engine whose page is at `url`, `http://HOST:PORT/metrics`.
    ///
    /// # Errors
    /// When that is no address of a page over plain HTTP.
    pub fn new(url: &str, patience: Duration) -> Result<Self, http::Error> {
        Ok(Self { url: Url::parse(url)?, patience, before: None })
    }

    /// Gives what a page says, against the one before it.
    fn tell(&mut self, at: Ns, page: Page, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let Some(engine) = engine::of(&page) else {
            let reason = if page.samples == 0 {
                format!("{} holds no metric", self.url)
            } else {
                format!("{} holds no metric of a known engine ({})", self.url, engine::names().join(", "))
            };
            all().into_iter().for_each(|counter| give(counter, Reading::Unavailable(reason.clone())));
            self.before = None;
            return;
        };
        for (counter, quantity) in
            [(RUNNING, Quantity::Running), (WAITING, Quantity::Waiting), (KV_USE, Quantity::KvUse)]
        {
            give(counter, held(engine, quantity, &page, |name| page.gauge(name, quantity == Quantity::KvUse)));
        }
        for (counter, quantity) in
            [(PREEMPTIONS, Quantity::Preemptions), (PROMPT, Quantity::Prompt), (GENERATED, Quantity::Generated)]
        {
            match self.since(at, |before, seconds| {
                let now = held(engine, quantity, &page, |name| page.gauge(name, false));
                now_less(now, held(engine, quantity, before, |name| before.gauge(name, false)), seconds)
            }) {
                Some(rate) => give(counter, rate),
                None => give(counter, held(engine, quantity, &page, |name| page.gauge(name, false)).map_to(first)),
            }
        }
        for (quantity, counters) in LATENCIES {
            let now = held(engine, quantity, &page, |name| page.histogram(name));
            let before =
                self.before.as_ref().map(|(_, before)| held(engine, quantity, before, |name| before.histogram(name)));
            for (counter, q) in counters.into_iter().zip(QUANTILES) {
                give(
                    counter,
                    match (&now, &before) {
                        (Reading::Unavailable(reason), _) => Reading::Unavailable(reason.clone()),
                        (Reading::Value(_), None) => first(()),
                        (Reading::Value(now), Some(before)) => {
                            let none = BTreeMap::new();
                            histogram::quantile(now, before.value().unwrap_or(&none), q)
                                .map_or_else(idle, |seconds| finite(seconds * 1e9))
                        }
                    },
                );
            }
        }
        give(BAD_LINES, Reading::Value(page.bad_lines as f64));
        self.before = Some((at, page));
    }

    fn since<T>(&self, at: Ns, of: impl FnOnce(&Page, f64) -> T) -> Option<T> {
        let (since, before) = self.before.as_ref()?;
        let seconds = at.checked_sub(*since).filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(of(before, seconds))
    }
}

/// Every counter but those of reading the page itself.
fn all() -> Vec<Counter> {
    let latencies = LATENCIES.iter().flat_map(|(_, counters)| counters);
    [RUNNING, WAITING, KV_USE, PREEMPTIONS, PROMPT, GENERATED].iter().chain(latencies).copied().collect()
}

fn first<T>(_: T) -> Reading<f64> {
    Reading::Unavailable("needs two pages".to_owned())
}

fn idle() -> Reading<f64> {
    Reading::Unavailable("no request since the page before".to_owned())
}

fn finite(value: f64) -> Reading<f64> {
    if value.is_finite() { Reading::Value(value) } else { Reading::Unavailable("the value is no number".to_owned()) }
}

/// What a page gives for a metric.
trait Given {
    /// A number of it that says nothing: `NaN`, or an infinite one.
    fn odd(&self) -> Option<f64>;
}

impl Given for f64 {
    fn odd(&self) -> Option<f64> {
        (!self.is_finite()).then_some(*self)
    }
}

impl Given for Histogram {
    fn odd(&self) -> Option<f64> {
        let unknown = self.keys().map(|bound| bound.0).find(|bound| bound.is_nan());
        unknown.or(self.values().copied().find(|count| !count.is_finite()))
    }
}

/// What the first metric of a page gives that an engine has for a quantity.
fn held<T: Given>(engine: &Engine, quantity: Quantity, page: &Page, get: impl Fn(&str) -> Option<T>) -> Reading<T> {
    let names = engine.metrics(quantity);
    match names.iter().find_map(|name| Some((name, get(name)?))) {
        Some((name, value)) => match value.odd() {
            Some(odd) => Reading::Unavailable(format!("the page gives {odd} for {name}")),
            None => Reading::Value(value),
        },
        None if names.is_empty() => Reading::Unavailable(format!("{} has no metric for it", engine.name)),
        None if page.cut => Reading::Unavailable(format!("the page was cut before {}", names.join(" or "))),
        None => Reading::Unavailable(format!("the page holds no {}", names.join(" or "))),
    }
}

/// What a counter grew by per second.
fn now_less(now: Reading<f64>, before: Reading<f64>, seconds: f64) -> Reading<f64> {
    match (now, before) {
        (Reading::Value(now), Reading::Value(before)) if now >= before => finite((now - before) / seconds),
        (Reading::Value(_), Reading::Value(_)) => Reading::Unavailable("the counter began anew".to_owned()),
        (Reading::Value(_), Reading::Unavailable(_)) => first(()),
        (now, _) => now,
    }
}

/// A reading whose value becomes another reading.
trait MapTo<T> {
    fn map_to<U>(self, of: impl FnOnce(T) -> Reading<U>) -> Reading<U>;
}

impl<T> MapTo<T> for Reading<T> {
    fn map_to<U>(self, of: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Value(value) => of(value),
            Self::Unavailable(reason) => Reading::Unavailable(reason),
        }
    }
}

impl Collector for Server {
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let began = std::time::Instant::now();
        match http::get(&self.url, self.patience) {
            Ok(body) => {
                give(SCRAPE, Reading::Value(began.elapsed().as_nanos() as f64));
                let page = exposition::read(&body.bytes, body.cut, &|name| engine::wanted(name));
                self.tell(at, page, give);
            }
            Err(error) => {
                let reason = error.to_string();
                give(SCRAPE, Reading::Unavailable(reason.clone()));
                all().into_iter().for_each(|counter| give(counter, Reading::Unavailable(reason.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests;
