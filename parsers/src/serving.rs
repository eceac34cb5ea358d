//! Results of serving benchmarks as JSON: `vllm bench latency|throughput|serve` and SGLang's `bench_serving`, which write
//! bare `Infinity` and `NaN`.
//!
//! A client sees requests, not steps: the time to the first token, and the times between the tokens that follow. The times
//! between tokens are taken as decode steps, because an engine's step is what gives a request its next token; requests stand
//! one after the other, as the result does not say when each began.

use std::path::Path;

use model::{Category, Clock, Ns, Provenance::Observed, Severity, Slice, TraceSink, TrackId, TrackKey, TrackKind};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions,
    container::Source,
    json::{Cursor, Fault, member},
};

mod outcome;
#[cfg(test)]
mod tests;

use outcome::Outcome;

/// The format.
pub const FORMAT: Format =
    Format { id: "serving", name: "serving benchmark result, JSON", matches, read, lead: crate::alone };

/// Largest result that is read, bytes: 64 MiB hold some five million times.
const LARGEST: usize = 64 << 20;
/// Keys that occur together in no other JSON.
const MARKS: [[&str; 2]; 6] = [
    ["avg_latency", "latencies"],
    ["request_throughput", "mean_ttft_ms"],
    ["request_throughput", "median_ttft_ms"],
    ["request_throughput", "ttfts"],
    ["elapsed_time", "requests_per_second"],
    ["ttfts", "itls"],
];

/// Manifest fields of known keys; other numbers and texts are facts under `serving.<key>`.
const KEYS: [(&str, &str); 7] = [
    ("server_info.tp_size", "parallel.tp"),
    ("server_info.quantization", "precision.quantization"),
    ("model_id", "model.name"),
    ("num_prompts", "workload.requests"),
    ("request_rate", "workload.arrival"),
    ("max_concurrency", "workload.concurrency"),
    ("dataset_name", "workload.dataset"),
];

fn matches(head: &Head<'_>) -> Match {
    let text = head.bytes.trim_ascii_start();
    let has = |key: &str| member::has_key(text, key);
    let known = text.starts_with(b"{") && MARKS.iter().any(|[a, b]| has(a) && has(b));
    if known && !has("traceEvents") { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut source = Source::open(path)?;
    let mut bytes = Vec::new();
    while bytes.len() <= LARGEST && source.append_to(&mut bytes)? {
        let (done, total) = source.progress();
        (options.progress)(done, total);
    }
    let malformed = |place, expected: &str| ReadError::Malformed {
        path: path.to_owned(),
        place,
        expected: expected.to_owned(),
        next: "run the benchmark again with --save-result, or copy the file again".to_owned(),
    };
    if bytes.len() > LARGEST {
        return Err(malformed(Place::File, "a result of at most 64 MiB"));
    }
    let mut json = Cursor::new(&bytes, 0);
    let (result, end) = Outcome::read(&mut json);
    if result.is_empty() {
        return Err(malformed(Place::Byte(json.at as u64), "a JSON object with the times of a benchmark"));
    }
    let mut import = Import { sink, cursor: 0 };
    import.take(&result);
    // SGLang appends a line per run.
    let further = std::iter::from_fn(|| json.value().ok()).count() as u64;
    let rest = u64::from(end.is_ok() && json.peek().is_ok());
    import.sink.ledger("results", 1 + further, 1, 0, "the first result of the file");
    import.stat("further_results", Severity::Notice, further, "split the file into one result each");
    import.stat("not_a_number", Severity::Info, result.infinite, "Infinity or NaN");
    import.stat("unreadable_time", Severity::DataLoss, result.unreadable, "a time that is no number of seconds");
    import.stat("broken_value", Severity::DataLoss, result.broken + rest, "a value that is no JSON was passed over");
    import.stat("truncated", Severity::DataLoss, u64::from(end == Err(Fault::End)), "the result ends before its end");
    if let Some(damage) = source.damage() {
        import.stat("damaged_file", Severity::DataLoss, 1, damage);
    }
    Ok(())
}

struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    /// Where the next request begins.
    cursor: Ns,
}

