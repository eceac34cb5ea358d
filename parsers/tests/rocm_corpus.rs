//! Real captures of ROCm's profilers, `nsys stats` and Nsight Compute, against counts that other programs made of the same
//! files. Needs `STRATO_CORPUS`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use model::{Category, Conditions, ImportStat, Metric, Trace, TraceBuilder};

fn corpus() -> PathBuf {
    let corpus = std::env::var_os("STRATO_CORPUS").map(PathBuf::from);
    corpus.expect("STRATO_CORPUS has to name the folder of real captures")
}

fn read(path: &Path, format: &str) -> Trace {
    let mut builder = TraceBuilder::new(path.display().to_string(), format);
    let read = parsers::detect::read(path, &mut builder, &parsers::ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.id, format, "{}", path.display());
    builder.finish()
}

/// Count and total ns of the slices of a category.
fn sum(trace: &Trace, category: Category) -> (usize, i64) {
    let slices = trace.lanes.iter().flat_map(|lane| (0..lane.len()).map(move |i| (lane.category[i], lane.dur[i])));
    slices.filter(|(c, _)| *c == category).fold((0, 0), |sum, (_, dur)| (sum.0 + 1, sum.1 + dur))
}

fn linked(trace: &Trace) -> usize {
    trace.lanes.iter().map(|lane| (0..lane.len()).filter(|i| lane.link(*i).is_some()).count()).sum()
}

// awk -F'","' 'NR>1 && NF>10 {n++; sub(/"/,"",$11); t+=$11-$10} END {print n, t}' X_kernel_trace.csv
// Links: kernels whose Correlation_Id is in X_hip_api_trace.csv.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn rocprofv3_tables_hold_what_awk_counts() {
    let corpus = corpus();
    let folder = corpus.join("rocprof/llamacpp-v3-strix");
    let decode = read(&folder.join("decode_kernel_trace.csv"), "rocprofv3");
    assert_eq!(sum(&decode, Category::Kernel), (144, 1_857_381));
    assert_eq!(sum(&decode, Category::HostApi), (920, 4_449_331));
    assert_eq!((linked(&decode), decode.stat("trace.device_work_without_launch")), (27, 117));
    // Dispatch_Id goes from 164 to 4897.
    assert_eq!(decode.stat(ImportStat::MISSING_KERNELS), 4_734 - 144);
    let prefill = read(&folder.join("prefill_hip_api_trace.csv"), "rocprofv3");
    assert_eq!(sum(&prefill, Category::Kernel), (1_128, 66_066_571));
    assert_eq!((sum(&prefill, Category::HostApi), linked(&prefill)), ((5, 1_411_305), 1_124));
    assert_eq!(prefill.stat(ImportStat::MISSING_KERNELS), 0);
    // One launch of a graph, many kernels.
    let folded = prefill.lanes.iter().flat_map(|lane| lane.correlation.iter().filter(|id| **id == 57_328)).count();
    assert!(folded > 100, "{folded}");
    assert_eq!(decode.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [Some(2_684_120)]);
}

// tail -n +2 decode_stall_counter_collection.csv | cut -d, -f2 | sort -u | wc -l
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn counters_are_measurements_of_each_dispatch() {
    let corpus = corpus();
    let folder = corpus.join("rocprof/llamacpp-v3-strix");
    for (file, dispatches) in [("decode_stall", 34), ("decode_fetch", 34), ("prefill_stall", 54), ("prefill_fetch", 54)]
    {
        let trace = read(&folder.join(format!("{file}_counter_collection.csv")), "rocprofv3");
        assert_eq!((trace.slice_count(), trace.summaries.len()), (0, dispatches), "{file}");
    }
    let trace = read(&corpus.join("rocprof/rpc-mi200/pmc_perf.csv"), "rocprof");
    let total: i64 = trace.summaries.iter().filter_map(|s| s.total).sum();
    // python3: sum(int(r["EndNs"]) - int(r["BeginNs"]) for r in csv.DictReader(open("pmc_perf.csv")))
    assert_eq!((trace.slice_count(), trace.summaries.len(), total), (0, 167, 42_790_634));
    // Columns between obj and DispatchNs, each with a value in every row: awk -F, 'NR==1 {print NF - 16 - 4}'
    let values: usize = trace.summaries.iter().map(|s| s.counters.len()).sum();
    assert_eq!(values, 167 * 993);
}

/// Sum over the executions of a counter.
fn counter(trace: &Trace, name: &str) -> f64 {
    let named = |s: &model::KernelSummary| {
        let own = s.counters.iter().find(|(counter, _)| trace.strings.get(*counter) == name);
        own.map_or(0.0, |(_, mean)| mean * s.count as f64)
    };
    trace.summaries.iter().map(named).sum()
}

