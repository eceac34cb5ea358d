//! The binary as scripts see it: exit codes, streams, and messages that say the next step.

use std::process::{Command, Output, Stdio};

use model::{Category, Slice, TraceBuilder, TraceSink, TrackKey, TrackKind};

use crate::common::strato;

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A directory with `a.strato`, which holds `kernels` kernels.
fn with_capture(kernels: i64) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut b = TraceBuilder::new("made here", "test");
    let process = b.process(0);
    let track = b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id: 7 });
    let name = b.intern("矩阵乘\u{1b}[31m");
    for i in 0..kernels {
        b.slice(Slice {
            track,
            start: i * 10,
            dur: 5,
            name,
            category: Category::Kernel,
            correlation: None,
            detail: None,
        });
    }
    b.ledger("kernel", 3, 2, 10, "");
    store::save(&directory.path().join("a.strato"), &[b.finish()]).unwrap();
    directory
}

#[test]
fn sql_writes_tables_csv_and_json() {
    let directory = with_capture(2);
    let ask = |arguments: &[&str]| {
        let query = "SELECT name, stream, start_ns FROM kernels ORDER BY start_ns";
        let output = strato(&[&["sql", "a.strato", query], arguments].concat(), directory.path());
        assert_eq!((code(&output), err(&output).as_str()), (0, ""));
        out(&output)
    };
    let table = "name              stream  start_ns\n----------------  ------  --------\n\
                 矩阵乘\\u{1b}[31m       7         0\n矩阵乘\\u{1b}[31m       7        10\n";
    assert_eq!(ask(&[]), table);
    assert_eq!(ask(&["--csv"]), "name,stream,start_ns\n矩阵乘\u{1b}[31m,7,0\n矩阵乘\u{1b}[31m,7,10\n");
    let json: serde_json::Value = serde_json::from_str(&ask(&["--json"])).unwrap();
    assert_eq!(json[1], serde_json::json!({"name": "矩阵乘\u{1b}[31m", "stream": 7, "start_ns": 10}));
}

#[test]
fn exit_codes_and_next_steps() {
    let directory = with_capture(2);
    let here = directory.path();
    std::fs::write(here.join("notes.txt"), "not a trace").unwrap();
    std::fs::write(here.join("cut.strato"), &std::fs::read(here.join("a.strato")).unwrap()[..20_000]).unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["sql", "a.strato", "SELECT * FROM kernel"], 2, "tables and views: attribution, capture"),
        (&["sql", "a.strato", "DELETE FROM slice"], 2, "read-only"),
        (&["sql", "notes.txt", "SELECT 1"], 3, "strato import"),
        (&["sql", "absent.strato", "SELECT 1"], 3, "absent.strato"),
        (&["sql", "cut.strato", "SELECT 1"], 3, "cut.strato"),
        (&["import", "notes.txt", "-o", "b.strato"], 3, "notes.txt"),
        (&["import", "cut.strato", "-o", "b.strato"], 3, "cut.strato"),
        (&["import", "absent", "-o", "b.strato"], 3, "absent"),
        (&["import", "a.strato", "-o", "notes.txt"], 2, "will not replace 'notes.txt'"),
        (&["import", "a.strato", "-o", "no/where.strato"], 2, "no directory 'no'"),
        (&["import", "a.strato", "-o", "b.strato", "--as", "nonsense"], 2, "nonsense"),
        (&["import", "a.strato"], 2, "--output"),
        (&["frobnicate"], 2, "frobnicate"),
    ];
    for (arguments, expected, message) in cases {
        let output = strato(arguments, here);
        assert_eq!(code(&output), *expected, "{arguments:?}: {}", err(&output));
        assert!(err(&output).contains(message), "{arguments:?}: {}", err(&output));
        assert!(!here.join("b.strato").exists(), "{arguments:?} left a file");
    }
    assert_eq!(std::fs::read(here.join("notes.txt")).unwrap(), b"not a trace");
}

