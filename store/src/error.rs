//! Why a capture file could not be written, read or queried.

use std::path::{Path, PathBuf};

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {doing} '{path}': {source}; {}", next_step(doing))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done to it.
        doing: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is of another kind.
    #[error("'{path}' is not a capture file; make one with 'strato import {path} -o FILE.strato'")]
    NotACapture {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by another version of the program.
    #[error(
        "'{path}' has schema version {found}, this program knows {known}; {}",
        if found > known { "use a newer strato" } else { "import the original trace again" }
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The content contradicts itself.
    #[error("cannot read '{path}': row {row} of table '{table}': {what}; import the original trace again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// Its row.
        row: i64,
        /// What is wrong with it.
        what: String,
    },
    /// The bytes are not those that were written.
    #[error(
        "'{path}' is damaged: {what}; 'strato verify {path}' says what is lost, or import the original trace again"
    )]
    Altered {
        /// The file.
        path: PathBuf,
        /// What shows it.
        what: String,
    },
    /// SQLite refused.
    #[error("cannot {doing} '{path}': {source}; {}", next_step(doing))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What was being done to it.
        doing: &'static str,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The place of the output is taken by something that is not a capture file.
    #[error("will not replace '{path}', which is not a capture file; choose another name or remove it first")]
    Occupied {
        /// The file.
        path: PathBuf,
    },
    /// A query of a person cannot be answered.
    #[error("{message}; {hint}")]
    Query {
        /// What is wrong with it.
        message: String,
        /// What can be done.
        hint: String,
    },
}

fn next_step(doing: &str) -> &'static str {
    match doing {
        "write" | "finish" | "lock" => "name a file in a writable directory with room for it",
        _ => "check that it exists and is readable, or import the original trace again",
    }
}

/// SQLite's extended code of an error: <https://www.sqlite.org/rescode.html>.
pub(super) fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error().and_then(|error| error.code()?.parse().ok())
}

/// The name that a person gave a file: that of a temporary one is the target's with an ending.
fn named(path: &Path) -> PathBuf {
    let target = path.to_str().and_then(|path| path.strip_suffix(".tmp")?.rsplit_once('.'));
    target.map_or_else(|| path.to_owned(), |(target, _)| PathBuf::from(target))
}

impl Error {
    /// Whether it is a file of ours that could not be written, and nothing is wrong with an input.
    pub fn is_of_writing(&self) -> bool {
        matches!(self, Self::Io { doing, .. } | Self::Sqlite { doing, .. } if matches!(*doing, "write" | "finish" | "lock"))
    }

    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { path: named(path), doing, source }
    }

    pub(super) fn sqlite<E>(path: &Path, doing: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| {
            let source = source.into();
            let is_altered = source.downcast_ref().and_then(code) == Some(libsqlite3_sys::SQLITE_IOERR_DATA);
            if is_altered { Self::altered(path) } else { Self::Sqlite { path: named(path), doing, source } }
        }
    }

    /// A page was read that is not what was sealed.
    pub(super) fn altered(path: &Path) -> Self {
        Self::Altered { path: path.to_owned(), what: "what was read is not what was written".to_owned() }
    }
}