impl Import<'_> {
    fn stat(&mut self, what: &str, severity: Severity, count: u64, example: &str) {
        if count > 0 {
            self.sink.stat(&format!("serving.{what}"), severity, count, Some(example));
        }
    }

    fn take(&mut self, result: &Outcome<'_>) {
        self.sink.clock(Clock::AsIs { unix_zero: None });
        for (key, fact) in &result.facts {
            if self.model(key, fact) {
                continue;
            }
            match KEYS.iter().find(|(known, _)| known == key) {
                Some((_, field)) => self.sink.manifest(field, fact, Observed),
                None => self.sink.manifest(&format!("serving.{key}"), fact, Observed),
            }
        }
        self.stat("failed_requests", Severity::Notice, result.failed, "requests that ended with an error");
        self.iterations(&result.latencies);
        self.requests(result);
    }

    /// Takes what the server says of its model: where it lies, by which the cache of Hugging Face names model and revision, and
    /// the type of its numbers.
    fn model(&mut self, key: &str, fact: &str) -> bool {
        match key {
            "server_info.model_path" => {
                let mut parts = fact.trim_end_matches('/').split('/');
                let cached = parts.clone().find_map(|part| part.strip_prefix("models--"));
                let name = cached.map_or_else(
                    || parts.clone().next_back().unwrap_or(fact).to_owned(),
                    |name| name.replace("--", "/"),
                );
                self.sink.manifest("model.name", &name, Observed);
                if let Some(revision) = parts.by_ref().skip_while(|part| *part != "snapshots").nth(1) {
                    self.sink.manifest("model.revision", revision, Observed);
                }
                true
            }
            "server_info.dtype" => {
                let known = [("bfloat16", "bf16"), ("float16", "f16"), ("half", "f16"), ("float32", "f32")];
                let format = known.iter().find(|(word, _)| *word == fact).map(|(_, format)| *format);
                if let Some(format) = format {
                    self.sink.manifest("precision.activations", format, Observed);
                }
                format.is_some()
            }
            _ => false,
        }
    }

    fn track(&mut self, id: i64, name: &str) -> TrackId {
        let process = self.sink.process(0);
        let track = self.sink.track(TrackKey { kind: TrackKind::Global, process, device: None, context: None, id });
        self.sink.name_track(track, name);
        track
    }

    /// Places a time behind those before it.
    fn place(&mut self, track: TrackId, name: &str, dur: Ns, tally: &mut Tally) {
        let (name, category, start) = (self.sink.intern(name), Category::UserRange, self.cursor);
        self.sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
        self.cursor = start.saturating_add(dur);
        (tally.kept, tally.time) = (tally.kept + 1, tally.time.saturating_add(dur));
    }

    /// Whole generations of a batch: prompt and all tokens.
    fn iterations(&mut self, latencies: &[Option<Ns>]) {
        if latencies.is_empty() {
            return;
        }
        let (track, mut tally) = (self.track(0, "iterations of the benchmark"), Tally::default());
        for dur in latencies.iter().flatten() {
            self.place(track, "iteration", *dur, &mut tally);
        }
        let note = "whole generations of a batch, one after the other: no steps";
        self.sink.ledger("latencies", latencies.len() as u64, tally.kept, tally.time, note);
    }

    fn requests(&mut self, result: &Outcome<'_>) {
        let (ttfts, itls) = (&result.ttfts, &result.itls);
        if ttfts.is_empty() && itls.is_empty() {
            return;
        }
        let (requests, steps) = (self.track(1, "requests"), self.track(2, "tokens"));
        let (mut firsts, mut tokens) = (Tally::default(), Tally::default());
        for i in 0..ttfts.len().max(itls.len()) {
            if let Some(dur) = ttfts.get(i).copied().flatten() {
                self.place(requests, "time to first token", dur, &mut firsts);
            }
            for dur in itls.get(i).into_iter().flatten().flatten() {
                self.place(steps, "log step decode", *dur, &mut tokens);
            }
        }
        self.stat("no_start_times", Severity::Notice, 1, "requests stand one after the other");
        let read = itls.iter().map(Vec::len).sum::<usize>() as u64;
        self.sink.ledger("ttfts", ttfts.len() as u64, firsts.kept, firsts.time, "times to the first token");
        let note = "times between tokens as a client saw them: decode steps";
        self.sink.ledger("itls", read, tokens.kept, tokens.time, note);
    }
}

/// Times placed, and their sum in ns.
#[derive(Default)]
struct Tally {
    kept: u64,
    time: Ns,
}
