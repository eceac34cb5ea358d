//! A directory for what only this process needs. It goes with the process; what one that was killed left goes with the next.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// Begins the name of a directory among temporary files.
const PREFIX: &str = ".strato-scratch-";
/// Random characters of a name.
const RANDOM: usize = 6;
/// Where Linux keeps shared memory: writable in containers whose file system is not.
const MEMORY: &str = "/dev/shm";
/// The file in it that is locked as long as its process is there.
const HELD: &str = "held";
/// How often a directory is made where others take each for one that was left.
const ATTEMPTS: usize = 16;

/// The directory.
pub struct Scratch {
    directory: TempDir,
    _held: File,
}

impl Scratch {
    /// Makes one among the temporary files, or in memory where those cannot be written.
    ///
    /// # Errors
    /// Why there can be none among the temporary files.
    pub fn make() -> io::Result<Self> {
        let usual = Self::within(&std::env::temp_dir(), PREFIX, |_| true);
        usual.or_else(|refused| Self::within(Path::new(MEMORY), PREFIX, |_| true).map_err(|_| refused))
    }

    /// Makes one in a directory. `prefix` begins its name; those of that name that were left go where `may_go` says so.
    ///
    /// # Errors
    /// When the directory takes none.
    pub fn within(place: &Path, prefix: &str, may_go: impl Fn(&Path) -> bool) -> io::Result<Self> {
        for left in abandoned(place, prefix).into_iter().filter(|left| may_go(left)) {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir_all(left);
        }
        let mut attempts = ATTEMPTS;
        loop {
            let directory = tempfile::Builder::new().prefix(prefix).rand_bytes(RANDOM).tempdir_in(place)?;
            let held = File::create_new(directory.path().join(HELD))?;
            match held.lock() {
                Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
                _ => {}
            }
            attempts -= 1;
            // Before it was locked another program may have taken it for one that was left.
            if attempts == 0 || directory.path().join(HELD).exists() {
                return Ok(Self { directory, _held: held });
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Leaves it where it is, for people; it is taken for none that was left.
    pub fn keep(self) {
        let place = self.directory.keep();
        let _ = std::fs::remove_file(place.join(HELD));
    }
}

/// Directories of that name whose process is gone.
pub fn abandoned(place: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = place.read_dir().into_iter().flatten().flatten();
    let is_ours = |name: &str| {
        let random = name.strip_prefix(prefix);
        random.is_some_and(|random| random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    let is_left = |path: &Path| input::open(&path.join(HELD)).is_ok_and(|held| held.try_lock().is_ok());
    entries
        .filter(|entry| {
            is_ours(&entry.file_name().to_string_lossy()) && entry.file_type().is_ok_and(|kind| kind.is_dir())
        })
        .map(|entry| entry.path())
        .filter(|path| is_left(path))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn l7_what_a_killed_process_left_goes_and_what_is_held_or_anothers_stays() {
        let place = tempfile::tempdir().unwrap();
        let of = |name: &str| place.path().join(name);
        for name in [".strato-x-Ab12Cd", ".strato-x-kept00", ".strato-x-other", ".strato-x-empty0"] {
            std::fs::create_dir(of(name)).unwrap();
        }
        for name in [".strato-x-Ab12Cd", ".strato-x-kept00", ".strato-x-other"] {
            std::fs::write(of(name).join(HELD), "").unwrap();
        }
        let held = Scratch::within(place.path(), ".strato-x-", |path| !path.ends_with(".strato-x-kept00")).unwrap();
        let second = Scratch::within(place.path(), ".strato-x-", |path| !path.ends_with(".strato-x-kept00")).unwrap();
        assert!(!of(".strato-x-Ab12Cd").exists());
        assert!(of(".strato-x-kept00").exists() && of(".strato-x-other").exists() && of(".strato-x-empty0").exists());
        assert!(held.path().exists() && second.path().exists());
        let [held, second] = [held, second].map(|scratch| (scratch.path().to_owned(), scratch));
        drop(held.1);
        second.1.keep();
        assert!(!held.0.exists() && second.0.exists());
        assert_eq!(abandoned(place.path(), ".strato-x-"), [of(".strato-x-kept00")]);
    }
}
