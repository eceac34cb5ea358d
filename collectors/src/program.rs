//! Programs of this machine.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// The program of this name in one of the directories of `path`, a value of the variable `PATH`.
pub fn find(name: impl AsRef<Path>, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|directory| directory.join(name.as_ref())).find(|file| is_program(file))
}

/// Whether a file can be started.
#[cfg(unix)]
pub fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Whether a file can be started.
#[cfg(not(unix))]
pub fn is_program(file: &Path) -> bool {
    file.is_file()
}
