//! Reports on real captures.

use std::path::Path;

use super::{all_hold, held_against, report};
use crate::common::{corpus, printed, schema};

/// Captures of language models, relative to the corpus: those of other workloads show nothing that these do not.
pub(super) const CAPTURES: &[(&str, &str)] = &[
    ("tl-h100-qwen", "kineto/tl-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
    ("tl-h100-bert", "kineto/tl-h100/gaunernst_bert-small-uncased__1016001.json.gz"),
    ("tl-mi300-qwen", "kineto/tl-mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
    ("tl-mi300-bert", "kineto/tl-mi300/gaunernst_bert-small-uncased__1016001.json.gz"),
    ("tl-sglang-prefilldecode", "kineto/tl-sglang-prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz"),
    ("tl-vllm-decode-full", "kineto/tl-vllm-decode-full/graph_execution.json.gz"),
    (
        "tl-vllm-decode-capture",
        "kineto/tl-vllm-decode-capture/graph_capture_rank_0.1773709742341309550.pt.trace.json.gz",
    ),
    ("tl-mi210-gpuonly", "kineto/tl-mi210-gpuonly/gpu_only_trace.json.gz"),
    ("nsysai-h100-2gpu", "nsys-sqlite/nsysai-h100-2gpu/h100_2gpu_1s.sqlite"),
    ("nsysai-healthy", "nsys-sqlite/nsysai-healthy/healthy_1pct.sqlite"),
    ("sglang-fork", "nsys-sqlite/sglang-fork/baseline-report.sqlite"),
];

/// What must hold whatever the capture is.
fn check(folder: &Path, file: &str) {
    for lang in ["en", "zh"] {
        let json = printed(&["diagnose", "--format", "json", "--lang", lang, file], folder);
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        schema::check(&schema::read("strato.diagnosis"), &document, file);
        for entry in document["attribution"].as_array().unwrap() {
            let window = entry["window_ns"].as_i64().unwrap();
            let buckets: i64 = entry["buckets"].as_array().unwrap().iter().map(|b| b["ns"].as_i64().unwrap()).sum();
            let layers: i64 = entry["layers"].as_object().unwrap().values().map(|ns| ns.as_i64().unwrap()).sum();
            assert_eq!((buckets, layers), (window, window), "{file}: {}", entry["class"]);
        }
        assert!(
            !document["import"].is_null() && !document["verdict"]["headline"].as_str().unwrap().is_empty(),
            "{file}"
        );
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn reports_on_real_captures_are_as_accepted() {
    let corpus = corpus();
    all_hold(CAPTURES.iter().map(|(name, path)| {
        let (folder, file) = path.rsplit_once('/').unwrap();
        let folder = corpus.join(folder);
        check(&folder, file);
        held_against(&format!("{name}.md"), &report(&folder, file, &[]))
    }));
}
