#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::io::Write;

use model::{Trace, TraceBuilder};

use super::*;

fn read_text(text: &str) -> Result<Trace, ReadError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut sink = TraceBuilder::new("t", "serving");
    assert_eq!(crate::detect::detect(file.path(), &crate::ReadOptions::default()).unwrap().id, "serving");
    crate::detect::read(file.path(), &mut sink, &crate::ReadOptions::default())?;
    Ok(sink.finish())
}

#[test]
fn tokens_are_steps_and_infinity_is_kept_as_what_it_says() {
    let trace = read_text(
        r#"{"model_id": "m", "num_prompts": 2, "request_rate": Infinity, "request_throughput": 1.5, "mean_ttft_ms": NaN,
            "ttfts": [0.25, 0.5], "itls": [[0.01, 0.020000001], [NaN, 0.03]], "errors": ["", "refused"]}
           {"request_throughput": 2}"#,
    )
    .unwrap();
    let found: Vec<(&str, i64, i64)> = trace
        .lanes
        .iter()
        .flat_map(|l| (0..l.len()).map(|i| (trace.strings.get(l.name[i]), l.start[i], l.dur[i])))
        .collect();
    let ms = 1_000_000;
    assert_eq!(
        found,
        [
            ("time to first token", 0, 250 * ms),
            ("time to first token", 280 * ms + 1, 500 * ms),
            ("log step decode", 250 * ms, 10 * ms),
            ("log step decode", 260 * ms, 20 * ms + 1),
            ("log step decode", 780 * ms + 1, 30 * ms),
        ]
    );
    let fields = [("workload.arrival", "Infinity"), ("workload.requests", "2"), ("model.name", "m")];
    // The second result of the file is a load of its own.
    for (key, value) in
        fields.into_iter().chain([("load.1.request_throughput", "1.5"), ("load.2.request_throughput", "2")])
    {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
    }
    for (stat, count) in [("further_results", 0), ("not_a_number", 3), ("unreadable_time", 1), ("failed_requests", 1)] {
        assert_eq!(trace.stat(&format!("serving.{stat}")), count, "{stat}");
    }
}

#[test]
fn iterations_are_no_steps() {
    let trace = read_text(r#"{"avg_latency": 0.9, "latencies": [1.25, 0.75], "percentiles": {"50": 0.9}}"#).unwrap();
    assert_eq!(trace.strings.find("log step decode"), None);
    assert_eq!((trace.slice_count(), trace.lanes[0].dur.clone()), (2, vec![1_250_000_000, 750_000_000]));
}

#[test]
fn a_cut_result_keeps_the_times_before_the_cut() {
    let trace = read_text(r#"{"avg_latency": 0.9, "latencies": [1.25, 0."#).unwrap();
    assert_eq!((trace.lanes[0].dur.clone(), trace.stat("serving.truncated")), (vec![1_250_000_000], 1));
    let tokens = read_text(r#"{"ttfts": [0.5, 0.5], "itls": [[0.25, 0.25], [0.25, 0"#).unwrap();
    assert_eq!((tokens.slice_count(), tokens.stat("serving.truncated")), (5, 1));
}

#[test]
fn a_broken_value_costs_itself() {
    let trace =
        read_text(r#"{"avg_latency": 0x9, "latencies": [1.25, 0.z, 0.5, [], 0.75], "model_id": "m"} x"#).unwrap();
    assert_eq!((trace.slice_count(), trace.manifest.value("model.name")), (3, Some("m")));
    assert_eq!((trace.stat("serving.broken_value"), trace.stat("serving.unreadable_time")), (3, 1));
}

#[test]
fn what_is_no_result_is_refused_with_the_place() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for content in ["[1]", "{", "{}", "{\"a\": {\"b\": 1}}", "x"] {
        std::fs::write(file.path(), content).unwrap();
        let mut sink = TraceBuilder::new("t", "serving");
        let error = read(file.path(), &mut sink, &crate::ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("at byte") && error.contains("copy the file again"), "{content}: {error}");
    }
}

#[test]
fn d11_what_a_server_says_of_itself_and_what_was_asked_are_fields() {
    let trace = read_text(
        r#"{"mean_ttft_ms": 56.25, "request_throughput": 1, "max_concurrency": 4, "completed": 8, "total_input_tokens": 80,
            "std_ttft_ms": 5, "server_info": {"model_path": "/c/models--O--M/snapshots/r1", "dtype": "bfloat16", "tp_size": 2,
            "kv_cache_dtype": "auto", "quantization": null, "version": "0.5", "cuda_graph_bs": [1, 2]}}"#,
    )
    .unwrap();
    for (key, value) in [
        ("model.name", "O/M"),
        ("model.revision", "r1"),
        ("precision.weights", "bfloat16"),
        ("parallel.tp", "2"),
        ("software.engine", "sglang 0.5"),
        ("workload.concurrency", "4"),
        ("load.1.concurrency", "4"),
        ("load.1.ttft.mean", "56.25"),
        ("load.1.ttft.std", "5"),
        ("load.1.completed", "8"),
    ] {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
    }
    assert_eq!((trace.manifest.value("precision.kv"), trace.manifest.value("precision.quantization")), (None, None));
}

#[test]
fn a_sweep_is_a_load_for_each_element_and_its_seconds_are_ms() {
    let trace = read_text(
        r#"[{"hw": "h200", "tp": 8, "conc": 4, "model": "m", "output_tput_per_gpu": 10, "tput_per_gpu": 20, "mean_ttft": 0.25},
            {"hw": "h200", "tp": 8, "conc": 8, "model": "m", "output_tput_per_gpu": 15, "tput_per_gpu": 30, "mean_ttft": 0.5}]"#,
    )
    .unwrap();
    for (key, value) in [
        ("load.1.ttft.mean", "250"),
        ("load.2.ttft.mean", "500"),
        ("load.2.concurrency", "8"),
        ("load.2.output_throughput_per_device", "15"),
        ("hardware.device", "h200"),
    ] {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
    }
    assert_eq!(trace.stat("serving.broken_value"), 0);
}

#[test]
fn objects_with_a_unit_are_times() {
    let trace = read_text(
        r#"{"request_throughput": {"unit": "requests/sec", "avg": 2.5}, "time_to_first_token": {"unit": "ms", "avg": 20, "p50": 19,
            "p99": 40, "std": 3}, "inter_token_latency": {"unit": "ms", "avg": 5}, "request_count": {"unit": "requests", "avg": 10},
            "input_config": {"endpoint": {"model_names": ["m"]}, "loadgen": {"concurrency": 4}}}"#,
    )
    .unwrap();
    for (key, value) in [
        ("load.1.ttft.mean", "20"),
        ("load.1.ttft.p99", "40"),
        ("load.1.itl.mean", "5"),
        ("load.1.request_throughput", "2.5"),
        ("load.1.mean_concurrency", "4"),
        ("model.name", "m"),
    ] {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
    }
}

