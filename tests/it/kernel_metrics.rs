//! Kernels of which a source says how long they took and not when they ran: what is made of such captures, and of such
//! measurements beside a capture with a timeline.

use std::path::Path;

use diagnosis::{diagnose::VerdictLayer, i18n::Lang};
use model::{Conditions, KernelSummary, Metric, Ns, Trace, TraceBuilder, TraceSink, trace};
use parsers::ReadError;
use report::{Grade, Report, json};
use serde_json::Value;

use crate::common::{corpus, diagnosed, read, strato};

/// What a report says of a capture: the report, its JSON form, and whether the verdict refused for CP-07.
fn reported(trace: &Trace) -> (Report, Value, bool) {
    let capture = diagnosed(trace.clone());
    let found = &capture.2;
    let refused = found.verdict.layer == VerdictLayer::Undecided && found.verdict.because == ["CP-07"];
    assert!(found.findings.is_empty() && found.verdict.level.is_none());
    let report = Report::build(&[capture]);
    let value = serde_json::from_str(&json::render(&report, Lang::En).unwrap()).unwrap();
    (report, value, refused)
}

/// Sums of kernels, as `nsys stats` or `op_statistic` give them: longer than any wall time that could be meant.
#[test]
fn cp07_refuses_wall_time_from_sums_alone() {
    let mut b = TraceBuilder::new("op_statistic.csv", "op-statistic");
    for (name, total) in [("MatMulV2", 30_000_000), ("Add", 5_400_000)] {
        let kernel = b.intern(name);
        b.summary(KernelSummary { count: 8, total: Some(total), ..KernelSummary::of(kernel, Conditions::Run) });
    }
    let trace = b.finish();
    let (report, value, refused) = reported(&trace);
    assert!(refused);
    assert_eq!(report.captures[0].grade, Grade::Totals);
    for (lang, words) in [(Lang::En, "no wall time, step or gain follows"), (Lang::Zh, "不能说明墙钟时间")] {
        let text = report.document(lang).markdown();
        assert!(text.contains(words) && text.contains("CP-07"), "{text}");
    }
    assert_eq!(value["attribution"].as_array().map(Vec::len), Some(0));
    assert_eq!(value["captures"][0]["sums"][0]["ns"], 30_000_000);
}

/// File, format, summaries, executions, total ns; `None` for one that is no capture.
type Golden = (&'static str, Option<(&'static str, usize, u64, Ns)>);

