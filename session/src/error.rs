//! What stops a session.

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
