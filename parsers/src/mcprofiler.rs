//! mcProfiler, MetaX's profiler of single kernels: what it prints of a kernel (`report.txt`) and the file that it leaves of each
//! (`<number>_<kernel>_dumped_result.json`). Durations are cycles of the cores' clock, which only the report tells; so the file
//! of a kernel gives its name and blocks, and the report a time without a name. Source: one report and one file of a C500; that
//! `during` counts cycles follows from the report's own `case_bandwith`, which is `all_memacs / during * core_clk`. Its `case_flops`
//! is `all_ops / during / block_num`, operations per cycle and block, and `case_I` that over `case_bandwith`, so that it is no number
//! of operations per byte; `MAX_I` is one: 104 cores of 4 096 operations per cycle over the bandwidth. Rates are therefore taken from
//! the sums, and of what the report derives only its peaks.

use std::path::Path;

use model::{Conditions, KernelSummary, Metric, Ns, Provenance, Severity, TraceSink};
use serde::Deserialize;

use crate::{Format, Head, Match, Place, ReadError, ReadOptions, container, json::member, lanes::Account};

/// The results of mcProfiler.
pub const FORMAT: Format =
    Format { id: "mcprofiler", name: "MetaX mcProfiler result or report", matches, read, lead: crate::alone };

/// What the name of a kernel's file ends with.
const ENDING: &str = "_dumped_result.json";
/// Most bytes of a result; real ones have one kilobyte.
const MOST: usize = 4 << 20;

fn matches(head: &Head<'_>) -> Match {
    let has = |key: &str| member::has_key(head.bytes, key);
    if has("processed_data") && has("all_memacs") && has("during") { Match::Certain } else { Match::No }
}

/// What one part of a result says; numbers are written with fractions even where they are counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    all_memacs: Option<f64>,
    all_ops: Option<f64>,
    during: Option<f64>,
    block_num: Option<f64>,
    /// GHz.
    core_clk: Option<f64>,
    /// GB/s, spelt as the tool does.
    #[serde(rename = "MAX_Bandwith")]
    max_bandwidth: Option<f64>,
    /// Operations per byte.
    #[serde(rename = "MAX_I")]
    balance: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    processed_data: Data,
    /// Only in reports: the same with the clocks.
    data: Option<Data>,
    #[serde(rename = "isError")]
    is_error: bool,
}

#[derive(Debug, Deserialize)]
struct Dump {
    #[serde(rename = "Summary")]
    summary: Vec<Part>,
}

/// The objects behind `Value:` in a report.
fn report(text: &str) -> Vec<Option<Part>> {
    text.split("Value:")
        .skip(1)
        .filter(|value| value.trim_start().starts_with('{'))
        .map(|value| serde_json::Deserializer::from_str(value).into_iter::<Part>().next()?.ok())
        .collect()
}

fn read(path: &Path, sink: &mut dyn TraceSink, _: &ReadOptions<'_>) -> Result<(), ReadError> {
    let bytes = container::head(path, MOST)?;
    let text = String::from_utf8_lossy(&bytes);
    let parts = match serde_json::from_str::<Dump>(&text) {
        Ok(dump) => dump.summary.into_iter().map(Some).collect(),
        Err(_) => report(&text),
    };
    if parts.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "a 'Summary' of mcProfiler, or a report with 'Value:'".to_owned(),
            next: "check that mcProfiler wrote it to the end".to_owned(),
        });
    }
    let name = kernel(path);
    let mut account = Account::default();
    let mut untimed = 0;
    for part in parts {
        account.read += 1;
        let part = part.filter(|part| !part.is_error);
        let data = part.map(|part| part.data.unwrap_or(part.processed_data));
        let Some(data) = data.filter(|data| data.during.is_some()) else {
            account.incomplete += 1;
            continue;
        };
        let known = KernelSummary::of(sink.intern(&name), Conditions::Isolated);
        let time = data.time();
        untimed += u64::from(time.is_none());
        account.keep(0, time.unwrap_or_default());
        let range = time.map(|time| (time, time));
        let grid = data.block_num.filter(|n| (1.0..=f64::from(u32::MAX)).contains(n)).map(|n| [n as u32, 1, 1]);
        sink.summary(KernelSummary { total: time, range, grid, metrics: data.metrics(time), ..known });
    }
    if bytes.len() >= MOST {
        sink.stat("mcprofiler.rest_not_read", Severity::DataLoss, 1, Some("longer than any result"));
    }
    account.tell(sink, "mcprofiler", "results", "measurements of kernels");
    if untimed > 0 {
        let why = "cycles without the clock of the cores: the report.txt of the same run has it";
        sink.stat("mcprofiler.without_time", Severity::Notice, untimed, Some(why));
    }
    for (key, value) in [
        ("hardware.vendor", "metax"),
        ("measurement.traced", "mcprofiler"),
        ("software.profiler", "mcProfiler: kernels alone"),
    ] {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}

