//! One name for what every tool that puts load on a server reports under a name of its own.
//!
//! The facts of a load are `load.<n>.<name>`. Times are ms and have two parts, such as `ttft.p50`; the others are those of
//! [`PLAIN`]. Keys are those of `vllm bench serve` (vllm/benchmarks/serve.py), SGLang's `bench_serving.py`, GenAI-Perf and AIPerf
//! (`profile_export_*.json`), and of the sweeps of InferenceMAX (`utils/process_result.py`), read in 2026-11.

/// Spellings of one thing: what each tool calls it, in lower case, and the name that it gets here.
const PLAIN: [(&[&str], &str); 20] = [
    (&["max_concurrency", "maximum_request_concurrency", "conc", "users"], "concurrency"),
    (&["concurrency", "mean_concurrency"], "mean_concurrency"),
    (&["request_rate", "request_rate_configured", "traffic_request_rate", "rate", "qps"], "request_rate"),
    (&["duration", "duration_s", "benchmark_duration"], "duration_s"),
    (&["completed", "successful_requests", "request_count", "requests", "completed_requests"], "completed"),
    (&["failed", "error_request_count", "failed_requests"], "failed"),
    (&["total_input_tokens", "input_tokens", "total_isl"], "input_tokens"),
    (&["total_output_tokens", "total_generated_tokens", "output_tokens", "total_osl"], "output_tokens"),
    (&["isl", "input_len", "input_sequence_length"], "input_len"),
    (&["osl", "output_len", "output_sequence_length"], "output_len"),
    (&["request_throughput", "requests_per_second", "throughput_requests_s"], "request_throughput"),
    (
        &["output_throughput", "output_token_throughput", "output_tokens_per_second", "output_throughput_tok_s"],
        "output_throughput",
    ),
    (&["total_throughput", "total_token_throughput", "tokens_per_second", "throughput_tok_s"], "total_throughput"),
    (&["output_tput_per_gpu"], "output_throughput_per_device"),
    (&["tput_per_gpu"], "total_throughput_per_device"),
    (&["request_goodput", "goodput"], "goodput"),
    (&["power_w", "avg_power_w", "mean_power_w"], "power_w"),
    (&["hw_count", "num_gpus", "devices"], "devices"),
    (&["tp", "tp_size", "tensor_parallel_size"], "tp"),
    (&["accept_length", "spec_decode_acceptance_length"], "accept_length"),
];

/// Times by the words that stand for them; the longest first.
const TIMES: [(&str, &str); 11] = [
    ("time_to_first_token", "ttft"),
    ("time_per_output_token", "tpot"),
    ("inter_token_latency", "itl"),
    ("end_to_end_latency", "e2e"),
    ("request_latency", "e2e"),
    ("e2e_latency", "e2e"),
    ("e2el", "e2e"),
    ("e2e", "e2e"),
    ("ttft", "ttft"),
    ("tpot", "tpot"),
    ("itl", "itl"),
];

/// The name that a key has here and what a value is multiplied with to be in the unit of that name. A time that does not say its
/// unit is in seconds where `seconds` says so, else in ms.
pub(super) fn of(key: &str, seconds: bool) -> Option<(String, f64)> {
    let key = key.trim().to_ascii_lowercase().replace([' ', '-', '/', '(', ')', '[', ']'], "_");
    let key = key.trim_matches('_');
    if let Some((_, name)) = PLAIN.iter().find(|(spellings, _)| spellings.contains(&key)) {
        return Some(((*name).to_owned(), 1.0));
    }
    let padded = format!("_{key}_");
    let (said, time) = TIMES.iter().find(|(said, _)| padded.contains(&format!("_{said}_")))?;
    let (mut statistic, mut scale) = (None, if seconds { 1e3 } else { 1.0 });
    for word in padded.replacen(&format!("_{said}_"), "_", 1).split('_').filter(|word| !word.is_empty()) {
        match word {
            "ms" | "msec" => scale = 1.0,
            "s" | "sec" => scale = 1e3,
            "us" => scale = 1e-3,
            "ns" => scale = 1e-6,
            word if statistic.is_none() => statistic = Some(self::statistic(word)?),
            _ => return None,
        }
    }
    Some((format!("{time}.{}", statistic.unwrap_or_else(|| "mean".to_owned())), scale))
}

