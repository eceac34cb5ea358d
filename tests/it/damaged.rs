//! Damaged and hostile files through everything that `strato diagnose` does with a file: it ends with a report that
//! counts what was lost, or with an error that names the file. It never panics and never hangs.

#[allow(dead_code)] // the parsers' own tests look at more of an input
#[path = "../../parsers/tests/damaged/inputs.rs"]
pub mod inputs;

use std::{
    io::{Read, Write},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use diagnosis::i18n::Lang;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use model::{Severity, Trace};
use rand::{Rng, SeedableRng, rngs::StdRng};
use report::json;
use session::{Error, Options, Reading, Session};
use simulator::{Config, samples, simulate};

/// A tenth part of the sweep is quick enough for every change; `STRATO_SWEEP=full` makes all of it.
fn of_sweep(full: usize) -> usize {
    if std::env::var("STRATO_SWEEP").is_ok_and(|sweep| sweep == "full") { full } else { full / 10 }
}

/// Places at which a file is cut.
fn cuts() -> usize {
    of_sweep(400)
}

/// Bytes of a file that are changed.
fn flips() -> usize {
    of_sweep(4000)
}

/// Reads, analyses, diagnoses and reports a file, as the program does.
fn diagnosed(path: &Path) -> Result<Trace, Error> {
    let mut diagnosed =
        Session::open(&[path.to_owned()], &Reading::default())?.examine(&Options::default())?.diagnose()?;
    for step in diagnosed.captures.iter().flat_map(|(_, analysis, _)| &analysis.ranks).flat_map(|rank| &rank.steps) {
        assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<i64>(), step.window.len(), "{:?}", step.window);
    }
    let report = diagnosed.report();
    for text in [report.document(Lang::En).markdown(), json::render(&report, Lang::En).unwrap()] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "a report with a control character");
    }
    Ok(diagnosed.captures.remove(0).0)
}

fn diagnosed_bytes(bytes: &[u8]) -> Result<Trace, Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let began = Instant::now();
    let outcome = diagnosed(file.path());
    assert!(began.elapsed() < Duration::from_secs(30), "{} bytes took {:?}", bytes.len(), began.elapsed());
    if let Err(error) = &outcome {
        assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
    }
    outcome
}

/// A run of a bundled sample with few steps, so that thousands of damaged copies are read in seconds.
fn small(sample: &str) -> Vec<u8> {
    let config = samples::all().into_iter().find(|s| s.file == sample).unwrap().config;
    let run = simulate(&Config { steps: 3, warmup_steps: 0, layers: 1, framework_ops: false, ..config });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(sample);
    if !sample.ends_with(".sqlite") {
        run.write_kineto(&path).unwrap();
        let mut text = Vec::new();
        GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
        return text;
    }
    run.write_nsys(&path).unwrap();
    std::fs::read(path).unwrap()
}

fn kineto() -> Vec<u8> {
    small("launch-bound-eager.json.gz")
}

fn nsys() -> Vec<u8> {
    small("sync-per-layer.sqlite")
}

/// Cuts `whole` at random places; what could be read of it must say that it is cut. Returns how many gave a report.
fn cut(whole: &[u8], stat: &str) -> usize {
    assert_eq!(diagnosed_bytes(whole).unwrap().stat(stat), 0);
    let mut random = StdRng::seed_from_u64(11);
    let ends: Vec<usize> = (0..cuts()).map(|_| random.random_range(0..whole.len() - 2)).collect();
    let told = |end: &usize| match diagnosed_bytes(&whole[..*end]) {
        Ok(trace) => {
            assert!(trace.stat(stat) > 0, "cut at {end}: {:?}", trace.stats);
            1
        }
        Err(_) => 0,
    };
    ends.iter().map(told).sum()
}

/// Changes one byte at a time. Returns how many gave a report.
fn flip(whole: &[u8]) -> usize {
    let mut random = StdRng::seed_from_u64(12);
    let flips: Vec<(usize, u8)> =
        (0..flips()).map(|_| (random.random_range(0..whole.len()), random.random_range(1..=255))).collect();
    let survives = &|(at, change): &(usize, u8)| {
        let mut bytes = whole.to_vec();
        bytes[*at] ^= change;
        diagnosed_bytes(&bytes).is_ok()
    };
    // Threads of their own: a task that waits inside the pool of the readers would be given another file to read.
    std::thread::scope(|scope| {
        let count = |part| scope.spawn(move || <[_]>::iter(part).filter(|flip| survives(flip)).count());
        let parts: Vec<_> = flips.chunks(flips.len() / 4).map(count).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    })
}

#[test]
fn a_kineto_file_cut_anywhere_reports_what_is_left() {
    let reported = cut(&kineto(), "kineto.truncated");
    assert!(reported > cuts() * 9 / 10, "only {reported} of {} gave a report", cuts());
}

#[test]
fn an_nsys_file_cut_anywhere_reports_what_is_left() {
    let reported = cut(&nsys(), "nsys.truncated_file");
    assert!(reported > cuts() / 4, "only {reported} of {} gave a report", cuts());
}

