//! Where the text that a command made goes: to a file, or to the terminal in colour where it is Markdown.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{Global, exit::Usage};
use report::terminal;

/// Markdown is coloured for people; what scripts read is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text for people.
    Markdown,
    /// Text for scripts.
    Data,
}

impl Global {
    /// Prints a text.
    ///
    /// # Errors
    /// Those of the terminal or pipe.
    pub fn print(&self, text: &str, kind: Kind) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if kind == Kind::Markdown && self.paints(&stdout) {
            stdout.write_all(terminal::colour(text).as_bytes())?;
        } else {
            stdout.write_all(text.as_bytes())?;
        }
        stdout.flush()
    }

    /// Writes a text to the file that was asked for, else prints it.
    ///
    /// # Errors
    /// Those of [`write`] and of [`Global::print`].
    pub fn deliver(&self, text: &str, kind: Kind, file: Option<&Path>) -> anyhow::Result<()> {
        match file {
            Some(path) => write(path, text)?,
            None => self.print(text, kind)?,
        }
        Ok(())
    }
}

/// Writes a text to a file.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Usage> {
    let refused = |e| Usage(format!("cannot write '{}': {e}; name a file in a writable directory", path.display()));
    std::fs::write(path, text).map_err(refused)
}