fn statistic(word: &str) -> Option<String> {
    let known = match word {
        "mean" | "avg" | "average" => "mean",
        "median" => "p50",
        "std" | "stddev" => "std",
        "min" => "min",
        "max" => "max",
        _ => {
            let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
            return (percent > 0.0 && percent < 100.0).then(|| format!("p{percent}"));
        }
    };
    Some(known.to_owned())
}

/// The field of the contract that a key of a result, or of what a server says of itself in it, holds.
pub(super) fn field(key: &str) -> Option<&'static str> {
    Some(match key {
        "model_id" | "model" | "model_path" | "model_name" => "model.name",
        "dtype" | "precision" => "precision.weights",
        "kv_cache_dtype" => "precision.kv",
        "quantization" => "precision.quantization",
        "num_prompts" => "workload.requests",
        "request_rate" => "workload.arrival",
        "max_concurrency" | "conc" => "workload.concurrency",
        "dataset_name" | "dataset" => "workload.dataset",
        "speculative_algorithm" => "workload.speculative",
        "tp" | "tp_size" | "tensor_parallel_size" => "parallel.tp",
        "pp_size" | "pipeline_parallel_size" => "parallel.pp",
        "dp_size" | "data_parallel_size" => "parallel.dp",
        "ep_size" => "parallel.ep",
        "max_running_requests" | "max_num_seqs" => "caps.max_num_seqs",
        "chunked_prefill_size" => "caps.chunked_prefill",
        "mem_fraction_static" | "gpu_memory_utilization" => "caps.memory_fraction",
        "framework" | "engine" => "software.engine",
        "hw" | "hardware" | "gpu" => "hardware.device",
        _ => return None,
    })
}

/// Name and revision of a model from what a server was told: a name, or a directory of a download cache
/// (`…/models--<owner>--<name>/snapshots/<revision>`, the layout of huggingface_hub).
pub(super) fn model(said: &str) -> (String, Option<String>) {
    let cached = said.split('/').find_map(|part| part.strip_prefix("models--"));
    let Some(cached) = cached else { return (said.to_owned(), None) };
    let revision = said.split_once("/snapshots/").map(|(_, rest)| rest.trim_matches('/').to_owned());
    (cached.replacen("--", "/", 1), revision.filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_spelling_of_a_time_has_one_name_and_one_unit() {
        for (key, seconds, name, scale) in [
            ("mean_ttft_ms", false, "ttft.mean", 1.0),
            ("median_tpot_ms", false, "tpot.p50", 1.0),
            ("p99.9_itl_ms", false, "itl.p99.9", 1.0),
            ("std_e2e_latency_ms", false, "e2e.std", 1.0),
            ("p99_e2el", true, "e2e.p99", 1e3),
            ("TTFT p90 (s)", false, "ttft.p90", 1e3),
            ("avg_time_to_first_token_ms", false, "ttft.mean", 1.0),
            ("max_concurrency", false, "concurrency", 1.0),
            ("output_token_throughput", false, "output_throughput", 1.0),
        ] {
            assert_eq!(of(key, seconds), Some((name.to_owned(), scale)), "{key}");
        }
        for key in ["ttfts", "p0_ttft", "p100_ttft", "ttft_weird", "errors", "mean_intvty"] {
            assert_eq!(of(key, false), None, "{key}");
        }
    }

    #[test]
    fn a_model_in_a_download_cache_is_known_by_its_name() {
        let (name, revision) = model("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0c351dd");
        assert_eq!((name.as_str(), revision.as_deref()), ("Qwen/Qwen3-8B", Some("0c351dd")));
        assert_eq!(model("/models/mine"), ("/models/mine".to_owned(), None));
    }
}
