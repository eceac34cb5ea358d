//! Signals to a recording at random times, and what one that was killed leaves.

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};

use super::{NSYS, capture, command, fakes, interrupted, left, record, texts};

/// How long whoever is left may take to end on a busy machine.
const SOON: Duration = Duration::from_secs(15);

/// A recording in a process group of its own. Tests may themselves run where signals are ignored, which children inherit: `env`
/// of coreutils undoes that.
fn begun(directory: &Path, variables: &[(&str, &str)]) -> Child {
    let asked =
        command(directory, &["-o", "run.strato", "--tools", "none", "--", "sh", "-c", "touch ran; exec sleep 1000"]);
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP,INT,TERM").arg(asked.get_program()).args(asked.get_args()).env_clear();
    command.envs(asked.get_envs().filter_map(|(name, value)| Some((name, value?)))).envs(variables.iter().copied());
    command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.process_group(0).spawn().unwrap();
    // Until then `env` itself may ignore what is sent.
    let program = std::path::PathBuf::from(format!("/proc/{}/exe", child.id()));
    while program.read_link().is_ok_and(|program| !program.ends_with("strato")) {
        std::thread::yield_now();
    }
    child
}

/// Processes that were started for a directory: each has its path in a variable.
fn of(directory: &Path) -> Vec<String> {
    let path = directory.display().to_string();
    let all = Path::new("/proc").read_dir().unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let is_ours = |process: &Path| {
        std::fs::read(process.join("environ")).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&path))
    };
    all.filter(|process| is_ours(process)).map(|process| process.display().to_string()).collect()
}

fn ended(child: &mut Child, what: &str) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn nobody_is_left(directory: &Path, what: &str) {
    let began = Instant::now();
    while !of(directory).is_empty() {
        assert!(began.elapsed() < SOON, "{what}: {:?}", of(directory));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The reports that a killed recording left are somebody's; a place without any is nobody's.
#[test]
fn l7_what_a_killed_recording_left_goes_unless_it_holds_reports() {
    let directory = fakes(&[("nsys", NSYS)]);
    let here = directory.path();
    for reports in [false, true] {
        // The profiler writes its report all the same: its command was ended, and not it.
        let variables: &[(&str, &str)] = if reports { &[] } else { &[("SILENT", "1")] };
        let mut child = begun(here, variables);
        let began = Instant::now();
        while !here.join("ran").exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing was begun");
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        ended(&mut child, "killed");
        nobody_is_left(here, "killed");
        let places = left(here);
        assert_eq!(places.len(), 1, "{places:?}");
        let (code, _, error) = texts(&record(here, &["-o", "next.strato", "--tools", "none", "--", "true"], &[]));
        assert_eq!(code, Some(0), "{error}");
        assert_eq!(left(here).len(), usize::from(reports), "{error}");
        assert_eq!(error.contains("a recording that was killed left"), reports, "{error}");
        std::fs::remove_file(here.join("ran")).unwrap();
    }
}

/// The signal came before the command had begun, so that the profiler got it: that left the command behind, and the recording
/// waited for it for ever.
#[test]
fn l5_a_signal_reaches_the_command_that_a_profiler_starts_while_it_ends() {
    let ends = NSYS
        .replace("\"$@\"\ncode=$?", "trap '\"$@\" & sleep 1; exit 1' TERM\necho ready\nwhile :; do sleep 0.1; done");
    assert_ne!(ends, NSYS);
    let directory = fakes(&[("nsys", &ends)]);
    let (code, _, error) = interrupted(directory.path(), "-TERM", "exec sleep 1000");
    assert_eq!(code, Some(128 + 15), "{error}");
    nobody_is_left(directory.path(), &error);
}

/// `STRATO_SWEEP_SIGNALS=50 cargo test --test it record::signals::sweep -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes: signals at random times, by hand"]
fn sweep() {
    let times: usize = std::env::var("STRATO_SWEEP_SIGNALS").ok().and_then(|n| n.parse().ok()).unwrap_or(50);
    let mut random = rand::rngs::StdRng::seed_from_u64(11);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        let (mut kept, mut ran) = (0, 0);
        for round in 0..times {
            let directory = fakes(&[("nsys", NSYS)]);
            let here = directory.path();
            let mut child = begun(here, &[]);
            let wait = Duration::from_millis(random.random_range(0..1000));
            std::thread::sleep(wait);
            let has_run = here.join("ran").exists();
            kill_process(Pid::from_child(&child), signal).unwrap();
            let what = format!("{signal:?} round {round} after {wait:?}");
            let status = ended(&mut child, &what);
            nobody_is_left(here, &what);
            ran += usize::from(has_run);
            if here.join("run.strato").exists() {
                kept += 1;
                assert!(capture(here).slice_count() > 100, "{what}");
            }
            // What ran was recorded, and there is nobody to keep it after a KILL.
            assert!(signal == Signal::KILL || !has_run || here.join("run.strato").exists(), "{what}: {status}");
            assert!(signal == Signal::KILL || left(here).is_empty(), "{what}: {:?}", left(here));
        }
        println!("{signal:?}: {times} times, the command ran in {ran}, captures kept {kept}, nobody left");
    }
}
