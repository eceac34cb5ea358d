//! Why the engine cannot run.

use std::path::PathBuf;

/// Why a model could not be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot read '{path}': {source}; check that it exists and is readable")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file is not what its name says, or is damaged.
    #[error("cannot use '{path}': {what}; download the checkpoint again or name another")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The configuration describes a model that the engine does not have.
    #[error("cannot run this model: {what}; the engine runs Llama, Qwen2 and Qwen3 checkpoints")]
    Unsupported {
        /// What it asks for.
        what: String,
    },
    /// A tensor is missing or has the wrong shape or type.
    #[error("tensor '{name}': {what}; the checkpoint does not fit its config.json")]
    Tensor {
        /// Its name in the checkpoint.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// Another rank did not arrive where all must meet.
    #[error("rank {own} waited in vain: rank {rank} is lost; its own message says why, or it was stopped")]
    Lost {
        /// The rank that is missing.
        rank: usize,
        /// The rank that waited.
        own: usize,
    },
    /// The device that was asked for is not there, or lacks what a run needs.
    #[error("no {backend} run on this machine: {what}")]
    Unavailable {
        /// The backend that was asked for.
        backend: &'static str,
        /// What is missing, and the next step.
        what: String,
    },
    /// The driver of the device refused.
    #[error("cannot {doing}: {what}; 'strato doctor' says what the driver offers")]
    Device {
        /// What was attempted.
        doing: String,
        /// The driver's own words.
        what: String,
    },
    /// A request that the model or the memory cannot meet.
    #[error("{0}")]
    Request(String),
}
