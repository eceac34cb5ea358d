//! A run of graph replays beside the trace of their capture, through the command, on real captures of one process.

use crate::common;
use std::{path::Path, process::Output};

const RUN: &str = "kineto/tl-vllm-decode-full";
const CAPTURE: &str = "kineto/tl-vllm-decode-capture";

fn strato(arguments: &[&str]) -> Output {
    common::strato(arguments, Path::new("."))
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_replayed_kernel_finds_its_launch_and_the_report_shows_it() {
    let corpus = common::corpus();
    let path = |name: &str| corpus.join(name).to_str().unwrap().to_owned();
    let (run, capture) = (path(RUN), path(CAPTURE));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.strato");
    let file = file.to_str().unwrap();
    let out = strato(&["import", &run, "--graph-capture", &capture, "-o", file]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // Of both files, with jq: `[.traceEvents[] | select(.cat == "kernel" and .args.correlation == 505113)] | sort_by(.ts) |
    // map(.name)` of the run is, name by name, `[.traceEvents[] | select(.args.kernel and (.args.correlation as $c |
    // [505113] | index($c) | not))] | sort_by(.ts) | map(.args.kernel) | .[7:]` of the capture: 428 launches, of which the
    // first seven ran and 421 lie between hipStreamBeginCapture and hipStreamEndCapture.
    let account = String::from_utf8_lossy(&out.stdout).into_owned();
    let row = account.lines().find(|line| line.starts_with("graph capture: replayed kernels")).unwrap();
    assert_eq!(row.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["421", "421"], "{row}");
    // Operators of the capture by `External id` of those launches: 72 of aten::addmm, 72 of vllm::moe_forward, …
    let out = strato(&["diagnose", file, "--lang", "en", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let said = &report["captures"][0]["facts"]["graph_capture.match"]["value"];
    assert_eq!(said, "421 of 421 replayed kernels (100.0 %), by name and order");
    let rows = report["attribution"][0]["replayed"].as_array().unwrap();
    let kernels = |operator: &str| -> u64 {
        rows.iter().filter(|row| row["operator"] == operator).map(|row| row["count"].as_u64().unwrap()).sum()
    };
    for (operator, count) in [
        ("aten::addmm", 72),
        ("vllm::moe_forward", 72),
        ("SortTokens", 72),
        ("aiter::rmsnorm2d_fwd_with_add_ck", 48),
        ("vllm::unified_attention_with_output", 36),
        ("_C::rotary_embedding", 24),
    ] {
        assert_eq!(kernels(operator), count, "{operator}");
    }
    // A run that was imported with its capture reads the same as both given to the diagnosis.
    let text = |args: &[&str]| String::from_utf8(strato(args).stdout).unwrap();
    let at_once = text(&["diagnose", &run, "--graph-capture", &capture, "--full", "--lang", "en"]);
    assert!(at_once.contains("421 of 421 replayed kernels (100.0 %)"));
    assert_eq!(text(&["diagnose", file, "--full", "--lang", "en"]), at_once);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn a_capture_of_another_process_or_without_graphs_is_refused_with_the_reason() {
    let corpus = common::corpus();
    let path = |name: &str| corpus.join(name).to_str().unwrap().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.strato");
    let file = file.to_str().unwrap();
    for (run, capture, why) in [
        (RUN, "kineto/tl-h100", "the run is of process 851"),
        (CAPTURE, CAPTURE, "no kernel that a graph launch caused"),
        (RUN, RUN, "no launch between the begin and the end of a stream capture"),
    ] {
        let out = strato(&["import", &path(run), "--graph-capture", &path(capture), "-o", file]);
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{told}");
        assert!(told.contains(why) && told.contains("give"), "{told}");
        assert!(!std::path::Path::new(file).exists());
    }
}
