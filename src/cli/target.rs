//! Where a capture file may be written: looked at before anything is read, since reading may take long.

use std::path::{Path, PathBuf};

use super::exit::Usage;

/// Refuses a file in a directory that is not there, and one that is read itself.
///
/// # Errors
/// The refusal, with the next step.
pub fn check(target: &Path, inputs: &[PathBuf]) -> Result<(), Usage> {
    if let Some(missing) = directory(target).filter(|p| !p.is_dir()) {
        return Err(Usage(format!("there is no directory '{}' to write to; make it first", missing.display())));
    }
    if inputs.iter().any(|input| is_same(input, target)) {
        return Err(Usage(format!("will not replace '{}', which is an input; choose another name", target.display())));
    }
    Ok(())
}

/// Whether two paths name one file, which need not exist yet.
pub fn is_same(a: &Path, b: &Path) -> bool {
    place(a).zip(place(b)).is_some_and(|(a, b)| a == b)
}

fn place(path: &Path) -> Option<PathBuf> {
    let new = || Some(directory(path).unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(new)
}

/// The directory that a path names; `None` for the present one.
fn directory(path: &Path) -> Option<&Path> {
    path.parent().filter(|p| !p.as_os_str().is_empty())
}
