//! The logits of a run in a NumPy file (`.npy`, version 1.0, <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>):
//! written as the run goes, and under its name only when it is whole.

use std::{
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use engine::run::Engine;
use tempfile::NamedTempFile;

use crate::cli::{exit::Usage, whole_file};

/// Data begins at a multiple of this, as the format asks for.
const ALIGN: usize = 64;

/// A file of logits on its way.
pub(super) struct LogitsFile {
    target: PathBuf,
    file: NamedTempFile,
    /// Bytes before the data.
    start: u64,
    sequences: usize,
    prompt: usize,
    positions: usize,
    vocab: usize,
}

impl LogitsFile {
    /// A file for all positions of a run.
    ///
    /// # Errors
    /// When none can be written beside the target.
    pub(super) fn create(target: &Path, engine: &Engine) -> Result<Self, Usage> {
        let (options, vocab) = (engine.options(), engine.config().vocab);
        Self::of(target, options.batch, options.prompt, options.prompt + options.steps, vocab)
    }

    fn of(target: &Path, sequences: usize, prompt: usize, positions: usize, vocab: usize) -> Result<Self, Usage> {
        let refused = |error| whole_file::refuse(target, &error);
        let place = store::place(target).map_err(refused)?;
        let made = || -> io::Result<(NamedTempFile, u64)> {
            let mut file = store::temporary(&place)?;
            let header = header(sequences, positions, vocab);
            file.write_all(&header)?;
            Ok((file, header.len() as u64))
        };
        let (file, start) = made().map_err(refused)?;
        Ok(Self { target: place, file, start, sequences, prompt, positions, vocab })
    }

    /// Adds what a step computed, (rows, vocabulary): of the prompt every position of every sequence, of a decode step one of
    /// each.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn add(&mut self, step: u32, logits: &[f32]) -> Result<(), Usage> {
        let (rows, position) = match step as usize {
            0 => (self.prompt, 0),
            step => (1, self.prompt + step - 1),
        };
        for (sequence, own) in logits.chunks_exact(rows * self.vocab).take(self.sequences).enumerate() {
            let at = (sequence * self.positions + position) as u64 * self.vocab as u64 * 4;
            let bytes: Vec<u8> = own.iter().flat_map(|logit| logit.to_le_bytes()).collect();
            let written = self.file.seek(SeekFrom::Start(self.start + at)).and_then(|_| self.file.write_all(&bytes));
            written.map_err(|error| whole_file::refuse(&self.target, &error))?;
        }
        Ok(())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When that cannot be done.
    pub(super) fn finish(self) -> Result<(), Usage> {
        let Self { target, file, .. } = self;
        file.persist(&target).map(|_| ()).map_err(|error| whole_file::refuse(&target, &error.error))
    }
}

/// What stands before the data.
fn header(sequences: usize, positions: usize, vocab: usize) -> Vec<u8> {
    let shape = match sequences {
        1 => format!("({positions}, {vocab})"),
        _ => format!("({sequences}, {positions}, {vocab})"),
    };
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version and length take ten bytes, and the text ends with a line feed.
    let length = (10 + text.len() + 1).next_multiple_of(ALIGN) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    header.extend(text.as_bytes());
    header.resize(10 + length - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn logits_replace_no_pipe_and_follow_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| directory.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(of("pipe")).status().unwrap().success());
        let told = LogitsFile::of(&of("pipe"), 1, 1, 2, 2).err().unwrap().0;
        assert!(told.contains("pipe") && told.contains("this needs a regular file"), "{told}");
        std::os::unix::fs::symlink("file", of("link")).unwrap();
        std::fs::write(of("file"), "").unwrap();
        LogitsFile::of(&of("link"), 1, 1, 2, 2).unwrap().finish().unwrap();
        assert!(of("link").symlink_metadata().unwrap().is_symlink());
        assert!(std::fs::read(of("file")).unwrap().starts_with(b"\x93NUMPY"));
    }

    #[test]
    fn rows_stand_in_the_order_of_sequences_and_positions() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("logits.npy");
        let mut file = LogitsFile::of(&target, 2, 2, 3, 2).unwrap();
        file.add(0, &[0.0, 0.1, 1.0, 1.1, 10.0, 10.1, 11.0, 11.1]).unwrap();
        assert!(!target.exists(), "a file that is not whole has no name yet");
        file.add(1, &[2.0, 2.1, 12.0, 12.1]).unwrap();
        file.finish().unwrap();
        let bytes = std::fs::read(&target).unwrap();
        let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert_eq!((&bytes[..8], (10 + length) % ALIGN), (&b"\x93NUMPY\x01\x00"[..], 0));
        let text = std::str::from_utf8(&bytes[10..10 + length]).unwrap();
        assert!(
            text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 2), }") && text.ends_with('\n')
        );
        let values: Vec<f32> =
            bytes[10 + length..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        assert_eq!(values, [0.0, 0.1, 1.0, 1.1, 2.0, 2.1, 10.0, 10.1, 11.0, 11.1, 12.0, 12.1]);
        assert!(header(1, 3, 512).windows(8).any(|part| part == b"(3, 512)"));
    }
}
