//! The scores of the diagnosis on a small even choice of simulated runs do not fall. `STRATO_BLESS=1` accepts new ones.

use std::path::Path;

use assert_cmd::Command;

/// Runs examined: some of every layer and of every number of ranks, within the time of a test.
const RUNS: &str = "40";

fn selftest() -> Command {
    let mut command = Command::cargo_bin("strato").unwrap();
    command.args(["selftest", "--runs", RUNS, "--format", "json"]);
    command
}

#[test]
fn no_score_falls_below_the_one_that_was_accepted() {
    let accepted = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/selftest-baseline.json");
    if std::env::var_os("STRATO_BLESS").is_some() {
        selftest().arg("--output").arg(&accepted).assert().success();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("now.json");
    let run = selftest().arg("--against").arg(&accepted).arg("--output").arg(&report).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    println!("{said}");
    assert!(run.status.success(), "a score fell; 'strato selftest' lists the misses, STRATO_BLESS=1 accepts\n{said}");
    let now: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(now["schema"], "strato.selftest/1");
    assert_eq!(now["runs"], 40);
}

#[test]
fn the_same_runs_give_the_same_scores() {
    let once = || {
        let mut command = Command::cargo_bin("strato").unwrap();
        let command = command.args(["selftest", "--only", "full_sort", "--ranks", "2", "--format", "json"]);
        command.output().unwrap().stdout
    };
    let first = once();
    assert!(!first.is_empty());
    assert_eq!(first, once());
}
