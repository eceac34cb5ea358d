//! Where a profiler writes: beside the capture, because reports are as large as it is and need its disk, not the one of
//! temporary files, which is often memory.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use collectors::{host, record::Profiler, record::command::Note};
use model::Reading;

use crate::cli::{
    exit::{Unread, Usage},
    scratch::{self, Scratch},
    whole_file,
};

/// Room below which a disk counts as full, bytes: own value. Profilers write in blocks of this order and leave less than one.
const FULL: u64 = 1 << 20;

/// Begins the name of a place.
const PREFIX: &str = ".strato-record-";
/// What holds the reports in it.
const REPORTS: &str = "reports";

/// The place of a recording, which goes with this unless it is kept.
pub(super) struct Room {
    own: Option<Scratch>,
    note: PathBuf,
    /// Locked as long as this process is there.
    _recording: File,
    reports: PathBuf,
    is_kept: bool,
}

impl Room {
    /// Makes the place for a recording that becomes `output`; reports go to `keep` where they are to stay.
    ///
    /// # Errors
    /// When it cannot be made, or `keep` has content.
    pub(super) fn make(output: &Path, keep: Option<&Path>) -> Result<Self, Usage> {
        let beside = beside(output);
        let refused = |path: &Path, error: &io::Error| {
            Usage(format!("cannot write to '{}': {error}; {}", path.display(), whole_file::next(error)))
        };
        let made = || {
            let own = Scratch::within(beside, PREFIX, |left| !has_reports(&left.join(REPORTS)))?;
            let place = std::path::absolute(own.path())?;
            let (note, reports) = (place.join("note"), place.join(REPORTS));
            Note::make(&note)?;
            let recording = Note::recording(&note)?;
            std::fs::create_dir(&reports)?;
            Ok((own, note, recording, reports))
        };
        let (own, note, recording, mut reports) = made().map_err(|error| refused(beside, &error))?;
        if let Some(keep) = keep {
            let empty = || -> io::Result<bool> {
                std::fs::create_dir_all(keep)?;
                Ok(keep.read_dir()?.next().is_none())
            };
            if !empty().map_err(|error| refused(keep, &error))? {
                return Err(Usage(format!("'{}' has content already; name a new or empty directory", keep.display())));
            }
            reports = std::path::absolute(keep).map_err(|error| refused(keep, &error))?;
        }
        Ok(Self { own: Some(own), note, _recording: recording, reports, is_kept: keep.is_some() })
    }

    /// What recordings that were killed left beside `output`: their reports, which are for their owner to take in or to remove.
    pub(super) fn left(output: &Path) -> Vec<PathBuf> {
        let left = scratch::abandoned(beside(output), PREFIX);
        left.into_iter().map(|left| left.join(REPORTS)).filter(|reports| has_reports(reports)).collect()
    }

    /// The note of how the command ends.
    pub(super) fn note(&self) -> &Path {
        &self.note
    }

    /// Where the profiler writes.
    pub(super) fn reports(&self) -> &Path {
        &self.reports
    }

    /// Whether the profiler has written anything.
    pub(super) fn has_reports(&self) -> bool {
        has_reports(&self.reports)
    }

    /// An error with what may be behind it and where what was recorded stays: nobody runs a job twice for a report that was
    /// there.
    pub(super) fn explain(mut self, profiler: &Profiler, error: anyhow::Error) -> anyhow::Error {
        let mut said = error.to_string();
        if let Some(free) = self.full() {
            let place = self.reports.parent().unwrap_or(&self.reports).parent().unwrap_or(&self.reports).display();
            said = format!(
                "the disk of '{place}' is full ({free} bytes are left): {said}; free some space, or choose -o on another disk"
            );
        }
        if self.has_reports() {
            if !self.is_kept
                && let Some(own) = self.own.take()
            {
                own.keep();
            }
            let at = self.reports.display();
            said =
                format!("{said}; what {} wrote stays in '{at}', for 'strato import {at} -o FILE.strato'", profiler.id);
        }
        // The code is that of the error as it was.
        match crate::cli::exit::code(&error) {
            2 => Usage(said).into(),
            4 => crate::cli::exit::Missing(said).into(),
            _ => Unread(said).into(),
        }
    }

    /// Bytes that are left where that is next to nothing.
    fn full(&self) -> Option<u64> {
        match host::free_bytes(&self.reports) {
            Reading::Value(free) => Some(free).filter(|free| *free < FULL),
            Reading::Unavailable(_) => None,
        }
    }
}

/// The directory of a file.
fn beside(output: &Path) -> &Path {
    output.parent().filter(|path| *path != Path::new("")).unwrap_or(Path::new("."))
}

/// Whether there is any file, in directories as deep as profilers make them.
fn has_reports(directory: &Path) -> bool {
    fn any(directory: &Path, depth: u32) -> bool {
        let entries = directory.read_dir().into_iter().flatten().filter_map(Result::ok);
        entries.into_iter().any(|entry| {
            let path = entry.path();
            if path.is_dir() { depth > 0 && any(&path, depth - 1) } else { path.is_file() }
        })
    }
    any(directory, 8)
}
