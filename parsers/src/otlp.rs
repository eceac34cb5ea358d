//! Spans of OpenTelemetry as OTLP JSON, which the collector's file exporter writes (an export per line) and which traces of
//! requests of vLLM and SGLang (`--otlp-traces-endpoint`) end in. A span says when a part of a request ran on the host and
//! nothing of a device; spans of one request lie on a track of their own, since requests overlap. Times are ns of the wall
//! clock. Source: `opentelemetry/proto/trace/v1/trace.proto` 1.3 and its JSON encoding. No file of a serving engine was at hand.

use std::path::Path;

use model::{Category, Clock, Ns, Provenance, Severity, Slice, TraceSink};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions, container,
    json::member,
    lanes::{Account, Lanes},
};

mod stream;

/// Spans of OpenTelemetry.
pub const FORMAT: Format =
    Format { id: "otlp", name: "OpenTelemetry spans of requests (OTLP JSON)", matches, read, lead: crate::alone };

/// Bytes that tell whether a file has an export per line.
const HEAD: usize = 64 << 10;
/// Most services and requests that are told apart.
const MAX_KNOWN: usize = 1 << 16;

fn matches(head: &Head<'_>) -> Match {
    let has = |key: &str| member::has_key(head.bytes, key);
    let object = head.bytes.trim_ascii_start().starts_with(b"{");
    let spans = has("scopeSpans") || has("instrumentationLibrarySpans");
    if object && member::has_value(head.bytes, "resourceSpans", b"[") && spans { Match::Certain } else { Match::No }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Span {
    trace_id: String,
    name: String,
    start_time_unix_nano: Value,
    end_time_unix_nano: Value,
    attributes: Vec<Attribute>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attribute {
    key: String,
    value: FxHashMap<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resource {
    attributes: Vec<Attribute>,
}

impl Resource {
    /// What the service calls itself; empty where nothing says it.
    fn service(&self) -> String {
        let named = self.attributes.iter().find(|attribute| attribute.key == "service.name");
        named.and_then(Attribute::text).unwrap_or_default()
    }
}

impl Attribute {
    fn text(&self) -> Option<String> {
        match self.value.values().next()? {
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        }
    }
}

/// A time that is written as text, or as a number by some writers.
fn nanos(value: &Value) -> Option<Ns> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_i64(),
    }
}

struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    lanes: Lanes,
    services: FxHashMap<String, u64>,
    requests: FxHashMap<String, i64>,
    models: Vec<String>,
    account: Account,
    unreadable: u64,
}

impl Import<'_> {
    /// The number of a name, in the order of their first appearance; the names beyond the most share one number.
    fn number<T: TryFrom<usize> + Copy + Default>(known: &mut FxHashMap<String, T>, name: &str) -> T {
        let next = known.len();
        match known.get(name) {
            Some(number) => *number,
            None if next >= MAX_KNOWN => T::default(),
            None => {
                let number = T::try_from(next + 1).unwrap_or_default();
                known.insert(name.to_owned(), number);
                number
            }
        }
    }

    /// The number of a service, whose process has its name.
    fn service(&mut self, name: &str) -> u64 {
        let key = Self::number(&mut self.services, name);
        if !name.is_empty() {
            let process = self.lanes.process(&mut *self.sink, key);
            self.sink.describe_process(process, None, Some(name), None);
        }
        key
    }

    /// Takes a span; one that could not be read has neither beginning nor end.
    fn take(&mut self, service: u64, span: &Span) {
        self.account.read += 1;
        match self.span(service, span) {
            Some((start, end)) => self.account.keep(start, end),
            None => self.account.incomplete += 1,
        }
    }

    fn span(&mut self, process: u64, span: &Span) -> Option<(Ns, Ns)> {
        let start = nanos(&span.start_time_unix_nano).filter(|start| *start > 0)?;
        let end = nanos(&span.end_time_unix_nano).filter(|end| *end >= start)?;
        let request = Self::number(&mut self.requests, &span.trace_id);
        let track = self.lanes.thread(&mut *self.sink, process, request);
        self.sink.name_track(track, &format!("request {}", span.trace_id));
        let model =
            span.attributes.iter().find(|a| matches!(a.key.as_str(), "gen_ai.response.model" | "gen_ai.request.model"));
        if let Some(model) = model.and_then(Attribute::text).filter(|model| !self.models.contains(model))
            && self.models.len() < 8
        {
            self.models.push(model);
        }
        let name = self.sink.intern(if span.name.is_empty() { "(unnamed)" } else { &span.name });
        let (category, dur) = (Category::UserRange, end - start);
        self.sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
        Some((start, end))
    }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut import = Import {
        sink,
        lanes: Lanes::default(),
        services: FxHashMap::default(),
        requests: FxHashMap::default(),
        models: Vec::new(),
        account: Account::default(),
        unreadable: 0,
    };
    let one_each = lines(&container::head(path, HEAD)?);
    let damage = stream::read(path, one_each, &mut import, options.progress)?;
    if import.account.read == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("spans of OpenTelemetry ({})", damage.as_deref().unwrap_or("none")),
            next: "check that the file holds what the collector exported, from its beginning on".to_owned(),
        });
    }
    let Import { sink, account, models, unreadable, lanes, .. } = import;
    account.tell(sink, "otlp", "spans", "user_range, a track for each request");
    if !models.is_empty() {
        sink.manifest("model.name", &models.join(", "), Provenance::Observed);
    }
    sink.manifest("software.profiler", "OpenTelemetry", Provenance::Observed);
    sink.clock(Clock::FromFirstSlice { unix_offset: Some(0) });
    for (name, count) in [("otlp.unreadable_export", unreadable), ("otlp.too_many_tracks", lanes.crowded)] {
        if count > 0 {
            sink.stat(name, Severity::DataLoss, count, None);
        }
    }
    if let Some(why) = damage {
        sink.stat("otlp.damaged_file", Severity::DataLoss, 1, Some(&why));
    }
    Ok(())
}

