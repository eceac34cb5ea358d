//! The command that is profiled, started by this program inside the profiler.
//!
//! What a profiler ends with says little of the command: `rocprofv3` that is told to wait for it ends with 1 whatever a failed
//! command ended with (rocprofiler-sdk, `rocprofv3.py`), others with a code of their own. Only its parent knows how a process
//! ended; so this program stands between, and notes it in a file that is as long from the start as it will ever be: a disk
//! that fills up meanwhile does not take it away.

use std::{
    ffi::OsString,
    fs::{File, TryLockError},
    io::{self, Seek, Write},
    path::Path,
    process::{Child, Command, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use signal_hook::consts::{SIGKILL, SIGTERM};

use super::signals::{self, Signals};

/// Between two looks whether a signal came.
const LOOK: Duration = Duration::from_millis(50);
/// How long a command that is recorded for nobody has to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// Beside the note: locked as long as somebody records.
const RECORDING: &str = "recording";
/// Bytes of the note.
const LENGTH: usize = 256;
/// What a shell ends with where a command cannot be started: there is none, or it is no program.
const ABSENT: u8 = 127;
const NO_PROGRAM: u8 = 126;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exit(u8),
    /// By this signal.
    Signal(i32),
}

impl End {
    /// The code that a shell gives: that of the command, or 128 and the signal.
    pub fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }

    /// How a process ended.
    pub fn of(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(signal);
        }
        // Codes have a byte where there are signals.
        Self::Exit(status.code().map_or(u8::MAX, |code| u8::try_from(code & 0xff).unwrap_or(u8::MAX)))
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What is known of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Its process; absent where it was not started.
    pub pid: Option<i32>,
    /// How it ended; absent while it runs, and where whoever waited for it was killed.
    pub end: Option<End>,
}

impl Note {
    /// Makes room for a note.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn make(path: &Path) -> io::Result<()> {
        let mut file = File::create_new(path)?;
        file.write_all(&[b' '; LENGTH])?;
        file.sync_all()
    }

    /// What the note says now.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut words = text.split_whitespace();
        let mut note = Self::default();
        while let (Some(word), Some(number)) = (words.next(), words.next()) {
            match word {
                "process" => note.pid = number.parse().ok(),
                "exit" => note.end = number.parse().ok().map(End::Exit),
                "signal" => note.end = number.parse().ok().map(End::Signal),
                _ => {}
            }
        }
        note
    }

    /// A file beside the note that is locked as long as it is open here, so that whoever waits for the command knows whether
    /// somebody still records.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn recording(path: &Path) -> io::Result<File> {
        let file = File::create_new(path.with_file_name(RECORDING))?;
        file.lock()?;
        Ok(file)
    }

    /// Whether somebody still waits for the command.
    pub fn is_open(path: &Path) -> bool {
        // A file that cannot be opened is nobody's.
        File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    fn write(self, file: &mut File) -> io::Result<()> {
        let mut text = self.pid.map_or_else(String::new, |pid| format!("process {pid}\n"));
        match self.end {
            Some(End::Exit(code)) => text.push_str(&format!("exit {code}\n")),
            Some(End::Signal(signal)) => text.push_str(&format!("signal {signal}\n")),
            None => {}
        }
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.flush()
    }
}

/// Runs a command with the streams of this process, and notes how it ends. What would end this process is handed on to the
/// command, but for what a terminal sends to both; when whoever records is gone (killed, out of memory), the command is ended.
///
/// # Errors
/// When there is no note to write to; a command that cannot be started ends as a shell says it.
pub fn run(command: &[OsString], note: &Path) -> io::Result<End> {
    let mut file = File::options().write(true).open(note)?;
    // Free again when this process is gone, however it went.
    file.lock()?;
    let signals = Signals::receive()?;
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { ABSENT } else { NO_PROGRAM };
            let end = End::Exit(code);
            Note { pid: None, end: Some(end) }.write(&mut file)?;
            return Ok(end);
        }
    };
    let pid = i32::try_from(child.id()).ok();
    Note { pid, end: None }.write(&mut file)?;
    let end = wait(&mut child, &signals, &note.with_file_name(RECORDING))?;
    Note { pid, end: Some(end) }.write(&mut file)?;
    Ok(end)
}

