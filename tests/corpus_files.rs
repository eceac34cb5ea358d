//! Every file of the corpus' folders of logs, results, device texts and ROCm tables: read as what it is, or declined with
//! the reason that fits. `STRATO_CORPUS` names the corpus.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use model::{Category, EvidenceClass, TraceBuilder};
use parsers::ReadError;

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// What becomes of a file: the format it is read as, the tool that printed it, or `unknown`.
fn fate(path: &Path) -> String {
    let mut sink = TraceBuilder::new(path.display().to_string(), "");
    match parsers::detect::read(path, None, &mut sink, &|_, _| {}) {
        Ok(format) => {
            let trace = sink.finish();
            assert!(!trace.ledger.is_empty(), "{}: nothing is accounted for", path.display());
            format.id.to_owned()
        }
        Err(ReadError::NoRun { tool, .. }) => format!("device text of {tool}"),
        Err(ReadError::UnknownFormat { .. }) => "unknown".to_owned(),
        Err(error) => panic!("{error}"),
    }
}

/// Folder, what its files are told by, and what becomes of them. `find FOLDER -type f` lists them; the first row that fits
/// decides.
const FATES: &[(&str, &str, &str)] = &[
    ("rocprof/", "_kernel_trace.csv", "rocprofv3"),
    ("rocprof/", "_hip_api_trace.csv", "rocprofv3"),
    ("rocprof/", "_counter_collection.csv", "rocprofv3"),
    ("rocprof/", "results.csv", "rocprof"),
    ("rocprof/", "pmc_perf.csv", "rocprof"),
    ("rocprof/", "results.stats.csv", "rocprof-stats"),
    // Input of a viewer, made from the tables beside it.
    ("rocprof/", "_payload.json", "unknown"),
    // Tokens per second of three repetitions, without a time.
    ("rocprof/", "_clean_tps.json", "unknown"),
    ("serving/", ".log", "log"),
    ("serving/", ".json", "serving"),
    // Samples of power and use by card and second: no run.
    ("serving/", ".csv", "unknown"),
    ("smi-text/npu-smi-topo/", "", "unknown"),
    ("smi-text/npu-smi", "", "device text of npu-smi"),
    ("smi-text/dcu-smi/", "", "device text of hy-smi"),
    ("smi-text/efsmi/", "", "device text of efsmi"),
    // Two fault logs hold lines of vLLM; the rest says nothing of a step.
    ("logs/mindcluster-faultdiag/", "train_call/worker-0/rank-0.txt", "log"),
    ("logs/mindcluster-faultdiag/", "train_call/worker-1/rank-0.txt", "log"),
    ("logs/", "", "unknown"),
];

#[test]
fn every_file_is_read_or_declined_with_its_reason() {
    let Some(corpus) = common::corpus() else { return };
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in ["logs", "serving", "smi-text", "rocprof"] {
        let mut found = Vec::new();
        files(&corpus.join(folder), &mut found);
        for path in found {
            let name = path.strip_prefix(&corpus).unwrap().to_string_lossy().into_owned();
            let (_, _, wanted) = FATES.iter().find(|(f, end, _)| name.starts_with(f) && name.ends_with(end)).unwrap();
            seen += 1;
            let got = fate(&path);
            if got != *wanted {
                wrong.push(format!("{name}: {got}, not {wanted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // find logs serving smi-text rocprof -type f | wc -l
    assert_eq!(seen, 163 + 5 + 34 + 14);
}

/// File, kernels, their total ns, steps, and evidence classes. Kernels and ns are counted by awk, as the comments of
/// `parsers/tests/rocm_corpus.rs` say. No row of any of these files marks a step: a timeline is one window as a whole, and
/// the ten repetitions of a whole generation in the benchmark's result are none either.
const HELD: &[(&str, usize, i64, usize, &str)] = &[
    ("rocprof/llamacpp-v3-strix/decode_kernel_trace.csv", 144, 1_857_381, 1, "device host_api correlation graph"),
    ("rocprof/llamacpp-v3-strix/prefill_kernel_trace.csv", 1_128, 66_066_571, 1, "device host_api correlation graph"),
    ("rocprof/llamacpp-v3-strix/decode_stall_counter_collection.csv", 0, 0, 0, ""),
    ("rocprof/llamacpp-v1/results.csv", 1_963, 662_138_329, 1, "device"),
    ("rocprof/llamacpp-v1/results.stats.csv", 0, 0, 0, ""),
    ("rocprof/rpc-mi200/pmc_perf.csv", 0, 0, 0, ""),
    ("serving/mi300x-vllm/Llama-3.1-8B_latency_bs8_in128_out128_float16_mem0.9_20250807_191332.json", 0, 0, 0, ""),
    ("serving/mi300x-vllm/Llama-3.1-8B_latency_bs8_in128_out128_float16_mem0.9_20250807_191332.log", 0, 0, 0, "logs"),
    ("serving/mi300x-vllm/benchmark_run_20250807_185823.log", 0, 0, 0, "logs"),
];

#[test]
fn what_is_read_holds_what_is_there_and_claims_no_more() {
    let Some(corpus) = common::corpus() else { return };
    for (file, kernels, ns, steps, evidence) in HELD {
        let trace = common::read(&corpus.join(file));
        let durations = trace.lanes.iter().flat_map(|lane| lane.category.iter().zip(&lane.dur));
        let durations: Vec<i64> =
            durations.filter(|(category, _)| **category == Category::Kernel).map(|(_, dur)| *dur).collect();
        assert_eq!((durations.len(), durations.iter().sum::<i64>()), (*kernels, *ns), "{file}");
        let analysis = common::analyze(&trace);
        let found: usize = analysis.ranks.iter().map(|rank| rank.steps.len()).sum();
        let classes = EvidenceClass::ALL.into_iter().filter(|class| analysis.evidence.has(*class));
        let classes = classes.map(EvidenceClass::key).collect::<Vec<_>>().join(" ");
        assert_eq!((found, classes.as_str()), (*steps, *evidence), "{file}");
    }
}
