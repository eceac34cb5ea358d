//! What ends a run from outside: signals, and the end of whoever started it. The capture is kept wherever there is something to
//! keep, and nobody is left.

use std::{
    ops::{Deref, DerefMut},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const ENDLESS: &[&str] = &[
    "run",
    "--plain",
    "--model",
    "tiny",
    "--threads",
    "1",
    "--prompt-len",
    "4",
    "--gen",
    "2000000",
    "--observer",
    "host",
    "-o",
    "run.strato",
];
const PROCESSES: &[&str] = &["--tp", "2", "--ranks", "processes"];
/// How long whoever is left may take to end on a busy machine; less than the patience of a rank whose peers are gone.
const SOON: Duration = Duration::from_secs(15);
/// For what only a machine that is far too busy would miss.
const LONG: Duration = Duration::from_secs(120);

/// A command in a process group of its own, so that whoever is left is found. Tests may themselves run under nohup or a shell
/// that ignores signals, which children inherit: `env` of coreutils undoes that.
fn start(arguments: &[&str], directory: &Path) -> Run {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_strato")]);
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Run(command.process_group(0).spawn().unwrap())
}

/// A run that ends with its test, so that one that fails leaves nothing that runs for ever.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

impl Deref for Run {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Processes of a group that run.
fn left(group: u32) -> Vec<String> {
    let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter_map(stat);
    let of_group = |stat: &String| {
        let rest: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        rest.get(2) == Some(&group.to_string().as_str()) && rest.first() != Some(&"Z")
    };
    all.filter(of_group).collect()
}

fn nobody_is_left(child: &Child, what: &str) {
    let began = Instant::now();
    while !left(child.id()).is_empty() {
        assert!(began.elapsed() < SOON, "{what}: {:?}", left(child.id()));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the first ranks' child processes, or for a time.
fn until_it_runs(child: &Child, ranks: usize) {
    let began = Instant::now();
    while left(child.id()).len() < 1 + ranks && began.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The first steps of a tiny model take milliseconds.
    std::thread::sleep(Duration::from_millis(1500));
}

fn ended(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < LONG, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn steps(directory: &Path) -> usize {
    let traces = store::load(&directory.join("run.strato")).unwrap();
    assert!(traces[0].manifest.value("run.ended").is_some_and(|said| said.contains("decode steps")));
    traces[0].slice_count()
}

#[test]
fn a_signal_ends_a_run_with_its_capture() {
    for (more, signal) in [
        (&[][..], Signal::TERM),
        (&[], Signal::INT),
        (&[], Signal::HUP),
        (&["--tp", "2"], Signal::TERM),
        (PROCESSES, Signal::TERM),
        (PROCESSES, Signal::INT),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = start(&[ENDLESS, more].concat(), directory.path());
        until_it_runs(&child, if more == PROCESSES { 2 } else { 0 });
        send(&child, signal);
        let status = ended(&mut child);
        assert_eq!(status.signal(), Some(signal.as_raw()), "{more:?}: {status}");
        assert!(steps(directory.path()) > 0, "{more:?}");
        nobody_is_left(&child, &format!("{more:?} {signal:?}"));
    }
}

#[test]
fn ranks_end_with_whoever_started_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(&[ENDLESS, PROCESSES].concat(), directory.path());
    until_it_runs(&child, 2);
    assert_eq!(left(child.id()).len(), 3);
    send(&child, Signal::KILL);
    assert_eq!(ended(&mut child).signal(), Some(9));
    nobody_is_left(&child, "killed");
}

#[test]
fn a_terminal_that_sends_to_every_process_of_the_run_ends_it_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(&[ENDLESS, PROCESSES].concat(), directory.path());
    until_it_runs(&child, 2);
    rustix::process::kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(ended(&mut child).signal(), Some(2));
    assert!(steps(directory.path()) > 0);
    nobody_is_left(&child, "interrupted");
}

#[test]
fn a_launch_of_several_ends_with_its_capture_when_the_first_process_is_ended() {
    for signal in [Signal::TERM, Signal::KILL] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = start(&[ENDLESS, &["--repeats", "2"]].concat(), directory.path());
        until_it_runs(&child, 1);
        send(&child, signal);
        assert_eq!(ended(&mut child).signal(), Some(signal.as_raw()));
        nobody_is_left(&child, &format!("{signal:?}"));
        assert!(store::load(&directory.path().join("run.1.strato")).unwrap()[0].slice_count() > 0);
    }
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_strato")).args(ENDLESS).current_dir(directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Run(command.process_group(0).spawn().unwrap());
    until_it_runs(&child, 0);
    send(&child, Signal::HUP);
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it ended by a signal that it was to ignore");
    send(&child, Signal::TERM);
    assert_eq!(ended(&mut child).signal(), Some(15));
    assert!(steps(directory.path()) > 0);
}

/// `STRATO_SWEEP_SIGNALS=50 cargo test --test it ending::sweep -- --ignored`: signals at random times.
#[test]
#[ignore = "takes minutes: signals at random times, by hand"]
fn sweep() {
    let times: usize = std::env::var("STRATO_SWEEP_SIGNALS").ok().and_then(|n| n.parse().ok()).unwrap_or(50);
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    for more in [&[][..], PROCESSES] {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
            let mut kept = 0;
            for round in 0..times {
                let directory = tempfile::tempdir().unwrap();
                let mut child = start(&[ENDLESS, more].concat(), directory.path());
                let wait = Duration::from_millis(random.random_range(0..2500));
                std::thread::sleep(wait);
                send(&child, signal);
                let status = ended(&mut child);
                let what = format!("{more:?} {signal:?} round {round} after {wait:?}");
                assert_eq!(status.signal(), Some(signal.as_raw()), "{what}: {status}");
                nobody_is_left(&child, &what);
                let names: Vec<_> = directory.path().read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
                if directory.path().join("run.strato").exists() {
                    kept += 1;
                    assert!(steps(directory.path()) > 0, "{what}");
                }
                assert!(signal == Signal::KILL || names.len() <= 1, "{what}: {names:?}");
            }
            println!("{more:?} {signal:?}: {times} times, captures kept {kept}, nobody left");
        }
    }
}