fn wait(child: &mut Child, signals: &Signals, recording: &Path) -> io::Result<End> {
    let process = i32::try_from(child.id()).ok();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut alone = None::<Instant>;
            while !over.load(Ordering::Relaxed) {
                for signal in signals.taken().into_iter().filter(|signal| !signals::is_of_terminal(*signal)) {
                    process.into_iter().for_each(|process| signals::send(process, signal));
                }
                // Where there is no such file, nobody has said that they record.
                if recording.exists() && !Note::is_open(recording) {
                    let signal = match alone {
                        None => Some(SIGTERM),
                        Some(since) => (since.elapsed() > GRACE).then_some(SIGKILL),
                    };
                    alone.get_or_insert_with(Instant::now);
                    process.zip(signal).into_iter().for_each(|(process, signal)| signals::send(process, signal));
                }
                std::thread::park_timeout(LOOK);
            }
        });
        let status = child.wait();
        over.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        Ok(End::of(status?))
    })
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::record::signals;

    fn ran(script: &str) -> (End, Note) {
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("note");
        Note::make(&note).unwrap();
        assert_eq!(Note::read(&note), Note::default());
        let end = run(&["sh", "-c", script].map(OsString::from), &note).unwrap();
        assert_eq!(std::fs::metadata(&note).unwrap().len(), LENGTH as u64);
        // A process that another test forks just now holds the lock too, until it becomes another program.
        let held = std::time::Instant::now();
        while Note::is_open(&note) {
            assert!(held.elapsed() < Duration::from_secs(30), "the lock outlives the run");
            std::thread::sleep(LOOK);
        }
        (end, Note::read(&note))
    }

    #[test]
    fn a_note_says_how_the_command_ended() {
        for (script, end, code) in [
            ("exit 0", End::Exit(0), 0),
            ("exit 77", End::Exit(77), 77),
            ("kill -TERM $$", End::Signal(15), 143),
            ("kill -KILL $$", End::Signal(9), 137),
        ] {
            let (ended, note) = ran(script);
            assert_eq!((ended, note.end, ended.code()), (end, Some(end), code), "{script}");
            assert!(note.pid.is_some_and(|pid| pid > 1));
        }
    }

    #[test]
    fn a_command_that_is_none_ends_as_in_a_shell() {
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("note");
        Note::make(&note).unwrap();
        let end = run(&[directory.path().join("absent").into_os_string()], &note).unwrap();
        assert_eq!((end, Note::read(&note)), (End::Exit(127), Note { pid: None, end: Some(End::Exit(127)) }));
        let end = run(&[directory.path().as_os_str().to_owned()], &note).unwrap();
        assert_eq!(end, End::Exit(126));
    }

    #[test]
    fn a_note_is_open_while_the_command_runs() {
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("note");
        Note::make(&note).unwrap();
        let its = note.clone();
        let thread = std::thread::spawn(move || run(&["sleep", "600"].map(OsString::from), &its).unwrap());
        let began = std::time::Instant::now();
        while Note::read(&note).pid.is_none() && began.elapsed().as_secs() < 60 {
            std::thread::sleep(LOOK);
        }
        assert!(Note::is_open(&note));
        signals::send(Note::read(&note).pid.unwrap(), signal_hook::consts::SIGTERM);
        assert_eq!(thread.join().unwrap(), End::Signal(15));
        // A process that another test starts at this moment holds what is open here until it runs its program.
        let ended = std::time::Instant::now();
        while Note::is_open(&note) && ended.elapsed().as_secs() < 60 {
            std::thread::sleep(LOOK);
        }
        assert!(!Note::is_open(&note));
    }
}
