//! `strato diagnose`, `explain` and `rules` as scripts see them, on the samples.

use crate::common;
use std::{path::Path, process::Output};

fn strato(arguments: &[&str]) -> Output {
    common::strato(arguments, &Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces"))
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const LAUNCH_BOUND: &str = "launch-bound-eager.json.gz";
const HEALTHY: &str = "healthy-full-graph.json.gz";

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = strato(&[&["diagnose", "--format", "json"], arguments].concat());
    assert_eq!(code(&output), 0, "{}", err(&output));
    serde_json::from_str(&out(&output)).unwrap()
}

#[test]
fn a_launch_bound_run_is_the_runtimes_fault_and_a_healthy_one_is_not() {
    let bound = json(&[LAUNCH_BOUND]);
    assert_eq!(bound["schema"], "strato.diagnosis/2");
    assert_eq!(bound["simulated"], true);
    assert_eq!(bound["verdict"]["layer"], "runtime");
    assert_eq!(bound["captures"][0]["source"], LAUNCH_BOUND);
    let healthy = json(&[HEALTHY]);
    let rules: Vec<&str> =
        healthy["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap()).collect();
    assert!(!rules.iter().any(|rule| ["RT-01", "RT-14"].contains(rule)), "{rules:?}");
}

#[test]
fn the_exit_code_says_whether_there_is_a_grave_finding() {
    let loud = strato(&["diagnose", LAUNCH_BOUND, "--fail-on", "high", "--quiet"]);
    assert_eq!((code(&loud), out(&loud), err(&loud)), (1, String::new(), String::new()));
    assert_eq!(code(&strato(&["diagnose", HEALTHY, "--fail-on", "critical", "-q"])), 0);
    assert_eq!(code(&strato(&["diagnose", LAUNCH_BOUND, "-q"])), 0);
}

#[test]
fn steps_and_ranks_narrow_the_report() {
    let narrow = json(&[LAUNCH_BOUND, "--steps", "3..7"]);
    assert_eq!(narrow["attribution"][0]["steps"], 5);
    let wrong = strato(&["diagnose", LAUNCH_BOUND, "--rank", "9"]);
    assert_eq!(code(&wrong), 2);
    assert!(err(&wrong).contains("rank 9"), "{}", err(&wrong));
    assert_eq!(code(&strato(&["diagnose", LAUNCH_BOUND, "--steps", "7..3"])), 2);
}

#[test]
fn the_same_input_gives_the_same_report_and_only_a_terminal_gets_colour() {
    let twice = [(); 2].map(|()| out(&strato(&["diagnose", LAUNCH_BOUND])));
    assert_eq!(twice[0], twice[1]);
    assert!(!twice[0].contains('\u{1b}'));
    let coloured = out(&strato(&["diagnose", LAUNCH_BOUND, "--color", "always"]));
    assert!(coloured.contains('\u{1b}') && coloured.len() > twice[0].len());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.md");
    let written = strato(&["diagnose", LAUNCH_BOUND, "--color", "always", "-o", file.to_str().unwrap()]);
    assert_eq!((code(&written), out(&written)), (0, String::new()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), twice[0]);
}

#[test]
fn the_samples_are_shown_and_said_to_be_simulated() {
    let output = strato(&["diagnose", "--samples"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(err(&output).contains("simulated samples"));
    let text = out(&output);
    for sample in [LAUNCH_BOUND, HEALTHY, "sync-per-layer.sqlite", "tensor-parallel-rocm.json.gz"] {
        assert!(text.contains(&format!("\n# Diagnosis of `{sample}`\n\n> **simulated**")), "{sample}");
    }
}

/// A small model stands for the one that a person gets: what is tested is what holds of both.
#[test]
fn without_a_path_the_engine_runs_here_and_is_held_against_what_this_machine_was_measured_to_do() {
    let output = strato(&["diagnose", "--model", "tiny", "--format", "json"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(err(&output).contains("no PATH was given: probing this machine"), "{}", err(&output));
    let report: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["simulated"], false);
    let capture = &report["captures"][0];
    assert_eq!(capture["platform"]["vendor"], "cpu");
    assert_eq!((&capture["evidence"]["probes"], &capture["evidence"]["shapes"]), (&true.into(), &true.into()));
    let held = capture["roofline"]["rows"].as_array().unwrap();
    assert!(held.iter().all(|row| row["reached"].as_f64().unwrap() > 0.0) && held.len() >= 3, "{held:?}");
    let said = capture["facts"]["measurement.sampler"].to_string();
    assert!(said.contains("% of one core"), "{said}");
    let abstained: Vec<&str> =
        report["abstained"].as_array().unwrap().iter().map(|a| a["rule"].as_str().unwrap()).collect();
    assert!(!abstained.iter().any(|rule| ["OP-01", "OP-02", "CP-10", "RT-19"].contains(rule)), "{abstained:?}");
    let unknown = strato(&["diagnose", "--model", "gpt-5"]);
    assert!(code(&unknown) == 2 && err(&unknown).contains("qwen2.5-0.5b"), "{}", err(&unknown));
    assert_eq!(code(&strato(&["diagnose", HEALTHY, "--samples"])), 2);
}

#[test]
fn rules_are_listed_and_explained_in_both_languages() {
    let list = out(&strato(&["rules"]));
    assert!(list.contains("RT-14") && list.contains("CP-05"));
    for lang in ["en", "zh"] {
        let text = out(&strato(&["explain", "rt-14", "--lang", lang]));
        assert!(text.starts_with('#') && text.contains("RT-14"), "{text}");
        assert_eq!(lang == "zh", text.chars().any(|c| ('\u{4e00}'..'\u{a000}').contains(&c)), "{text}");
    }
    let unknown = strato(&["explain", "RT-99"]);
    assert_eq!(code(&unknown), 2);
    assert!(err(&unknown).contains("near it are RT-"), "{}", err(&unknown));
}

#[test]
fn what_cannot_be_read_ends_with_three() {
    let output = strato(&["diagnose", "README.md"]);
    assert_eq!(code(&output), 3);
    assert!(err(&output).contains("README.md"), "{}", err(&output));
    let missing = strato(&["diagnose", "no-such-file"]);
    assert_eq!(code(&missing), 3, "{}", err(&missing));
}

#[test]
fn a_report_as_a_page_is_the_one_that_export_writes() {
    let directory = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces/healthy-full-graph.json.gz");
    let sample = sample.to_str().unwrap();
    let page = |arguments: &[&str]| {
        let output = common::strato(arguments, directory.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let diagnosed = page(&["diagnose", sample, "--format", "html"]);
    assert!(diagnosed.starts_with("<!doctype html>") || diagnosed.starts_with("<!DOCTYPE html>"), "{:.80}", diagnosed);
    assert_eq!(diagnosed, page(&["export", sample, "--format", "html", "-q"]));
}

/// The levels above the first rest on a second run: it is one where it is the same work once more, and not another reading.
#[test]
fn a_second_run_beside_a_capture_and_launches_of_one_command_are_evidence() {
    let directory = tempfile::tempdir().unwrap();
    let run = |output: &str, prompt: &str, more: &[&str]| {
        let arguments =
            ["run", "--model", "tiny", "--prompt-len", prompt, "--gen", "64", "--plain", "-q", "-o", output];
        let output = common::strato(&[&arguments[..], more].concat(), directory.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let evidence = |captures: &[&str]| -> Vec<bool> {
        let output = common::strato(&[&["diagnose", "--format", "json"], captures].concat(), directory.path());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let captures = report["captures"].as_array().unwrap();
        captures.iter().map(|capture| capture["evidence"]["second_run"].as_bool().unwrap()).collect()
    };
    run("a.strato", "4", &[]);
    run("b.strato", "4", &["--mode", "graph"]);
    run("other.strato", "9", &[]);
    std::fs::copy(directory.path().join("a.strato"), directory.path().join("copy.strato")).unwrap();
    assert_eq!(evidence(&["a.strato"]), [false]);
    assert_eq!(evidence(&["a.strato", "copy.strato"]), [false], "one launch, read twice, counts once");
    // On a machine so busy that no step time settles, the contract rightly lets nothing be compared.
    let compared = common::strato(&["diff", "a.strato", "b.strato"], directory.path());
    let refused = |line: &str| line.starts_with("- `") && line.contains("`warmup.change_point`");
    let settled = !String::from_utf8_lossy(&compared.stdout).lines().any(refused);
    assert_eq!(evidence(&["a.strato", "b.strato"]), [settled, settled], "one setting was changed");
    assert_eq!(evidence(&["a.strato", "other.strato"]), [false, false], "other work");
    run("c.strato", "4", &["--repeats", "2"]);
    assert_eq!(evidence(&["c.1.strato"]), [true], "the other launch is known");
}
