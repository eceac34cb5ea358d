//! The results that benchmarks print for people: `vllm bench serve` and SGLang's `bench_serving` between two lines of `=`,
//! `vllm bench latency` as one line per percentile. Sources: `vllm/benchmarks/serve.py`, `vllm/benchmarks/latency.py`,
//! `sglang/bench_serving.py`, read in 2026-11.

use model::{Provenance::Observed, TraceSink};

use super::{LOADS, name};
use crate::lines::plain;

/// What stands in the line above the numbers of a load.
const BEGINS: &str = "Serving Benchmark Result";
/// What the line above them begins with where one batch is generated again and again.
const LATENCY: &str = "Avg latency: ";
/// Numbers of a load that are kept; a result has some forty.
const NUMBERS: usize = 128;
/// Settings of the load that are printed above its numbers.
const AHEAD: [&str; 2] = ["Traffic request rate", "Maximum request concurrency"];

/// Results, line by line.
#[derive(Default)]
pub(super) struct Printed {
    loads: Vec<Vec<(String, f64)>>,
    /// Numbers that stand above those of the next load.
    ahead: Vec<(String, f64)>,
    within: bool,
    model: Option<String>,
    /// Loads beyond those that are kept.
    further: u64,
}

/// Whether such a result stands in a text.
pub(super) fn stands_in(text: &[u8]) -> bool {
    let has = |what: &str| memchr::memmem::find(text, what.as_bytes()).is_some();
    has(BEGINS) && has("Mean TTFT (ms):") || has(LATENCY) && has("% percentile latency: ")
}

impl Printed {
    /// Takes a line.
    pub fn line(&mut self, line: &[u8]) {
        let text = plain(line);
        let text = text.trim();
        if text.contains(BEGINS) {
            return self.begin();
        }
        if text.starts_with("Namespace(") {
            self.model = self.model.take().or_else(|| model(text));
        }
        let Some((label, value)) = text.rsplit_once(':').map(|(label, value)| (label.trim(), value.trim())) else {
            self.within &= !text.starts_with("====");
            return;
        };
        if let Some(seconds) = value.strip_suffix(" seconds").and_then(|number| number.parse::<f64>().ok()) {
            return self.latency(label, seconds);
        }
        let Some(number) = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0) else {
            return;
        };
        let known = name::of(label, false).or_else(|| name::of(label.split_once('(')?.0, false));
        match known {
            Some((name, scale)) if self.within => self.keep(name, number * scale),
            Some((name, scale)) if AHEAD.contains(&label) && self.ahead.len() < NUMBERS => {
                self.ahead.push((name, number * scale));
            }
            _ => {}
        }
    }

    fn begin(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        self.within = self.loads.len() < LOADS as usize;
        match self.within {
            true => self.loads.push(ahead),
            false => self.further += 1,
        }
    }

    fn keep(&mut self, name: String, number: f64) {
        if let Some(load) = self.loads.last_mut().filter(|load| load.len() < NUMBERS) {
            load.push((name, number));
        }
    }

    /// A line of the time that whole generations of a batch take: `Avg latency: 0.9 seconds`, `50% percentile latency: 0.8 seconds`.
    fn latency(&mut self, label: &str, seconds: f64) {
        if label == "Avg latency" {
            self.begin();
            self.keep("e2e.mean".to_owned(), seconds * 1e3);
        } else if let Some(percent) = label.strip_suffix("% percentile latency").and_then(|n| n.parse::<f64>().ok()) {
            self.keep(format!("e2e.p{percent}"), seconds * 1e3);
        }
    }

    /// Writes what was read as loads; how many these are, and how many were too many.
    pub fn tell(self, sink: &mut dyn TraceSink) -> (u64, u64) {
        let mut told = 0;
        for load in self.loads.iter().filter(|load| load.iter().any(|(name, _)| name.contains('.'))) {
            told += 1;
            for (name, number) in load {
                sink.manifest(&format!("load.{told}.{name}"), &number.to_string(), Observed);
            }
        }
        if let Some(said) = self.model.as_deref().filter(|_| told > 0) {
            let (model, revision) = name::model(said);
            sink.manifest("model.name", &model, Observed);
            revision.into_iter().for_each(|text| sink.manifest("model.revision", &text, Observed));
        }
        (told, self.further)
    }
}

/// The model that a benchmark was called with: `Namespace(…, model='m', …)`.
fn model(arguments: &str) -> Option<String> {
    let (_, rest) = arguments.split_once(" model='")?;
    Some(rest.split_once('\'')?.0.to_owned())
}
