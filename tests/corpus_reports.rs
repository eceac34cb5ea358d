//! Reports on real captures against reports that were read and accepted. `STRATO_CORPUS` names the directory of the
//! captures; `STRATO_BLESS=1` accepts what comes out now, which is then reviewed as a difference of `tests/golden`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::schema;
use diagnosis::{
    analysis::{self, Options},
    diagnose,
    i18n::Lang,
    platform::Packs,
};
use model::TraceBuilder;
use report::{Report, json};

/// Captures of language models, relative to the corpus: those of other workloads show nothing that these do not.
const CAPTURES: &[(&str, &str)] = &[
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

fn report(path: &Path) -> Report {
    let mut builder = TraceBuilder::new(path.display().to_string(), "");
    let format = parsers::detect::read(path, None, &mut builder, &|_, _| {}).unwrap();
    let mut trace = builder.finish();
    trace.format = format.id.to_owned();
    let packs = Packs::embedded().unwrap();
    let analysis = analysis::analyze(&trace, &packs, &Options::default());
    let diagnosis = diagnose::diagnose(&trace, &analysis, &packs);
    Report::build(&[(trace, analysis, diagnosis)])
}

/// What must hold whatever the capture is.
fn check(name: &str, report: &Report) {
    let schema = schema::read("strato.diagnosis");
    for lang in [Lang::En, Lang::Zh] {
        let document: serde_json::Value = serde_json::from_str(&json::render(report, lang).unwrap()).unwrap();
        schema::check(&schema, &document, name);
        for entry in document["attribution"].as_array().unwrap() {
            let window = entry["window_ns"].as_i64().unwrap();
            let buckets: i64 = entry["buckets"].as_array().unwrap().iter().map(|b| b["ns"].as_i64().unwrap()).sum();
            let layers: i64 = entry["layers"].as_object().unwrap().values().map(|ns| ns.as_i64().unwrap()).sum();
            assert_eq!((buckets, layers), (window, window), "{name}: {}", entry["class"]);
        }
        assert!(
            !document["import"].is_null() && !document["verdict"]["headline"].as_str().unwrap().is_empty(),
            "{name}"
        );
    }
}

#[test]
fn reports_on_the_samples_are_as_their_schema_says() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces");
    let captures = std::fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path());
    let captures: Vec<PathBuf> = captures
        .filter(|path| [".json.gz", ".sqlite"].iter().any(|end| path.to_string_lossy().ends_with(end)))
        .collect();
    assert!(captures.len() >= 4, "{captures:?}");
    captures.iter().for_each(|path| check(&path.display().to_string(), &report(path)));
}

#[test]
fn reports_on_real_captures_are_as_accepted() {
    let Some(corpus) = std::env::var_os("STRATO_CORPUS").map(PathBuf::from) else {
        println!("skipped: STRATO_CORPUS is not set");
        return;
    };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("STRATO_BLESS").is_some_and(|v| v == "1");
    let mut different = Vec::new();
    for (name, path) in CAPTURES {
        let report = report(&corpus.join(path));
        check(name, &report);
        let text = report.document(Lang::En).markdown();
        assert!(!text.contains(&*corpus.to_string_lossy()), "{name}: the report depends on where the capture lies");
        let accepted = golden.join(format!("{name}.md"));
        if bless {
            std::fs::create_dir_all(&golden).unwrap();
            std::fs::write(&accepted, &text).unwrap();
        } else if std::fs::read_to_string(&accepted).ok().as_deref() != Some(&text) {
            let first = std::fs::read_to_string(&accepted).map_or_else(
                |e| e.to_string(),
                |old| {
                    let line = old.lines().zip(text.lines()).find(|(old, new)| old != new);
                    line.map_or("one ends before the other".into(), |(old, new)| format!("- {old}\n+ {new}"))
                },
            );
            different.push(format!("{name}:\n{first}"));
        }
    }
    assert!(different.is_empty(), "accept with STRATO_BLESS=1 after reading:\n{}", different.join("\n"));
}
