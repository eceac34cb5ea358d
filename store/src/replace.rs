//! A file that appears whole or not at all: written under a temporary name in the same directory, synced, renamed.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{Error, is_capture};

/// Random characters in a temporary name.
const RANDOM: usize = 6;
/// How often a temporary file is made where others take each for one that was left behind.
const ATTEMPTS: usize = 16;

/// A file under construction; dropped before [`Replacement::commit`] it leaves nothing.
pub(super) struct Replacement {
    file: NamedTempFile,
    target: PathBuf,
    /// The file that is replaced, so that its next change waits for this one.
    _before: Option<File>,
}

impl Replacement {
    /// Prepares to write `target`, waits until nobody else is about to replace it, and removes what killed writers of it
    /// left.
    pub(super) fn begin(target: &Path) -> Result<Self, Error> {
        let place = super::place(target).map_err(|refused| match refused.kind() {
            io::ErrorKind::InvalidInput => Error::Occupied { path: target.to_owned() },
            _ => Error::io(target, "write")(refused),
        })?;
        let target = place.as_path();
        if target.symlink_metadata().is_ok() && !is_capture(target).unwrap_or(false) {
            return Err(Error::Occupied { path: target.to_owned() });
        }
        if target.file_name().is_none() {
            return Err(Error::Occupied { path: target.to_owned() });
        }
        let before = hold(target).map_err(Error::io(target, "lock"))?;
        let file = temporary(target).map_err(Error::io(target, "write"))?;
        Ok(Self { file, target: target.to_owned(), _before: before })
    }

    /// Where to write.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The same, open.
    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name, after its content has reached the disk.
    pub(super) fn commit(self) -> Result<(), Error> {
        let Self { file, target, _before } = self;
        file.as_file().sync_all().map_err(Error::io(&target, "write"))?;
        file.persist(&target).map_err(|e| Error::io(&target, "write")(e.error))?;
        Ok(())
    }
}

/// Locks the file of that name, once no other holds it; nothing where there is none. Whoever replaced it meanwhile left
/// another file under the name, which is then the one to lock.
fn hold(target: &Path) -> io::Result<Option<File>> {
    loop {
        // Asked before opening: to open a pipe waits for its writer. What cannot be opened is refused elsewhere.
        if !std::fs::metadata(target).is_ok_and(|found| found.is_file()) {
            return Ok(None);
        }
        let Ok(file) = File::open(target) else { return Ok(None) };
        match file.lock() {
            Ok(()) => {}
            // A file system without locks.
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return Ok(None),
            Err(e) => return Err(e),
        }
        if is_named(&file, target) {
            return Ok(Some(file));
        }
    }
}

/// Whether a name is still that of an open file.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    let (Ok(open), Ok(named)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    id(open) == id(named)
}

/// Elsewhere an open file keeps its name.
#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> bool {
    true
}

/// A new file in the directory of `target`, to be renamed to it, with a name by which it is known for what it is: those
/// that killed programs left are removed before. It stays locked while it is open.
///
/// # Errors
/// When the directory takes no file.
pub fn temporary(target: &Path) -> io::Result<NamedTempFile> {
    let name = target.file_name().unwrap_or_default();
    let prefix = format!("{}.", name.to_string_lossy());
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    remove_abandoned(directory, &prefix);
    let mut attempts = ATTEMPTS;
    loop {
        // Made by ourselves so that it has the permissions of any new file; `tempfile` would make it private.
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            .rand_bytes(RANDOM)
            .make_in(directory, |path| File::options().read(true).write(true).create_new(true).open(path))?;
        match file.as_file().lock() {
            Err(e) if e.kind() != io::ErrorKind::Unsupported => return Err(e),
            _ => {}
        }
        attempts -= 1;
        // Before it was locked another program may have taken it for one that was left.
        if attempts == 0 || is_named(file.as_file(), file.path()) {
            return Ok(file);
        }
    }
}

/// A temporary file that nobody holds the lock of belongs to a program that was killed. What cannot be looked at or
/// removed is left: it is in nobody's way.
fn remove_abandoned(directory: &Path, prefix: &str) {
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let random = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(".tmp"));
        let ours = random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric()));
        // Asked of the entry: to open a pipe waits for its writer, and a link is none of ours.
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        let abandoned = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if ours && is_file() && abandoned() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
