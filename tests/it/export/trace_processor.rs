//! Perfetto's own `trace_processor` loads what was written without loss. `STRATO_TRACE_PROCESSOR` names its shell.

use std::{path::Path, process::Command};

use super::{printed, program, sample};
use crate::common;

/// Captures whose form is hard to load: overlapping kernels, links of training, counters, several ranks.
const CORPUS: [&str; 5] = [
    "kineto/tl-mi300-actckpt/resnet_act_checkpoint.json.gz",
    "kineto/tl-sglang-prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
    "nsys-sqlite/nsysai-h100-2gpu/h100_2gpu_1s.sqlite",
    "ascend-pytorch/alexnet-ddp-2rank-text-level2",
    "rocprof/llamacpp-v3-strix",
];

/// Slices of the captures, and their time; links; samples; kinds of errors; links that have no beginning.
const QUERY: &str = "select (select count(*) from slice where category not like 'strato.%') || ' ' ||
    (select count(*) from slice where category like 'strato.%') || ' ' || (select count(*) from flow) || ' ' ||
    (select count(*) from counter) || ' ' ||
    (select count(*) from stats where value > 0 and (severity in ('error', 'data_loss') or name like 'flow%')) as told;\n";

#[test]
#[ignore = "needs STRATO_CORPUS, and trace_processor_shell on the PATH or named by STRATO_TRACE_PROCESSOR"]
fn trace_processor_loads_every_slice() {
    let shell = program("STRATO_TRACE_PROCESSOR", &["trace_processor_shell"]);
    let samples = ["tensor-parallel-rocm.json.gz", "sync-per-layer.sqlite"].map(sample);
    let corpus = common::corpus();
    for trace in samples.into_iter().chain(CORPUS.map(|path| corpus.join(path))) {
        check(&shell, &trace);
    }
}

fn check(shell: &Path, trace: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let [file, query] = ["a.json", "q.sql"].map(|name| directory.path().join(name));
    let arguments = ["export", trace.to_str().unwrap(), "--format", "perfetto", "-o", "a.json"];
    let output = common::strato(&arguments, directory.path());
    let said = String::from_utf8(output.stderr).unwrap().replace('\u{202f}', "");
    // A capture that lacks something is written all the same, and ends with 3.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    // "strato: 12 slices of the capture, 3 of the analysis, 4 links, 5 samples"
    let counted = said.lines().find(|line| line.contains(" slices of the capture, ")).unwrap();
    let ours: Vec<&str> = counted.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).collect();
    std::fs::write(&query, QUERY).unwrap();
    let answer = printed(Command::new(shell).arg("-q").args([query, file]));
    let told = answer.lines().rfind(|line| !line.trim().is_empty()).unwrap().trim_matches('"').to_owned();
    assert_eq!(told, format!("{} 0", ours.join(" ")), "{}", trace.display());
}
