//! Every capture and file of the corpus' folders of Ascend devices, logs, results, device texts and ROCm tables: read as what
//! it is, or declined with the reason that fits. `STRATO_CORPUS` names the corpus; the folders of sums and of measured kernels
//! are those of `kernel_metrics.rs`.

use crate::common;
use std::path::{Path, PathBuf};

use model::{Category, EvidenceClass};
use parsers::ReadError;
use session::{Error, Reading, Session};

/// Everything that is given to the program: files, and directories that a profiler fills.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let is_capture = parsers::detect::detect(&path, &parsers::ReadOptions::default()).is_ok();
        if path.is_dir() && !is_capture { files(&path, found) } else { found.push(path) }
    }
}

/// What becomes of a file: the format it is read as, the tool that printed it, what it holds that is declined, or `unknown`.
fn fate(path: &Path) -> String {
    match Session::open(&[path.to_owned()], &Reading::default()) {
        Ok(session) => {
            let [trace] = session.captures() else { panic!("{}: several captures", path.display()) };
            assert!(!trace.ledger.is_empty(), "{}: nothing is accounted for", path.display());
            trace.format.clone()
        }
        Err(Error::Read(ReadError::NoRun { tool, .. })) => format!("device text of {tool}"),
        Err(Error::Read(ReadError::Declined { holds, .. })) => holds,
        Err(Error::Read(ReadError::NotRead { what, .. })) => what,
        Err(Error::Read(ReadError::UnknownFormat { .. })) => "unknown".to_owned(),
        // Refused with a sentence that names the file: none of the listed ones is.
        Err(error) => format!("refused: {error}"),
    }
}

/// Folder, what its files are told by, and what becomes of them. `find FOLDER -type f` lists them; the first row that fits
/// decides.
const FATES: &[(&str, &str, &str)] = &[
    ("ascend-pytorch/alexnet-", "_ascend_pt", "ascend"),
    ("ascend-pytorch/", "trace_view.json", "ascend"),
    ("ascend-pytorch/", "kernel_details.csv", "op-summary"),
    ("msprof/", ".db", "ascend"),
    ("msprof/op-meantime-baseline-cross-chip/", ".json", "mean times of operators, without how often each ran"),
    ("mindspore/", "PROF-2023-dev0-msprof-timeline", "ascend"),
    ("cluster-analysis/", "msinsight-cluster", "ascend-cluster"),
    ("cluster-analysis/", ".json", "the ranks of each communication group"),
    ("rocprof/", "_kernel_trace.csv", "rocprofv3"),
    ("rocprof/", "_hip_api_trace.csv", "rocprofv3"),
    ("rocprof/", "_counter_collection.csv", "rocprofv3"),
    ("rocprof/", "results.csv", "rocprof"),
    ("rocprof/rpc-mi200/", "pmc_perf.csv", "rocprof"),
    // One capture, whichever of its tables is given.
    ("rocprof/bmm-rocprof-compute/", ".csv", "rocprofv3"),
    ("rocprof/", "results.stats.csv", "rocprof-stats"),
    // Input of a viewer, made from the tables beside it.
    ("rocprof/", "_payload.json", "unknown"),
    // Tokens per second of three repetitions, without a time.
    ("rocprof/", "_clean_tps.json", "unknown"),
    ("serving/", ".log", "log"),
    // What a benchmark was started with.
    ("serving/", "_meta.json", "unknown"),
    ("serving/", ".json", "serving"),
    // Samples of power and use by card and second: no run.
    ("serving/", ".csv", "unknown"),
    ("smi-text/npu-smi-topo/", "", "the topology of a machine as npu-smi or nvidia-smi prints it"),
    ("smi-text/npu-smi", "", "device text of npu-smi"),
    ("smi-text/dcu-smi/", "", "device text of hy-smi"),
    ("smi-text/efsmi/", "", "device text of efsmi"),
    // Two fault logs hold lines of vLLM; the rest says nothing of a step.
    ("logs/mindcluster-faultdiag/", "train_call/worker-0/rank-0.txt", "log"),
    ("logs/mindcluster-faultdiag/", "train_call/worker-1/rank-0.txt", "log"),
    ("logs/", "", "unknown"),
];

const FOLDERS: [&str; 8] =
    ["ascend-pytorch", "msprof", "mindspore", "cluster-analysis", "logs", "serving", "smi-text", "rocprof"];

