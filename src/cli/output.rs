//! Where what a command made goes: to a file or a pipe as Markdown, or to the terminal, fitted to it.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
};

use super::{Global, exit::Usage, interface, whole_file};
use report::{
    document::Document,
    screen::{self, Look},
};

/// What a command made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A text for people: Markdown, and fitted to the terminal where that is one.
    Document(Document),
    /// A text for people that is to be Markdown on a terminal too.
    Markdown(Document),
    /// A text for scripts or for other programs, written as it is.
    Data(String),
}

impl Output {
    /// A text for people; `asked` where somebody asked for Markdown by name.
    pub fn of(document: Document, asked: bool) -> Self {
        if asked { Self::Markdown(document) } else { Self::Document(document) }
    }
}

impl Global {
    /// What the terminal shows that stdout is; elsewhere what the variable COLUMNS says.
    pub fn look(&self) -> Look {
        let variable = |name: &str| std::env::var(name).ok();
        let stdout = io::stdout();
        let seen = Some(&stdout).filter(|stdout| stdout.is_terminal()).and_then(|_| crossterm::terminal::size().ok());
        let said =
            || variable("COLUMNS").and_then(|columns| columns.parse::<usize>().ok()).filter(|columns| *columns > 0);
        let width = seen.map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0).or_else(said);
        Look { width: width.unwrap_or(80), colour: self.paints(&stdout), ascii: !interface::is_utf8(variable) }
    }

    /// Prints it.
    ///
    /// # Errors
    /// Those of the terminal or pipe.
    pub fn print(&self, output: &Output) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        match output {
            Output::Document(document) if stdout.is_terminal() => {
                stdout.write_all(screen::page::render(document, self.look()).as_bytes())?;
            }
            Output::Document(document) | Output::Markdown(document) if self.paints(&stdout) => {
                stdout.write_all(document.terminal().as_bytes())?;
            }
            Output::Document(document) | Output::Markdown(document) => {
                stdout.write_all(document.markdown().as_bytes())?;
            }
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
            (Some(path), Output::Document(document) | Output::Markdown(document)) => write(path, &document.markdown())?,
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
