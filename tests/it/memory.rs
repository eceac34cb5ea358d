//! What the meter of memory says that captures take, compared with the most that the program takes of the system: on own captures of
//! up to a million slices here, and of ten million by `benches/memory.py`.

use std::{io::Write as _, path::Path, process::Stdio, time::Duration};

use model::{Ceiling, Work};
use session::{Reading, Session};

/// How far the meter may be from what the program takes.
const OFF: f64 = 0.25;

/// What a capture of the test holds.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Launches, each with an operator around it and a kernel.
    Eager,
    /// Kernels alone.
    Kernels,
    /// Replays of a graph of 200 kernels.
    Graph,
    /// Launches with their kernels, and 18 operators and Python functions for each.
    Host,
}

const KINDS: [Kind; 4] = [Kind::Eager, Kind::Kernels, Kind::Graph, Kind::Host];

impl Kind {
    /// The rows of one unit of the capture.
    fn unit(self, i: u64, rows: &mut Vec<String>) {
        let row = |pid: u8, cat: &str, name: &str, at: u64, dur: u64, more: &str| {
            format!(
                r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": 7, "ts": {at}, "dur": {dur}, "args": {{{more}}}}}"#
            )
        };
        let call = |name: &str, at: u64| row(7, "cuda_runtime", name, at, 5, &format!(r#""correlation": {i}"#));
        let kernel = |k: u64, at: u64, dur: u64| {
            let (k, shape) = (k % 37, r#""device": 0, "stream": 7, "block": [128, 1, 1]"#);
            let more = format!(r#""correlation": {i}, "grid": [{k}, 1, 1], {shape}"#);
            row(0, "kernel", &format!("kernel_{k}"), at, dur, &more)
        };
        match self {
            Self::Eager => {
                let operator = row(7, "cpu_op", &format!("aten::op{}", i % 37), 10 * i, 8, "");
                rows.extend([operator, call("cudaLaunchKernel", 10 * i + 1), kernel(i, 10 * i + 2, 6)]);
            }
            Self::Kernels => rows.push(kernel(i, 10 * i, 6)),
            Self::Graph => {
                rows.push(call("cudaGraphLaunch", 2_000 * i));
                rows.extend((0..200).map(|k| kernel(k, 2_000 * i + 20 + 9 * k, 8)));
            }
            Self::Host => {
                rows.extend([call("cudaLaunchKernel", 100 * i + 1), kernel(i, 100 * i + 2, 60)]);
                let of = |k| if k % 2 == 0 { "python_function" } else { "cpu_op" };
                let name = |k| format!("f{}", (i % 37 + k) % 97);
                rows.extend((0..18).map(|k| row(7, of(k), &name(k), 100 * i + 10 + 4 * k, 3, "")));
            }
        }
    }

    /// Writes a capture of so many slices.
    fn write(self, path: &Path, slices: usize) {
        let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
        let head = r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}], "traceEvents": ["#;
        out.write_all(head.as_bytes()).unwrap();
        let (mut written, mut rows) = (0, Vec::new());
        for i in 0.. {
            self.unit(i, &mut rows);
            for row in rows.drain(..) {
                let comma = if written > 0 { ",\n" } else { "" };
                write!(out, "{comma}{row}").unwrap();
                written += 1;
            }
            if written >= slices {
                break;
            }
        }
        out.write_all(b"]}").unwrap();
    }
}

/// The most memory that the program takes of the system while it runs, bytes.
fn peak(arguments: &[&str], directory: &Path) -> f64 {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0.0;
    let code = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line =
            text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse::<f64>().ok());
        most = line.map_or(most, |kib: f64| kib.max(most));
        match child.try_wait().unwrap() {
            Some(code) => break code,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(code.success(), "{arguments:?}: {code}");
    most * 1024.0
}

/// Compares the meter with the program, and prints each row.
fn compare(kinds: &[Kind], slices: usize) {
    let directory = tempfile::tempdir().unwrap();
    let (here, mut wrong) = (directory.path(), Vec::new());
    for kind in kinds {
        kind.write(&here.join("a.json"), slices);
        for (work, input, arguments) in [
            (Work::Import, "a.json", &["import", "-q", "a.json", "-o", "a.strato"][..]),
            (Work::Diagnose, "a.json", &["diagnose", "-q", "a.json"]),
            (Work::Diagnose, "a.strato", &["diagnose", "-q", "a.strato"]),
        ] {
            let ceiling = Ceiling::of_process(u64::MAX, work);
            let taken = peak(arguments, here);
            let reading = Reading { memory: ceiling.clone(), ..Reading::default() };
            Session::open(&[here.join(input)], &reading).unwrap();
            let said = ceiling.taken() as f64;
            let row =
                format!("{kind:?}, {slices} slices, {work:?} of {input}: {:.0} of {:.0} MB", said / 1e6, taken / 1e6);
            println!("{row}");
            if (said / taken - 1.0).abs() > OFF {
                wrong.push(row);
            }
        }
        std::fs::remove_file(here.join("a.strato")).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_meter_says_what_the_program_takes_of_small_captures() {
    compare(&KINDS, 100_000);
}

#[test]
#[ignore = "takes a minute or two, and half a gigabyte of memory"]
fn the_meter_says_what_the_program_takes_of_a_million_slices() {
    compare(&KINDS, 1_000_000);
}
