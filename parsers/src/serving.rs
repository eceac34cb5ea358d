//! Results of serving benchmarks as JSON: `vllm bench latency|throughput|serve` and SGLang's `bench_serving`, which write
//! bare `Infinity` and `NaN`.
//!
//! A client sees requests, not steps: the time to the first token, and the times between the tokens that follow. The times
//! between tokens are taken as decode steps, because an engine's step is what gives a request its next token; requests stand
//! one after the other, as the result does not say when each began.

use std::{collections::BTreeMap, path::Path};

use model::{
    Category, Clock, Ns, Provenance::Observed, Severity, Slice, TraceSink, TrackId, TrackKey, TrackKind,
    time::parse_decimal,
};
use serde_json::value::RawValue;

use crate::{Format, Head, Match, Place, Progress, ReadError, bare_json::quoted, container::Source};

#[cfg(test)]
mod tests;

/// The format.
pub const FORMAT: Format =
    Format { id: "serving", name: "serving benchmark result, JSON", matches, read, lead: crate::alone };

/// Largest result that is read, bytes: 64 MiB hold some five million times.
const LARGEST: usize = 64 << 20;
/// Facts kept of one result.
const FACTS: usize = 96;

/// Keys that occur together in no other JSON.
const MARKS: [[&str; 2]; 4] = [
    ["\"avg_latency\"", "\"latencies\""],
    ["\"request_throughput\"", "ttft"],
    ["\"elapsed_time\"", "\"requests_per_second\""],
    ["\"ttfts\"", "\"itls\""],
];

/// Manifest fields of known keys; other numbers and texts are facts under `serving.<key>`.
const KEYS: [(&str, &str); 5] = [
    ("model_id", "model.name"),
    ("num_prompts", "workload.requests"),
    ("request_rate", "workload.arrival"),
    ("max_concurrency", "workload.concurrency"),
    ("dataset_name", "workload.dataset"),
];

type Object<'a> = BTreeMap<String, &'a RawValue>;

fn matches(head: &Head<'_>) -> Match {
    let text = head.bytes.trim_ascii_start();
    let has = |mark: &str| memchr::memmem::find(text, mark.as_bytes()).is_some();
    let known = text.starts_with(b"{") && MARKS.iter().any(|[a, b]| has(a) && has(b));
    if known && !has("\"traceEvents\"") { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let mut source = Source::open(path)?;
    let mut bytes = Vec::new();
    while bytes.len() <= LARGEST && source.append_to(&mut bytes)? {
        let (done, total) = source.progress();
        progress(done, total);
    }
    let malformed = |place, expected: String| ReadError::Malformed {
        path: path.to_owned(),
        place,
        expected,
        next: "run the benchmark again with --save-result, or copy the file again".to_owned(),
    };
    if bytes.len() > LARGEST {
        return Err(malformed(Place::File, "a result of at most 64 MiB".to_owned()));
    }
    let (text, infinite) = quoted(&bytes);
    // SGLang appends a line per run.
    let mut results = serde_json::Deserializer::from_slice(&text).into_iter::<Object<'_>>();
    let result = match results.next() {
        Some(Ok(result)) => result,
        Some(Err(e)) => {
            return Err(malformed(Place::Byte(results.byte_offset() as u64), format!("a whole JSON object ({e})")));
        }
        None => return Err(malformed(Place::File, "a JSON object".to_owned())),
    };
    let mut import = Import { sink, cursor: 0, unreadable: 0 };
    import.result(&result);
    let further = results.take_while(Result::is_ok).count() as u64;
    import.sink.ledger("results", 1 + further, 1, 0, "the first result of the file");
    import.stat("further_results", Severity::Notice, further, "split the file into one result each");
    import.stat("not_a_number", Severity::Info, infinite, "Infinity or NaN");
    import.stat("unreadable_time", Severity::DataLoss, import.unreadable, "a time that is no number of seconds");
    if let Some(damage) = source.damage() {
        import.stat("damaged_file", Severity::DataLoss, 1, damage);
    }
    Ok(())
}

struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    /// Where the next request begins.
    cursor: Ns,
    unreadable: u64,
}