#[test]
fn a_kineto_file_with_a_changed_byte_gives_a_report() {
    let reported = flip(&kineto());
    assert!(reported > flips() * 99 / 100, "only {reported} of {} gave a report", flips());
}

#[test]
fn an_nsys_file_with_a_changed_byte_gives_a_report() {
    let reported = flip(&nsys());
    assert!(reported > flips() * 9 / 10, "only {reported} of {} gave a report", flips());
}

/// Some of the damage that `parsers/tests/damaged` does to every format, through to the report.
#[test]
fn a_damaged_file_of_any_format_gives_a_report_or_names_itself() {
    let (mut random, directory) = (StdRng::seed_from_u64(13), tempfile::tempdir().unwrap());
    for input in inputs::all() {
        let path = directory.path().join(input.name);
        let mut reports = 0;
        for round in 0..24 {
            let mut bytes = input.bytes.clone();
            let at = random.random_range(0..bytes.len());
            match round {
                0 => {}
                1..8 => bytes.truncate(at),
                _ => bytes[at] ^= random.random_range(1..=255u8),
            }
            std::fs::write(&path, bytes).unwrap();
            match diagnosed(&path) {
                Ok(_) => reports += 1,
                Err(error) => assert!(error.to_string().contains(input.name), "{error}"),
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(reports > 12, "{}: {reports} of 24 gave a report", input.name);
    }
}

fn event(category: &str, name: &str, ts: &str, dur: &str, arguments: &str) -> String {
    format!(
        r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": 7, "ts": {ts}, "dur": {dur}, "args": {{{arguments}}}}}"#
    )
}

fn trace(events: &[String]) -> Vec<u8> {
    let head = r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": ["#;
    format!("{head}{}]}}", events.join(",\n")).into_bytes()
}

#[test]
fn times_at_the_limits_of_64_bits_are_counted_and_left_out() {
    let limits = ["-9223372036854775.808", "9223372036854775.807", "-1", "0", "1e15", "1e400", "150000000000000000"];
    let mut events = Vec::new();
    for (i, ts) in limits.iter().enumerate() {
        for dur in ["0", "-5", "1", "9223372036854775.807", "5e12"] {
            let launch = format!(r#""correlation": {i}"#);
            let device = format!(r#"{launch}, "device": 0, "stream": 7, "bytes": 9223372036854775807"#);
            events.push(event("user_annotation", "execute_model", ts, dur, ""));
            events.push(event("cuda_runtime", "cudaLaunchKernel", ts, dur, &launch));
            events.push(event("cuda_runtime", "cudaDeviceSynchronize", ts, dur, &launch));
            events.push(event("kernel", "gemm", ts, dur, &device));
            events.push(event("kernel", "ncclDevKernel_AllReduce", ts, dur, &device));
            events.push(event("gpu_memcpy", "Memcpy HtoD", ts, dur, &device));
        }
    }
    let trace = diagnosed_bytes(&trace(&events)).unwrap();
    assert!(trace.stat("trace.time_out_of_range") > 50, "{:?}", trace.stats);
    assert!(trace.slice_count() > 50);
}

#[test]
fn work_that_would_add_up_beyond_64_bits_is_counted_and_left_out() {
    // 70 000 streams of 100 days each, at the same time.
    let long = |i: usize| {
        let device = format!(r#""device": 0, "stream": {i}, "correlation": {i}"#);
        event("kernel", &format!("gemm_{}", i % 3), "1000", "8640000000000", &device)
    };
    let trace = diagnosed_bytes(&trace(&(0..70_000).map(long).collect::<Vec<_>>())).unwrap();
    assert_eq!(trace.slice_count() as u64 + trace.stat("trace.time_out_of_range"), 70_000);
    assert!(trace.slice_count() > 500);
}

#[test]
fn more_streams_than_16_bits_count_stay_apart() {
    let kernel = |i: usize| {
        let device = format!(r#""device": 0, "stream": {i}, "correlation": {i}"#);
        event("kernel", "gemm", &(1000 + i * 10).to_string(), "5", &device)
    };
    let trace = diagnosed_bytes(&trace(&(0..66_000).map(kernel).collect::<Vec<_>>())).unwrap();
    let analysis = crate::common::analyze(&trace);
    let timeline = &analysis.ranks[0].timeline;
    assert_eq!(timeline.queues.len(), 66_000);
    assert!(timeline.ops.iter().enumerate().all(|(i, op)| timeline.first_of_queue[op.queue as usize] == i as u32));
}

#[test]
fn many_categories_do_not_make_the_report_as_long_as_the_file() {
    let odd = |i: usize| event(&format!("category {i}"), "x", "1", "1", "");
    let events: Vec<String> = (0..5000).map(odd).chain([event("kernel", "gemm", "1", "1", r#""device": 0"#)]).collect();
    let trace = diagnosed_bytes(&trace(&events)).unwrap();
    assert!(trace.ledger.len() < 300, "{}", trace.ledger.len());
    assert_eq!(trace.ledger.iter().map(|row| row.read).sum::<u64>(), 5001);
}

#[test]
fn values_of_the_wrong_type_long_names_escapes_and_nesting() {
    let escape = r"a\u001b[2J\u0007\u202e`|<b>\n# x";
    let deep = format!(r#""x": {}{}"#, "[".repeat(100_000), "]".repeat(100_000));
    let events = [
        r#"1, null, "x", [], {}, {"ph": 1}, {"ph": "X", "cat": 5, "name": [], "pid": {}, "ts": "abc", "args": []}"#
            .to_owned(),
        event("kernel", escape, "1", "1", r#""device": "z", "stream": 1e300, "correlation": -1.5, "grid": "x""#),
        event("kernel", &"n".repeat(1 << 20), "10", "1", r#""device": 0, "stream": 7"#),
        event("kernel", "deep", "20", "1", &deep),
        event(escape, escape, "30", "1", ""),
        event("kernel", "gemm", "40", "1", r#""device": 0, "stream": 7"#),
    ];
    let trace = diagnosed_bytes(&trace(&events)).unwrap();
    assert!(trace.strings.find("gemm").is_some());
    assert!(trace.stats.iter().any(|s| s.severity >= Severity::DataLoss), "{:?}", trace.stats);
    assert!(trace.strings.iter().all(|(_, text)| text.len() <= model::strings::MAX_TEXT));
}

/// The program on files in a directory, killed when it takes longer than a minute.
fn strato(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("LANG", "C.UTF-8").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    // What these cases print fits the pipes.
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("strato {arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_no_trace_ends_with_three_and_names_itself() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let write = |name: &str, bytes: &[u8]| std::fs::write(here.join(name), bytes).unwrap();
    let gz = |parts: &mut dyn Iterator<Item = Vec<u8>>| {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        parts.for_each(|part| gz.write_all(&part).unwrap());
        gz.finish().unwrap()
    };
    write("empty.json", b"");
    write("random.bin", &(0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    write("nested.json", "[".repeat(1 << 20).as_bytes());
    write("bomb.json.gz", &gz(&mut (0..500).map(|_| vec![0; 1 << 20])));
    write("head.json.gz", &[0x1f, 0x8b]);
    write("songs.sqlite", include_bytes!("../songs.sqlite"));
    std::fs::File::create(here.join("sparse.json")).unwrap().set_len(1 << 30).unwrap();
    std::fs::create_dir(here.join("nothing")).unwrap();
    let mut cases = vec![
        "empty.json",
        "random.bin",
        "nested.json",
        "bomb.json.gz",
        "head.json.gz",
        "songs.sqlite",
        "sparse.json",
        "nothing",
        "absent",
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(".", here.join("nothing/round")).unwrap();
        std::os::unix::fs::symlink("self", here.join("self")).unwrap();
        assert!(Command::new("mkfifo").arg(here.join("pipe")).status().unwrap().success());
        cases.extend(["self", "pipe", "/dev/zero"]);
    }
    for name in cases {
        for arguments in [&["diagnose", name][..], &["import", name, "-o", "out.strato"], &["sql", name, "SELECT 1"]] {
            let output = strato(arguments, here);
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {error}");
            assert!(error.contains(&format!("'{name}'")) && error.contains("; "), "{arguments:?}: {error}");
            assert!(!here.join("out.strato").exists(), "{arguments:?}");
        }
    }
}

#[test]
fn a_report_never_replaces_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a.json", kineto()), ("a.sqlite", nsys())] {
        std::fs::write(directory.path().join(name), &bytes).unwrap();
        let output = strato(&["diagnose", name, "-o", name], directory.path());
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8(output.stderr).unwrap().contains(&format!("will not replace '{name}'")));
        assert!(std::fs::read(directory.path().join(name)).unwrap() == bytes);
    }
}

#[cfg(unix)]
#[test]
fn an_output_that_is_a_pipe_or_leads_nowhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("a.json"), kineto()).unwrap();
    assert!(Command::new("mkfifo").arg(here.join("pipe")).status().unwrap().success());
    std::os::unix::fs::symlink("nowhere", here.join("link")).unwrap();
    for name in ["pipe", "link"] {
        let output = strato(&["import", "a.json", "-o", name], here);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_closed_stderr_changes_no_exit_code() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command.args(["diagnose", "no-such-file"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(3));
}

#[test]
fn more_ranks_than_a_report_holds_are_named_and_one_can_be_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = |i: usize| event("kernel", "gemm", &i.to_string(), "1", &format!(r#""device": {i}, "stream": 7"#));
    std::fs::write(directory.path().join("a.json"), trace(&(0..2000).map(kernel).collect::<Vec<_>>())).unwrap();
    let output = strato(&["diagnose", "a.json"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("2000 ranks") && error.contains("--rank"), "{error}");
    assert_eq!(strato(&["diagnose", "a.json", "--rank", "7", "-q"], directory.path()).status.code(), Some(0));
}

#[test]
fn a_folder_of_packs_that_is_not_there_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let output = strato(&["diagnose", "--pack", "no-such-folder"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no-such-folder"));
}
