//! Results of serving benchmarks: one result as a part of its report, and two of them load by load.

pub mod json;
mod page;
mod single;

use model::Trace;

use super::{
    diff::{Compared, Head, ci::Asked},
    document::Document,
    sections::Shown,
};
use diagnosis::{
    i18n::{Lang, Text},
    serving::{
        self, Level, Load, Slo,
        beside::{Beside, LEAST, Quantity, Reading},
    },
};

pub(crate) use single::{headline, write};

/// What a capture says of the load that a server was under.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loads {
    /// The loads, in the order of the source.
    pub loads: Vec<Load>,
    /// Targets, where they are stated.
    pub slo: Option<Slo>,
}

impl Loads {
    /// Of a capture: none of one that is no serving result.
    pub fn of(trace: &Trace) -> Self {
        let slo = trace.manifest.value("service.slo").and_then(|text| Slo::parse(text).ok());
        Self { loads: serving::of(trace), slo }
    }
}

impl serde::Serialize for Loads {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::single(self).serialize(serializer)
    }
}

/// A report on two serving results.
#[derive(Clone, Debug, PartialEq)]
pub struct ServingReport {
    /// The two sides.
    pub heads: [Head; 2],
    /// What served each side: its engine, or what the benchmark was told to speak with.
    pub engines: [Option<String>; 2],
    /// What is said of them.
    pub beside: Beside,
}

impl Compared for ServingReport {
    fn heads(&self) -> &[Head; 2] {
        &self.heads
    }

    fn document(&self, lang: Lang) -> Document {
        page::report(self, lang)
    }

    fn json(&self, gate: Option<Asked>) -> Result<String, serde_json::Error> {
        json::render(self, gate)
    }

    // Of mean times, and of tokens per second that are missing.
    fn slower(&self) -> Option<Vec<(String, f64)>> {
        let rows = self.beside.pairs.iter().flat_map(|pair| pair.rows.iter().map(move |row| (pair, row)));
        let slower = rows.filter_map(|(pair, row)| {
            let (name, share) = match (row.what, row.reading) {
                (Quantity::Mean(metric), Reading::More) => (format!("{} mean", metric.name()), row.ratio() - 1.0),
                (Quantity::Tokens, Reading::Less) => ("output tokens per second".to_owned(), 1.0 / row.ratio() - 1.0),
                (Quantity::Goodput, Reading::Less) => ("goodput".to_owned(), 1.0 / row.ratio() - 1.0),
                _ => return None,
            };
            Some((format!("{name}, {}, {}", level(pair.level, Lang::En), tokens(&pair.loads[0])), share))
        });
        let mut slower: Vec<_> = slower.collect();
        slower.sort_by(|a, b| b.1.total_cmp(&a.1));
        (!self.beside.pairs.is_empty()).then_some(slower)
    }
}

impl Shown for ServingReport {
    fn is_simulated(&self) -> bool {
        self.heads.iter().any(|head| head.simulated)
    }
}

/// A time in ms, with digits that say something.
pub(crate) fn ms(ms: f64) -> String {
    if ms >= 100.0 { format!("{ms:.1} ms") } else { format!("{ms:.2} ms") }
}

/// A level in a cell.
pub(crate) fn level(level: Option<Level>, lang: Lang) -> String {
    match level {
        Some(Level::Concurrency(n)) => {
            format!("{} {}", super::units::number(n), Text::new("at a time", "并发").get(lang))
        }
        Some(Level::Rate(n)) => format!("{} {}", super::units::number(n), Text::new("req/s", "请求/秒").get(lang)),
        Some(Level::Unlimited) => Text::new("all at once", "一次全部发出").get(lang).to_owned(),
        None => "–".to_owned(),
    }
}

/// The load that is asked of a server: prompt and answer.
pub(crate) fn tokens(load: &Load) -> String {
    let count = |n: Option<f64>| n.map_or_else(|| "?".to_owned(), |n| super::units::number((n * 10.0).round() / 10.0));
    format!("{} → {}", count(load.input_len()), count(load.output_len()))
}

/// The share below which no difference is shown, as it is written.
pub(crate) fn least() -> String {
    super::units::share(LEAST)
}
