//! Real logs, benchmark results and device texts, each against a count made without this crate. Needs `STRATO_CORPUS`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use model::{Trace, TraceBuilder};
use parsers::{
    detect,
    device_text::{self, Metric},
};

fn corpus() -> PathBuf {
    let corpus = std::env::var_os("STRATO_CORPUS").map(PathBuf::from);
    corpus.expect("STRATO_CORPUS has to name the folder of real captures")
}

fn read(path: &Path) -> (&'static str, Trace) {
    let mut sink = TraceBuilder::new(path.display().to_string(), "");
    let format =
        detect::read(path, &mut sink, &parsers::ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    (format.id, sink.finish())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

const RUN: &str = "serving/mi300x-vllm/Llama-3.1-8B_latency_bs8_in128_out128_float16_mem0.9_20250807_191332";

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn a_latency_benchmark_is_ten_iterations_and_no_step() {
    let corpus = corpus();
    let (format, trace) = read(&corpus.join(format!("{RUN}.json")));
    assert_eq!((format, trace.slice_count()), ("serving", 10));
    // jq -r '.latencies[]' FILE | awk '{s+=$1} END {printf "%.9f\n", s}' gives 9.204040324 s; each time is rounded alone.
    let total: i64 = trace.lanes.iter().flat_map(|lane| &lane.dur).sum();
    assert!((total - 9_204_040_324).abs() <= 10, "{total}");
    assert_eq!(trace.strings.find("log step decode"), None);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn a_real_server_log_gives_its_capture_and_its_samples() {
    let corpus = corpus();
    let (format, trace) = read(&corpus.join(format!("{RUN}.log")));
    assert_eq!(format, "log");
    let sampled = |name: &str| {
        let id = trace.strings.find(name);
        trace.counters.iter().filter(|c| Some(c.name) == id).flat_map(|c| c.value.clone()).collect::<Vec<f64>>()
    };
    // grep -o 'Running: [0-9]* reqs' FILE: two lines, 8 each.
    assert_eq!(sampled("num_requests_running"), [8.0, 8.0]);
    // grep -o 'generation throughput: [0-9.]*' FILE
    assert_eq!(sampled("generation_throughput"), [866.5, 1092.7]);
    // grep 'Graph capturing finished' FILE: one, 35 secs.
    let captures = trace.lanes.iter().flat_map(|lane| lane.name.iter().zip(&lane.dur));
    let captures: Vec<i64> =
        captures.filter(|(name, _)| trace.strings.get(**name) == "log graph capture").map(|(_, dur)| *dur).collect();
    assert_eq!(captures, [35_000_000_000]);
    for (key, value) in [("software.engine", "vllm v0.9.2.dev364+gb432b7a28"), ("caps.kv_blocks", "72800")] {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
    }
}

/// Chips of each npu-smi text: grep -cE '^>? ?\| *[0-9]+ +[^|]*\| (OK|Warning|Alarm)' FILE.
fn chips(text: &str) -> usize {
    let row = |line: &&str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let health = cells.get(2).is_some_and(|cell| matches!(*cell, "OK" | "Warning" | "Alarm"));
        health && cells.get(1).is_some_and(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
    };
    text.lines().filter(row).count()
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_npu_smi_text_gives_its_chips_with_temperature_and_memory() {
    let corpus = corpus();
    let mut all = 0;
    for path in files(&corpus.join("smi-text/npu-smi")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let (tool, out) = device_text::read(&text).unwrap_or_else(|| panic!("{}", path.display()));
        assert_eq!((tool.id, out.devices.len()), ("npu-smi", chips(&text)), "{}", path.display());
        all += out.devices.len();
        let whole = out.devices.iter().filter(|d| {
            [Metric::Temperature, Metric::Utilisation, Metric::MemoryTotal].iter().all(|m| d.value(*m).is_some())
        });
        let whole = whole.count();
        // Upstream damaged one text on purpose, and excerpts end inside a device.
        assert!(whole + 1 >= out.devices.len(), "{}: {whole} of {}", path.display(), out.devices.len());
    }
    assert!(all > 60, "{all}");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_other_device_texts_are_read() {
    let corpus = corpus();
    for (folder, id) in [("dcu-smi", "hy-smi"), ("efsmi", "efsmi"), ("npu-smi-t", "npu-smi")] {
        for path in files(&corpus.join("smi-text").join(folder)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let (tool, out) = device_text::read(&text).unwrap_or_else(|| panic!("{}", path.display()));
            assert_eq!((tool.id, out.devices.is_empty()), (id, false), "{}", path.display());
        }
    }
    // awk '/^[0-9]/' of the dcu-smi text: four rows, 30.0c 30.0c 29.0c 29.0c, 38 41 38 39 W of 280 W.
    let path = files(&corpus.join("smi-text/dcu-smi")).remove(0);
    let (_, out) = device_text::read(&std::fs::read_to_string(path).unwrap()).unwrap();
    let of = |metric| out.devices.iter().map(|d| d.value(metric).unwrap()).collect::<Vec<f64>>();
    assert_eq!(of(Metric::Temperature), [30.0, 30.0, 29.0, 29.0]);
    assert_eq!(of(Metric::Power), [38.0, 41.0, 38.0, 39.0]);
    assert_eq!(of(Metric::PowerCap), [280.0; 4]);
    assert_eq!(of(Metric::Utilisation), [0.0; 4]);
}

/// Files of the fault logs.
const FILES: usize = 162;

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn logs_without_a_step_are_declined() {
    let corpus = corpus();
    let mut folders = vec![corpus.join("logs/mindcluster-faultdiag")];
    let (mut declined, mut logs) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            match detect::detect(&entry, &parsers::ReadOptions::default()) {
                Ok(format) if format.id == "log" => logs += 1,
                Ok(format) => panic!("{} is read as {}", entry.display(), format.id),
                Err(_) => declined += 1,
            }
        }
    }
    // grep -rlE '# GPU blocks: [0-9]' DIR | wc -l: two hold a line of vLLM, the rest are fault logs without any time of a
    // step. find DIR -type f | wc -l gives the whole.
    assert_eq!((logs, declined), (2, FILES - 2));
}

// Both logs tear every row. python3 puts the pieces together: what stands before "mew0:PID:" of each line, in order, is a row of
// five cells and two groups of four.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn torn_rows_of_link_tests_are_put_together_and_the_slower_link_is_named() {
    for (file, time, mean, links) in [
        ("nccl.log", 162_150_710, "178.078 GB/s", "240 GB/s"),
        ("nccl-fault.log", 1_202_113_900, "28.2632 GB/s", "20 to 240 GB/s"),
    ] {
        let (format, trace) = read(&corpus().join("nccl/nccl-tests-fault").join(file));
        // What is done in place has a lane of its own.
        assert_eq!(trace.lanes.iter().map(|lane| lane.len()).collect::<Vec<_>>(), [11, 11], "{file}");
        let calls = trace.lanes.iter().flat_map(|lane| (0..lane.len()).filter_map(|i| trace.detail(lane, i)));
        let bytes: i64 =
            calls.filter_map(|call| if let model::Detail::Collective(call) = call { call.bytes } else { None }).sum();
        let sum: i64 = trace.lanes.iter().flat_map(|lane| &lane.dur).sum();
        assert_eq!((format, sum), ("link-test", time), "{file}");
        assert_eq!((bytes, trace.stat("link_test.unreadable_row")), (2 * 17_171_480_576, 0), "{file}");
        assert_eq!(trace.manifest.value("link.mean_busbw"), Some(mean));
        assert_eq!(trace.manifest.value("link.topology.NVL"), Some(links));
        assert_eq!(trace.stat("link_test.uneven_links"), u64::from(file == "nccl-fault.log"));
    }
}
