//! A vendor's tool that prints what its devices do, run as a child process: bounded in time and in what it may print, and never
//! more than one at a time.

use std::{
    io::Read,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::mspti::preload::{self, PRELOAD};

/// How long a tool may take. Those of some vendors take seconds for a node of sixteen devices.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read of what it prints; a node of hundreds of devices takes some 100 KiB.
const MOST: u64 = 4 << 20;
/// Between two looks whether it is to be ended.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks whether one that has printed everything has ended.
const END: Duration = Duration::from_millis(2);
/// How long one that was killed may take to be gone.
const KILLED: Duration = Duration::from_millis(500);
/// Characters of its first line that are told when it fails.
const SAID: usize = 120;

/// Why a tool told nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("{0} is not in PATH")]
    Absent(String),
    /// The system refused to start it.
    #[error("{tool} could not be started: {source}")]
    Start {
        /// The tool.
        tool: String,
        /// Why.
        source: std::io::Error,
    },
    /// It took too long, and was ended.
    #[error("{tool} gave no answer within {seconds:.1} s")]
    Slow {
        /// The tool.
        tool: String,
        /// How long it was waited for.
        seconds: f64,
    },
    /// It failed.
    #[error("{tool} ended with {status}{}", .said.as_ref().map_or(String::new(), |said| format!(": {said}")))]
    Failed {
        /// The tool.
        tool: String,
        /// How it ended.
        status: ExitStatus,
        /// The first line that it printed.
        said: Option<String>,
    },
}

/// A tool on this machine.
#[derive(Debug)]
pub struct DeviceTool {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    patience: Duration,
    /// One that did not end when it was killed: a driver that hangs holds its callers.
    hung: Option<JoinHandle<()>>,
}

impl DeviceTool {
    /// The tool of this name in one of the directories of `path`, a value of the variable `PATH`.
    ///
    /// # Errors
    /// When none of them holds it.
    pub fn find(name: &str, arguments: &[&str], path: &std::ffi::OsStr) -> Result<Self, Error> {
        let program = crate::program::find(name, path).ok_or_else(|| Error::Absent(name.to_owned()))?;
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Ok(Self { name: name.to_owned(), program, arguments, patience: PATIENCE, hung: None })
    }

    /// The same with another patience.
    #[must_use]
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Runs it, and gives what it printed. Whoever sets `stop` need not wait for it: it is ended, and counts as too slow.
    ///
    /// # Errors
    /// When it cannot be started, takes too long, or fails.
    pub fn ask(&mut self, stop: &AtomicBool) -> Result<String, Error> {
        if self.hung.take_if(|hung| hung.is_finished()).is_none() && self.hung.is_some() {
            return Err(self.slow());
        }
        let start = |source| Error::Start { tool: self.name.clone(), source };
        let mut child = self.command().spawn().map_err(start)?;
        let began = Instant::now();
        let (sender, receiver) = mpsc::channel();
        let out = child.stdout.take();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What could be read before an error is what it printed.
            let _ = out.map(|out| out.take(MOST).read_to_end(&mut text));
            let _ = sender.send(text);
        });
        let left = || self.patience.saturating_sub(began.elapsed());
        let goes_on = || !stop.load(Ordering::Relaxed) && !left().is_zero();
        let mut printed = Err(RecvTimeoutError::Timeout);
        while printed == Err(RecvTimeoutError::Timeout) && goes_on() {
            printed = receiver.recv_timeout(left().min(LOOK));
        }
        let mut status = None;
        while printed.is_ok() && status.is_none() && goes_on() {
            status = child.try_wait().ok().flatten();
            if status.is_none() {
                std::thread::sleep(END);
            }
        }
        let (Ok(printed), Some(status)) = (printed, status) else {
            kill(&mut child);
            // Nearly always it is gone at once; one that the driver holds is waited for by nobody.
            let killed = Instant::now();
            while !matches!(child.try_wait(), Ok(Some(_))) {
                if killed.elapsed() > KILLED {
                    self.hung = Some(std::thread::spawn(move || drop(child.wait())));
                    break;
                }
                std::thread::sleep(END);
            }
            return Err(self.slow());
        };
        let text = String::from_utf8_lossy(&printed).into_owned();
        if status.success() {
            return Ok(text);
        }
        let said = text.lines().find(|line| !line.trim().is_empty());
        let said = said.map(|line| line.trim().chars().take(SAID).collect());
        Err(Error::Failed { tool: self.name.clone(), status, said })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Numbers with commas and words of other languages are not what the tables are read for.
        command.args(&self.arguments).env("LC_ALL", "C");
        if let Some(files) = std::env::var_os(PRELOAD) {
            match preload::without(&files) {
                Some(others) => command.env(PRELOAD, others),
                None => command.env_remove(PRELOAD),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // What it starts itself is ended with it, and ctrl-c at the terminal is none of its business.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    fn slow(&self) -> Error {
        Error::Slow { tool: self.name.clone(), seconds: self.patience.as_secs_f64() }
    }
}