impl Import<'_> {
    fn stat(&mut self, what: &str, severity: Severity, count: u64, example: &str) {
        if count > 0 {
            self.sink.stat(&format!("serving.{what}"), severity, count, Some(example));
        }
    }

    fn result(&mut self, result: &Object<'_>) {
        self.sink.clock(Clock::AsIs { unix_zero: None });
        for (key, value) in result.iter().take(FACTS) {
            let text = value.get();
            let fact = text.trim_matches('"');
            if text.starts_with(['[', '{']) || matches!(text, "null" | "\"\"") {
                continue;
            }
            match KEYS.iter().find(|(known, _)| known == key) {
                Some((_, field)) => self.sink.manifest(field, fact, Observed),
                None => self.sink.manifest(&format!("serving.{key}"), fact, Observed),
            }
        }
        let failed = list(result.get("errors").copied()).iter().filter(|e| !matches!(e.get(), "\"\"" | "null")).count();
        self.stat("failed_requests", Severity::Notice, failed as u64, "requests that ended with an error");
        self.iterations(&list(result.get("latencies").copied()));
        self.requests(&list(result.get("ttfts").copied()), &list(result.get("itls").copied()));
    }

    fn track(&mut self, id: i64, name: &str) -> TrackId {
        let process = self.sink.process(0);
        let track = self.sink.track(TrackKey { kind: TrackKind::Global, process, device: None, context: None, id });
        self.sink.name_track(track, name);
        track
    }

    fn slice(&mut self, track: TrackId, name: &str, start: Ns, dur: Ns) {
        let (name, category) = (self.sink.intern(name), Category::UserRange);
        self.sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
    }

    /// Seconds of a number, in ns.
    fn seconds(&mut self, value: &RawValue) -> Option<Ns> {
        let ns = parse_decimal(value.get().as_bytes(), 9).ok().map(|(ns, _)| ns).filter(|ns| *ns >= 0);
        self.unreadable += u64::from(ns.is_none());
        ns
    }

    /// Whole generations of a batch: prompt and all tokens.
    fn iterations(&mut self, latencies: &[&RawValue]) {
        if latencies.is_empty() {
            return;
        }
        let track = self.track(0, "iterations of the benchmark");
        let (mut kept, mut time) = (0, 0i64);
        for latency in latencies {
            let Some(dur) = self.seconds(latency) else { continue };
            self.slice(track, "iteration", self.cursor, dur);
            (kept, time, self.cursor) = (kept + 1, time.saturating_add(dur), self.cursor.saturating_add(dur));
        }
        let note = "whole generations of a batch, one after the other: no steps";
        self.sink.ledger("latencies", latencies.len() as u64, kept, time, note);
    }

    fn requests(&mut self, ttfts: &[&RawValue], itls: &[&RawValue]) {
        if ttfts.is_empty() && itls.is_empty() {
            return;
        }
        let (requests, steps) = (self.track(1, "requests"), self.track(2, "tokens"));
        let mut sums = [(0u64, 0u64, 0i64); 2];
        for i in 0..ttfts.len().max(itls.len()) {
            let start = self.cursor;
            if let Some(value) = ttfts.get(i) {
                sums[0].0 += 1;
                if let Some(dur) = self.seconds(value) {
                    self.slice(requests, "time to first token", start, dur);
                    (sums[0].1, sums[0].2) = (sums[0].1 + 1, sums[0].2.saturating_add(dur));
                    self.cursor = start.saturating_add(dur);
                }
            }
            for value in list(itls.get(i).copied()) {
                sums[1].0 += 1;
                let Some(dur) = self.seconds(value) else { continue };
                self.slice(steps, "log step decode", self.cursor, dur);
                (sums[1].1, sums[1].2) = (sums[1].1 + 1, sums[1].2.saturating_add(dur));
                self.cursor = self.cursor.saturating_add(dur);
            }
        }
        self.stat("no_start_times", Severity::Notice, 1, "requests stand one after the other");
        let notes = ["times to the first token", "times between tokens as a client saw them: decode steps"];
        for ((category, note), (read, kept, time)) in ["ttfts", "itls"].into_iter().zip(notes).zip(sums) {
            self.sink.ledger(category, read, kept, time, note);
        }
    }
}

/// The members of a list; nothing for what is none.
fn list(value: Option<&RawValue>) -> Vec<&RawValue> {
    value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}
