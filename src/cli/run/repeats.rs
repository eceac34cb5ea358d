//! Several launches of one run: each is a process of its own, since where a process lies in memory moves its times by more
//! than its steps differ, and leaves a capture of its own.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use collectors::record::signals;

use model::{Provenance, Trace};

use session::Session;

use crate::cli::{
    ended::{self, Ended},
    exit::{Exit, Missing, Usage},
};
use diagnosis::{analysis::Options, compare::statistics::Floor, platform::Packs};

/// Between two looks whether a launch has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The capture of a launch: `NAME.2.strato` of `NAME.strato`.
pub(super) fn file(output: &Path, launch: usize) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    match output.extension() {
        Some(extension) => output.with_file_name(format!("{stem}.{launch}.{}", extension.to_string_lossy())),
        None => output.with_file_name(format!("{stem}.{launch}")),
    }
}

/// Launches this command so many times, one after the other, and says which captures that left, and whether any of them has
/// numbers that are not finite.
///
/// # Errors
/// When a launch cannot be started or does not end well; it has said why itself.
pub(super) fn launch(output: &Path, repeats: usize) -> anyhow::Result<(Vec<PathBuf>, Exit)> {
    let program = std::env::current_exe()
        .map_err(|e| Missing(format!("cannot find this program to launch it again: {e}; leave --repeats out")))?;
    let mut files = Vec::with_capacity(repeats);
    let mut exit = Exit::Done;
    let ended = Ended::receive().unwrap_or_else(|_| Ended::never());
    let parent = std::process::id().to_string();
    for launch in 1..=repeats {
        let file = file(output, launch);
        // Of an option that is given twice the last one counts.
        let mut command = Command::new(&program);
        command.args(own_arguments(std::env::args_os().skip(1))).arg("--output").arg(&file);
        command.args(["--repeats", "1", "--of-launches", &repeats.to_string(), "--launched-by", &parent]);
        let status = command
            .spawn()
            .and_then(|child| wait(child, &ended))
            .map_err(|e| Missing(format!("cannot launch '{}' again: {e}; leave --repeats out", program.display())))?;
        // The launch has kept its capture.
        ended.follow();
        if status.code() == Some(i32::from(Exit::Findings.code())) {
            exit = Exit::Findings;
        } else if !status.success() {
            let said =
                format!("launch {launch} of {repeats} ended with {status}; the launches before it left their captures");
            return Err(if status.code() == Some(4) { Missing(said).into() } else { Usage(said).into() });
        }
        files.push(file);
    }
    Ok((files, exit))
}

/// Waits for a launch. It gets the signals that this process gets, but for those that a terminal sends to both.
fn wait(mut child: Child, ended: &Ended) -> io::Result<ExitStatus> {
    let mut passed_on = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if ended.is() && !std::mem::replace(&mut passed_on, true) {
            let signal = ended.signal();
            if let Some(process) = i32::try_from(child.id()).ok().filter(|_| !signals::is_of_terminal(signal)) {
                signals::send(process, signal);
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// The arguments of this command without those that write of its own work: each file is of one process.
fn own_arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const OWN: [&str; 2] = ["--log-file", "--self-trace"];
    let mut all = all;
    let mut kept = Vec::new();
    while let Some(argument) = all.next() {
        let text = argument.to_string_lossy();
        if OWN.iter().any(|own| text.strip_prefix(own).is_some_and(|rest| rest.starts_with('='))) {
            continue;
        }
        if OWN.contains(&text.as_ref()) {
            all.next();
            continue;
        }
        kept.push(argument);
    }
    kept
}

/// Writes into the captures of several launches by how much these differ among themselves: a later comparison with fewer of
/// them knows the noise of this side. Launches without steps that count tell nothing, and then nothing is written.
///
/// # Errors
/// When a capture that was just written cannot be read or written again.
pub(super) fn keep_noise(captures: &[PathBuf]) -> anyhow::Result<Option<Floor>> {
    let packs = Packs::embedded().map_err(|e| Usage(e.to_string()))?;
    let step = |traces: Vec<Trace>| {
        let examined = Session::of(traces, packs.clone()).examine(&Options::default()).ok()?;
        let ranks = &examined.captures().first()?.analysis.ranks;
        let main = ranks.first()?.main_class().filter(|class| class.steady > 0 && class.p50 > 0)?;
        Some(main.p50 as f64)
    };
    // One at a time: together they may be more than memory holds.
    let mut times = Vec::with_capacity(captures.len());
    for capture in captures {
        times.extend(step(store::load(capture)?));
    }
    let Some(floor) = Floor::of(&times).filter(|_| times.len() == captures.len()) else { return Ok(None) };
    for capture in captures {
        let mut traces = store::load(capture)?;
        for trace in &mut traces {
            trace.manifest.set(Floor::FACT, floor.text(), Provenance::Observed);
        }
        ended::whole(|| store::save(capture, &traces))?;
    }
    Ok(Some(floor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_programs_own_work_are_not_shared_by_launches() {
        let given = ["run", "--self-trace", "s.strato", "--gen", "4", "--log-file=l.txt", "-v"].map(OsString::from);
        assert_eq!(own_arguments(given.into_iter()), ["run", "--gen", "4", "-v"].map(OsString::from));
    }

    #[test]
    fn launches_are_numbered_before_the_extension() {
        for (output, expected) in
            [("run.strato", "run.2.strato"), ("a.b/run", "a.b/run.2"), ("d/cpu.bf16.strato", "d/cpu.bf16.2.strato")]
        {
            assert_eq!(file(Path::new(output), 2), Path::new(expected));
        }
    }
}