#[cfg(unix)]
fn kill(child: &mut Child) {
    let group = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
}

#[cfg(not(unix))]
fn kill(child: &mut Child) {
    let _ = child.kill();
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// A tool that is a script, and the directory that holds it. Another process writes it: a child that another test starts
    /// meanwhile would inherit our open file, and a program that somebody has open for writing cannot be started.
    fn tool(script: &str) -> (tempfile::TempDir, DeviceTool) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fake-smi");
        let write = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let written = Command::new("sh").args(["-c", write]).arg(&file).arg(format!("#!/bin/sh\n{script}\n")).status();
        assert!(written.unwrap().success());
        let tool = DeviceTool::find("fake-smi", &["info"], directory.path().as_os_str()).unwrap();
        (directory, tool.patient(Duration::from_secs(60)))
    }

    #[test]
    fn a_tool_is_found_asked_and_read() {
        let (directory, mut tool) = tool("echo \"asked for $1 in $LC_ALL\"");
        assert_eq!(tool.ask(&NEVER).unwrap(), "asked for info in C\n");
        assert_eq!(tool.ask(&NEVER).unwrap(), "asked for info in C\n");
        std::fs::write(directory.path().join("no-program"), "").unwrap();
        for absent in ["other-smi", "no-program", ""] {
            let refusal = DeviceTool::find(absent, &[], directory.path().as_os_str()).expect_err("absent");
            assert_eq!(refusal.to_string(), format!("{absent} is not in PATH"));
        }
    }

    #[test]
    fn a_tool_that_fails_says_why() {
        let (_directory, mut failing) = tool("echo; echo 'the driver is not loaded'; exit 9");
        let error = failing.ask(&NEVER).expect_err("failed").to_string();
        assert!(error.contains("exit status: 9: the driver is not loaded"), "{error}");
        let (_directory, mut silent) = tool("exit 1");
        assert!(silent.ask(&NEVER).expect_err("failed").to_string().ends_with("exit status: 1"));
    }

    #[test]
    fn a_tool_that_hangs_is_ended_with_what_it_started() {
        let (_directory, hanging) = tool("sleep 600 & echo started; sleep 600");
        let mut hanging = hanging.patient(Duration::from_millis(200));
        let error = hanging.ask(&NEVER).expect_err("hangs").to_string();
        assert!(error.contains("gave no answer within"), "{error}");
        assert!(hanging.hung.is_none(), "it is gone");
        assert!(hanging.ask(&NEVER).is_err());
    }

    #[test]
    fn nobody_waits_for_a_tool_that_is_to_be_stopped() {
        let (_directory, mut hanging) = tool("sleep 600");
        let stop = AtomicBool::new(true);
        assert!(matches!(hanging.ask(&stop), Err(Error::Slow { .. })));
        assert!(hanging.hung.is_none(), "it is gone");
    }

    #[test]
    fn a_tool_that_prints_without_end_is_cut() {
        let (_directory, mut endless) = tool("exec yes 2>/dev/null");
        // It ends by the pipe that nobody reads any more.
        assert!(matches!(endless.ask(&NEVER), Err(Error::Failed { .. })));
    }
}
