//! Where what a command made goes: to a file, or to the terminal, for people in colour.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{Global, exit::Usage, whole_file};
use report::document::Document;

/// What a command made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A text for people, written as Markdown.
    Document(Document),
    /// A text for scripts or for other programs, written as it is.
    Data(String),
}

impl Global {
    /// Prints it.
    ///
    /// # Errors
    /// Those of the terminal or pipe.
    pub fn print(&self, output: &Output) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        match output {
            Output::Document(document) if self.paints(&stdout) => stdout.write_all(document.terminal().as_bytes())?,
            Output::Document(document) => stdout.write_all(document.markdown().as_bytes())?,
            Output::Data(text) => stdout.write_all(text.as_bytes())?,
        }
        stdout.flush()
    }

    /// Writes it to the file that was asked for, else prints it.
    ///
    /// # Errors
    /// Those of [`write()`] and of [`Global::print`].
    pub fn deliver(&self, output: &Output, file: Option<&Path>) -> anyhow::Result<()> {
        match (file, output) {
            (Some(path), Output::Document(document)) => write(path, &document.markdown())?,
            (Some(path), Output::Data(text)) => write(path, text)?,
            (None, output) => self.print(output)?,
        }
        Ok(())
    }
}

/// Writes a text to a file.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Usage> {
    whole_file::write(path, |out| out.write_all(text.as_bytes()))
}