// python3: sum(float(r["SQ_WAVES"]) for r in csv.DictReader(open("pmc_perf.csv"))); in the long tables
// awk -F'","' '$16=="FETCH_SIZE" {t+=$17} END {print t}' decode_fetch_counter_collection.csv
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_counter_of_rocprof_is_kept() {
    let folder = corpus().join("rocprof");
    let trace = read(&folder.join("bmm-rocprof-compute/pmc_perf.csv"), "rocprofv3");
    assert_eq!(trace.summaries.iter().map(|s| s.counters.len()).collect::<Vec<_>>(), [2_016, 2_016]);
    for (name, sum) in [("SQ_WAVES", 1_412_416.0), ("TCC_WRITE[127]", 616_448.0), ("TCC_HIT_sum", 272_143_948.0)] {
        let kept = counter(&trace, name);
        assert!((kept - sum).abs() <= sum * 1e-9, "{name}: {kept}");
    }
    for (file, name, sum) in [
        ("decode_fetch", "FETCH_SIZE", 42_346.687_5),
        ("decode_stall", "GRBM_GUI_ACTIVE", 1_295_813.0),
        ("decode_stall", "WriteUnitStalled", 9.733_25),
        ("prefill_stall", "Wavefronts", 888_328.0),
        ("prefill_fetch", "FETCH_SIZE", 1_253_229.687_5),
    ] {
        let trace = read(&folder.join(format!("llamacpp-v3-strix/{file}_counter_collection.csv")), "rocprofv3");
        let kept = counter(&trace, name);
        assert!((kept - sum).abs() <= sum * 1e-9, "{file} {name}: {kept}");
    }
}

// awk -F, 'NR>1 {n++; t+=$(NF-2)-$(NF-3)} END {print n, t}' results.csv
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn rocprof_v1_holds_what_awk_counts() {
    let corpus = corpus();
    let trace = read(&corpus.join("rocprof/llamacpp-v1/results.csv"), "rocprof");
    assert_eq!(sum(&trace, Category::Kernel), (1_963, 662_138_329));
}

// awk -F'",' 'NR>1 {split($2, c, ","); n+=c[1]; t+=c[2]} END {print NR-1, n, t}' results.stats.csv. The same run's results.csv
// has as many kernels and as many ns.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn sums_of_rocprof_stats_stay_sums() {
    let corpus = corpus();
    let trace = read(&corpus.join("rocprof/llamacpp-v1/results.stats.csv"), "rocprof-stats");
    let sums = trace.summaries.iter().fold((0, 0), |s, k| (s.0 + k.count, s.1 + k.total.unwrap()));
    assert_eq!((trace.slice_count(), trace.summaries.len(), sums), (0, 20, (1_963, 662_138_329)));
}

// awk -F, 'NR>1 {n+=$3; t+=$2} END {print n, t}' X_cuda_gpu_kern_sum.csv
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn sums_of_nsys_stats_stay_sums() {
    let corpus = corpus();
    for (stage, kernels, count, total) in [
        ("all-stage", 113, 1_695_983, 4_946_064_742),
        ("clip", 19, 387, 3_424_837),
        ("decode", 46, 78_016, 179_072_697),
        ("prefill", 97, 6_660, 65_691_733),
    ] {
        let file = format!("nsys-stats-csv/dsocr-rtx5090/{stage}_cuda_gpu_kern_sum.csv");
        let trace = read(&corpus.join(file), "nsys-stats");
        let sums = trace.summaries.iter().fold((0, 0), |s, k| (s.0 + k.count, s.1 + k.total.unwrap()));
        assert_eq!((trace.slice_count(), trace.summaries.len(), sums), (0, kernels, (count, total)), "{stage}");
    }
}