/// Every file of the directories.
///
/// nsys stats: `awk -F, 'NR>1 {r++; n+=$3; t+=$2} END {print r, n, t}'`.
/// Nsight Compute: `python3: [r["gpu__time_duration.sum"] for r in csv.DictReader(open(raw))]`, µs, the fifth is no number;
/// `awk -F'","' '$13=="Duration" {t+=$15} END {print t}' profile.details.csv` for the other page, as CSV and as text.
/// msprof op: `struct.unpack_from("<Q")` for the length of each section, then `json.loads` of the one of kind 5.
const FILES: &[Golden] = &[
    ("ncu-csv/sglang-fork/profile.details.csv", Some(("ncu", 5, 5, 87_130))),
    ("ncu-csv/sglang-fork/profile.details.txt", Some(("ncu", 5, 5, 87_130))),
    ("ncu-csv/sglang-fork/profile.raw.csv", Some(("ncu", 5, 5, 87_136))),
    ("nsys-stats-csv/dsocr-rtx5090/all-stage_cmd.txt", None),
    (
        "nsys-stats-csv/dsocr-rtx5090/all-stage_cuda_gpu_kern_sum.csv",
        Some(("nsys-stats", 113, 1_695_983, 4_946_064_742)),
    ),
    ("nsys-stats-csv/dsocr-rtx5090/clip_cmd.txt", None),
    ("nsys-stats-csv/dsocr-rtx5090/clip_cuda_gpu_kern_sum.csv", Some(("nsys-stats", 19, 387, 3_424_837))),
    ("nsys-stats-csv/dsocr-rtx5090/decode_cmd.txt", None),
    ("nsys-stats-csv/dsocr-rtx5090/decode_cuda_gpu_kern_sum.csv", Some(("nsys-stats", 46, 78_016, 179_072_697))),
    ("nsys-stats-csv/dsocr-rtx5090/prefill_cmd.txt", None),
    ("nsys-stats-csv/dsocr-rtx5090/prefill_cuda_gpu_kern_sum.csv", Some(("nsys-stats", 97, 6_660, 65_691_733))),
    ("msprof-op/history-visualize/base_info.bin", Some(("msprof-op", 1, 1, 13_060))),
    ("msprof-op/history-visualize/load_data.bin", Some(("msprof-op", 1, 1, 13_060))),
    ("msprof-op/history-visualize/memory_data.bin", Some(("msprof-op", 1, 1, 13_700))),
    ("msprof-op/history-visualize/roofline_data.bin", Some(("msprof-op", 1, 1, 301_040))),
];

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_file_of_sums_and_measurements_imports_or_is_declined() {
    let corpus = corpus();
    let mut seen = Vec::new();
    for directory in ["ncu-csv", "nsys-stats-csv", "msprof-op"] {
        for inside in corpus.join(directory).read_dir().unwrap() {
            for file in inside.unwrap().path().read_dir().unwrap() {
                seen.push(file.unwrap().path().strip_prefix(&corpus).unwrap().display().to_string());
            }
        }
    }
    let known = |file: &str| FILES.iter().any(|(known, _)| *known == file);
    let missing: Vec<&str> =
        FILES.iter().map(|(file, _)| *file).filter(|file| !seen.iter().any(|s| s == file)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // The folder of captures grows: what is not listed is read, or declined with a reason.
    for file in seen.iter().filter(|file| !known(file)) {
        let path = corpus.join(file);
        if let Err(error) = session::Session::open(&[path], &session::Reading::default()) {
            assert!(error.to_string().contains(file.rsplit('/').next().unwrap()), "{file}: {error}");
        }
    }
    for (file, expected) in FILES {
        let path = corpus.join(file);
        let Some((format, summaries, executions, total)) = expected else {
            let declined = parsers::detect::detect(&path, &parsers::ReadOptions::default()).map(|format| format.id);
            assert!(matches!(declined, Err(ReadError::UnknownFormat { .. })), "{file}: {declined:?}");
            continue;
        };
        let trace = read(&path);
        let sums = trace.summaries.iter().fold((0, 0), |s, k| (s.0 + k.count, s.1 + k.total.unwrap_or(0)));
        assert_eq!(
            (trace.format.as_str(), trace.summaries.len(), sums),
            (*format, *summaries, (*executions, *total)),
            "{file}"
        );
        assert_eq!(trace.slice_count(), 0, "{file}");
        let (report, value, refused) = reported(&trace);
        assert_eq!(report.captures[0].grade, Grade::Totals, "{file}");
        assert!(
            value["captures"][0]["evidence"]
                .as_object()
                .unwrap()
                .iter()
                .all(|(class, held)| class == "counters" || held == false),
            "{file}"
        );
        assert!(refused, "{file}");
        assert_eq!(value["attribution"].as_array().map(Vec::len), Some(0), "{file}");
    }
}

/// python3: the mean of cycle / total_cycles over the cores of the section of kind 8, and its sums of hits and misses.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_map_of_the_cores_is_measured() {
    let corpus = corpus();
    let trace = read(&corpus.join("msprof-op/history-visualize/roofline_data.bin"));
    let operator = &trace.summaries[0];
    assert_eq!(trace.strings.get(operator.kernel), "gen_FlashAttentionScore_10000000012201130953_mix_aic");
    let near = |metric, expected: f64| operator.metric(metric).is_some_and(|value| (value - expected).abs() < 1e-9);
    assert!(near(Metric::Compute, 26.937_382_892_306_974) && near(Metric::L2Hit, 92.736_049_069_551_65));
    assert_eq!(operator.grid, Some([24, 1, 1]));
}

