//! The one door for files that others wrote. What is opened here is a regular file, so that a pipe cannot keep the program
//! waiting and a device cannot feed it for ever; what is read whole has a length that it may not exceed, so that no file
//! decides how much memory is taken.
//!
//! Errors are those of the operating system, or of [`io::ErrorKind::InvalidInput`] with what is wrong and the next step; whoever
//! asked knows the path and names it.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read},
    path::Path,
};

/// Most bytes of a file that people write by hand: a declaration, a keymap, a plan. A thousand lines have some 64 KiB.
pub const BY_HAND: u64 = 1 << 20;
/// Most bytes of a document that this program wrote and reads again, such as the JSON of a comparison: some hundred times what
/// the longest has.
pub const DOCUMENT: u64 = 64 << 20;

/// Opens a regular file for reading.
///
/// # Errors
/// Those of the operating system, and of what is no regular file: a directory, a pipe, a device, a socket.
pub fn open(path: &Path) -> io::Result<File> {
    // Asked before opening, because to open a device or a pipe can do something by itself.
    regular(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // What takes the file's place meanwhile must not make the call wait either; reading a regular file is the same with it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Where the content of a file ends, bytes, if a hole follows it to the end: nothing was ever written there, and to read a hole of a
/// terabyte takes as long as to read a terabyte. `None` where there is no such hole, or the system does not say.
#[cfg(target_os = "linux")]
pub fn hole_to_the_end(file: &File) -> Option<u64> {
    use rustix::fs::{SeekFrom, seek};
    /// Pieces of a file that are passed by. Own value; it bounds the work.
    const PIECES: usize = 1 << 10;
    let size = file.metadata().ok()?.len();
    let mut hole = None;
    let mut at = 0;
    for _ in 0..PIECES {
        let begin = seek(file, SeekFrom::Hole(at)).ok().filter(|begin| *begin < size);
        let Some(begin) = begin else { break };
        match seek(file, SeekFrom::Data(begin)) {
            Ok(next) => at = next,
            Err(_) => {
                hole = Some(begin);
                break;
            }
        }
    }
    seek(file, SeekFrom::Start(0)).ok()?;
    hole
}

/// The same where no system call says so.
#[cfg(not(target_os = "linux"))]
pub fn hole_to_the_end(_: &File) -> Option<u64> {
    None
}

/// The content of a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open`], and of a longer file.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_long(&format!("it has {length} bytes"), most));
    }
    within(file, most)
}

/// The text of a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`bytes`], and of what is no UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    utf8(bytes(path, most)?)
}

/// The text of the standard input, at most `most` bytes of it.
///
/// # Errors
/// Those of the operating system, and of more bytes or what is no UTF-8.
pub fn standard_input(most: u64) -> io::Result<String> {
    utf8(within(io::stdin().lock(), most)?)
}

/// Everything that a reader gives, if that is no more than agreed. A file's size is no promise: those of `/proc` have none, and
/// others grow.
fn within(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_long("it goes on", most));
    }
    Ok(bytes)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    let wrong = |e: std::string::FromUtf8Error| {
        let at = e.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {at} is no UTF-8 text"))
    };
    String::from_utf8(bytes).map_err(wrong)
}

fn too_long(what: &str, most: u64) -> io::Error {
    refused(&format!("{what}, and more than {most} bytes are not read of such a file"))
}

fn regular(of: &Metadata) -> io::Result<()> {
    match of {
        of if of.is_file() => Ok(()),
        of if of.is_dir() => Err(refused("it is a directory, and a file is needed")),
        _ => Err(refused("it is no regular file; copy its content to a file and name that")),
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_up_to_its_limit_is_read_and_one_byte_more_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "twelve bytes").unwrap();
        assert_eq!(text(&path, 12).unwrap(), "twelve bytes");
        let refusal = text(&path, 11).unwrap_err().to_string();
        assert!(refusal.contains("12 bytes") && refusal.contains("more than 11"), "{refusal}");
        std::fs::write(&path, b"ab\xff").unwrap();
        assert_eq!(bytes(&path, 12).unwrap(), b"ab\xff");
        assert!(text(&path, 12).unwrap_err().to_string().contains("byte 2 is no UTF-8"));
    }

    /// Some file systems keep no holes; then there is none.
    #[test]
    fn a_hole_at_the_end_is_found_and_the_file_is_still_read_from_its_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "content").unwrap();
        assert_eq!(hole_to_the_end(&open(&path).unwrap()), None);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let mut file = open(&path).unwrap();
        assert!(hole_to_the_end(&file).is_none_or(|at| (7..1 << 20).contains(&at)));
        let mut start = [0; 7];
        file.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"content");
    }

    #[test]
    fn a_size_is_not_believed() {
        let grows = io::repeat(b'x');
        assert_eq!(within(grows.take(5), 5).unwrap(), b"xxxxx");
        assert!(within(io::repeat(b'x'), 5).unwrap_err().to_string().contains("goes on"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_the_system_has_no_size_and_is_read() {
        assert!(text(Path::new("/proc/self/status"), BY_HAND).unwrap().contains("Pid:"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&pipe, &link, &Path::new("/dev/zero").to_owned()] {
            let refusal = open(path).unwrap_err();
            assert!(refusal.to_string().contains("no regular file; copy"), "{refusal}");
        }
        assert!(open(directory.path()).unwrap_err().to_string().contains("a directory"));
        assert_eq!(open(&directory.path().join("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