// python3: [r["gpu__time_duration.sum"] for r in csv.DictReader(open("profile.raw.csv"))]; the details page rounds to 0.01 µs.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn both_pages_of_nsight_compute_measure_the_same_kernels() {
    let corpus = corpus();
    let raw = read(&corpus.join("ncu-csv/sglang-fork/profile.raw.csv"), "ncu");
    let details = read(&corpus.join("ncu-csv/sglang-fork/profile.details.csv"), "ncu");
    let times = |trace: &Trace| trace.summaries.iter().map(|s| s.total).collect::<Vec<_>>();
    assert_eq!(times(&raw), [Some(16_448), Some(3_232), Some(33_504), Some(33_952), None]);
    assert_eq!(times(&details), [Some(16_450), Some(3_230), Some(33_500), Some(33_950), None]);
    let of = |s: &model::KernelSummary, metric| s.metrics.iter().find(|(m, _)| *m == metric).map(|(_, value)| *value);
    for (fine, rounded) in raw.summaries.iter().zip(&details.summaries) {
        assert_eq!((fine.grid, fine.block, fine.conditions), (rounded.grid, rounded.block, Conditions::Isolated));
        for metric in [Metric::Compute, Metric::Memory, Metric::Occupancy, Metric::Waves] {
            let (a, b) = (of(fine, metric), of(rounded, metric));
            assert!(a.zip(b).is_none_or(|(a, b)| (a - b).abs() <= 0.0051), "{metric:?} {a:?} {b:?}");
        }
        let (a, b) = (of(fine, Metric::DramBytesPerSecond), of(rounded, Metric::DramBytesPerSecond));
        assert!(a.zip(b).is_none_or(|(a, b)| (a - b).abs() <= 0.01 * b.max(1e6)), "{a:?} {b:?}");
    }
    assert_eq!(of(&raw.summaries[0], Metric::Compute), Some(61.924_661));
    assert!(!raw.summaries[0].stalls.is_empty());
    assert_eq!(raw.manifest.value("hardware.device"), Some("NVIDIA H800"));
}

// Counted by a decoder of its own in Python: planes, lines and events of the message, ends rounded down to ns; links are
// correlation_id of the stream's event among those of the lines "Host Threads/…".
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn profiles_of_xla_hold_what_a_decoder_counts() {
    let folder = corpus().join("other/tl-jax-xplane");
    for (file, devices, kernels, calls, other, links) in [
        ("tw003", 8, (235, 28_137_077), (234, 18_453_619), (3_181, 1_893_369_552), 235),
        ("934987a2fc2f", 1, (150, 12_133_585), (150, 3_697_277), (1_692, 9_770_786_526), 150),
    ] {
        let trace = read(&folder.join(format!("{file}.xplane.pb")), "xplane");
        assert_eq!((sum(&trace, Category::Kernel), sum(&trace, Category::HostApi)), (kernels, calls), "{file}");
        let host = [Category::FrameworkOp, Category::UserRange, Category::PythonFrame, Category::Gc];
        let rest = host.map(|c| sum(&trace, c)).iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!((rest, linked(&trace), trace.devices.len()), (other, links, devices), "{file}");
        assert_eq!(trace.stat("xplane.damaged_file") + trace.stat("xplane.incomplete_row"), 0);
    }
}

// python3: sum(float(r["End_Timestamp"]) - float(r["Start_Timestamp"]) for r in csv.DictReader(open("pmc_perf.csv"))) is
// 5 201 167 ns with fractions; statistics.median(float(r["HBMBw"]) for r in csv.DictReader(open("roofline.csv"))) is 4255.5083.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn tables_of_rocprof_compute_are_one_capture_with_measured_ceilings() {
    let folder = corpus().join("rocprof/bmm-rocprof-compute");
    let trace = read(&folder.join("roofline.csv"), "rocprofv3");
    assert_eq!(sum(&trace, Category::Kernel).0, 301);
    // The five tables, and the counters of the first.
    assert_eq!((trace.manifest.value("hardware.device"), trace.ledger.len()), (Some("AMD Instinct MI300X"), 6));
    let memory = trace.probes.measured("read", "bandwidth").next().unwrap().1;
    assert!((memory.median / 1e9 - 4_255.508).abs() < 0.01 && memory.repeats == 8, "{memory:?}");
    let products: Vec<_> = trace.probes.measured("gemm", "arithmetic").filter_map(|(s, _)| s.get("dtype")).collect();
    assert_eq!(products, ["f16", "bf16", "f32", "f64"]);
}

// ls kernel_*.csv | cut -d. -f1 | sort -u | wc -l is 20; awk -F'","' '$13=="Duration" {print $14, $15}' of the details.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn a_directory_of_nsight_compute_is_one_profile() {
    let trace = read(&corpus().join("ncu-csv/dsocr-rtx5090"), "ncu");
    assert_eq!((trace.summaries.len(), trace.summaries.iter().filter(|s| s.total.is_some()).count()), (20, 20));
    let first = &trace.summaries[0];
    let counter = |name: &str| {
        let named = first.counters.iter().find(|(counter, _)| trace.strings.get(*counter) == name);
        named.map(|(_, value)| *value)
    };
    assert_eq!(counter("dram__bytes_read.sum"), Some(2.33e6));
    assert!(first.metric(Metric::Occupancy).is_some());
    let trace = read(&corpus().join("msprof-op/history-visualize"), "msprof-op");
    assert_eq!(trace.summaries.len(), 4);
}
