//! The profiler while it runs: signals go to the command, and both are waited for.

use std::{
    cell::Cell,
    ffi::OsString,
    io,
    path::Path,
    process::{Child, Command, ExitStatus},
};

use collectors::record::{
    Profiler,
    command::{End, Note},
    signals::{self, Signals},
};

use super::{LOOK, Room};
use crate::cli::{
    Lang,
    ended::Ended,
    exit::{Missing, Unread},
};
use diagnosis::i18n::Text;

/// How a recording went.
pub(super) struct Ran {
    /// How the profiler ended.
    profiler: ExitStatus,
    /// Whether the command was started.
    has_begun: bool,
    /// How the command ended; `None` where nobody knows.
    pub end: Option<End>,
    /// Signals since: what was recorded becomes the capture first.
    pub ended: Ended,
}

impl Ran {
    /// What stops this from becoming a capture, if anything: that a profiler failed is no reason as long as it wrote something.
    pub(super) fn failure(&self, profiler: &Profiler, room: &Room) -> Option<anyhow::Error> {
        let (id, how) = (profiler.id, End::of(self.profiler));
        if !self.has_begun && self.end.is_none() {
            let next = "its own words are above; run the line above by hand to see more";
            return Some(Missing(format!("{id} ended with {how} before it started the command; {next}")).into());
        }
        if room.has_reports() {
            return None;
        }
        let next = match self.profiler.success() {
            true => "does the command use a device of this vendor? its own words are above",
            false => "its own words are above",
        };
        Some(Unread(format!("{id} ended with {how} and wrote nothing; {next}")).into())
    }
}

/// Receives the signals that end a program.
///
/// # Errors
/// When the system gives none.
pub(super) fn signals(profiler: &Profiler) -> Result<Signals, Missing> {
    Signals::receive().map_err(|error| lost(profiler, &error))
}

fn lost(profiler: &Profiler, error: &io::Error) -> Missing {
    Missing(format!("cannot wait for {}: {error}; try again", profiler.id))
}

/// Runs the profiler with the command in it, and waits for both. Signals that end a program go to the command: the profiler
/// then ends by itself and writes its report. `signals` are received since before there was anything to leave behind.
///
/// # Errors
/// When the profiler cannot be started.
pub(super) fn run(
    profiler: &Profiler,
    program: &Path,
    line: &[OsString],
    room: &Room,
    signals: Signals,
    lang: Lang,
    told: &dyn Fn(String),
) -> anyhow::Result<Ran> {
    let refused = |error: io::Error| {
        Missing(format!("{} could not be started: {error}; check '{}'", profiler.id, program.display()))
    };
    let mut child = Command::new(program).args(line).spawn().map_err(refused)?;
    let profiler_process = Cell::new(i32::try_from(child.id()).ok());
    let mut interrupted = false;
    let mut early = None;
    let mut pass_on = || {
        // A profiler may end by a signal and leave behind the command that it was about to start: it is the command's, too.
        if let (Some(signal), Note { pid: Some(pid), end: None }) = (early, Note::read(room.note())) {
            early = None;
            signals::send(pid, signal);
        }
        for signal in signals.taken() {
            if !signals::is_of_terminal(signal) {
                // While there is no command, or none any more, it is the profiler's.
                let note = Note::read(room.note());
                let of_command = note.pid.filter(|_| note.end.is_none());
                early = Some(signal).filter(|_| note.pid.is_none());
                of_command.or(profiler_process.get()).into_iter().for_each(|process| signals::send(process, signal));
            }
            if !std::mem::replace(&mut interrupted, true) {
                let text = Text::new(
                    "waiting for the command and the profiler to end; then the capture is written",
                    "正在等待命令与分析器结束，随后写入采集",
                );
                told(text.get(lang).to_owned());
            }
        }
    };
    let status = wait(&mut child, &mut pass_on).map_err(|error| lost(profiler, &error))?;
    // Its number may be another process's by now.
    profiler_process.set(None);
    if Note::is_open(room.note()) {
        let text = Text::new(
            "{profiler} has ended with {how}, and the command runs on; waiting for it",
            "{profiler} 已结束（{how}），命令仍在运行；正在等待",
        );
        told(text.get(lang).replace("{profiler}", profiler.id).replace("{how}", &End::of(status).to_string()));
        while Note::is_open(room.note()) {
            pass_on();
            std::thread::sleep(LOOK);
        }
    }
    // Before the other is given back, so that none is lost between.
    let ended = Ended::receive().map_err(|error| lost(profiler, &error))?;
    drop(signals);
    let note = Note::read(room.note());
    Ok(Ran { profiler: status, has_begun: note.pid.is_some(), end: note.end, ended })
}

fn wait(child: &mut Child, pass_on: &mut dyn FnMut()) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        pass_on();
        std::thread::sleep(LOOK);
    }
}