/// Every capture and file, by its path from the corpus, with what is wanted of it where that is listed: the folder of captures grows.
fn found(corpus: &Path) -> Vec<(String, Option<&'static str>)> {
    let mut found = Vec::new();
    FOLDERS.iter().for_each(|folder| files(&corpus.join(folder), &mut found));
    let wanted = |path: PathBuf| {
        let name = path.strip_prefix(corpus).unwrap().to_string_lossy().into_owned();
        let fate = FATES.iter().find(|(folder, end, _)| name.starts_with(folder) && name.ends_with(end));
        (name, fate.map(|(.., fate)| *fate))
    };
    found.into_iter().map(wanted).collect()
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_file_is_read_or_declined_with_its_reason() {
    let corpus = common::corpus();
    let found = found(&corpus);
    // What is not listed is read, or declined or refused with a reason.
    let fates = found.iter().map(|(name, wanted)| (name, wanted, fate(&corpus.join(name))));
    let wrong: Vec<_> = fates.filter(|(_, wanted, got)| wanted.is_some_and(|wanted| got != wanted)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // find ascend-pytorch mindspore -name '*_ascend_pt' -o -maxdepth 2 -mindepth 2 -type f -o -name 'PROF*' | wc -l; find
    // msprof logs serving smi-text rocprof -type f | wc -l; of cluster-analysis one directory is a capture, beside two files.
    let listed = found.iter().filter(|(_, wanted)| wanted.is_some()).count();
    assert!(listed >= 9 + 8 + 3 + 163 + 5 + 34 + 14, "{listed} files are listed");
}

/// Capture, kernels with collectives, their total ns, steps, and evidence classes.
type Held = (&'static str, usize, i64, usize, &'static str);

const HELD: &[Held] = &[
    // Kernels and collectives as `parsers/tests/ascend_corpus.rs` counts them. Steps: grep -o 'ProfilerStep#[0-9]*' trace_view.json |
    // sort -u | wc -l, and `select count(*) from STEP_TIME`. Host calls, links, shapes, counters and waits between pairs: jq
    // '[.[] | select(.args.level)] | length' and so on for .args.connection_id, .args["Input Dims"], .args.MHz and .name ==
    // "Notify_Wait" are 707 to 1139, 535, 496, 2 and 112 for each rank; CANN_API, TASK join CANN_API, PYTORCH_API.inputShapes,
    // AICORE_FREQ and COMMUNICATION_TASK_INFO hold them in the databases.
    (
        "ascend-pytorch/alexnet-ddp-2rank-text-level1/rank0_ascend_pt",
        191,
        114_865_618,
        1,
        "device host_api correlation graph shapes counters pair_detail",
    ),
    (
        "ascend-pytorch/alexnet-ddp-2rank-text-level1/rank1_ascend_pt",
        191,
        109_253_566,
        1,
        "device host_api correlation graph shapes counters pair_detail",
    ),
    (
        "ascend-pytorch/alexnet-ddp-2rank-text-level2/rank0_ascend_pt",
        191,
        108_841_493,
        1,
        "device host_api correlation graph shapes counters pair_detail",
    ),
    (
        "ascend-pytorch/alexnet-ddp-2rank-text-level2/rank1_ascend_pt",
        191,
        106_357_606,
        1,
        "device host_api correlation graph shapes counters pair_detail",
    ),
    (
        "ascend-pytorch/alexnet-ddp-2rank-db-level2/rank0_ascend_pt",
        191,
        103_007_977,
        1,
        "device host_api correlation graph shapes counters pair_detail",
    ),
    (
        "ascend-pytorch/alexnet-ddp-2rank-db-level2/rank1_ascend_pt",
        191,
        109_283_893,
        1,
        "device host_api correlation graph shapes counters pair_detail",
    ),
    // python3 as there: 274 tasks that are no MEMCPY_ASYNC, none of whose connection_id is one of the calls', which were trimmed;
    // grep -o 'ProfilerStep#[0-9]*' | wc -l: 1; no Input Dims, no counter.
    ("ascend-pytorch/advisor-timeline-advice/trace_view.json", 274, 1_788_267, 1, "device host_api correlation graph"),
    // python3 as there; {r['Step Id'] for r in csv.DictReader(open(FILE))} is {'19'}.
    ("ascend-pytorch/advisor-compute-advice-data/kernel_details.csv", 29, 10_061_159, 1, "device shapes counters"),
    // sqlite3: select count(*), sum(endNs - startNs) from TASK join COMPUTE_TASK_INFO using (globalTaskId); python3's Decimal for the
    // times of 2023, which are text. No table marks a step, so that each is one window. Tasks with a call: select count(*) from
    // TASK where connectionId in (select connectionId from API): 0, no such column, 1, and of CANN_API 1. HBM has 4 rows in
    // the last.
    ("msprof/history-report-db/report_0.v3008.db", 12, 4_610_000, 1, "device host_api graph shapes"),
    ("msprof/history-report-db/report_0.v3040.db", 12, 2_297_385, 1, "device host_api graph shapes"),
    ("msprof/history-msprof-db/msprof_0.2024-03.db", 12, 2_297_385, 1, "device host_api correlation graph shapes"),
    ("msprof/msprof-db-msinsight/msprof_0.db", 12, 2_297_385, 1, "device host_api correlation graph shapes counters"),
    // python3 as there: 1390 kernels of 67 133 537 ns and 10 collectives; {e['name'] for e in d if re.match(r'Iteration \d+$',
    // e['name'])} are ten; no task has the connection_id of a call.
    ("mindspore/PROF-2023-dev0-msprof-timeline", 1_400, 196_305_577, 10, "device host_api graph pair_detail"),
    // Sums only: `sums_of_a_job_stay_sums` counts them.
    // Two ranks of eight, three collectives each, 16.8003 ms (Python over cluster_communication.json).
    ("cluster-analysis/msinsight-cluster", 6, 16_800_315, 2, "device multi_rank pair_detail"),
    // awk, as the comments of `parsers/tests/rocm_corpus.rs` say. No row of any of these files marks a step: a timeline is one
    // window as a whole. A table of calls gives the capture of its table of kernels.
    ("rocprof/llamacpp-v3-strix/decode_kernel_trace.csv", 144, 1_857_381, 1, "device host_api correlation graph"),
    ("rocprof/llamacpp-v3-strix/decode_hip_api_trace.csv", 144, 1_857_381, 1, "device host_api correlation graph"),
    ("rocprof/llamacpp-v3-strix/prefill_kernel_trace.csv", 1_128, 66_066_571, 1, "device host_api correlation graph"),
    ("rocprof/llamacpp-v3-strix/prefill_hip_api_trace.csv", 1_128, 66_066_571, 1, "device host_api correlation graph"),
    ("rocprof/llamacpp-v3-strix/decode_stall_counter_collection.csv", 0, 0, 0, "counters"),
    ("rocprof/llamacpp-v3-strix/decode_fetch_counter_collection.csv", 0, 0, 0, "counters"),
    ("rocprof/llamacpp-v3-strix/prefill_stall_counter_collection.csv", 0, 0, 0, "counters"),
    ("rocprof/llamacpp-v3-strix/prefill_fetch_counter_collection.csv", 0, 0, 0, "counters"),
    ("rocprof/llamacpp-v1/results.csv", 1_963, 662_138_329, 1, "device"),
    ("rocprof/llamacpp-v1/results.stats.csv", 0, 0, 0, ""),
    ("rocprof/rpc-mi200/pmc_perf.csv", 0, 0, 0, "counters"),
    // No device work. The ten repetitions of a whole generation in the benchmark's result are no steps.
    ("serving/mi300x-vllm/Llama-3.1-8B_latency_bs8_in128_out128_float16_mem0.9_20250807_191332.json", 0, 0, 0, ""),
    ("serving/mi300x-vllm/Llama-3.1-8B_latency_bs8_in128_out128_float16_mem0.9_20250807_191332.log", 0, 0, 0, "logs"),
    ("serving/mi300x-vllm/benchmark_run_20250807_185823.log", 0, 0, 0, "logs"),
    // grep -c '# GPU blocks' FILE: 1 and 2, and no line of a step or a sample.
    ("logs/mindcluster-faultdiag/st_module_testcase/kg_parse/train_call/worker-0/rank-0.txt", 0, 0, 0, ""),
    ("logs/mindcluster-faultdiag/st_module_testcase/kg_parse/train_call/worker-1/rank-0.txt", 0, 0, 0, ""),
];

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn what_is_read_holds_what_is_there_and_claims_no_more() {
    let corpus = common::corpus();
    let mut wrong = Vec::new();
    for (file, kernels, ns, steps, evidence) in HELD {
        let trace = common::read(&corpus.join(file));
        let durations = trace.lanes.iter().flat_map(|lane| lane.category.iter().zip(&lane.dur));
        let durations: Vec<i64> =
            durations.filter(|(category, _)| **category == Category::Kernel).map(|(_, dur)| *dur).collect();
        let analysis = common::analyze(&trace);
        let found: usize = analysis.ranks.iter().map(|rank| rank.steps.len()).sum();
        let classes = EvidenceClass::ALL.into_iter().filter(|class| analysis.evidence.has(*class));
        let classes = classes.map(EvidenceClass::key).collect::<Vec<_>>().join(" ");
        let held = (*file, durations.len(), durations.iter().sum::<i64>(), found, classes.as_str());
        if held != (*file, *kernels, *ns, *steps, *evidence) {
            wrong.push(format!("{held:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