/// Whether a file has an export on each of its lines: one of the first is whole, or longer than any line of indented JSON.
fn lines(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    let mut first = text.split(|byte| *byte == b'\n').take(4);
    head.len() >= HEAD && !text.contains(&b'\n')
        || first.any(|line| line.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Trace, TraceBuilder};

    const EXPORT: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"vllm-server"}}]},"scopeSpans":[{"scope":{"name":"vllm.llm_engine"},"spans":[{"traceId":"aa","spanId":"1","name":"llm_request","kind":2,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000900000","attributes":[{"key":"gen_ai.response.model","value":{"stringValue":"m"}}]},{"traceId":"bb","spanId":"2","name":"llm_request","startTimeUnixNano":"1700000000000100000","endTimeUnixNano":"1700000000001000000"},{"traceId":"bb","spanId":"3","name":"open","startTimeUnixNano":"1700000000000100000"}]}]}]}"#;

    fn import(text: &str) -> Trace {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("traces.json");
        std::fs::write(&path, text).unwrap();
        let mut builder = TraceBuilder::new("t", "otlp");
        let format = crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap();
        assert_eq!(format.id, "otlp");
        builder.finish()
    }

    #[test]
    fn spans_are_ranges_on_a_track_for_each_request() {
        let indented = serde_json::to_string_pretty(&serde_json::from_str::<Value>(EXPORT).unwrap()).unwrap();
        for text in [EXPORT, &indented] {
            let trace = import(text);
            let rows: Vec<_> = trace.lanes.iter().map(|lane| (lane.start.clone(), lane.dur.clone())).collect();
            assert_eq!(rows, [(vec![0], vec![900_000]), (vec![100_000], vec![900_000])]);
            assert_eq!((trace.stat("otlp.incomplete_row"), trace.manifest.value("model.name")), (1, Some("m")));
            assert_eq!(
                trace.processes.iter().map(|p| p.name.map(|n| trace.strings.get(n))).collect::<Vec<_>>(),
                [Some("vllm-server")]
            );
        }
    }

    /// The batch processor's default makes lines of 10 MB: such a file was refused, and beside short lines they were lost. One
    /// document of many spans was read up to its first 4 MiB.
    #[test]
    fn a_batch_of_8_192_spans_on_a_line_is_read() {
        const LONG: usize = 8_192;
        let pad = "x".repeat(1_100);
        let span = |i: usize| {
            format!(
                r#"{{"traceId":"{i}","name":"r","startTimeUnixNano":"{}","endTimeUnixNano":"1700000000000900000","attributes":[{{"key":"gen_ai.prompt","value":{{"stringValue":"{pad}"}}}}]}}"#,
                1_700_000_000_000_000_000 + i as u64
            )
        };
        let spans: Vec<String> = (0..LONG).map(span).collect();
        let export = |spans: &str| format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
        let line = export(&spans.join(","));
        assert!(line.len() > 8 << 20);
        let later = line.replace(r#""traceId":""#, r#""traceId":"later"#);
        for (text, expected, again) in [
            (line.clone(), LONG, 0),
            (format!("{EXPORT}\n{line}\n{EXPORT}\n"), LONG + 4, 0),
            (format!("{line}\n{later}\n"), 2 * LONG, 0),
            (format!("{line}\n{line}\n"), LONG, LONG as u64),
        ] {
            let trace = import(&text);
            assert_eq!((trace.slice_count(), trace.stat("otlp.unreadable_export")), (expected, 0));
            assert_eq!(trace.stat(model::ImportStat::DOUBLED_ROWS), again);
        }
        let indented = export(&spans.join(",\n")).replacen('{', "{\n", 1);
        assert_eq!(import(&indented).slice_count(), LONG);
    }

    /// A limit of ours is no fault of the exporter.
    #[test]
    fn a_span_beyond_the_limit_names_the_limit() {
        let long = EXPORT.replace(r#""stringValue":"m""#, &format!(r#""stringValue":"{}""#, "m".repeat(5 << 20)));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("traces.json");
        std::fs::write(&path, long).unwrap();
        let refused = crate::detect::read(&path, &mut TraceBuilder::new("t", "otlp"), &ReadOptions::default());
        let said = refused.err().unwrap().to_string();
        assert!(said.contains("4 MiB that are read of one") && !said.contains("exporter"), "{said}");
        let trace = import(&format!("{EXPORT}\n{}", std::fs::read_to_string(&path).unwrap()));
        assert_eq!((trace.slice_count(), trace.stat("otlp.damaged_file")), (2, 1));
    }

    #[test]
    fn a_torn_line_costs_itself() {
        let trace = import(&format!("{EXPORT}\n{}\n{EXPORT}\n", &EXPORT[..300]));
        assert_eq!((trace.slice_count(), trace.stat("otlp.unreadable_export")), (4, 1));
    }
}
