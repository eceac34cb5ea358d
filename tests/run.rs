//! `strato run`: real runs of the reference engine, and what a diagnosis makes of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    path::Path,
    process::{Command, Output},
};

fn strato(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("LANG", "C.UTF-8").output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const TINY: &[&str] = &["run", "--model", "tiny", "--prompt-len", "8", "--gen", "12"];

#[test]
fn the_same_command_gives_the_same_tokens_however_steps_are_started_and_divided() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| json(&strato(&[TINY, &["--json"], more].concat(), directory.path()));
    let first = run(&[]);
    let tokens = first["tokens"][0].as_array().unwrap();
    assert_eq!(tokens.len(), 12);
    assert!(first["step_ns"]["p50"].as_i64().unwrap() > 0);
    for more in [
        &["--mode", "graph"][..],
        &["--level", "fused", "--kv-block", "4"],
        &["--threads", "1"],
        &["--batch", "3", "--mode", "graph", "--level", "fused"],
    ] {
        assert_eq!(run(more)["tokens"][0], first["tokens"][0], "{more:?}");
    }
}

#[test]
fn a_run_leaves_a_capture_whose_every_operator_is_known_and_whose_steps_add_up() {
    for (mode, class) in [("eager", "graph=eager"), ("graph", "graph=full")] {
        let directory = tempfile::tempdir().unwrap();
        let run = strato(&[TINY, &["--mode", mode, "-o", "run.strato"]].concat(), directory.path());
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        let text = String::from_utf8(run.stdout).unwrap();
        assert!(text.contains("decode   11 steps") && text.contains("wrote run.strato"), "{text}");

        let report = json(&strato(&["diagnose", "run.strato", "--format", "json"], directory.path()));
        assert_eq!(report["simulated"], false);
        assert_eq!(report["captures"][0]["platform"]["vendor"], "cpu");
        let classes = report["steps"]["classes"].as_array().unwrap();
        assert!(classes.iter().any(|c| c["key"].as_str().unwrap().contains(class)), "{classes:?}");
        for class in report["attribution"].as_array().unwrap() {
            let buckets = class["buckets"].as_array().unwrap();
            let sum: i64 = buckets.iter().map(|bucket| bucket["ns"].as_i64().unwrap()).sum();
            assert_eq!(sum, class["window_ns"].as_i64().unwrap());
            assert!(buckets.iter().all(|bucket| bucket["bucket"] != "compute.other"), "{buckets:?}");
        }
    }
}

#[test]
fn what_cannot_be_run_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        (&["run", "--model", "gpt-5"][..], 2, "qwen2.5-0.5b"),
        (&["run", "--model", "tiny", "--gen", "0"], 2, "at least one"),
        (&["run", "--model", "tiny", "--prompt-len", "0"], 2, "cannot read"),
        (&["run", "--model", "tiny", "--kv-block", "0"], 2, "no cache"),
        (&["run", "--model", "."], 3, "config.json"),
    ] {
        let output = strato(arguments, directory.path());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
