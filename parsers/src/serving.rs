//! Results of serving benchmarks: JSON of `vllm bench latency|throughput|serve` and of SGLang's `bench_serving`, which write
//! bare `Infinity` and `NaN`, of GenAI-Perf and AIPerf, lists of results as sweeps over a load are, tables with named columns, what
//! the benchmarks print, and the metrics page of a server.
//!
//! A file holds one result or several: a line each, an element of a list, a row of a table. Each is a load, and what was measured
//! under it are facts `load.<n>.<name>` with the names of [`name`].
//!
//! A client sees requests, not steps: the time to the first token, and the times between the tokens that follow. The times
//! between tokens are taken as decode steps, because an engine's step is what gives a request its next token; requests stand
//! one after the other, as the result does not say when each began.

use std::path::Path;

use model::{Category, Clock, Ns, Provenance::Observed, Severity, Slice, TraceSink, TrackId, TrackKey, TrackKind};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions,
    container::Source,
    csv_table::{self, Table},
    json::{Cursor, Fault, member},
};

mod exposition;
mod name;
mod nested;
mod outcome;
mod printed;
#[cfg(test)]
mod tests;

use exposition::Page;
use outcome::Outcome;
use printed::Printed;

/// The format.
pub const FORMAT: Format = Format {
    id: "serving",
    name: "serving benchmark result (JSON, CSV, text) or metrics page",
    matches,
    read,
    lead: crate::alone,
};

/// Largest result that is read, bytes: 64 MiB hold some five million times.
const LARGEST: usize = 64 << 20;
/// Keys that occur together in no other JSON.
const MARKS: [[&str; 2]; 10] = [
    ["avg_latency", "latencies"],
    ["request_throughput", "mean_ttft_ms"],
    ["request_throughput", "median_ttft_ms"],
    ["request_throughput", "ttfts"],
    ["elapsed_time", "requests_per_second"],
    ["ttfts", "itls"],
    ["output_tput_per_gpu", "mean_ttft"],
    ["output_tput_per_gpu", "median_ttft"],
    ["request_throughput", "time_to_first_token"],
    ["request_latency", "inter_token_latency"],
];
/// Loads that are read of one file; a sweep has some hundred.
const LOADS: u64 = 4096;

fn matches(head: &Head<'_>) -> Match {
    let text = head.bytes.trim_ascii_start();
    let has = |key: &str| member::has_key(text, key);
    let known = text.starts_with(b"{") || text.starts_with(b"[");
    let known = known && MARKS.iter().any(|[a, b]| has(a) && has(b)) && !has("traceEvents");
    match () {
        () if known || is_table(&csv_table::first_header(head.bytes)) => Match::Certain,
        // A server's log may hold a result as well.
        () if head.is_text() && printed::stands_in(head.bytes) => Match::Possible,
        () if head.is_text() && Page::of(head.bytes).is_some() => Match::Certain,
        () => Match::No,
    }
}

/// Whether a header is that of a table of loads: a time of a request, and the load or what was done under it.
fn is_table(header: &[String]) -> bool {
    let names: Vec<String> = header.iter().filter_map(|column| Some(name::of(column, false)?.0)).collect();
    names.iter().any(|name| name.contains('.')) && names.iter().any(|name| !name.contains('.'))
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
    let mut import = Import { sink, cursor: 0, loads: 0 };
    if is_table(&csv_table::first_header(&bytes)) {
        return import.table(path, options);
    }
    if !matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) && import.text(&bytes) {
        import.damage(source.damage());
        return Ok(());
    }
    let mut json = Cursor::new(&bytes, 0);
    let is_list = json.peek() == Ok(b'[');
    json.at += usize::from(is_list);
    let (mut further, mut end) = (0, Ok(()));
    while json.separators().is_ok_and(|byte| byte == b'{') {
        let (result, ended) = Outcome::read(&mut json);
        if result.is_empty() {
            break;
        }
        match import.loads < LOADS {
            true => import.take(&result),
            false => further += 1,
        }
        end = ended;
        if end.is_err() {
            break;
        }
    }
    if import.loads == 0 {
        return Err(malformed(Place::Byte(json.at as u64), "a JSON object with the times of a benchmark"));
    }
    json.at += usize::from(is_list && json.peek() == Ok(b']'));
    let rest = u64::from(end.is_ok() && json.peek().is_ok());
    let loads = import.loads;
    import.sink.ledger("results", loads + further, loads, 0, "results of the file, each a load");
    import.stat("further_results", Severity::DataLoss, further, "a file of more loads than are read; split it");
    import.stat("broken_value", Severity::DataLoss, rest, "a value that is no JSON was passed over");
    import.stat("truncated", Severity::DataLoss, u64::from(end == Err(Fault::End)), "the result ends before its end");
    import.damage(source.damage());
    Ok(())
}

struct Import<'a> {
    sink: &'a mut dyn TraceSink,
    /// Where the next request begins.
    cursor: Ns,
    /// Loads read so far.
    loads: u64,
}

