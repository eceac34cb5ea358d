//! Why a file could not be read: what was expected, where it failed, and what to do next.

use std::path::PathBuf;

/// Where in a file reading failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Byte offset in the decompressed content.
    Byte(u64),
    /// Row of a table.
    Row(String, i64),
    /// The file as a whole.
    File,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Byte(offset) => write!(f, " at byte {offset}"),
            Self::Row(table, row) => write!(f, " at row {row} of table '{table}'"),
            Self::File => Ok(()),
        }
    }
}

/// Why reading a trace failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("cannot read '{path}': {source}; check that the file exists and is readable")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The content is not what the format says.
    #[error("cannot read '{path}'{place}: expected {expected}; {next}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What should have been there.
        expected: String,
        /// What the user can do.
        next: String,
    },
    /// No format recognises the file.
    #[error("'{path}' is not a trace of a known format ({known}); name it with --as FORMAT if you know better")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The formats there are.
        known: String,
    },
    /// The file is known and shows no run: a device tool's view of the machine.
    #[error("'{path}' is what {tool} prints about devices and holds no run; give the trace, log or result of a run")]
    NoRun {
        /// The file.
        path: PathBuf,
        /// The tool that printed it.
        tool: &'static str,
    },
    /// The file is what this program made of captures for viewers: it holds less than they do.
    #[error(
        "'{path}' is what 'strato export' wrote of {captures} for viewers, and no trace of a run; give what it was made of"
    )]
    Exported {
        /// The file.
        path: PathBuf,
        /// What it was made of, each in quotes.
        captures: String,
    },
    /// The file is known, and nothing in it can be diagnosed.
    #[error("'{path}' holds {holds}, and no operations with times; {next}")]
    Declined {
        /// The file.
        path: PathBuf,
        /// What it holds.
        holds: String,
        /// What to give instead.
        next: String,
    },
    /// The file is of a kind that is known and not read.
    #[error("'{path}' is {what}, which strato does not read: {why}; {next}")]
    NotRead {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
        /// Why it is not read.
        why: String,
        /// What to give instead, with the command that makes it.
        next: String,
    },
    /// The file is read through SQLite, and this build has none.
    #[error(
        "'{path}' is an SQLite export or read as one, and this build reads none; build stratoscope-parsers with its feature \
         'sqlite', or give what the profiler exports as JSON or CSV"
    )]
    WithoutSqlite {
        /// The file.
        path: PathBuf,
    },
    /// A tool that is needed for this format is not on this machine.
    #[error("'{path}' needs '{tool}', which is not here; run '{command}' where it is and give its output to strato")]
    MissingTool {
        /// The file.
        path: PathBuf,
        /// The tool.
        tool: String,
        /// The exact command.
        command: String,
    },
}

impl ReadError {
    /// Whether the file is none of a run, so that it may lie in a directory of traces without being a loss.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::UnknownFormat { .. } | Self::NoRun { .. } | Self::Exported { .. })
    }
}