#[test]
fn a_capture_file_imports_into_another_one() {
    let directory = with_capture(2);
    let output = strato(&["import", "a.strato", "a.strato", "-o", "b.strato"], directory.path());
    assert_eq!(code(&output), 0, "{}", err(&output));
    // One capture that is named twice is one run.
    assert!(out(&output).contains("capture 1: made here [test]"), "{}", out(&output));
    assert!(!out(&output).contains("capture 2:"), "{}", out(&output));
    assert!(!out(&output).contains('\u{1b}'));
    assert_eq!(store::load(&directory.path().join("b.strato")).unwrap().len(), 1);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let directory = with_capture(200_000);
    for form in [None, Some("--csv"), Some("--json")] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_strato"))
            .args(["sql", "a.strato", "SELECT * FROM kernels"])
            .args(form)
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), err(&output).as_str()), (0, ""), "{form:?}");
    }
}

#[test]
fn doctor_completions_and_man_come_from_this_machine_and_one_definition() {
    let directory = with_capture(0);
    let doctor = strato(&["doctor", "--lang", "zh"], directory.path());
    assert_eq!(code(&doctor), 0);
    for word in [
        "processor",
        "instructions",
        "huge pages",
        "governor",
        "numa",
        "memory",
        "cpu_busy",
        "engine kernels: ",
        "kineto",
        "none of npu-smi, msprof, libascendcl.so",
        "C.UTF-8",
        "zh",
    ] {
        assert!(out(&doctor).contains(word), "{word}: {}", out(&doctor));
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = strato(&["completions", shell], directory.path());
        assert!(out(&script).contains("doctor"), "{shell}");
    }
    assert!(out(&strato(&["man"], directory.path())).contains(".TH strato 1"));
    assert_eq!(code(&strato(&["man", "pages"], directory.path())), 0);
    assert!(directory.path().join("pages/strato-import.1").is_file());
}

/// What the program says of its work goes where it was asked for, and never moves a cursor whatever a capture is called.
#[test]
fn the_program_tells_of_its_own_work_on_stderr_in_a_file_and_as_a_capture() {
    let directory = tempfile::tempdir().unwrap();
    let name = "a\u{1b}[2J.json.gz";
    let sample = crate::common::samples().join("launch-bound-eager.json.gz");
    std::fs::copy(sample, directory.path().join(name)).unwrap();
    let quiet = strato(&["diagnose", "-q", name], directory.path());
    assert_eq!((code(&quiet), err(&quiet).as_str()), (0, ""));
    let said = strato(
        &["diagnose", "-q", "-v", "--log-file", "log.txt", "--self-trace", "self.strato", name],
        directory.path(),
    );
    assert_eq!(code(&said), 0, "{}", err(&said));
    let log = std::fs::read_to_string(directory.path().join("log.txt")).unwrap();
    for text in [err(&said), log] {
        assert!(text.contains("diagnosed") && text.contains("device_operations=1508"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    let spans = strato(&["sql", "self.strato", "SELECT name, dur_ns FROM ranges", "--csv"], directory.path());
    let spans = out(&spans);
    for stage in ["command", "reading", "analysing", "diagnosing", "reporting"] {
        assert!(spans.lines().any(|line| line.trim_start_matches('"').starts_with(stage)), "{stage}: {spans}");
    }
    let refused = strato(&["diagnose", "-q", "--log-file", "none/log.txt", name], directory.path());
    assert_eq!(code(&refused), 2);
    assert!(err(&refused).contains("none/log.txt"), "{}", err(&refused));
    // Nor may it cost a trace, nor hide what stopped the command.
    for option in ["--log-file", "--self-trace"] {
        let before = std::fs::read(directory.path().join(name)).unwrap();
        let refused = strato(&["diagnose", "-q", option, name, name], directory.path());
        assert_eq!(code(&refused), 2, "{option}: {}", err(&refused));
        assert_eq!(std::fs::read(directory.path().join(name)).unwrap(), before, "{option}");
    }
    let stopped = strato(&["diagnose", "none.json", "--self-trace", "none/self.strato"], directory.path());
    assert!(code(&stopped) == 3 && err(&stopped).contains("none.json"), "{}", err(&stopped));
}

/// Steps that a capture does not have were "record A again".
#[test]
fn steps_that_are_not_there_are_refused_with_those_that_are() {
    let sample = crate::common::samples().join("launch-bound-eager.json.gz");
    let sample = sample.to_str().unwrap();
    for arguments in [
        &["diagnose", sample, "--steps", "900..901"][..],
        &["diff", sample, sample, "--steps", "900..901"],
        &["diff", sample, sample, "--iteration", "9999"],
    ] {
        let out = strato(arguments, std::path::Path::new("."));
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{told}");
        assert!(told.contains("it has the steps 0 to "), "{told}");
    }
}