impl Import<'_> {
    fn stat(&mut self, what: &str, severity: Severity, count: u64, example: &str) {
        if count > 0 {
            self.sink.stat(&format!("serving.{what}"), severity, count, Some(example));
        }
    }

    /// Counts what was wrong with the compressed content.
    fn damage(&mut self, damage: Option<&str>) {
        self.stat("damaged_file", Severity::DataLoss, u64::from(damage.is_some()), damage.unwrap_or_default());
    }

    /// Reads a metrics page, or what a benchmark printed; whether the text is one of these.
    fn text(&mut self, text: &[u8]) -> bool {
        if let Some(page) = Page::of(text) {
            self.sink.clock(Clock::AsIs { unix_zero: None });
            let told = page.tell(self.sink);
            self.sink.ledger("metrics", told, told, 0, "a server's metrics since it started, as one load");
            return true;
        }
        if !printed::stands_in(text) {
            return false;
        }
        let mut found = Printed::default();
        text.split(|byte| matches!(byte, b'\n' | b'\r')).for_each(|line| found.line(line));
        self.sink.clock(Clock::AsIs { unix_zero: None });
        let (loads, further) = found.tell(self.sink);
        self.sink.ledger("results", loads + further, loads, 0, "printed results of the file, each a load");
        self.stat("further_results", Severity::DataLoss, further, "a file of more loads than are read; split it");
        true
    }

    fn take(&mut self, result: &Outcome<'_>) {
        self.loads += 1;
        self.stat("not_a_number", Severity::Info, result.infinite, "Infinity or NaN");
        self.stat("unreadable_time", Severity::DataLoss, result.unreadable, "a time that is no number of seconds");
        self.stat("broken_value", Severity::DataLoss, result.broken, "a value that is no JSON was passed over");
        self.sink.clock(Clock::AsIs { unix_zero: None });
        // Sweeps write times in seconds and do not say so; they are known by what they divide by the devices.
        let seconds = result.facts.iter().any(|(key, _)| key.ends_with("tput_per_gpu"));
        for (key, fact) in &result.facts {
            self.fact(key, fact, seconds);
            if self.loads == 1 && name::field(key).is_none() {
                self.sink.manifest(&format!("serving.{key}"), fact, Observed);
            }
        }
        let mut unread = 0;
        for (key, raw) in &result.objects {
            let Some(members) = nested::members(key, raw) else {
                unread += 1;
                continue;
            };
            members.iter().for_each(|(key, value)| self.fact(key, value, false));
            // Which program a version is of stands in the name of what it says.
            let version = members.iter().find(|(own, _)| own == "version").filter(|_| key == "server_info");
            if let Some((_, version)) = version {
                self.sink.manifest("software.engine", &format!("sglang {version}"), Observed);
            }
        }
        self.stat("unreadable_object", Severity::Notice, unread, "an object inside a result, such as server_info");
        self.stat("failed_requests", Severity::Notice, result.failed, "requests that ended with an error");
        if result.facts.iter().all(|(key, _)| key != "failed") && result.failed > 0 {
            self.sink.manifest(&format!("load.{}.failed", self.loads), &result.failed.to_string(), Observed);
        }
        self.iterations(&result.latencies);
        self.requests(result);
    }

    /// A value under its key: a number of the load, a field of the contract, or both.
    fn fact(&mut self, key: &str, value: &str, seconds: bool) {
        if let Some((name, scale)) = name::of(key, seconds)
            && let Some(number) = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
        {
            self.sink.manifest(&format!("load.{}.{name}", self.loads), &(number * scale).to_string(), Observed);
        }
        let Some(field) = name::field(key).filter(|_| !matches!(value, "auto" | "null" | "default" | "N/A")) else {
            return;
        };
        // Several loads of one file have no one concurrency; what differs from load to load is no field of all of them.
        if self.loads > 1 && matches!(field, "workload.concurrency" | "workload.arrival" | "workload.requests") {
            return;
        }
        match field {
            "model.name" => {
                let (name, revision) = name::model(value);
                self.sink.manifest(field, &name, Observed);
                revision.into_iter().for_each(|text| self.sink.manifest("model.revision", &text, Observed));
            }
            _ => self.sink.manifest(field, value, Observed),
        }
    }

    /// Reads a table: a row for each load.
    fn table(mut self, path: &Path, options: &ReadOptions<'_>) -> Result<(), ReadError> {
        self.sink.clock(Clock::AsIs { unix_zero: None });
        let mut table = Table::open_lines(path, is_table)?;
        let columns = table.header().to_vec();
        table.select(&columns.iter().map(String::as_str).collect::<Vec<_>>());
        let (mut read, mut further) = (0, 0);
        while let Some(row) = table.next(options.progress)? {
            read += 1;
            if self.loads >= LOADS {
                further += 1;
                continue;
            }
            let cells: Vec<_> =
                (0..columns.len()).map(|cell| row.text(cell).map(std::borrow::Cow::into_owned)).collect();
            self.loads += 1;
            for (column, cell) in columns.iter().zip(cells) {
                cell.into_iter().for_each(|cell| self.fact(column, &cell, false));
            }
        }
        self.sink.ledger("results", read, self.loads, 0, "rows of the table, each a load");
        self.stat("further_results", Severity::DataLoss, further, "a file of more loads than are read; split it");
        table.tell_damage(self.sink, "serving");
        Ok(())
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
        // The tracks of a load are known by its number.
        let of = match self.loads {
            1 => String::new(),
            n => format!(" of load {n}"),
        };
        let id = self.loads as i64 * 2;
        let (requests, steps) = (self.track(id - 1, &format!("requests{of}")), self.track(id, &format!("tokens{of}")));
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
