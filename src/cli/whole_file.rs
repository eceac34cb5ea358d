//! A file that appears whole or not at all: written under a temporary name in the same directory, then renamed.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use super::{ended::Ended, exit::Usage};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 20;

/// Writes `target`. A pipe or a device has nothing that could be renamed, and is written to as it is.
///
/// # Errors
/// When it cannot be written, with the reason; then there is no file of that name, or still the one before.
pub fn write<T>(target: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<T, Usage> {
    let written = match store::place(target) {
        Ok(place) => {
            let ended = Ended::receive().unwrap_or_else(|_| Ended::never());
            let written = replace(&place, content, &ended);
            ended.follow();
            written
        }
        Err(_) => into(File::options().write(true).open(target), content).map(|(_, told)| told),
    };
    written.map_err(|error| refuse(target, &error))
}

/// What is said of a file that cannot be written.
pub fn refuse(target: &Path, error: &io::Error) -> Usage {
    Usage(format!("cannot write '{}': {error}; {}", target.display(), next(error)))
}

/// Writes below a writer, until a signal comes.
struct Until<'e, W> {
    out: W,
    ended: &'e Ended,
}

impl<W> Until<'_, W> {
    /// Not `Interrupted`, after which a writer would try again.
    fn check(&self) -> io::Result<()> {
        if self.ended.is() { Err(io::Error::other("a signal ends the program")) } else { Ok(()) }
    }
}

impl<W: Write> Write for Until<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn replace<T>(target: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<T>, ended: &Ended) -> io::Result<T> {
    let (file, path) = store::temporary(target)?.into_parts();
    let (file, told) = into(Ok(file), |out| {
        let mut out = Until { out, ended };
        let told = content(&mut out)?;
        out.check().map(|()| told)
    })?;
    // Some file systems notice only now that they are full.
    file.sync_all()?;
    path.persist(target).map_err(|refused| refused.error)?;
    Ok(told)
}

fn into<T>(file: io::Result<File>, content: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<(File, T)> {
    let mut out = BufWriter::with_capacity(BUFFER, file?);
    let told = content(&mut out)?;
    Ok((out.into_inner().map_err(io::IntoInnerError::into_error)?, told))
}

/// What to do about an error of writing.
pub fn next(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, or name a file on another disk",
        io::ErrorKind::BrokenPipe => "its reader went away before the end",
        io::ErrorKind::InvalidInput => "name a regular file, or a new one",
        _ => "name a file in a writable directory",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn what_fails_half_way_leaves_nothing_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.json");
        let fails = |out: &mut dyn Write| -> io::Result<()> {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let told = write(&target, fails).unwrap_err().0;
        assert!(told.contains("a.json") && told.contains("free some space"), "{told}");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        assert_eq!(write(&target, |out| out.write_all(b"first").map(|()| 7)).unwrap(), 7);
        assert!(write(&target, fails).is_err());
        assert_eq!(fs::read(&target).unwrap(), b"first");
        assert_eq!(directory.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_export_left_goes_with_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.json");
        let [left, other] = ["a.json.Ab12Cd.tmp", "b.json.Ab12Cd.tmp"].map(|name| directory.path().join(name));
        [&left, &other].iter().for_each(|path| fs::write(path, "half").unwrap());
        write(&target, |out| out.write_all(b"whole")).unwrap();
        assert_eq!((left.exists(), other.exists(), target.exists()), (false, true, true));
    }

    #[cfg(unix)]
    #[test]
    fn an_interrupted_export_leaves_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.json");
        fs::write(&target, b"first").unwrap();
        // While it writes, and after its last byte.
        for more in [3 * BUFFER, 0] {
            let ended = Ended::receive().unwrap();
            let stopped = |out: &mut dyn Write| -> io::Result<()> {
                out.write_all(b"half")?;
                assert_eq!(directory.path().read_dir().unwrap().count(), 2, "it is written under another name");
                ended.pretend();
                out.write_all(&vec![b' '; more])
            };
            let refused = replace(&target, stopped, &ended).unwrap_err();
            assert!(refused.to_string().contains("signal"), "{refused}");
            assert_eq!(directory.path().read_dir().unwrap().count(), 1);
            assert_eq!(fs::read(&target).unwrap(), b"first");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one_and_what_it_names_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let [link, file] = ["latest.json", "a.json"].map(|name| directory.path().join(name));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_told() {
        let told = write(Path::new("/dev/full"), |out| out.write_all(b"x")).unwrap_err().0;
        assert!(told.contains("/dev/full") && told.contains("free some space"), "{told}");
    }
}
