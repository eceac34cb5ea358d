//! An import that is killed leaves no broken capture file: there is none, or one that is whole.

use std::{
    fmt::Write as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};

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

/// Temporary files that there are.
fn temporary(directory: &Path) -> Vec<String> {
    names(directory).into_iter().filter(|name| name.starts_with("run.strato.") && name.ends_with(".tmp")).collect()
}

/// Removes what the last round left, which would be taken for the beginning of the next.
fn clear(directory: &Path) {
    temporary(directory).iter().for_each(|name| std::fs::remove_file(directory.join(name)).unwrap());
}

/// Waits until the import has begun to write, or is over.
fn until_it_writes(directory: &Path, child: &mut Child) -> Duration {
    let start = Instant::now();
    while temporary(directory).is_empty() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    start.elapsed()
}

#[test]
fn a_killed_import_leaves_no_broken_file() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("trace.json"), directory.path().join("run.strato"));
    write_trace(&input);
    let mut child = import(&input, &output).spawn().unwrap();
    let reading = until_it_writes(directory.path(), &mut child);
    let writing = Instant::now();
    assert!(child.wait().unwrap().success());
    let writing = writing.elapsed();
    assert_whole(&output);

    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    let (mut killed, mut left) = (0, 0);
    for round in 0..KILLS {
        // From nothing half of the time, over an earlier capture the other half.
        if round % 2 == 0 && output.exists() {
            std::fs::remove_file(&output).unwrap();
        }
        clear(directory.path());
        let mut child = import(&input, &output).spawn().unwrap();
        // Mostly while it writes, since little can go wrong before.
        let span = if round % 4 == 0 {
            reading
        } else {
            until_it_writes(directory.path(), &mut child);
            writing
        };
        std::thread::sleep(Duration::from_micros(random.random_range(0..=span.as_micros() as u64)));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        if output.exists() {
            assert_whole(&output);
        }
        let rest = temporary(directory.path());
        left += rest.len();
        assert!(rest.len() <= 1, "{rest:?}");
        assert_eq!(names(directory.path()).len(), 1 + rest.len() + usize::from(output.exists()));
    }
    assert!(left > 0, "no import was killed while it wrote");
    eprintln!(
        "{killed} of {KILLS} imports killed, {left} times a temporary file was left; writing takes {writing:.2?}"
    );

    // What the last one leaves is removed by the next import itself.
    clear(directory.path());
    let mut child = import(&input, &output).spawn().unwrap();
    until_it_writes(directory.path(), &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(import(&input, &output).status().unwrap().success());
    assert_whole(&output);
    assert_eq!(names(directory.path()), ["run.strato", "trace.json"]);
}