#[test]
fn a_table_has_a_row_for_each_load() {
    let trace =
        read_text("concurrency,TTFT p50 (ms),tpot_ms,output_throughput,model\n1,20,5,180,m\n8,40,6,1100,m\n").unwrap();
    for (key, value) in [("load.1.ttft.p50", "20"), ("load.2.tpot.mean", "6"), ("load.2.mean_concurrency", "8")] {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
    }
    assert_eq!(trace.manifest.value("model.name"), Some("m"));
}

/// The text of `vllm bench serve` was "no known format", and so was the page of metrics that the server itself shows.
#[test]
fn what_a_benchmark_prints_and_a_metrics_page_are_loads() {
    let trace = read_text(
        "Namespace(subparser='bench', model='org/m', seed=0)\nTraffic request rate: 0.5\n\
         ============ Serving Benchmark Result ============\nSuccessful requests:                     100       \n\
         Benchmark duration (s):                  20.5\nOutput token throughput (tok/s):         46.87\n\
         ---------------Time to First Token----------------\nMean TTFT (ms):                          1226.38\n\
         P99 TTFT (ms):                           2877.94\n==================================================\n\
         Mean TTFT (ms): 1\n============ Serving Benchmark Result ============\nMean TTFT (ms): 2.5\n",
    )
    .unwrap();
    for (key, value) in [
        ("model.name", Some("org/m")),
        ("load.1.request_rate", Some("0.5")),
        ("load.1.completed", Some("100")),
        ("load.1.duration_s", Some("20.5")),
        ("load.1.output_throughput", Some("46.87")),
        ("load.1.ttft.mean", Some("1226.38")),
        ("load.1.ttft.p99", Some("2877.94")),
        ("load.2.ttft.mean", Some("2.5")),
        ("load.2.request_rate", None),
    ] {
        assert_eq!(trace.manifest.value(key), value, "{key}");
    }
    let latency = read_text("Avg latency: 0.5 seconds\n50% percentile latency: 0.25 seconds\n").unwrap();
    assert_eq!(latency.manifest.value("load.1.e2e.mean"), Some("500"));
    assert_eq!(latency.manifest.value("load.1.e2e.p50"), Some("250"));
    let page = read_text(
        "# HELP vllm:time_to_first_token_seconds x\n# TYPE vllm:time_to_first_token_seconds histogram\n\
         vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} 3.0\n\
         vllm:time_to_first_token_seconds_count{engine=\"1\",model_name=\"m\"} 1.0\n\
         vllm:time_to_first_token_seconds_sum{engine=\"0\",model_name=\"m\"} 2.0\n\
         vllm:generation_tokens_total{engine=\"0\"} 1.5e+03\nvllm:num_requests_waiting{engine=\"0\"} 64.0\n",
    )
    .unwrap();
    for (key, value) in [
        ("model.name", "m"),
        ("software.engine", "vllm"),
        ("load.1.ttft.mean", "500"),
        ("load.1.output_tokens", "1500"),
        ("load.1.waiting", "64"),
    ] {
        assert_eq!(page.manifest.value(key), Some(value), "{key}");
    }
}
