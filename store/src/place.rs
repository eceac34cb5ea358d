//! Where a file that is written under a temporary name and then renamed comes to lie: a link stays a link, and no device, pipe or
//! socket is replaced by a file.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Links that are followed one after another, as Linux does.
const LINKS: usize = 40;

/// Where a file of that name is to be written: what the links of the name lead to.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] of links that lead nowhere, of what is there and is no regular file, of a file that a process has open (`/dev/stdout`), and
/// of links in a circle.
pub fn place(target: &Path) -> io::Result<PathBuf> {
    let mut place = target.to_owned();
    for _ in 0..LINKS {
        let directory = place.parent().filter(|path| *path != Path::new("")).unwrap_or(Path::new("."));
        // What a link of /proc says is no name: the file would get another one, and who has it open would not see that.
        if cfg!(target_os = "linux") && directory.canonicalize().is_ok_and(|found| found.starts_with("/proc")) {
            return Err(refused("it stands for a file that a process has open"));
        }
        let kind = match place.symlink_metadata() {
            Ok(found) => found.file_type(),
            Err(_) if place != target => return Err(refused("its link leads nowhere")),
            // Whether one can be made there shows when it is.
            Err(_) => return Ok(place),
        };
        match kind {
            kind if kind.is_file() => return Ok(place),
            kind if kind.is_dir() => return Err(refused("it is a directory")),
            kind if kind.is_symlink() => place = directory.join(place.read_link()?),
            _ => return Err(refused("it is a device, a pipe or a socket, and this needs a regular file")),
        }
    }
    Err(refused("its links lead in a circle"))
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    #[test]
    fn an_output_is_a_regular_file_or_none_yet() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| directory.path().join(name);
        assert_eq!(place(&of("new")).unwrap(), of("new"));
        std::fs::write(of("file"), "").unwrap();
        assert_eq!(place(&of("file")).unwrap(), of("file"));
        symlink("file", of("link")).unwrap();
        symlink("link", of("second")).unwrap();
        symlink("later", of("dangling")).unwrap();
        assert_eq!(place(&of("second")).unwrap(), of("file"), "a link leads to its file");
        assert!(place(&of("dangling")).unwrap_err().to_string().contains("nowhere"));
        symlink("circle", of("circle")).unwrap();
        assert!(place(&of("circle")).unwrap_err().to_string().contains("circle"));
        assert!(std::process::Command::new("mkfifo").arg(of("pipe")).status().unwrap().success());
        let _listener = UnixListener::bind(of("socket")).unwrap();
        symlink("/dev/null", of("null")).unwrap();
        for name in ["pipe", "socket", "null"] {
            assert!(place(&of(name)).unwrap_err().to_string().contains("a device, a pipe"), "{name}");
        }
        assert!(place(directory.path()).unwrap_err().to_string().contains("a directory"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_a_process_has_open_is_not_replaced_by_name() {
        use std::os::fd::AsRawFd;
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join("out")).unwrap();
        let link = directory.path().join("link");
        symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).unwrap();
        assert!(place(&link).unwrap_err().to_string().contains("has open"));
    }
}
