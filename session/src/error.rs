//! What stops a session.

use std::path::PathBuf;

use parsers::ReadError;

/// What stops a session, with the next step in its text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be: a rank that no capture has, a declaration that a capture contradicts.
    #[error("{0}")]
    Request(String),
    /// A file that cannot be read as a trace.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A capture file that cannot be read or written.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The captures hold more than they may take.
    #[error(
        "'{path}' does not fit into the {} MiB that captures may take: {kept} events were kept of it when {read} of its bytes had \
         been read; record fewer steps, or give more with --max-memory", most >> 20
    )]
    Memory {
        /// The file that came to the ceiling.
        path: PathBuf,
        /// What all captures may take, bytes.
        most: u64,
        /// Events of the file that were kept.
        kept: u32,
        /// How much of the file had been read, `17 %`, or how many bytes where its size is not known.
        read: String,
    },
    /// The work was called off.
    #[error("the work was called off")]
    Cancelled,
}

impl Error {
    /// Something that cannot be, in words.
    pub(crate) fn request(text: impl Into<String>) -> Self {
        Self::Request(text.into())
    }
}
