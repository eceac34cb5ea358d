//! The command: what it writes appears whole or not at all.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use super::sample;
use crate::common::strato;

const SAMPLE: &str = "healthy-full-graph.json.gz";

fn export(format: &str, output: &str, directory: &Path) -> std::process::Output {
    let trace = sample(SAMPLE);
    strato(&["export", trace.to_str().unwrap(), "--format", format, "-o", output], directory)
}

#[test]
fn every_form_is_written_whole_and_an_earlier_one_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    for format in ["perfetto", "html", "svg"] {
        let name = format!("a.{format}");
        for _ in 0..2 {
            let output = export(format, &name, directory.path());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stdout.is_empty());
        }
        let text = std::fs::read_to_string(directory.path().join(&name)).unwrap();
        assert!(text.to_lowercase().contains("simulated"), "{format} does not say that it is simulated");
        let trace = sample(SAMPLE);
        let printed = strato(&["export", trace.to_str().unwrap(), "--format", format, "-q"], directory.path());
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), text);
        assert!(printed.stderr.is_empty());
    }
    assert_eq!(directory.path().read_dir().unwrap().count(), 3);
}

#[test]
fn what_cannot_be_written_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let output = export("perfetto", "none/a.json", directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("make it first"));
    std::fs::copy(sample(SAMPLE), directory.path().join("a.gz")).unwrap();
    let output = strato(&["export", "a.gz", "--format", "perfetto", "-o", "a.gz"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(directory.path().join("a.gz")).unwrap(), std::fs::read(sample(SAMPLE)).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let output = export("perfetto", "/dev/full", directory.path());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("'/dev/full'") && told.contains("free some space"), "{told}");
}

/// A reader of the standard output that has had enough is no error, as everywhere else.
#[test]
fn a_reader_may_leave() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_strato"))
        .args(["export", sample(SAMPLE).to_str().unwrap(), "--format", "perfetto", "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

/// A pipe with a name is asked for by name: that its reader leaves before the end is an error.
#[cfg(unix)]
#[test]
fn a_broken_pipe_that_was_named_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new("mkfifo").arg(directory.path().join("p")).status();
    assert!(made.unwrap().success());
    let mut reader =
        Command::new("head").args(["-c", "1"]).arg(directory.path().join("p")).stdout(Stdio::null()).spawn().unwrap();
    let output = export("perfetto", "p", directory.path());
    reader.wait().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("its reader went away"), "{told}");
}

/// It reads like a trace of PyTorch's profiler, but what the analysis derived stands in it as if it had been recorded.
#[test]
fn our_own_trace_for_perfetto_is_refused_as_a_capture_and_what_it_was_made_of_is_named() {
    let directory = tempfile::tempdir().unwrap();
    assert!(export("perfetto", "a.json", directory.path()).status.success());
    for command in ["diagnose", "import"] {
        let output = strato(&[command, "a.json", "-o", "b.strato"], directory.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(told.contains("'strato export' wrote") && told.contains(SAMPLE), "{told}");
    }
}
