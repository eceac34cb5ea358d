//! The metrics page of a server (`/metrics`, text of Prometheus) as a file: what it did since it started, as one load. Names are
//! those of vLLM (`vllm/v1/metrics/loggers.py`) and SGLang (`sglang/srt/metrics/collector.py`), read in 2026-11. A page has sums and
//! counts, so times are means over all requests.

use std::collections::BTreeMap;

use model::{Provenance::Observed, TraceSink};

/// What the names of an engine's metrics begin with, and its name.
const ENGINES: [(&str, &str); 2] = [("vllm:", "vllm"), ("sglang:", "sglang")];
/// Histograms of times in seconds and the name of their mean.
const TIMES: [(&str, &str); 6] = [
    ("time_to_first_token_seconds", "ttft.mean"),
    ("inter_token_latency_seconds", "itl.mean"),
    ("time_per_output_token_seconds", "tpot.mean"),
    ("request_time_per_output_token_seconds", "tpot.mean"),
    ("e2e_request_latency_seconds", "e2e.mean"),
    ("request_queue_time_seconds", "queue.mean"),
];
/// Counters and gauges, and the name that each has here.
const NUMBERS: [(&str, &str); 8] = [
    ("prompt_tokens_total", "input_tokens"),
    ("generation_tokens_total", "output_tokens"),
    ("request_success_total", "completed"),
    ("num_requests_total", "completed"),
    ("num_requests_running", "running"),
    ("num_running_reqs", "running"),
    ("num_requests_waiting", "waiting"),
    ("num_queue_reqs", "waiting"),
];

/// Sums of a page's metrics by their names without the engine's, over all labels.
pub(super) struct Page {
    engine: &'static str,
    sums: BTreeMap<String, f64>,
    model: Option<String>,
}

impl Page {
    /// The page that a text is, if it is one.
    pub fn of(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let (prefix, engine) = ENGINES.into_iter().find(|(prefix, _)| text.contains(&format!("# TYPE {prefix}")))?;
        let mut page = Self { engine, sums: BTreeMap::new(), model: None };
        for line in text.lines() {
            let Some((metric, value)) = line.strip_prefix(prefix).and_then(|line| line.rsplit_once(' ')) else {
                continue;
            };
            let (name, labels) = metric.split_once('{').unwrap_or((metric, ""));
            if let Some(value) = value.parse::<f64>().ok().filter(|value| value.is_finite()) {
                *page.sums.entry(name.to_owned()).or_default() += value;
            }
            let model = || Some(labels.split_once("model_name=\"")?.1.split_once('"')?.0.to_owned());
            page.model = page.model.take().or_else(model);
        }
        let known = TIMES.iter().any(|(name, _)| page.mean(name).is_some())
            || NUMBERS.iter().any(|(name, _)| page.sums.contains_key(*name));
        known.then_some(page)
    }

    /// Mean of a histogram of seconds, ms.
    fn mean(&self, name: &str) -> Option<f64> {
        let of = |what: &str| self.sums.get(&format!("{name}_{what}")).copied();
        let count = of("count").filter(|count| *count > 0.0)?;
        Some(of("sum")? / count * 1e3)
    }

    /// Writes the page as a load; how many of its numbers were known.
    pub fn tell(&self, sink: &mut dyn TraceSink) -> u64 {
        let means = TIMES.iter().filter_map(|(name, known)| Some((*known, self.mean(name)?)));
        let numbers = NUMBERS.iter().filter_map(|(name, known)| Some((*known, *self.sums.get(*name)?)));
        let mut told = 0;
        for (name, number) in means.chain(numbers) {
            sink.manifest(&format!("load.1.{name}"), &number.to_string(), Observed);
            told += 1;
        }
        sink.manifest("software.engine", self.engine, Observed);
        self.model.iter().for_each(|model| sink.manifest("model.name", model, Observed));
        told
    }
}