/// python3: sm__cycles_active.avg / gpc__cycles_elapsed.max of the first kernel. Another chip than the capture's measures
/// nothing of it.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn measurements_of_another_chip_are_left_out() {
    let corpus = corpus();
    let part = read(&corpus.join("ncu-csv/sglang-fork/profile.raw.csv"));
    let busy = part.summaries[0].metric(Metric::CoresBusy).unwrap();
    assert!((busy - 100.0 * 22_084.893_939 / 25_794.0).abs() < 1e-9, "{busy}");
    let mut whole = read(&corpus.join("nsys-sqlite/sglang-fork/baseline-report.sqlite"));
    trace::attach(&mut whole, &part);
    assert_eq!((whole.summaries.len(), whole.stat("kernel_metrics.other_device")), (0, 5));
}

const SAMPLE: &str = "sample-traces/launch-bound-eager.json.gz";
/// Two kernels of the sample in the spelling of Nsight Compute, and one that it does not hold.
pub const PAGE: &str = r#""ID","Process ID","Kernel Name","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed","gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","","us","%","%"
"0","42","void vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1 *, long, T1 *, const T1 *, float, int, int)","(256, 1, 1)","(8, 1, 1)","0","9.0","4.5","3.5","20.25"
"1","42","nvjet_tst_64x8_64x16_1x4_h_bz_TNT","(384, 1, 1)","(132, 1, 1)","0","9.0","20.5","31.5","82.25"
"2","42","void vllm::fused_add_rms_norm_kernel<c10::Half, (int)8>(T1 *, long, T1 *, const T1 *, float, int, int)","(256, 1, 1)","(8, 1, 1)","0","9.0","4.5","3.5","20.25"
"#;

fn out(arguments: &[&str], directory: &Path) -> String {
    let output = strato(arguments, directory);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// `zcat SAMPLE | python3`: 234 norms and 104 products of that name and shape.
#[test]
fn measurements_join_the_kernels_of_a_run_and_stay_in_the_capture_file() {
    let directory = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE);
    let sample = sample.to_str().unwrap();
    std::fs::write(directory.path().join("page.csv"), PAGE).unwrap();
    let report = |arguments: &[&str]| -> Value {
        let all = [&["diagnose", "--format", "json"], arguments].concat();
        serde_json::from_str(&out(&all, directory.path())).unwrap()
    };
    let rate = |report: &Value| report["captures"][0]["measured_kernels"].clone();
    let joined = report(&[sample, "--kernel-metrics", "page.csv"]);
    // The format that is asked for is that of the trace.
    assert_eq!(report(&["--as", "kineto", sample, "--kernel-metrics", "page.csv"]), joined);
    assert_eq!((&rate(&joined)["measurements"], &rate(&joined)["matched"]), (&3.into(), &2.into()));
    assert_eq!(rate(&joined)["executions"], 234 + 104);
    assert_eq!(joined["captures"][0]["evidence"]["counters"], true);
    let plain = report(&[sample]);
    assert!(rate(&plain).is_null());
    assert_eq!(plain["attribution"], joined["attribution"], "a measurement moves no time of the run");
    out(&["import", sample, "--kernel-metrics", "page.csv", "-o", "x.strato", "--quiet"], directory.path());
    assert_eq!(rate(&report(&["x.strato"])), rate(&joined));
    let text = out(&["diagnose", "x.strato"], directory.path());
    assert!(text.contains("2 of 3 measurements are of kernels of this capture"), "{text}");
}

#[test]
fn a_trace_is_no_measurement_of_kernels() {
    let directory = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE);
    let sample = sample.to_str().unwrap();
    let output = strato(&["diagnose", sample, "--kernel-metrics", sample], directory.path());
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("holds no measurements of single kernels") && told.contains("Nsight Compute"), "{told}");
}
