//! An import that is killed leaves no broken capture file: there is none, or one that is whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fmt::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};
use stratoscope::store;

const SLICES: usize = 60_000;
const KILLS: u32 = 20;

/// A trace as the PyTorch profiler writes it: launches on a thread and their kernels on a stream.
fn write_trace(path: &Path) {
    let mut text =
        String::from(r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "traceEvents": ["#);
    for i in 0..SLICES / 2 {
        let ts = 1_000_000 + i * 10;
        let comma = if i > 0 { "," } else { "" };
        write!(
            text,
            r#"{comma}{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 10, "ts": {ts}.125, "dur": 4.000, "args": {{"correlation": {i}}}}},
            {{"ph": "X", "cat": "kernel", "name": "gemm_{}", "pid": 0, "tid": 7, "ts": {}.250, "dur": 5.500, "args": {{"correlation": {i}, "device": 0, "stream": 7}}}}"#,
            i % 50,
            ts + 3,
        )
        .unwrap();
    }
    text.push_str("]}");
    std::fs::write(path, text).unwrap();
}

fn import(input: &Path, output: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.arg("import").arg(input).arg("-o").arg(output).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn assert_whole(output: &Path) {
    let traces = store::load(output).unwrap();
    assert_eq!(traces.iter().map(model::Trace::slice_count).sum::<usize>(), SLICES);
}

fn names(directory: &Path) -> Vec<String> {
    let name = |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = directory.read_dir().unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_killed_import_leaves_no_broken_file() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("trace.json"), directory.path().join("run.strato"));
    write_trace(&input);
    let start = Instant::now();
    assert!(import(&input, &output).status().unwrap().success());
    let whole = start.elapsed();
    assert_whole(&output);

    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    let (mut killed, mut left) = (0, 0);
    for round in 0..KILLS {
        // From nothing half of the time, over an earlier capture the other half.
        if round % 2 == 0 && output.exists() {
            std::fs::remove_file(&output).unwrap();
        }
        let mut child = import(&input, &output).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.random_range(0..=whole.as_micros() as u64)));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        if output.exists() {
            assert_whole(&output);
        }
        let rest: Vec<String> =
            names(directory.path()).into_iter().filter(|n| n != "trace.json" && n != "run.strato").collect();
        left += rest.len();
        assert!(rest.len() <= 1, "{rest:?}");
        assert!(rest.iter().all(|name| name.ends_with(".tmp")), "{rest:?}");
    }
    assert!(killed > 0, "every import was over before it was killed");
    eprintln!(
        "{killed} of {KILLS} imports killed, {left} times a temporary file was left; a whole import takes {whole:.2?}"
    );

    assert!(import(&input, &output).status().unwrap().success());
    assert_whole(&output);
    assert_eq!(names(directory.path()), ["run.strato", "trace.json"]);
}
