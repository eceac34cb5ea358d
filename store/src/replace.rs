//! A file that appears whole or not at all: written under a temporary name in the same directory, synced, renamed.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{Error, is_capture};

/// Random characters in a temporary name.
const RANDOM: usize = 6;

/// A file under construction; dropped before [`Replacement::commit`] it leaves nothing.
pub(super) struct Replacement {
    file: NamedTempFile,
    target: PathBuf,
}

impl Replacement {
    /// Prepares to write `target`, and removes what killed imports of the same target left.
    pub(super) fn begin(target: &Path) -> Result<Self, Error> {
        if target.symlink_metadata().is_ok() && !is_capture(target).unwrap_or(false) {
            return Err(Error::Occupied { path: target.to_owned() });
        }
        let Some(name) = target.file_name() else {
            return Err(Error::Occupied { path: target.to_owned() });
        };
        let directory = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let prefix = format!("{}.", name.to_string_lossy());
        remove_abandoned(directory, &prefix);
        // Made by ourselves so that it has the permissions of any new file; `tempfile` would make it private.
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            .rand_bytes(RANDOM)
            .make_in(directory, |path| File::options().read(true).write(true).create_new(true).open(path))
            .map_err(Error::io(target, "write"))?;
        file.as_file().lock().map_err(Error::io(file.path(), "lock"))?;
        Ok(Self { file, target: target.to_owned() })
    }

    /// Where to write.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name, after its content has reached the disk.
    pub(super) fn commit(self) -> Result<(), Error> {
        let Self { file, target } = self;
        file.as_file().sync_all().map_err(Error::io(&target, "write"))?;
        file.persist(&target).map_err(|e| Error::io(&target, "write")(e.error))?;
        Ok(())
    }
}

/// A temporary file that nobody holds the lock of belongs to an import that was killed. What cannot be looked at or
/// removed is left: it is in nobody's way.
fn remove_abandoned(directory: &Path, prefix: &str) {
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let random = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(".tmp"));
        let ours = random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric()));
        let abandoned = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if ours && abandoned() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