/// The kernel that a file is named after: without the number before it.
fn kernel(path: &Path) -> String {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let named = file.strip_suffix(ENDING).map(|name| name.trim_start_matches(|c: char| c.is_ascii_digit()));
    named.and_then(|name| name.strip_prefix('_')).filter(|name| !name.is_empty()).unwrap_or("(unnamed)").to_owned()
}

impl Data {
    /// Cycles at so many GHz are so many ns.
    fn time(&self) -> Option<Ns> {
        let ns = self.during? / self.core_clk.filter(|clock| *clock > 0.0)?;
        (ns.is_finite() && (0.0..1e15).contains(&ns)).then(|| ns.round() as Ns)
    }

    fn metrics(&self, time: Option<Ns>) -> Vec<(Metric, f64)> {
        let seconds = time.filter(|time| *time > 0).map(|time| time as f64 / 1e9);
        let rate = self.all_memacs.zip(seconds).map(|(bytes, seconds)| bytes / seconds);
        let peak = self.max_bandwidth.filter(|peak| *peak > 0.0);
        let share = rate.zip(peak).map(|(rate, peak)| 100.0 * rate / (peak * 1e9));
        let clock = self.core_clk.map(|ghz| ghz * 1e9);
        let operations = self.all_ops.zip(seconds).map(|(operations, seconds)| operations / seconds);
        let all = [
            (Metric::DramBytesPerSecond, rate),
            (Metric::Dram, share),
            (Metric::OperationsPerSecond, operations),
            (Metric::Balance, self.balance.filter(|balance| *balance > 0.0)),
            (Metric::CoreClock, clock),
        ];
        all.into_iter().filter_map(|(metric, value)| Some((metric, value.filter(|value| value.is_finite())?))).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Trace, TraceBuilder};

    fn import(name: &str, text: &str) -> Trace {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut builder = TraceBuilder::new("t", "mcprofiler");
        let format = crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap();
        assert_eq!(format.id, "mcprofiler");
        builder.finish()
    }

    #[test]
    fn a_result_has_a_name_and_no_time() {
        let text = r#"{"Summary":[{"processed_data":{"all_ops":1e6,"all_memacs":8894624.0,"during":25241.0,"block_num":104},"isError":false,"name":"RoofLine"},{"processed_data":{},"isError":true}]}"#;
        let trace = import("1_sparse_kernel_dumped_result.json", text);
        let [summary] = trace.summaries.as_slice() else { panic!() };
        assert_eq!((trace.strings.get(summary.kernel), summary.total), ("sparse_kernel", None));
        assert_eq!((summary.grid, summary.metrics.len()), (Some([104, 1, 1]), 0));
        assert_eq!((trace.stat("mcprofiler.without_time"), trace.stat("mcprofiler.incomplete_row")), (1, 1));
    }

    #[test]
    fn a_report_has_a_time_and_the_share_of_the_bandwidth() {
        let text = "######\nSub-module: Summary\nName: RoofLine\nValue: {\n\"processed_data\": {\"all_memacs\": 283817376.0, \"during\": 641722.0, \"block_num\": 104},\n\"data\": {\"all_ops\": 4211530752.0, \"all_memacs\": 283817376.0, \"block_num\": 104, \"during\": 641722.0, \"core_clk\": 1.125, \"MAX_Bandwith\": 1843.2, \"MAX_I\": 260.0}}\n";
        let trace = import("report.txt", text);
        let [summary] = trace.summaries.as_slice() else { panic!() };
        // 641 722 cycles at 1.125 GHz; the report itself says 497.56 GB/s of 1 843.2.
        assert_eq!(summary.total, Some(570_420));
        let metric = |wanted| summary.metrics.iter().find(|(metric, _)| *metric == wanted).unwrap().1;
        assert!((metric(Metric::DramBytesPerSecond) / 1e9 - 497.56).abs() < 0.01);
        assert!((metric(Metric::Dram) - 26.99).abs() < 0.01);
        // 4 211 530 752 operations in 570 420 ns; the report's own 63.1 are those of a cycle and a block, of which 104 ran.
        let operations = metric(Metric::OperationsPerSecond);
        assert!((operations / 1e12 - 7.383).abs() < 0.001 && (operations / 1.125e9 / 104.0 - 63.104).abs() < 0.001);
        assert_eq!(metric(Metric::Balance), 260.0);
    }
}
